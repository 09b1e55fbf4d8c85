"""A plate of a crystal turns polarisation: the retardance of a diagonal tensor."""

import numpy as np
import pytest

from physax import em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT


FREQUENCY = SPEED_OF_LIGHT / MICRO
# Quartz-like, but with a larger difference; the third index is not seen along z.
INDICES = {"Ex": 1.5, "Ey": 1.6}
CRYSTAL = em.Material(permittivity=(1.5**2, 1.6**2, 1.9**2))
THICKNESS = 1 * MICRO
EVERYWHERE = float("inf")


def transmitted(material, cells):
    """Returns the complex amplitude behind a plate for each polarisation, in 3-D.

    Both are in one run: waves along z in a periodic cell of 2 x 2 do not mix.
    """
    dx = MICRO / cells
    grid = Grid.uniform((2, 2, 4 * cells), dx)
    middle = (dx, dx, 2 * MICRO)
    pulse = em.GaussianPulse(FREQUENCY, FREQUENCY / 10)
    plate = em.Structure(
        em.Box((0.0, 0.0, 2 * MICRO), (EVERYWHERE, EVERYWHERE, THICKNESS)), material
    )
    names = em.Simulation(grid, steps=1).component_names
    sim = em.Simulation(
        grid,
        em.rasterise([plate], grid, components=names),
        em.Boundaries(x=em.Periodic(), y=em.Periodic(), z=em.CPML(cells // 2)),
        sources={
            name: em.PlaneWave(
                "+z", name, middle, (EVERYWHERE, EVERYWHERE, 2 * MICRO), pulse
            )
            for name in INDICES
        },
        monitors={
            "behind": em.FieldMonitor(
                tuple(INDICES), (dx, dx, 2.9 * MICRO), (0, 0, 0), FREQUENCY
            )
        },
        steps=60 * cells,
    )
    values = em.simulate(sim).monitors["behind"].values
    return {name: complex(values[name].ravel()[0]) for name in INDICES}


def exact(index):
    """Returns the transmission of a plate over that of the vacuum it replaces."""
    phase = 2 * np.pi * THICKNESS / MICRO
    r = (1 - index) / (1 + index)
    passage = np.exp(1j * index * phase)
    return (1 - r**2) * passage / (1 - r**2 * passage**2) / np.exp(1j * phase)


@pytest.mark.slow
def test_retardance_of_an_anisotropic_plate():
    cells = 40
    plate, empty = transmitted(CRYSTAL, cells), transmitted(em.Material(), cells)
    found = {name: plate[name] / empty[name] for name in INDICES}
    wanted = {name: exact(index) for name, index in INDICES.items()}
    turned = np.angle(found["Ey"] / found["Ex"])
    expected = np.angle(wanted["Ey"] / wanted["Ex"])
    difference = (turned - expected) / (2 * np.pi * THICKNESS / MICRO)
    print(f"retardance {turned:.5f}, exact {expected:.5f}: dn {difference:+.1e}")
    errors = {name: float(abs(found[name] / wanted[name] - 1)) for name in INDICES}
    print(errors)
    # As a difference of indices, which is 0.1.
    assert abs(difference) < 1e-3
    # n^3 (k dx)^2 / 24 of each index is 4e-3: 2.6e-2 over a wavelength.
    assert max(errors.values()) < 3e-2
