"""What a run will need of memory, known before anything is compiled."""

from math import prod

import jax

from ._program import build_program
from ._row import Row
from ._simulation import Simulation
from ._state import rest


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


def state_bytes(sim: Simulation) -> int:
    """Returns the bytes of the state of a run: fields, layers, monitors.

    Args:
        sim: The simulation.

    Returns:
        Bytes, of all devices together.
    """
    return _bytes(_at_rest.eval_shape(sim))


def medium_bytes(sim: Simulation) -> int:
    """Returns the bytes of the medium at the samples of each component, likewise."""
    return _bytes(row_shapes(sim))


def _bytes(shapes) -> int:
    return sum(
        # In Python's integers: NumPy's overflow for what no memory holds.
        prod(leaf.shape) * leaf.dtype.itemsize
        for leaf in jax.tree.leaves(shapes)
    )
