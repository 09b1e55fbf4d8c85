"""Errors where the noise of a frame moves all pairs that it is in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.fit import least_squares
from physax.runtime import Status
from physax.xpcs import (
    Diffusion,
    FrameNoise,
    LaminarFlow,
    Shear,
    Static,
    WhiteNoise,
    frame_covariance,
    simulate_two_time,
    speckle_covariance,
    two_time,
    two_time_problem,
)


pytestmark = pytest.mark.x64

TIMES = 0.1 + 0.1 * np.arange(50)
PHI = np.deg2rad([0.0, 50.0])
MODEL = Static(Diffusion(9000.0, 0.0))


def hold(model):
    return model.diffusion.alpha, model.diffusion.D_offset


def simulated(seed, noise, frames=50):
    return simulate_two_time(
        MODEL,
        TIMES[:frames],
        0.0054,
        PHI,
        contrast=0.25,
        offset=1.0,
        key=jax.random.key(seed),
        noise=noise,
    )


def fitted(*arguments):
    problem = two_time_problem(simulated(*arguments), MODEL, fixed=hold)
    return problem, least_squares(problem)


def spread(noise, shared):
    """Variance of the pulls of D0, with both kinds of errors."""
    plain, robust = [], []
    for seed in range(60):
        problem, result = fitted(seed, noise)
        off = float(result.values[0]) - 9000
        covariance = frame_covariance(problem, result, shared=shared)
        plain.append(off / float(result.standard_errors[0]))
        robust.append(off / float(jnp.sqrt(covariance[-1, -1])))
    return np.mean(np.square(plain)), np.mean(np.square(robust))


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
def test_errors_cover_the_fluctuations_of_frames(shared):
    noise = (WhiteNoise(0.01), FrameNoise(0.01, shared=shared))
    plain, robust = spread(noise, shared)
    # The mean of 60 squares of normal numbers is 1 +- 0.18; the covariance of 50
    # frames is itself known to some 20 %.
    assert plain > 2
    assert 0.5 < robust < 2


def test_errors_of_white_noise_are_those_of_independent_pairs():
    problem, result = fitted(0, (WhiteNoise(0.01),))
    ratio = frame_covariance(problem, result)[-1, -1] / result.covariance[0, 0]
    assert 0.5 < ratio < 2


def summed_over_pairs(data, result):
    """The sum over pairs of pairs with a common frame, map by map, as it is written."""

    def left(vector):
        contrast, offset, (rate,) = jnp.split(vector, [2, 4])
        model = Static(Diffusion(rate, 0.0))
        scales = {"contrast": contrast, "offset": offset}
        found = two_time(model, data.times, data.q, data.phi, **scales)
        return ((found - data.c2) / 0.01)[:, *np.triu_indices(data.frames, 1)]

    vector = jnp.concatenate([result.linear, result.values])
    scores = np.asarray(jax.jacfwd(left)(vector) * left(vector)[..., None])
    pairs = np.stack(np.triu_indices(data.frames, 1), axis=1)
    common = (pairs[:, None, :, None] == pairs[None, :, None, :]).any((2, 3))
    meat = sum(one.T @ common @ one for one in scores)
    jacobian = np.asarray(jax.jacfwd(left)(vector)).reshape(-1, vector.size)
    inverse = np.linalg.inv(jacobian.T @ jacobian)
    return inverse @ meat @ inverse * data.frames / (data.frames - 1)


# With the noise of the second one, V has negative variances.
@pytest.mark.parametrize(("seed", "positive"), [(0, True), (11, False)])
def test_variances_are_not_negative(seed, positive):
    drawn = seed, (WhiteNoise(0.01),), 20
    covariance = frame_covariance(*fitted(*drawn))
    plain = summed_over_pairs(simulated(*drawn), fitted(*drawn)[1])
    assert np.all(np.diagonal(covariance) > 0)
    assert np.all(np.diagonal(plain) > 0) == positive
    unit = np.sqrt(np.diagonal(covariance))
    sizes = np.linalg.eigvalsh(covariance / unit / unit[:, None])
    # But for rounding.
    assert sizes[0] > -1e-10
    more = np.linalg.eigvalsh((covariance - plain) / unit / unit[:, None])
    assert more[0] > -1e-7
    if positive:
        np.testing.assert_allclose(more, 0, atol=1e-7)


def test_what_is_not_negative_stays_also_where_parameters_are_correlated():
    # A slow decay, whose rate the data hardly tell from contrast and offset.
    slow = Static(Diffusion(2000.0, 0.0))
    known = {"contrast": 0.25, "key": jax.random.key(0), "noise": (WhiteNoise(0.01),)}
    data = simulate_two_time(slow, 0.1 * np.arange(30), 0.0054, 0.0, **known)
    problem = two_time_problem(data, Static(Diffusion(1500.0, 0.0)), fixed=hold)
    result = least_squares(problem)
    # Of white noise the stated error is right. In units of each parameter's own error
    # in place of independent combinations it became 1.7 times as large.
    ratio = frame_covariance(problem, result)[-1, -1] / result.covariance[0, 0]
    assert 0.8 < float(jnp.sqrt(ratio)) < 1.3


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("of", [frame_covariance, speckle_covariance])
def test_what_the_data_do_not_determine_has_infinite_errors_and_nothing_else(of):
    # cos(phi - phi0) = 0: nothing of the shear reaches the maps.
    model = LaminarFlow(Diffusion(9000.0, 0.0), Shear(2e-3, 0.0, 0.0, 0.0))
    known = {"contrast": 0.25, "key": jax.random.key(1), "noise": (WhiteNoise(0.01),)}
    data = simulate_two_time(model, TIMES[:20], 0.0054, np.pi / 2, **known)

    def covariance(fixed):
        problem = two_time_problem(data, model, fixed=fixed)
        result = least_squares(problem)
        return result, of(problem, result)

    still = lambda m: (*hold(m), m.shear.beta, m.shear.offset)  # noqa: E731
    _, known = covariance(lambda m: (*still(m), m.shear.rate, m.shear.phi0))
    result, found = covariance(still)
    assert result.status == Status.UNDETERMINED
    np.testing.assert_allclose(found[:3, :3], known, rtol=1e-6)
    assert np.all(np.isinf(np.diagonal(found)[3:]))
