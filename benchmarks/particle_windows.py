"""Particles through a series twice as large as memory may be.

`python -m benchmarks.particle_windows [--json FILE] [--quick] [--folder DIR]` writes a
series of snapshots (HDF5, float32, removed in the end) and carries particles through it
by `run`, all recorded rows going to a file. One process holds a window of snapshots at
a time, under a limit of half the series that is set for it (`RLIMIT_DATA`), and reads
the file again each time, none of it being in the system's cache; another holds the
whole series in memory, without a limit. Their runs are interleaved; the first of each
compiles. A third process tries to hold the whole series under the limit. With `--quick`
the series is smaller than JAX itself, and there is no limit.
"""

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from ._command import Command
from ._physax_windows import SERIES, TRACKS, forget, opened
from ._rows import CHECK, MISSING, OURS, Row, console, ours_version, ranked, report
from .peers._tracks_data import seeds
from .peers._worker import Worker


MODULE = "_physax_windows"
WHOLE = "in memory"
SPEED = "Mparticle-steps/s"


class Workload(NamedTuple):
    """What is measured.

    Attributes:
        nodes: Along each axis.
        snapshots: In the series.
        last: Time of the last one.
        particles: About how many.
        steps: Between two snapshots.
        limited: Whether half the series is to be the limit.
    """

    nodes: int = 110
    snapshots: int = 128
    last: float = 1.0
    particles: int = 100_000
    steps: int = 10
    limited: bool = True

    @property
    def bytes(self) -> int:
        """Size of the series."""
        return self.snapshots * self.nodes**3 * 3 * 4


QUICK = Workload(20, 12, 0.1, 2000, 4, limited=False)


def patterns(x: np.ndarray) -> list[list[np.ndarray]]:
    """Returns the components of two flows, confined and without divergence."""
    x, y, z = np.meshgrid(x, x, x, indexing="ij", sparse=True)
    pi, none = np.float32(np.pi), np.zeros_like(x * y * z)
    cos_x, cos_y, cos_z = np.cos(pi * x), np.cos(pi * y), np.cos(pi * z)
    sin_x, sin_y, sin_z = np.sin(pi * x), np.sin(pi * y), np.sin(pi * z)
    cells = [
        0.2 * sin_x * cos_y * cos_z,
        0.2 * cos_x * sin_y * cos_z,
        -0.4 * cos_x * cos_y * sin_z,
    ]
    return [
        cells,
        [sin_x**2 * np.sin(2 * pi * y), -(sin_y**2) * np.sin(2 * pi * x), none],
    ]


def write_series(path: Path, work: Workload) -> None:
    """Writes the series, snapshot by snapshot."""
    nodes = np.linspace(0, 1, work.nodes, dtype="f4")
    times = np.linspace(0, work.last, work.snapshots)
    cells, turns = patterns(nodes)
    with h5py.File(path, "w") as file:
        for name in "xyz":
            file[name] = nodes
            file[name].attrs["units"] = "m"
        file["t"] = times
        shape = (work.snapshots, *[work.nodes] * 3)
        parts = [file.create_dataset(name, shape, "f4") for name in "uvw"]
        for number, t in enumerate(times):
            s, g = 1 + 0.3 * np.sin(2 * np.pi * t), 0.5 * np.cos(2 * np.pi * t / 3)
            for part, cell, turn in zip(parts, cells, turns, strict=True):
                part[number] = s * cell + g * turn
    with path.open("rb") as file:
        os.fsync(file.fileno())  # only what is on the disk can be dropped


def reading(folder: Path) -> float:
    """Returns the seconds of reading the series, and doing nothing else."""
    forget(folder / SERIES)
    start = time.perf_counter()
    with opened(folder) as series:
        for number in range(len(series)):
            series(number)
    return time.perf_counter() - start


def off(folder: Path) -> float:
    """Returns how far apart the last places of the two runs are at most."""
    ends = [np.load(folder / name, mmap_mode="r")[-1] for name in TRACKS.values()]
    return float(np.abs(ends[0] - ends[1]).max())


def measured(folder: Path, work: Workload, rounds: int) -> list[Row]:
    """Runs both ways in turn, and makes the rows."""
    limit = work.bytes // 2 if work.limited else 0
    request = {"folder": str(folder), "particles": work.particles, "steps": work.steps}
    requests: dict[str, dict] = {
        OURS: {**request, "whole": 0, "limit": limit},
        WHOLE: {**request, "whole": 1, "limit": 0},
    }
    workers = {tool: Worker(tool, MODULE) for tool in requests}
    answers: dict[str, list[dict]] = {tool: [] for tool in workers}
    try:
        for _ in range(rounds + 1):
            for tool, worker in workers.items():
                answers[tool].append(worker.run(**requests[tool]))
    finally:
        for worker in workers.values():
            worker.close()
    count, steps = len(seeds(work.particles)), work.steps * (work.snapshots - 1)
    size = f"{work.bytes / 2**20:,.0f} MiB"
    name = f"{count:,} particles, {steps:,} steps, series of {size}"
    version, rows = ours_version(), []
    for tool, (_, *found) in answers.items():
        rate = count * steps / min(answer["seconds"] for answer in found) / 1e6
        peak = found[-1]["values"][0]
        rows.append(Row(name, tool, version, rate, SPEED, peak_mb=peak, runs=rounds))
    rows = ranked(rows)
    rows += [
        Row(f"{name}: reading alone", OURS, version, reading(folder), "s", runs=1),
        Row(f"{name}: off from {WHOLE}", OURS, version, off(folder), CHECK),
    ]
    return rows + (refused(name, request, limit) if limit else [])


def refused(name: str, request: dict, limit: int) -> list[Row]:
    """Tries to hold the whole series under the limit, which is a row, too."""
    worker = Worker(WHOLE, MODULE)
    try:
        answer = worker.run(**request, whole=1, limit=limit)
    finally:
        worker.close()
    mb, fits = limit / 2**20, bool(answer["values"])
    case = f"{name}: under a limit of {mb:,.0f} MiB"
    if not fits:
        console().print(f"{case}: there is no room for the whole series.")
    version = ours_version() if fits else MISSING
    seconds = answer["seconds"] if fits else None
    return [
        Row(f"{name}: limit", OURS, ours_version(), mb, "MiB"),
        Row(case, WHOLE, version, seconds, "s"),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    command = Command(__doc__, (), rounds=3, quick=1)
    command.parser.add_argument("--folder", help="where there is room for the series")
    options = command.options(arguments)
    work = QUICK if options.quick else Workload()
    if not work.limited:
        console().print("No limit is set: JAX alone would not fit under it.")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name).resolve()
        write_series(folder / SERIES, work)
        rows = measured(folder, work, options.rounds)
    report(rows, "particles through windows of snapshots, float32", options.json)


if __name__ == "__main__":
    main()
