"""What each way to differentiate a run costs, known before anything is compiled."""

from math import prod

import jax.numpy as jnp
import numpy as np

from .._checks import ArgumentError
from ._adjoints import AbstractAdjoint, Checkpointed, Direct
from ._components import components
from ._cpml import CPML
from ._frequency_domain import FrequencyDomain
from ._linear_tape import LinearTape
from ._medium import REGIONAL
from ._memory import state_bytes
from ._monitors import AbstractSpectralMonitor
from ._reversible import LARGEST, Reversible, amplification
from ._simulate import check_types
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
    state, steps = state_bytes(sim), max(sim.steps, 1)
    if isinstance(adjoint, LinearTape):
        one = _recorded_bytes(sim, adjoint)
        if adjoint.every is None:
            return steps * one + 2 * state
        chunk = min(adjoint.every, steps)
        return (-(-steps // chunk) + 2) * state + chunk * one
    if isinstance(adjoint, Checkpointed | Direct):
        every = adjoint.checkpoint(steps)
        return (steps if every is None else -(-steps // every) + every) * state
    if isinstance(adjoint, Reversible):
        return steps * _faces_bytes(sim, adjoint) + 2 * state
    if isinstance(adjoint, FrequencyDomain):
        return _transforms_bytes(sim) + 2 * state
    raise ArgumentError(
        "`adjoint` must be LinearTape, Reversible, FrequencyDomain, Checkpointed or "
        f"Direct, but is {type(adjoint).__name__}."
    )


def _faces_bytes(sim: Simulation, adjoint: Reversible) -> int:
    """Returns the bytes of the faces that are kept of each step."""
    parts, shape = components(sim.grid.ndim, sim.polarisation), sim.grid.shape
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
    electric = components(sim.grid.ndim, sim.polarisation).electric
    cells = prod(sim.grid.shape)
    if sim.medium.regions:
        cells = sum(
            prod(high - low for low, high in region.box)
            for region in sim.medium.regions
            for prop in REGIONAL
            if getattr(region, prop) is not None
        )
    return cells * len(electric)


def _recorded_bytes(sim: Simulation, adjoint: LinearTape) -> int:
    """Returns the bytes that a tape takes for each step."""
    dtype = jnp.dtype(adjoint.dtype or sim.precision.storage)
    return _recorded_cells(sim) * dtype.itemsize * (1 + sim.complex_fields)


# Times of a gradient over that of a forward run, measured on a CPU: see the docs. The
# length of the chunks is chosen by the problem.
_CHOICES = (
    (LinearTape(), "3", "media and sources; linear monitors"),
    (LinearTape("bfloat16"), "3", "the same, to some 1e-3"),
    (LinearTape(every=1), "4", "media and sources; linear monitors"),
    (Reversible(), "4", "media outside the layers, sources; linear monitors"),
    (FrequencyDomain(), "4", "media and currents; spectral monitors, waves gone"),
    (Checkpointed(), "6", "everything"),
    (Direct(), "10", "everything"),
)


def _alike(one: AbstractAdjoint, other: AbstractAdjoint) -> bool:
    """Whether two adjoints are of one kind, so that they take about the same time."""
    if isinstance(one, LinearTape) and isinstance(other, LinearTape):
        kinds = [(a.every is None, a.dtype is None) for a in (one, other)]
        return kinds[0] == kinds[1] or (
            one.every is not None and other.every is not None
        )
    return type(one) is type(other)


def _least_memory(sim: Simulation) -> LinearTape:
    """Returns the tape in chunks of the length that takes the least memory."""
    one = _recorded_bytes(sim, LinearTape())
    best = round((sim.steps * state_bytes(sim) / one) ** 0.5)
    root = max(round(sim.steps**0.5), 1)
    return LinearTape(every=max(min(max(best, root), sim.steps), 1))


def _told(size: int) -> str:
    """Returns bytes with three digits and a unit."""
    value, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1000 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.3g} {units[0]}"


def explain(sim: Simulation, adjoint: AbstractAdjoint | None = None) -> str:
    """Says what each way to take a gradient by the permittivity costs.

    Args:
        sim: The simulation. With `DesignRegion`s only their cells are recorded.
        adjoint: The way to tell about; all by default.

    Returns:
        A table: adjoint, memory, time over that of a forward run, what it serves.

    Raises:
        ArgumentError: If an argument is of the wrong type.
    """
    check_types(sim, LinearTape() if adjoint is None else adjoint, None)
    rows = [("adjoint=", "memory", "time / run", "derivatives by")]
    chosen = [
        (adjoint or one, time, serves)
        for one, time, serves in _CHOICES
        if adjoint is None or _alike(adjoint, one)
    ]
    for one, time, serves in chosen:
        name = type(one).__name__ + "()"
        if isinstance(one, LinearTape):
            if one.every is not None:
                one = one if adjoint is not None else _least_memory(sim)
                name = f"LinearTape(every={one.every})"
            elif one.dtype is not None:
                name = f"LinearTape({one.dtype!r})"
        rows.append((name, _told(adjoint_bytes(sim, one)), f"about {time}", serves))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    factor = float(amplification(sim))
    where = "the whole grid" if not sim.medium.regions else "the design regions"
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    if factor > LARGEST and (adjoint is None or isinstance(adjoint, Reversible)):
        lines.append(
            f"Reversible() is refused: the losses would amplify rounding {factor:.1e} "
            "times."
        )
    return "\n".join([f"A gradient by the permittivity of {where}:", *lines])
