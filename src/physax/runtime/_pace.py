"""Measures the rate of a run, and chooses how long its chunks are."""

import math


# A chunk of this length costs little overhead, and a signal is answered in time.
_CHUNK_SECONDS = 0.5
_GROWTH = 8


class Pace:
    """The rate of a run so far.

    The first chunk counts only while there is no other, since it may have compiled.

    Attributes:
        length: How many steps the next chunk should have.
    """

    def __init__(self, chunk: int | None):
        self.length = chunk or 1
        self._fixed = chunk is not None
        self._first: tuple[int, float] | None = None
        self._steps = 0
        self._seconds = 0.0

    def add(self, steps: int, seconds: float) -> None:
        """Takes note of a chunk."""
        if self._first is None:
            self._first = steps, seconds
            return
        self._steps += steps
        self._seconds += seconds
        if not self._fixed and seconds > 0:
            wanted = min(steps / seconds * _CHUNK_SECONDS, self.length * _GROWTH)
            self.length = max(1, int(wanted))

    @property
    def rate(self) -> float:
        """Steps per second without the first chunk; NaN if there is no other."""
        return self._steps / self._seconds if self._seconds > 0 else math.nan

    @property
    def overall(self) -> float:
        """As `rate`, but of the first chunk if there is no other."""
        if self._seconds > 0 or self._first is None:
            return self.rate
        steps, seconds = self._first
        return steps / seconds if seconds > 0 else math.nan
