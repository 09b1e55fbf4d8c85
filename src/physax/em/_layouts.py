"""States between layouts: whole and unpadded in checkpoints, cut on devices."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from ..runtime import array_places, pack_state, unpack_state
from ._program import Program
from ._state import State, required_layout, rest, specs
from ._step import psi_name


def place_state(program: Program, state: State) -> State:
    """Puts a padded state onto the devices of the program's layout."""
    mesh = required_layout(program).mesh
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs(program)[1])
    return jax.tree.map(jax.lax.with_sharding_constraint, state, shardings)


def _slab_positions(program: Program) -> dict[str, tuple[int, np.ndarray]]:
    """Returns for each memory its axis and where the cells of the layer lie in it."""
    block, parts = program.stepper.block, program.stepper.components
    found = {}
    for term in (*parts.electric_terms, *parts.magnetic_terms):
        axis = program.stepper.axes[term.axis]
        size, total = block.shape[term.axis], program.setup.grid.shape[term.axis]
        for side, slab in (("low", axis.low), ("high", axis.high)):
            if slab is None:
                continue
            first = 0 if side == "low" else total - slab.layer
            cell = np.arange(first, first + slab.layer)
            before = 0 if side == "low" else size - slab.cells
            where = cell // size * slab.cells + cell % size - before
            found[psi_name(term, side)] = (term.axis, where)
    return found


def packing(program: Program, whole: State) -> dict[str, Any]:
    """Returns how a state is stored without a trace of its layout.

    Args:
        program: The program under a layout; shapes suffice.
        whole: Shapes of the state of the same simulation on one device.

    Returns:
        `pack`, `unpack` and `places` of a `Checkpointing`.
    """
    slabs = _slab_positions(program)
    mesh = required_layout(program).mesh
    places, padded = specs(program)[1], jax.eval_shape(rest, program)

    def narrow(state: State) -> State:
        psi = {k: jnp.take(v, slabs[k][1], slabs[k][0]) for k, v in state.psi.items()}
        return eqx.tree_at(lambda s: s.psi, state, psi)

    def widen(state: State) -> State:
        psi = {}
        for name, values in state.psi.items():
            axis, where = slabs[name]
            wide = jnp.zeros(padded.psi[name].shape, values.dtype)
            place = (slice(None),) * axis
            psi[name] = wide.at[(*place, where)].set(values)
        return eqx.tree_at(lambda s: s.psi, state, psi)

    # A layer need not fall into equal parts, and is thin: each device holds all of it.
    thin = {
        name: PartitionSpec(*(None if a == slabs[name][0] else cut for a, cut in cuts))
        for name, cuts in ((k, enumerate(spec)) for k, spec in places.psi.items())
    }
    narrow_places = eqx.tree_at(lambda s: s.psi, places, thin)
    stored, spread = (
        jax.tree.map(lambda spec: NamedSharding(mesh, spec), tree)
        for tree in (narrow_places, places)
    )
    like = jax.tree.map(
        lambda x, where: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where),
        jax.eval_shape(narrow, padded),
        stored,
    )
    to_stored = jax.jit(narrow, out_shardings=stored)
    to_spread = jax.jit(widen, out_shardings=spread)
    return {
        "pack": lambda state: pack_state(to_stored(state), whole),
        "unpack": lambda arrays: to_spread(unpack_state(arrays, like, whole)),
        "places": array_places(like, whole),
    }
