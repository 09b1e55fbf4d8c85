"""What absorbers at the faces take of the fields in each cell."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..grid import Grid
from ._absorber import Absorber, decay_rate
from ._boundaries import Boundaries, layer_cells
from ._simulation import Simulation
from ._stepper import along


def build_fade(
    sim: Simulation, name: str, size: tuple[int, ...]
) -> Float[Array, "..."] | None:
    """Returns what absorbers take of a component in half a step, as a part of it.

    Args:
        sim: The simulation.
        name: The component.
        size: Samples of the whole grid along each axis, padding included.

    Returns:
        A number for each sample; `None` without absorbers.
    """
    total = None
    for axis, half in enumerate(sim.components.stagger(name)):
        rate = _rates(sim.grid, sim.boundaries, axis, half, size[axis])
        if rate is not None:
            row = along(rate * sim.dt / 2, axis, len(size))
            total = row if total is None else total + row
    return None if total is None else jnp.broadcast_to(total, size)


def _rates(
    grid: Grid, boundaries: Boundaries, axis: int, half: float, size: int
) -> Float[Array, " size"] | None:
    """Returns the rate in 1/s at which fields decay along an axis.

    Args:
        grid: The grid.
        boundaries: The faces.
        axis: The axis.
        half: The stagger of the component along it.
        size: Samples along it, padding included.
    """
    if not any(layer_cells(boundaries, axis, Absorber)):
        return None
    found, cells, width = None, grid.shape[axis], grid.cell_widths(axis)
    nodes = jnp.concatenate([jnp.zeros(1, width.dtype), jnp.cumsum(width)])
    # Samples that only pad the grid are where its last node is.
    here = jnp.minimum(jnp.arange(size), cells)
    x = nodes[here] + half * jnp.append(width, 0)[here]
    for high_end, face in enumerate(boundaries.axis(axis)):
        if not isinstance(face, Absorber):
            continue
        # Alike at both ends: the low one is closed by a magnetic wall half a cell
        # before node 0, the high one by an electric wall at the last node.
        if high_end:
            inner, outer = nodes[cells - face.cells], nodes[-1]
        else:
            inner = nodes[face.cells] - width[face.cells - 1] / 2
            outer = -width[0] / 2
        depth = jnp.clip((x - inner) / (outer - inner), 0, 1)
        rate = decay_rate(face, depth, jnp.abs(outer - inner))
        found = rate if found is None else found + rate
    return found
