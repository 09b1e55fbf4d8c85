"""Bodies beside a dipole, and boxes around them on which forces are measured."""

import jax.numpy as jnp
import numpy as np

from physax import em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT


CELL = MICRO / 24
FREQUENCY = SPEED_OF_LIGHT / MICRO
PULSE = em.GaussianPulse(FREQUENCY, FREQUENCY / 8)
FREE = float("inf")
COMPONENT = {"Ez": "Ez", "Hz": "Ey"}


def block(permittivity, spans=((32, 38), (22, 30))):
    shape = tuple(high - low for low, high in spans)
    value = jnp.broadcast_to(jnp.asarray(permittivity, float), shape)
    return em.Medium(regions=em.DesignRegion(spans, value))


def scene(polarisation, monitors, medium=None, boundaries=None, **options):
    """A dipole to the left of a block, at (35, 26) cells from the corner."""
    where = options.pop("where", (20 * CELL, 22.5 * CELL))
    grid = Grid.uniform((56, options.pop("height", 52)), CELL)
    return em.Simulation(
        options.pop("grid", grid),
        block(4.0) if medium is None else medium,
        boundaries or em.Boundaries.all(em.CPML(8)),
        sources={"dipole": em.Dipole(COMPONENT[polarisation], where, PULSE)},
        monitors=monitors,
        steps=options.pop("steps", 900),
        polarisation=polarisation,
        **options,
    )


def box(x, y, margin=0):
    """A box around the block, larger by some cells each way."""
    size = ((6 + 2 * x + margin) * CELL, (8 + 2 * y + margin) * CELL)
    return em.ForceMonitor((35 * CELL, 26 * CELL), size, FREQUENCY)


def between(low, high):
    """A box between two nodes."""
    low, high = np.array(low) * CELL, np.array(high) * CELL
    return em.ForceMonitor((low + high) / 2, high - low, FREQUENCY)


def of(result):
    """Returns the force of a result as an array."""
    return np.array([float(result.force[axis][0]) for axis in "xy"])
