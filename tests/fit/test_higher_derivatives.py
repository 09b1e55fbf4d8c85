"""Derivatives of fits of higher order, and of fits that are hardly determined."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.fit import Huber, LeastSquares, Separable, TrustRegion, least_squares


TIGHT = TrustRegion(ftol=1e-15, xtol=1e-15, gtol=1e-15)
X = np.linspace(0, 3, 20)
Y = jnp.asarray(2 * np.exp(-1.3 * X) + 0.1 * np.sin(6 * X))
WAY = jnp.asarray(np.cos(2 * X))


def log_of_mean(y):
    """Fits exp(p) to numbers: p is the logarithm of their mean."""
    return least_squares(LeastSquares(lambda p, y: jnp.exp(p) - y, 0.3, y))


def expected(y):
    mean, count = jnp.mean(y), y.size
    chi2 = jnp.sum((y - mean) ** 2)
    error = jnp.sqrt(chi2 / (count - 1) / count) / mean
    return jnp.stack([jnp.log(mean), chi2, error])


def found(y):
    result = log_of_mean(y)
    return jnp.stack([result.parameters, result.chi2, result.standard_errors[0]])


NUMBERS = jnp.array([1.0, 2.0, 4.0])


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("outer", [jax.jacfwd, jax.jacrev])
def test_second_derivatives_of_the_logarithm_of_a_mean(outer):
    ours, exact = (jax.jit(outer(jax.jacrev(f)))(NUMBERS) for f in (found, expected))
    np.testing.assert_allclose(ours, exact, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_third_derivatives_of_a_batch():
    def third(function):
        def along(s, y):
            return function(y + s * y**2)

        for _ in range(3):
            along = jax.jacfwd(along)
        return jax.jit(jax.vmap(lambda y: along(0.0, y)))

    batch = jnp.stack([NUMBERS, 2 + NUMBERS])
    ours, exact = third(found)(batch), third(expected)(batch)
    np.testing.assert_allclose(ours, exact, rtol=1e-8, atol=1e-12)


def model(p, data):
    x, y = data
    return p["a"] * jnp.exp(-p["b"] * x) - y


def fitted(y, **options):
    start = {"a": 1.0, "b": 1.0}
    made = LeastSquares(model, start, (jnp.asarray(X), y), **options)
    return least_squares(made, TIGHT).values


def separated(y):
    made = Separable(lambda p, x: jnp.exp(-p * x), 1.0, jnp.asarray(X), y)
    result = least_squares(made, TIGHT)
    return jnp.concatenate([result.linear, result.values])


def reduced(y, most=1.2):
    """Fits the amplitude alone, which is linear, to what a bound leaves of the rate."""
    shape = jnp.exp(-most * X)
    return jnp.stack([shape @ y / (shape @ shape), jnp.asarray(most)])


def hessian_along(function, y):
    """Returns the Hessian of a sum of what is found, times a way."""
    total = lambda y: jnp.array([0.7, -1.2]) @ function(y)  # noqa: E731
    return jax.jit(lambda y: jax.jvp(jax.grad(total), (y,), (WAY,))[1])(y)


OPTIONS = {
    "loss": {"loss": Huber(0.05)},
    "penalty": {"penalty": lambda p: p["a"] - p["b"]},
    "weights": {"weights": jnp.asarray(1 + X)},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_second_derivatives_are_differences_of_the_first(name):
    def one(y):
        return fitted(y, **OPTIONS[name])

    first = jax.jit(jax.grad(lambda y: jnp.array([0.7, -1.2]) @ one(y)))
    slope = (first(Y + 1e-5 * WAY) - first(Y - 1e-5 * WAY)) / 2e-5
    # Central differences of such steps are good to some 1e-9.
    np.testing.assert_allclose(hessian_along(one, Y), slope, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_second_derivatives_of_eliminated_coefficients_are_those_of_the_joint_fit():
    joint = hessian_along(fitted, Y)
    np.testing.assert_allclose(hessian_along(separated, Y), joint, rtol=1e-7)


def test_second_derivatives_with_a_parameter_at_its_bound():
    bounds = ({"a": None, "b": None}, {"a": None, "b": 1.2})

    def bounded(y):
        y = y**2
        return fitted(y, bounds=bounds)

    assert float(bounded(Y)[1]) == 1.2
    exact = hessian_along(lambda y: reduced(y**2), Y)
    np.testing.assert_allclose(hessian_along(bounded, Y), exact, rtol=1e-9, atol=1e-12)


def test_derivatives_by_what_the_residual_reads_from_outside():
    # The data are 2 (3 + s)^2 and the model is p (3 + s): p = 2 (3 + s).
    def slope(s):
        y = 2 * (3 + s) ** 2 * jnp.ones(4)
        made = LeastSquares(lambda p, y: p * (3 + s) - y, 1.0, y)
        return least_squares(made).parameters ** 2

    first = lambda s: jax.jvp(slope, (s,), (1.0,))[1]  # noqa: E731
    value, second = jax.jit(lambda s: jax.jvp(first, (s,), (1.0,)))(0.5)
    np.testing.assert_allclose((value, second), (8 * 3.5, 8), rtol=1e-9)


def exact_coefficients(columns, y):
    """Solves the normal equations of a linear fit in fractions."""
    a = [[Fraction(float(x)) for x in row] for row in columns]
    y = [Fraction(float(x)) for x in y]
    size, zero = len(a[0]), Fraction(0)
    rows = [
        [sum((r[i] * r[j] for r in a), zero) for j in range(size)]
        + [sum((r[i] * v for r, v in zip(a, y, strict=True)), zero)]
        for i in range(size)
    ]
    for i in range(size):
        first = rows[i][i]
        rows[i] = [x / first for x in rows[i]]
        for j in range(size):
            if j != i:
                part, pairs = rows[j][i], zip(rows[j], rows[i], strict=True)
                rows[j] = [x - part * z for x, z in pairs]
    return np.array([float(row[-1]) for row in rows])


def powers(size, dtype):
    return np.vander(np.linspace(0, 2, 23), size, increasing=True).astype(dtype)


def check_powers(columns, way, rtol):
    """Compares the derivative of coefficients, which are linear in the data."""

    def coefficients(y):
        start = np.zeros(columns.shape[1], columns.dtype)
        made = LeastSquares(lambda p, d: d[0] @ p - d[1], start, (columns, y))
        return least_squares(made).values

    y = jnp.asarray(np.random.default_rng(0).normal(size=23), columns.dtype)
    _, forward = jax.jvp(jax.jit(coefficients), (y,), (jnp.asarray(way),))
    exact = exact_coefficients(columns, way)
    off = np.linalg.norm(forward - exact) / np.linalg.norm(exact)
    assert off < rtol
    first = np.asarray(jax.jit(jax.grad(lambda y: coefficients(y)[-1]))(y))
    # The last may be what is left of terms a million million times as large.
    rounding = np.finfo(columns.dtype).eps * np.abs(first) @ np.abs(way)
    assert abs(first @ way - exact[-1]) < rtol * np.abs(exact[-1]) + rounding


# Condition numbers of 2e3 and 6e8: the product J^T J would have one of 5e6 in numbers
# of 7 digits, and of 4e17 in those of 16. What is left is some of condition times
# rounding, as of the parameters themselves.
@pytest.mark.f32
def test_derivatives_keep_their_digits_in_single_precision():
    way = np.random.default_rng(1).normal(size=23).astype(np.float32)
    check_powers(powers(6, np.float32), way, rtol=1e-3)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("kind", ["noise", "smooth"])
def test_derivatives_of_what_is_hardly_determined_keep_their_digits(kind):
    noise = np.random.default_rng(1).normal(size=23)
    way = {"noise": noise, "smooth": np.exp(-np.linspace(0, 2, 23))}[kind]
    check_powers(powers(13, float), way, rtol=1e-5)


def test_derivatives_keep_their_digits_with_functions_that_are_nearly_dependent():
    # Powers times a decay: what moves data of that form moves its parameters.
    x, size = np.linspace(0, 2, 40), 11
    powers, decay = np.vander(x, size, increasing=True), np.exp(-1.1 * x)
    linear, way = np.cos(1.3 * np.arange(size)), np.sin(1.0 + np.arange(size))
    moved = (powers @ way - 0.7 * x * (powers @ linear)) * decay

    def basis(p, x):
        return jnp.exp(-p * x)[:, None] * x[:, None] ** jnp.arange(size)

    def found(y):
        names = [f"a{i}" for i in range(size)]
        made = Separable(basis, 1.0, jnp.asarray(x), y, functions=names)
        result = least_squares(made)
        return jnp.concatenate([result.values, result.linear])

    y = jnp.asarray((powers @ linear) * decay)
    _, forward = jax.jit(lambda y, t: jax.jvp(found, (y,), (t,)))(y, jnp.asarray(moved))
    # A condition of 1e7, whose square is near the digits of the numbers.
    assert abs(float(forward[0]) - 0.7) < 1e-9
    np.testing.assert_allclose(forward[1:], way, atol=1e-6)
