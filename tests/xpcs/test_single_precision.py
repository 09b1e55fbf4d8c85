"""Fits while JAX computes in float32."""

import numpy as np
import pytest
from scipy.optimize import curve_fit

from physax.xpcs import OneTime, Simple, fit_g2


pytestmark = pytest.mark.f32

LAGS = np.geomspace(1e-2, 1e2, 60).astype(np.float32)


def decay(lags, tau, contrast, offset):
    return offset + contrast * np.exp(-2 * lags / tau)


@pytest.mark.parametrize("sigma", [2e-3, 2e-4])
def test_curves_of_many_digits_converge_to_the_minimum_of_double_precision(sigma):
    # Values are 100 and 1000 standard deviations above their offset: in float32 the
    # cost that sums of squares leave is rounded by more than a step changes it.
    noise = np.random.default_rng(0).normal(0, sigma, (20, LAGS.size))
    g2 = (decay(LAGS, 1 / 0.7, 0.2, 1.0) + noise).astype(np.float32)
    found = fit_g2(OneTime(LAGS, g2, sigma, q=np.full(20, 0.005)), Simple())
    assert [r.message for r in found.results if not r.success] == []
    best = [curve_fit(decay, LAGS.astype(float), y, (1, 0.2, 1))[0][0] for y in g2]
    assert np.max(np.abs(found.tau - best) / found.tau_error) < 0.02
