"""A million points of two decays and a constant, with noise: 5 parameters."""

import jax.numpy as jnp
import numpy as np

from physax.fit import LeastSquares


# Not a whole number of chunks, blocks or devices.
COUNT = 1_000_003
X = np.linspace(0, 10, COUNT)
NOISE = 0.02 * np.random.default_rng(0).standard_normal(COUNT)
Y = 2 * np.exp(-1.3 * X) + 0.7 * np.exp(-0.25 * X) + 0.1 + NOISE


def residual(p, data):
    x, y = data
    return p[0] * jnp.exp(-p[1] * x) + p[2] * jnp.exp(-p[3] * x) + p[4] - y


def problem(data=(X, Y)):
    return LeastSquares(residual, np.array([1.0, 1.0, 1.0, 0.1, 0.0]), data)


def assert_same(result, expected):
    """Agreement of parameters and covariances, whoever added up the sums."""
    values, covariance = expected
    np.testing.assert_allclose(result.values, values, rtol=1e-9)
    np.testing.assert_allclose(result.covariance, covariance, rtol=1e-7)
