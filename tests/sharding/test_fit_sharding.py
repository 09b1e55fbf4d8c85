"""Fits give the same answer on any number of devices."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax import runtime
from physax._checks import ArgumentError
from physax.fit import LeastSquares, least_squares, plan


pytestmark = pytest.mark.x64

# Not a multiple of the devices.
COUNT = 1003
X = np.linspace(0, 4, COUNT)
NOISE = 0.05 * np.random.default_rng(2).standard_normal(COUNT)
Y = 3 * np.exp(-1.2 * X) + 0.5 + NOISE


def residual(p, data):
    x, y = data
    return p[0] * jnp.exp(-p[1] * x) + p[2] - y


def nearly_dependent(p, data):
    x, y = data
    # Sums of squares would lose the difference of the last two columns.
    return p[0] * jnp.exp(-1.2 * x) + p[1] * x + p[2] * x * (1 + 1e-5 * x) - y


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("function", [residual, nearly_dependent])
def test_any_mesh_agrees_with_one_device(function):
    problem = LeastSquares(function, np.ones(3), (X, Y))
    expected = least_squares(problem)
    # Each residual is rounded as its largest term is (23,000 where the columns nearly
    # cancel). Where all COUNT are rounded one way, as other code may do, parameters
    # move by sqrt(COUNT) of that rounding over the noise, in standard errors.
    terms = 4 * float(jnp.max(jnp.abs(expected.values)))
    rounding = np.finfo(float).eps * terms * np.sqrt(COUNT) / 0.05
    for sizes in ((2,), (8,), (2, 4)):
        found = least_squares(problem, mesh=runtime.mesh(*sizes))
        assert found.count == COUNT
        close = max(1e-9, rounding) * expected.standard_errors
        assert jnp.all(jnp.abs(found.values - expected.values) <= close)
        assert np.allclose(found.covariance, expected.covariance, rtol=1e-7)


@pytest.mark.parametrize("resident", [True, False])
def test_a_model_that_needs_other_points_is_refused(resident):
    x = np.linspace(5, 15, 200)
    made = LeastSquares(lambda p, d: p * (d - d[0]) - 1.0, 1.0, x)
    chosen = plan(200, 1, resident=resident)
    with pytest.raises(ArgumentError, match="must give each point from its own data"):
        least_squares(made, plan=chosen, mesh=runtime.mesh(), progress=False)
