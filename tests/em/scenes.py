"""Small simulations that together use every boundary, source, monitor and dimension."""

from functools import partial

import equinox as eqx
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


def bared(eps, *spans):
    """Returns a permittivity that is 1 at the faces of a plane wave.

    Args:
        eps: The permittivity of the grid.
        spans: For each axis the nodes of the low and the high face, or `None`.
    """
    inside = [slice(None) if s is None else slice(s[0], s[1] + 1) for s in spans]
    for axis, span in enumerate(spans):
        for node in span or ():
            face = tuple(node if a == axis else s for a, s in enumerate(inside))
            eps = eps.at[face].set(1.0)
    return eps


def two_dimensional(polarisation):
    """All sources and monitors; few meshes divide 45 and 37 cells."""
    out, along = ("Ez", "Hy") if polarisation == "Ez" else ("Hz", "Ey")
    # Wide enough to guide well: the mode that is hardly bound is badly conditioned.
    eps = (random_permittivity((45, 37)) / 2 + 0.5).at[:, 14:24].set(12.0)
    eps = bared(eps, (12, 32), (25, 28))
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
                "+x", component, at(22, 26.5), at(20, 3), PULSE, AMPLITUDE
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
    eps = bared(random_permittivity((24, 34)), None, (12, 22))
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
    eps = bared(random_permittivity((21, 8, 14)), (7, 15), None, (4, 8))
    wave = em.PlaneWave(
        "+x", "Ey", at(11, 4, 6), (8 * CELL, np.inf, 4 * CELL), PULSE, AMPLITUDE
    )
    return em.Simulation(
        Grid.uniform(eps.shape, CELL),
        em.Medium(eps),
        em.Boundaries(
            x=em.CPML(5),
            y=em.Periodic(),
            z=(em.PMC(), em.CPML(5, kappa_max=2.0)),
        ),
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


def cylindrical():
    """A layer around the axis, one along z and a magnetic wall at its other end."""
    eps = random_permittivity((29, 22))
    return em.Simulation(
        Grid.uniform(eps.shape, CELL),
        em.Medium(eps, conductivity=1e3 * (eps - 1)),
        em.Boundaries(r=em.CPML(10, kappa_max=2.0), z=(em.CPML(6), em.PMC())),
        cylindrical=em.Cylindrical(m=2),
        steps=30,
        sources={"dipole": em.Dipole("Er", at(9.7, 12), PULSE, moment=1e-13)},
        monitors={
            "fields": em.FieldMonitor(("Ep",), at(10, 12), at(20, 10), FREQUENCIES),
            "out": em.FluxMonitor("r", at(14, 12), at(0, 10), FREQUENCIES),
            "up": em.FluxMonitor("z", at(8, 14), at(16, 0), FREQUENCIES),
            "time": em.TimeMonitor(("Ez", "Hp"), at(7, 11), at(4, 0), every=7),
            "energy": em.EnergyMonitor(every=5),
        },
    )


def absorbers():
    """Absorbers with a random medium in them, beside a layer and a wall."""
    eps = random_permittivity((36, 40))
    return em.Simulation(
        Grid.uniform(eps.shape, CELL),
        em.Medium(eps, conductivity=1e3 * (eps - 1)),
        em.Boundaries(
            x=(em.PEC(), em.Absorber(20)), y=(em.CPML(8), em.Absorber(20, 2, 1e-2))
        ),
        polarisation="Hz",
        steps=30,
        sources={"dipole": em.Dipole("Ex", at(10.6, 14), PULSE, moment=1e-6)},
        monitors={
            "fields": em.FieldMonitor(("Ey",), at(10, 14), at(8, 8), FREQUENCIES),
            "flux": em.FluxMonitor("y", at(8, 16), at(14, 0), FREQUENCIES),
            "energy": em.EnergyMonitor(every=5),
        },
    )


SCENES = {
    "1-D": one_dimensional,
    "Ez": partial(two_dimensional, "Ez"),
    "Hz": partial(two_dimensional, "Hz"),
    "walls": walls,
    "bloch": bloch,
    "3-D": three_dimensional,
    "rz": cylindrical,
    "absorbers": absorbers,
}


def _without_waves(sim):
    """A simulation without plane waves, which want a plain medium at their faces."""
    keep = {k: s for k, s in sim.sources.items() if not isinstance(s, em.PlaneWave)}
    return eqx.tree_at(lambda s: s.sources, sim, keep)


def dispersive(scene):
    """A scene with poles of every kind, in two boxes that overlap.

    One ends at the faces, inside their layers, walls or periods. In the scene "axial",
    in 3-D, they act on some components alone.
    """
    axial = scene == "axial"
    sim = _without_waves(SCENES["3-D" if axial else scene]())
    random = np.random.default_rng(5)
    shape = sim.grid.shape
    boxes = (
        tuple((n // 4, n // 2 + 1) for n in shape),
        tuple((n // 2, n) for n in shape),
    )
    poles = (
        (em.Lorentz(0.8, 3e14, 2e13), em.Debye(0.5, 3e-16)),
        (em.Drude(1.5e14, 1e13), em.PoleResidue(-1e14 + 2e15j, 3e13 - 6e14j)),
    )
    parts = [
        jnp.asarray(random.uniform(0.2, 1, [b - a for a, b in box]), float)
        for box in boxes
    ]
    if axial:
        parts = {"Ex": parts[0]}, {"Ex": 2 * parts[1], "Ey": parts[1]}
    dispersions = tuple(map(em.Dispersion, boxes, poles, parts))
    keep = {name: m for name, m in sim.monitors.items() if name != "energy"}
    medium = em.Medium(
        sim.medium.permittivity,
        conductivity=sim.medium.conductivity,
        dispersions=dispersions,
    )
    return eqx.tree_at(lambda s: (s.medium, s.monitors), sim, (medium, keep))


def skewed(scene, *, poles=False):
    """A scene with full tensors up to its faces, and poles across the same cells."""
    sim = dispersive(scene) if poles else _without_waves(SCENES[scene]())
    random = np.random.default_rng(6)
    shape = sim.grid.shape
    # The first axis has a gap at its low end; the others are filled.
    box = tuple((3 if a == 0 else 0, n) for a, n in enumerate(shape))
    size = tuple(high - low for low, high in box)
    pairs = ("xy",) if len(shape) == 2 else ("xy", "xz", "yz")
    inverse = {
        pair: jnp.asarray(random.uniform(-0.1, 0.1, size), float) for pair in pairs
    }
    inverse = {k: x.at[0].set(0) if "x" in k else x for k, x in inverse.items()}
    medium = em.Medium(
        sim.medium.permittivity,
        conductivity=5e3 * (sim.medium.permittivity - 1),
        dispersions=sim.medium.dispersions,
        off_diagonals=em.OffDiagonal(box, inverse),
    )
    keep = {name: m for name, m in sim.monitors.items() if name != "energy"}
    return eqx.tree_at(
        lambda s: (s.medium, s.monitors),
        sim,
        (medium, keep),
        is_leaf=lambda x: x is None,
    )


def enclosed():
    """Poles and tensors inside the faces of a plane wave, and outside to a layer."""
    random = np.random.default_rng(7)
    inside, outside = ((11, 18), (9, 15)), ((23, 32), (0, 24))

    def draw(box, low, high):
        size = [b - a for a, b in box]
        return jnp.asarray(random.uniform(low, high, size), float)

    # The nodes before the boxes have no neighbours; the second begins at a face in y.
    entries = draw(inside, -0.1, 0.1).at[0].set(0).at[:, 0].set(0)
    beyond = draw(outside, -0.1, 0.1).at[0].set(0)
    eps = bared(random_permittivity((32, 24)), (8, 20), (7, 17))
    return em.Simulation(
        Grid.uniform(eps.shape, CELL),
        em.Medium(
            eps,
            conductivity=5e3 * (eps - 1),
            dispersions=(
                em.Dispersion(
                    inside, (em.Lorentz(0.8, 3e14, 2e13),), draw(inside, 0.2, 1)
                ),
                em.Dispersion(
                    outside, (em.Drude(1.5e14, 1e13),), draw(outside, 0.2, 1)
                ),
            ),
            off_diagonals=(
                em.OffDiagonal(inside, {"xy": entries}),
                em.OffDiagonal(outside, {"xy": beyond}),
            ),
        ),
        em.Boundaries.all(em.CPML(5)),
        polarisation="Hz",
        steps=40,
        sources={
            "dipole": em.Dipole("Hz", at(14.5, 5.5), PULSE, moment=1e-6),
            "wave": em.PlaneWave("+x", "Ey", at(14, 12), at(12, 10), PULSE, AMPLITUDE),
        },
        monitors={
            "fields": em.FieldMonitor(("Ex", "Ey"), at(14, 12), at(16, 14), FREQUENCIES)
        },
    )
