"""Finding the simplex of a mesh that holds a place, for one particle or for many."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int

from ._mesh import Mesh


# A walk goes through this many faces at most.
_HOPS = 16
# Places of a batch that are finished at a time: at least so many, or this share.
_BLOCK = 256
_SHARE = 64

# From the remembered simplex, from one in the bin of the place, and through all there.
_WALK, _WALK_AGAIN, _LOOK_UP, _FOUND, _NOWHERE = range(5)


class _Search(NamedTuple):
    """Where the search for one place stands; arrays of these for many.

    Attributes:
        cell: The simplex to be tried now.
        phase: What is done.
        count: The hops of the walk, or the candidates of the bin so far.
    """

    cell: Int[Array, "..."]
    phase: Int[Array, "..."]
    count: Int[Array, "..."]


def locate(
    mesh: Mesh, x: Float[Array, " ndim"], memory: Int[Array, ""]
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """Finds the simplex that holds a place.

    From the remembered simplex it walks through the faces that lie between; where that
    leads out of the mesh or takes long, all simplices in the bin of the place are
    tried. Under `vmap` particles that have arrived do not wait in these loops: the few
    others are gathered and finished together.

    Args:
        mesh: The mesh.
        x: The place.
        memory: The simplex where the search begins.

    Returns:
        The simplex, and whether it holds the place; if none does, one where the search
        ended.
    """
    x = jax.lax.stop_gradient(x).astype(mesh.rows.dtype)
    mesh = jax.lax.stop_gradient(mesh)
    cells, found = _locate_many(mesh, x[None], memory[None])
    return cells[0], found[0]


@custom_vmap
def _locate_many(
    mesh: Mesh, x: Float[Array, "places ndim"], cells: Int[Array, " places"]
) -> tuple[Int[Array, " places"], Bool[Array, " places"]]:
    search = _Search(cells, jnp.full_like(cells, _WALK), jnp.zeros_like(cells))
    places = len(cells)
    block = max(_BLOCK, places // _SHARE)
    if places <= block:
        search = _advance(mesh, x, search, _turn, _unfinished)
        return search.cell, search.phase == _FOUND
    # All hop while many are on the way, then those who have not arrived by themselves.
    several = 4 * block

    def many_hop(search):
        on_the_way = (search.phase == _WALK) & (search.count < _HOPS)
        return jnp.sum(on_the_way) > several

    search = _advance(mesh, x, search, _hop, many_hop)

    def finish(search):
        at = jnp.nonzero(search.phase < _FOUND, size=block, fill_value=places)[0]
        some = jax.tree.map(lambda a: a.at[at].get(mode="clip"), search)
        # Places that only fill the block have arrived, and cost no turns.
        some = some._replace(phase=jnp.where(at < places, some.phase, _FOUND))
        here = x.at[at].get(mode="clip")
        some = _advance(mesh, here, some, _turn, _unfinished)
        return jax.tree.map(lambda a, b: a.at[at].set(b, mode="drop"), search, some)

    search = jax.lax.while_loop(_unfinished, finish, search)
    return search.cell, search.phase == _FOUND


@_locate_many.def_vmap
def _locate_more(axis_size, in_batched, mesh, x, cells):
    """Makes one longer batch of a batch of batches."""
    of_mesh, of_x, of_cells = in_batched

    def spread(array, batched):
        return array if batched else jnp.broadcast_to(array, (axis_size, *array.shape))

    x, cells = spread(x, of_x), spread(cells, of_cells)
    if any(jax.tree.leaves(of_mesh)):
        meshes = jax.tree.map(spread, mesh, of_mesh)
        found = jax.lax.map(lambda each: _locate_many(*each), (meshes, x, cells))
        return found, (True, True)
    flat, found = _locate_many(mesh, x.reshape(-1, x.shape[-1]), cells.reshape(-1))
    return (flat.reshape(cells.shape), found.reshape(cells.shape)), (True, True)


def _unfinished(search: _Search) -> Bool[Array, ""]:
    return jnp.any(search.phase < _FOUND)


def _advance(
    mesh: Mesh,
    x: Float[Array, "places ndim"],
    search: _Search,
    move: Callable[[Mesh, Any, _Search], _Search],
    go_on: Callable[[_Search], Bool[Array, ""]],
) -> _Search:
    """Moves all places together."""

    def moved(search):
        return jax.vmap(move, (None, 0, 0))(mesh, x, search)

    return jax.lax.while_loop(go_on, moved, search)


def _hop(mesh: Mesh, x: Float[Array, " ndim"], search: _Search) -> _Search:
    """Walks on; a walk that leads nowhere is one of all hops."""
    depth, neighbour = mesh.depth(x, search.cell)
    arrived = depth >= -mesh.tolerance
    # Who has arrived tries the same simplex again.
    hops = ~arrived & (neighbour >= 0)
    return _Search(
        cell=jnp.where(hops, neighbour, search.cell),
        phase=jnp.where(arrived, _FOUND, search.phase),
        count=jnp.where(hops, search.count + 1, _HOPS),
    )


def _turn(mesh: Mesh, x: Float[Array, " ndim"], search: _Search) -> _Search:
    """Tries one simplex, and says which is next."""
    cell, phase, count = search
    depth, neighbour = mesh.depth(x, cell)
    arrived = depth >= -mesh.tolerance
    walks = phase < _LOOK_UP
    hops = walks & (neighbour >= 0) & (count < _HOPS)
    start, stop = mesh.bins.candidates(x)
    following = jnp.where(walks, start, start + count + 1)
    candidate = mesh.bins.entries.at[following].get(mode="clip")
    after = jnp.where(walks, phase + 1, _LOOK_UP)
    after = jnp.where(following < stop, after, _NOWHERE)
    # Who has arrived or is lost stays there.
    stays = arrived | (phase >= _FOUND)
    ended = jnp.where(phase >= _FOUND, phase, _FOUND)
    lost = stays | (~hops & (after == _NOWHERE))
    return _Search(
        cell=jnp.where(lost, cell, jnp.where(hops, neighbour, candidate)),
        phase=jnp.where(stays, ended, jnp.where(hops, phase, after)),
        count=jnp.where(hops | ~walks, count + 1, 0),
    )
