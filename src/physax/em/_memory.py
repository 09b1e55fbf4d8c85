"""What a run will need of memory, known before anything is compiled."""

import jax
import numpy as np

from ._simulation import Simulation
from ._state import build_program, rest


def state_bytes(sim: Simulation) -> int:
    """Returns the bytes of the state of a run: fields, layers, monitors.

    Args:
        sim: The simulation.

    Returns:
        Bytes, of all devices together.
    """
    shapes = jax.eval_shape(lambda sim: rest(build_program(sim)), sim)
    return sum(
        int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes)
    )


