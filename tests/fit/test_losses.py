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
    SoftL1,
    Squared,
    curve_fit,
    least_squares,
)
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


@pytest.mark.parametrize("kind", [Huber, Arctan])
def test_covariance_is_that_of_the_curvature_of_the_loss(kind):
    # Points beyond the scale, where the curvature is 0 or negative, add nothing.
    x = np.linspace(0, 4, 200)
    y = 3 * np.exp(-1.2 * x) + 0.05 * np.sin(37 * x)
    y[::17] += 1.0

    def model(x, a, b):
        return a * jnp.exp(-b * x)

    loss = kind(0.1)
    (a, b), found = curve_fit(model, x, y, p0=[2.5, 1.0], loss=loss)
    rows = np.stack([np.exp(-b * x), -a * x * np.exp(-b * x)])
    z = ((a * np.exp(-b * x) - y) / 0.1) ** 2
    first, second = map(np.asarray, loss.slopes(jnp.asarray(z)))
    curvature = np.maximum(first + 2 * second * z, 0)
    cost = 0.01 * np.sum(np.asarray(loss.rho(jnp.asarray(z))))
    want = np.linalg.inv((rows * curvature) @ rows.T) * cost / (200 - 2)
    np.testing.assert_allclose(found, want, rtol=1e-6)


def test_scale_must_be_positive():
    with pytest.raises(ArgumentError, match="`scale` must be positive, but is 0"):
        Huber(0.0)


@pytest.mark.parametrize("kind", [AbstractLoss, AbstractPrior, AbstractSampling])
def test_what_lacks_a_method_is_refused_when_it_is_made(kind):
    class Half(kind):
        scale: float = 1.0

    with pytest.raises(TypeError, match="abstract"):
        Half()
