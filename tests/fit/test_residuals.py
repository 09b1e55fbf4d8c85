"""Kinds of residuals and data: complex, several of a point, weights, masks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from physax._checks import ArgumentError
from physax.fit import LeastSquares, Stream, least_squares, multistart, plan
from tests.fit.decays import SIGMA, START, X, Y, host_model, model, problem


def reference(rows):
    """Scipy's answer for residuals of a vector of parameters."""
    tight = dict.fromkeys(("ftol", "xtol", "gtol"), 1e-15)
    return optimize.least_squares(rows, list(START.values()), **tight).x


def ringing(p, data):
    x, y = data
    return p["a"] * jnp.exp((1j * p["w"] - p["b"]) * x) - y


def test_complex_residuals_count_twice():
    generator = np.random.default_rng(1)
    noise = generator.normal(size=(2, X.size)) * SIGMA
    y = 2 * np.exp((3j - 0.7) * X) + noise[0] + 1j * noise[1]
    start = {"a": 1.0, "b": 1.0, "w": 2.8}
    result = least_squares(LeastSquares(ringing, start, (X, y)), throw=True)
    assert int(result.count) == 2 * X.size
    rest = np.asarray(ringing(result.parameters, (X, y)))
    np.testing.assert_allclose(result.chi2, np.sum(np.abs(rest) ** 2), rtol=1e-12)
    pulls = (np.asarray(result.values) - [2, 0.7, 3]) / result.standard_errors
    assert np.abs(pulls).max() < 4


def both(p, data):
    x, y = data
    return jnp.stack([model(p, x), model(p, x / 2)], axis=1) - y


def test_several_residuals_of_a_point():
    y = np.stack([Y, host_model(X / 2, 2.1, 1.2, 0.4)], axis=1)
    result = least_squares(LeastSquares(both, START, (X, y)), throw=True)

    def rows(p):
        pair = np.stack([host_model(X, *p), host_model(X / 2, *p)], axis=1)
        return (pair - y).ravel()

    assert int(result.count) == 2 * X.size
    np.testing.assert_allclose(result.values, reference(rows), rtol=1e-7)


def test_weights_multiply_squares():
    weights = np.random.default_rng(2).uniform(0.2, 3, X.size)
    result = least_squares(problem(weights=weights), throw=True)
    root = np.sqrt(weights)
    expected = reference(lambda p: root * (host_model(X, *p) - Y))
    np.testing.assert_allclose(result.values, expected, rtol=1e-7)


def test_masked_points_may_be_anything():
    y = Y.copy()
    y[::5] = np.nan
    y[1] = np.inf
    mask = np.isfinite(y)
    result = least_squares(problem(data=(X, y), mask=mask), throw=True)
    assert int(result.count) == mask.sum()
    kept = least_squares(
        problem(data=(X, np.where(mask, y, 0)), weights=mask.astype(float)), throw=True
    )
    np.testing.assert_allclose(result.values, kept.values, rtol=1e-10)
    expected = reference(lambda p: host_model(X[mask], *p) - y[mask])
    np.testing.assert_allclose(result.values, expected, rtol=1e-7)


def believed(p):
    return jnp.array([(p["b"] - 1) / 0.001])


@pytest.mark.slow
def test_a_penalty_counts_as_one_more_residual():
    result = least_squares(problem(penalty=believed), throw=True)
    assert int(result.count) == X.size + 1
    expected = reference(lambda p: np.append(host_model(X, *p) - Y, (p[1] - 1) / 0.001))
    np.testing.assert_allclose(result.values, expected, rtol=1e-7)


class Decay(eqx.Module):
    height: jax.Array
    rate: float

    def __call__(self, x):
        return self.height[0] * jnp.exp(-self.rate * x) + self.height[1]


def of_module(decay, data):
    x, y = data["x"], data["y"]
    return decay(x) - y


@pytest.mark.slow
def test_parameters_may_be_a_module_and_data_a_dict():
    start = Decay(jnp.array([1.0, 0.0]), 2.0)
    made = LeastSquares(of_module, start, {"x": X, "y": Y})
    result = least_squares(made, throw=True)
    assert result.names == ("height[0]", "height[1]", "rate")
    plain = least_squares(problem(), throw=True)
    np.testing.assert_allclose(result.values, plain.values[jnp.array([0, 2, 1])], 1e-9)
    assert isinstance(result.parameters, Decay)


@pytest.mark.slow
def test_batches_of_fits_are_vmapped():
    shifts = np.array([0.0, 0.1, 0.2])

    def one(shift):
        return least_squares(problem(data=(jnp.asarray(X), jnp.asarray(Y) + shift)))

    batch = eqx.filter_jit(eqx.filter_vmap(one))(jnp.asarray(shifts))
    assert batch.success
    single = least_squares(problem())
    np.testing.assert_allclose(batch.values[:, 1], float(single.values[1]), rtol=1e-9)
    np.testing.assert_allclose(
        batch.values[:, 2], float(single.values[2]) + shifts, rtol=1e-9
    )


def test_a_point_without_weight_does_not_move_the_fit():
    weights = np.ones(X.size)
    weights[10] = 0
    y = Y.copy()
    y[10] = 1e6
    moved = least_squares(problem(data=(X, y), weights=weights), throw=True)
    still = least_squares(problem(weights=weights), throw=True)
    np.testing.assert_allclose(moved.values, still.values, rtol=1e-8)


@pytest.mark.parametrize("start", [(1.0, 2.0, 0.0), (5.0, 0.5, -1.0), (0.1, 4.0, 1.0)])
def test_starts_lead_to_the_same_minimum(start):
    result = least_squares(problem(dict(zip("abc", start, strict=True))), throw=True)
    best = least_squares(problem(), throw=True)
    np.testing.assert_allclose(result.values, best.values, rtol=1e-9)


def test_a_column_that_broadcasts_is_refused_wherever_residuals_are_made():
    column = Y[:, None]
    message = (
        r"`residual` must return as many values for each point of a chunk as for one "
        r"alone, 1, but returns an array of shape \(200, 200\) for 200 points. .*"
        r"pass the column as `y\[:, 0\]`"
    )
    with pytest.raises(ArgumentError, match=message):
        least_squares(problem(data=(X, column)))
    blocks = plan(X.size, 3, resident=False)
    with pytest.raises(ArgumentError, match=message):
        least_squares(problem(data=(X, column)), plan=blocks, progress=False)
    stream = Stream(lambda: iter([(X, column)]), X.size)
    with pytest.raises(ArgumentError, match=message):
        least_squares(problem(data=stream), progress=False)
    limits = dict.fromkeys("abc", 0.0), dict.fromkeys("abc", 5.0)
    bounded = problem({"a": 1.0, "b": 2.0, "c": 0.5}, (X, column), bounds=limits)
    with pytest.raises(ArgumentError, match=message):
        multistart(bounded, key=jax.random.key(0), starts=2)


def test_columns_on_both_sides_are_a_fit_like_any_other():
    columns = least_squares(problem(data=(X[:, None], Y[:, None])), throw=True)
    plain = least_squares(problem(), throw=True)
    assert int(columns.count) == X.size
    np.testing.assert_allclose(columns.values, plain.values, rtol=1e-9)
