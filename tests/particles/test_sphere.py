import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.particles import (
    EARTH_RADIUS,
    GriddedField,
    OnSphere,
    ParticleStatus,
    track,
    wrap_globe,
)


DAY = 86_400.0


def cartesian(places):
    lon, lat = np.radians(np.asarray(places, float)).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])


def rigid_rotation(axis, rate):
    """The velocity in m/s, eastward and northward, of a rotation in radians/s."""
    axis = jnp.asarray(axis, float) / np.linalg.norm(axis)

    def velocity(t, x):
        lon, lat = jnp.radians(x[0]), jnp.radians(x[1])
        here = jnp.stack(
            [jnp.cos(lat) * jnp.cos(lon), jnp.cos(lat) * jnp.sin(lon), jnp.sin(lat)]
        )
        east = jnp.stack([-jnp.sin(lon), jnp.cos(lon), 0 * lon])
        north = jnp.cross(here, east)
        motion = EARTH_RADIUS * rate * jnp.cross(axis, here)
        return jnp.stack([motion @ east, motion @ north])

    return velocity


def rotated(places, axis, angle):
    axis = np.asarray(axis) / np.linalg.norm(axis)
    x = cartesian(places)
    along = axis[:, None] * (axis @ x)
    return (
        along
        + np.cos(angle) * (x - along)
        + np.sin(angle) * np.cross(axis, x, axisb=0, axisc=0)
    )


def test_a_rigid_rotation_of_the_globe_carries_particles_on_circles():
    # Rodrigues' formula; no circle comes nearer to a pole than 20 degrees.
    axis, seeds = (
        (0.4, 0.1, 1.2),
        np.array([[0.0, 10.0], [120.0, -40.0], [300.0, 30.0]]),
    )
    rate = 2 * np.pi / (5 * DAY)
    field = OnSphere(rigid_rotation(axis, rate))
    tracks = track(field, seeds, np.array([0.0, 3 * DAY]), steps=300)
    found = cartesian(tracks.positions[-1])
    double = jnp.result_type(float) == jnp.float64
    assert np.allclose(
        found, rotated(seeds, axis, rate * 3 * DAY), atol=1e-7 if double else 2e-4
    )


@pytest.mark.slow
def test_a_particle_goes_on_behind_a_pole():
    # On the meridian through the axis' equator nothing leads away from it.
    rate = 2 * np.pi / (10 * DAY)
    field = OnSphere(rigid_rotation((0.0, 1.0, 0.0), -rate))
    seeds = np.array([[0.0, 80.0], [180.0, 70.0], [0.0, -85.0]])
    tracks = track(field, seeds, np.array([0.0, DAY]), steps=48)
    # 36 degrees on: over the north pole, on to it, away from the south pole.
    assert np.allclose(tracks.positions[-1, :, 1], [116.0, 34.0, -49.0], atol=1e-3)
    wrapped = wrap_globe(tracks.positions[-1])
    assert np.allclose(wrapped[0], [-180.0, 64.0], atol=1e-3)
    assert np.all(tracks.status == ParticleStatus.ALIVE)


@pytest.mark.slow
def test_the_velocity_at_a_pole_is_finite_and_so_is_its_gradient():
    field = OnSphere(lambda t, x: jnp.stack([10.0 + 0 * x[0], 0 * x[0]]))
    pole = jnp.asarray([30.0, 90.0])
    t = jnp.asarray(0.0)
    cap = np.sin(np.radians(0.01))
    expected = np.degrees(10.0 / EARTH_RADIUS) / cap
    assert np.allclose(field(t, pole), [expected, 0.0], rtol=1e-4)
    assert np.all(np.isfinite(jax.jacfwd(lambda x: field(t, x))(pole)))


@pytest.mark.slow
def test_height_is_carried_in_metres_and_the_radius_is_differentiable():
    def end(radius):
        field = OnSphere(
            lambda t, x: jnp.stack([5.0 + 0 * t, 0 * t, 2.0 + 0 * t]), radius
        )
        seeds, times = np.array([[0.0, 60.0, 100.0]]), np.array([0.0, 1000.0])
        return track(field, seeds, times).positions[-1, 0]

    far = end(EARTH_RADIUS)
    # cos 60 degrees is 1/2.
    assert np.allclose(
        far, [2 * np.degrees(5e3 / EARTH_RADIUS), 60.0, 2100.0], rtol=1e-5
    )
    slope = jax.jit(jax.grad(lambda r: end(r)[0]))(jnp.asarray(EARTH_RADIUS))
    assert np.allclose(slope, -far[0] / EARTH_RADIUS, rtol=1e-4)


def test_particles_cross_the_seam_of_a_periodic_longitude():
    values = np.zeros((4, 3, 2))
    values[..., 0] = 100.0
    grid = GriddedField(
        values,
        (np.array([0.0, 90, 180, 270]), np.array([-90.0, 0, 90])),
        periods=(360.0, None),
    )
    tracks = track(
        OnSphere(grid),
        np.array([[359.0, 0.0], [-1.0, 0.0]]),
        np.array([0.0, DAY]),
        steps=4,
    )
    moved = np.degrees(100.0 * DAY / EARTH_RADIUS)
    assert np.allclose(tracks.positions[-1, :, 0], [359 + moved, -1 + moved], atol=1e-3)
    assert np.allclose(
        wrap_globe(tracks.positions[-1], west=0.0)[:, 0], moved - 1, atol=1e-3
    )


@pytest.mark.parametrize(
    ("place", "west", "wrapped"),
    [
        ([190.0, 10.0], -180.0, [-170.0, 10.0]),
        ([-10.0, 10.0], 0.0, [350.0, 10.0]),
        ([725.0, 95.0], -180.0, [-175.0, 85.0]),
        ([0.0, -100.0], -180.0, [-180.0, -80.0]),
        ([12.5, 90.0], -180.0, [12.5, 90.0]),
    ],
)
def test_wrapped_places(place, west, wrapped):
    assert np.allclose(wrap_globe(np.array(place), west), wrapped, atol=1e-4)
    assert np.allclose(
        jax.jit(wrap_globe)(jnp.asarray(place), west), wrapped, atol=1e-4
    )


def test_faulty_spheres_are_refused():
    with pytest.raises(ArgumentError, match="`radius` must be positive, but is -1"):
        OnSphere(lambda t, x: x, -1.0)
    with pytest.raises(ArgumentError, match=r"`pole` must lie in \(0, 90\), but is 0"):
        OnSphere(lambda t, x: x, pole=0.0)
    with pytest.raises(ArgumentError, match="longitude and latitude, .* have 1"):
        wrap_globe(np.array([3.0]))
    with pytest.raises(ArgumentError, match="must have 2 components.* shape \\(3,\\)"):
        track(OnSphere(lambda t, x: jnp.zeros(3)), np.zeros((1, 2)), np.arange(2.0))
