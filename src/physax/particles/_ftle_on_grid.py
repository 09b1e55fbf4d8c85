"""Gradients of flow maps from seeds on a grid, by differences."""

from collections.abc import Sequence

import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, positive, real, single, true_or_false
from .._products import matmul
from ._ftle import ftle
from ._numbers import check_listed
from ._sphere import EARTH_RADIUS, unfolded


def flow_map_gradient_on_grid(
    positions: Float[ArrayLike, "*nodes ndim"],
    axes: Sequence[Float[ArrayLike, " _"]],
    *,
    spherical: bool = False,
    radius: Float[ArrayLike, ""] = EARTH_RADIUS,
) -> Float[Array, "*nodes ndim ndim"]:
    r"""Returns gradients of a flow map from seeds on a grid, by differences.

    Between neighbours on both sides, $(x(s + \Delta) - x(s - \Delta)) / (2 \Delta)$, of
    second order also where spacings differ; at the ends of an axis the parabola through
    the three outermost. Where neighbours are carried apart by more than the flow's own
    lengths this is the stretching between them, not of what lies around the seed: see
    `flow_map_gradient`.

    On a sphere the differences are chords, of seeds and of positions alike, in the
    tangent planes: in metres eastward and northward, exact for rotations, and whatever
    turn or side of a pole the longitudes count from. Seeds at a pole have NaN.

    Args:
        positions: Where particles are at the end, by the node where they began.
        axes: For each axis the positions of the nodes, at least three, increasing.
        spherical: Whether they are longitudes and latitudes in degrees, and maybe
            heights in metres.
        radius: Of the sphere, in metres; it matters only with heights.

    Raises:
        ArgumentError: If the axes do not fit the positions, or a latitude is beyond a
            pole.
    """
    positions, axes = _checked(positions, axes)
    radius = single(positive(radius, "radius"), "radius").astype(positions.dtype)
    if not true_or_false(spherical, "spherical"):
        return _slopes(positions, axes)
    latitudes = axes[1] if len(axes) > 1 else jnp.zeros(1)
    known = not isinstance(latitudes, jax.core.Tracer)
    if known and np.abs(np.asarray(latitudes)).max() > 90:
        raise ArgumentError(
            "`axes[1]` on a sphere must be latitudes from -90 to 90 degrees, but has "
            f"{np.asarray(latitudes).min():g} to {np.asarray(latitudes).max():g}."
        )
    seeds = jnp.stack(jnp.meshgrid(*axes, indexing="ij"), -1).astype(positions.dtype)
    before = _tangent_slopes(seeds, axes, radius)
    after = _tangent_slopes(positions, axes, radius)
    # At a pole a longitude leads nowhere.
    pole = (jnp.abs(seeds[..., 1]) >= 90)[..., None, None]
    before = jnp.where(pole, jnp.eye(len(axes), dtype=before.dtype), before)
    swap = lambda x: jnp.swapaxes(x, -1, -2)  # noqa: E731
    found = swap(jnp.linalg.solve(swap(before), swap(after)))
    return jnp.where(pole, jnp.nan, found)


def _checked(positions, axes) -> tuple[Array, list[Array]]:
    """Returns positions and axes that fit each other."""
    positions = real(positions, "positions")
    check_listed(axes, "axes", "(x, y)")
    axes = [real(axis, "axes") for axis in axes]
    sizes = tuple(axis.size for axis in axes)
    if positions.shape != (*sizes, len(axes)):
        raise ArgumentError(
            "`positions` must have an axis for each of `axes` and one of coordinates, "
            f"{(*sizes, len(axes))}, but have shape {positions.shape}."
        )
    for number, axis in enumerate(axes):
        if axis.size < 3:
            raise ArgumentError(
                f"`axes[{number}]` must have at least 3 nodes, but has {axis.size}."
            )
        known = not isinstance(axis, jax.core.Tracer)
        if known and not np.all(np.diff(np.asarray(axis)) > 0):
            raise ArgumentError(
                f"`axes[{number}]` must increase, but its smallest step is "
                f"{np.diff(np.asarray(axis)).min():g}."
            )
    return positions, axes


def _slopes(values: Array, axes: list[Array]) -> Array:
    return jnp.stack([_slope(values, axis, n) for n, axis in enumerate(axes)], axis=-1)


def _slope(values: Array, nodes: Array, axis: int) -> Array:
    """Returns derivatives along one axis, of second order."""
    values = jnp.moveaxis(values, axis, 0)
    gaps = jnp.diff(nodes).reshape(-1, *(1,) * (values.ndim - 1))
    rises = jnp.diff(values, axis=0) / gaps
    low, high = gaps[:-1], gaps[1:]
    inner = (high * rises[:-1] + low * rises[1:]) / (low + high)
    bends = (rises[1:] - rises[:-1]) / (low + high)
    first = rises[:1] - gaps[:1] * bends[:1]
    last = rises[-1:] + gaps[-1:] * bends[-1:]
    return jnp.moveaxis(jnp.concatenate([first, inner, last]), 0, axis)


def _tangent_slopes(places: Array, axes: list[Array], radius: Array) -> Array:
    """Returns derivatives eastward, northward and of the height, in metres."""
    places, _ = unfolded(places)
    angles = jnp.radians(places[..., :2])
    (east_sin, north_sin), (east_cos, north_cos) = (
        (part[..., 0], part[..., 1]) for part in (jnp.sin(angles), jnp.cos(angles))
    )
    up = jnp.stack([north_cos * east_cos, north_cos * east_sin, north_sin], -1)
    east = jnp.stack([-east_sin, east_cos, jnp.zeros_like(east_sin)], -1)
    north = jnp.stack([-north_sin * east_cos, -north_sin * east_sin, north_cos], -1)
    along = matmul(jnp.stack([east, north], -2), _slopes(radius * up, axes))
    return jnp.concatenate([along, _slopes(places[..., 2:], axes)], -2)


def ftle_on_grid(
    positions: Float[ArrayLike, "*nodes ndim"],
    axes: Sequence[Float[ArrayLike, " _"]],
    duration: Float[ArrayLike, ""],
    *,
    spherical: bool = False,
    radius: Float[ArrayLike, ""] = EARTH_RADIUS,
) -> Float[Array, "*nodes"]:
    """Returns finite-time Lyapunov exponents from seeds on a grid, by differences.

    Args:
        positions: As for `flow_map_gradient_on_grid`.
        axes: As for `flow_map_gradient_on_grid`.
        duration: The time between seeds and positions, in seconds, of either sign.
        spherical: As for `flow_map_gradient_on_grid`.
        radius: As for `flow_map_gradient_on_grid`.
    """
    gradient = flow_map_gradient_on_grid(
        positions, axes, spherical=spherical, radius=radius
    )
    return ftle(gradient, duration)
