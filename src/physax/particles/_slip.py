"""Velocities next to land, along which particles slide or to which they cling."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Num

from .._checks import ArgumentError, as_array, check, real, single
from .._products import matmul
from ..grid import Clamp, Linear
from ._axis import Stencil
from ._fields import AbstractField, Look
from ._gridded import GriddedField
from ._instants import Leave, check_outside
from ._numbers import check_mask, unmasked


def _slip(x: Any) -> Array:
    x = single(real(x, "slip"), "slip")
    return check(x, (x >= 0) & (x <= 1), "`slip` must lie in [0, 1]")


class SlipField(AbstractField):
    r"""A velocity on a grid of which some nodes are land, linear between nodes.

    On land the velocity is 0. Across a coast, the component normal to it decreases
    linearly to 0 on the land node, so that in the limit of short steps no particle
    crosses the line between two land nodes. A component along the coast is, on the land
    node, `slip` times that of the adjacent node at sea: with 1 it does not change
    toward the coast (free slip), with 0 it decreases to 0 (no slip). This decides
    whether particles run along a coast or come to rest before it.

    A step of finite length may cut a corner of land that juts out; the particle then
    stays within for good, `ALIVE`. Past an island of 4 by 4 cells with free slip, of
    3000 particles 13, 4 and 1 do in steps of `RK4()` of 0.4, 0.2 and 0.1 cells, and of
    `Euler()` 31, 16 and 6. `Coast(Land(dry, axes, threshold=0.9999))` ends them there,
    and who comes closer to the coast than a ten thousandth of a cell.

    Component $k$ is along axis $k$. A land node takes, for a component along axis $k$,
    the value of its neighbour in the same cell along another axis, if that is at sea.

    Attributes:
        field: The velocity, 0 on land.
        dry: Whether each node is land.
        slip: From 0 to 1.
    """

    field: GriddedField
    dry: Bool[Array, "..."]
    slip: Float[Array, ""] = eqx.field(converter=_slip)

    def __init__(
        self,
        values: Num[ArrayLike, "..."],
        axes: Sequence[Float[ArrayLike, " _"]],
        times: Float[ArrayLike, " times"] | None = None,
        *,
        dry: Bool[ArrayLike, "..."] | None = None,
        slip: float | Float[ArrayLike, ""] = 1.0,
        periods: Sequence[float | None] | None = None,
        time_period: float | None = None,
        outside: Clamp | Leave | None = None,
        time_outside: Clamp | Leave | None = None,
    ):
        """Makes a velocity of samples.

        Args:
            values: The samples, `[times, *nodes, components]` or, of a steady field,
                `[*nodes, components]`.
            axes: For each axis the positions of the nodes, increasing.
            times: The instants, increasing; `None` for a steady field.
            dry: Whether each node is land; without it, where a component is at no time
                finite, or is masked.
            slip: From 0, no slip, to 1, free slip.
            periods: As for `GriddedField`.
            time_period: As for `GriddedField`.
            outside: As for `GriddedField`.
            time_outside: As for `GriddedField`.
        """
        check_outside(outside, kinds=(Leave, Clamp))
        check_outside(time_outside, "time_outside", kinds=(Leave, Clamp))
        array = as_array(unmasked(values), "values")
        if not array.ndim:
            raise ArgumentError(
                "`values` must have an axis for each of `axes` and one of components, "
                "but is one number."
            )
        leading = 0 if times is None else 1
        if dry is None:
            known = jnp.any(jnp.isfinite(array), axis=tuple(range(leading)))
            dry = jnp.any(~known, axis=-1)
        check_mask(dry, "dry")
        dry = jnp.asarray(unmasked(dry))
        if dry.shape != array.shape[leading:-1]:
            raise ArgumentError(
                f"`dry` must have one entry for each node, {array.shape[leading:-1]}, "
                f"but has shape {dry.shape}."
            )
        self.field = GriddedField(
            jnp.where(dry[..., None], 0, array),
            axes,
            times,
            periods=periods,
            time_period=time_period,
            outside=outside,
            time_outside=time_outside,
            method=Linear(),
        )
        self.dry, self.slip = dry, _slip(slip)

    def __check_init__(self):
        ndim = len(self.field.axes)
        if self.field.components != (ndim,):
            raise ArgumentError(
                f"`values` must have one component for each of {ndim} axes, but have "
                f"shape {self.field.values.shape}."
            )

    def start(self, x):
        return self.field.start(x)

    def span(self):
        return self.field.span()

    def look(self, t, x, memory):
        stencils, status = self.field.stencils(t, x)
        ndim = len(self.field.axes)
        space, time = stencils[-ndim:], stencils[:-ndim]
        corners = _corners(self.field.values, time, space)
        dry = _corners(self.dry, [], space)
        parts = [
            _blend(_slide(corners[..., k], dry, k, self.slip), space)
            for k in range(ndim)
        ]
        return Look(jnp.stack(parts), memory, status)


def _corners(values: Array, time: list[Stencil], space: list[Stencil]) -> Array:
    """Returns the samples around a place, blended in time."""
    lengths = [len(s.indices) for s in space]
    found = []
    for corner in product(*map(range, lengths)):
        at = tuple(s.indices[k] for s, k in zip(space, corner, strict=True))
        if time:
            (when,) = time
            pairs = zip(when.indices, when.weights, strict=True)
            found.append(sum(weight * values[(i, *at)] for i, weight in pairs))
        else:
            found.append(values[at])
    stacked = jnp.stack(found)
    return stacked.reshape(*lengths, *stacked.shape[1:])


def _slide(corners: Array, dry: Array, component: int, slip: Array) -> Array:
    """Gives land nodes the values of their neighbours at sea, across the component."""
    for axis in range(corners.ndim):
        if axis == component or corners.shape[axis] == 1:
            continue
        other, other_dry = jnp.flip(corners, axis), jnp.flip(dry, axis)
        takes = dry & ~other_dry
        corners = jnp.where(takes, slip * other, corners)
        dry = dry & other_dry
    return corners


def _blend(corners: Array, space: list[Stencil]) -> Array:
    for stencil in reversed(space):
        corners = matmul(corners, jnp.stack(stencil.weights).astype(corners.dtype))
    return corners
