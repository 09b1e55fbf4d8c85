"""What a run will need of memory, known before anything is compiled."""

from collections.abc import Callable
from functools import partial
from math import prod

import equinox as eqx
import jax

from .._loop import iterate
from ._medium import Medium
from ._program import build_program, one_by_one
from ._row import Row
from ._simulation import Simulation
from ._state import rest, step


@jax.jit
def _at_rest(sim: Simulation):
    # Never run: `jit` remembers the shapes, which `jax.eval_shape` finds anew.
    return rest(build_program(sim))


@jax.jit
def _rows(sim: Simulation):
    return build_program(sim).stepper.rows


def row_shapes(sim: Simulation) -> dict[str, Row]:
    """Returns the rows of the scheme, with shapes in place of arrays."""
    return _rows.eval_shape(sim)


def varied(medium: Medium) -> Callable[[Medium], list]:
    """Returns what takes from a medium the values that are differentiated."""
    places = medium.designed()
    if not places:
        return lambda m: [m.permittivity]
    return lambda m: [getattr(m.regions[number], prop) for number, prop in places]


def state_bytes(sim: Simulation) -> int:
    """Returns the bytes of the state of a run: fields, layers, monitors.

    Args:
        sim: The simulation.

    Returns:
        Bytes, of all devices together.
    """
    return _bytes(_at_rest.eval_shape(sim))


def replayed_bytes(sim: Simulation) -> int:
    """Returns the bytes of what steps are made again from: the state but monitors."""
    state = _at_rest.eval_shape(sim)
    return _bytes((state.fields, state.psi, state.poles, state.lines))


def medium_bytes(sim: Simulation) -> int:
    """Returns the bytes of the medium at the samples of each component, likewise."""
    return _bytes(row_shapes(sim))


_STEPS = 997


@jax.jit
def _kept(sim: Simulation):
    """Returns what reverse mode keeps of some steps."""
    where = varied(sim.medium)
    first = rest(one_by_one(build_program(sim)))

    def marched(values):
        medium = eqx.tree_at(where, sim.medium, values)
        moved = eqx.tree_at(lambda s: s.medium, sim, medium)
        body = partial(step, one_by_one(build_program(moved)), taped=True)
        return iterate(body, first, 0, _STEPS)[0]

    return jax.tree.leaves(jax.vjp(marched, where(sim.medium))[1])


def step_bytes(sim: Simulation) -> int:
    """Returns the bytes that reverse mode keeps of each step that it goes through."""
    # What is stacked: what does not change from step to step is kept once. An array
    # that has this length by chance adds next to nothing.
    found = [x for x in _kept.eval_shape(sim) if x.shape[:1] == (_STEPS,)]
    return _bytes(found) // _STEPS


def _bytes(shapes) -> int:
    return sum(
        # In Python's integers: NumPy's overflow for what no memory holds.
        prod(leaf.shape) * leaf.dtype.itemsize
        for leaf in jax.tree.leaves(shapes)
    )
