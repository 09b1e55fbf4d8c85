"""What users of SciPy may hand to `curve_fit`, and what it says of it."""

import inspect
import math
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from physax._checks import ArgumentError, PhysaxWarning
from physax.fit import FitError, curve_fit
from tests.fit.decays import SIGMA, TRUE, X, Y, host_model


def decay(x, a, b, c):
    return a * jnp.exp(-b * x) + c


def test_lists_are_arrays():
    found, covariance = curve_fit(decay, X.tolist(), Y.tolist())
    expected, expected_covariance = curve_fit(decay, X, Y)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(covariance, expected_covariance, rtol=1e-9)
    assert found == pytest.approx(TRUE, abs=5 * SIGMA)


@pytest.mark.parametrize("unit", [1e-9, 1e-15])
def test_the_unit_of_the_data_does_not_matter(unit):
    # From a start of ones that is 1/unit off, columns of the Jacobian shrink that much.
    y = 2 * np.exp(-3 * X) + 0.3 + 0.03 * np.sin(40 * X)
    expected, covariance = optimize.curve_fit(decay, X, y)
    found, errors = curve_fit(decay, X, unit * y)
    units = np.array([unit, 1, unit])
    np.testing.assert_allclose(found / units, expected, rtol=1e-5)
    np.testing.assert_allclose(errors / np.outer(units, units), covariance, rtol=1e-3)


REFUSED = {
    r"`f` must return an array of the shape of `ydata`, \(200,\), .* \(200, 1\)": {
        "f": lambda x, a, b: (a * jnp.exp(-b * x))[:, None]
    },
    "`f` must be one formula": {"f": lambda x, a, b: a * x if b > 0 else b * x},
    "`f` must be written with `jax.numpy`": {"f": lambda x, a, b: a * np.exp(-b * x)},
    r"`bounds` must be a pair, .* list \[0, 1, 2\]": {"bounds": [0, 1, 2]},
    r"`bounds` must be numbers, or one for each of 3 parameters": {
        "bounds": ([0, 0], [1, 1])
    },
    "`bounds` must be a pair, the lower and the upper bounds, but is int 3": {
        "bounds": 3
    },
    r"`bounds` must be a pair, .* list \[\(0, 5\), .* Write `\(\[low, ...\], \[high": {
        "bounds": [(0, 5), (0, 5), (0, 5)]
    },
    r"`bounds` must leave a parameter free, .* are \[0.0, 5.0\]. Write `\(\[low": {
        "f": lambda x, a, b: a * jnp.exp(-b * x),
        "bounds": [(0, 5), (0, 5)],
    },
    r"`bounds` must be a lower and an upper one, but of b the lower is 5 and the upper "
    r"2. Write `\(\[low, ...\], \[high": {
        "f": lambda x, a, b: a * jnp.exp(-b * x),
        "bounds": [(0, 5), (0, 2)],
    },
    "without `maxfev`. Write `method=fit.TrustRegion.max_evaluations=": {"maxfev": 99},
    r"without `ftol`. Write `method=fit.TrustRegion\(ftol=": {"ftol": 1e-3},
    "without `jac`. Derivatives are exact: leave it out": {"jac": "3-point"},
    "without `full_output`. Its report is in the attribute `": {"full_output": True},
    "without `maxiter`. There is no such setting": {"maxiter": 9},
    "without `absolut_sigma`. Did you mean `absolute_sigma`": {"absolut_sigma": True},
    "`f` must not need a value as a Python number": {
        "f": lambda x, a, b: a * math.exp(-b * x)
    },
    "`residual`, or `f` of `curve_fit`, must take any number of points.* at least 2 el"
    r".*Make a whole record one point: data `x\[None\]`": {
        "f": lambda x, a, b: a * jnp.gradient(b * x)
    },
    "`bounds` must be an array of numbers with rows of equal length": {
        "bounds": ([0, [1]], [9, 9])
    },
    "`bounds` must be real numbers, but has dtype complex128": {"bounds": (0, 9j)},
    "`p0` must be real numbers, but has dtype complex128": {"p0": [1j, 2, 3]},
    "`p0` must be an array of numbers .* of the type dict": {"p0": {"a": 1}},
    r"`sigma` must be one number, .* shape \(200,\), or .* has shape \(5,\)": {
        "sigma": np.ones(5)
    },
    r"`sigma` must be .* covariance matrix of all 200, but has shape \(3, 3\)": {
        "sigma": np.eye(3)
    },
    r"`p0` must have one number for each parameter of `f`, .* but has 1: ": {"p0": [1]},
    r"`p0` must be a list of numbers, but has shape \(1, 2\)": {"p0": [[1, 2]]},
    "`p0` must be numbers, but is": {"p0": ["1", 2]},
    "`p0` must be finite, but b is nan": {"p0": [1, np.nan, 2]},
    r"`p0` must lie within `bounds`, but c is 5, outside \[0, 3\]": {
        "p0": [1, 2, 5],
        "bounds": (0, 3),
    },
    "`loss` must be a loss such as `fit.SoftL1.* but is 'soft_l1'": {"loss": "soft_l1"},
    "`method` must be a `fit.TrustRegion`, but is 'lm'": {"method": "lm"},
    "`ydata` must be an array of numbers with rows of equal length, but is of the type "
    "list: .* inhomogeneous": {"ydata": [[1.0], [1.0, 2.0]]},
    "`ydata` must be real, as the values of `f` are, but has dtype complex128: imagi": {
        "ydata": Y + 0j
    },
    "`ydata` must have an axis of points, but is a single number": {"ydata": 1.0},
    r"`xdata` must have a first axis of 200 points, .* but has shape \(199,\)\. Pass": {
        "xdata": X[1:]
    },
    r"`xdata\[1\]` must have a first axis of 200 points, .* has shape \(3,\)\. Pass": {
        "f": lambda x, a, b: a * jnp.exp(-b * x[0]),
        "xdata": (X, X[:3]),
    },
    r"`sigma` must be a symmetric covariance matrix, up to 1.3e-06 of .*, but "
    r"sigma\[0, 1\] is 0.5 and sigma\[1, 0\] is 0\. Fill both triangles": {
        "sigma": np.triu(np.full((200, 200), 0.5)) + np.eye(200)
    },
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_fitted_is_refused(message):
    options = {"f": decay, "xdata": X, "ydata": Y, **REFUSED[message]}
    with pytest.raises(ArgumentError, match=message):
        # Users run it without the type checks of the tests, which come first.
        inspect.unwrap(curve_fit)(**options)


UNCHECKED = """
from physax import fit
options = {"absolute_sigma": "no"}
for make in (
    lambda: fit.curve_fit(lambda x, a: a * x, [1.0, 2.0], [1.0, 2.0], **options),
    lambda: fit.Separable(lambda p, x: p * x, 1.0, [1.0], [1.0], **options),
):
    try:
        make()
    except ValueError as error:
        print(error)
"""


@pytest.mark.slow
def test_whether_sigma_is_known_is_yes_or_no():
    # Without the type checks of the tests, which come first.
    command = [sys.executable, "-c", UNCHECKED]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    message = "`absolute_sigma` must be True or False, but is 'no'."
    assert said.splitlines() == [message] * 2


def test_start_and_bounds_of_any_precision_fit_in_that_of_the_data():
    wanted = curve_fit(decay, X, Y, p0=[1.0, 1.0, 1.0])[0]
    for dtype in (np.float16, np.float32):
        found = curve_fit(decay, X, Y, p0=np.ones(3, dtype))[0]
        bounds = (np.zeros(3, dtype), np.full(3, 9, dtype))
        bounded = curve_fit(decay, X, Y, p0=[1.0, 1.0, 1.0], bounds=bounds)[0]
        assert found.dtype == bounded.dtype == np.float64
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
        np.testing.assert_allclose(bounded, wanted, rtol=1e-6)


def test_bounds_may_be_those_of_scipy():
    limits = [0, 0, 0.6], [9, 1.2, 9]
    found = curve_fit(decay, X, Y, bounds=optimize.Bounds(*limits))
    expected, _ = optimize.curve_fit(host_model, X, Y, bounds=limits)
    np.testing.assert_allclose(found.popt, expected, rtol=1e-5)


def test_what_rounding_leaves_of_symmetry_is_let_through():
    x = X[:30]
    near = np.exp(-((x[:, None] - x) ** 2) / 0.1) + 1e-6 * np.eye(30)
    # As of the inverse of an inverse, but the same on all machines.
    noise = np.random.default_rng(0).uniform(-1e-7, 1e-7, near.shape)
    sigma = near + np.triu(noise, 1)
    assert np.max(np.abs(sigma - sigma.T)) > 2e-8
    ours = curve_fit(decay, x, Y[:30], sigma=sigma)[0]
    theirs = optimize.curve_fit(host_model, x, Y[:30], TRUE, sigma=sigma)[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-2)


@pytest.mark.f32
def test_numbers_of_python_are_errors_of_any_data():
    x, y = X.astype(np.float32), Y.astype(np.float32)
    _, wanted = optimize.curve_fit(host_model, X, Y, TRUE)
    for sigma in (0.05, [0.05], [0.05] * 200):
        found = curve_fit(decay, x, y, sigma=sigma)
        assert found.result.parameters.dtype == np.float32
        np.testing.assert_allclose(found.pcov, wanted, rtol=1e-2)


@pytest.mark.f32
def test_integers_have_the_default_precision():
    line = lambda x, a, b: a * x + b  # noqa: E731
    x = np.arange(10)
    y = np.float32([1.1, 2.9, 5.2, 6.8, 9.0, 11.1, 12.9, 15.1, 17.0, 18.9])
    for given in (x, x.astype(np.int32), jnp.asarray(x), x.tolist()):
        found = curve_fit(line, given, y)
        np.testing.assert_allclose(found.popt, np.polyfit(x, y, 1), rtol=1e-5)
    assert curve_fit(line, x, 2 * x + 1).popt == pytest.approx([2, 1], rel=1e-6)
    with pytest.raises(ArgumentError, match="`xdata` .* exactly, but has 1000000001"):
        curve_fit(line, x + 1_000_000_000, y)


@pytest.mark.parametrize("name", ["ydata", "xdata", "sigma", "p0", "bounds", None])
def test_traced_numbers_are_refused(name):
    given = {"ydata": Y, "xdata": X, "sigma": SIGMA, "p0": TRUE, "bounds": (-9.0, 9.0)}

    @jax.jit
    def fitted(one):
        options = {**given, name: one} if name else given
        f = decay if name else lambda x, a, b, c: decay(x, a * one, b, c)
        return inspect.unwrap(curve_fit)(f, **options)[0]

    message = (
        f"`{name or 'f'}` must be known here, but is traced .* Use `least_squares`"
    )
    with pytest.raises(ArgumentError, match=message):
        fitted(given.get(name, 1.0))


def test_values_of_several_columns_have_errors_of_their_own_or_a_covariance():
    random = np.random.default_rng(0)
    sigma = random.uniform(0.5, 2, (40, 2))
    both = lambda x, a, b: jnp.stack([a * x, jnp.exp(-b * x)], 1)  # noqa: E731
    values = np.asarray(both(X[:40], 2.0, 1.5)) + sigma * random.normal(size=(40, 2))
    options = {"absolute_sigma": True}
    # What SciPy is given: one axis.
    flat, want = curve_fit(
        lambda x, a, b: jnp.where(x[1] > 0, jnp.exp(-b * x[0]), a * x[0]),
        (np.repeat(X[:40], 2), np.tile([0.0, 1.0], 40)),
        values.ravel(),
        sigma=sigma.ravel(),
        **options,
    )
    for given in (sigma, np.diag(sigma.ravel() ** 2)):
        found, covariance = curve_fit(both, X[:40], values, sigma=given, **options)
        np.testing.assert_allclose(found, flat, rtol=1e-6)
        np.testing.assert_allclose(covariance, want, rtol=1e-5)


def both(x, a, b, c):
    return np.stack([host_model(x, a, b, c), a * x + c], 1)


def both_for_jax(x, a, b, c):
    return jnp.stack([decay(x, a, b, c), a * x + c], 1)


@pytest.mark.parametrize("absolute", [True, False])
@pytest.mark.parametrize(("f", "host"), [(decay, host_model), (both_for_jax, both)])
def test_correlated_errors_count_as_in_scipy(f, host, absolute):
    x, random = X[::5], np.random.default_rng(5)
    clean = host(x, *TRUE)
    size = clean.size
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    deviations = SIGMA * random.uniform(0.5, 2, size)
    sigma = 0.9**apart * np.outer(deviations, deviations)
    noise = np.linalg.cholesky(sigma) @ random.normal(size=size)
    y = clean + noise.reshape(clean.shape)
    # An inverse of an inverse is symmetric but for rounding.
    given = np.linalg.inv(np.linalg.inv(sigma))
    found, covariance = curve_fit(f, x, y, sigma=given, absolute_sigma=absolute)
    want, want_covariance = optimize.curve_fit(
        lambda x, *p: host(x, *p).ravel(),
        x,
        y.ravel(),
        TRUE,
        sigma=sigma,
        absolute_sigma=absolute,
        **dict.fromkeys(("ftol", "xtol", "gtol"), 1e-14),
    )
    np.testing.assert_allclose(found, want, rtol=1e-7)
    # Scipy's Jacobian is of differences.
    np.testing.assert_allclose(covariance, want_covariance, rtol=1e-5)


def test_masked_points_are_refused():
    masked = np.ma.masked_greater(Y, np.sort(Y)[-2])
    with pytest.raises(ArgumentError, match="`ydata` must be known .* masked. Leave m"):
        curve_fit(decay, X, masked)
    with pytest.raises(ArgumentError, match="`xdata` must be known everywhere"):
        curve_fit(decay, np.ma.masked_less(X, X[1]), Y)
    with pytest.raises(ArgumentError, match="`p0` must be known everywhere"):
        curve_fit(decay, X, Y, np.ma.masked_equal([1.0, 2.0, 3.0], 2.0))


def test_both_orders_of_bytes_are_read():
    found, _ = curve_fit(decay, X.astype(">f8"), Y.astype(">f8"))
    assert np.array_equal(found, curve_fit(decay, X, Y)[0])


def test_several_independent_variables_are_a_tuple():
    x = np.linspace(0, 1, 30)
    both, y = np.stack([x, x**2]), 2 * x - 3 * x**2
    plane = lambda x, a, b: a * x[0] + b * x[1]  # noqa: E731
    message = r"`xdata` must have a first axis of 30 .* \(2, 30\)\..*`tuple\(xdata\)`"
    with pytest.raises(ArgumentError, match=message):
        curve_fit(plane, both, y)
    found, _ = curve_fit(plane, tuple(both), y)
    assert np.allclose(found, [2, -3])


def test_parameters_have_the_names_of_the_signature():
    assert curve_fit(decay, X, Y).result.names == ("a", "b", "c")
    held = ([-9.0, 1.3, -9.0], [9.0, 1.3, 9.0])
    assert curve_fit(decay, X, Y, TRUE, bounds=held).result.names == ("a", "c")
    unnamed = lambda x, *p: decay(x, *p)  # noqa: E731
    assert curve_fit(unnamed, X, Y, TRUE).result.names == ("p[0]", "p[1]", "p[2]")


def test_what_is_not_determined_is_named():
    message = "do not determine every free parameter: a, b.$"
    with pytest.raises(FitError, match=message) as caught:
        curve_fit(lambda x, a, b, c: (a + b) * x + c, X, Y)
    assert caught.value.result.names == ("a", "b", "c")
    with pytest.raises(FitError, match=message):
        curve_fit(lambda x, a, b: (a + b) * x, X[:2], Y[:2])


def test_as_many_points_as_parameters_leave_errors_open_as_in_scipy():
    line = lambda x, a, b: a * x + b  # noqa: E731
    with pytest.warns(PhysaxWarning, match="`pcov` is infinite: with as many para"):
        found, covariance = curve_fit(line, X[:2], Y[:2])
    with pytest.warns(optimize.OptimizeWarning):
        want, want_covariance = optimize.curve_fit(line, X[:2], Y[:2])
    np.testing.assert_allclose(found, want, rtol=1e-6)
    assert np.array_equal(covariance, want_covariance)
    assert np.all(covariance == np.inf)
    known = curve_fit(line, X[:2], Y[:2], sigma=[SIGMA] * 2, absolute_sigma=True)
    assert np.all(np.isfinite(known.pcov))


@pytest.mark.parametrize("sigma", [0.1, [0.1] * 30])
def test_complex_values_take_deviations_as_numbers_of_python(sigma):
    x = np.linspace(0, 2, 30)
    y = (1 + 2j) * x + 0.1 * np.exp(7j * x)
    found = curve_fit(
        lambda x, a, b: (a + 1j * b) * x, x, y, sigma=sigma, absolute_sigma=True
    )
    # Real and imaginary parts each are a line through 0.
    best = x @ y / (x @ x)
    np.testing.assert_allclose(found.popt, [best.real, best.imag], rtol=1e-10)
    np.testing.assert_allclose(found.pcov, 0.01 / (x @ x) * np.eye(2), atol=1e-12)
