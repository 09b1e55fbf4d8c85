import re

import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.xpcs import Double, OneTime, Simple, Stretched, fit_g2, power_law


pytestmark = pytest.mark.x64

LAGS = np.geomspace(0.01, 100, 80)
Q = np.array([0.003, 0.005, 0.008])
NOISE = 1e-3


def curves(decays, seed=0, noise=NOISE):
    clean = np.stack([1 + 0.2 * np.asarray(d(jnp.asarray(LAGS))) ** 2 for d in decays])
    drawn = np.random.default_rng(seed).standard_normal(clean.shape)
    return OneTime(LAGS, clean + noise * drawn, NOISE, Q)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("shape", "make"),
    [
        (Simple(), lambda tau: Simple(tau)),
        (Stretched(), lambda tau: Stretched(tau, 0.7)),
        (Double(), lambda tau: Double(tau, 30 * tau, 0.6)),
    ],
)
def test_relaxation_times_are_found_within_their_errors(shape, make):
    times = 1e-5 / Q**2  # diffusion: 1.1 s to 0.16 s
    found = fit_g2(curves([make(tau) for tau in times]), shape)
    assert all(r.success for r in found.results)
    # Three numbers beyond 4.5 standard errors: 2e-5.
    assert np.all(np.abs(found.tau - times) < 4.5 * found.tau_error)
    assert np.allclose(found.contrast, 0.2, atol=0.01)
    reduced = np.array([float(r.reduced_chi2) for r in found.results])
    assert np.all(np.abs(reduced - 1) < 4.5 * np.sqrt(2 / len(LAGS)))


def test_rates_of_diffusion_follow_the_square_of_the_wavevector():
    times = 1e-5 / Q**2
    found = fit_g2(curves([Simple(tau) for tau in times]), Simple())
    law = power_law(found.q, found.rate, found.rate_error)
    error = law.result.standard_errors[law.result.names.index("exponent")]
    assert abs(law.exponent - 2) < 4.5 * max(error, 1e-4)
    assert np.isclose(law.diffusion, 1e5, rtol=0.02)
    assert np.allclose(law(jnp.asarray(Q)), found.rate, rtol=0.02)


def test_power_law_refuses_what_has_no_logarithm():
    with pytest.raises(ArgumentError, match="`rate` must be positive, but is -1"):
        power_law(Q, -np.ones(3), np.ones(3))
    with pytest.raises(ArgumentError, match="at least 3 wavevectors .* but has 2"):
        power_law(Q[:2], np.ones(2), np.ones(2))


def test_numbers_of_each_curve_are_printed_with_their_errors():
    lines = str(fit_g2(curves([Simple(1.0), Simple(2.0), Simple(3.0)]))).splitlines()
    assert len(lines) == 3
    assert re.fullmatch(
        r"q 0.003: tau [01]\.\d{4} ± 0\.00\d\d, gamma [01]\.\d{4} ± 0\.00\d\d, "
        r"contrast 0\.\d{5} ± 0\.000\d\d, offset [01]\.\d{5} ± 0\.000\d\d, reduced "
        r"chi-square [01]\.\d+",
        lines[0],
    )
