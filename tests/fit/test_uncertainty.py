"""Errors of fitted parameters, beside scipy's and the definitions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

from physax._checks import ArgumentError
from physax.fit import (
    LeastSquares,
    confidence_intervals,
    identifiability,
    least_squares,
)
from tests.fit.decays import SIGMA, X, Y, host_model, problem


@pytest.fixture(scope="module")
def relative():
    return least_squares(problem(), throw=True)


@pytest.fixture(scope="module")
def absolute():
    weights = np.full(X.size, SIGMA**-2.0)
    return least_squares(problem(weights=weights, absolute_sigma=True), throw=True)


def test_covariance_is_scipys(relative, absolute):
    for result, known in ((relative, False), (absolute, True)):
        values, covariance = optimize.curve_fit(
            host_model,
            X,
            Y,
            (1, 2, 0),
            sigma=np.full(X.size, SIGMA),
            absolute_sigma=known,
            **dict.fromkeys(("ftol", "xtol", "gtol"), 1e-14),
        )
        np.testing.assert_allclose(result.values, values, rtol=1e-7)
        # Scipy's Jacobian is of differences.
        np.testing.assert_allclose(result.covariance, covariance, rtol=1e-5)
        errors = np.sqrt(np.diag(covariance))
        np.testing.assert_allclose(result.standard_errors, errors, rtol=1e-5)
        np.testing.assert_allclose(
            result.correlation, covariance / np.outer(errors, errors), rtol=1e-4
        )


def test_what_exact_data_do_not_determine_has_an_infinite_error():
    # On data without noise chi-square is 0, and so are the errors of what they do
    # determine: a straight line through the origin, and a number that nothing reads.
    x = np.arange(5.0)

    def fit(slope):
        start = {"a": 1.0, "b": 2.0}
        lines = LeastSquares(lambda p, y: p["a"] * x - y + 0 * p["b"], start, slope * x)
        return least_squares(lines)

    one, batch = fit(2.0), jax.vmap(fit)(jnp.array([2.0, 4.0]))
    assert float(one.chi2) == 0
    assert "b  2 ± inf" in str(one)
    np.testing.assert_array_equal(np.diag(one.covariance), [0, np.inf])
    np.testing.assert_array_equal(one.standard_errors, [0, np.inf])
    np.testing.assert_array_equal(batch.chi2, [0, 0])
    np.testing.assert_array_equal(batch.standard_errors, [[0, np.inf]] * 2)


def test_reduced_chi_square(relative, absolute):
    assert int(relative.degrees_of_freedom) == X.size - 3
    rest = host_model(X, *relative.values) - Y
    np.testing.assert_allclose(
        relative.reduced_chi2, np.sum(rest**2) / (X.size - 3), rtol=1e-10
    )
    # Noise of the right size: 1 within three of its deviations.
    assert abs(float(absolute.reduced_chi2) - 1) < 3 * np.sqrt(2 / X.size)


def test_intervals_are_students_unless_sigma_is_known(relative, absolute):
    for result, reach in (
        (relative, stats.t(X.size - 3).ppf(0.95)),
        (absolute, stats.norm.ppf(0.95)),
    ):
        found = confidence_intervals(result, 0.9)
        half = (np.asarray(found.high) - np.asarray(found.low)) / 2
        np.testing.assert_allclose(half, reach * result.standard_errors, rtol=1e-9)
        lines = str(found).splitlines()
        ends = f"{found.low[1]:.6g} to {found.high[1]:.6g}"
        assert lines[1] == f"{result.names[1]}: {ends} at 0.9"
        assert len(lines) == len(result.names)


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5])
def test_level_is_checked(relative, level):
    with pytest.raises(ArgumentError, match=r"`level` must lie in \(0, 1\), but is"):
        confidence_intervals(relative, level)


def test_condition_does_not_depend_on_units(relative):
    bent = least_squares(problem({"a": 1e6, "b": 2.0, "c": 0.0}, (X, Y * 1e6)))
    assert abs(float(bent.condition / relative.condition) - 1) < 1e-6
    found = identifiability(relative)
    assert abs(found.condition / float(relative.condition) - 1) < 1e-9
    assert "every combination of parameters is determined" in str(found)
    assert found.undetermined == 0


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say():
    truth = np.array([2.0, 1.3, 0.5])
    noise = np.random.default_rng(7).normal(size=(400, X.size)) * SIGMA
    sets = jnp.asarray(host_model(X, *truth) + noise)

    @eqx.filter_jit
    def errors(sets):
        def one(y):
            found = least_squares(problem(data=(jnp.asarray(X), y)))
            return found.values, found.standard_errors

        return jax.lax.map(one, sets, batch_size=100)

    values, deviations = errors(sets)
    pulls = (np.asarray(values) - truth) / np.asarray(deviations)
    for level in (0.68, 0.95):
        inside = np.mean(np.abs(pulls) < stats.t(X.size - 3).ppf(0.5 + level / 2), 0)
        # Within three binomial deviations.
        assert np.all(np.abs(inside - level) < 3 * np.sqrt(level * (1 - level) / 400))


@pytest.mark.parametrize("bend", [1e-4, 0.1])
def test_what_is_hardly_determined_is_told_with_the_result(bend):
    columns = np.stack([X, X + bend * X**2], axis=1)
    equal = columns / np.linalg.norm(columns, axis=0)
    weak = np.linalg.svd(equal, compute_uv=False)[-1] < 1e-3
    made = LeastSquares(lambda p, d: d[0] @ p - d[1], np.ones(2), (columns, Y))
    result = least_squares(made, throw=True)
    assert ("is hardly determined: `fit.identifiability`" in str(result)) == weak
    assert ("hardly determined: " in str(identifiability(result))) == weak
