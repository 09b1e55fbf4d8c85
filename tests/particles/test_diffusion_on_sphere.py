"""Diffusion in metres where positions are degrees, and where it cannot be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.particles import (
    EARTH_RADIUS,
    EulerMaruyama,
    Milstein,
    OnSphere,
    ParticleStatus,
    StochasticHeun,
    Sum,
    track,
    wrap_globe,
)
from physax.particles._diffusivity import as_diffusivity, local


pytestmark = pytest.mark.f32

KEY = jax.random.key(1)
DAY = 86_400.0
STILL = OnSphere(lambda t, x: 0 * x)
SOLVERS = [EulerMaruyama(), Milstein(), StochasticHeun()]


def varied(t, x):
    # More in the north, less in the south, and along each parallel.
    place = jnp.radians(x)
    return 1 + 0.5 * jnp.sin(place[1]) + 0.3 * jnp.cos(place[1]) * jnp.cos(place[0])


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("latitude", [0.0, 60.0])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_variance_in_metres_is_twice_diffusivity_times_time(solver, latitude):
    at = np.tile([20.0, latitude], (20_000, 1))
    tracks = track(
        STILL, at, [0.0, DAY], steps=4, solver=solver, diffusivity=100.0, key=KEY
    )
    way = np.radians(np.asarray(tracks.positions[-1], float) - at) * EARTH_RADIUS
    way[:, 0] *= np.cos(np.radians(latitude))
    # The standard deviation of so many is known to 0.5 %; 4 of that, and rounding of
    # degrees near 60 in float32, 0.4 m of 4,157 m.
    assert np.allclose(way.std(0), np.sqrt(2 * 100.0 * DAY), rtol=0.02)
    assert np.abs(way.mean(0)).max() < 4 * 4157 / np.sqrt(20_000) + 20


def test_each_direction_has_a_diffusivity_of_its_own():
    moved = track(
        Sum([STILL]),
        np.zeros((20_000, 3)),
        [0.0, DAY],
        diffusivity=[100.0, 25.0, 1e-2],
        key=KEY,
    ).positions[-1]
    metres = moved * jnp.asarray([*[np.radians(EARTH_RADIUS)] * 2, 1.0])
    expected = np.sqrt(2 * DAY * np.array([100.0, 25.0, 1e-2]))
    assert np.allclose(metres.std(0), expected, rtol=0.02)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("solver", "diffusivity"), [(Milstein(), 1.0), *((s, varied) for s in SOLVERS)]
)
def test_what_is_even_over_the_sphere_stays_even(solver, diffusivity):
    # A standard deviation of 0.45 radians, in steps of 0.07: without the drift of the
    # meridians 10 % would go from the equator to the poles.
    count = 20_000
    height = (np.arange(count) + 0.5) / count * 2 - 1
    longitude = np.arange(count) * 222.49 % 360
    seeds = np.stack([longitude, np.degrees(np.arcsin(height))], -1)
    tracks = track(
        STILL,
        seeds,
        [0.0, 0.1 * EARTH_RADIUS**2],
        steps=40,
        solver=solver,
        diffusivity=diffusivity,
        key=KEY,
    )
    places = np.radians(wrap_globe(tracks.positions[-1]))
    for along in (np.sin(places[:, 1]), places[:, 0] / np.pi):
        found, _ = np.histogram(along, np.linspace(-1, 1, 11))
        z = (found - count / 10) / np.sqrt(count / 10 * 0.9)
        assert np.abs(z).max() < 4


def test_drift_and_noise_are_those_of_the_operator_of_laplace_and_beltrami():
    # The generator on f = sin(latitude), whose value is -2 K f / a^2 where K is one.
    # And behind a pole, where the place is the same.
    radius = EARTH_RADIUS
    diffusivity = as_diffusivity(3.0, 2, STILL)
    for latitude in (-70.0, 10.0, 85.0, 95.0):
        x = jnp.asarray([40.0, latitude])
        here = local(diffusivity, jnp.asarray(0.0), x)
        f = lambda x: jnp.sin(jnp.radians(x[1]))  # noqa: E731
        slope, bend = jax.grad(f)(x), jnp.diagonal(jax.hessian(f)(x))
        found = jnp.sum((here.slope + here.drift) * slope + here.value * bend)
        assert np.allclose(found, -2 * 3.0 / radius**2 * f(x), rtol=1e-3, atol=0)


@pytest.mark.slow
def test_at_a_pole_all_is_finite_and_so_are_derivatives():
    def last(scale):
        return track(
            STILL,
            np.array([[0.0, 90.0], [0.0, -89.9999]]),
            [0.0, DAY],
            steps=8,
            diffusivity=lambda t, x: scale * varied(t, x),
            key=KEY,
        ).positions[-1]

    assert np.all(np.isfinite(jax.jit(last)(100.0)))
    assert np.all(np.isfinite(jax.jacfwd(last)(100.0)))


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_negative_diffusivity_ends_a_particle_and_spoils_no_derivative(solver):
    def last(scale):
        tracks = track(
            lambda t, x: 0 * x,
            jnp.asarray([[-1.0], [1.0]]),
            [0.0, 0.1],
            solver=solver,
            diffusivity=lambda t, x: -scale * x[0],
            key=KEY,
        )
        return tracks.positions[-1].sum(), tracks.status

    slope, status = jax.grad(last, has_aux=True)(1e-2)
    assert status.tolist() == [ParticleStatus.ALIVE, ParticleStatus.NOT_FINITE]
    assert np.isfinite(slope)
    assert slope != 0


@pytest.mark.parametrize("run", [track, jax.tree_util.Partial(track, Sum([STILL]))])
def test_seeds_beyond_a_pole_are_refused(run):
    seeds = [[48.0, 12.0], [-35.0, 120.0]]
    given = (STILL, seeds) if run is track else (seeds,)
    with pytest.raises(
        ArgumentError,
        match=r"`seeds` on a sphere .* -90 to 90 degrees, but 1 of 2 do not; number 1 "
        r"is at \[-35. 120.\]. The order is longitude, latitude",
    ):
        run(*given, [0.0, 1.0])
