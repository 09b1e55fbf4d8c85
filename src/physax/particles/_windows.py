"""Fields whose snapshots do not fit into memory: a few of them at a time."""

import math
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from .._checks import ArgumentError, forgotten, kind_of, whole
from ._axis import Axis, check_positions
from ._fields import AbstractField
from ._instants import Instants
from ._numbers import unmasked


# Bytes: JAX takes over an array that begins at such an address, on CPUs, as it is.
_ALIGNMENT = 64


@runtime_checkable
class Series(Protocol):
    """Snapshots that are read one by one.

    Attributes:
        times: Their instants, in seconds, increasing.
    """

    times: Float[np.ndarray, " times"]

    def __call__(self, number: int) -> Float[np.ndarray, "..."]:
        """Reads one snapshot."""
        ...


@runtime_checkable
class Files(Protocol):
    """A series that names the files it reads.

    Attributes:
        paths: The files, one by one or in lists.
    """

    paths: Any


class Span(NamedTuple):
    """Steps that one window of snapshots serves.

    Attributes:
        first: Number of the first step.
        stop: One past the number of the last step.
        start: Number of the first snapshot of the window.
    """

    first: int
    stop: int
    start: int


class Windows:
    """A field of which only a window of snapshots is in memory, for `run`.

    While particles move through one window a thread reads the next. What two windows
    that follow each other share is read once. A checkpoint remembers the times, and
    size and date of the files if the series has `paths`; without them, changes after
    the first window go unnoticed.

    Attributes:
        series: What reads the snapshots, such as `io.SnapshotSeries`.
        make: Makes the field of stacked snapshots and their times, such as
            `lambda values, times: GriddedField(values, axes, times)`. Interpolation in
            time must be linear, or have `margin=1`.
        size: Snapshots in a window, at least 2.
        reads: How many snapshots have been read so far.
        margin: Snapshots that interpolation needs on either side of an interval: 0 for
            `Linear()`, 1 for `CubicHermite()`.

    Raises:
        ArgumentError: If a window is too small, or the series shorter than one; in
            `run` if the field interpolates in time over more than `margin` allows.
    """

    def __init__(
        self,
        series: Series,
        make: Callable[[Array, Axis], AbstractField],
        *,
        size: int = 4,
        margin: int = 0,
    ):
        if not callable(make) or isinstance(make, type):
            raise ArgumentError(
                "`make` must be a function of values and times, as `lambda values, "
                f"times: GriddedField(values, axes, times)`, but is {make!r}."
            )
        if not isinstance(series, Series) or isinstance(series, type):
            raise ArgumentError(
                "`series` must have `times` and return snapshots when called with "
                f"their numbers, as `io.SnapshotSeries`, but is {kind_of(series)}"
            )
        size, margin = whole(size, "size"), whole(margin, "margin", 0)
        self.series, self.make, self.size, self.margin = series, make, size, margin
        self.times = np.asarray(series.times, float)
        check_positions(self.times, "series.times")
        if size < 2 + 2 * margin:
            raise ArgumentError(
                f"`size` must be at least {2 + 2 * margin} with `margin={margin}`, but "
                f"is {size}."
            )
        if self.times.size < size:
            raise ArgumentError(
                f"`size` must be at most the number of snapshots, {self.times.size}, "
                f"but is {size}."
            )
        self._reader = ThreadPoolExecutor(1, "snapshots")
        self._ahead: dict[int, Future] = {}
        self._here: tuple[int, AbstractField] | None = None
        self._latest: dict[int, np.ndarray] = {}
        self._shape: tuple[int, ...] | None = None
        self.reads = 0

    def identity(self) -> dict[str, Any]:
        """Returns what distinguishes the series from others, without reading it."""
        paths = self.series.paths if isinstance(self.series, Files) else ()
        files = [os.stat(path) for path in jax.tree.leaves(paths)]
        return {
            "times": self.times,
            "size": (self.size, self.margin),
            "files": [(file.st_size, file.st_mtime_ns) for file in files],
        }

    def field(self, start: int) -> AbstractField:
        """Returns the field of one window.

        Args:
            start: Number of its first snapshot.
        """
        if self._here is None or self._here[0] != start:
            self.prefetch(start)
            self._here = start, self._ahead.pop(start).result()
        return self._here[1]

    def prefetch(self, start: int) -> None:
        """Begins to read a window that will be wanted.

        Args:
            start: Number of its first snapshot.
        """
        # One window ahead and no more: memory is why we are here.
        if start not in self._ahead:
            self._ahead = {start: self._reader.submit(self._read, start)}

    def _read(self, start: int) -> AbstractField:
        stacked = jax.device_put(self._stack(start))
        # Of the times, which may need more digits than the values.
        dtype = jnp.result_type(float)
        times = self.times[start : start + self.size]
        # Graded even where it is uniform, so that all windows share one program.
        axis = Axis(
            low=jnp.asarray(times[0], dtype),
            high=jnp.asarray(times[-1], dtype),
            spacing=jnp.asarray(1, dtype),
            nodes=jnp.asarray(times, dtype),
            table=None,
            period=None,
            count=self.size,
        )
        field = self.make(stacked, axis)
        if not isinstance(field, AbstractField):
            raise ArgumentError(
                "`make` must return a field, as `GriddedField(values, axes, times)`, "
                f"but returns {field!r}.{forgotten(field)}"
            )
        if self.size < self.times.size:
            self._check_margin(field, axis)
        return field

    def _check_margin(self, field: AbstractField, axis: Axis) -> None:
        """Raises if interpolation in time reaches beyond the window."""
        known = lambda x: isinstance(x, Instants)  # noqa: E731
        for part in filter(known, jax.tree.leaves(field, is_leaf=known)):
            same = part.axis is not None and np.array_equal(
                part.axis.positions(), axis.positions()
            )
            margin = (part.method.nodes - 1) // 2
            if same and margin > self.margin:
                raise ArgumentError(
                    f"`margin` must be {margin} for a field with `time_method="
                    f"{type(part.method).__name__}()`, but is {self.margin}: between "
                    "windows it would be another interpolation. Make `Windows(..., "
                    f"margin={margin})`, with a `size` of at least {2 + 2 * margin}."
                )

    def _stack(self, start: int) -> Num[np.ndarray, "size ..."]:
        """Reads the snapshots of a window that the last one has not."""
        numbers = range(start, start + self.size)
        known = {n: self._latest[n] for n in numbers if n in self._latest}
        self._latest = {}

        def snapshot(number):
            if number in known:
                return known.pop(number)
            self.reads += 1
            try:
                values = np.asarray(unmasked(self.series(number)))
            except IndexError as error:
                raise ArgumentError(
                    "`series` must have a snapshot for each of its `times`, "
                    f"{self.times.size}, but number {number} raises: {error}. Give it "
                    "the times of the snapshots that there are."
                ) from error
            shape = self._shape = self._shape or values.shape
            if values.shape != shape:
                raise ArgumentError(
                    "`series` must return snapshots of one shape, but number "
                    f"{number} has the shape {values.shape}, and those before it "
                    f"{shape}. Read them onto the same nodes."
                )
            return values

        first = snapshot(start)
        values = _aligned((self.size, *first.shape), first.dtype)
        values[0] = first
        del first
        for place, number in enumerate(numbers[1:], start=1):
            later = snapshot(number)
            if not np.can_cast(later.dtype, values.dtype, "same_kind"):
                raise ArgumentError(
                    "`series` must return snapshots of one kind of numbers, but number "
                    f"{number} has {later.dtype}, and number {start} {values.dtype}. "
                    "Return floats each time."
                )
            values[place] = later
        self._latest = dict(zip(numbers, values, strict=True))
        return values

    def spans(self, starts: np.ndarray, ends: np.ndarray) -> list[Span]:
        """Divides steps among windows.

        Args:
            starts: The times at which steps begin.
            ends: The times at which they end.

        Returns:
            The spans, in the order of the steps.

        Raises:
            ArgumentError: If a step is longer than a window.
        """
        low, high = np.minimum(starts, ends), np.maximum(starts, ends)
        slack = 1e-6 * float(np.min(np.diff(self.times)))
        forward = bool(ends[0] >= starts[0])
        inner = self.size - 1 - 2 * self.margin
        spans, n = [], 0
        while n < starts.size:
            if forward:
                at = np.searchsorted(self.times, low[n] + slack, side="right") - 1
            else:
                at = np.searchsorted(self.times, high[n] - slack, side="left") - inner
            start = int(np.clip(at - self.margin, 0, self.times.size - self.size))
            left, right = start, start + self.size - 1
            if self.margin:
                left += self.margin if left else 0
                right -= self.margin if right < self.times.size - 1 else 0
            fits = (low >= self.times[left] - slack) & (
                high <= self.times[right] + slack
            )
            run = n
            while run < starts.size and fits[run]:
                run += 1
            if run == n:
                raise ArgumentError(
                    "`size` must be larger, or `dt` shorter: the step from "
                    f"{starts[n]:g} to {ends[n]:g} s does not fit into {self.size} "
                    "snapshots."
                )
            spans.append(Span(n, run, start))
            n = run
        return spans


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns an empty array that JAX takes over without a copy."""
    kind = jax.dtypes.canonicalize_dtype(dtype.newbyteorder("="))
    size = math.prod(shape) * kind.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    return memory[begin : begin + size].view(kind).reshape(shape)
