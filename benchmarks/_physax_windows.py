"""physax's side of `benchmarks.particle_windows`: a series on disk or in memory."""

import os
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np

from physax.io import SnapshotSeries, TrackFile
from physax.particles import GriddedField, Windows, run

from ._rows import ours_version
from .peers._serve import serve
from .peers._tracks_data import seeds


SERIES, TRACKS = "series.h5", {False: "windows.npy", True: "whole.npy"}


def opened(folder: str | Path) -> SnapshotSeries:
    """Opens the series of a folder."""
    path = Path(folder) / SERIES
    return SnapshotSeries(path, "u", "v", "w", axes=("x", "y", "z"), time="t")


def forget(path: Path) -> None:
    """Drops what the system keeps of a file in memory, so that the disk is read."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def peak_mb() -> float:
    """Returns the largest resident memory of this process so far, in MiB."""
    words = Path("/proc/self/status").read_text(encoding="ascii").split()
    return int(words[words.index("VmHWM:") + 1]) / 1024


def stacked(series: SnapshotSeries) -> np.ndarray:
    """Reads a whole series."""
    first = series(0)
    values = np.empty((len(series), *first.shape), first.dtype)
    for number, snapshot in enumerate(values):
        snapshot[:] = series(number)
    return values


def prepare(
    folder: str, particles: int, steps: int, whole: int, limit: int
) -> Callable[[], list[float]]:
    """Returns a run, which tells the largest memory; or nothing, where it has no room.

    Args:
        folder: Where the series is; each recorded row is written there, too.
        particles: About how many.
        steps: Steps between two snapshots, of which the last is recorded.
        whole: Whether to read the series before the run, and not during it.
        limit: Bytes that the process may hold (`RLIMIT_DATA`: its own memory, stacks of
            threads included, but not files that are mapped); 0 for any number.
    """
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    series, start = opened(folder), seeds(particles)
    rows = TrackFile(Path(folder) / TRACKS[bool(whole)], len(series), len(start), 3)
    times = np.linspace(series.times[0], series.times[-1], len(series))
    steps *= len(series) - 1

    def field(values, times):
        return GriddedField(values, series.axes, times)

    kept = None
    if whole:
        try:
            kept = field(stacked(series), series.times)
        except MemoryError:
            return list

    def follow():
        forget(Path(folder) / SERIES)
        velocity = Windows(series, field) if kept is None else kept
        run(velocity, start, times, steps=steps, sink=rows, progress=False)
        return [peak_mb()]

    return follow


if __name__ == "__main__":
    serve("physax", ours_version(), prepare)
