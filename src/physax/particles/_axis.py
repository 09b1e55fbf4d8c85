"""Where the samples of a field lie along one axis, and what they are between them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from .._checks import ArgumentError, as_array, at_once, refuse_traced
from .._known_number import known_number
from ..grid import AbstractInterpolation
from ._numbers import host_numbers
from ._state import bounded


# Bins of the table that finds samples of a graded axis, at most.
_TABLE = 2**22

_OUTSIDE = "Make the field outside and pass it in."


class PeriodError(ArgumentError):
    """Samples do not fit into the period after which they repeat, or have no places.

    Attributes:
        name: What the caller calls the places of the samples.
        span: From the first to the last one; `None` without places.
    """

    def __init__(self, message: str, name: str, span: float | None):
        super().__init__(message)
        self.name, self.span = name, span


class Stencil(NamedTuple):
    """The samples around a coordinate.

    Attributes:
        indices: Their numbers.
        weights: Their weights, which add up to 1.
        inside: Whether the coordinate lies between the ends.
    """

    indices: list[Int[Array, ""]]
    weights: list[Float[Array, ""]]
    inside: Bool[Array, ""]


class Axis(eqx.Module):
    """Positions of samples along one axis, uniform or graded; made by `make_axis`.

    Attributes:
        low: Position of the first sample.
        high: Position of the last sample.
        spacing: Distance of neighbours; of a graded axis the width of a table's bin.
        nodes: Positions of the samples of a graded axis, else `None`.
        table: For each bin of a graded axis the last sample at or before its low end;
            `None` for so few samples that all may be asked.
        period: Length after which the samples repeat, `None` for an axis with ends.
        count: Number of samples.
    """

    low: Float[Array, ""]
    high: Float[Array, ""]
    spacing: Float[Array, ""]
    nodes: Float[Array, " count"] | None
    table: Int[Array, " bins"] | None
    period: Float[Array, ""] | None
    count: int = eqx.field(static=True)

    def positions(self) -> Float[Array, " count"]:
        """Returns the positions of all samples."""
        if self.nodes is not None:
            return self.nodes
        return self.low + self.spacing * jnp.arange(self.count, dtype=self.low.dtype)

    def inside(self, x: Float[Array, ""]) -> Bool[Array, ""]:
        """Whether a coordinate lies between the ends, to rounding."""
        if self.period is not None:
            return jnp.isfinite(x)
        # A point meant to lie on the end may miss it by the rounding of a few steps.
        eps = 4 * jnp.finfo(self.low.dtype).eps
        slack = eps * jnp.maximum(jnp.abs(self.low), jnp.abs(self.high))
        return (x >= self.low - slack) & (x <= self.high + slack)

    def stencil(self, x: Float[Array, ""], method: AbstractInterpolation) -> Stencil:
        """Finds the samples around a coordinate and their weights.

        Outside the ends the value is that at the end; `inside` tells.

        Args:
            x: The coordinate.
            method: How to interpolate.
        """
        inside = self.inside(x)
        if self.period is not None:
            offset = x - self.low
            x = self.low + offset - self.period * jnp.floor(offset / self.period)
        else:
            x = bounded(x, self.low, self.high)
        if self.nodes is None:
            return self._uniform((x - self.low) / self.spacing, method, inside)
        return self._graded(x, method, inside)

    def _first(self, below, upper_half, method: AbstractInterpolation):
        """The lowest sample of the stencil around the cell above sample `below`."""
        nodes = min(method.nodes, self.count)
        first = below + upper_half if nodes == 1 else below - (nodes - 2) // 2
        return first if self.period is not None else _clip(first, self.count - nodes)

    def _numbers(self, first, nodes: int) -> list:
        if self.period is None:
            return [first + k if k else first for k in range(nodes)]
        return [(first + k) % self.count for k in range(nodes)]

    def _uniform(self, q, method, inside) -> Stencil:
        below = jnp.floor(jax.lax.stop_gradient(q)).astype(jnp.int32)
        first = self._first(below, (q - below > 0.5).astype(jnp.int32), method)
        nodes = min(method.nodes, self.count)
        weights = method.weights(q - first, [float(k) for k in range(nodes)])
        return Stencil(self._numbers(first, nodes), weights, inside)

    def _graded(self, x, method, inside) -> Stencil:
        at = jax.lax.stop_gradient(x)
        below = self._below(at)
        if self.period is None:
            below = _clip(below, max(self.count - 2, 0))
        gap = self._position(below + 1) - self._position(below)
        upper = (at - self._position(below) > gap / 2).astype(jnp.int32)
        first = self._first(below, upper, method)
        nodes = min(method.nodes, self.count)
        # Differences from the first sample: positions far from 0 are rounded.
        start = self._position(first)
        knots = [self._position(first + k) - start for k in range(nodes)]
        weights = method.weights(x - start, knots)
        return Stencil(self._numbers(first, nodes), weights, inside)

    def _below(self, at: Float[Array, ""]) -> Int[Array, ""]:
        """Returns the last sample at or before a coordinate."""
        assert self.nodes is not None
        if self.table is None:
            return jnp.sum(at >= self.nodes, dtype=jnp.int32) - 1
        bins = jnp.floor((at - self.low) / self.spacing).astype(jnp.int32)
        below = self.table[_clip(bins, self.table.size - 1)]
        # No bin is wider than the narrowest gap, so the table is one too low at most;
        # rounding may put the coordinate into the bin beside it.
        for _ in range(2):
            above = self._position(below + 1)
            below = below + (at >= above).astype(jnp.int32)
        return below - (at < self._position(below)).astype(jnp.int32)

    def _position(self, i: Int[Array, ""]) -> Float[Array, ""]:
        """Position of a sample, of any period."""
        assert self.nodes is not None
        if self.period is None:
            return self.nodes[_clip(i, self.count - 1)]
        return self.nodes[i % self.count] + self.period * (i // self.count)


def _clip(i, last: int):
    return jnp.clip(i, 0, last)


def as_periods(periods: Any, count: int) -> tuple[Any, ...]:
    """Returns for each axis the length after which it repeats, or `None`.

    Args:
        periods: The lengths, `None` if no axis repeats.
        count: Number of axes.

    Raises:
        ArgumentError: If there is not one entry for each axis.
    """
    if periods is None:
        return (None,) * count
    if not np.iterable(periods) or isinstance(periods, str):
        raise ArgumentError(
            f"`periods` must be a list with an entry for each of {count} axes, a "
            f"length or None, but is {periods!r}."
        )
    sizes = tuple(
        size if size is None else known_number(size, "periods", _OUTSIDE)
        for size in periods
    )
    if len(sizes) != count:
        raise ArgumentError(
            f"`periods` must have one entry for each of {count} axes, but has "
            f"{len(sizes)}."
        )
    return sizes


def make_axis(
    positions: ArrayLike | Sequence | Axis,
    name: str,
    *,
    period: Float[ArrayLike, ""] | None = None,
) -> Axis:
    """Makes an axis of the positions of its samples.

    Args:
        positions: An axis, which is returned, or increasing numbers; NumPy float64
            keeps the spacing exact. They must be known values: how samples are found is
            prepared on the host.
        name: What to call it in messages.
        period: Length after which the samples repeat.

    Returns:
        The axis, uniform if the positions are to rounding.

    Raises:
        PeriodError: If the positions do not fit into the period.
        ArgumentError: If they do not increase, or are not finite.
    """
    if isinstance(positions, Axis):
        return positions
    refuse_traced(positions, name, _OUTSIDE)
    host = host_numbers(positions, name)
    dtype = as_array(positions, name).dtype
    check_positions(host, name)
    size = None if period is None else known_number(period, "period", _OUTSIDE)
    if size is not None and not size > host[-1] - host[0]:
        span = float(host[-1] - host[0])
        raise PeriodError(
            f"The period of `{name}` must be longer than its samples, which span "
            f"{span:g}, but is {size:g}. Leave out the last sample if it repeats the "
            "first.",
            name,
            span,
        )
    gaps = np.diff(host)
    if size is not None:
        gaps = np.append(gaps, host[0] + size - host[-1])
    narrow = float(gaps.min()) if gaps.size else 1.0
    mean = float(gaps.mean()) if gaps.size else 1.0
    tolerance = 4 * np.finfo(dtype).eps * max(np.abs(host).max(), mean)
    numbers = np.arange(host.size)
    uniform = np.abs(host - (host[0] + mean * numbers)).max() <= tolerance
    if size is not None:
        uniform &= abs(gaps[-1] - mean) <= tolerance
    nodes, table, spacing = None, None, mean
    if not uniform:
        span = host[-1] - host[0] if size is None else size
        bins = int(np.ceil(span / narrow)) + 1
        if bins > _TABLE:
            raise ArgumentError(
                f"The narrowest spacing of `{name}` must be at least 1 / {_TABLE} of "
                f"its extent, {span:g}, but is {narrow:g}."
            )
        spacing = span / bins
        lows = host[0] + spacing * np.arange(bins)
        table = np.searchsorted(host, lows, side="right") - 1
        nodes = host
    with at_once(()):
        return Axis(
            low=jnp.asarray(host[0], dtype),
            high=jnp.asarray(host[-1], dtype),
            spacing=jnp.asarray(spacing, dtype),
            nodes=None if nodes is None else jnp.asarray(nodes, dtype),
            table=None if table is None else jnp.asarray(table, jnp.int32),
            period=None if size is None else jnp.asarray(size, dtype),
            count=host.size,
        )


def check_positions(host: np.ndarray, name: str) -> None:
    """Raises unless positions are finite and increase.

    Args:
        host: The positions.
        name: What the caller calls them.

    Raises:
        ArgumentError: If they are anything else.
    """
    if host.ndim != 1 or not host.size:
        raise ArgumentError(
            f"`{name}` must be a one-dimensional array of at least one position, but "
            f"has shape {host.shape}."
        )
    if not np.all(np.isfinite(host)):
        first = int(np.flatnonzero(~np.isfinite(host))[0])
        raise ArgumentError(
            f"`{name}` must be finite, but entry {first} is {host[first]:g}."
        )
    wrong = np.flatnonzero(np.diff(host) <= 0)
    if wrong.size:
        at = int(wrong[0])
        falls = (
            " Flip it, and the values along it." if np.all(np.diff(host) < 0) else ""
        )
        raise ArgumentError(
            f"`{name}` must increase, but entries {at} and {at + 1} are {host[at]:g} "
            f"and {host[at + 1]:g}.{falls}"
        )
