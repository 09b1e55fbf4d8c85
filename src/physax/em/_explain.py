"""What each way to differentiate a run costs, known before anything is compiled."""

from math import prod

import jax.numpy as jnp

from .._checks import ArgumentError
from ._adjoints import AbstractAdjoint, Checkpointed, Direct
from ._components import components
from ._linear_tape import LinearTape
from ._march import watch_every
from ._medium import REGIONAL
from ._memory import state_bytes
from ._simulation import Simulation


def adjoint_bytes(sim: Simulation, adjoint: AbstractAdjoint) -> int:
    """Returns about how many bytes a gradient by the permittivity needs.

    For `LinearTape` what is recorded of the design regions, or of the whole grid
    without any, is known; replayed steps are taken to keep one state each.

    Args:
        sim: The simulation.
        adjoint: The way.

    Returns:
        Bytes beyond what the simulation itself holds, of all devices together.

    Raises:
        ArgumentError: If the adjoint is not one of physax's.
    """
    state, steps = state_bytes(sim), sim.steps
    if isinstance(adjoint, LinearTape):
        one = _recorded_bytes(sim, adjoint)
        chunk = min(adjoint.every or watch_every(sim, None) or 0, steps)
        if adjoint.every is None:
            # The tape of a chunk is copied into that of the run.
            return (steps + (chunk if chunk < steps else 0)) * one + state
        return (-(-steps // chunk) + 2) * state + chunk * one
    if isinstance(adjoint, Checkpointed | Direct):
        every = adjoint.checkpoint(steps)
        return (steps if every is None else -(-steps // every) + every) * state
    raise ArgumentError(
        "`adjoint` must be LinearTape, Checkpointed or Direct, but is "
        f"{type(adjoint).__name__}."
    )


def _recorded_bytes(sim: Simulation, adjoint: LinearTape) -> int:
    """Returns the bytes that a tape takes for each step."""
    electric = components(sim.grid.ndim, sim.polarisation).electric
    cells = prod(sim.grid.shape)
    if sim.medium.regions:
        cells = sum(
            prod(high - low for low, high in region.box)
            for region in sim.medium.regions
            for prop in REGIONAL
            if getattr(region, prop) is not None
        )
    dtype = jnp.dtype(adjoint.dtype or sim.precision.storage)
    return cells * len(electric) * dtype.itemsize * (1 + sim.complex_fields)


# Times of a gradient over that of a forward run, measured on a CPU: see the docs.
_CHOICES = (
    (LinearTape(), "3", "media and sources; linear monitors"),
    (LinearTape("bfloat16"), "3", "the same, to some 1e-3"),
    (LinearTape(every=1), "4", "media and sources; linear monitors"),
    (Checkpointed(), "6", "everything"),
    (Direct(), "10", "everything"),
)


def explain(sim: Simulation) -> str:
    """Says what each way to take a gradient by the permittivity costs.

    Args:
        sim: The simulation. With `DesignRegion`s only their cells are recorded.

    Returns:
        A table: adjoint, memory, time over that of a forward run, what it serves.
    """
    root = max(round(sim.steps**0.5), 1)
    rows = [("adjoint=", "memory", "time / run", "derivatives by")]
    for adjoint, time, serves in _CHOICES:
        name = type(adjoint).__name__ + "()"
        if isinstance(adjoint, LinearTape):
            if adjoint.every is not None:
                one = _recorded_bytes(sim, adjoint)
                every = (sim.steps * state_bytes(sim) / one) ** 0.5
                adjoint = LinearTape(every=min(max(round(every), root), sim.steps))
                name = f"LinearTape(every={adjoint.every})"
            elif adjoint.dtype is not None:
                name = f"LinearTape({adjoint.dtype!r})"
        size = adjoint_bytes(sim, adjoint) / 2**20
        rows.append((name, f"{size:,.0f} MiB", f"about {time}", serves))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    where = "the whole grid" if not sim.medium.regions else "the design regions"
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([f"A gradient by the permittivity of {where}:", *lines])
