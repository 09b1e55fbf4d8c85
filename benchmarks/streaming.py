"""A fit of more points than memory should hold, from a file.

`python -m benchmarks.streaming [--points 200e6] [--folder DIR] [--json FILE]` writes a
file of positions and noisy values (float64, removed in the end), fits 5 parameters to
it block by block, and measures time, memory after each block, the time of a checkpoint,
and, on a part of the points, what checks and checkpoints cost.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physax import fit, runtime
from physax.fit._driven import Pass, add_block, end_pass
from physax.fit._passes import first_sums, start_search, without_data
from physax.fit._sources import read_blocks

from ._physax_fit import residual
from ._rows import OURS, Row, ours_version, report
from .peers._fit_data import NOISE, START, TRUTH, model
from .peers._serve import resident_mb


PART = 20_000_000
ROUNDS = 9
# Of a fit to a part of the points, which alone may determine the parameters badly.
PASSES = 10


def write_points(path: Path, count: int) -> np.ndarray:
    """Writes the points, a block at a time, and maps the file."""
    data = np.lib.format.open_memmap(path, "w+", "f8", (2, count))
    rng = np.random.default_rng(0)
    size = 2**20
    for begin in range(0, count, size):
        x = np.arange(begin, min(begin + size, count)) * (10 / count)
        noise = NOISE * rng.standard_normal(x.size)
        data[:, begin : begin + x.size] = x, model(np, x, *TRUTH) + noise
    data.flush()
    del data
    return np.load(path, mmap_mode="r")


def fitted(data: np.ndarray, **options) -> fit.FitResult:
    """Fits the points of a mapped file."""
    problem = fit.LeastSquares(residual, np.array(START), (data[0], data[1]))
    return fit.least_squares(problem, progress=False, **options)


class MemorySamples(threading.Thread):
    """Notes the memory of this process, twenty times a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen: list[float] = []
        self._ended = threading.Event()

    def run(self):
        """Notes until told to end."""
        while not self._ended.wait(0.05):
            self.seen.append(resident_mb())

    def end(self) -> np.ndarray:
        """Returns what was noted, in MiB."""
        self._ended.set()
        self.join()
        return np.array(self.seen)


def bare(data: np.ndarray, plan: fit.Plan, method: fit.TrustRegion) -> int:
    """Fits by a loop over blocks that does nothing else; returns the passes."""
    problem = fit.LeastSquares(residual, np.array(START), (data[0], data[1]))
    points, problem = problem.data, without_data(problem)
    search = start_search(problem)
    empty = None
    while not bool(search.done):
        fresh = True
        for block in read_blocks(points, plan.block, 0):
            if empty is None:
                empty = first_sums(problem, block.batch, search.trial)
            if fresh:
                state = Pass(search, empty, jnp.zeros(1, bool))
            first, last = jnp.asarray(block.first), jnp.asarray(block.last)
            sums = add_block(problem, state, block.batch, first, last, chunk=plan.chunk)
            state, fresh = eqx.tree_at(lambda s: s.sums, state, sums), False
            jax.block_until_ready(sums.cost)
        search = end_pass(problem, method, state)
    return int(search.evaluations)


def overheads(data: np.ndarray, folder: Path) -> tuple[float, float]:
    """Measures what fault tolerance costs.

    Returns:
        The time with checkpoints and checks, and with neither, over that of a bare loop
        over the same blocks, less 1: medians of interleaved rounds, a pass each.
    """
    part = data[:, :PART]
    plan = fit.plan(PART, len(START), resident=False)
    method = fit.TrustRegion(max_evaluations=PASSES)
    options = {"plan": plan, "method": method}
    seconds: dict[str, list[float]] = {"bare": [], "off": [], "all": []}

    def everything(number: int) -> int:
        every = 5 * -(-part.shape[1] // plan.block)  # five passes
        kept = runtime.Checkpointing(folder / str(number), every=every)
        return int(fitted(part, checkpoint=kept, **options).evaluations)

    for number in range(ROUNDS + 1):
        runs: dict[str, Callable[[], int]] = {
            "bare": lambda: bare(part, plan, method),
            "off": lambda: int(fitted(part, checks=False, **options).evaluations),
            "all": lambda n=number: everything(n),
        }
        turn = number % len(runs)
        for name, run in [*runs.items()][turn:] + [*runs.items()][:turn]:
            start = time.perf_counter()
            passes = run()
            if number:  # the first round compiles
                seconds[name].append((time.perf_counter() - start) / passes)
    full, off = (
        median(a / b for a, b in zip(seconds[name], seconds["bare"], strict=True)) - 1
        for name in ("all", "off")
    )
    return full, off


def measured(data: np.ndarray, folder: Path) -> list[Row]:
    """Fits all points, and makes the rows."""
    count = data.shape[1]
    samples = MemorySamples()
    samples.start()
    start = time.perf_counter()
    found = fitted(data)
    seconds = time.perf_counter() - start
    memory = samples.end()
    # From the second pass on: the first compiles.
    later = memory[len(memory) // max(int(found.evaluations), 1) :]
    errors = np.abs(np.asarray(found.values) - TRUTH) / np.asarray(
        found.standard_errors
    )
    start = time.perf_counter()
    runtime.save_checkpoint(folder / "one", 1, runtime.pack_state(found.factor))
    save = time.perf_counter() - start
    full, off = overheads(data, folder)
    name = f"{count:,} points from a file"
    version = ours_version()
    rows = {
        "whole fit": (seconds, "s"),
        "per pass": (seconds / int(found.evaluations), "s"),
        "largest memory": (float(memory.max()), "MiB"),
        "variation of memory": (float(later.std() / later.mean()), "of the mean"),
        "a checkpoint": (save, "s"),
        "cost of checks and checkpoints": (full, "of a bare loop"),
        "cost with both off": (off, "of a bare loop"),
        "largest error": (float(errors.max()), "standard errors"),
    }
    return [
        Row(f"{name}: {what}", OURS, version, value, unit, runs=1)
        for what, (value, unit) in rows.items()
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=float, default=200e6)
    parser.add_argument("--folder", help="where there is room for the file")
    parser.add_argument("--json", help="where to write the rows")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        data = write_points(Path(folder) / "points.npy", int(options.points))
        rows = measured(data, Path(folder))
    report(rows, "a fit block by block, float64", options.json)


if __name__ == "__main__":
    main()
