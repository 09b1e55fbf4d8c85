"""States between layouts: whole and unpadded in checkpoints, cut on devices."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from ..runtime import pack_state, unpack_state
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


def _crop(values: np.ndarray, shape: tuple[int, ...], skip: int = -1) -> np.ndarray:
    """Drops the cells that only pad, along all axes but one."""
    return values[tuple(slice(None if a == skip else n) for a, n in enumerate(shape))]


def _grow(values: np.ndarray, shape: tuple[int, ...], skip: int = -1) -> np.ndarray:
    """Adds zeros up to a shape, along all axes but one."""
    more = [(0, 0 if a == skip else n - values.shape[a]) for a, n in enumerate(shape)]
    return np.pad(values, more)


def packing(program: Program, whole: State) -> tuple[Callable, Callable]:
    """Returns how a state is packed without a trace of its layout, and unpacked.

    Args:
        program: The program under a layout; shapes suffice.
        whole: Shapes of the state of the same simulation on one device.

    Returns:
        `pack`, from a state to named arrays on the host, and `unpack`, back.
    """
    slabs = _slab_positions(program)
    padded = jax.eval_shape(rest, program)
    shardings = jax.tree.map(
        lambda spec: NamedSharding(required_layout(program).mesh, spec),
        specs(program)[1],
    )
    host = jax.local_devices(backend="cpu")[0]
    stored = next(iter(whole.fields.values())).shape

    def pack(state: State) -> dict[str, np.ndarray]:
        fields = {k: _crop(np.asarray(v), stored) for k, v in state.fields.items()}
        psi = {}
        for name, values in state.psi.items():
            axis, where = slabs[name]
            cells = np.take(np.asarray(values), where, axis)
            psi[name] = _crop(cells, stored, skip=axis)
        state = eqx.tree_at(lambda s: (s.fields, s.psi), state, (fields, psi))
        with jax.default_device(host):
            return pack_state(jax.tree.map(jnp.asarray, state))

    def unpack(arrays: dict[str, np.ndarray]) -> State:
        with jax.default_device(host):
            like = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), whole)
            state = jax.tree.map(np.asarray, unpack_state(arrays, like))
        size = next(iter(padded.fields.values())).shape
        fields = {k: _grow(v, size) for k, v in state.fields.items()}
        psi = {}
        for name, values in state.psi.items():
            axis, where = slabs[name]
            wide = np.zeros(padded.psi[name].shape, values.dtype)
            place = [slice(None)] * values.ndim
            place[axis] = where
            wide[tuple(place)] = _grow(values, size, skip=axis)
            psi[name] = wide
        state = eqx.tree_at(lambda s: (s.fields, s.psi), state, (fields, psi))
        return jax.device_put(state, shardings)

    return pack, unpack
