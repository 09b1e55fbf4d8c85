"""States between layouts: whole and unpadded in checkpoints, cut on devices."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from jaxtyping import Array

from ..runtime import array_places, pack_state, unpack_state
from ._dispersion import Response, each_response
from ._layers import Slab
from ._pole_blocks import stacked
from ._program import Program
from ._state import Poles, State, required_layout, rest, specs
from ._stepper import bend_name, psi_name, slabs_of


def place_state(program: Program, state: State) -> State:
    """Puts a padded state onto the devices of the program's layout."""
    mesh = required_layout(program).mesh
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs(program)[1])
    return jax.tree.map(jax.lax.with_sharding_constraint, state, shardings)


def _slab_positions(program: Program) -> dict[str, tuple[int, np.ndarray]]:
    """Returns for each memory its axis and where the cells of the layer lie in it."""
    block, parts = program.stepper.block, program.stepper.components

    def positions(number: int, side: str, slab: Slab) -> tuple[int, np.ndarray]:
        size, total = block.shape[number], program.setup.grid.shape[number]
        first = 0 if side == "low" else total - slab.layer
        cell = np.arange(first, first + slab.layer)
        before = 0 if side == "low" else size - slab.cells
        return number, cell // size * slab.cells + cell % size - before

    found = {}
    for electric, terms in (
        (True, parts.electric_terms),
        (False, parts.magnetic_terms),
    ):
        for term in terms:
            axis = program.stepper.axes[term.axis]
            for side, slab, _ in slabs_of(axis, electric=electric):
                found[psi_name(term, side)] = positions(term.axis, side, slab)
        around = program.stepper.axes[0].high
        if parts.m is not None and around is not None:
            for name in parts.electric if electric else parts.magnetic:
                found[bend_name(name)] = positions(0, "high", around)
    return found


def _of_responses(
    program: Program,
    poles: Poles,
    change: Callable[[Response, Array], Array],
) -> Poles:
    """Changes each array that poles remember."""
    each = lambda one, memory: jax.tree.map(partial(change, one), memory)  # noqa: E731
    return each_response(each, program.responses, poles)


def _narrowed(one: Response, values: Array) -> Array:
    pairs = zip(one.cells, one.box, strict=True)
    own = tuple(slice(low - at, high - at) for (low, high), (at, _) in pairs)
    return values[stacked(own, values.ndim, slice(None))]


def _widened(one: Response, values: Array) -> Array:
    pairs = zip(one.cells, one.box, strict=True)
    more = tuple((low - at, to - high) for (low, high), (at, to) in pairs)
    return jnp.pad(values, stacked(more, values.ndim, (0, 0)))


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
        poles = _of_responses(program, state.poles, _narrowed)
        return eqx.tree_at(lambda s: (s.psi, s.poles), state, (psi, poles))

    def widen(state: State) -> State:
        psi = {}
        for name, values in state.psi.items():
            axis, where = slabs[name]
            wide = jnp.zeros(padded.psi[name].shape, values.dtype)
            place = (slice(None),) * axis
            psi[name] = wide.at[(*place, where)].set(values)
        poles = _of_responses(program, state.poles, _widened)
        return eqx.tree_at(lambda s: (s.psi, s.poles), state, (psi, poles))

    # A layer need not fall into equal parts, and is thin: each device holds all of it.
    thin = {
        name: PartitionSpec(*(None if a == slabs[name][0] else cut for a, cut in cuts))
        for name, cuts in ((k, enumerate(spec)) for k, spec in places.psi.items())
    }
    # Nor need the box of a dispersive medium.
    block = program.stepper.block
    cuts = [None if n > 1 else a for n, a in zip(block.parts, block.names, strict=True)]
    boxed = jax.tree.map(
        lambda x: PartitionSpec(*stacked(tuple(cuts), x.ndim, None)), padded.poles
    )
    narrow_places = eqx.tree_at(lambda s: (s.psi, s.poles), places, (thin, boxed))
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
