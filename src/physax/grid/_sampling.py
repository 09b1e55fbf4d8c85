"""Values of a field at arbitrary points."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import product
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Num

from .._checks import ArgumentError, as_array, numeric
from .._gather import gather
from ._field import Field
from ._grid import Grid


class AbstractInterpolation(eqx.Module):
    """How the samples along one axis make a function between them.

    Attributes:
        nodes: How many samples around a point take part, even or 1.
    """

    nodes: eqx.AbstractClassVar[int]

    @abstractmethod
    def weights(self, x: Any, knots: Sequence[Any]) -> list[Float[Array, ""]]:
        """Returns the weight of each sample.

        Args:
            x: Where the function is evaluated.
            knots: Where the samples lie, increasing; fewer than `nodes` on an axis that
                is too short.
        """


class Nearest(AbstractInterpolation):
    """Takes the nearest sample: order 1, and no gradient with respect to the point."""

    nodes: ClassVar[int] = 1

    def weights(self, x, knots):
        return _lagrange_weights(x, knots)


class Linear(AbstractInterpolation):
    """Multilinear interpolation: order 2, continuous, never beyond the samples."""

    nodes: ClassVar[int] = 2

    def weights(self, x, knots):
        return _lagrange_weights(x, knots)


class Cubic(AbstractInterpolation):
    """Lagrange interpolation by cubics: order 4, also on graded grids.

    Continuous; its slope is of order 3 and jumps at the samples by an error of that
    order. Next to a face that is not periodic the four outermost samples are used.
    """

    nodes: ClassVar[int] = 4

    def weights(self, x, knots):
        return _lagrange_weights(x, knots)


class CubicHermite(AbstractInterpolation):
    r"""Cubics with a continuous slope: order 3, also on graded grids.

    At each inner sample the slope is that of the parabola through it and its two
    neighbours, on a uniform grid the Catmull-Rom spline. The slope of the function is
    of order 2 and has no jumps, which solvers of high order need. Between the two
    outermost samples of an axis that is not periodic it is the parabola through three.

    Reference: Catmull and Rom, *A class of local interpolating splines*, in Computer
    Aided Geometric Design (1974).
    """

    nodes: ClassVar[int] = 4

    def weights(self, x, knots):
        return _hermite_weights(x, knots)


class AbstractOutside(eqx.Module):
    """What the field is outside the grid."""

    @abstractmethod
    def move(
        self,
        x: Float[Array, ""],
        low: Float[Array, ""],
        high: Float[Array, ""],
        inside: Bool[Array, ""],
    ) -> Float[Array, ""]:
        """Returns the coordinate inside the grid where the field is evaluated.

        Args:
            x: Coordinate of the point along one axis, in metres.
            low: Low end of the grid along this axis, in metres.
            high: High end of the grid along this axis, in metres.
            inside: Whether the point lies between the ends.
        """

    @abstractmethod
    def finish(
        self, values: Num[Array, "..."], inside: Bool[Array, ""]
    ) -> Num[Array, "..."]:
        """Returns the field, given the values there and if the point was inside."""


class Fill(AbstractOutside):
    """A constant outside the grid, NaN if none is given.

    Attributes:
        value: The constant, in the unit of the field.
    """

    value: Num[Array, ""] = eqx.field(converter=numeric("value"), default=jnp.nan)

    def move(self, x, low, high, inside):
        # Far outside, an unused polynomial would still overflow into the gradient.
        del high
        return jnp.where(inside, x, low)

    def finish(self, values, inside):
        return jnp.where(inside, values, self.value.astype(values.dtype))


class Clamp(AbstractOutside):
    """The value at the nearest point of the grid's surface."""

    def move(self, x, low, high, inside):
        del inside
        return jnp.clip(x, low, high)

    def finish(self, values, inside):
        del inside
        return values


_LINEAR = Linear()


def sample(
    field: Field,
    points: Float[ArrayLike, "*points ndim"],
    method: AbstractInterpolation = _LINEAR,
    *,
    outside: AbstractOutside | None = None,
    periodic: Collection[str] = (),
) -> Num[Array, "..."]:
    r"""Evaluates a field at points, between its samples by a product of polynomials.

    Along each axis the polynomial through the nearest 1, 2 or 4 samples is evaluated,
    whatever the stagger of the field and the grading of the grid. A point is inside
    from the low corner of the grid to the high one; between the outermost sample and
    the face the outermost polynomial goes on, which keeps the order.
    Differentiable in the values and in the points.

    Args:
        field: The field.
        points: Coordinates along each axis of the grid, in metres.
        method: `Nearest()`, `Linear()`, `Cubic()` or `CubicHermite()`.
        outside: `Fill(value)` or `Clamp()`; without it NaN. A coordinate that is NaN is
            outside.
        periodic: Names of the axes along which the field repeats; no point is outside
            there.

    Returns:
        The values, in the unit of the field. The axes of the grid are replaced by those
        of `points`, behind the leading axes of the field.

    Raises:
        ArgumentError: If the points have not one coordinate for each axis, or a name in
            `periodic` is not an axis of the grid.
    """
    grid, points = field.grid, as_array(points, "points")
    if points.shape[-1:] != (grid.ndim,):
        raise ArgumentError(
            f"`points` must have {grid.ndim} coordinates along the last axis, one for "
            f"each axis of the grid, but have shape {points.shape}."
        )
    unknown = sorted(set(periodic) - set(grid.axes))
    if unknown:
        raise ArgumentError(
            f"`periodic` must name axes of the grid, {grid.axes}, but has {unknown}."
        )
    at = partial(
        _sample_point,
        field,
        method,
        Fill() if outside is None else outside,
        tuple(name in periodic for name in grid.axes),
    )
    values = jax.vmap(at, out_axes=-1)(points.reshape(-1, grid.ndim))
    return values.reshape(values.shape[:-1] + points.shape[:-1])


def _sample_point(
    field: Field,
    method: AbstractInterpolation,
    outside: AbstractOutside,
    periodic: tuple[bool, ...],
    point: Float[Array, " ndim"],
) -> Num[Array, "..."]:
    all_inside = jnp.asarray(True)
    stencils = []
    for axis, stagger in enumerate(field.stagger):
        x, inside = _enter(field.grid, axis, point[axis], outside, periodic[axis])
        stencils.append(_stencil(field.grid, axis, stagger, x, method, periodic[axis]))
        all_inside &= inside
    return outside.finish(_contract(field.values, stencils), all_inside)


def _enter(
    grid: Grid, axis: int, x: Array, outside: AbstractOutside, periodic: bool
) -> tuple[Float[Array, ""], Bool[Array, ""]]:
    """Brings a coordinate into the grid and tells whether it was there already."""
    low, size = grid.origin[axis], grid.size(axis)
    high = low + size
    if periodic:
        return x - size * jnp.floor((x - low) / size), jnp.asarray(True)
    # A point meant to lie on the face may miss it by the rounding of a few operations.
    slack = 4 * jnp.finfo(high.dtype).eps * jnp.maximum(jnp.abs(low), jnp.abs(high))
    inside = (x >= low - slack) & (x <= high + slack)
    return outside.move(x, low, high, inside), inside


def _stencil(
    grid: Grid,
    axis: int,
    stagger: float,
    x: Array,
    method: AbstractInterpolation,
    periodic: bool,
) -> tuple[Int[Array, " nodes"], list[Float[Array, ""]]]:
    """Finds the samples around a coordinate and their weights."""
    cells = grid.shape[axis]
    nodes = min(method.nodes, cells)
    locate = _locate_uniform if grid.is_uniform(axis) else _locate_graded
    below, position, gap, x = locate(grid, axis, stagger, x)
    if nodes == 1:
        first = below + (x - position(below) > gap(below) / 2)
    else:
        first = below - (nodes - 2) // 2
    if not periodic:
        first = jnp.clip(first, 0, cells - nodes)
    knots = [jnp.zeros_like(x)]
    for node in range(nodes - 1):
        knots.append(knots[-1] + gap(first + node))
    weights = method.weights(x - position(first), knots)
    return (first + jnp.arange(nodes)) % cells, weights


_Located = tuple[
    Array, Callable[[Array], Array], Callable[[Array], Array], Float[Array, ""]
]


def _locate_uniform(grid: Grid, axis: int, stagger: float, x: Array) -> _Located:
    """Finds the sample below a coordinate; lengths are in units of the cell."""
    x = (x - grid.origin[axis]) / grid.widths[axis] - stagger
    below = jnp.floor(x).astype(int)
    return below, lambda i: i.astype(x.dtype), lambda i: jnp.ones_like(x), x


def _locate_graded(grid: Grid, axis: int, stagger: float, x: Array) -> _Located:
    """Finds the sample below a coordinate; lengths are in metres."""
    cells, size = grid.shape[axis], grid.size(axis)
    samples = grid.coordinates(axis, stagger)
    # Distances come from the widths: differences of positions are mostly rounding. The
    # last sample is followed by the first of the next period.
    gaps = grid.cell_widths(axis)
    if stagger:
        gaps = (gaps + jnp.roll(gaps, -1)) / 2
    below = jnp.searchsorted(samples, x, side="right") - 1
    return (
        below,
        lambda i: samples[i % cells] + size * (i // cells),
        lambda i: gaps[i % cells],
        x,
    )


def _lagrange_weights(x: Any, knots: Sequence[Any]) -> list[Float[Array, ""]]:
    """Weights of the polynomial through samples at the knots, evaluated at `x`."""
    weights = []
    for i, knot in enumerate(knots):
        weight = jnp.ones_like(x)
        for j, other in enumerate(knots):
            if i != j:
                weight = weight * (x - other) / (knot - other)
        weights.append(weight)
    return weights


def _hermite_weights(x: Any, knots: Sequence[Any]) -> list[Float[Array, ""]]:
    """Weights of the cubic whose slopes are those of parabolas through neighbours.

    It blends the parabola around the lower sample into that around the upper one, and
    outside the inner interval it is the parabola that lies there.
    """
    if len(knots) < 4:
        return _lagrange_weights(x, knots)
    low = [*_lagrange_weights(x, knots[:3]), 0.0]
    high = [0.0, *_lagrange_weights(x, knots[1:])]
    blend = jnp.clip((x - knots[1]) / (knots[2] - knots[1]), 0, 1)
    return [a + blend * (b - a) for a, b in zip(low, high, strict=True)]


def _contract(
    values: Num[Array, "..."],
    stencils: list[tuple[Int[Array, " _"], list[Float[Array, ""]]]],
) -> Num[Array, "..."]:
    """Sums the samples of a block times the product of their weights."""
    total = jnp.zeros((), values.dtype)
    # A gather for each sample: one gather of the whole block took 5 to 17 times longer
    # on CPUs, for 8 samples as for 64.
    for corner in product(*(range(len(weights)) for _, weights in stencils)):
        at = [stencil[0][node] for stencil, node in zip(stencils, corner, strict=True)]
        sample_value = gather(values, ..., *at)
        for (_, weights), node in zip(stencils, corner, strict=True):
            sample_value = weights[node] * sample_value
        total = total + sample_value
    return total
