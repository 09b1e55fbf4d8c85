"""Limits that a simulation must keep: time step, resolution, memory."""

import warnings
from collections.abc import Mapping
from functools import reduce

import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, PhysaxWarning
from ..grid import Grid
from ..units import SPEED_OF_LIGHT
from ._components import Components
from ._medium import Medium, Property, at_component
from ._monitors import AbstractMonitor, AbstractSpectralMonitor
from ._sources import AbstractSource


def _smallest(value: Property, names: tuple[str, ...]) -> Array:
    entries = [jnp.asarray(at_component(value, name)) for name in names]
    return jnp.min(jnp.stack([jnp.min(entry) for entry in entries]))


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
    index = jnp.sqrt(
        _smallest(medium.permittivity, parts.electric)
        * _smallest(medium.permeability, parts.magnetic)
    )
    return index / (SPEED_OF_LIGHT * jnp.sqrt(inverse))


def _entries(value: Property) -> list[Array]:
    return list(value.values()) if isinstance(value, dict) else [value]


def _largest(entries: list[Array]) -> np.ndarray:
    """Returns the largest entry of any component, cell by cell where they differ."""
    return np.asarray(reduce(np.maximum, map(np.asarray, entries)))


def _worst(grid: Grid, index: np.ndarray) -> tuple[float, float]:
    """Returns index and width in metres of the cell that is optically longest."""
    found = []
    for axis, width in enumerate(map(np.asarray, grid.widths)):
        # On a graded grid the dense parts may have the small cells.
        others = tuple(a for a in range(grid.ndim) if a != axis)
        row = np.max(index, axis=others) if width.ndim and index.ndim else np.max(index)
        row, width = np.broadcast_arrays(row, width)
        where = np.unravel_index(np.argmax(row * width), row.shape)
        found.append((float(row[where]), float(width[where])))
    return max(found, key=lambda pair: pair[0] * pair[1])


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
    electric, magnetic = _entries(medium.permittivity), _entries(medium.permeability)
    if any(
        isinstance(v, jax.core.Tracer) for v in (*electric, *magnetic, *grid.widths)
    ):
        return
    if not sources:
        return
    densest = np.sqrt(_largest(electric) * _largest(magnetic))
    index, cell = _worst(grid, np.asarray(densest))
    for name, source in sources.items():
        frequency = source.pulse.frequency
        if isinstance(frequency, jax.core.Tracer):
            continue
        cells = SPEED_OF_LIGHT / float(np.max(np.asarray(frequency))) / index / cell
        told = (
            f"cells per wavelength where the medium has index {index:.3g}, at the "
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


def check_frequencies(
    monitors: Mapping[str, AbstractMonitor], dt: Float[Array, ""]
) -> None:
    """Refuses frequencies that the steps of a run cannot tell from lower ones.

    Args:
        monitors: By name.
        dt: Time step in seconds.

    Raises:
        ArgumentError: At or above half the sampling rate.
    """
    if isinstance(dt, jax.core.Tracer):
        return
    limit = 0.5 / float(dt)
    for name, monitor in monitors.items():
        if not isinstance(monitor, AbstractSpectralMonitor):
            continue
        if isinstance(monitor.frequencies, jax.core.Tracer):
            continue
        highest = float(np.max(np.asarray(monitor.frequencies)))
        if highest >= limit:
            raise ArgumentError(
                f"`frequencies` of monitor {name!r} must be below {limit:.4g} Hz, half "
                f"the sampling rate of the run, but one is {highest:.4g}. Are they in "
                "Hz?"
            )
