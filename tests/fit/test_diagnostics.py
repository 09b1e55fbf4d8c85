"""R-hat and effective sample sizes, beside ArviZ's and known chains."""

import importlib
import warnings

import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.fit import bulk_ess, r_hat, tail_ess


def autoregressive(memory, chains=4, draws=1000, seed=0):
    """Chains x[t] = memory x[t-1] + noise, of variance 1."""
    noise = np.random.default_rng(seed).normal(size=(chains, draws))
    x = np.empty_like(noise)
    x[:, 0] = noise[:, 0]
    for t in range(1, draws):
        x[:, t] = memory * x[:, t - 1] + np.sqrt(1 - memory**2) * noise[:, t]
    return x


CHAINS = {
    "independent": autoregressive(0.0),
    "slow": autoregressive(0.9),
    "alternating": autoregressive(-0.5),
    "apart": autoregressive(0.3) + np.arange(4)[:, None],
    "of other widths": autoregressive(0.3) * np.array([1, 1, 1, 4])[:, None],
    "heavy": np.tan(autoregressive(0.5) * 0.9),
    "odd": autoregressive(0.5, chains=3, draws=501),
    "coarse": np.round(autoregressive(0.5)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_figures_are_arvizs(name):
    pytest.importorskip("arviz", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arviz = importlib.import_module("arviz")
    draws = CHAINS[name]
    mine = r_hat(draws), bulk_ess(draws), tail_ess(draws)
    theirs = (
        arviz.rhat(draws, method="rank"),
        arviz.ess(draws, method="bulk"),
        arviz.ess(draws, method="tail", prob=(0.05, 0.95)),
    )
    np.testing.assert_allclose(mine, [float(x) for x in theirs], rtol=1e-6)


def test_effective_draws_are_what_the_memory_leaves():
    # Of autoregressive chains the autocorrelation time is (1 + m) / (1 - m).
    for memory in (0.0, 0.5, 0.9):
        draws = autoregressive(memory, draws=20_000)
        expected = draws.size * (1 - memory) / (1 + memory)
        # Estimates of autocorrelation times scatter by a few percent here.
        assert abs(bulk_ess(draws) / expected - 1) < 0.15


def test_chains_that_disagree_are_seen():
    assert r_hat(CHAINS["independent"]) < 1.01
    assert r_hat(CHAINS["apart"]) > 1.1
    assert r_hat(CHAINS["of other widths"]) > 1.05
    # A drift is a disagreement of a chain with itself.
    assert r_hat(np.linspace(0, 1, 400)[None] + np.zeros((4, 1))) > 1.5


def test_what_is_no_chain_has_no_figure():
    assert np.isnan(r_hat(np.ones((4, 100))))
    assert np.isnan(bulk_ess(np.full((4, 100), np.nan)))
    with pytest.raises(ArgumentError, match="`draws` must be at least 4 in each chain"):
        r_hat(np.ones((4, 3)))
