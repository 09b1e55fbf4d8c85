"""Staircases: each cell of one material, and metals of whole cells with their edges.

Where a component of the field goes by its own cell alone, the surface of a curved metal
holds samples of air with metal around them, and samples of metal with air around them:
charges and fields gather there, and absorb. Here a metal consists of cells of the grid,
and all their edges belong to it, as to a perfect conductor on such a grid (Taflove and
Hagness, *Computational Electrodynamics* (2005), section 3.6). The edges on its surface
move that outwards for fields along it; so a cell needs more than half of itself inside
to count: more than $1 - 2^{-k}$, where the surface bends or slopes along k axes.
"""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TypeVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from .._checks import same, traced
from ._dispersion import metallic
from ._materials import Material
from ._poles import Drude


Tree = TypeVar("Tree")

MOSTLY = 0.4
"""A metal is negative at more than this share of the frequencies around its poles.

Those of the library are at 0.55 and more, dielectrics with resonances at up to 0.32.
"""

# Parts of a cell that differ by less are taken for equal: rounding must not decide.
_TIED = 1e-3


def equal(one: PyTree, other: PyTree) -> bool:
    """Returns whether trees are one object, or known to be equal."""
    return one is other or (not traced((one, other)) and same(one, other))


def shared(trees: Sequence[Tree]) -> list[Tree]:
    """Returns trees of which those that are known to be equal are one object."""
    found = []
    for one in trees:
        found.append(next((other for other in found if equal(one, other)), one))
    return found


def is_metal(material: Material) -> bool:
    """Returns whether poles make a metal along any axis: `Drude`, or known others."""
    along = map(material.poles_along, range(3))
    return any(
        any(isinstance(pole, Drude) for pole in own) or metallic(own, MOSTLY)
        for own in along
    )


def metal_cells(filled: Float[Array, "*cells"]) -> Bool[Array, "*cells"]:
    """Returns which cells of the grid are of metal.

    Args:
        filled: The part of each cell that metals fill.
    """
    # Along how many axes the surface goes.
    changes = [~goes_on(filled[None], axis, _TIED) for axis in range(filled.ndim)]
    count = jnp.maximum(sum(change.astype(int) for change in changes), 1)
    return filled > 1 - 0.5**count - _TIED


def beside(cells: Bool[Array, "*cells"], axis: int) -> Bool[Array, "*cells"]:
    """Returns which samples of a field are on edges of cells.

    Args:
        cells: The cells.
        axis: That of the field, along which the edges are.
    """
    for other in range(cells.ndim):
        if other != axis:
            row = jnp.moveaxis(cells, other, 0)
            row = row | jnp.concatenate([row[:1], row[:-1]])
            cells = jnp.moveaxis(row, 0, other)
    return cells


def largest(
    parts: Sequence[Array],
    materials: Sequence[Material],
    metallic: Sequence[bool],
    axis: int | None,
    metals: Bool[Array, "*cells"] | None,
) -> list[Array]:
    """Gives each cell to the material that has the largest part of it.

    Equal parts that go on along the field are those of a face on which the sample lies:
    each keeps its own, which is exact. Else the last one gets the cell. Of the pieces
    of one material that with the largest part does.

    Args:
        parts: Of each cell, what each piece fills.
        materials: Of each piece; equal ones are one object.
        metallic: Whether each piece is of a metal.
        axis: That of the field, if the grid has it.
        metals: Which samples are of metals, and which of other materials that have a
            part of their cell, where parts change along the field; if not given, this
            does not matter.
    """
    parts = jnp.broadcast_arrays(*parts)
    places: dict[int, list[int]] = {}
    for i, material in enumerate(materials):
        places.setdefault(id(material), []).append(i)
    each = jnp.stack([reduce(add, (parts[i] for i in own)) for own in places.values()])
    allowed = each
    if metals is not None:
        kinds = jnp.array([metallic[own[0]] for own in places.values()])
        fits = kinds.reshape(-1, *(1,) * metals.ndim) == metals
        known = jnp.any(fits & (each > _TIED), axis=0)
        allowed = jnp.where(fits | ~known, each, 0)
    # Which piece of each was painted last in a cell.
    painted = [jnp.where(part > _TIED, i, -1) for i, part in enumerate(parts)]
    latest = [reduce(jnp.maximum, (painted[i] for i in own)) for own in places.values()]
    last = jnp.argmax(jnp.where(_most(allowed), jnp.stack(latest), -2), axis=0)
    alone = last == jnp.arange(len(each)).reshape(-1, *(1,) * last.ndim)
    level = jnp.ones((), bool) if axis is None else goes_on(each, axis, _TIED)
    tied = _most(each)
    share = jnp.where(level, tied / jnp.sum(tied, axis=0), alone).astype(each.dtype)
    given = {}
    for own, mine in zip(places.values(), share, strict=True):
        first = jnp.argmax(jnp.stack([parts[i] for i in own]), axis=0)
        given |= {i: jnp.where(first == k, mine, 0) for k, i in enumerate(own)}
    return [given[i] for i in range(len(parts))]


def _most(each: Float[Array, "kinds *cells"]) -> Bool[Array, "kinds *cells"]:
    return each > jnp.max(each, axis=0) - _TIED


def goes_on(each: Array, axis: int, limit: float) -> Array:
    """Returns which samples are among three in a row that are alike.

    So are those on a face along the row, but not those of a sheet across it.

    Args:
        each: Kinds of parts of cells, by kind.
        axis: Of the row.
        limit: Above any difference of those that are alike.
    """
    row = jnp.moveaxis(each, axis + 1, -1)
    ends = [(0, 0)] * (row.ndim - 1) + [(1, 1)]
    row = jnp.pad(row, ends, mode="edge")
    alike = jnp.all(jnp.abs(jnp.diff(row)) < limit, axis=0)
    middle = jnp.pad(alike[..., 1:] & alike[..., :-1], ends[1:])
    near = middle[..., :-2] | middle[..., 1:-1] | middle[..., 2:]
    return jnp.moveaxis(near, -1, axis)
