"""What each way to differentiate a run costs, known before anything is compiled."""

from .._byte_text import byte_text
from .._checks import ArgumentError
from ..runtime import MemoryLimitError
from ._adjoint_bytes import adjoint_bytes, recorded_bytes
from ._adjoint_seconds import adjoint_seconds, run_seconds
from ._adjoints import AbstractAdjoint, Checkpointed, Direct
from ._boundaries import absorbing_axes
from ._frequency_domain import FrequencyDomain
from ._linear_tape import LinearTape
from ._memory import replayed_bytes
from ._reversible import LARGEST, Reversible, amplification
from ._simulate import check_types
from ._simulation import Simulation


# Times of a gradient over that of a forward run, measured on a CPU: see the docs. The
# length of the chunks is chosen by the problem.
_CHOICES = (
    (LinearTape(), "3", "media and sources; linear monitors"),
    (LinearTape("bfloat16"), "3", "the same, to some 1e-3"),
    (LinearTape(every=1), "4", "media and sources; linear monitors"),
    (Reversible(), "4", "media outside the layers, sources; linear monitors"),
    (FrequencyDomain(), "4", "media and currents; spectral monitors, decayed fields"),
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
    one = recorded_bytes(sim, LinearTape())
    best = round((sim.steps * replayed_bytes(sim) / one) ** 0.5)
    root = max(round(sim.steps**0.5), 1)
    return LinearTape(every=max(min(max(best, root), sim.steps), 1))


def _refused(sim: Simulation) -> dict[type, str]:
    """Returns the adjoints that do not support a simulation, and why."""
    medium = sim.medium
    if medium.nonlinearities:
        kinds = (LinearTape, Reversible, FrequencyDomain)
        return dict.fromkeys(kinds, "the medium is nonlinear")
    if medium.off_diagonals:
        why = "the permittivity has off-diagonal entries"
        return dict.fromkeys((Reversible, FrequencyDomain), why)
    if medium.dispersions:
        return {Reversible: "it cannot undo poles"}
    if absorbing_axes(sim.boundaries, sim.grid.ndim):
        return {Reversible: "it cannot undo absorbers"}
    return {}


def explain(
    sim: Simulation, adjoint: AbstractAdjoint | None = None, *, timed: bool = False
) -> str:
    """Tabulates what a gradient with respect to the permittivity costs by adjoint.

    Args:
        sim: The simulation. With `DesignRegion`s only their cells are recorded.
        adjoint: The adjoint to explain; all by default.
        timed: Whether to time short runs of each, see `adjoint_seconds`, which compiles
            them, instead of quoting times measured elsewhere. Without `adjoint`, those
            that do not support this simulation or need too much memory are listed, not
            timed.

    Returns:
        A table: adjoint, memory, time over that of a forward run, what it serves.

    Raises:
        ArgumentError: If an argument is of the wrong type, or the one adjoint to time
            does not support this simulation.
        MemoryLimitError: If it would not fit into the free memory.
    """
    check_types(sim, LinearTape() if adjoint is None else adjoint, None)
    rows = [("adjoint=", "memory", "time / run", "derivatives by")]
    chosen = [
        (adjoint or one, time, serves)
        for one, time, serves in _CHOICES
        if adjoint is None or _alike(adjoint, one)
    ]
    refused = _refused(sim)
    chosen = [row for row in chosen if not isinstance(row[0], tuple(refused))]
    plain, untimed = run_seconds(sim) if timed else 1.0, []
    for one, time, serves in chosen:
        name = type(one).__name__ + "()"
        if isinstance(one, LinearTape):
            if one.every is not None:
                one = one if adjoint is not None else _least_memory(sim)
                name = f"LinearTape(every={one.every})"
            elif one.dtype is not None:
                name = f"LinearTape({one.dtype!r})"
        told = f"about {time}"
        if timed:
            try:
                seconds = adjoint_seconds(sim, one)
            except (ArgumentError, MemoryLimitError) as error:
                if adjoint is not None:
                    raise
                told = "not timed"
                untimed.append(f"{name} was not timed: {error}")
            else:
                told = f"{seconds / plain:.2g} ({seconds:.3g} s)"
        rows.append((name, byte_text(adjoint_bytes(sim, one)), told, serves))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    factor = float(amplification(sim))
    where = "the whole grid" if not sim.medium.regions else "the design regions"
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines += untimed
    for kind, why in refused.items():
        lines.append(f"{kind.__name__}() is refused: {why}.")
    asked = adjoint is None or isinstance(adjoint, Reversible)
    if Reversible not in refused and factor > LARGEST and asked:
        lines.append(
            f"Reversible() is refused: the losses would amplify rounding {factor:.1e} "
            "times."
        )
    return "\n".join([f"A gradient by the permittivity of {where}:", *lines])
