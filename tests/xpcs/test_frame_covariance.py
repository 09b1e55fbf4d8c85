"""Errors where the noise of a frame moves all pairs that it is in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.fit import least_squares
from physax.xpcs import (
    Diffusion,
    FrameNoise,
    Static,
    WhiteNoise,
    frame_covariance,
    simulate_two_time,
    two_time_problem,
)


pytestmark = pytest.mark.x64

TIMES = 0.1 + 0.1 * np.arange(50)
PHI = np.deg2rad([0.0, 50.0])
MODEL = Static(Diffusion(9000.0, 0.0))


def hold(model):
    return model.diffusion.alpha, model.diffusion.D_offset


def fitted(seed, noise):
    data = simulate_two_time(
        MODEL,
        TIMES,
        0.0054,
        PHI,
        contrast=0.25,
        offset=1.0,
        key=jax.random.key(seed),
        noise=noise,
    )
    problem = two_time_problem(data, MODEL, fixed=hold)
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
