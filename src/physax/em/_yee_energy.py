"""The energy that the Yee scheme conserves."""

import jax
from jaxtyping import Array

from .._checks import ArgumentError, instance
from ._medium_checks import beyond_scalars
from ._program import build_program
from ._simulation import Simulation
from ._state import State, energy


def yee_energy(sim: Simulation, before: State, after: State) -> Array:
    r"""Returns the energy that the scheme conserves, between two successive states.

    $W = \frac12 \sum \epsilon E^n E^{n+1} + \mu (H^{n+1/2})^2$, which is constant to
    rounding without sources, loss and layers. Reference: Taflove and Hagness,
    *Computational Electrodynamics*, 3rd edition (2005), chapter 4.

    Args:
        sim: The simulation.
        before: The state at step n.
        after: The state at step n + 1.

    Returns:
        The energy in J (3-D), J/m (2-D) or J/m^2 (1-D).

    Raises:
        ArgumentError: If an argument is of the wrong type, or the medium has poles,
            nonlinear susceptibilities or off-diagonal entries: the energy in them is
            not counted.
    """
    instance(sim, "sim", Simulation)
    for name, one in (("before", before), ("after", after)):
        instance(one, name, State, "Pass the `state` of a `RunResult`.")
    if found := beyond_scalars(sim.medium):
        raise ArgumentError(
            "`sim` must have a linear medium without poles whose principal axes run "
            f"along the grid, but its medium has {found}, whose energy is not counted."
        )
    return _yee_energy(sim, before, after)


@jax.jit
def _yee_energy(sim: Simulation, before: State, after: State) -> Array:
    program = build_program(sim)
    later = dict(after.fields)
    mixed = {
        name: field if name[0] == "E" else after.fields[name]
        for name, field in before.fields.items()
    }
    return energy(program, mixed, later)
