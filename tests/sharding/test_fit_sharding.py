"""Fits give the same answer on any number of devices."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from physax import runtime
from physax._checks import ArgumentError
from physax.fit import LeastSquares, Separable, least_squares, plan


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


def on(*devices):
    # Whole on each of some devices.
    return jax.NamedSharding(jax.make_mesh((len(devices),), "x", devices=devices), P())


# Where x, y and the mask lie (None for the host), and the devices of the mesh.
PLACES = {
    "whole on all, the rest on the host": (range(8), None, None, 8),
    "on more than the mesh": (range(8), range(8), None, 2),
    "on fewer than the mesh": (range(2), None, range(2), 8),
    "on single ones": ([3], [5], [0], 2),
}


@pytest.mark.parametrize("count", [13, 16])
@pytest.mark.parametrize("places", PLACES)
def test_data_may_lie_on_other_devices_than_the_mesh(places, count):
    *places, size = PLACES[places]
    y, _ = signal(count)
    mask = np.arange(count) != count - 1
    devices = jax.devices()
    data = [np.linspace(0, 3, count), y, mask]
    for i, which in enumerate(places):
        if which is not None:
            data[i] = jax.device_put(data[i], on(*[devices[k] for k in which]))

    def fit(data, mesh=None):
        x, y, mask = data
        made = Separable(basis, 1, x, y, mask=mask, offset=True)
        return least_squares(made, mesh=mesh)

    found = fit(data, runtime.mesh(size))
    expected = fit([np.asarray(array) for array in data])
    assert int(found.count) == count - 1
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
    np.testing.assert_allclose(found.chi2, expected.chi2, rtol=1e-9)


def test_data_on_several_devices_need_a_mesh():
    x, y = (jax.device_put(a[:16], jax.devices()[i]) for a, i in ((X, 3), (Y, 0)))
    with pytest.raises(ArgumentError, match="are on .*:0 and on .*:3. Pass .* `mesh`"):
        least_squares(LeastSquares(residual, np.ones(3), (x, y)))


@pytest.mark.parametrize("resident", [True, False])
def test_a_model_that_needs_other_points_is_refused(resident):
    x = np.linspace(5, 15, 200)
    made = LeastSquares(lambda p, d: p * (d - d[0]) - 1.0, 1.0, x)
    chosen = plan(200, 1, resident=resident)
    with pytest.raises(ArgumentError, match="must give each point from its own data"):
        least_squares(made, plan=chosen, mesh=runtime.mesh(), progress=False)


def basis(p, x):
    return jnp.exp(-p * x)


def misfit(p, data):
    return p[1] * basis(p[0], data[0]) - data[1]


def measures(y, kind, mesh):
    """Rate, its error and the cost of a fit with one amplitude."""
    x = np.linspace(0, 3, len(y))
    joint = kind == "joint"
    made = (
        LeastSquares(misfit, np.ones(2), (x, y)) if joint else Separable(basis, 1, x, y)
    )
    found = least_squares(made, mesh=mesh)
    return jnp.stack([found.values[0], found.standard_errors[0], found.chi2])


def signal(count):
    x = np.linspace(0, 3, count)
    return 2 * np.exp(-1.1 * x) + 0.02 * np.sin(7 * x), np.cos(3 * x)


@pytest.mark.slow(after=1)
# Not a multiple of the devices, and one.
@pytest.mark.parametrize("count", [13, 16])
@pytest.mark.parametrize("kind", ["joint", "separable"])
def test_a_fit_on_a_mesh_has_derivatives(kind, count):
    y, change = signal(count)
    # Central differences of the fit on one device, whose minimum is known to 1e-9.
    step = 1e-4
    ends = [measures(y + sign * step * change, kind, None) for sign in (1, -1)]
    on_mesh = partial(measures, kind=kind, mesh=runtime.mesh(8))
    jacobian = jax.jit(jax.jacrev(on_mesh))(y)
    slope = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(jacobian @ change, slope, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["joint", "separable"])
def test_a_batch_of_fits_on_a_mesh_agrees_with_one_device(kind):
    y, change = signal(13)
    several = jnp.stack([y, y + 0.01 * change])
    batch = jax.vmap(partial(measures, kind=kind, mesh=runtime.mesh(8)))(several)
    for found, one in zip(batch, several, strict=True):
        np.testing.assert_allclose(found, measures(one, kind, None), rtol=1e-9)
