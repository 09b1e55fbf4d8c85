"""Models that need other points: refused in pieces, fitted as one point."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from physax._checks import ArgumentError
from physax.fit import (
    LeastSquares,
    Separable,
    Stream,
    curve_fit,
    least_squares,
    multistart,
    plan,
)
from physax.fit._pointwise import check_pointwise


X = np.linspace(5, 15, 300)
Y = 2 * np.exp(-0.7 * (X - X[0])) + 0.01 * np.random.default_rng(0).normal(size=300)
PIECES = dataclasses.replace(plan(300, 2), chunk=100, block=150)
BLOCKS = dataclasses.replace(plan(300, 2, resident=False), chunk=100, block=150)
KERNEL = np.array([0.2, 0.5, 0.3])

MODELS = {
    "first": lambda p, x: p[0] * jnp.exp(-p[1] * (x - x[0])),
    "largest": lambda p, x: p[0] * jnp.exp(-p[1] * x / jnp.max(x)),
    "mean": lambda p, x: p[0] * (x - jnp.mean(x)) + p[1],
    "neighbours": lambda p, x: jnp.convolve(
        p[0] * jnp.exp(-(((x - 8 * p[1]) / 0.1) ** 2)), KERNEL, mode="same"
    ),
    "number": lambda p, x: p[0] * jnp.exp(-p[1] * x) / x.size,
}
MESSAGE = (
    r"`residual`.* must give each point from its own data alone where there are more "
    r"points, 300, than are evaluated at once, 100, but values or derivatives change"
)


def of(model, start=(1.0, 1.0), data=(X, Y), **options):
    return LeastSquares(
        lambda p, d: model(p, d[0]) - d[1], np.array(start), data, **options
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_needs_other_points_is_refused_in_pieces(name):
    with pytest.raises(ArgumentError, match=MESSAGE):
        least_squares(of(MODELS[name]), plan=PIECES)


@pytest.mark.parametrize("start", [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)])
def test_zeros_of_the_start_hide_nothing(start):
    with pytest.raises(ArgumentError, match=MESSAGE):
        least_squares(of(MODELS["first"], start), plan=PIECES)


def test_it_is_refused_wherever_points_are_divided():
    model = MODELS["first"]
    with pytest.raises(ArgumentError, match=MESSAGE):
        least_squares(of(model), plan=BLOCKS, progress=False)
    stream = Stream(lambda: iter([(X, Y)]), X.size)
    with pytest.raises(ArgumentError, match=MESSAGE):
        least_squares(of(model, data=stream), plan=BLOCKS, progress=False)
    bounded = of(model, bounds=(0.0, 5.0))
    with pytest.raises(ArgumentError, match="than are evaluated at once, 256, but"):
        multistart(bounded, key=jax.random.key(0), starts=64)
    linear = Separable(lambda p, x: jnp.exp(-p * (x - x[0])), 1.0, X, Y)
    with pytest.raises(ArgumentError, match="`basis` must give each point from its"):
        least_squares(linear, plan=PIECES)
    x = np.linspace(0, 10, 2**20 + 1)
    with pytest.raises(ArgumentError, match="or `f` of `curve_fit`, must give each"):
        curve_fit(lambda x, a, b: a * x / jnp.max(x) + b, x, 2 * x)


def test_all_points_as_one_are_fitted_as_scipy_does():
    def response(x, a, c, s):
        return jnp.convolve(a * jnp.exp(-(((x[0] - c) / s) ** 2)), KERNEL, "same")[None]

    def host(x, a, c, s):
        return np.convolve(a * np.exp(-(((x - c) / s) ** 2)), KERNEL, "same")

    y = host(X, 3, 9, 1.5) + 100 * (Y - Y.mean()) * 1e-3
    start = [1, 8, 1.0]
    found = curve_fit(response, X[None], y[None], p0=start)
    expected, covariance = optimize.curve_fit(host, X, y, p0=start)
    np.testing.assert_allclose(found.popt, expected, rtol=1e-6)
    np.testing.assert_allclose(found.pcov, covariance, rtol=1e-4, atol=1e-10)


def test_a_model_of_single_points_is_looked_at_without_compiling_again():
    traces = []

    def residual(p, data):
        traces.append(data[0].shape)
        x, y = data
        wave = p["a"] * jnp.exp((1j * p["w"] - p["b"]) * (x[:, None] - 5))
        return wave * jnp.array([1.0, 2.0]) - y[:, None]

    start = {"a": 0.0, "b": 1.0, "w": 0.1}
    weights = np.linspace(0, 1, X.size)
    made = LeastSquares(residual, start, (X, Y + 0j), weights=weights, mask=X > 6)
    check_pointwise(made, made.data, X.size, 101)
    assert traces
    traces.clear()
    check_pointwise(made, made.data, X.size, 101)
    assert not traces


TABLE = jnp.linspace(0.0, 20.0, 50)
LEGITIMATE = {
    "table": lambda p, x: p[0] * jnp.interp(p[1] * x, TABLE, jnp.cos(TABLE)),
    "quadrature": lambda p, x: p[0] * jnp.exp(-p[1] * x[:, None] * TABLE).mean(1),
    "pieces": lambda p, x: jnp.where(x < 9 * p[1], p[0] * x, p[0] * x**2),
    "NaN beside the start": lambda p, x: p[0] + jnp.sqrt(p[1] * (x - 5.01)),
    "order": lambda p, x: p[0] * TABLE[(x * 2).astype(int)] + p[1],
}


@pytest.mark.parametrize("name", LEGITIMATE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_of_each_point_is_not_refused(name, dtype):
    data = X.astype(dtype), np.ones(300, dtype)
    problem = of(LEGITIMATE[name], data=data)
    check_pointwise(problem, problem.data, 300, 100)


def test_no_more_points_are_evaluated_at_once_than_the_plan_says():
    seen = []

    def model(p, x):
        seen.append(x.shape[0])
        return p[0] * jnp.exp(-p[1] * x)

    problem = of(model)
    seen.clear()
    check_pointwise(problem, problem.data, 300, 20)
    assert max(seen) == 20
