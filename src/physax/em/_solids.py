"""Solids with circular or elliptic sections: ellipsoids, cones and rings."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, at_once, check, traced
from ..grid import AXES
from ._combinations import AbstractShape
from ._outlines import across_of
from ._overlap import Intervals
from ._sections import Cells, Cut, between, in_ball, stacked
from ._shape_fields import (
    around,
    as_centre,
    as_floats,
    as_length,
    check_axis,
    one_length,
)


def _radii(x: ArrayLike | Sequence) -> Float[Array, "3"]:
    x = as_floats(x, "radii")
    if x.shape != (3,):
        raise ArgumentError(f"`radii` must have shape (3,), but has shape {x.shape}.")
    with at_once(x):
        good = (x > 0) & jnp.isfinite(x)
        return check(x, good, "`radii` must be positive and finite")


def _two_radii(x: ArrayLike | Sequence) -> Float[Array, "2"]:
    x = as_floats(x, "radii")
    if x.shape != (2,):
        raise ArgumentError(f"`radii` must have shape (2,), but has shape {x.shape}.")
    with at_once(x):
        good = (x >= 0) & jnp.isfinite(x)
        x = check(x, good, "`radii` must be finite and at least 0")
        return check(x, jnp.max(x) > 0, "One of `radii` must be positive")


def _scaled(cells: Cells, unit: Float[Array, ""]) -> Intervals | Cut:
    """Returns cells in a unit of length."""
    if cells is None:
        return Cut(jnp.zeros_like(unit))
    return jax.tree.map(lambda x: x / unit, cells)


class Ellipsoid(AbstractShape):
    """An ellipsoid with its axes along x, y and z.

    Attributes:
        centre: Middle (x, y, z) in metres; entries left out at the end are 0.
        radii: Half of its size along x, y and z, in metres.

    Raises:
        ArgumentError: If `centre` is not finite or `radii` not three positive numbers.
    """

    centre: Float[Array, "3"] = eqx.field(converter=as_centre)
    radii: Float[Array, "3"] = eqx.field(converter=_radii)

    def covered(self, cells):
        scaled = [_scaled(axis, self.radii[k]) for k, axis in enumerate(cells)]
        centre = self.centre / self.radii
        return in_ball(scaled, list(centre), jnp.ones_like(centre[0]))

    def bounds(self):
        return self.centre - self.radii, self.centre + self.radii


class Cone(AbstractShape):
    """A circular cone or frustum along an axis.

    Attributes:
        centre: Middle (x, y, z) in metres; entries left out at the end are 0.
        radii: Radius at the lower and at the upper end in metres; one may be 0.
        length: Length along the axis in metres, finite.
        axis: "x", "y" or "z".

    Raises:
        ArgumentError: If a number is not finite, `length` or both of `radii` are not
            positive, or `axis` is not an axis.
    """

    centre: Float[Array, "3"] = eqx.field(converter=as_centre)
    radii: Float[Array, "2"] = eqx.field(converter=_two_radii)
    length: Float[Array, ""] = eqx.field(converter=one_length("length"))
    axis: str = eqx.field(static=True, default="z")

    def __check_init__(self):
        check_axis(self.axis)

    def covered(self, cells):
        along = AXES.index(self.axis)
        across = across_of(along)
        low = self.centre[along] - self.length / 2

        def disc(height):
            part = jnp.clip((height - low) / self.length, 0, 1)
            return in_ball(
                [cells[k] for k in across],
                [self.centre[k] for k in across],
                self.radii[0] + part * (self.radii[1] - self.radii[0]),
            )

        return stacked(cells, along, low, low + self.length, disc)

    def bounds(self):
        return around(self.centre, self.axis, jnp.max(self.radii), self.length / 2)


def _wall(width: Float[Array, ""], radius: Float[Array, ""]) -> Float[Array, ""]:
    of = "" if traced(radius) else f" ({float(radius):g})"
    with at_once((width, radius)):
        fits = width <= 2 * radius
        return check(width, fits, f"`width` must be at most twice `radius`{of}")


class Ring(AbstractShape):
    """A circular tube along an axis: in the plane across it, an annulus.

    Attributes:
        centre: Middle (x, y, z) in metres; entries left out at the end are 0.
        radius: Radius of the middle of the wall, in metres.
        width: Thickness of the wall in metres, at most twice `radius`.
        axis: "x", "y" or "z".
        length: Length along the axis in metres, or inf.

    Raises:
        ArgumentError: If `centre`, `radius` or `width` is not finite, a length is not
            positive, `width` is too large, or `axis` is not an axis.
    """

    centre: Float[Array, "3"]
    radius: Float[Array, ""]
    width: Float[Array, ""]
    axis: str = eqx.field(static=True)
    length: Float[Array, ""]

    def __init__(
        self,
        centre: ArrayLike | Sequence[ArrayLike],
        radius: ArrayLike,
        width: ArrayLike,
        axis: str = "z",
        length: ArrayLike = math.inf,
    ):
        self.centre, self.axis = as_centre(centre), axis
        self.radius = radius = one_length("radius")(radius)
        self.width = _wall(one_length("width")(width), radius)
        self.length = as_length(length)

    def __check_init__(self):
        check_axis(self.axis)

    def covered(self, cells):
        along = AXES.index(self.axis)
        across = across_of(along)
        outer, inner = (
            in_ball(
                [cells[k] for k in across], [self.centre[k] for k in across], radius
            )
            for radius in (self.radius + self.width / 2, self.radius - self.width / 2)
        )
        middle = self.centre[along]
        low, high = middle - self.length / 2, middle + self.length / 2
        return between(cells[along], low, high) * (outer - inner)

    def bounds(self):
        outer = self.radius + self.width / 2
        return around(self.centre, self.axis, outer, self.length / 2)
