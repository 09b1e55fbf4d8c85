"""Cells between edges, in which particles are counted."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Num

from .._checks import ArgumentError, check, real
from ._numbers import check_listed


def as_edges(edges: Any, ndim: int | None = None) -> tuple[Float[Array, " _"], ...]:
    """Returns the edges of cells along each axis.

    Args:
        edges: Positions that increase, for each axis one more than cells.
        ndim: Number of axes that there must be, if that is known.

    Raises:
        ArgumentError: If there are too few, or they do not increase.
    """
    check_listed(edges, "edges", "[x_edges, y_edges]")
    if ndim is not None and len(edges) != ndim:
        raise ArgumentError(
            f"`edges` must have one array for each of {ndim} axes, but has {len(edges)}"
            " entries."
        )
    if not len(edges):
        raise ArgumentError("`edges` must have one array for each axis, but is empty.")
    found = []
    for axis, given in enumerate(edges):
        array = real(given, f"edges[{axis}]")
        if array.ndim != 1 or array.size < 2:
            raise ArgumentError(
                f"`edges` of axis {axis} must be a list of at least 2 positions, but "
                f"has shape {array.shape}."
            )
        if not isinstance(array, jax.core.Tracer):
            steps = np.diff(np.asarray(array))
            bad = np.flatnonzero(~((steps > 0) & np.isfinite(steps)))
            if bad.size:
                raise ArgumentError(
                    f"`edges` of axis {axis} must increase and be finite, but change "
                    f"by {steps[bad[0]]:g} after entry {bad[0]}."
                )
        found.append(array)
    dtype = jnp.result_type(*found)
    return tuple(array.astype(dtype) for array in found)


def shape_of(edges: Sequence[Array]) -> tuple[int, ...]:
    """Returns the number of cells along each axis."""
    return tuple(array.shape[0] - 1 for array in edges)


def volumes(edges: Sequence[Float[Array, " _"]]) -> Float[Array, "..."]:
    """Returns the length, area or volume of each cell."""
    total = jnp.ones((), edges[0].dtype)
    for array in edges:
        total = total[..., None] * jnp.diff(array)
    return total


# As one program, where each operation would be one; inside others nothing changes.
@partial(jax.jit, inline=True)
def cell_of(
    points: Float[Array, "particles ndim"], edges: Sequence[Float[Array, " _"]]
) -> tuple[Int[Array, " particles"], Bool[Array, " particles"]]:
    """Finds the cell of each point.

    The highest edge of an axis belongs to the cell below.

    Args:
        points: The points.
        edges: Of the cells along each axis.

    Returns:
        The cell, counted with the last axis fastest, and whether the point lies in it;
        points that are nowhere have some cell.
    """
    flat = jnp.zeros(points.shape[0], int)
    inside = jnp.ones(points.shape[0], bool)
    for axis, array in enumerate(edges):
        cells = array.shape[0] - 1
        x = points[:, axis]
        inside &= (x >= array[0]) & (x <= array[-1])
        below = jnp.searchsorted(array, x, side="right") - 1
        flat = flat * cells + jnp.clip(below, 0, cells - 1)
    return flat, inside


def as_points(
    points: Num[ArrayLike, "..."], name: str = "points"
) -> Float[Array, "particles ndim"]:
    """Returns positions as an array of floating point.

    Args:
        points: One row for each particle.
        name: What the caller calls them.

    Raises:
        ArgumentError: If there is no row, or no axis of coordinates.
    """
    array = real(points, name)
    if array.ndim != 2 or not array.size:
        raise ArgumentError(
            f"`{name}` must have one row of coordinates for each of at least one "
            f"place, but has shape {array.shape}."
        )
    return array


def as_weights(
    weights: Num[ArrayLike, "..."] | None, points: Float[Array, "particles ndim"]
) -> Float[Array, " particles"]:
    """Returns the mass of each particle: 0 where its place is not finite.

    Args:
        weights: At least 0; by default all are equal and sum to 1.
        points: Where the particles are.

    Raises:
        ArgumentError: If they are negative, or are not one for each particle.
    """
    count = points.shape[0]
    if weights is None:
        array = jnp.full(count, 1 / count, points.dtype)
    else:
        array = real(weights, "weights")
        array = array.astype(jnp.result_type(array.dtype, points.dtype))
        if array.shape != (count,):
            raise ArgumentError(
                f"`weights` must be one number for each of {count} particles, but has "
                f"shape {array.shape}."
            )
        array = check(array, array >= 0, "`weights` must be at least 0")
    return jnp.where(jnp.isfinite(points).all(1), array, 0)


@partial(jax.jit, inline=True)
def in_place(points: Float[Array, "particles ndim"]) -> Float[Array, "particles ndim"]:
    """Returns the points, those that are not finite moved to the first that is.

    Their weight is 0; as numbers they would still spoil sums and gradients.
    """
    finite = jnp.isfinite(points).all(1)
    somewhere = points[jnp.argmax(finite)]
    somewhere = jnp.where(jnp.isfinite(somewhere), somewhere, 0)
    return jnp.where(finite[:, None], points, jnp.asarray(somewhere))
