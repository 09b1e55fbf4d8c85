"""Errors of many fits at once, beside numpy's formula for each of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from physax._checks import ArgumentError
from physax.fit import (
    Separable,
    confidence_intervals,
    identifiability,
    least_squares,
    profile_likelihood,
)
from tests.fit.decays import SIGMA, TRUE, X, host_model, problem


FITS = 2, 3
PROPERTIES = (
    "active",
    "degrees_of_freedom",
    "reduced_chi2",
    "full_covariance",
    "covariance",
    "linear_errors",
    "standard_errors",
    "correlation",
    "condition",
)
# Offsets of which the last one is below the bound, 0.
TRUTH = np.array([TRUE * (1 + 0.1 * k) for k in range(6)]).reshape(*FITS, 3)
TRUTH[-1, -1, -1] = -0.1
NOISE = SIGMA * np.random.default_rng(3).normal(size=(*FITS, X.size))
CURVES = host_model(X, *np.moveaxis(TRUTH, -1, 0)[..., None]) + NOISE


def decay(p, x):
    return jnp.exp(-p["b"] * x)


def bounded(y):
    low = {"a": None, "b": None, "c": 0.0}
    return least_squares(problem(data=(jnp.asarray(X), y), bounds=(low, None)))


def separated(y):
    options = {"functions": ["a"], "offset": True}
    return least_squares(Separable(decay, {"b": 1.0}, jnp.asarray(X), y, **options))


def batch_of(one):
    return jax.jit(jax.vmap(jax.vmap(one)))(jnp.asarray(CURVES))


@pytest.fixture(scope="module")
def plain():
    return batch_of(bounded)


@pytest.fixture(scope="module")
def separable():
    return batch_of(separated)


def expected(y, a, b, c, held):
    """Covariance, reduced chi-square and condition, by the textbook's formulas."""
    jacobian = np.stack([np.exp(-b * X), -a * X * np.exp(-b * X), np.ones_like(X)], 1)
    free = jacobian[:, ~held]
    s2 = np.sum((host_model(X, a, b, c) - y) ** 2) / (X.size - free.shape[1])
    covariance = np.zeros((3, 3))
    covariance[np.ix_(~held, ~held)] = np.linalg.inv(free.T @ free) * s2
    return covariance, s2, np.linalg.cond(jacobian / np.linalg.norm(jacobian, axis=0))


def test_errors_of_a_batch_are_those_of_each_fit(plain):
    assert plain.active.sum() == 1
    for i in np.ndindex(FITS):
        held = np.asarray(plain.active[i])
        assert np.array_equal(held, [False, False, i == (1, 2)])
        covariance, s2, condition = expected(CURVES[i], *plain.values[i], held)
        errors = np.sqrt(np.diag(covariance))
        # Sums of squares lose twice the digits of the condition number, some 10.
        np.testing.assert_allclose(plain.covariance[i], covariance, rtol=1e-9)
        np.testing.assert_allclose(plain.standard_errors[i], errors, rtol=1e-9)
        np.testing.assert_allclose(plain.reduced_chi2[i], s2, rtol=1e-9)
        np.testing.assert_allclose(plain.condition[i], condition, rtol=1e-9)
        assert plain.degrees_of_freedom[i] == X.size - 3 + held.sum()
        both = np.ix_(~held, ~held)
        ratio = covariance[both] / np.outer(errors[~held], errors[~held])
        np.testing.assert_allclose(plain.correlation[i][both], ratio, rtol=1e-9)


def test_errors_of_linear_coefficients_are_those_of_each_fit(separable):
    order = np.array([0, 2, 1])
    for i in np.ndindex(FITS):
        (a, c), (b,) = separable.linear[i], separable.values[i]
        covariance, *_ = expected(CURVES[i], a, b, c, np.zeros(3, bool))
        covariance = covariance[np.ix_(order, order)]
        errors = np.sqrt(np.diag(covariance))
        np.testing.assert_allclose(separable.full_covariance[i], covariance, rtol=1e-9)
        np.testing.assert_allclose(separable.linear_errors[i], errors[:2], rtol=1e-9)
        np.testing.assert_allclose(separable.standard_errors[i], errors[2:], rtol=1e-9)


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize("kind", ["plain", "separable"])
def test_properties_of_a_batch_are_those_that_vmap_gives(kind, name, request):
    result = request.getfixturevalue(kind)
    of = lambda fit: getattr(fit, name)  # noqa: E731
    each = jax.vmap(jax.vmap(of))(result)
    assert of(result).shape[:2] == FITS
    np.testing.assert_array_equal(of(result), each)
    np.testing.assert_allclose(eqx.filter_jit(of)(result), each, rtol=1e-12)


def test_intervals_of_a_batch_are_students_of_each_fit(plain):
    found = confidence_intervals(plain, 0.9)
    reach = stats.t(np.asarray(plain.degrees_of_freedom)).ppf(0.95)[..., None]
    half = (np.asarray(found.high) - np.asarray(found.low)) / 2
    np.testing.assert_allclose(half, reach * plain.standard_errors, rtol=1e-9)
    name = plain.names[0]
    assert str(found).startswith(f"fit 0,0: {name}: {found.low[0, 0, 0]:.6g} to ")


def test_intervals_of_traced_fits_are_refused(plain):
    message = "`result` must be known here, .* outside, of the"
    with pytest.raises(ArgumentError, match=message):
        jax.vmap(lambda fit: confidence_intervals(fit).low)(plain)


def test_a_batch_is_printed_fit_by_fit(plain, separable):
    for result in (plain, separable):
        text = str(result)
        for i in np.ndindex(FITS):
            lone = jax.tree.map(lambda x, i=i: x[i], result)
            assert f"fit {i[0]},{i[1]}: {lone}" in text
            assert f"fit {i[0]},{i[1]}: {lone.message}" in result.message.splitlines()
    assert str(plain).count("(at a bound)") == 1


def test_what_is_about_one_fit_refuses_a_batch(plain):
    message = r"`result` must be of one fit, but is of a batch of shape \(2, 3\)\. Take"
    with pytest.raises(ArgumentError, match=message):
        identifiability(plain)
    with pytest.raises(ArgumentError, match=message):
        profile_likelihood(problem(), plain, "b")
