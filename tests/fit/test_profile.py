"""Intervals from the cost itself."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from physax._checks import ArgumentError
from physax.fit import (
    LeastSquares,
    Separable,
    confidence_intervals,
    least_squares,
    profile_likelihood,
)
from tests.fit.decays import SIGMA, X, Y, host_model, problem


@pytest.fixture(scope="module")
def fitted():
    return least_squares(problem(), throw=True)


def rests(x, y):
    """The lowest cost at given rates: the rest of the model is linear."""

    def cost(b):
        columns = np.stack([np.exp(-b * x), np.ones_like(x)], axis=1)
        return np.linalg.lstsq(columns, y, rcond=None)[1][0]

    return np.vectorize(cost)


def test_the_curve_is_the_lowest_cost_at_each_value(fitted):
    values = np.linspace(1.2, 1.4, 21)
    profile = profile_likelihood(problem(), fitted, "b", values)
    np.testing.assert_allclose(profile.chi2, rests(X, Y)(values), rtol=1e-9)


def test_interval_ends_where_the_cost_has_risen(fitted):
    profile = profile_likelihood(problem(), fitted, "b")
    assert profile.identified
    assert not profile.lower_minimum
    cost, lowest = rests(X, Y), float(fitted.chi2)
    for end in (profile.low, profile.high):
        # Linear interpolation of the root between 21 points.
        assert abs((cost(end) - lowest) / profile.rise - 1) < 2e-3


@pytest.mark.slow
def test_where_the_model_is_linear_it_is_the_interval_from_the_covariance(fitted):
    # The offset, with the rate fixed.
    made = problem(fixed=lambda p: p["b"])
    result = least_squares(made, throw=True)
    interval = confidence_intervals(result, 0.9)
    profile = profile_likelihood(made, result, "c", level=0.9)
    np.testing.assert_allclose(profile.low, interval.low[1], rtol=1e-7)
    np.testing.assert_allclose(profile.high, interval.high[1], rtol=1e-7)


@pytest.mark.slow
def test_known_deviations_are_used(fitted):
    made = problem(weights=np.full(X.size, SIGMA**-2), absolute_sigma=True)
    result = least_squares(made, throw=True)
    profile = profile_likelihood(made, result, "b", level=0.682689492137)
    assert abs(profile.rise - 1) < 1e-9
    half = (profile.high - profile.low) / 2
    # A parameter that is well determined: the covariance is right to a percent.
    np.testing.assert_allclose(half, result.standard_errors[1], rtol=1e-2)


def saturating(p, data):
    x, y = data
    return p["top"] * x / (p["half"] + x) - y


@pytest.mark.slow
def test_an_end_that_the_data_do_not_determine_is_open():
    # All data lie where the curve is still straight: only the ratio is known.
    x = np.linspace(0.005, 0.05, 50)
    y = 2 * x / (1 + x / 3) + 0.05 * np.random.default_rng(1).normal(size=50)
    bounds = {"top": 0.0, "half": 0.01}, {"top": None, "half": 1e4}
    made = LeastSquares(saturating, {"top": 5.0, "half": 3.0}, (x, y), bounds=bounds)
    result = least_squares(made)
    profile = profile_likelihood(made, result, "half")
    assert profile.open_high
    assert profile.high == 1e4
    assert not profile.identified
    assert "(open)" in str(profile)


def test_others_stay_within_their_bounds():
    bounds = {"a": None, "b": None, "c": None}, {"a": None, "b": None, "c": 0.5}
    made = problem(bounds=bounds)
    result = least_squares(made, throw=True)
    profile = profile_likelihood(made, result, "b", np.linspace(1.2, 1.4, 21))
    assert np.all(profile.others[:, 1] <= 0.5)

    def cost(b):
        columns = np.stack([np.exp(-b * X), np.ones_like(X)], axis=1)
        limits = -np.inf, [np.inf, 0.5]
        return 2 * optimize.lsq_linear(columns, Y, limits, tol=1e-14).cost

    expected = [cost(b) for b in profile.values]
    np.testing.assert_allclose(profile.chi2, expected, rtol=1e-8)


def decay(p, x):
    return jnp.exp(-p["b"] * x)


@pytest.mark.slow
def test_linear_coefficients_answer_too(fitted):
    made = Separable(decay, {"b": 2.0}, X, Y, offset=True)
    values = np.linspace(1.2, 1.4, 21)
    profile = profile_likelihood(made, least_squares(made), "b", values)
    np.testing.assert_allclose(profile.chi2, rests(X, Y)(values), rtol=1e-9)
    assert profile.others.shape == (21, 0)


def test_a_fit_that_is_not_the_best_is_seen(fitted):
    wrong = least_squares(
        problem({"a": 2.0, "b": 1.5, "c": 0.5}, fixed=lambda p: p["b"])
    )
    worse = eqx.tree_at(lambda r: r.chi2, fitted, wrong.chi2)
    profile = profile_likelihood(problem(), worse, "b", np.linspace(1.2, 1.4, 21))
    assert profile.lower_minimum
    assert np.all(host_model(X, *fitted.values) > 0)


@pytest.mark.parametrize(
    ("message", "options"),
    {
        "`name` must be one of a, b, c, but is d": {"name": "d"},
        r"`level` must lie in \(0, 1\), but is 1": {"name": "a", "level": 1.0},
        "`points` must be an integer of at least 5, but is 2": {
            "name": "a",
            "points": 2,
        },
    }.items(),
)
def test_bad_questions_are_refused(fitted, message, options):
    with pytest.raises(ArgumentError, match=message):
        profile_likelihood(problem(), fitted, **options)
