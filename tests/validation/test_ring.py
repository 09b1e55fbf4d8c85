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


def poles(trace, dt):
    """Returns the complex frequencies of a decaying trace, by the matrix pencil.

    Reference: Hua and Sarkar, IEEE Trans. Acoust. 38, 814 (1990).
    """
    rows = np.lib.stride_tricks.sliding_window_view(trace, len(trace) // 3)
    _, s, vh = np.linalg.svd(rows, full_matrices=False)
    basis = vh[s > 1e-9 * s[0]].T
    shift = np.linalg.lstsq(basis[:-1], basis[1:], rcond=None)[0]
    # Real traces have poles in pairs; keep those of exp(-i w t) with Re w > 0.
    found = 1j * np.log(np.linalg.eigvals(shift)) / (2 * np.pi * dt)
    return found[found.real > 0]


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
    values = np.ravel(series.values["Ez"]).astype(float)
    after = np.asarray(series.times["Ez"]) > sim.sources["kick"].pulse.duration()
    found = poles(values[after], every * float(dt)) * A / SPEED_OF_LIGHT
    return found[np.argmin(abs(found - EXACT))]


@pytest.mark.slow
@pytest.mark.x64  # the fit needs more digits than float32 leaves after the decay
def test_frequency_of_the_ring_converges_with_second_order():
    coarse, middle, fine = (ring_frequency(r) for r in (10, 20, 30))
    assert abs(middle.real / EXACT.real - 1) <= 1.5e-3
    assert abs(-middle.real / (2 * middle.imag) / 77.25539747710403 - 1) <= 0.05
    first, second, third = (abs(f - EXACT) for f in (coarse, middle, fine))
    assert np.log2(first / second) >= 1.8
    assert np.log(second / third) / np.log(1.5) >= 1.8
