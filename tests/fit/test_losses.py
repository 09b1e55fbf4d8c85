import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from physax._checks import ArgumentError
from physax.fit import (
    AbstractLoss,
    AbstractPrior,
    AbstractSampling,
    Arctan,
    Cauchy,
    Huber,
    LeastSquares,
    SoftL1,
    Squared,
    confidence_intervals,
    curve_fit,
    least_squares,
    plan,
    profile_likelihood,
)
from physax.runtime import mesh
from tests.fit.decays import X, Y, host_model, problem


LOSSES = [Squared, SoftL1, Huber, Cauchy, Arctan]
SCIPY = dict(
    zip(LOSSES, ("linear", "soft_l1", "huber", "cauchy", "arctan"), strict=True)
)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("kind", LOSSES)
def test_slopes_are_the_derivatives(kind):
    loss = kind()
    # Not z = 1, where Huber's second derivative jumps.
    z = jnp.array([0.0, 1e-6, 0.3, 0.99, 1.01, 4.0, 1e4])
    first, second = loss.slopes(z)
    slope = jax.grad(loss.rho)
    assert jnp.allclose(first, jax.vmap(slope)(z), rtol=1e-12, atol=1e-15)
    assert jnp.allclose(second, jax.vmap(jax.grad(slope))(z), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", LOSSES)
def test_small_residuals_count_as_squares(kind):
    # rho(z) = z + O(z^2): near 0 nothing is lost by rounding either.
    z = 1e-12
    assert abs(float(kind().rho(jnp.array(z))) / z - 1) < 1e-11


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("kind", LOSSES)
def test_optimum_is_scipys(kind):
    outliers = Y.copy()
    outliers[::17] += 0.5
    start = {"a": 2.0, "b": 1.2, "c": 0.4}
    result = least_squares(problem(start, (X, outliers), loss=kind(0.05)), throw=True)
    reference = optimize.least_squares(
        lambda p: host_model(X, *p) - outliers,
        list(start.values()),
        loss=SCIPY[kind],
        f_scale=0.05,
        **dict.fromkeys(("ftol", "xtol", "gtol"), 1e-15),
    )
    # Scipy's differences of first order leave some 1e-8.
    np.testing.assert_allclose(result.values, reference.x, rtol=1e-6)
    np.testing.assert_allclose(result.chi2, 2 * reference.cost, rtol=1e-10)


PLAN, STREAM = (plan(X.size, 2, 1e9, resident=r) for r in (True, False))
OUTLIERS = 3 * np.exp(-1.2 * X) + 0.05 * np.sin(37 * X)
OUTLIERS[::17] += 1.0


def sandwich(model, values, loss, weights, penalty, beliefs=0):
    """White's covariance in NumPy, of rows that SciPy's differences do not touch."""
    residuals, rows = model(values)
    scale = float(loss.scale)
    z = (residuals / scale) ** 2
    first, second = map(np.asarray, loss.slopes(jnp.asarray(z)))
    bread = (rows * (weights * (first + 2 * second * z))) @ rows.T + penalty
    meat = (rows * (weights * first * residuals) ** 2) @ rows.T + penalty
    inverse = np.linalg.inv(bread)
    count = len(z) + beliefs
    return inverse @ meat @ inverse * count / (count - len(values))


def decay_rows(values):
    a, b = values
    wave = np.exp(-b * X)
    return a * wave - OUTLIERS, np.stack([wave, -a * X * wave])


@pytest.mark.parametrize("kind", [Huber, SoftL1, Cauchy, Arctan])
def test_covariance_is_the_sandwich_of_huber_and_white(kind):
    # With points beyond the scale, where the curvature is 0 or negative.
    loss = kind(0.1)
    found = curve_fit(
        lambda x, a, b: a * jnp.exp(-b * x), X, OUTLIERS, p0=[2.5, 1.0], loss=loss
    )
    want = sandwich(decay_rows, found[0], loss, 1.0, 0.0)
    np.testing.assert_allclose(found[1], want, rtol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"plan": dataclasses.replace(PLAN, chunk=64)},
        {"plan": dataclasses.replace(STREAM, chunk=64, block=150)},
        {"mesh": mesh()},
    ],
)
def test_the_sandwich_is_the_same_however_the_data_are_read(options):
    loss, weights = Huber(0.1), np.linspace(0.5, 2.0, X.size)
    made = LeastSquares(
        lambda p, d: p[0] * jnp.exp(-p[1] * d[0]) - d[1],
        np.array([2.5, 1.0]),
        (X, OUTLIERS),
        loss=loss,
        weights=weights,
        penalty=lambda p: (p[:1] - 3.0) / 0.05,
        absolute_sigma=True,
    )
    found = least_squares(made, throw=True, progress=False, **options)
    belief = np.diag([0.05**-2.0, 0.0])
    want = sandwich(decay_rows, found.values, loss, weights, belief, 1)
    np.testing.assert_allclose(found.covariance, want, rtol=1e-6)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("loss", [Huber(0.5), Cauchy(1.0), Arctan(1.0)])
def test_errors_and_intervals_are_those_of_repeated_fits(loss):
    # Tails of Student's distribution, which no curvature of a cost knows.
    count, fits = 200, 400
    y = np.random.default_rng(3).standard_t(5, (fits, count))
    residual = lambda p, y: y - p  # noqa: E731
    fit = lambda y: least_squares(LeastSquares(residual, 0.0, y, loss=loss))  # noqa: E731
    results = jax.vmap(fit)(y)
    errors = np.asarray(results.standard_errors)[:, 0]
    # The scatter of 400 is known to 3.5 %; 3.5 of that.
    assert abs(np.std(results.parameters) / errors.mean() - 1) < 0.12
    ends = confidence_intervals(results, 0.9)
    inside = np.mean((ends.low < 0) & (ends.high > 0))
    assert abs(inside - 0.9) < 3.5 * np.sqrt(0.09 / fits)


@pytest.mark.slow
@pytest.mark.parametrize("high", [None, 1.1])
def test_the_errors_of_a_loss_are_differentiable(high):
    # And are those of a parameter held at a bound: zero, the other as if fixed.
    @jax.jit
    def error(shift):
        made = LeastSquares(
            lambda p, d: p["a"] * jnp.exp(-p["b"] * d[0]) - d[1],
            {"a": 2.5, "b": 1.0},
            (X, OUTLIERS + shift * jnp.sin(9 * X)),
            loss=SoftL1(0.1),
            bounds=({"a": None, "b": None}, {"a": None, "b": high}),
        )
        return least_squares(made).standard_errors

    step = 1e-5
    slope = jax.jacfwd(error)(0.0)
    want = (error(step) - error(-step)) / (2 * step)
    np.testing.assert_allclose(slope, want, rtol=1e-5, atol=1e-12)
    assert (want[1] == 0) == (high is not None)


@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_errors_of_a_loss_do_not_depend_on_the_condition(noise):
    # Passes form triangular factors for the second; also where none are outliers, so
    # that the curvature is kept positive nowhere.
    y = 1 + noise * np.random.default_rng(0).standard_t(4, X.size)

    def errors(shift, small):
        made = LeastSquares(
            lambda p, d: d[1] - p[0] - p[1] * (1 + small * d[0]),
            np.zeros(2),
            (X, y + shift * jnp.sin(X)),
            loss=Cauchy(1.0),
        )
        return small * least_squares(made).standard_errors[1]

    want, found = (errors(0.0, small) for small in (1.0, 1e-6))
    np.testing.assert_allclose(found, want, rtol=1e-6)
    want, found = (jax.grad(errors)(0.0, small) for small in (1.0, 1e-6))
    # The derivative of the minimum solves with the Hessian, the square of 4e6.
    np.testing.assert_allclose(found, want, rtol=1e-3)


@pytest.mark.slow
def test_a_profile_with_a_loss_ends_where_the_errors_do():
    # The cost of a mean is nearly a parabola.
    y = np.random.default_rng(5).normal(size=4000)
    made = LeastSquares(lambda p, y: y - p["m"], {"m": 0.0}, y, loss=Huber(0.5))
    result = least_squares(made)
    profile = profile_likelihood(made, result, "m", level=0.9)
    ends = confidence_intervals(result, 0.9)
    half = float((ends.high - ends.low)[0])
    assert abs((profile.high - profile.low) / half - 1) < 0.02


def test_scale_must_be_positive():
    with pytest.raises(ArgumentError, match="`scale` must be positive, but is 0"):
        Huber(0.0)


@pytest.mark.parametrize("kind", [AbstractLoss, AbstractPrior, AbstractSampling])
def test_what_lacks_a_method_is_refused_when_it_is_made(kind):
    class Half(kind):
        scale: float = 1.0

    with pytest.raises(TypeError, match="abstract"):
        Half()


def test_a_maximum_of_the_cost_is_told_from_a_minimum():
    # Between two heaps of points the cost of Cauchy has a maximum.
    points = jnp.array([0.0, 1.0, 0.0, 1.0])
    given = LeastSquares(
        lambda p, d: p["m"] - d, {"m": 0.5}, points, loss=Cauchy(scale=0.2)
    )
    found = least_squares(given)
    assert np.isnan(found.standard_errors).all()
    assert "Errors are NaN as the cost has no minimum here" in str(found)
    with pytest.raises(ArgumentError, match=r"at a minimum .*, with m = 0\.5\."):
        profile_likelihood(given, found, "m")
