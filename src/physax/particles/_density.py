"""Densities of particles on a grid: counted in cells, or shared between them."""

from collections.abc import Collection, Sequence
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import ArgumentError, kind_of
from ..grid import AXES
from ._bins import (
    as_edges,
    as_points,
    as_weights,
    cell_of,
    in_place,
    volumes,
)


def histogram_density(
    points: Num[ArrayLike, "particles ndim"],
    edges: Sequence[Num[ArrayLike, " _"]],
    weights: Num[ArrayLike, " weights"] | None = None,
) -> Float[Array, "..."]:
    """Estimates a density by counting particles in cells.

    The mass in a cell divided by its volume. Particles outside the cells, or whose
    place is not finite, are left out: the integral is then smaller by their mass.
    Differentiable in the weights only.

    Args:
        points: Where the particles are.
        edges: Positions of the edges of the cells, for each axis one more than cells;
            of a `Grid`, `[grid.edges(axis) for axis in range(grid.ndim)]`.
        weights: Mass of each particle. Without it all together have mass 1, and the
            result is a probability density.

    Returns:
        The density in each cell: mass for each length, area or volume.

    Raises:
        ArgumentError: If shapes do not agree, edges do not increase, or a weight is
            negative.
    """
    places = as_points(points)
    axes = as_edges(edges, places.shape[1])
    mass = as_weights(weights, places)
    return _counted(places, axes, mass)


@jax.jit
def _counted(places: Array, axes: Sequence[Array], mass: Array) -> Array:
    cells, inside = cell_of(places, axes)
    volume = volumes(axes)
    total = jnp.zeros(volume.size, mass.dtype).at[cells].add(mass * inside)
    return total.reshape(volume.shape) / volume


def cloud_in_cell(
    points: Num[ArrayLike, "particles ndim"],
    edges: Sequence[Num[ArrayLike, " _"]],
    weights: Num[ArrayLike, " weights"] | None = None,
    *,
    periodic: Collection[str] = (),
) -> Float[Array, "..."]:
    """Estimates a density by sharing each particle between the nearest cells.

    Along each axis the shares decrease linearly from 1 at the centre of a cell to 0 at
    the next centre, so on a uniform grid a particle is a cloud as wide as a cell.
    Between the outermost centre and a wall all goes to the outermost cell. Mass is
    conserved. Particles outside the cells, or whose place is not finite, are left out.
    Differentiable in the weights, and in the points except where they cross a centre.

    Reference: Hockney and Eastwood, *Computer Simulation Using Particles* (1981).

    Args:
        points: Where the particles are.
        edges: Positions of the edges of the cells, for each axis one more than cells.
        weights: Mass of each particle. Without it all together have mass 1.
        periodic: Names of the axes, of x, y and z, that repeat; no particle is outside
            there.

    Returns:
        The density in each cell: mass for each length, area or volume.

    Raises:
        ArgumentError: If shapes do not agree, edges do not increase, a weight is
            negative, or a name in `periodic` is not that of an axis.
    """
    places = as_points(points)
    ndim = places.shape[1]
    axes = as_edges(edges, ndim)
    mass = as_weights(weights, places)
    if not isinstance(periodic, Collection) or isinstance(periodic, dict):
        raise ArgumentError(
            "`periodic` must hold names of axes, such as `{'x'}`, but is "
            f"{kind_of(periodic)}"
        )
    unknown = sorted(set(periodic) - set(AXES[:ndim]))
    if unknown:
        raise ArgumentError(
            f"`periodic` must name axes of the points, {AXES[:ndim]}, but has "
            f"{unknown}."
        )
    repeats = tuple(axis in periodic for axis in AXES[:ndim])
    return _shared(in_place(places), axes, mass, repeats)


@partial(jax.jit, static_argnums=3)
def _shared(
    places: Array, axes: Sequence[Array], mass: Array, repeats: tuple[bool, ...]
) -> Array:
    shared = []
    for axis, array in enumerate(axes):
        x = places[:, axis]
        if repeats[axis]:
            size = array[-1] - array[0]
            x = x - size * jnp.floor((x - array[0]) / size)
        else:
            mass = jnp.where((x >= array[0]) & (x <= array[-1]), mass, 0)
        shared.append(_shares(x, array, repeats[axis]))
    volume = volumes(axes)
    total = jnp.zeros(volume.shape, mass.dtype)
    for corner in product(*shared):
        share = mass
        for _, part in corner:
            share = share * part
        total = total.at[tuple(cell for cell, _ in corner)].add(share)
    return total / volume


def _shares(x: Array, edges: Array, repeats: bool) -> list[tuple[Array, Array]]:
    """Returns the two cells that share a particle along an axis, and their shares."""
    cells = edges.shape[0] - 1
    centres = (edges[:-1] + edges[1:]) / 2
    size = edges[-1] - edges[0]
    # Beyond the walls two more centres, of the next period or of no cell at all.
    before = centres[-1:] - size if repeats else 2 * edges[:1] - centres[:1]
    after = centres[:1] + size if repeats else 2 * edges[-1:] - centres[-1:]
    knots = jnp.concatenate([before, centres, after])
    below = jnp.clip(jnp.searchsorted(knots, x, side="right") - 1, 0, cells)
    upper = (x - knots[below]) / (knots[below + 1] - knots[below])
    first, second = below - 1, below
    if repeats:
        first, second = first % cells, second % cells
    else:
        first, second = jnp.maximum(first, 0), jnp.minimum(second, cells - 1)
    return [(first, 1 - upper), (second, upper)]
