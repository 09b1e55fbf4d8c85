"""Errors where the noise is that of a limited number of speckles."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import root_scalar

from physax.fit import least_squares
from physax.xpcs import (
    Diffusion,
    Static,
    TwoTime,
    WhiteNoise,
    frame_covariance,
    simulate_two_time,
    speckle_covariance,
    two_time,
    two_time_from_frames,
    two_time_problem,
)


pytestmark = pytest.mark.x64

Q, STEP = 0.005, 0.1


def hold(model):
    return model.diffusion.alpha, model.diffusion.D_offset


def speckles(frames, pixels, rate, rng):
    """Intensities of fields that decay as exp(-rate t), a speckle in each pixel."""
    memory = np.exp(-rate * STEP)
    drawn = rng.normal(size=(frames, pixels, 2)) @ [1, 1j] / np.sqrt(2)
    fields = [drawn[0]]
    for new in drawn[1:]:
        fields.append(memory * fields[-1] + np.sqrt(1 - memory**2) * new)
    return np.abs(fields) ** 2


def fitted(intensities, rate, mask=None, sigma=None):
    """Fits D0, which is 2 rate / q^2, to maps of frames, maps, pixels."""
    frames, maps, pixels = intensities.shape
    labels = np.repeat(np.arange(1, maps + 1), pixels).reshape(maps, pixels)
    c2 = two_time_from_frames(intensities, labels)
    data = TwoTime(c2, Q, 0.0, STEP * np.arange(frames), sigma=sigma, mask=mask)
    model = Static(Diffusion(2.6 * rate / Q**2, 0.0))
    problem = two_time_problem(data, model, fixed=hold)
    return data, problem, least_squares(problem)


def lasting(off, f, mask):
    """The part u that explains the correlation of neighbouring residuals."""
    near = [
        (a, b, b + 1)
        for a, b in np.ndindex(len(f), len(f) - 1)
        if a not in (b, b + 1) and mask[a, b] and mask[a, b + 1]
    ]
    a, b, c = np.transpose(near)
    seen = np.sum(off[a, b] * off[a, c]) / np.sum(off[a, b] ** 2 + off[a, c] ** 2) * 2

    def excess(u):
        products = u * f[b, c] + u**2 * f[a, b] * f[a, c]
        squares = 1 + u**2 * (f[a, b] ** 2 + f[a, c] ** 2) / 2
        return products.sum() / squares.sum() - seen

    return root_scalar(excess, bracket=(0, 1)).root


@pytest.mark.parametrize("sigma", [None, 0.2])
def test_the_covariance_is_that_of_products_of_normal_numbers(sigma):
    frames, maps = 14, 2
    rng = np.random.default_rng(3)
    light = np.stack([speckles(frames, 150, 2.0, rng) for _ in range(maps)], axis=1)
    mask = np.ones((frames, frames), bool)
    mask[4] = mask[:, 4] = False
    data, problem, result = fitted(rng.poisson(8 * light), 2.0, mask, sigma)
    rate, linear = Q**2 * float(result.values[0]), np.asarray(result.linear)

    lags = STEP * np.abs(np.subtract.outer(np.arange(frames), np.arange(frames)))
    f = np.exp(-rate * lags)
    i, j = np.nonzero(np.triu(mask, 1))
    rows, meat, cost = [], 0, 0
    for one, (contrast, offset) in enumerate(linear.reshape(2, maps).T):
        row = np.zeros((len(i), 2 * maps + 1))
        row[:, one], row[:, maps + one] = f[i, j], 1
        row[:, -1] = -contrast * Q**2 * (lags * f)[i, j]
        rows.append(row)
        off = np.asarray(data.c2)[one] - contrast * f - offset
        u = lasting(off, f, mask)
        assert 0.1 < u < 0.99
        p = np.where(np.eye(frames, dtype=bool), 1, u * f)
        products = p[np.ix_(i, i)] * p[np.ix_(j, j)] + p[np.ix_(i, j)] * p[np.ix_(j, i)]
        squares = np.sum(off[i, j] ** 2)
        meat = meat + squares / np.trace(products) * row.T @ products @ row
        cost = cost + squares
    rows = np.concatenate(rows)
    inverse = np.linalg.inv(rows.T @ rows)
    expected = inverse @ meat @ inverse * cost / (cost - np.trace(inverse @ meat))
    covariance = speckle_covariance(problem, result)
    assert covariance.dtype == jnp.float64
    assert np.allclose(covariance, expected, rtol=1e-6, atol=1e-9 * expected.max())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "counts"), [(0.5, None), (5.0, None), (0.5, 1.0), (2.0, 0.3)]
)
def test_errors_cover_the_fluctuations_of_speckles(rate, counts):
    rng = np.random.default_rng(0)
    pulls = []
    for _ in range(60):
        light = speckles(60, 600, rate, rng)
        light = light if counts is None else rng.poisson(counts * light)
        _, problem, result = fitted(light[:, None], rate)
        off = float(result.values[0]) - 2 * rate / Q**2
        kinds = (f(problem, result) for f in (frame_covariance, speckle_covariance))
        errors = [float(jnp.sqrt(c[-1, -1])) for c in kinds]
        pulls.append([off / e for e in (float(result.standard_errors[0]), *errors)])
    stated, by_frame, by_speckle = np.sqrt(np.mean(np.square(pulls), axis=0))
    # The root of the mean of 60 squares of normal numbers is 1 +- 0.09. Six times of
    # correlation are in a map at the lowest rate: its errors are known to some 20 %.
    assert 0.7 < by_speckle < 1.35
    if rate == 0.5:
        assert stated > 3.5
        assert by_frame > 1.8


def test_errors_of_white_noise_are_those_of_independent_pairs():
    model = Static(Diffusion(9000.0, 0.0))
    data = simulate_two_time(
        model,
        0.1 + 0.1 * np.arange(50),
        0.0054,
        np.deg2rad([0.0, 50.0]),
        contrast=0.25,
        key=jax.random.key(0),
        noise=(WhiteNoise(0.01),),
    )
    problem = two_time_problem(data, model, fixed=hold)
    result = least_squares(problem)
    ratio = speckle_covariance(problem, result) / result.full_covariance
    assert np.allclose(jnp.diagonal(ratio), 1, rtol=0.15)


@pytest.mark.parametrize("covariance", [frame_covariance, speckle_covariance])
def test_a_perfect_fit_has_no_error(covariance):
    model = Static(Diffusion(4e4, 0.0))
    times = STEP * np.arange(20)
    c2 = two_time(model, times, np.array([Q]), contrast=0.25)
    problem = two_time_problem(TwoTime(c2, Q, 0.0, times), model, fixed=hold)
    result = least_squares(problem)
    assert result.chi2 < 1e-20
    # Down to the last digit, wherever rounding has left one.
    result = eqx.tree_at(lambda r: r.chi2, result, jnp.zeros(()))
    assert np.allclose(covariance(problem, result), 0, atol=1e-12)
