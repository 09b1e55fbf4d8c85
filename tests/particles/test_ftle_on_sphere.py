"""Stretching on a sphere is measured in metres, not in degrees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from physax import ArgumentError
from physax.particles import (
    EARTH_RADIUS,
    OnSphere,
    flow_map,
    flow_map_gradient,
    flow_map_gradient_on_grid,
    ftle,
    ftle_on_grid,
    wrap_globe,
)


X64 = jnp.result_type(float) == jnp.float64
DAY = 86_400.0
T = 5 * DAY
TIMES = np.array([0.0, T])
AXIS = np.array([0.6, 0.2, 0.7]) / np.linalg.norm([0.6, 0.2, 0.7])
ROTATION = 1.7 / T * np.cross(np.eye(3), AXIS)
# Stretching and rotation; nothing of it is along an axis of coordinates.
STRETCHING = ROTATION + np.array([[3, 1, 0], [2, -1, 4], [1, 0, -2]]) / (8 * T)
SEEDS = np.array([[10.0, 20], [40, 60], [100, -70], [0, 0], [-150, 85], [200, 45]])


def bases(places, sin=np.sin, cos=np.cos, stack=np.stack):
    """Unit vectors to places on the globe, and those eastward and northward there."""
    lon, lat = np.pi / 180 * places[..., 0], np.pi / 180 * places[..., 1]
    up = stack([cos(lat) * cos(lon), cos(lat) * sin(lon), sin(lat)], -1)
    east = stack([-sin(lon), cos(lon), 0 * lon], -1)
    north = stack([-sin(lat) * cos(lon), -sin(lat) * sin(lon), cos(lat)], -1)
    return up, stack([east, north], -2)


def linear(matrix, radius=EARTH_RADIUS):
    """The flow of dr/dt = A r in space, less its radial part, in m/s on the sphere."""

    def velocity(t, x):
        up, tangents = bases(x, jnp.sin, jnp.cos, jnp.stack)
        return radius * tangents @ (jnp.asarray(matrix) @ up)

    return OnSphere(velocity, radius)


def carried(matrix, places):
    """Where that flow carries places by the matrix exponential, and the gradient."""
    up, tangents = bases(places)
    growth = expm(T * matrix)
    moved = up @ growth.T
    lengths = np.linalg.norm(moved, axis=-1, keepdims=True)
    x, y, z = np.moveaxis(moved / lengths, -1, 0)
    ends = np.degrees(np.stack([np.arctan2(y, x), np.arcsin(z)], -1))
    after = bases(ends)[1]
    gradient = after @ growth @ np.swapaxes(tangents, -1, -2)
    return ends, gradient / lengths[..., None]


def test_a_tilted_rotation_does_not_stretch():
    # Through the poles' neighbourhood: the step is a hundredth of the distance.
    found = flow_map(linear(ROTATION), SEEDS, TIMES, steps=400)
    ends, exact = carried(ROTATION, SEEDS)
    assert np.allclose(
        wrap_globe(found.positions[-1]), ends, atol=1e-5 if X64 else 1e-3
    )
    assert np.allclose(found.gradient[0], np.eye(2), atol=1e-6)
    assert np.allclose(found.gradient[-1], exact, atol=1e-6 if X64 else 2e-4)
    stretched = ftle(found.gradient[-1], T) * T
    assert np.allclose(stretched, 0, atol=1e-7 if X64 else 1e-4)
    assert found.gradient.dtype == jnp.result_type(float)


def test_stretching_on_a_sphere_is_that_of_the_flow_in_space():
    found = jax.jit(
        lambda seeds: flow_map_gradient(linear(STRETCHING), seeds, TIMES, steps=400)
    )(jnp.asarray(SEEDS))
    exact = carried(STRETCHING, SEEDS)[1]
    largest = np.linalg.norm(exact, 2, axis=(1, 2))
    assert largest.max() > 1.8
    assert np.allclose(found, exact, atol=1e-6 if X64 else 5e-4)
    assert np.allclose(ftle(found, T) * T, np.log(largest), atol=1e-6 if X64 else 5e-4)


def test_the_gradient_beyond_a_pole_is_that_of_the_same_place():
    # Along a meridian, by 40 degrees: eastward and northward are opposite afterwards.
    # The second seed passes the pole at half a degree.
    matrix = np.radians(40) / T * np.cross(np.eye(3), [0.0, -1, 0])
    seeds = np.array([[0.0, 70.0], [1.0, 60.0]])
    found = flow_map(linear(matrix), seeds, TIMES, steps=2000)
    assert found.positions[-1, 0, 1] > 100
    exact = carried(matrix, seeds)[1]
    assert np.allclose(exact[0], [[-1, 0], [0, -1]], atol=1e-12)
    # Neighbours to the east meet the cosine that is cut off at the pole.
    assert np.allclose(found.gradient[-1, 0, :, 1], exact[0, :, 1], atol=1e-3)
    assert np.allclose(found.gradient[-1, 1], exact[1], atol=5e-3)


@pytest.mark.parametrize("pole", [90.0, -90.0])
def test_close_to_a_pole_there_is_no_gradient(pole):
    # The turn carries the first seed away from within the cap around the pole, the
    # second one into it by the second time; others stay outside and do not stretch.
    matrix = np.radians(40) / T * np.cross(np.eye(3), [1.0, 0, 0])
    away, into = np.array([0.0, pole - np.sign(pole) / 128]), 90.0 * np.sign(pole)
    seeds = np.array([away, [into, pole / 90 * 70], [0, 60], [-into, 0.5 * pole]])
    flow, times = linear(matrix), np.linspace(0, T, 3)
    found = jax.jit(lambda x: flow_map(flow, x, times, steps=400))(seeds)
    near = np.isnan(found.gradient).any((2, 3))
    assert near.tolist() == [
        [True, False, False, False],
        [True, True, False, False],
        [True, True, False, False],
    ]
    stretched = np.linalg.svd(found.gradient[-1, 2:])[1]
    assert np.allclose(stretched, 1, atol=1e-6 if X64 else 2e-4)
    assert np.all(np.isfinite(found.positions))


@pytest.mark.parametrize("radius", [EARTH_RADIUS, 1e6])
def test_heights_are_in_metres_like_the_rest(radius):
    # Rotation about the poles, faster with height: lambda = lambda_0 + z / H.
    height = 2e5

    def velocity(t, x):
        speed = radius * jnp.cos(jnp.radians(x[1])) * x[2] / height / T
        return jnp.stack([speed, 0 * speed, 0 * speed])

    axes = [np.array([0.0, 1, 3]), np.array([40.0, 41, 42]), np.array([1e4, 2e4, 4e4])]
    seeds = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    found = flow_map(OnSphere(velocity, radius), seeds.reshape(-1, 3), TIMES)
    shear = radius * np.cos(np.radians(seeds[..., 1])) / height
    exact = np.zeros((3, 3, 3, 3, 3)) + np.eye(3)
    exact[..., 0, 2] = shear
    gradient = found.gradient[-1].reshape(exact.shape)
    assert np.allclose(gradient, exact, rtol=1e-4, atol=1e-4)
    ends = found.positions[-1].reshape(seeds.shape)
    other = flow_map_gradient_on_grid(ends, axes, spherical=True, radius=radius)
    # Chords of 0.05 and 0.1 rad at two sides: second order in these.
    assert np.allclose(other[..., 0, 2], shear, rtol=5e-3)
    assert np.allclose(other[..., :2, :2], np.eye(2), atol=5e-4)
    assert np.allclose(other[..., 2, :], [0, 0, 1], atol=1e-5)


GRID = [np.linspace(150.0, 210, 7), np.array([-80.0, -60, -10, 0, 30, 70, 89])]


def test_differences_of_a_tilted_rotation_do_not_stretch():
    nodes = np.stack(np.meshgrid(*GRID, indexing="ij"), -1)
    ends = carried(ROTATION, nodes)[0]
    # Longitudes jump by 360 degrees between some of the neighbours.
    assert np.abs(np.diff(ends[..., 0], axis=0)).max() > 300
    for turned in (ends, np.asarray(wrap_globe(ends, west=0.0))):
        found = jax.jit(lambda x: ftle_on_grid(x, GRID, T, spherical=True))(turned)
        assert found.shape == (7, 7)
        assert np.allclose(found * T, 0, atol=1e-12 if X64 else 1e-4)
    degrees = ftle_on_grid(ends, GRID, T) * T
    assert np.abs(degrees).max() > 1


def test_differences_of_stretching_have_the_second_order():
    def error(count):
        axes = [np.linspace(20.0, 60, count), np.linspace(30.0, 80, count)]
        nodes = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
        ends, exact = carried(STRETCHING, nodes)
        found = flow_map_gradient_on_grid(ends, axes, spherical=True)
        return np.abs(found - exact).max()

    few, many = error(11), error(21)
    assert many < 2e-2
    assert 1.8 < np.log2(few / many) < 2.2


def test_seeds_at_a_pole_have_no_differences():
    axes = [np.linspace(0.0, 20, 3), np.linspace(70.0, 90, 3)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    found = ftle_on_grid(carried(ROTATION, nodes)[0], axes, T, spherical=True)
    assert np.all(np.isnan(found[:, 2]))
    assert np.allclose(found[:, :2] * T, 0, atol=1e-12 if X64 else 1e-4)
    slope = jax.grad(
        lambda x: jnp.nansum(
            flow_map_gradient_on_grid(x, axes, spherical=True)[:, :2] ** 2
        )
    )(jnp.asarray(nodes))
    assert np.all(np.isfinite(slope))


def test_faulty_arguments_of_spheres_are_refused():
    axes = [np.arange(3.0), np.arange(89.0, 92)]
    ends = np.zeros((3, 3, 2))
    with pytest.raises(
        ArgumentError, match=r"`axes\[1\]` on a sphere must be latitudes.*89 to 91"
    ):
        ftle_on_grid(ends, axes, T, spherical=True)
    for spherical in (True, False):
        with pytest.raises(ArgumentError, match="`radius` must be positive, but is 0"):
            ftle_on_grid(ends, [axes[0]] * 2, T, spherical=spherical, radius=0.0)
    with pytest.raises(ArgumentError, match="longitude and latitude, .* have 1"):
        ftle_on_grid(np.zeros((3, 1)), axes[:1], T, spherical=True)
