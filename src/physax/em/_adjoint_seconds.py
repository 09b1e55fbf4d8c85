"""How long a gradient will take, told from short runs."""

import warnings
from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from .._checks import PhysaxWarning
from ..runtime import benchmark, check_memory
from ._adjoint_bytes import adjoint_bytes
from ._adjoints import AbstractAdjoint
from ._memory import varied
from ._monitors import AbstractSpectralMonitor
from ._simulate import simulate
from ._simulation import Simulation, with_steps


SHARES = 8, 4
"""The short runs have these parts of the steps."""


def adjoint_seconds(
    sim: Simulation, adjoint: AbstractAdjoint, *, repeats: int = 3
) -> float:
    """Estimates the seconds that a gradient with respect to the medium takes here.

    Gradients of runs of an eighth and of a quarter of the steps are compiled and timed,
    and extrapolated linearly. The fastest of several runs counts.

    Args:
        sim: The simulation. What spectral monitors see, or the last fields without any,
            is differentiated with respect to its design regions, or the permittivity of
            the whole grid without any.
        adjoint: The way.
        repeats: Number of timed runs of each length, at least 1, and for half a second.

    Returns:
        Seconds of value and gradient, compiled.

    Raises:
        ArgumentError: As `simulate` does for this adjoint, or if `repeats` is less
            than 1.
        MemoryLimitError: If the gradient of a quarter of the steps would not fit.
    """
    check_memory(
        adjoint_bytes(with_steps(sim, _lengths(sim)[1]), adjoint),
        "the gradient of the shortened run that is timed",
    )
    return _continued(sim, jax.value_and_grad(partial(_seen, adjoint)), repeats)


def run_seconds(sim: Simulation, *, repeats: int = 3) -> float:
    """Returns about how many seconds a run takes, found in the same way."""
    return _continued(sim, partial(_seen, None), repeats)


def _lengths(sim: Simulation) -> list[int]:
    return [max(sim.steps // share, 1) for share in SHARES]


def _seen(adjoint: AbstractAdjoint | None, values, sim: Simulation):
    """Returns a sum over what a simulation with other values leaves."""
    medium = eqx.tree_at(varied(sim.medium), sim.medium, values)
    moved = eqx.tree_at(lambda s: s.medium, sim, medium)
    found = simulate(moved, adjoint=adjoint)
    spectra = [
        found.monitors[name]
        for name, monitor in sim.monitors.items()
        if isinstance(monitor, AbstractSpectralMonitor)
    ]
    leaves = jax.tree.leaves(eqx.filter(spectra or found.fields, eqx.is_inexact_array))
    return sum(jnp.sum(jnp.real(leaf * leaf.conj())) for leaf in leaves)


def _continued(sim: Simulation, run: Callable, repeats: int) -> float:
    """Returns the seconds of a function of these values and of all the steps."""
    lengths, values = _lengths(sim), varied(sim.medium)(sim.medium)
    with warnings.catch_warnings():
        # Waves that have not left, and spectra not resolved, of runs cut short.
        warnings.simplefilter("ignore", PhysaxWarning)
        short, long = (
            benchmark(run, values, with_steps(sim, n), repeats=repeats, at_least=0.5)
            for n in lengths
        )
    step = max(long.min - short.min, 0.0) / max(lengths[1] - lengths[0], 1)
    return long.min + step * (sim.steps - lengths[1])
