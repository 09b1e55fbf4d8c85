"""How much memory a gradient needs, known before anything is compiled."""

from math import prod

import jax.numpy as jnp
import numpy as np

from .._checks import ArgumentError
from ._adjoints import AbstractAdjoint, Checkpointed, Direct
from ._boxes import size_of
from ._cpml import CPML
from ._frequency_domain import FrequencyDomain
from ._linear_tape import LinearTape
from ._march import watch_every
from ._memory import medium_bytes, replayed_bytes, state_bytes, step_bytes
from ._monitors import AbstractSpectralMonitor
from ._reversible import Reversible
from ._simulation import Simulation


def adjoint_bytes(sim: Simulation, adjoint: AbstractAdjoint) -> int:
    """Estimates the bytes that a gradient with respect to the permittivity needs.

    Monitors count twice, with their cotangents: no step keeps what they have added up.
    One that the objective does not read takes less.

    Args:
        sim: The simulation.
        adjoint: The way.

    Returns:
        Bytes beyond what the simulation itself holds, of all devices together.

    Raises:
        ArgumentError: If the adjoint is not one of physax's.
    """
    state, steps = state_bytes(sim), max(sim.steps, 1)
    # What the sweep forward holds, and the one back.
    both = 2 * state + medium_bytes(sim)
    if isinstance(adjoint, LinearTape):
        one = recorded_bytes(sim, adjoint)
        if adjoint.every is None:
            return steps * one + both
        chunk = min(adjoint.every, steps)
        return -(-steps // chunk) * replayed_bytes(sim) + chunk * one + both
    if isinstance(adjoint, Checkpointed | Direct):
        return _replay_bytes(sim, adjoint.checkpoint(steps)) + both
    if isinstance(adjoint, Reversible):
        return steps * _faces_bytes(sim, adjoint) + both
    if isinstance(adjoint, FrequencyDomain):
        return _transforms_bytes(sim) + both
    raise ArgumentError(
        "`adjoint` must be LinearTape, Reversible, FrequencyDomain, Checkpointed or "
        f"Direct, but is {type(adjoint).__name__}."
    )


def _replay_bytes(sim: Simulation, every: int | None) -> int:
    """Returns the bytes of stored states, and of the steps made again from one."""
    steps, one = max(sim.steps, 1), step_bytes(sim)
    # The loop is cut where it looks at the energy; these chunks are made again, too.
    chunk = watch_every(sim, None, steps=steps) or steps
    if every is None:
        # The backward pass copies what it reads of a chunk.
        return (steps + (chunk if chunk < steps else 0)) * one
    outer = steps // chunk if chunk < steps else 0
    inner, rest = divmod(chunk, every) if every < chunk else (0, 0)
    kept = (outer + inner) * replayed_bytes(sim)
    return kept + (min(every, chunk) + rest) * one


def _faces_bytes(sim: Simulation, adjoint: Reversible) -> int:
    """Returns the bytes of the faces that are kept of each step."""
    parts, shape = sim.components, sim.grid.shape
    layers = [
        [f.cells if isinstance(f, CPML) else None for f in sim.boundaries.axis(axis)]
        for axis in range(sim.grid.ndim)
    ]
    inner = [
        n - sum(cells - 1 for cells in pair if cells is not None)
        for n, pair in zip(shape, layers, strict=True)
    ]
    samples = 0
    for axis, pair in enumerate(layers):
        face = prod(n for other, n in enumerate(inner) if other != axis)
        terms = parts.magnetic_terms, parts.electric_terms
        for cells, side in zip(pair, terms, strict=True):
            if cells is not None:
                samples += face * len({t.source for t in side if t.axis == axis})
    dtype = jnp.dtype(adjoint.record or sim.precision.storage)
    return samples * dtype.itemsize * (1 + sim.complex_fields)


def _transforms_bytes(sim: Simulation) -> int:
    """Returns the bytes of the transforms of fields and cotangents."""
    spectral = [
        m for m in sim.monitors.values() if isinstance(m, AbstractSpectralMonitor)
    ]
    # Monitors mostly share their frequencies; then they are taken once.
    lists = {tuple(np.asarray(m.frequencies).tolist()) for m in spectral}
    count = sum(map(len, lists))
    wide = 2 * jnp.dtype(sim.precision.accumulate).itemsize
    return 2 * count * _recorded_cells(sim) * wide


def _recorded_cells(sim: Simulation) -> int:
    """Returns the number of samples that are differentiated."""
    electric = sim.components.electric
    cells = prod(sim.grid.shape)
    if sim.medium.regions:
        boxes = [sim.medium.regions[n].box for n, _ in sim.medium.designed()]
        cells = sum(prod(size_of(box)) for box in boxes)
    return cells * len(electric)


def recorded_bytes(sim: Simulation, adjoint: LinearTape) -> int:
    """Returns the bytes that a tape takes for each step."""
    dtype = jnp.dtype(adjoint.dtype or sim.precision.storage)
    return _recorded_cells(sim) * dtype.itemsize * (1 + sim.complex_fields)
