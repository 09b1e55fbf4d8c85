"""A flat design extruded to a layer, with upright or slanted walls."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError
from .._known_number import known_number
from .._written_for_jax import check_function
from ._argument_checks import as_density, as_sequence
from ._filters import each_axis, known_length, known_spacing


def offset_outline(
    density: Float[Array, "nx ny"],
    distance: float | int,
    spacing: float | int | Sequence[float | int],
) -> Float[Array, "nx ny"]:
    r"""Moves every contour of a smooth density inward by a distance.

    Solves $\partial_s \rho = -|\nabla \rho|$, second order in space, upwind
    differences limited where they change sign. Its exact solution is the least value
    within a circle of that radius, so parts thinner than twice the distance vanish; a
    negative distance moves contours outward, and gaps close. Reference: Osher and
    Fedkiw, *Level Set Methods and Dynamic Implicit Surfaces* (2003), chapters 3 and 6.

    Args:
        density: Values that are smooth on the scale of a cell, as filters leave them.
        distance: How far, in metres.
        spacing: Width of a cell in metres, one for both axes or one for each.

    Returns:
        The density with its contours moved.

    Raises:
        ArgumentError: If `distance` is not finite or known, or `spacing` not positive.
    """
    density = _flat(density)
    widths = each_axis(known_spacing(spacing), 2)
    distance = known_number(distance, "distance")
    if not math.isfinite(distance):
        raise ArgumentError(f"`distance` must be a finite number, but is {distance}.")
    if distance == 0:
        return density
    sign = math.copysign(1.0, distance)
    count = math.ceil(abs(distance) / (0.5 * min(widths)))
    step = abs(distance) / count

    def advance(_, values):
        first = values - step * _upwind(values, widths)
        return (values + first - step * _upwind(first, widths)) / 2

    return sign * jax.lax.fori_loop(0, count, advance, sign * density)


def _flat(density: Any) -> Array:
    density = as_density(density)
    if density.ndim != 2:
        raise ArgumentError(
            f"`density` must be two-dimensional, but has shape {density.shape}."
        )
    return density


def _upwind(values: Array, widths: Sequence[float]) -> Array:
    """The modulus of the gradient, from where the values are less."""
    squares = jnp.zeros_like(values)
    for axis, width in enumerate(widths):
        if values.shape[axis] < 2:
            continue
        left, right = _one_sided(values, axis, width)
        downhill = jnp.maximum(jnp.maximum(left, -right), 0)
        squares = squares + downhill**2
    positive = squares > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squares, 1)), 0)


def _one_sided(values: Array, axis: int, width: float) -> tuple[Array, Array]:
    """Differences towards either side, second order where the values are smooth."""
    cells = values.shape[axis]
    pads = [(0, 0)] * values.ndim
    pads[axis] = (2, 2)
    longer = jnp.pad(values, pads, mode="edge")

    def part(array, start):
        return jax.lax.slice_in_dim(array, start, start + cells, axis=axis)

    first = jnp.diff(longer, axis=axis) / width
    bend = jnp.diff(first, axis=axis)
    before, here, after = part(bend, 0), part(bend, 1), part(bend, 2)
    left = part(first, 1) + _lesser(before, here) / 2
    right = part(first, 2) - _lesser(here, after) / 2
    return left, right


def _lesser(a: Array, b: Array) -> Array:
    """The lesser of two in modulus, 0 where their signs differ."""
    return jnp.where(a * b > 0, jnp.where(jnp.abs(a) < jnp.abs(b), a, b), 0)


def extrude(
    density: Float[Array, "nx ny"],
    heights: Sequence[float | int] | np.ndarray,
    *,
    angle: float | int = 0.0,
    spacing: float | int | Sequence[float | int] = 1.0,
    reference: float | int = 0.5,
    project: Callable[[Array], Array] | None = None,
) -> Float[Array, "nx ny nz"]:
    """Extrudes a flat design into layers, each with the outline at its height.

    With an angle a, the outline at height z is that of the mask moved inward by
    `(z - z_reference) tan(a)`; where walls meet, a ridge or a gap ends.

    Args:
        density: The flat density; for slanted walls smooth, as the filter leaves it.
        heights: Height of each layer of cells in metres, from the bottom.
        angle: Angle of the walls from the vertical, in radians, positive inward and
            negative for overhanging walls; at most 60 degrees.
        spacing: Width of a cell in metres, along x and y.
        reference: At which height the outline is that of the mask, as a fraction of the
            whole: 0 at the bottom, 1 at the top.
        project: Takes the smooth density of a layer to its projected one, such as
            `lambda rho: subpixel_projection(rho, beta)`.

    Returns:
        The density of every cell, z last.

    Raises:
        ArgumentError: If a height is not positive, or angle or reference are out of
            their range.
    """
    density = _flat(density)
    each = as_sequence(heights, "heights", "(220e-9,)")
    layers = np.array([known_length(height, "heights") for height in each])
    angle = known_number(angle, "angle")
    reference = known_number(reference, "reference")
    check_function(project, "project", optional=True)
    if not abs(angle) <= math.pi / 3:
        raise ArgumentError(f"`angle` must lie in [-pi / 3, pi / 3], but is {angle:g}.")
    if not 0 <= reference <= 1:
        raise ArgumentError(f"`reference` must lie in [0, 1], but is {reference:g}.")
    finish = project if project is not None else (lambda rho: rho)
    if angle == 0:
        flat = finish(density)
        return jnp.broadcast_to(flat[:, :, None], (*flat.shape, layers.size))
    middles = np.cumsum(layers) - layers / 2
    offsets = (middles - reference * layers.sum()) * math.tan(angle)
    return jnp.stack([finish(x) for x in _outlines(density, offsets, spacing)], axis=-1)


def _outlines(density, offsets: np.ndarray, spacing) -> list[Array]:
    """The smooth density of each layer, each made from its neighbour's."""
    order = np.argsort(np.abs(offsets), kind="stable")
    layers: list[Array] = [density] * offsets.size
    for side in (1, -1):
        values, at = density, 0.0
        for k in order:
            if offsets[k] * side > 0:
                values = offset_outline(values, float(offsets[k] - at), spacing)
                at = offsets[k]
                layers[k] = values
    return layers
