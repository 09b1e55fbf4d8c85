"""A dipole in a box that records its near field."""

import jax.numpy as jnp
import numpy as np

from physax import em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT


CELL = MICRO / 15
FREQUENCY = SPEED_OF_LIGHT / MICRO
PULSE = em.GaussianPulse(FREQUENCY, FREQUENCY / 8)
PHI = np.linspace(0.2, 2 * np.pi + 0.2, 9)[:-1]


def scene(polarisation="Ez", medium=None, monitor=None, boundaries=None, **options):
    component = "Ez" if polarisation == "Ez" else "Ey"
    box = em.NearFieldMonitor((0.0, 0.0), (16 * CELL, 14 * CELL), FREQUENCY)
    return em.Simulation(
        options.pop("grid", Grid.centred((42, 40), CELL)),
        medium,
        boundaries or em.Boundaries.all(em.CPML(8)),
        sources={"dipole": em.Dipole(component, (2 * CELL, CELL), PULSE)},
        monitors={"near": box if monitor is None else monitor}
        | options.pop("others", {}),
        steps=options.pop("steps", 700),
        polarisation=polarisation,
    )


def block(permittivity, **options):
    """Returns a medium with a block beside the dipole, as a design region."""
    value = jnp.broadcast_to(jnp.asarray(permittivity, float), (4, 5))
    return em.Medium(regions=em.DesignRegion(((17, 21), (18, 23)), value), **options)
