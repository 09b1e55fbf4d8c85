"""Limits that a simulation must keep: time step, resolution, memory."""

import warnings
from collections.abc import Mapping

import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, PhysaxWarning
from ..grid import Grid
from ..units import SPEED_OF_LIGHT
from ._components import Components
from ._medium import Medium, at_component
from ._sources import AbstractSource


def _extreme(value, names: tuple[str, ...], reduce) -> Array:
    entries = [jnp.asarray(at_component(value, name)) for name in names]
    return reduce(jnp.stack([reduce(entry) for entry in entries]))


def _index(medium: Medium, names: tuple[str, ...], reduce) -> Array:
    """Returns the square root of the extreme permittivity times permeability."""
    electric = tuple(n for n in names if n[0] == "E")
    magnetic = tuple(n for n in names if n[0] == "H")
    return jnp.sqrt(
        _extreme(medium.permittivity, electric, reduce)
        * _extreme(medium.permeability, magnetic, reduce)
    )


def largest_step(grid: Grid, medium: Medium, parts: Components) -> Float[Array, ""]:
    r"""Returns the largest stable time step.

    $\Delta t \le n_\mathrm{min} / (c \sqrt{\sum_a 1/\Delta_a^2})$ with the smallest
    cell of each axis. Reference: Taflove and Hagness, *Computational Electrodynamics*,
    3rd edition (2005), section 4.7.

    Args:
        grid: The grid.
        medium: The medium.
        parts: The components.

    Returns:
        The limit in seconds.
    """
    inverse = jnp.zeros((), grid.widths[0].dtype)
    for axis in range(grid.ndim):
        inverse = inverse + 1 / jnp.min(grid.widths[axis]) ** 2
    index = _index(medium, parts.names, jnp.min)
    return index / (SPEED_OF_LIGHT * jnp.sqrt(inverse))


# Below the first number of cells per wavelength the answer means nothing, below the
# second it is rough: the phase velocity of a plane wave is wrong by 1 - 4 %.
_REFUSE, _WARN = 4, 10


def check_resolution(
    sources: Mapping[str, AbstractSource], grid: Grid, medium: Medium
) -> None:
    """Refuses or warns of too few cells per wavelength in the densest medium.

    Args:
        sources: By name.
        grid: The grid.
        medium: The medium.

    Raises:
        ArgumentError: Below 4 cells per wavelength at the frequency of a pulse.
    """
    values = [medium.permittivity, medium.permeability]
    leaves = [v for x in values for v in (x.values() if isinstance(x, dict) else [x])]
    widths = [grid.widths[axis] for axis in range(grid.ndim)]
    if any(isinstance(v, jax.core.Tracer) for v in (*leaves, *widths)):
        return
    largest = [
        max(float(jnp.max(v)) for v in (x.values() if isinstance(x, dict) else [x]))
        for x in values
    ]
    index = float(np.sqrt(largest[0] * largest[1]))
    cell = max(float(jnp.max(width)) for width in widths)
    for name, source in sources.items():
        frequency = source.pulse.frequency
        if isinstance(frequency, jax.core.Tracer):
            continue
        cells = SPEED_OF_LIGHT / float(jnp.max(frequency)) / index / cell
        told = (
            f"cells per wavelength in the densest medium (index {index:.3g}) at the "
            f"frequency of source {name!r}"
        )
        if cells < _REFUSE:
            raise ArgumentError(
                f"`grid` must have at least {_REFUSE} {told}, but has {cells:.2g}. Are "
                "lengths in metres and frequencies in Hz?"
            )
        if cells < _WARN:
            warnings.warn(
                f"`grid` should have at least {_WARN} {told}, but has {cells:.3g}.",
                PhysaxWarning,
                stacklevel=4,
            )
