"""A ring resonator: complex frequency of a leaky mode against the exact one."""

import json
from pathlib import Path

import numpy as np
import pytest

from physax import em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT


DATA = json.loads((Path(__file__).parent / "data" / "em_analytic.json").read_text())
ROW = DATA["ring_ez"]["rows"][0]
EXACT = ROW["f_re"] + 1j * ROW["f_im"]  # in c/a, time exp(-i w t)
A = 1 * MICRO


def ring_frequency(resolution, pad=2, layer=1):
    """Returns the frequency of the mode m = 3 in c/a from a quarter of the ring."""
    cells = (2 + pad + layer) * resolution
    dx = A / resolution
    grid = Grid.uniform((cells, cells), dx)
    scene = [
        em.Structure(em.Circle((0.0, 0.0), 2 * A), em.Material(3.4**2)),
        em.Structure(em.Circle((0.0, 0.0), 1 * A), em.Material(1.0)),
    ]
    absorber = em.CPML(layer * resolution)
    carrier = EXACT.real * SPEED_OF_LIGHT / A
    dt = 0.7 * dx / SPEED_OF_LIGHT
    every = resolution
    sim = em.Simulation(
        grid,
        em.rasterise(scene, grid, components=("Ez", "Hx", "Hy")),
        # cos(3 phi) is even in y and odd in x.
        em.Boundaries(x=(em.PEC(), absorber), y=(em.PMC(), absorber)),
        sources={
            "kick": em.Dipole(
                "Ez", (1.5 * A, 0.0), em.GaussianPulse(carrier, carrier / 6)
            )
        },
        monitors={"bell": em.TimeMonitor(("Ez",), (1.7 * A, 0.0), (0.0, 0.0), every)},
        polarisation="Ez",
        dt=dt,
        steps=int(500 / 0.7 * resolution),
    )
    series = em.simulate(sim).monitors["bell"]
    over = sim.sources["kick"].pulse.duration()
    found = em.resonances(series, (0.9 * carrier, 1.1 * carrier), start=over)
    modes = found.complex_frequency * A / SPEED_OF_LIGHT
    return modes[np.argmin(abs(modes - EXACT))]


@pytest.fixture(scope="module")
def study():
    """Returns the frequency at three resolutions, and what they lead to."""
    return em.converge(ring_frequency, (10, 15, 20), progress=False)


@pytest.mark.slow
@pytest.mark.x64  # the fit needs more digits than float32 leaves after the decay
def test_frequency_of_the_ring_converges_with_second_order(study):
    fine = study.values[-1]
    assert abs(fine.real / EXACT.real - 1) <= 1.5e-3
    assert abs(-fine.real / (2 * fine.imag) / 77.25539747710403 - 1) <= 0.05
    first, second, third = abs(study.values - EXACT)
    assert np.log(first / second) / np.log(15 / 10) >= 1.8
    assert np.log(second / third) / np.log(20 / 15) >= 1.8


@pytest.mark.slow
@pytest.mark.x64
def test_extrapolated_frequency_of_the_ring(study):
    # Without knowing the exact one: nearer to it than 20 cells are, and
    # inside of its error bar.
    print(study, abs(study.limit - EXACT), study.limit.real / EXACT.real - 1)
    assert study.order == pytest.approx(2, abs=0.15)
    assert abs(study.limit.real / EXACT.real - 1) <= 1e-4
    assert abs(study.limit - EXACT) <= study.error
    assert abs(study.limit - EXACT) <= 0.2 * abs(study.values[-1] - EXACT)
