"""Small simulations that together use every boundary, source, monitor and dimension."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from physax import em
from physax.grid import Grid


CELL = 20e-9
# It begins at once: a slow start would be lost among float32's smallest numbers.
PULSE = em.ContinuousWave(2.1e14, 1.0)

AMPLITUDE = 1e4
"""Of the waves, in V/m: what the modes and dipoles of these scenes have, too."""

FREQUENCIES = jnp.array([2.0e14, 2.2e14])


def random_permittivity(shape):
    return jnp.asarray(np.random.default_rng(0).uniform(1.0, 4.0, shape), float)


def at(*cells):
    return tuple(CELL * cell for cell in cells)


def two_dimensional(polarisation):
    """All sources and monitors; few meshes divide 45 and 37 cells."""
    out, along = ("Ez", "Hy") if polarisation == "Ez" else ("Hz", "Ey")
    # Wide enough to guide well: the mode that is hardly bound is badly conditioned.
    eps = (random_permittivity((45, 37)) / 2 + 0.5).at[:, 14:24].set(12.0)
    port = em.Port(at(12, 18.5), 16 * CELL, "+x", offset=8 * CELL)
    component = "Ez" if polarisation == "Ez" else "Ey"
    return em.Simulation(
        Grid.uniform(eps.shape, CELL),
        em.Medium(eps, conductivity=1e3 * (eps - 1)),
        em.Boundaries.all(em.CPML(8)),
        polarisation=polarisation,
        steps=30,
        sources={
            "dipole": em.Dipole(out, at(23.6, 20), PULSE, moment=1e-6),
            "mode": em.ModeSource(port, PULSE),
            "wave": em.PlaneWave(
                "+x", component, at(22, 18), at(20, 14), PULSE, AMPLITUDE
            ),
        },
        monitors={
            "fields": em.FieldMonitor((out,), at(22, 18), at(18, 12), FREQUENCIES),
            "flux": em.FluxMonitor("x", at(26, 18), at(0, 16), FREQUENCIES),
            "time": em.TimeMonitor((out, along), at(24, 18), at(4, 0), every=7),
            "modes": em.ModeMonitor(port, FREQUENCIES),
            "energy": em.EnergyMonitor(every=5),
        },
    )


def walls():
    """A magnetic wall, stored as one more sample, at the high end of a cut axis."""
    widths = CELL * (1 + 0.2 * jnp.sin(jnp.arange(23.0)))
    eps = random_permittivity((23, 30))
    grid = Grid((widths, jnp.asarray(CELL)), (jnp.zeros(()), jnp.zeros(())), eps.shape)
    return em.Simulation(
        grid,
        em.Medium(eps),
        em.Boundaries(x=(em.PEC(), em.PMC()), y=(em.PMC(), em.CPML(6))),
        polarisation="Hz",
        steps=30,
        sources={"dipole": em.Dipole("Hz", at(11.5, 14.5), PULSE)},
        monitors={
            "fields": em.FieldMonitor(("Ey",), at(12, 14), at(20, 20), FREQUENCIES),
            "energy": em.EnergyMonitor(every=5),
        },
    )


def bloch():
    """Complex fields, both transverse faces wrapped across the mesh."""
    eps = random_permittivity((24, 34))
    wavevector = 0.3 * 2 * np.pi / (24 * CELL)
    wave = em.PlaneWave("+y", "Ez", at(12, 17), (np.inf, 10 * CELL), PULSE, AMPLITUDE)
    return em.Simulation(
        Grid.uniform(eps.shape, CELL),
        em.Medium(eps),
        em.Boundaries(x=em.Bloch(wavevector), y=em.CPML(8)),
        polarisation="Ez",
        steps=30,
        sources={
            "dipole": em.Dipole("Ez", at(12, 15), PULSE, moment=1e-6),
            "wave": wave,
        },
        monitors={
            "fields": em.FieldMonitor(("Hx",), at(12, 17), at(24, 12), FREQUENCIES),
            "flux": em.FluxMonitor("y", at(12, 20), at(24, 0), FREQUENCIES),
        },
    )


def three_dimensional():
    """A layer along x, a period along y, walls and a layer along z."""
    eps = random_permittivity((21, 8, 14))
    wave = em.PlaneWave(
        "+x", "Ey", at(11, 4, 6), (8 * CELL, np.inf, 4 * CELL), PULSE, AMPLITUDE
    )
    return em.Simulation(
        Grid.uniform(eps.shape, CELL),
        em.Medium(eps),
        em.Boundaries(x=em.CPML(5), y=em.Periodic(), z=(em.PMC(), em.CPML(5))),
        steps=12,
        sources={
            "dipole": em.Dipole("Ex", at(10.5, 3.9, 6), PULSE, moment=1e-13),
            "wave": wave,
        },
        monitors={
            "fields": em.FieldMonitor(("Hz",), at(11, 4, 5), at(8, 6, 6), FREQUENCIES),
            "flux": em.FluxMonitor("x", at(11, 4, 5), at(0, 6, 6), FREQUENCIES),
            "time": em.TimeMonitor(("Ez",), at(11, 4, 5), at(4, 4, 0), every=5),
            "energy": em.EnergyMonitor(every=5),
        },
    )


def one_dimensional():
    eps = random_permittivity((45,))
    return em.Simulation(
        Grid.uniform(eps.shape, CELL),
        em.Medium(eps),
        em.Boundaries.all(em.CPML(8)),
        steps=30,
        sources={"dipole": em.Dipole("Ez", at(23.6), PULSE)},
        monitors={"flux": em.FluxMonitor("x", at(26), at(0), FREQUENCIES)},
    )


SCENES = {
    "1-D": one_dimensional,
    "Ez": partial(two_dimensional, "Ez"),
    "Hz": partial(two_dimensional, "Hz"),
    "walls": walls,
    "bloch": bloch,
    "3-D": three_dimensional,
}
