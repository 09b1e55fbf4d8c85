"""Which steps lead from one recorded time to the next."""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, DTypeLike, Float, Int, Num

from .._checks import ArgumentError, as_array, check, traced, whole
from .._known_number import known_number
from ._numbers import check_numbers


class Schedule(eqx.Module):
    """The recorded times and the steps between them.

    Attributes:
        times: The recorded times, in seconds.
        starts: The times from which equal steps are counted.
        widths: The length of those steps; negative where time runs backward.
        stride: Steps that share an entry of `starts`.
        every: Steps between two records of the loop; `rows` says which are wanted.
        rows: Which records of the loop are wanted, `None` for all.
    """

    times: Float[Array, " times"]
    starts: Float[Array, " spans"]
    widths: Float[Array, " spans"]
    stride: int = eqx.field(static=True)
    every: int = eqx.field(static=True)
    rows: tuple[int, ...] | None = eqx.field(static=True, default=None)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self.stride * self.starts.size

    def slack(self, dtype: DTypeLike) -> Float[Array, ""]:
        """Returns how far times of a dtype may be off by rounding, in seconds."""
        return 4 * jnp.finfo(dtype).eps * jnp.max(jnp.abs(self.times))

    def step(self, n: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Returns the time at which step `n` begins, and its length.

        Args:
            n: Number of the step.
        """
        # A product is rounded once, a running sum at every step.
        span, k = n // self.stride, n % self.stride
        width = self.widths[span]
        return self.starts[span] + k.astype(width.dtype) * width, width

    def end(self, n: Int[Array, ""]) -> Float[Array, ""]:
        """Returns the time at which step `n` ends, and the next begins.

        Args:
            n: Number of the step.
        """
        # What is added up may be rounded beyond a recorded time.
        after, _ = self.step(n + 1)
        return jnp.where(n + 1 < self.steps, after, self.times[-1])


def plan_steps(
    times: ArrayLike | Sequence,
    dt: Num[ArrayLike, ""] | None,
    steps: Any,
) -> Schedule:
    """Plans the steps of a run.

    Args:
        times: The recorded times, increasing or decreasing; the first is the start.
        dt: Length of a step, in seconds, positive.
        steps: Number of steps in all.

    Returns:
        The plan. Without `dt` and `steps` there is one step between recorded times.

    Raises:
        ArgumentError: If the three contradict each other, or times do not increase or
            decrease strictly. Where that turns out under `jit`, all are NaN.
    """
    steps = None if steps is None else whole(steps, "steps")
    check_numbers(times, "times")
    if dt is not None:
        check_numbers(dt, "dt")
        if np.shape(dt):
            raise ArgumentError(
                f"`dt` must be one number, but has shape {np.shape(dt)}."
            )
        dt = dt if traced(dt) else known_number(dt, "dt")
    known = not traced((times, dt))
    array = as_array(times, "times")
    if array.ndim != 1 or array.size < 2:
        raise ArgumentError(
            "`times` must be a one-dimensional array of a start and at least one more "
            f"time, but has shape {array.shape}."
        )
    spans = array.size - 1
    if known:
        host = np.asarray(times, float)
        _check_times(host)
        if dt is not None:
            _check_resolved(array, host, float(np.asarray(dt)))
            return _by_length(array, host, float(np.asarray(dt)), steps)
    elif dt is not None:
        raise ArgumentError(
            "`dt` must be known, and `times` with it, but is traced: the number of "
            "steps follows from it. Give `steps` instead."
        )
    stride = _steps_per_span(steps, spans)
    if not known:
        ahead = jnp.diff(array) * jnp.sign(array[-1] - array[0])
        array = check(array, jnp.all(ahead > 0), "`times` must increase, or decrease")
        widths = jnp.diff(array) / stride
    else:
        # Differences before rounding: neighbours may be close, far from time 0.
        gaps = np.diff(host)
        widths = jnp.asarray(gaps / stride, array.dtype)
        _check_resolved(array, host, float(np.abs(gaps).min()) / stride)
        uneven = np.ptp(gaps) > 1e-5 * np.abs(gaps[0]) + _rounding(array, host)
        if steps is not None and uneven:
            raise ArgumentError(
                f"`times` must be evenly spaced with `steps`, here {steps} in all, but "
                f"are {gaps.min():g} to {gaps.max():g} s apart. Give `dt` instead."
            )
    return Schedule(array, array[:-1], widths, stride, stride)


def _rounding(array: Array, host: np.ndarray) -> float:
    """Returns by how much differences of the times may be wrong."""
    return float(4 * jnp.finfo(array.dtype).eps * np.abs(host).max())


def _check_resolved(array: Array, host: np.ndarray, width: float) -> None:
    """Raises if steps are lost in the rounding of the times."""
    least = 8 * float(jnp.finfo(array.dtype).eps) * float(np.abs(host).max())
    if 0 < width < least:
        raise ArgumentError(
            f"`times` of {np.abs(host).max():g} s in {array.dtype} must have steps of "
            f"at least {least:.2g} s to tell them apart, but have {width:.2g} s. "
            "Measure times from a nearer origin, or switch on float64."
        )


def _check_times(host: np.ndarray) -> None:
    if not np.all(np.isfinite(host)):
        first = int(np.flatnonzero(~np.isfinite(host))[0])
        raise ArgumentError(
            f"`times` must be finite, but entry {first} is {host[first]:g}."
        )
    gaps = np.diff(host)
    wrong = np.flatnonzero(gaps * np.sign(gaps[0]) <= 0)
    if wrong.size:
        at = int(wrong[0])
        raise ArgumentError(
            "`times` must increase, or decrease to go backward, but entries "
            f"{at} and {at + 1} are {host[at]:g} and {host[at + 1]:g} s."
        )


def _steps_per_span(steps: int | None, spans: int) -> int:
    if steps is None:
        return 1
    if steps % spans:
        raise ArgumentError(
            f"`steps` must be a multiple of the {spans} intervals between `times`, so "
            f"that steps end on them, but is {steps}."
        )
    return steps // spans


def _by_length(
    array: Array, host: np.ndarray, dt: float, steps: int | None
) -> Schedule:
    if not (dt > 0 and math.isfinite(dt)):
        raise ArgumentError(
            f"`dt` must be positive, also where `times` decrease, but is {dt:g} s."
        )
    counts = np.abs(np.diff(host)) / dt
    counted = np.rint(counts).astype(int)
    # Users write 0.1 for a tenth, and times may have been rounded to float32.
    rounding = _rounding(array, host) / dt
    bad = np.flatnonzero(
        np.abs(counts - counted) > 1e-5 * np.maximum(1, counted) + rounding
    )
    total = int(counted.sum())
    if steps is not None and steps != total:
        raise ArgumentError(
            f"`dt`, `steps` and `times` must agree, but {steps} steps of {dt:g} s are "
            f"{steps * dt:g} s and `times` span {abs(host[-1] - host[0]):g} s. Leave "
            "out `dt` or `steps`."
        )
    if bad.size or not counted.all():
        at = int(bad[0]) if bad.size else int(np.flatnonzero(counted == 0)[0])
        gap = abs(host[at + 1] - host[at])
        raise ArgumentError(
            "`dt` must divide the intervals between `times`, but that from "
            f"{host[at]:g} to {host[at + 1]:g} s is {counts[at]:g} steps of {dt:g} s. "
            f"The nearest that does is {gap / max(counted[at], 1):g} s."
        )
    widths = np.diff(host) / counted
    if np.all(counted == counted[0]):
        stride = int(counted[0])
        return Schedule(
            array, array[:-1], jnp.asarray(widths, array.dtype), stride, stride
        )
    every = int(np.gcd.reduce(counted))
    parts = counted // every
    starts = np.concatenate(
        [
            low + width * every * np.arange(count)
            for low, width, count in zip(host[:-1], widths, parts, strict=True)
        ]
    )
    return Schedule(
        array,
        jnp.asarray(starts, array.dtype),
        jnp.asarray(np.repeat(widths, parts), array.dtype),
        every,
        every,
        tuple(int(row) - 1 for row in np.cumsum(parts)),
    )
