"""Whether posteriors are calibrated: simulation-based ranks."""

import jax
import numpy as np
import pytest
from scipy import stats

from physax.fit import KnownSigma, Normal, Uniform, least_squares, sample_posterior
from tests.fit.decays import host_model, problem


pytestmark = [pytest.mark.stress, pytest.mark.x64]

SETS, BINS, KEPT = 200, 10, 99
X = np.linspace(0, 3, 30)
SIGMA = 0.15
PRIORS = {"a": Normal(2.0, 0.3), "b": Uniform(0.5, 3.0), "c": Normal(0.5, 0.2)}
BOUNDS = {"a": None, "b": 0.5, "c": None}, {"a": None, "b": 3.0, "c": None}


def ranks(number):
    """Ranks of the true parameters among draws from the posterior of their data."""
    generator = np.random.default_rng([8, number])
    true = np.array(
        [
            generator.normal(2, 0.3),
            generator.uniform(0.5, 3),
            generator.normal(0.5, 0.2),
        ]
    )
    y = host_model(X, *true) + SIGMA * generator.normal(size=X.size)
    made = problem({"a": 2.0, "b": 1.5, "c": 0.5}, (X, y), bounds=BOUNDS)
    posterior = sample_posterior(
        made,
        least_squares(made),
        key=jax.random.key(number),
        draws=500,
        warmup=300,
        chains=2,
        priors=PRIORS,
        sigma=KnownSigma(SIGMA),
        refine=False,
        progress=False,
    )
    draws = posterior.samples.reshape(-1, 3)[::10][:KEPT]
    return np.sum(draws < true, axis=0)


def test_ranks_of_the_truth_are_uniform():
    # The true parameters are one more draw, so each of 100 ranks is as likely.
    found = np.array([ranks(number) for number in range(SETS)])
    for name, column in zip("abc", found.T, strict=True):
        counts = np.bincount(column * BINS // (KEPT + 1), minlength=BINS)
        chance = stats.chisquare(counts).pvalue
        print(f"{name}: p = {chance:.3f}, {counts}")
        assert chance > 0.01
