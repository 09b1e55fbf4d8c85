"""Scattering and absorption by gold, against the series of a cylinder."""

import functools

import numpy as np
import pytest
from scipy.special import h1vp, hankel1, jv, jvp

from physax import em
from physax.units import ETA_0, FEMTO, MICRO, NANO, SPEED_OF_LIGHT


RADIUS = 60 * NANO
WAVES = np.array([0.6, 0.7]) * MICRO
FREQUENCIES = SPEED_OF_LIGHT / WAVES
GOLD = em.library("Au", wavelengths=WAVES)
PULSE = em.GaussianPulse(np.mean(FREQUENCIES), np.ptp(FREQUENCIES))


def series():
    """Returns the efficiencies of scattering and absorption, the magnetic field along.

    Bohren and Huffman, *Absorption and Scattering of Light by Small Particles* (1983),
    section 8.4.
    """
    n = np.arange(-20, 21)
    found = []
    for wave, square in zip(
        WAVES, em.complex_permittivity(GOLD, FREQUENCIES), strict=True
    ):
        m, x = np.sqrt(complex(square)), 2 * np.pi * RADIUS / wave
        above = m * jvp(n, x) * jv(n, m * x) - jv(n, x) * jvp(n, m * x)
        below = m * jv(n, m * x) * h1vp(n, x) - hankel1(n, x) * jvp(n, m * x)
        parts = above / below
        scattered = 2 / x * np.sum(np.abs(parts) ** 2)
        found.append((scattered, 2 / x * np.sum(parts.real) - scattered))
    return np.array(found).T


def run(structures, spacing, averaging):
    around = {"scattered": 0.28 * MICRO, "all": 0.16 * MICRO}
    monitors: dict[str, em.AbstractMonitor] = {
        name: em.NearFieldMonitor((0, 0), (size,) * 2, FREQUENCIES)
        for name, size in around.items()
    }
    monitors["middle"] = em.FieldMonitor(
        components=("Hz",), centre=(0, 0), size=(0, 0), frequencies=FREQUENCIES
    )
    wave = em.PlaneWave(
        direction="+x",
        component="Ey",
        centre=(0, 0),
        size=(0.2 * MICRO,) * 2,
        pulse=PULSE,
    )
    sim = em.scene(
        structures,
        (0.4 * MICRO,) * 2,
        WAVES,
        spacing=spacing,
        polarisation="Hz",
        boundaries=em.Boundaries.all(em.CPML(int(60 * NANO / spacing))),
        sources={"wave": wave},
        monitors=monitors,
        steps=int(60e-15 * 1.43 * SPEED_OF_LIGHT / spacing),
        averaging=averaging,
    )
    return em.simulate(sim, until=em.Decay(1e-8)).monitors


@functools.cache
def efficiencies(spacing, averaging="staircase"):
    blank = run([], spacing, averaging)["middle"].values["Hz"]
    # Fields hold eta0 H, fluxes are in W fs^2.
    power = np.abs(np.ravel(blank) / FEMTO) ** 2 / (2 * ETA_0)
    rod = em.Structure(em.Circle((0, 0), RADIUS), GOLD)
    found = run([rod], spacing, averaging)
    both = found["scattered"].outflow, em.absorbed_power(found["all"])
    return np.array(both) / (power * 2 * RADIUS)


@pytest.mark.slow
@pytest.mark.x64
def test_a_cylinder_of_gold_in_steps():
    coarse, fine = (efficiencies(s * NANO) / series() - 1 for s in (5, 2.5))
    # Scattering and absorption at both wavelengths.
    assert np.all(np.abs(coarse) < 0.08)
    assert np.all(np.abs(fine) < 0.6 * np.abs(coarse))
