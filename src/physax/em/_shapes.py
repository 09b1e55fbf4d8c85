"""Shapes: where a material is."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, at_once, check, kind_of
from ..grid import AXES
from ._boundaries import PEC
from ._combinations import AbstractShape, as_shape
from ._materials import Material
from ._outlines import check_outlines, following, in_outlines
from ._sections import between, in_ball
from ._shape_fields import (
    around,
    around_prism,
    as_centre,
    as_length,
    as_number,
    as_point,
    as_vertices,
    check_axis,
    check_outline_counts,
    one_length,
    upper_end,
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
        centre, size = as_centre(centre), as_point(size, "size", math.inf)
        with at_once((centre, size)):
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
        low = as_point(low, "low", -math.inf)
        high = as_point(high, "high", math.inf)
        with at_once((low, high)):
            high = check(high, high > low, "`high` must be above `low`")
        whole = cls(0.0, math.inf)
        return eqx.tree_at(lambda box: (box.low, box.high), whole, (low, high))

    def covered(self, cells):
        parts = [
            between(axis, self.low[k], self.high[k]) for k, axis in enumerate(cells)
        ]
        return parts[0] * parts[1] * parts[2]

    def bounds(self):
        return self.low, self.high


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

    centre: Float[Array, "3"] = eqx.field(converter=as_centre)
    radius: Float[Array, ""] = eqx.field(converter=one_length("radius"))
    axis: str = eqx.field(static=True, default="z")
    length: Float[Array, ""] = eqx.field(converter=as_length, default=math.inf)

    def __check_init__(self):
        check_axis(self.axis)

    def covered(self, cells):
        along = AXES.index(self.axis)
        across = [k for k in range(3) if k != along]
        middle = self.centre[along]
        return between(
            cells[along], middle - self.length / 2, middle + self.length / 2
        ) * in_ball(
            [cells[k] for k in across], [self.centre[k] for k in across], self.radius
        )

    def bounds(self):
        return around(self.centre, self.axis, self.radius, self.length / 2)


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

    centre: Float[Array, "3"] = eqx.field(converter=as_centre)
    radius: Float[Array, ""] = eqx.field(converter=one_length("radius"))

    def covered(self, cells):
        return in_ball(cells, list(self.centre), self.radius)

    def bounds(self):
        return self.centre - self.radius, self.centre + self.radius


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
        ArgumentError: If there are fewer than 3 vertices or one is not finite, equals
            the next one, or ends an edge that crosses another; if an outline has no
            area, `axis` is not an axis, `high` is not above `low`, or `outlines` does
            not add up.
    """

    vertices: Float[Array, "vertices 2"]
    axis: str = eqx.field(static=True)
    low: Float[Array, ""]
    high: Float[Array, ""]
    outlines: tuple[int, ...] | None = eqx.field(static=True)

    def __init__(
        self,
        vertices: ArrayLike | Sequence,
        axis: str = "z",
        low: ArrayLike = -math.inf,
        high: ArrayLike = math.inf,
        outlines: tuple[int, ...] | None = None,
    ):
        self.vertices, self.axis, self.outlines = as_vertices(vertices), axis, outlines
        self.low = as_number(low, "low")
        self.high = upper_end(self.low, as_number(high, "high"))

    def __check_init__(self):
        check_axis(self.axis)
        count = self.vertices.shape[0]
        check_outline_counts(self.outlines, count)
        if not isinstance(self.vertices, jax.core.Tracer):
            check_outlines(
                np.asarray(self.vertices), self.outlines or (count,), "vertices"
            )

    def covered(self, cells):
        along = AXES.index(self.axis)
        counts = self.outlines or (self.vertices.shape[0],)
        edges = jnp.concatenate([self.vertices, self.vertices[following(counts)]], 1)
        part = in_outlines(cells, along, edges)
        return part * between(cells[along], self.low, self.high)

    def bounds(self):
        return around_prism(self.vertices, self.axis, self.low, self.high)


_SHAPE_FIRST = "Give the shape first, then the material."


def as_material(value: Any, name: str = "material") -> Material | PEC:
    """Returns a material, refusing what only stands for one."""
    if isinstance(value, Material | PEC):
        return value
    remedy = "Write a permittivity as `Material(permittivity)`."
    if isinstance(value, str):
        remedy = f"Look it up: `library({value!r})`."
    elif isinstance(value, AbstractShape):
        remedy = _SHAPE_FIRST
    raise ArgumentError(
        f"`{name}` must be a `Material` or `PEC()`, but is {value!r}. {remedy}"
    )


class Structure(eqx.Module):
    """A shape filled with a material.

    Attributes:
        shape: Where the material is.
        material: What is there; `PEC()` for perfect metal.

    Raises:
        ArgumentError: If one of them is something else, such as a name or a number.
    """

    shape: AbstractShape = eqx.field(
        converter=lambda shape: as_shape(shape, remedy=_SHAPE_FIRST)
    )
    material: Material | PEC = eqx.field(converter=as_material)


def painted(
    structures: Any, background: Any
) -> tuple[Sequence[Structure], Material | PEC]:
    """Returns what is painted and on what, vacuum by default, after checking it."""
    if not isinstance(structures, Iterable):
        raise ArgumentError(
            "`structures` must be a list of `Structure(shape, material)`, but is "
            f"{kind_of(structures)}"
        )
    structures = list(structures)
    for k, one in enumerate(structures):
        if not isinstance(one, Structure):
            raise ArgumentError(
                "`structures` must be a list of `Structure(shape, material)`, but "
                f"`structures[{k}]` is {kind_of(one)}"
            )
    if background is None:
        return structures, Material()
    return structures, as_material(background, "background")
