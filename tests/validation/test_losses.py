"""Waves in lossy and anisotropic media decay and turn at the analytic rate."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid
from physax.units import EPSILON_0, MU_0, SPEED_OF_LIGHT
from tests.validation.stepping import slope, trace


pytestmark = pytest.mark.x64

LENGTH = 1e-6
SIGMA, MAGNETIC = 4e3, 7e8


def rate(samples, dt):
    """Returns s of samples that go as Re(A exp(s t)), from their recursion."""
    now = np.stack([samples[1:-1], samples[:-2]], -1)
    (p, q), *_ = np.linalg.lstsq(now, samples[2:], rcond=None)
    root = np.roots([1, -p, -q])
    return np.log(root[np.argmax(root.imag)].astype(complex)) / dt


def exact_rate(k_squared, epsilon, mu, sigma=0.0, magnetic=0.0):
    """Returns s from (s + sigma / eps)(s + sigma_m / mu) = -c^2 k^2 / (eps_r mu_r)."""
    a, b = sigma / (epsilon * EPSILON_0), magnetic / (mu * MU_0)
    omega2 = SPEED_OF_LIGHT**2 * k_squared / (epsilon * mu)
    return -(a + b) / 2 + 1j * np.sqrt(omega2 - ((a - b) / 2) ** 2 + 0j)


def found_rate(cells, ndim, polarisation, start, medium, k):
    """Returns the rate of a standing wave of wavevector `k` that starts in `start`."""
    shape = tuple(cells if k[a] else 4 for a in range(ndim))
    grid = Grid.uniform(shape, LENGTH / cells)
    sim = em.Simulation(
        grid,
        medium(shape),
        em.Boundaries.all(em.Periodic()),
        polarisation=polarisation,
        steps=8 * cells,
        dt=0.5 * LENGTH / cells / SPEED_OF_LIGHT,
    )
    wave = np.zeros(())
    for axis in range(ndim):
        own = "xyz".index(start[1])
        half = 0.5 if (axis == own) == (start[0] == "E") else 0.0
        x = np.asarray(grid.coordinates(axis, half))
        wave = np.add.outer(wave, k[axis] * x)
    wave = jnp.asarray(np.cos(wave))
    samples = trace(sim, {start: wave}, lambda f: jnp.mean(f[start] * wave))
    return rate(np.asarray(samples), float(sim.dt))


def everywhere(value):
    """The same number as a scalar, or as an array: another form of the update."""
    return lambda shape, array: jnp.full(shape, value) if array else value


K = 2 * np.pi / LENGTH
# Name: dimension, polarisation, component to start in, medium (shape, as arrays?),
# wavevector, exact rate.
CASES = {
    "electric": (
        (1, None, "Ez"),
        lambda n, a: em.Medium(2.0, conductivity=everywhere(SIGMA)(n, a)),
        (K,),
        exact_rate(K**2, 2.0, 1.0, sigma=SIGMA),
    ),
    "magnetic": (
        (1, None, "Ez"),
        lambda n, a: em.Medium(2.0, magnetic_conductivity=everywhere(MAGNETIC)(n, a)),
        (K,),
        exact_rate(K**2, 2.0, 1.0, magnetic=MAGNETIC),
    ),
    "both": (
        (2, "Ez", "Ez"),
        lambda n, a: em.Medium(
            everywhere(2.0)(n, a),
            everywhere(1.4)(n, a),
            everywhere(SIGMA)(n, a),
            everywhere(MAGNETIC)(n, a),
        ),
        (K, K),
        exact_rate(2 * K**2, 2.0, 1.4, SIGMA, MAGNETIC),
    ),
    "permeability by component, Ez": (
        (2, "Ez", "Ez"),
        lambda n, a: em.Medium(
            2.0,
            {"Hx": everywhere(1.5)(n, a), "Hy": 2.5},
            {"Ez": everywhere(SIGMA)(n, a)},
        ),
        (K, K),
        exact_rate(K**2 / 1.5 + K**2 / 2.5, 2.0, 1.0, SIGMA),
    ),
    "permittivity by component, Hz": (
        (2, "Hz", "Hz"),
        lambda n, a: em.Medium(
            {"Ex": everywhere(1.5)(n, a), "Ey": everywhere(3.0)(n, a)},
            magnetic_conductivity={"Hz": MAGNETIC},
        ),
        (K, K),
        exact_rate(K**2 / 1.5 + K**2 / 3.0, 1.0, 1.0, magnetic=MAGNETIC),
    ),
    "conductivity by component, 3-D, Ex": (
        (3, None, "Ex"),
        lambda n, a: em.Medium(
            {"Ex": everywhere(1.5)(n, a), "Ey": 2.5, "Ez": 4.0},
            {"Hx": 1.0, "Hy": 1.2, "Hz": 1.3},
            {"Ex": SIGMA, "Ey": everywhere(0.0)(n, a), "Ez": 0.0},
        ),
        (0.0, 0.0, K),
        exact_rate(K**2, 1.5, 1.2, SIGMA),
    ),
    "conductivity by component, 3-D, Ey": (
        (3, None, "Ey"),
        lambda n, a: em.Medium(
            {"Ex": 1.5, "Ey": everywhere(2.5)(n, a), "Ez": 4.0},
            {"Hx": 1.1, "Hy": 1.2, "Hz": 1.3},
            {"Ex": SIGMA, "Ey": 0.5 * SIGMA, "Ez": 0.0},
            {"Hx": MAGNETIC, "Hy": 0.0, "Hz": everywhere(0.0)(n, a)},
        ),
        (0.0, 0.0, K),
        exact_rate(K**2, 2.5, 1.1, 0.5 * SIGMA, MAGNETIC),
    ),
}


# More of what others show.
LONG = {"magnetic", "both"}


@pytest.mark.parametrize(
    "arrays",
    [False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["numbers", "arrays"],
)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(x, marks=[pytest.mark.slow] * ("3-D" in x or x in LONG))
        for x in CASES
    ],
)
def test_lossy_wave_decays_at_the_analytic_rate(case, arrays):
    where, medium, k, exact = CASES[case]
    sizes = (20, 40)
    errors = []
    for cells in sizes:
        found = found_rate(cells, *where, lambda n: medium(n, arrays), k)
        errors.append(abs(found / exact - 1))
    print(f"errors {errors[0]:.1e} {errors[1]:.1e}, order {-slope(sizes, errors):.2f}")
    # (k dx)^2 / 24 is 1e-3 at 40 cells.
    assert errors[1] < 2e-3
    assert -slope(sizes, errors) == pytest.approx(2, abs=0.1)
