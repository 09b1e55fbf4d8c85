"""Scattered points: the nearest ones are SciPy's, and nothing is said beyond them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import cKDTree

from physax import PhysaxError
from physax.particles import ParticleStatus, PointCloud


ALIVE, LEFT_DATA = int(ParticleStatus.ALIVE), int(ParticleStatus.LEFT_DATA)


@jax.jit
def look(cloud, x, memory=None):
    if memory is None:
        memory = jax.vmap(cloud.start)(x)
    return jax.vmap(cloud.look, (None, 0, 0))(jnp.zeros(()), x, memory)


def scattered(ndim, count):
    """Points in clumps, some of them far apart, some in the same place."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, ndim))
    spread = np.geomspace(1e-3, 1, 6)[:, None]
    which = rng.integers(0, 6, count)
    points = centres[which] + spread[which] * rng.normal(size=(count, ndim))
    points[: count // 20] = points[count // 20 : 2 * (count // 20)]
    return points.astype(np.result_type(float)).astype(np.float32)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("ndim", "count"), [(1, 3), (1, 500), (2, 1000), (3, 3000)])
@pytest.mark.parametrize("neighbours", [1, 3])
def test_the_nearest_points_are_those_of_scipy(ndim, count, neighbours):
    points = scattered(ndim, count)
    rng = np.random.default_rng(1)
    near = points[rng.integers(0, count, 500)] + 0.01 * rng.normal(size=(500, ndim))
    x = np.concatenate([near, 3 * rng.normal(size=(200, ndim)), points[:30]])
    x = x.astype(np.float32)
    cloud = PointCloud(points, np.arange(count), neighbours=neighbours)
    distances, _ = cKDTree(points.astype(float)).query(x.astype(float), neighbours)
    seen = look(cloud, jnp.asarray(x, float))
    for memory in (seen.memory, seen.memory[::-1]):
        seen = look(cloud, jnp.asarray(x, float), memory)
        # Equally near points may be exchanged, so that distances are compared.
        found = np.asarray(seen.memory)
        mine = np.linalg.norm(points[found].astype(float) - x[:, None], axis=-1)
        expected = distances.reshape(mine.shape)
        np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-7)
        # None is there twice.
        assert all(len(set(row)) == neighbours for row in found)
    assert np.all(seen.status == ALIVE)


@pytest.mark.slow
def test_one_neighbour_gives_its_value_and_no_gradient():
    points = scattered(2, 200)
    values = np.random.default_rng(0).normal(size=(200, 2))
    cloud = PointCloud(points, values)
    x = jnp.asarray(np.random.default_rng(1).normal(size=(50, 2)))
    _, nearest = cKDTree(points).query(np.asarray(x))
    np.testing.assert_allclose(look(cloud, x).value, values[nearest], rtol=1e-6)
    slope = jax.grad(lambda x: jnp.sum(look(cloud, x).value))(x)
    np.testing.assert_array_equal(slope, 0)


def test_weights_are_the_inverse_squares_of_distances():
    points = np.array([[0.0, 0], [1, 0], [0, 2], [9, 9]])
    values = np.array([1.0, 2, 4, 100])
    cloud = PointCloud(points, values, neighbours=3)
    x = np.array([0.2, 0.1])
    weights = 1 / np.sum((points[:3] - x) ** 2, -1)
    expected = weights @ values[:3] / weights.sum()
    seen = look(cloud, jnp.asarray([x, points[1], points[0]]))
    np.testing.assert_allclose(seen.value, [expected, 2, 1], rtol=1e-6)


@pytest.mark.slow
def test_gradients_by_place_and_values():
    points = scattered(2, 100)
    values = jnp.asarray(np.random.default_rng(0).normal(size=100))
    x = jnp.asarray(np.random.default_rng(1).normal(size=(10, 2)))
    cloud = PointCloud(points, values, neighbours=4)

    @jax.jit
    def total(values, x):
        field = PointCloud(points, values, neighbours=4)
        return jnp.sum(look(field, x).value ** 2)

    by_values, by_x = jax.grad(total, (0, 1))(values, x)
    assert jnp.all(jnp.isfinite(by_values))
    direction = jnp.asarray(np.random.default_rng(2).normal(size=x.shape))
    h = 1e-6 if x.dtype == jnp.float64 else 1e-3
    numeric = (
        (total(values, x + h * direction) - total(values, x - h * direction)) / h / 2
    )
    rtol = 1e-6 if x.dtype == jnp.float64 else 2e-2
    np.testing.assert_allclose(jnp.vdot(by_x, direction), numeric, rtol=rtol)
    # At a point, and where no number is, the gradient is finite.
    there = jnp.asarray([points[3], [jnp.nan, 0], [1e30, 0]])
    slope = jax.grad(lambda x: jnp.sum(look(cloud, x).value))(there)
    assert jnp.all(jnp.isfinite(slope))
    assert jnp.all(jnp.isfinite(look(cloud, there).value))


def test_out_of_reach_is_outside_the_data():
    cloud = PointCloud(np.zeros((1, 2)), np.ones(1), reach=1.0)
    x = jnp.asarray([[0.5, 0.5], [1.0, 0.5], [jnp.nan, 0]])
    seen = look(cloud, x)
    np.testing.assert_array_equal(seen.status, [ALIVE, LEFT_DATA, LEFT_DATA])
    np.testing.assert_array_equal(seen.value, 1)
    everywhere = PointCloud(np.zeros((1, 2)), np.ones(1))
    np.testing.assert_array_equal(look(everywhere, x).status, [ALIVE, ALIVE, LEFT_DATA])


def test_time_is_interpolated():
    times = np.array([0.0, 2.0])
    cloud = PointCloud(np.zeros((1, 2)), np.array([[1.0], [3.0]]), times)
    run = jax.jit(lambda t: cloud.look(t, jnp.ones(2), jnp.zeros(1, jnp.int32)))
    seen = run(jnp.asarray(0.5))
    np.testing.assert_allclose(seen.value, 1.5, rtol=1e-6)
    assert [float(end) for end in cloud.span()] == [0, 2]


@pytest.mark.parametrize(
    ("points", "values", "neighbours", "message"),
    [
        (np.zeros((0, 2)), np.zeros(0), 1, r"at least one, .* have shape \(0, 2\)"),
        (np.zeros((3, 4)), np.zeros(3), 1, r"one to three coord.* have shape \(3, 4\)"),
        (np.full((3, 2), np.inf), np.zeros(3), 1, "must be finite, but point 0 is"),
        (np.zeros((3, 2)), np.zeros(4), 1, r"number of points, \(3,\), but .* \(4,\)"),
        (np.zeros((3, 2)), np.zeros(3), 4, "`neighbours` must be 1 to 32 .* 3 points"),
        (np.zeros((3, 2)), np.zeros(3), 0, "`neighbours` must be 1 to 32 .* but is 0"),
    ],
)
def test_bad_clouds_are_refused(points, values, neighbours, message):
    with pytest.raises(PhysaxError, match=message):
        PointCloud(points, values, neighbours=neighbours)


def test_traced_points_are_refused():
    with pytest.raises(PhysaxError, match="`points` must be known here, .* outside"):
        jax.jit(lambda p: PointCloud(p, jnp.zeros(3)).points)(jnp.zeros((3, 2)))
