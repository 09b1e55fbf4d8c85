"""Derivatives of fitted parameters, by the implicit function theorem."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._status import Status
from physax.fit import LeastSquares, Separable, TrustRegion, least_squares
from tests.fit.decays import START, X, Y, problem


TIGHT = TrustRegion(ftol=1e-15, xtol=1e-15, gtol=1e-15)
# Far from any decay: residuals are large, and so is what Gauss-Newton leaves out.
ODD = jnp.asarray(Y + 0.5 * np.sin(6 * X))
WAY = jnp.asarray(np.cos(2 * X))


def fitted(y):
    return least_squares(problem(data=(jnp.asarray(X), y)), TIGHT).values


def held(c, y):
    start = {"a": 1.0, "b": 2.0, "c": c}
    made = problem(start, (jnp.asarray(X), y), fixed=lambda p: p["c"])
    return least_squares(made, TIGHT).values


def bounded(y):
    bounds = {"a": None, "b": None, "c": None}, {"a": None, "b": None, "c": 0.4}
    made = problem(START, (jnp.asarray(X), y), bounds=bounds)
    return least_squares(made, TIGHT).values


def difference(function, x, way, step=1e-5):
    return (function(x + step * way) - function(x - step * way)) / (2 * step)


@pytest.mark.parametrize("y", [jnp.asarray(Y), ODD], ids=["small", "large"])
def test_derivative_by_the_data_is_that_of_the_minimum(y):
    _, forward = jax.jvp(jax.jit(fitted), (y,), (WAY,))
    # Central differences with steps of 1e-5 are good to some 1e-9.
    slope = difference(fitted, y, WAY)
    np.testing.assert_allclose(forward, slope, rtol=1e-6)


def test_reverse_mode_agrees_with_forward_mode():
    weights = jnp.array([0.3, -1.0, 2.0])
    gradient = jax.jit(jax.grad(lambda y: fitted(y) @ weights))(ODD)
    _, forward = jax.jvp(jax.jit(fitted), (ODD,), (WAY,))
    np.testing.assert_allclose(gradient @ WAY, forward @ weights, rtol=1e-12)


@pytest.mark.slow
def test_derivative_by_a_fixed_parameter():
    c = jnp.array(0.3)
    _, forward = jax.jvp(jax.jit(lambda c: held(c, ODD)), (c,), (jnp.ones(()),))
    slope = difference(lambda c: held(c, ODD), c, 1.0)
    np.testing.assert_allclose(forward, slope, rtol=1e-6)


def test_a_parameter_at_its_bound_does_not_move():
    y = jnp.asarray(Y)
    values, forward = jax.jvp(jax.jit(bounded), (y,), (WAY,))
    assert float(values[2]) == 0.4
    assert float(forward[2]) == 0
    slope = difference(bounded, y, WAY)
    np.testing.assert_allclose(forward[:2], slope[:2], rtol=1e-6)


def unused(p, data):
    x, y = data
    return p["a"] * jnp.exp(-p["b"] * x) + 0 * p["unused"] - y


@pytest.mark.slow
def test_under_jit_what_is_undetermined_keeps_its_value_but_has_no_derivative():
    def fitted(y):
        start = {"a": 1.0, "b": 1.0, "unused": 3.0}
        result = least_squares(LeastSquares(unused, start, (jnp.asarray(X), y)))
        return result.values, result.status

    values, slopes, status = jax.jit(
        lambda y: jax.jvp(fitted, (y,), (WAY,), has_aux=True)
    )(jnp.asarray(Y))
    assert status == Status.UNDETERMINED
    assert np.isfinite(values).all()
    assert not np.isfinite(slopes).all()


def eliminated(y, **options):
    def decay(p, x):
        return jnp.exp(-p["b"] * x)

    data = jnp.asarray(X), y
    return least_squares(
        Separable(decay, {"b": 2.0}, *data, offset=True, **options), TIGHT
    )


# The offset would be 0.495.
LIMITS = (None, 0), (None, 0.4)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"linear_bounds": LIMITS}], ids=["", "held"])
def test_derivatives_reach_all_of_a_result(options):
    def found(y):
        result = eliminated(y, **options)
        names = "values", "linear", "chi2", "linear_errors"
        return {name: getattr(result, name) for name in names}

    _, forward = jax.jvp(jax.jit(found), (ODD,), (WAY,))
    ahead, behind = found(ODD + 1e-5 * WAY), found(ODD - 1e-5 * WAY)
    here, compiled = found(ODD), jax.jit(found)(ODD)
    for name, derivative in forward.items():
        slope = (ahead[name] - behind[name]) / 2e-5
        np.testing.assert_allclose(
            derivative, slope, rtol=1e-5, atol=1e-7, err_msg=name
        )
        # The program knows the bounds, too.
        np.testing.assert_allclose(compiled[name], here[name], rtol=1e-9)


@pytest.mark.slow
def test_masked_points_may_have_no_place():
    x = jnp.asarray(X).at[3].set(jnp.nan)
    mask = np.arange(X.size) != 3

    def fitted(y):
        return least_squares(problem(data=(x, y), mask=mask), TIGHT).values

    _, forward = jax.jvp(fitted, (jnp.asarray(Y),), (WAY,))
    slope = difference(fitted, jnp.asarray(Y), WAY)
    np.testing.assert_allclose(forward, slope, rtol=1e-6)


MASK = np.arange(X.size) != 3
LOST = {"mask": MASK, "weights": jnp.where(MASK, 2.0, 0.0)}


@pytest.mark.parametrize("kind", LOST)
@pytest.mark.parametrize("fill", [np.nan, 1e200])
def test_points_that_do_not_count_may_be_anything(kind, fill):
    x = jnp.asarray(X).at[3].set(fill)

    def fitted(y):
        made = problem(data=(x, y.at[3].set(fill)), **{kind: LOST[kind]})
        return least_squares(made, TIGHT).values

    weights = jnp.array([0.3, -1.0, 2.0])
    gradient = jax.grad(lambda y: fitted(y) @ weights)(jnp.asarray(Y))
    slope = difference(lambda y: fitted(y) @ weights, jnp.asarray(Y), WAY)
    np.testing.assert_allclose(gradient @ WAY, slope, rtol=1e-6)


def test_a_weight_of_zero_has_a_derivative():
    def fitted(weight):
        weights = jnp.ones(X.size).at[3].set(weight)
        made = problem(data=(jnp.asarray(X), ODD), weights=weights)
        result = least_squares(made, TIGHT)
        return jnp.append(result.values, result.chi2)

    _, forward = jax.jvp(fitted, (jnp.zeros(()),), (jnp.ones(()),))
    # A weight is not negative; the second difference of two steps is left, 1e-6.
    near, far = fitted(1e-4), fitted(2e-4)
    slope = (4 * near - far - 3 * fitted(0.0)) / 2e-4
    np.testing.assert_allclose(forward, slope, rtol=1e-5)


def test_errors_have_derivatives_by_weights_with_a_mask():
    # A straight line: its covariance is the inverse of A^T W A.
    def line(p, data):
        x, y = data
        return p["m"] * x + p["c"] - y

    def errors(weights):
        made = LeastSquares(
            line,
            {"c": 0.0, "m": 1.0},
            (jnp.asarray(X), jnp.asarray(X)),
            weights=weights,
            mask=MASK,
            absolute_sigma=True,
        )
        return least_squares(made).standard_errors

    def exact(weights):
        rows = np.stack([np.ones_like(X), X], axis=1)[MASK]
        return np.sqrt(np.diag(np.linalg.inv(rows.T @ (weights[MASK, None] * rows))))

    weights, way = 1.5 + np.sin(X), np.cos(2 * X)
    slope = difference(exact, weights, way)
    _, forward = jax.jvp(errors, (jnp.asarray(weights),), (jnp.asarray(way),))
    np.testing.assert_allclose(forward, slope, rtol=1e-7)


@pytest.mark.parametrize("fill", [np.nan, 1e20])
def test_masked_values_of_a_separable_problem_may_be_anything(fill):
    def decay(p, x):
        return jnp.exp(-p["b"] * x)

    x = jnp.asarray(X).at[3].set(jnp.nan)

    def rate(y):
        y = y.at[3].set(fill)
        made = Separable(decay, {"b": 2.0}, x, y, offset=True, mask=MASK)
        return least_squares(made, TIGHT).values[0]

    gradient = jax.grad(rate)(ODD)
    np.testing.assert_allclose(gradient @ WAY, difference(rate, ODD, WAY), rtol=1e-6)
