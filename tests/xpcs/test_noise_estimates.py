"""What fits say of the noise of data whose sigma is not known."""

import jax
import numpy as np
import pytest

from physax.xpcs import (
    Diffusion,
    Simple,
    Static,
    TwoTime,
    WhiteNoise,
    fit_g2,
    fit_two_time,
    one_time,
    simulate_two_time,
)


pytestmark = pytest.mark.x64

TIMES = 0.1 * np.arange(40)
MODEL = Static(Diffusion(12000.0, 0.0))


def hold(model):
    return model.diffusion.alpha, model.diffusion.D_offset


def maps(noise):
    return simulate_two_time(
        MODEL,
        TIMES,
        0.0054,
        np.zeros(2),
        contrast=0.25,
        key=jax.random.key(0),
        noise=WhiteNoise(noise),
    ).c2


def test_noise_is_told_and_no_chi_square_where_sigma_is_not_known():
    data = TwoTime(maps(0.03), 0.0054, 0.0, TIMES)
    found = fit_two_time(data, MODEL, fixed=hold)
    # Of 1560 values: 0.03 +- 2 %.
    assert np.allclose(found.noise, 0.03, rtol=0.08)
    told = str(found)
    assert "chi-square" not in told
    assert f"noise of one value {found.noise[0]:.3g} (sigma not known), 1,5" in told
    assert "passes" in told
    line = str(fit_g2(one_time(data), Simple())).splitlines()[0]
    assert "times sigma, which is not known" in line
    assert "chi-square" not in line
    known = fit_two_time(TwoTime(data.c2, 0.0054, 0.0, TIMES, 0.03), MODEL, fixed=hold)
    assert "reduced" in str(known)
    assert "noise" not in str(known)
    assert np.allclose(known.noise, found.noise)


@pytest.mark.parametrize("masked", [False, True])
def test_noise_of_relative_sigmas_is_their_root_mean_square(masked):
    drawn = np.random.default_rng(0).uniform(1, 3, (2, 40, 40))
    sigma = drawn + drawn.transpose(0, 2, 1)
    mask = np.ones((40, 40), bool)
    mask[:, 20:] = not masked
    data = TwoTime(maps(0.03), 0.0054, 0.0, TIMES, sigma, mask, sigma_is_known=False)
    found = fit_two_time(data, MODEL, fixed=hold)
    mean = np.array([np.mean(one[np.triu(mask, 1)] ** 2) for one in sigma])
    expected = np.sqrt(float(found.result.reduced_chi2) * mean)
    assert np.allclose(found.noise, expected, rtol=1e-12)
