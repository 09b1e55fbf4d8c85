"""Shapes that are another one stretched, mirrored, turned or repeated."""

from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError
from ..grid import AXES
from ._combinations import AbstractShape, as_shape, left_free
from ._overlap import Intervals
from ._sections import Cells, Cut, place_of_cut, shape_of


def _shifted(cells: Cells, offset: Float[Array, ""]) -> Intervals | Cut:
    """Returns cells as a shape sees them that has moved by an offset."""
    if isinstance(cells, Intervals):
        return Intervals(cells.position - offset, cells.below, cells.above)
    return Cut(place_of_cut(cells) - offset)


def _flipped(cells: Cells, axis: int) -> Cells:
    if not isinstance(cells, Intervals):
        return cells
    return jax.tree.map(lambda x: jnp.flip(x, axis), cells)


def turning_plane(along: int) -> tuple[int, int]:
    """Returns the axes across another, the first of which turns to the second."""
    return (along + 1) % 3, (along + 2) % 3


def turned(
    points: Float[Array, "... 3"],
    angle: Float[Array, ""],
    axis: str,
    about: Float[Array, "3"],
) -> Float[Array, "... 3"]:
    """Turns points about an axis, counterclockwise as seen from above it."""
    j, k = turning_plane(AXES.index(axis))
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    u, v = points[..., j] - about[j], points[..., k] - about[k]
    moved = points.at[..., j].set(about[j] + cos * u - sin * v)
    return moved.at[..., k].set(about[k] + sin * u + cos * v)


class Scaled(AbstractShape):
    """A shape stretched from a point along the axes, and moved. Exact.

    Attributes:
        shape: The shape.
        factors: By what its lengths are multiplied along x, y and z, positive.
        centre: The point that stays, in metres.
    """

    shape: AbstractShape = eqx.field(converter=as_shape)
    factors: Float[Array, "3"]
    centre: Float[Array, "3"]

    def covered(self, cells):
        inner = []
        for k, axis in enumerate(cells):
            moved = jax.tree.map(
                lambda x, k=k: x / self.factors[k], _shifted(axis, self.centre[k])
            )
            inner.append(_shifted(moved, -self.centre[k]))
        return self.shape.covered(inner)

    def bounds(self):
        low, high = (
            self.centre + (end - self.centre) * self.factors
            for end in self.shape.bounds()
        )
        return low, high


class Mirrored(AbstractShape):
    """A shape mirrored in a plane across an axis. Exact.

    Attributes:
        shape: The shape.
        axis: The axis across the plane.
        at: Where the plane is, in metres.
    """

    shape: AbstractShape = eqx.field(converter=as_shape)
    axis: str = eqx.field(static=True)
    at: Float[Array, ""]

    def covered(self, cells):
        along = AXES.index(self.axis)
        inner: list[Cells] = list(cells)
        axis = inner[along]
        if not isinstance(axis, Intervals):
            inner[along] = Cut(2 * self.at - place_of_cut(axis))
            return self.shape.covered(inner)
        inner[along] = Intervals(2 * self.at - axis.position, axis.above, axis.below)
        # Polygons want the cells in rising order.
        rising = [_flipped(one, along) for one in inner]
        return jnp.flip(self.shape.covered(rising), along)

    def bounds(self):
        along = AXES.index(self.axis)
        low, high = self.shape.bounds()
        return (
            low.at[along].set(2 * self.at - high[along]),
            high.at[along].set(2 * self.at - low[along]),
        )


class Turned(AbstractShape):
    """A shape turned about an axis.

    Each cell is divided across the axis, and each part is taken as one of the same
    second moments with its sides along the axes of the shape. Of a face that is flat in
    a cell the normal is exact.

    Attributes:
        shape: The shape before it is turned.
        angle: The angle in radians, counterclockwise as seen from above the axis.
        axis: The axis.
        about: A point on the axis in metres.
        parts: Into how many parts a cell is divided along each axis across.
    """

    shape: AbstractShape = eqx.field(converter=as_shape)
    angle: Float[Array, ""]
    axis: str = eqx.field(static=True)
    about: Float[Array, "3"]
    parts: int = eqx.field(static=True)

    def covered(self, cells):
        along = AXES.index(self.axis)
        j, k = turning_plane(along)
        first, second = cells[j], cells[k]
        if not (isinstance(first, Intervals) and isinstance(second, Intervals)):
            remedy = (
                "Turn it about the axis that the grid lacks, or give its section as a "
                "`Polygon`."
                if first is None or second is None
                else "Of perfect metal only lines and faces are asked for: turn a "
                "`Polygon`."
            )
            raise ArgumentError(
                f"A shape turned about {self.axis} needs a grid with the axes "
                f"{AXES[min(j, k)]} and {AXES[max(j, k)]}, but the grid lacks one. "
                f"{remedy}"
            )
        cos, sin = jnp.cos(self.angle), jnp.sin(self.angle)
        u, v = (
            axis.position + (axis.above - axis.below) / 2 - self.about[n]
            for n, axis in ((j, first), (k, second))
        )
        du, dv = (axis.below + axis.above for axis in (first, second))
        half_u = jnp.hypot(cos * du, sin * dv) / (2 * self.parts)
        half_v = jnp.hypot(sin * du, cos * dv) / (2 * self.parts)

        @jax.checkpoint
        def part(offset):
            a, b = u + offset[0] * du, v + offset[1] * dv
            inner = list(cells)
            x, y = jnp.broadcast_arrays(cos * a + sin * b, cos * b - sin * a)
            inner[j] = Intervals(self.about[j] + x, half_u, half_u)
            inner[k] = Intervals(self.about[k] + y, half_v, half_v)
            return self.shape.covered(inner)

        middles = (np.arange(self.parts) + 0.5) / self.parts - 0.5
        offsets = jnp.asarray(list(product(middles, middles)), du.dtype)
        total, _ = jax.lax.scan(
            lambda total, offset: (total + part(offset), None),
            jnp.zeros(shape_of(cells), du.dtype),
            offsets,
        )
        return total / self.parts**2

    def bounds(self):
        j, k = turning_plane(AXES.index(self.axis))
        low, high = self.shape.bounds()
        corners = jnp.stack(
            [jnp.stack(c) for c in product(*zip(low, high, strict=True))]
        )
        corners = turned(corners, self.angle, self.axis, self.about)
        # The corners of what has no end across the axis are nowhere.
        across = jnp.array([j, k])
        finite = jnp.all(jnp.isfinite(corners[:, across]))
        return (
            low.at[across].set(jnp.where(finite, corners.min(0)[across], -jnp.inf)),
            high.at[across].set(jnp.where(finite, corners.max(0)[across], jnp.inf)),
        )


class Repeated(AbstractShape):
    """Copies of a shape, which share cells as the shapes of a `Union` do.

    Attributes:
        shape: The shape.
        offsets: How far each copy is from it in metres, along x, y and z.
    """

    shape: AbstractShape = eqx.field(converter=as_shape)
    offsets: Float[Array, "copies 3"]

    def covered(self, cells):
        def covered(offset):
            moved = [_shifted(axis, offset[k]) for k, axis in enumerate(cells)]
            return self.shape.covered(moved)

        return 1 - left_free(covered, self.offsets, cells)

    def bounds(self):
        low, high = self.shape.bounds()
        return (
            low + jnp.min(self.offsets, axis=0),
            high + jnp.max(self.offsets, axis=0),
        )
