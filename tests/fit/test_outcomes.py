"""How a fit ends, and that it never says more than it knows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from physax._checks import ArgumentError, PhysaxError
from physax._status import Status
from physax.fit import (
    FitError,
    LeastSquares,
    Separable,
    TrustRegion,
    confidence_intervals,
    identifiability,
    least_squares,
)
from physax.fit._fit_result import with_error
from physax.runtime import no_recompile
from tests.fit.decays import X, Y, problem


def unused(p, data):
    x, y = data
    return p["a"] * jnp.exp(-p["b"] * x) + 0 * p["unused"] - y


def product(p, data):
    x, y = data
    return p["a"] * p["twin"] * jnp.exp(-p["b"] * x) - y


def test_a_parameter_without_effect_is_undetermined():
    start = {"a": 1.0, "b": 1.0, "unused": 3.0}
    result = least_squares(LeastSquares(unused, start, (X, Y)))
    assert result.status == Status.UNDETERMINED
    assert not result.success
    assert float(result.parameters["unused"]) == 3
    errors = dict(zip(result.names, map(float, result.standard_errors), strict=True))
    assert errors["unused"] == np.inf
    assert errors["a"] < 1
    assert errors["b"] < 1
    assert result.message.endswith("do not determine every free parameter: unused.")
    interval = confidence_intervals(result)
    assert interval.high[2] == np.inf


@pytest.mark.slow
def test_a_product_of_two_parameters_is_undetermined():
    start = {"a": 1.0, "b": 1.0, "twin": 1.5}
    result = least_squares(LeastSquares(product, start, (X, Y)))
    assert result.status == Status.UNDETERMINED
    errors = dict(zip(result.names, map(float, result.standard_errors), strict=True))
    assert errors["a"] == errors["twin"] == np.inf
    assert errors["b"] < 1
    found = identifiability(result)
    assert found.undetermined == 1
    # In units of equal effect the two compensate each other, and b takes no part.
    weights = np.abs(found.directions[-1])
    np.testing.assert_allclose(weights, [2**-0.5, 0, 2**-0.5], atol=1e-7)
    assert "not determined: " in str(found)
    with pytest.raises(
        FitError, match="do not determine every free parameter: a, twin"
    ) as caught:
        least_squares(LeastSquares(product, start, (X, Y)), throw=True)
    assert isinstance(caught.value, PhysaxError)
    assert caught.value.result.status == Status.UNDETERMINED


def test_a_fit_without_budget_says_so():
    result = least_squares(problem(), TrustRegion(max_evaluations=2))
    assert result.status == Status.MAX_STEPS
    assert int(result.evaluations) == 2


def test_nan_in_the_data_names_the_point():
    y = Y.copy()
    y[[17, 30]] = np.nan
    result = least_squares(problem(data=(X, y)))
    assert result.status == Status.INVALID
    assert "residual of point 17 is not finite at the start (2 of 200" in result.message
    with pytest.raises(FitError, match="point 17"):
        least_squares(problem(data=(X, y)), throw=True)


def test_a_perfect_fit_converges():
    exact = 2 * np.exp(-1.3 * X) + 0.5
    result = least_squares(problem(data=(X, exact)), throw=True)
    np.testing.assert_allclose(result.values, [2, 1.3, 0.5], rtol=1e-13)


def test_fewer_residuals_than_parameters_are_refused():
    with pytest.raises(ArgumentError, match="as there are parameters, 3, but give 2"):
        least_squares(problem(data=(X[:2], Y[:2])))


@pytest.mark.parametrize("left", [0, 2])
def test_a_mask_that_leaves_fewer_residuals_than_parameters_is_refused(left):
    mask = np.arange(X.size) < left
    text = f"`mask` must leave .* parameters, 3, but leaves {left}. Fix"
    with pytest.raises(ArgumentError, match=text):
        least_squares(problem(mask=mask))
    apart = Separable(
        lambda p, x: jnp.exp(-p["rate"] * x), {"rate": 1.0}, X, Y, offset=True,
        mask=mask,
    )  # fmt: skip
    with pytest.raises(ArgumentError, match=text):
        least_squares(apart)


def test_as_many_residuals_as_parameters_leave_the_errors_open():
    picked = [0, 60, 199]
    result = least_squares(problem(data=(X[picked], Y[picked])))
    assert int(result.degrees_of_freedom) == 0
    assert np.all(np.asarray(result.standard_errors) == np.inf)


def test_arrays_of_other_lengths_are_refused():
    with pytest.raises(
        ArgumentError, match="`data` must have first axes of equal length"
    ):
        least_squares(problem(data=(X, Y[:-1])))


PLACES = {
    r"'data\[0\]': 200, 'data\[1\]': 199": {"data": (X, Y[:-1])},
    r"'data\[1\]': 200, 'weights': 199": {"weights": X[1:]},
    r"'data\[1\]': 200, 'mask': 199": {"mask": np.ones(199, bool)},
    r"^`data\[1\]` must be an array .* but is 2\.0": {"data": (X, 2.0)},
}


@pytest.mark.parametrize("message", PLACES)
def test_errors_name_arrays_as_the_call_does(message):
    with pytest.raises(ArgumentError, match=message):
        least_squares(problem(**PLACES[message]))


def test_errors_name_data_in_a_dict():
    made = LeastSquares(lambda p, d: p * d["x"], 1.0, {"x": X, "y": Y[1:]})
    with pytest.raises(ArgumentError, match=r"\{\"data\['x'\]\": 200, \"data\['y'\]\""):
        least_squares(made)
    apart = Separable(lambda p, x: jnp.exp(-p * x), 1.0, X, Y[1:])
    with pytest.raises(ArgumentError, match="'data': 200, 'observed': 199}"):
        least_squares(apart)


def test_masked_data_point_to_the_mask():
    masked = np.ma.masked_greater(Y, np.sort(Y)[-2])
    with pytest.raises(ArgumentError, match="is masked. Say which points count with"):
        least_squares(problem(data=(X, masked)))


def test_another_order_of_bytes_is_refused_with_what_to_do():
    with pytest.raises(ArgumentError, match=r"byte order .* dtype >f8. Use `x.astype"):
        least_squares(problem(data=(X, Y.astype(">f8"))))


def test_residuals_of_another_shape_are_refused():
    total = LeastSquares(lambda p, d: jnp.sum(p * d), 1.0, X)
    with pytest.raises(ArgumentError, match="first axis is the points of the chunk"):
        least_squares(total)


def test_residuals_of_a_whole_record_are_those_of_one_point():
    def rows(p, data):
        return jnp.exp(-p * X[1:]) - data[1:]

    y = np.exp(-0.7 * X) + 0.01 * np.sin(40 * X)
    refused = "must take any number of points, .*: sub got incompatible shapes"
    with pytest.raises(ArgumentError, match=refused + r".*\. Make a whole record one"):
        least_squares(LeastSquares(rows, 1.0, y))
    with pytest.raises(ArgumentError, match="is empty. Where a function of the param"):
        least_squares(LeastSquares(lambda p, _: rows(p, y), 1.0, None))
    one = LeastSquares(lambda p, data: rows(p, data[0])[None], 1.0, y[None])
    expected = optimize.least_squares(lambda p: np.exp(-p * X[1:]) - y[1:], 1.0)
    found = least_squares(one, throw=True)
    np.testing.assert_allclose(found.values, expected.x, rtol=1e-6)


def test_a_fault_of_the_residual_itself_is_told_as_it_is():
    with pytest.raises(TypeError, match="unsupported operand"):
        least_squares(LeastSquares(lambda p, data: p * data + "1", 1.0, X))


def test_a_second_fit_compiles_nothing():
    least_squares(problem())
    ballast = np.ones(10**6)  # Not even where another amount of memory is free.
    again = problem({"a": 1.5, "b": 1.0, "c": 0.1}, (X + 0.01, Y))
    with no_recompile():
        least_squares(again)
    del ballast


def test_the_result_reads_well():
    text = str(least_squares(problem()))
    assert "The run converged: the stop rule was met." in text
    assert "197 degrees of freedom" in text
    assert "b  1.2857 ± 0.0091" in text


def test_residuals_that_are_all_nan_leave_no_degrees_of_freedom():
    text = str(least_squares(problem(data=(X, np.nan * Y))))
    assert ", no degrees of freedom; 0 iterations" in text
    assert "reduced" not in text


def faded(p, data):
    x, y = data
    return p[0] * jnp.exp(-p[1] * x) + p[2] - y


def turned(p, data):
    x, y = data
    return p[0] * jnp.cos(p[1] * x) + p[2] * jnp.cos(p[1] * x + 2 * np.pi) - y


@pytest.mark.slow
def test_what_only_rounding_tells_is_undetermined():
    flat = least_squares(LeastSquares(faded, np.ones(3), (X, 0 * X + 1.139)))
    assert flat.status == Status.UNDETERMINED
    waves = 2 * np.cos(95 * X) + Y - Y.mean()
    start = np.array([1.0, 95.0, 1.0])
    twins = least_squares(LeastSquares(turned, start, (X, waves)))
    assert twins.status == Status.UNDETERMINED
    assert twins.standard_errors[0] == np.inf


def test_what_has_faded_is_named():
    # Of exp(4 x) with x up to 10 nothing fits: the search flees to where it is 0.
    x = np.linspace(0, 10, X.size)
    grows = LeastSquares(faded, np.array([1.0, -4.0, 0.0]), (x, np.exp(0.1 * x)))
    result = least_squares(grows)
    assert result.status == Status.UNDETERMINED
    assert "do not determine every free parameter: p[1]." in result.message
    assert result.standard_errors[1] == np.inf


def test_a_parameter_that_is_zero_is_determined():
    # To rounding, and not flat: a start of zero that stays there.
    exact = X, 2 * np.exp(-1.3 * X)
    for start in (0.0, 1e-30, 1.0):
        result = least_squares(LeastSquares(faded, np.array([1.0, 2.0, start]), exact))
        assert result.status == Status.CONVERGED, start
        assert abs(float(result.values[2])) < 1e-12


def test_points_of_weight_zero_do_not_count():
    weights = np.where(np.arange(X.size) % 9 == 0, 0.0, 1.0)
    weighted = least_squares(problem(weights=weights))
    masked = least_squares(problem(mask=weights > 0))
    assert weighted.count == masked.count == np.sum(weights > 0)
    np.testing.assert_allclose(weighted.covariance, masked.covariance, rtol=1e-9)
    with pytest.raises(ArgumentError, match="`weights` must be finite and not neg"):
        problem(weights=weights - 0.5)


@pytest.mark.parametrize("mask", [None, np.arange(6) < 2])
def test_what_is_known_before_makes_up_for_few_points(mask):
    # Three parameters, two points; the minimum is that of the normal equations.
    x = np.arange(6.0 if mask is not None else 2.0)
    made = LeastSquares(
        lambda p, d: p[0] + p[1] * d[0] + p[2] * d[0] ** 2 - d[1],
        np.zeros(3),
        (x, 1 + x),
        mask=mask,
        penalty=lambda p: 0.1 * p,
    )
    rows = np.vander(x[:2], 3, increasing=True)
    want = np.linalg.solve(rows.T @ rows + 0.01 * np.eye(3), rows.T @ (1 + x[:2]))
    np.testing.assert_allclose(least_squares(made).values, want, rtol=1e-6)


@pytest.mark.x64
@pytest.mark.parametrize("absolute", [True, False])
def test_residuals_of_a_penalty_are_degrees_of_freedom(absolute):
    # 10 points, 8 parameters with a prior each: chi2 has the mean 10 + 8 - 8.
    keys = jax.random.split(jax.random.key(3), 1000)
    rows = jax.random.normal(jax.random.key(4), (10, 8))

    def fit(key):
        first, second = jax.random.split(key)
        true = 1 + 0.5 * jax.random.normal(first, (8,))
        seen = rows @ true + jax.random.normal(second, (10,))
        made = LeastSquares(
            lambda p, d: d[0] @ p - d[1],
            jnp.zeros(8),
            (rows, seen),
            penalty=lambda p: (p - 1) / 0.5,
            absolute_sigma=absolute,
        )
        found = least_squares(made)
        return found.chi2, found.reduced_chi2, (found.values - true), found.covariance

    chi2, reduced, off, covariance = jax.vmap(fit)(keys)
    assert np.mean(chi2) == pytest.approx(10, rel=0.05)
    np.testing.assert_allclose(reduced, chi2 / 10, rtol=1e-12)
    inverse = np.asarray(rows.T @ rows) + 4 * np.eye(8)
    scale = np.ones(1000) if absolute else np.asarray(reduced)
    expected = scale[:, None, None] * np.linalg.inv(inverse)
    np.testing.assert_allclose(covariance, expected, rtol=1e-6, atol=1e-9)
    errors = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    # With the scale from the residuals it is Student's t of 10 degrees of freedom.
    spread = np.mean((off / errors) ** 2)
    assert spread == pytest.approx(1 if absolute else 10 / 8, rel=0.1)


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (1.986934922e-12, 1.2e-14, "1.987e-12 ± 1.2e-14"),
        (-6.60842858e-34, 2.2e-36, "-6.608e-34 ± 2.2e-36"),
        (123456789.0, 4321.0, "1.234568e+08 ± 4.3e+03"),
        (1e-12, 3.4e-10, "1.0e-12 ± 3.4e-10"),
        (0.0, 3.4e-10, "0.0e+00 ± 3.4e-10"),
        (1.2857, 0.0091, "1.2857 ± 0.0091"),
        (float("nan"), 1e-10, "nan ± 1e-10"),
    ],
)
def test_values_are_printed_to_the_digits_of_their_errors(value, error, shown):
    assert with_error(value, error) == shown
