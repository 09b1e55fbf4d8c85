"""A sphere in a Gaussian beam: the force along the beam against the series of waves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.em._clock import Clock
from physax.grid import Grid
from physax.units import ETA_0, MICRO, SPEED_OF_LIGHT
from tests.validation.mie_series import N, angular, mie


pytestmark = pytest.mark.x64

FREQUENCY = SPEED_OF_LIGHT / MICRO
K = 2 * np.pi / MICRO
RADIUS, WAIST, INDEX = 0.6 * MICRO, 0.6 * MICRO, 1.2


def exact(places):
    """Returns the force times c over the power, by places of the sphere ahead.

    The momentum of the partial waves that come in, less that of those that go out.
    """
    nodes, weights = np.polynomial.legendre.leggauss(100)
    theta, weights = np.pi / 4 * (1 + nodes), np.pi / 4 * weights
    s, c = np.sin(theta), np.cos(theta)
    area = K**2 * s * c * weights
    envelope = np.exp(-((K * WAIST * s) ** 2) / 4)
    flow = (2 * np.pi) ** 3 * envelope**2 * (1 - s**2 / 2) * c / (2 * ETA_0)
    waves = 2 * np.pi * envelope * area / np.sqrt(np.sum(flow * area))
    pi, tau = angular(theta)
    a, b = mie(K * RADIUS, INDEX)
    found = []
    for place in places:
        here = waves * np.exp(1j * K * place * c) / (N[:, None] * (N[:, None] + 1))
        g = np.sum(here * (c * tau.T + pi.T), axis=1)
        h = np.sum(here * (c * pi.T + tau.T), axis=1)
        both = (2 * N + 1) / (N * (N + 1)) * g * np.conj(h)
        total = np.sum(both * (a + np.conj(b) - 2 * a * np.conj(b)))
        for amplitude, one in ((g, a), (h, b)):
            pair = amplitude[:-1] * np.conj(amplitude[1:])
            pair = N[:-1] * (N[:-1] + 2) / (N[:-1] + 1) * pair
            next_ = np.conj(one[1:])
            total = total + np.sum(pair * (one[:-1] + next_ - 2 * one[:-1] * next_))
        found.append(np.real(total) * 2 * np.pi / K**2 / (2 * ETA_0))
    return np.array(found)


def force(cells, place):
    """Returns the same by FDTD."""
    cell = MICRO / cells
    grid = Grid.uniform((round(4.4 * cells), 4 * cells), cell, (0.0, -2 * MICRO))
    ball = em.Structure(em.Circle((0.0, 0.0), RADIUS), em.Material(INDEX**2))
    port = em.Port((0.0, -1.4 * MICRO), 8 * MICRO, "+z")
    pulse = em.GaussianPulse(FREQUENCY, FREQUENCY / 8)
    beam = em.GaussianBeam(port, pulse, WAIST, distance=1.4 * MICRO - place)
    sim = em.Simulation(
        grid,
        em.rasterise([ball], grid, components=em.Cylindrical.components),
        em.Boundaries(r=em.CPML(8), z=em.CPML(8)),
        cylindrical=em.Cylindrical(1),
        sources={"beam": beam},
        monitors={"f": em.ForceMonitor((0, 0), (1.6 * MICRO,) * 2, FREQUENCY)},
        steps=40 * cells,
    )
    n = np.arange(sim.steps)
    values = jax.vmap(lambda half: pulse(Clock(half, sim.dt), jnp.zeros(())))(2 * n)
    wave = np.exp(2j * np.pi * FREQUENCY * n * float(sim.dt))
    power = abs(np.sum(values * wave) * float(sim.dt) * 1e15) ** 2
    return float(em.simulate(sim).monitors["f"].force["z"][0]) * SPEED_OF_LIGHT / power


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("place", [0.4, -1.2, 1.2])
def test_the_force_of_a_beam_is_that_of_its_waves(place):
    # Beyond the focus the gradient takes from the pressure, before it adds.
    expected, largest = exact(np.array([place, -1.2]) * MICRO)
    assert abs(force(20, place * MICRO) - expected) < 0.02 * largest
