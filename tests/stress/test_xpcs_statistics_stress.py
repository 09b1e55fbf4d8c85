"""A thousand laminar fits: errors are what they claim to be, none left out."""

import numpy as np
import pytest

from physax.xpcs import (
    Diffusion,
    LaminarFlow,
    Shear,
    TwoTime,
    fit_two_time,
    two_time,
)


pytestmark = [pytest.mark.stress, pytest.mark.x64]

SEEDS, ANGLES, FRAMES, Q, NOISE = 1000, 5, 200, 0.0054, 0.01
TIMES = 0.1 * np.arange(FRAMES)
PHI = np.deg2rad(np.linspace(-90, 90, ANGLES))
TRUTH = np.array([12000.0, -0.35, 150.0, 3e-3, -0.2, 2e-4, np.deg2rad(-4.0)])
START = TRUTH * [1.5, 0.7, 0.5, 1.6, 0.6, 1.5, 0.0]


def model(numbers):
    diffusion, shear = Diffusion(*numbers[:3]), Shear(*numbers[3:])
    return LaminarFlow(diffusion, shear, convention="homodyne")


def test_pulls_of_a_thousand_fits_are_normal():
    clean = two_time(model(TRUTH), TIMES, Q, PHI, contrast=0.25, offset=1.0)
    pulls = []
    for seed in range(SEEDS):
        drawn = np.random.default_rng(seed).standard_normal(clean.shape)
        upper = np.triu(drawn * NOISE, 1)
        c2 = np.asarray(clean) + upper + upper.transpose(0, 2, 1)
        found = fit_two_time(TwoTime(c2, Q, PHI, TIMES, NOISE), model(START)).result
        assert found.success
        linear = np.repeat([0.25, 1.0], ANGLES)
        values = np.concatenate([found.values, found.linear])
        errors = np.concatenate([found.standard_errors, found.linear_errors])
        pulls.append((values - np.concatenate([TRUTH, linear])) / errors)
    pulls = np.array(pulls)
    print("means", pulls.mean(0).round(3), "variances", pulls.var(0).round(3))
    assert np.all(np.abs(pulls.mean(0)) < 0.1)
    assert np.all(np.abs(pulls.var(0) - 1) < 0.1)
    for reach, level in ((1.0, 0.6827), (1.96, 0.95)):
        covered = np.mean(np.abs(pulls) < reach, axis=0)
        assert np.all(
            np.abs(covered - level) < 3 * np.sqrt(level * (1 - level) / SEEDS)
        )
