"""What a run will need of memory, known before anything is compiled."""

from math import prod

import jax

from ._program import build_program
from ._simulation import Simulation
from ._state import rest


@jax.jit
def _at_rest(sim: Simulation):
    # Never run: `jit` remembers the shapes, which `jax.eval_shape` finds anew.
    return rest(build_program(sim))


def state_bytes(sim: Simulation) -> int:
    """Returns the bytes of the state of a run: fields, layers, monitors.

    Args:
        sim: The simulation.

    Returns:
        Bytes, of all devices together.
    """
    shapes = _at_rest.eval_shape(sim)
    return sum(
        # In Python's integers: NumPy's overflow for what no memory holds.
        prod(leaf.shape) * leaf.dtype.itemsize
        for leaf in jax.tree.leaves(shapes)
    )
