"""Obstacles on a sphere, and where particles diffuse faster along one axis."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.particles import EARTH_RADIUS, Hold, Obstacle, OnSphere, Reflect, track


pytestmark = pytest.mark.x64
DEGREE = np.radians(EARTH_RADIUS)
WAYS = np.array([[0.95, 60.0]])


def coast(x):
    """Returns degrees to a coast from northwest to southeast, the sea being south."""
    return (61 - x[0] - x[1]) / np.sqrt(2)


def eastward(t, x):
    return jnp.array([10.0, 0.0])


def metres(angles, latitude=60.0):
    return DEGREE * np.asarray(angles) * np.array([np.cos(np.radians(latitude)), 1])


def test_a_particle_slides_along_a_coast_on_a_sphere_as_fast_as_the_flow_along_it():
    times = [0.0, 1000.0, 2000.0]
    seeds = [[1 - 1e-9, 60.0]]
    boundary = Obstacle(coast, Hold())
    options = {"dt": 50.0, "boundary": boundary}
    x = track(OnSphere(eastward), seeds, times, **options).positions[:, 0]
    assert np.allclose(coast(x[1:].T), 0, atol=1e-12)
    along = metres([1.0, -1.0]) / np.linalg.norm(metres([1.0, -1.0]))
    way = metres(x[-1] - x[0])
    # The latitude changes by less than 0.1 degree.
    assert np.allclose(way, 10 * 2000 * along[0] * along, rtol=2e-3)


def test_a_coast_on_a_sphere_is_a_mirror_in_metres():
    boundary = Obstacle(coast, Reflect())
    options = {"steps": 1, "boundary": boundary}
    found = track(OnSphere(eastward), WAYS, [0.0, 600.0], **options)
    inward = np.array([1.0, 1.0]) / metres([1.0, 1.0]) * DEGREE
    inward = inward / np.linalg.norm(inward)
    start, hit = metres(WAYS[0]), metres([1.0, 60.0])
    left = np.array([6000.0, 0.0]) - (hit - start)
    exact = hit + left - 2 * (left @ inward) * inward
    assert np.allclose(metres(found.positions[-1, 0]) - exact, 0, atol=1e-6)


@pytest.mark.parametrize("varies", [False, True])
def test_particles_stay_even_in_a_disc_where_they_spread_faster_along_one_axis(varies):
    def disc(x):
        return 1 - jnp.linalg.norm(x)

    def spread(t, x):
        return jnp.stack([0.09 + 0.05 * x[1], 0.01 + 0 * x[0]])

    key, also = jax.random.split(jax.random.key(1))
    count = 4000
    radius = jnp.sqrt((jnp.arange(count) + 0.5) / count)
    angle = 2 * jnp.pi * jax.random.uniform(also, (count,))
    seeds = (1 - 1e-9) * radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
    tracks = track(
        lambda t, x: jnp.zeros_like(x),
        seeds.T,
        [0.0, 10.0],
        steps=100,
        diffusivity=spread if varies else np.array([0.09, 0.01]),
        boundary=Obstacle(disc, Reflect()),
        key=key,
    )
    # Both squares have the mean 1/4 and the variance 1/16.
    squares = np.mean(np.asarray(tracks.positions[-1]) ** 2, axis=0)
    assert np.allclose(squares, 1 / 4, atol=4 / 4 / np.sqrt(count))


@pytest.mark.parametrize("spread", [1.0, [2.0, 0.4]])
def test_particles_stay_even_in_a_triangle_on_a_sphere(spread):
    # Uniform over the area: in longitude and the sine of the latitude.
    def room(x):
        north = x[1] - 60
        return jnp.minimum(jnp.minimum(x[0], north), (15 - x[0] - north) / 1.5)

    key, also = jax.random.split(jax.random.key(2))
    drawn = jax.random.uniform(also, (8_000, 2))
    low, high = np.sin(np.radians([60, 75]))
    latitude = jnp.degrees(jnp.arcsin(low + (high - low) * drawn[:, 1]))
    seeds = jnp.stack([15 * drawn[:, 0], latitude], axis=1)
    seeds = seeds[jax.vmap(room)(seeds) > 0]
    still = OnSphere(lambda t, x: jnp.zeros_like(x))
    tracks = track(
        still,
        seeds,
        [0.0, 1.0],
        steps=40,
        diffusivity=(3 * DEGREE) ** 2 * np.array(spread),
        boundary=Obstacle(room, Reflect()),
        key=key,
    )
    error = np.std(seeds, axis=0) * np.sqrt(2 / len(seeds))
    change = np.mean(tracks.positions[-1], axis=0) - np.mean(seeds, axis=0)
    assert np.all(np.abs(change) < 4 * error)
