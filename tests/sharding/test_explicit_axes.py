"""A mesh as `jax.make_mesh` makes it by default serves wherever a mesh does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec as P

from physax.fit import LeastSquares, least_squares
from physax.graph import Backend
from physax.grid import Layout
from physax.particles import run, track
from physax.runtime import mesh, place
from tests.particles.flows import gridded_gyre, seeds


pytestmark = pytest.mark.f32

TIMES = np.linspace(0, 1, 3)
X = np.linspace(0, 2, 37, dtype=np.float32)  # not a multiple of the devices


def explicit():
    made = jax.make_mesh((4,), ("x",))
    assert set(made.axis_types) == {AxisType.Explicit}
    return made


def test_a_traced_fit_takes_it():
    def rate(y, devices):
        def residual(p, data):
            return p[0] * jnp.exp(-p[1] * data[0]) - data[1]

        problem = LeastSquares(residual, np.ones(2), (X, y))
        return least_squares(problem, mesh=devices, progress=False).values[1]

    y = jnp.asarray(2 * np.exp(-1.5 * X))
    value, slope = jax.jit(jax.value_and_grad(rate), static_argnums=1)(y, explicit())
    assert abs(value - 1.5) < 1e-5
    np.testing.assert_allclose(slope, jax.grad(rate)(y, None), atol=1e-4)


@pytest.mark.parametrize("solve", [track, run])
def test_tracks_take_it(solve):
    at = jnp.asarray(seeds(13), jnp.float32)
    options = {"steps": 8} if solve is track else {"steps": 8, "progress": False}
    field = gridded_gyre(nodes=8)
    expected = solve(field, at, TIMES, **options)
    found = solve(field, at, TIMES, mesh=explicit(), **options)
    # A `RunResult` holds the tracks of a run.
    expected, found = (getattr(x, "tracks", x).positions for x in (expected, found))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_grids_backends_and_placed_arrays_have_automatic_axes():
    backend = Backend(mesh=explicit())
    placed = place({"a": jnp.ones(8)}, explicit(), {"a": P("x")})["a"]
    found = [Layout(explicit(), x="x").mesh, backend.mesh, placed.sharding.mesh]
    assert found == [mesh(4)] * 3
    assert set(found[0].axis_types) == {AxisType.Auto}
