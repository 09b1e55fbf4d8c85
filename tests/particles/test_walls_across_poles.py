"""Walls, and rates of variables, on tracks that went across a pole.

Beyond a pole latitudes go on above 90 degrees, but a place is what it is, however a
particle got there.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.particles import (
    EARTH_RADIUS,
    Absorb,
    Coast,
    Hold,
    Land,
    Obstacle,
    OnSphere,
    ParticleStatus,
    Reflect,
    Variable,
    track,
    wrap_globe,
)


X64 = jnp.result_type(float) == jnp.float64
CLOSE = {"rtol": 0, "atol": 1e-8 if X64 else 2e-4}
DEGREE = np.radians(EARTH_RADIUS)
SPEED = 10.0
# One degree a step.
STEP = DEGREE / SPEED


def over_the_poles(t, x):
    """A rotation of the globe: northward on the meridian of 0 degrees."""
    longitude, latitude = jnp.radians(x[0]), jnp.radians(x[1])
    east = SPEED * jnp.sin(longitude) * jnp.sin(latitude)
    return jnp.stack([east, SPEED * jnp.cos(longitude)])


def beside(x):
    """The distance to an oval that is round about a place, in degrees."""
    east = jnp.mod(x[0] + 10, 360) - 180
    return jnp.hypot(east * np.cos(np.radians(84)), x[1] - 84) - 2.5


def sea_of_pole(x):
    return jnp.abs(x[1]) - 82.5


def land_around_the_poles():
    longitude, latitude = np.arange(0, 360, 30.0), np.arange(-90, 90.1, 5)
    dry = np.broadcast_to(np.abs(latitude) <= 80, (12, latitude.size))
    return Land(dry, (longitude, latitude), periods=(360.0, None))


COAST = Coast(land_around_the_poles())
FURTHER = Obstacle(lambda x: jnp.abs(x[1]) - 81, Absorb())
ENDS = {
    "obstacle": (Obstacle(sea_of_pole, Absorb()), 10),
    "coast": (COAST, 1),
    "several": ([FURTHER, COAST], 1),
}


@pytest.mark.parametrize("walls", ENDS)
def test_particles_end_at_walls_behind_the_poles(walls):
    boundary, steps = ENDS[walls]

    def end(shift):
        seeds = jnp.array([[0.0, 87.75], [180.0, -87.75]]).at[:, 1].add(shift)
        field, times = OnSphere(over_the_poles), [0.0, 10 * STEP]
        found = track(field, seeds, times, steps=steps, boundary=boundary)
        return found.ended, found

    found, slopes = eqx.filter_jvp(end, (jnp.asarray(0.0),), (jnp.asarray(1.0),))
    times, tracks = found
    places = wrap_globe(tracks.positions[-1], west=-90.0)
    assert np.all(tracks.status != ParticleStatus.ALIVE)
    # Half way between nodes; 2.25 degrees to the pole and 7.5 from there.
    assert np.allclose(places, [[180.0, 82.5], [0.0, -82.5]], **CLOSE)
    assert np.allclose(times, 9.75 * STEP, rtol=1e-5)
    assert np.allclose(slopes[0], [-STEP, STEP], rtol=1e-3)


def island():
    longitude, latitude = np.arange(0, 360, 10.0), np.arange(70, 90.1, 2)
    dry = np.zeros((longitude.size, latitude.size), bool)
    dry[17:19, 6:8] = True
    return Land(dry, (longitude, latitude), periods=(360.0, None))


BESIDE = {
    "mirror": Obstacle(beside, Reflect()),
    "slide": Obstacle(beside, Hold()),
    "coast": Coast(island()),
}


@pytest.mark.slow(after=3)
@pytest.mark.parametrize("wall", BESIDE)
@pytest.mark.parametrize("several", [False, True])
def test_a_wall_is_the_same_for_particles_from_across_the_pole(wall, several):
    boundary = [COAST, BESIDE[wall]] if several else BESIDE[wall]
    field, times = OnSphere(over_the_poles), STEP * np.arange(8)
    # The second is where the first comes to be after two steps.
    seeds = [[0.0, 88.5], [180.0, 89.5]]
    tracks = track(field, seeds, times, dt=STEP, boundary=boundary)
    across, behind = tracks.positions[2:, 0], tracks.positions[:-2, 1]
    assert np.all(across[:, 1] > 90)
    assert np.all(behind[:, 1] < 90)
    # A longitude is known to rounding over the cosine, and then goes on from there.
    close = {"rtol": 0, "atol": 1e-10 if X64 else 5e-3}
    assert np.allclose(wrap_globe(across, west=0), behind, **close)
    # Without a wall they would be here.
    assert np.abs(behind[-1] - np.array([180.0, 84.5])).max() > 0.4


def test_particles_stay_even_in_a_round_sea_around_a_pole():
    key, also = jax.random.split(jax.random.key(3))
    drawn = jax.random.uniform(also, (1000, 2))
    # Uniform over the area: in longitude and the sine of the latitude.
    depth = 1 - np.sin(np.radians(82.5))
    latitude = jnp.degrees(jnp.arcsin(1 - 0.999 * depth * drawn[:, 1]))
    seeds = jnp.stack([360 * drawn[:, 0], latitude], 1)
    still = OnSphere(lambda t, x: jnp.zeros_like(x))
    boundary = Obstacle(sea_of_pole, Reflect())
    spread = (3 * DEGREE) ** 2
    options = {"steps": 40, "diffusivity": spread, "boundary": boundary, "key": key}
    found = wrap_globe(track(still, seeds, [0.0, 1.0], **options).positions[-1])
    assert np.asarray(found)[:, 1].min() > 82.5 - CLOSE["atol"]
    share = (1 - np.sin(np.radians(np.asarray(found, float)[:, 1]))) / depth
    assert np.isclose(share.mean(), 0.5, atol=4 / np.sqrt(12 * share.size))


def test_a_rate_is_asked_at_latitudes_within_90_degrees():
    variables = {"sum": Variable(lambda t, x, value: x[1])}
    field, times = OnSphere(over_the_poles), [0.0, 6 * STEP]
    found = track(field, [[0.0, 87.0]], times, steps=6, variables=variables)
    # Up to 90 degrees and down again.
    mean = found.variables["sum"][-1, 0] / (6 * STEP)
    assert np.allclose(mean, 88.5, **CLOSE)
