"""Cavities: resonances beside another code and a closed form; densities of states."""

from itertools import pairwise

import jax
import numpy as np
import pytest
from scipy.special import j0

from physax import em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT


A = 1 * MICRO
UNIT = SPEED_OF_LIGHT / A
# Meep 1.25, 20 cells a unit, in c/a; a frequency-domain solve of the same cells has
# 0.2344541314 - 3.147775697e-4 i.
HOLEY = 0.23445415346 - 3.147812367e-4j


def holey_waveguide(cells):
    """Returns the modes of a waveguide with three holes on either side of a defect.

    Width 1.2, permittivity 13, holes of radius 0.36 a unit apart, 1.4 at the defect.
    Hz is even about both planes of symmetry: a quarter between electric walls.
    """
    dx = A / cells
    grid = Grid.uniform((round(6.2 * cells), 3 * cells), dx)
    scene = [em.Structure(em.Box(0.0, (np.inf, 1.2 * A)), em.Material(13.0))]
    scene += [
        em.Structure(em.Circle(((0.7 + i) * A, 0.0), 0.36 * A), em.Material(1.0))
        for i in range(3)
    ]
    absorber = em.CPML(cells)
    pulse = em.GaussianPulse(0.25 * UNIT, 0.04 * UNIT)
    every = cells // 4
    sim = em.Simulation(
        grid,
        em.rasterise(scene, grid, components=("Hz", "Ex", "Ey")),
        em.Boundaries(x=(em.PEC(), absorber), y=(em.PEC(), absorber)),
        sources={"kick": em.Dipole("Hz", (0.0, 0.0), pulse)},
        monitors={"bell": em.TimeMonitor(("Hz",), (0.5 * A, 0.3 * A), (0, 0), every)},
        polarisation="Hz",
        # The pulse, and 100 units of c/a after it: a fifth of a lifetime.
        steps=round(212 * cells),
    )
    bell = em.simulate(sim).monitors["bell"]
    return em.resonances(bell, (0.2 * UNIT, 0.3 * UNIT), start=pulse.duration())


def test_cavity_in_a_holey_waveguide():
    found = holey_waveguide(20)
    assert found.frequency.shape == (1,)
    assert found.frequency[0] / UNIT == pytest.approx(HOLEY.real, rel=5e-3)
    assert found.quality[0] == pytest.approx(-HOLEY.real / 2 / HOLEY.imag, rel=0.1)
    assert found.error[0] < 1e-6 * found.frequency[0]


INDEX = 3.0


def mirror(f):
    """Returns the reflection of two layers of quarter waves, of a frequency in c/a."""
    r = 0.0
    # From the outside in: glass, a gap, glass, each a quarter of a wave at f = 1.
    indices = [1.0, INDEX, 1.0, INDEX, 1.0]
    for outer, inner in pairwise(indices):
        interface = (inner - outer) / (inner + outer)
        r = (interface + r) / (1 + interface * r)
        r = r * np.exp(2j * np.pi * f * 2 * 0.25)
    # The last quarter wave is half of the cavity.
    return r


def planar_cavity(cells):
    """Runs a sheet in the middle of a half-wave cavity between the mirrors, in 1-D."""
    dx = A / cells
    layer = 1 / (4 * INDEX)
    reach = 0.25 + layer + 0.25 + layer
    grid = Grid.centred((2 * round((reach + 0.5) * cells),), dx)
    glass = em.Material(INDEX**2)
    middles = [0.25 + layer / 2, 0.5 + 1.5 * layer]
    scene = [
        em.Structure(em.Box(side * x * A, layer * A), glass)
        for x in middles
        for side in (-1, 1)
    ]
    dipole = em.Dipole("Ez", (0.0,), em.GaussianPulse(UNIT, 0.1 * UNIT))
    frequencies = np.array([0.9, 0.98, 0.995, 1.0, 1.01, 1.1])
    sim = em.Simulation(
        grid,
        em.rasterise(scene, grid),
        em.Boundaries.all(em.CPML(cells // 4)),
        sources={"sheet": dipole},
        monitors={
            "seen": em.EmissionMonitor(dipole, frequencies * UNIT),
            "bell": em.TimeMonitor(("Ez",), (0.1 * A,), (0.0,), cells // 12),
        },
        steps=300 * cells,
    )
    seen = em.simulate(sim).monitors
    start = dipole.pulse.duration()
    bell = em.resonances(seen["bell"], (0.8 * UNIT, 1.2 * UNIT), start=start)
    return frequencies, em.purcell(seen["seen"]), bell


@pytest.mark.slow
def test_planar_cavity_has_the_resonance_and_the_density_of_its_mirrors():
    # A sheet between mirrors of reflection r emits Re (1 + r) / (1 - r); the mode is
    # where that diverges.
    pole = 1 - 0.01j
    for _ in range(20):
        h = 1e-6
        pole -= (mirror(pole) - 1) * 2 * h / (mirror(pole + h) - mirror(pole - h))
    assert abs(mirror(pole) - 1) < 1e-12
    errors = []
    for cells in (120, 240):
        frequencies, factor, bell = planar_cavity(cells)
        r = mirror(frequencies)
        exact = np.real((1 + r) / (1 - r))
        assert exact.max() > 30
        found = bell.complex_frequency[np.argmin(bell.error)] / UNIT
        errors.append([np.max(np.abs(factor / exact - 1)), abs(found - pole)])
    (density, mode), (finer, second) = errors
    # The mode is shifted by a hundredth of its width: on the flank that is 1 %.
    assert second < 1e-4
    assert finer < 0.02
    # Of second order: the faces lie on nodes.
    assert np.log2(density / finer) > 1.9
    assert np.log2(mode / second) > 1.9


def wall(cells):
    """Returns the Purcell factor of a line above a conductor, and the exact one."""
    dx, layer, side = A / cells, cells // 2, cells
    frequencies = np.array([0.8, 0.9, 1.0, 1.1, 1.2])
    height = 0.6
    pulse = em.GaussianPulse(UNIT, 0.15 * UNIT)
    seen = {}
    for name, low, below in [("wall", em.PEC(), 0), ("open", em.CPML(layer), layer)]:
        grid = Grid.uniform(
            (side + layer, side + layer + below + round(height * cells)),
            dx,
            (0.0, -below * dx),
        )
        line = em.Dipole("Ez", (0.0, height * A), pulse)
        sim = em.Simulation(
            grid,
            boundaries=em.Boundaries(
                x=(em.PMC(), em.CPML(layer)), y=(low, em.CPML(layer))
            ),
            sources={"line": line},
            monitors={"seen": em.EmissionMonitor(line, frequencies * UNIT)},
            steps=24 * cells,
            polarisation="Ez",
        )
        seen[name] = em.simulate(sim).monitors["seen"]
    exact = 1 - j0(2 * 2 * np.pi * frequencies * height)
    return seen["wall"], seen["open"], exact


@pytest.mark.slow
def test_line_above_a_conductor():
    # Its image has the opposite sign: P / P0 = 1 - J0(2 k h).
    errors, alone = [], []
    for cells in (20, 40):
        seen, reference, exact = wall(cells)
        errors.append(np.max(np.abs(em.purcell(seen, reference) - exact)))
        alone.append(np.max(np.abs(em.purcell(seen) - exact)))
    assert errors[0] < 1e-2
    assert errors[1] < 2e-3
    assert np.log2(errors[0] / errors[1]) > 1.8
    # The errors of the cells at the line itself cancel in a reference run.
    assert all(one < two / 2 for one, two in zip(errors, alone, strict=True))


def plates(cells):
    """Returns the emission midway between conductors, in the open, and the exact ratio.

    Of a dipole parallel to plates a distance d apart, with the guided waves of odd
    order m < k d / pi: sum (3 pi / 2 k d) (1 + (m pi / k d)^2).
    """
    dx, gap = A / cells, 0.8 * A
    frequencies = np.array([0.9, 1.0, 1.1])
    pulse = em.GaussianPulse(UNIT, 0.08 * UNIT)
    # Ex is even about the planes y = 0 and z = 0, on which it has samples.
    dipole = em.Dipole("Ex", (0.0, 0.0, 0.0), pulse)
    absorber = em.CPML(cells)
    seen = {}
    for name, height, ceiling, reach in [
        ("plates", round(gap / 2 / dx), em.PEC(), 3 * cells // 2),
        ("open", 2 * cells, absorber, cells),
    ]:
        wide = reach + cells
        grid = Grid.uniform(
            (2 * wide, wide, height), dx, (-(wide + 0.5) * dx, 0.0, 0.0)
        )
        sim = em.Simulation(
            grid,
            boundaries=em.Boundaries(
                x=absorber, y=(em.PMC(), absorber), z=(em.PMC(), ceiling)
            ),
            sources={"dipole": dipole},
            monitors={"seen": em.EmissionMonitor(dipole, frequencies * UNIT)},
            steps=60 * cells,
        )
        # The tests are compiled for their many short programs; this one runs for long.
        run = jax.jit(
            em.simulate, compiler_options={"xla_backend_optimization_level": 3}
        )
        seen[name] = run(sim).monitors["seen"]
    kd = 2 * np.pi * frequencies * UNIT / SPEED_OF_LIGHT * gap
    orders = np.array([[1], [3]])
    guided = np.where(orders * np.pi < kd, 1 + (orders * np.pi / kd) ** 2, 0)
    exact = 3 * np.pi / (2 * kd) * np.sum(guided, axis=0)
    return seen["plates"], seen["open"], exact


@pytest.mark.slow
def test_dipole_between_conducting_plates():
    seen, reference, exact = plates(20)
    np.testing.assert_allclose(em.purcell(seen), exact, rtol=0.01)
    np.testing.assert_allclose(em.purcell(seen, reference), exact, rtol=0.005)
