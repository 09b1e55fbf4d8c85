"""Shapes: where a material is."""

import math
from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, check
from ..grid import AXES
from ._materials import Material
from ._overlap import Intervals, ball_fraction, interval_fraction, polygon_fraction


def _floats(x: ArrayLike | Sequence) -> Float[Array, "..."]:
    """Returns numbers, traced or not, as one array of definite floating dtype."""
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jnp.floating):
        return x
    return jnp.asarray(x, dtype=float)


def _point(x: ArrayLike | Sequence[ArrayLike], name: str, missing: float) -> Array:
    """Returns the three entries of a point; the last ones may be left out."""
    x = jnp.atleast_1d(_floats(x))
    if x.ndim != 1 or x.size > 3:
        raise ArgumentError(
            f"`{name}` must have 1 to 3 entries (x, y, z), but has shape {x.shape}."
        )
    return jnp.pad(x, (0, 3 - x.size), constant_values=missing)


def _centre(x: ArrayLike | Sequence[ArrayLike]) -> Float[Array, "3"]:
    x = _point(x, "centre", 0.0)
    return check(x, jnp.isfinite(x), "`centre` must be finite")


def _radius(x: ArrayLike | Sequence[ArrayLike]) -> Float[Array, ""]:
    x = _floats(x)
    if x.ndim:
        raise ArgumentError(f"`radius` must be one number, but has shape {x.shape}.")
    return check(x, (x > 0) & jnp.isfinite(x), "`radius` must be positive and finite")


def _length(x: ArrayLike) -> Float[Array, ""]:
    x = _floats(x)
    return check(x, x > 0, "`length` must be positive")


def _vertices(x: ArrayLike | Sequence) -> Float[Array, "vertices 2"]:
    x = _floats(x)
    if x.ndim != 2 or x.shape[1] != 2 or x.shape[0] < 3:
        raise ArgumentError(
            "`vertices` must have shape (n, 2) with n at least 3, but has shape "
            f"{x.shape}."
        )
    return check(x, jnp.isfinite(x), "`vertices` must be finite")


def _check_axis(axis: str):
    if axis not in AXES:
        raise ArgumentError(f"`axis` must be one of {AXES}, but is {axis!r}.")


class AbstractShape(eqx.Module):
    """A region of space, differentiable in its position and size.

    Lengths are in metres. A grid with fewer than three axes is a cut through the shape
    at coordinate 0 of the axes that it lacks.
    """

    @abstractmethod
    def covered(self, cells: Sequence[Intervals | None]) -> Float[Array, "..."]:
        """Returns the fraction of each cell that the shape covers, between 0 and 1.

        Args:
            cells: The cells along x, y and z in arrays that broadcast against each
                other, or None for an axis that the grid lacks.

        Returns:
            An array that broadcasts against those of `cells`.
        """


def _between(
    cells: Intervals | None, low: Float[Array, ""], high: Float[Array, ""]
) -> Float[Array, "..."]:
    """Fraction between two bounds; without an axis, whether 0 is between them."""
    if cells is not None:
        return interval_fraction(cells, low, high)
    return jnp.where((low <= 0) & (high >= 0), 1.0, 0.0).astype(low.dtype)


def _in_ball(
    cells: Sequence[Intervals | None],
    centre: Sequence[Float[Array, ""]],
    radius: Float[Array, ""],
) -> Float[Array, "..."]:
    """Fraction inside a ball, cut at 0 along the axes that are None."""
    squared = radius**2
    for axis, position in zip(cells, centre, strict=True):
        squared = squared if axis is not None else squared - position**2
    present = [
        (axis, position)
        for axis, position in zip(cells, centre, strict=True)
        if axis is not None
    ]
    return ball_fraction(
        [axis for axis, _ in present], [position for _, position in present], squared
    )


class Box(AbstractShape):
    """A block with its faces normal to the axes.

    Attributes:
        low: Lower corner (x, y, z) in metres; -inf along an axis without end.
        high: Upper corner in metres; inf along an axis without end.

    Raises:
        ArgumentError: If `centre` is not finite or `size` not positive.
    """

    low: Float[Array, "3"]
    high: Float[Array, "3"]

    def __init__(
        self,
        centre: ArrayLike | Sequence[ArrayLike],
        size: ArrayLike | Sequence[ArrayLike],
    ):
        """Makes a box from its middle.

        Args:
            centre: Middle (x, y, z) in metres; entries left out at the end are 0.
            size: Length along each axis in metres, or inf; entries left out at the end
                are inf.
        """
        centre, size = _centre(centre), _point(size, "size", math.inf)
        size = check(size, size > 0, "`size` must be positive")
        self.low, self.high = centre - size / 2, centre + size / 2

    @classmethod
    def from_corners(
        cls,
        low: ArrayLike | Sequence[ArrayLike],
        high: ArrayLike | Sequence[ArrayLike],
    ) -> "Box":
        """Makes a box from two corners, for instance the half space of a substrate.

        Args:
            low: Lower corner (x, y, z) in metres or -inf, as are entries left out.
            high: Upper corner in metres or inf, as are entries left out.

        Returns:
            The box.

        Raises:
            ArgumentError: If `high` is not above `low`.
        """
        low = _point(low, "low", -math.inf)
        high = _point(high, "high", math.inf)
        high = check(high, high > low, "`high` must be above `low`")
        whole = cls(0.0, math.inf)
        return eqx.tree_at(lambda box: (box.low, box.high), whole, (low, high))

    def covered(self, cells):
        parts = [
            _between(axis, self.low[k], self.high[k]) for k, axis in enumerate(cells)
        ]
        return parts[0] * parts[1] * parts[2]


class Cylinder(AbstractShape):
    """A circular cylinder along an axis.

    Attributes:
        centre: Middle (x, y, z) in metres; entries left out at the end are 0.
        radius: Radius in metres.
        axis: "x", "y" or "z".
        length: Length along the axis in metres, or inf.

    Raises:
        ArgumentError: If `centre` or `radius` is not finite, `radius` or `length` is
            not positive, or `axis` is not an axis.
    """

    centre: Float[Array, "3"] = eqx.field(converter=_centre)
    radius: Float[Array, ""] = eqx.field(converter=_radius)
    axis: str = eqx.field(static=True, default="z")
    length: Float[Array, ""] = eqx.field(converter=_length, default=math.inf)

    def __check_init__(self):
        _check_axis(self.axis)

    def covered(self, cells):
        along = AXES.index(self.axis)
        across = [k for k in range(3) if k != along]
        middle = self.centre[along]
        return _between(
            cells[along], middle - self.length / 2, middle + self.length / 2
        ) * _in_ball(
            [cells[k] for k in across], [self.centre[k] for k in across], self.radius
        )


def Circle(
    centre: ArrayLike | Sequence[ArrayLike],
    radius: ArrayLike,
) -> Cylinder:
    """Makes a disc in the plane (x, y): a cylinder without end along z.

    Args:
        centre: Middle (x, y) in metres.
        radius: Radius in metres.

    Returns:
        The cylinder.

    Raises:
        ArgumentError: If `centre` is not finite or `radius` not positive and finite.
    """
    return Cylinder(centre, radius)  # pyright: ignore[reportArgumentType]


class Sphere(AbstractShape):
    """A ball.

    Attributes:
        centre: Middle (x, y, z) in metres; entries left out at the end are 0.
        radius: Radius in metres.

    Raises:
        ArgumentError: If `centre` is not finite or `radius` not positive and finite.
    """

    centre: Float[Array, "3"] = eqx.field(converter=_centre)
    radius: Float[Array, ""] = eqx.field(converter=_radius)

    def covered(self, cells):
        return _in_ball(cells, list(self.centre), self.radius)


class Polygon(AbstractShape):
    """A prism along an axis over a polygon that does not cross itself.

    Attributes:
        vertices: Corners in metres, in order, either way around, the first not
            repeated: (x, y) for axis "z", (x, z) for "y" and (y, z) for "x".
        axis: The axis of the prism, "x", "y" or "z".
        low: Lower end of the prism along the axis in metres, or -inf.
        high: Upper end in metres, or inf.
        outlines: Where `vertices` holds several outlines one after another, how many
            vertices belong to each; else left out. They must not overlap; those that
            run the other way around than the rest are holes.

    Raises:
        ArgumentError: If there are fewer than 3 vertices or one is not finite, `axis`
            is not an axis, `high` is not above `low`, or `outlines` does not add up.
    """

    vertices: Float[Array, "vertices 2"] = eqx.field(converter=_vertices)
    axis: str = eqx.field(static=True, default="z")
    low: Float[Array, ""] = eqx.field(converter=_floats, default=-math.inf)
    high: Float[Array, ""] = eqx.field(converter=_floats, default=math.inf)
    outlines: tuple[int, ...] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        _check_axis(self.axis)
        count = self.vertices.shape[0]
        if self.outlines is not None and (
            sum(self.outlines) != count or min(self.outlines) < 3
        ):
            raise ArgumentError(
                f"`outlines` must add up to the {count} vertices with at least 3 each, "
                f"but adds up to {sum(self.outlines)} with {min(self.outlines)} at "
                "least."
            )
        if isinstance(self.low, jax.core.Tracer) or isinstance(
            self.high, jax.core.Tracer
        ):
            return
        low, high = np.asarray(self.low), np.asarray(self.high)
        if not np.all(high > low):
            raise ArgumentError(
                f"`high` must be above `low` ({low:g}), but is {high:g}."
            )

    def covered(self, cells):
        along = AXES.index(self.axis)
        across = [k for k in range(3) if k != along]
        first, second = (cells[k] for k in across)
        if first is None or second is None:
            raise ArgumentError(
                f"A polygon along {self.axis} needs a grid with the axes "
                f"{AXES[across[0]]} and {AXES[across[1]]}, but the grid lacks one. "
                "Use a `Box`."
            )
        edges = jnp.concatenate([self.vertices, self.vertices[self._following()]], 1)
        part = polygon_fraction(first, second, edges)
        ndim = first.position.ndim
        shape = [1] * ndim
        shape[across[0]], shape[across[1]] = part.shape
        return part.reshape(shape) * _between(cells[along], self.low, self.high)

    def _following(self):
        """For each vertex the index of the next one of its outline."""
        following = np.arange(self.vertices.shape[0]) + 1
        end = 0
        for count in self.outlines or (self.vertices.shape[0],):
            following[end + count - 1] = end
            end += count
        return following


class Structure(eqx.Module):
    """A shape filled with a material.

    Attributes:
        shape: Where the material is.
        material: What is there.
    """

    shape: AbstractShape
    material: Material
