"""Scattering and absorption by gold, against the series of a cylinder and a sphere."""

import functools

import numpy as np
import pytest
from scipy.special import h1vp, hankel1, jv, jvp, spherical_jn, spherical_yn

from physax import em
from physax.units import ETA_0, FEMTO, MICRO, NANO, SPEED_OF_LIGHT


RADIUS = 60 * NANO
WAVES = np.array([0.6, 0.7]) * MICRO
FREQUENCIES = SPEED_OF_LIGHT / WAVES
GOLD = em.library("Au", wavelengths=WAVES)
INDEX = np.sqrt(em.complex_permittivity(GOLD, FREQUENCIES).astype(complex))
SIZE = 2 * np.pi * RADIUS / WAVES
PULSE = em.GaussianPulse(np.mean(FREQUENCIES), np.ptp(FREQUENCIES))


def of_cylinder(m, x):
    """Returns efficiencies of scattering and absorption, the magnetic field along.

    Bohren and Huffman, *Absorption and Scattering of Light by Small Particles* (1983),
    section 8.4.
    """
    n = np.arange(-20, 21)
    above = m * jvp(n, x) * jv(n, m * x) - jv(n, x) * jvp(n, m * x)
    below = m * jv(n, m * x) * h1vp(n, x) - hankel1(n, x) * jvp(n, m * x)
    parts = above / below
    scattered = 2 / x * np.sum(np.abs(parts) ** 2)
    return scattered, 2 / x * np.sum(parts.real) - scattered


def of_sphere(m, x):
    """Returns the same of a sphere: section 4.4."""
    n = np.arange(1, 15)

    def riccati(z):
        f, g = (spherical_jn(n, z), spherical_yn(n, z))
        df, dg = (spherical_jn(n, z, True), spherical_yn(n, z, True))
        return z * f, f + z * df, z * (f + 1j * g), f + 1j * g + z * (df + 1j * dg)

    psi, dpsi, xi, dxi = riccati(x)
    inner, dinner, _, _ = riccati(m * x)
    a = (m * inner * dpsi - psi * dinner) / (m * inner * dxi - xi * dinner)
    b = (inner * dpsi - m * psi * dinner) / (inner * dxi - m * xi * dinner)
    scattered = 2 / x**2 * np.sum((2 * n + 1) * (np.abs(a) ** 2 + np.abs(b) ** 2))
    return scattered, 2 / x**2 * np.sum((2 * n + 1) * np.real(a + b)) - scattered


def run(structures, spacing, ndim):
    size = {2: 0.4 * MICRO, 3: 0.34 * MICRO}[ndim]
    middle = (0,) * ndim
    around = {"scattered": 0.28 * MICRO, "all": 0.16 * MICRO}
    monitors: dict[str, em.AbstractMonitor] = {
        name: em.NearFieldMonitor(middle, (width,) * ndim, FREQUENCIES)
        for name, width in around.items()
    }
    monitors["middle"] = em.FieldMonitor(
        components=("Ey",), centre=middle, size=middle, frequencies=FREQUENCIES
    )
    wave = em.PlaneWave(
        direction="+x",
        component="Ey",
        centre=middle,
        size=(0.2 * MICRO,) * ndim,
        pulse=PULSE,
    )
    sim = em.scene(
        structures,
        (size,) * ndim,
        WAVES,
        spacing=spacing,
        polarisation="Hz" if ndim == 2 else None,
        boundaries=em.Boundaries.all(em.CPML(int(64 * NANO / spacing))),
        sources={"wave": wave},
        monitors=monitors,
        steps=int((60e-15 if ndim == 2 else 160e-15) * 1.75 * SPEED_OF_LIGHT / spacing),
        averaging="staircase",
    )
    return em.simulate(sim, until=em.Decay(1e-8)).monitors


@functools.cache
def power(spacing, ndim):
    """Returns W fs^2 per area of the wave: fields are in units of its pulse."""
    blank = run([], spacing, ndim)["middle"].values["Ey"]
    return np.abs(np.ravel(blank) / FEMTO) ** 2 / (2 * ETA_0)


def errors(spacing, ndim, shift=(0.0, 0.0, 0.0)):
    """Relative ones of scattering and absorption, at both wavelengths."""
    centre = tuple(spacing * np.array(shift[:ndim]))
    kind, series = {2: (em.Circle, of_cylinder), 3: (em.Sphere, of_sphere)}[ndim]
    found = run([em.Structure(kind(centre, RADIUS), GOLD)], spacing, ndim)
    both = found["scattered"].outflow, em.absorbed_power(found["all"])
    shadow = {2: 2 * RADIUS, 3: np.pi * RADIUS**2}[ndim]
    exact = np.transpose([series(m, x) for m, x in zip(INDEX, SIZE, strict=True)])
    return np.array(both) / (power(spacing, ndim) * shadow) / exact - 1


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize(
    ("shift", "most"),
    [((0.0, 0.0), 0.03), ((0.3, 0.17), 0.03), ((0.5, 0.5), 0.03), ((0.45, 0.05), 0.05)],
)
def test_a_cylinder_of_gold_in_steps(shift, most):
    # Where each sample goes by its own cell, absorption is 5 to 13 % off.
    assert np.all(np.abs(errors(5 * NANO, 2, shift)) < most)
    assert np.all(np.abs(errors(2.5 * NANO, 2, shift)) < most / 1.5)


@pytest.mark.slow
@pytest.mark.f32
def test_a_sphere_of_gold_in_steps():
    scattered, absorbed = errors(8 * NANO, 3, (0.3, 0.17, 0.42))
    # These are 15 to 20 %, and 25 to 50 % where each sample goes by its own cell.
    assert np.all(np.abs(scattered) < 0.06)
    assert np.all(np.abs(absorbed) < 0.04)
