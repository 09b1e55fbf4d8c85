"""Fits in units in which squares of residuals are no numbers of the dtype."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import fit, runtime


KEY = np.random.default_rng(0)
X = np.linspace(0.6, 1.2, 20)
Y = 0.66 * X - 0.3 + 0.002 * KEY.normal(size=20)
F32 = [
    (1e15, 1e-18),
    (1e18, 1.0),
    (1e-25, 1e-9),
    (1.0, 1e-30),
    (1.0, 1e24),
    (1e9, 1e34),
]
# Fourth powers of residuals, in which errors of robust fits were, leave it earlier.
ROBUST = [
    *(F32[n] for n in (0, 3, 4)),
    *((1.0, up) for up in (1e-12, 1e12, 1e18, 1e19)),
]

F64 = [(1e15, 1e-170), (1e170, 1.0), (1.0, 1e-280), (1.0, 1e200)]


def line(x, h, w):
    return h * x - w


def residual(p, data):
    x, y = data
    return line(x, p["h"], p["w"]) - y


def exact(weights=1.0):
    """The straight line by NumPy, in units of order 1: values, errors, deviation."""
    rows = np.stack([X, -np.ones_like(X)], axis=1)
    found, (cost,), *_ = np.linalg.lstsq(rows, Y, rcond=None)
    variance = cost / (len(X) - 2)
    return found, np.sqrt(variance * np.diag(np.linalg.inv(rows.T @ rows)) / weights)


def scaled(units):
    """Returns data and start in other units, and those of the parameters."""
    dtype = np.dtype(jnp.result_type(float))
    across, up = units
    data = (X * across).astype(dtype), (Y * up).astype(dtype)
    own = np.array([up / across, up])
    return data, {"h": 0.5 * own[0], "w": 0.1 * own[1]}, own


def check(result, own, errors=1.0):
    """Compares a result with the truth."""
    values, deviations = exact()
    assert result.success
    found = np.asarray(result.values, float) / own
    # Rounding of the data in float32 is 1e-5 of their deviation.
    np.testing.assert_allclose((found - values) / deviations, 0, atol=1e-2)
    found = np.asarray(result.standard_errors, float) / own
    np.testing.assert_allclose(found, errors * deviations, rtol=1e-3)
    np.testing.assert_allclose(result.correlation[0, 1], 0.98014, rtol=1e-3)
    # Printed right, also where `chi2` is out of range.
    printed = re.search(r"chi-square (\S+),", str(result))
    assert printed is not None
    np.testing.assert_allclose(float(printed[1]), exact_cost(own[1]), rtol=1e-3)


def exact_cost(up):
    values, _ = exact()
    return float(np.sum((line(X, *values) - Y) ** 2)) * float(up) * float(up)


def by_curve_fit(data, start):
    return fit.curve_fit(line, *data, p0=list(start.values())).result


def by_blocks(data, start):
    plan = fit.plan(len(X), 2, resident=False)
    return fit.least_squares(fit.LeastSquares(residual, start, data), plan=plan)


def on_a_mesh(data, start):
    problem = fit.LeastSquares(residual, start, data)
    return fit.least_squares(problem, mesh=runtime.mesh())


def in_a_batch(data, start):
    def one(x, y, start):
        return fit.least_squares(fit.LeastSquares(residual, start, (x, y)))

    ordinary, first, _ = scaled((1.0, 1.0))
    both = jax.tree.map(
        lambda *xs: jnp.stack([jnp.asarray(x) for x in xs]),
        *((*data, start), (*ordinary, first)),
    )
    found = jax.vmap(one)(*both)
    assert np.all(np.asarray(found.status) == found.status[0])
    return jax.tree.map(lambda x: x[0], found)


@pytest.mark.f32
@pytest.mark.parametrize("units", F32)
def test_a_line_in_any_units_is_that_of_numpy(units):
    data, start, own = scaled(units)
    check(by_curve_fit(data, start), own)


@pytest.mark.x64
@pytest.mark.parametrize("units", F64)
def test_a_line_in_any_units_is_that_of_numpy_in_double_precision(units):
    data, start, own = scaled(units)
    check(by_curve_fit(data, start), own)


@pytest.mark.f32
@pytest.mark.parametrize("way", [by_blocks, on_a_mesh, in_a_batch])
@pytest.mark.parametrize("units", [F32[0], F32[3]])
def test_all_ways_to_fit_know_small_units(way, units):
    data, start, own = scaled(units)
    check(way(data, start), own)


@pytest.mark.f32
@pytest.mark.parametrize("start", [[1e-21], [1.0], [1e-10], [1e-30]])
def test_charges_of_drops_are_found_from_any_start(start):
    number = np.arange(1, 21, dtype=np.float32)
    noise = 1 + 0.01 * np.random.default_rng(0).normal(size=20)
    charge = (1.602e-21 * number * noise).astype(np.float32)
    result = fit.curve_fit(lambda n, e: n * e, number, charge, p0=start).result
    truth = charge.astype(float) @ number / (number @ number)
    cost = np.sum((charge.astype(float) - truth * number) ** 2)
    error = np.sqrt(cost / 19 / (number @ number))
    np.testing.assert_allclose(result.values[0], truth, rtol=1e-6)
    np.testing.assert_allclose(result.standard_errors[0], error, rtol=1e-4)


@pytest.mark.f32
def test_small_units_with_known_deviations():
    data, start, own = scaled(F32[0])
    sigma = np.float32(2e-21)
    given = {"p0": list(start.values()), "sigma": sigma, "absolute_sigma": True}
    result = fit.curve_fit(line, *data, **given).result
    rows = np.stack([X, -np.ones_like(X)], axis=1)
    errors = 0.002 * np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)))
    check_errors = np.asarray(result.standard_errors, float) / own
    np.testing.assert_allclose(check_errors, errors, rtol=1e-4)
    np.testing.assert_allclose(result.chi2, exact_cost(1e-18) / 4e-42, rtol=1e-4)


@pytest.mark.f32
def test_linear_coefficients_in_small_units():
    x = np.linspace(0, 3, 40)
    y = np.exp(-2 * x) + 0.1 + 0.01 * np.sin(5 * x)
    ordinary = x.astype(np.float32), y.astype(np.float32)
    decay = ordinary[0], (1e-25 * y).astype(np.float32)
    problem = fit.Separable(
        lambda p, x: jnp.exp(-p["rate"] * x), {"rate": 1.0}, *decay, offset=True
    )
    same = fit.Separable(
        lambda p, x: jnp.exp(-p["rate"] * x), {"rate": 1.0}, *ordinary, offset=True
    )
    result, truth = fit.least_squares(problem), fit.least_squares(same)
    assert result.success
    for name, unit in (("values", 1.0), ("linear", 1e-25)):
        found = np.asarray(getattr(result, name), float) / unit
        np.testing.assert_allclose(found, getattr(truth, name), rtol=1e-3)
    for name, unit in (("standard_errors", 1.0), ("linear_errors", 1e-25)):
        found = np.asarray(getattr(result, name), float) / unit
        np.testing.assert_allclose(found, getattr(truth, name), rtol=1e-2)


@pytest.mark.f32
@pytest.mark.parametrize("units", ROBUST)
def test_losses_and_penalties_scale_with_the_data(units):
    def fitted(units):
        data, start, own = scaled(units)
        up = np.float32(own[1])
        problem = fit.LeastSquares(
            residual,
            start,
            data,
            loss=fit.SoftL1(0.002 * up),
            penalty=lambda p: (p["w"] - np.float32(0.31) * up) * np.float32(0.5),
        )
        return fit.least_squares(problem), own

    (truth, _), (result, own) = fitted((1.0, 1.0)), fitted(units)
    assert result.success
    np.testing.assert_allclose(result.values / own, truth.values, rtol=1e-4)


@pytest.mark.f32
@pytest.mark.parametrize("units", ROBUST)
def test_robust_errors_scale_with_the_data(units):
    def fitted(units):
        data, start, own = scaled(units)
        loss = fit.SoftL1(np.float32(0.002 * own[1]))
        problem = fit.LeastSquares(residual, start, data, loss=loss)
        result = fit.least_squares(problem)
        return result, fit.profile_likelihood(problem, result, "h"), own

    (truth, wide, _), (result, profile, own) = fitted((1.0, 1.0)), fitted(units)
    found = np.asarray(result.standard_errors, float) / own
    np.testing.assert_allclose(found, truth.standard_errors, rtol=1e-3)
    ends = np.array([profile.low, profile.high]) / own[0]
    np.testing.assert_allclose(ends, [wide.low, wide.high], rtol=1e-3)


@pytest.mark.f32
def test_derivatives_of_a_fit_in_small_units():
    # Of a line through 0: d e / d q = n / n^2, whatever the unit.
    number = np.arange(1, 21, dtype=np.float32)
    charge = jnp.asarray(1.602e-21 * number * (1 + 0.01 * np.sin(number)), "float32")

    def slope(q):
        problem = fit.LeastSquares(
            lambda p, data: data[0] * p - data[1], 1e-21, (number, q)
        )
        return fit.least_squares(problem).parameters

    found = jax.grad(slope)(charge)
    np.testing.assert_allclose(found, number / (number @ number), rtol=1e-5)


@pytest.mark.f32
def test_data_that_fit_exactly_still_converge():
    x = X.astype(np.float32)
    result = fit.curve_fit(lambda x, a: a * x, x, 0 * x, p0=[1.0]).result
    assert result.success
    assert float(result.values[0]) == pytest.approx(0, abs=1e-12)


def decaying(p, data):
    x, y = data
    return p["a"] * jnp.exp(-p["b"] * x) + p["c"] - y


@pytest.mark.f32
@pytest.mark.parametrize("unit", [1e-30, 1e-20, 1e19])
def test_derivatives_have_the_curvature_of_the_model_in_any_units(unit):
    x = np.linspace(0, 4, 60)
    y = 2.5 * np.exp(-1.3 * x) + 0.5 + 0.2 * np.cos(5 * x)
    way = np.float32(np.sin(3 * x))

    def slopes(unit):
        unit = np.float32(unit)

        def values(y):
            start = {"a": unit, "b": np.float32(1.0), "c": 0 * unit}
            problem = fit.LeastSquares(decaying, start, (np.float32(x), unit * y))
            return fit.least_squares(problem).values / jnp.stack([unit, 1.0, unit])

        return jax.jvp(values, (jnp.asarray(y, "float32"),), (way,))[1]

    np.testing.assert_allclose(slopes(unit), slopes(1.0), rtol=1e-3)


@pytest.mark.f32
@pytest.mark.parametrize("unit", [1e17, 1e18, 3e18])
def test_parameters_far_above_their_deviations_end_no_search(unit):
    x = np.linspace(980, 1020, 81)
    y = unit * np.exp(-0.5 * ((x - 1000) / 3) ** 2)

    def bell(x, a, centre, width):
        return a * jnp.exp(-0.5 * ((x - centre) / width) ** 2)

    data = np.float32(x), np.float32(y)
    found = fit.curve_fit(bell, *data, p0=[0.5 * unit, 1006.0, 2.0]).result
    assert found.success
    np.testing.assert_allclose(found.values, [unit, 1000, 3], rtol=1e-4)


@pytest.mark.f32
def test_columns_too_far_apart_for_the_dtype_are_no_success():
    # Slopes of 1e19 and data of 1e-8 have no common unit.
    x = np.linspace(0, 4, 60)
    data = np.float32(1e19 * x), np.float32(1e-8 * (np.exp(-1.3 * x) + 0.5))
    problem = fit.Separable(
        lambda p, x: jnp.exp(-p["b"] * x), {"b": 1e-19}, *data, offset=True
    )
    assert not fit.least_squares(problem).success
