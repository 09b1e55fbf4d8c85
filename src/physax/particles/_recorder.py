"""Hands the rows of a run to a sink, and checks that none is missing."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError
from ._state import Particles


Sink = Callable[[int, int, Float[np.ndarray, "rows particles width"]], None]


@runtime_checkable
class Rows(Protocol):
    """A sink that shows what it holds, as `io.TrackFile` does.

    Attributes:
        values: All rows.
    """

    values: Float[np.ndarray, "rows particles width"]


class RunState(eqx.Module):
    """The state that a run continues from.

    Attributes:
        particles: The states of all particles.
        rows: The last recorded rows, each at its number modulo how many there are.
    """

    particles: Particles
    rows: Float[Array, "rows particles width"]


def _held(sink: Any) -> np.ndarray | None:
    values = sink.values if isinstance(sink, Rows) else None
    return values if isinstance(values, np.ndarray) else None


def check_rows(sink: Any, shape: tuple[int, int, int]) -> None:
    """Raises if a file is made for another run.

    Args:
        sink: The sink.
        shape: Rows, particles and numbers of each in this run.

    Raises:
        ArgumentError: If it has room for more or for less.
    """
    held = _held(sink)
    if held is not None and held.shape != shape:
        raise ArgumentError(
            f"`sink` must have room for {shape[0]} times, {shape[1]} particles and "
            f"{shape[2]} numbers of each, as the run has, but has the shape "
            f"{held.shape}. Make it with `times={shape[0]}, particles={shape[1]}, "
            f"width={shape[2]}`."
        )


class Recorder:
    """Hands rows to a sink, each when it is complete."""

    def __init__(
        self,
        every: int,
        sink: Sink,
        depth: int,
        count: int,
        first: Float[Array, "particles width"],
        folder: Path | None,
    ):
        """Begins with nothing written.

        Args:
            every: Steps between two rows.
            sink: Gets them.
            depth: Rows that wait in the state of the run.
            count: Number of particles, without those that pad.
            first: The first row.
            folder: Of the checkpoints, `None` for none.
        """
        self.every, self.sink, self.depth = every, sink, depth
        self.count, self.first, self.folder = count, first, folder
        self.written: int | None = None

    def begin(self, step: int, state: RunState) -> None:
        """Writes what waits in the state a run begins with.

        Args:
            step: The step it is of.
            state: The state.
        """
        if self.written is None:
            earlier = max(step // self.every - self.depth, 0)
            if earlier:
                self._check_held(earlier, step)
            for begin, values in _parts(self.first[None], self.count):
                self.sink(0, begin, values)
            self.written = earlier
            self(step, state)

    def _check_held(self, last: int, step: int) -> None:
        """Raises if a file lacks the rows that the state no longer holds."""
        held = _held(self.sink)
        if held is None:
            return
        for begin, values in _parts(self.first[None], self.count):
            where = slice(begin, begin + values.shape[1])
            expected = values[0].astype(held.dtype)
            if not np.array_equal(held[0, where], expected, equal_nan=True):
                missing = 0
            elif expected.any() and not np.any(held[last, where]):
                missing = last
            else:
                continue
            raise ArgumentError(
                f"`sink` must hold the rows up to {last}, written before the "
                f"checkpoint of step {step} in `{self.folder}`, but row {missing} is "
                "missing: the file is new, or that of another run. Restore it, or "
                "remove the checkpoints to start again."
            )

    def __call__(self, step: int, state: RunState) -> None:
        done = step // self.every
        for row in range(self.written or 0, done):
            for begin, values in _parts(state.rows, self.count):
                slot = row % self.depth
                self.sink(row + 1, begin, values[slot : slot + 1])
        self.written = done


def _parts(rows: Array, count: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yields the particles of this process: the number of the first, and the rows."""
    for shard in rows.addressable_shards:
        begin = shard.index[1].start or 0
        # A device may have nothing but particles that pad.
        if shard.replica_id == 0 and begin < count:
            yield begin, np.asarray(shard.data)[:, : count - begin]
