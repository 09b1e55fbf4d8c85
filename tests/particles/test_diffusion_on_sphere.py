"""Diffusion in metres where positions are degrees, and where it cannot be."""

import equinox as eqx
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
from physax.particles._diffusivity import as_diffusivity, displaced, local
from physax.particles._sphere import great_circle


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


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_diffusion_from_near_a_pole_has_the_mean_of_legendre(solver):
    # <P_1(cos gamma)> = exp(-2 K T / a^2) of the angle gamma from the start, for steps
    # of any size: these of 10 degrees begin within one of them from the pole.
    count, start = 20_000, np.array([30.0, 80.0])
    tracks = track(
        STILL,
        np.tile(start, (count, 1)),
        [0.0, 0.3 * EARTH_RADIUS**2],
        steps=20,
        solver=solver,
        diffusivity=1.0,
        key=KEY,
    )
    longitude, latitude = np.radians(np.asarray(tracks.positions[-1], float)).T
    east, north = np.radians(start)
    cosine = np.sin(latitude) * np.sin(north)
    cosine += np.cos(latitude) * np.cos(north) * np.cos(longitude - east)
    assert abs(cosine.mean() - np.exp(-0.6)) < 3.5 * cosine.std() / np.sqrt(count)


def test_drift_and_noise_are_those_of_the_operator_of_laplace_and_beltrami():
    # The generator on f = sin(latitude), whose value is -2 K f / a^2 where K is one.
    # And behind a pole, where the place is the same.
    radius = EARTH_RADIUS
    diffusivity = as_diffusivity(3.0, 2, STILL)
    f = lambda x: jnp.sin(jnp.radians(x[1]))  # noqa: E731
    for latitude in (-70.0, 10.0, 85.0, 95.0):
        x = jnp.asarray([40.0, latitude])
        found = generator(diffusivity, f, x)
        assert np.allclose(found, -2 * 3.0 / radius**2 * f(x), rtol=1e-3, atol=0)


@eqx.filter_jit
def generator(diffusivity, f, x):
    here = local(diffusivity, jnp.asarray(0.0), x)
    ahead = lambda way: f(displaced(diffusivity, x, way))  # noqa: E731
    slope, bend = jax.grad(ahead)(0 * x), jnp.diagonal(jax.hessian(ahead)(0 * x))
    return jnp.sum((here.slope + here.drift) * slope + here.value * bend)


def test_the_generator_of_diffusivities_that_vary_is_a_divergence():
    # div (K grad f) = (d/dlon (K_1 / cos df/dlon) + d/dlat (cos K_2 df/dlat)) / cos.
    cosine = lambda x: jnp.abs(jnp.cos(jnp.radians(x[1])))  # noqa: E731

    def each(t, x):
        return jnp.stack([varied(t, x), 1.5 + 0.4 * jnp.sin(jnp.radians(2 * x[0]))])

    def f(x):
        lon, lat = jnp.radians(x)
        return jnp.sin(lat) ** 2 + jnp.cos(lat) * jnp.sin(lon) + jnp.sin(2 * lon)

    def flux(x):
        k, slope = each(0.0, wrap_globe(x)), jax.grad(f)(x)
        return jnp.stack([k[0] * slope[0] / cosine(x), k[1] * slope[1] * cosine(x)])

    diffusivity = as_diffusivity(each, 2, STILL)
    for latitude in (-80.0, 10.0, 60.0, 110.0):
        x = jnp.asarray([40.0, latitude])
        want = jnp.trace(jax.jacfwd(flux)(x)) / cosine(x)
        want = want * np.degrees(1 / EARTH_RADIUS) ** 2
        assert np.allclose(generator(diffusivity, f, x), want, rtol=1e-3, atol=0)


def test_great_circles_are_those_of_vectors():
    # Rotations of the unit vector, from any latitude, by ways of any length.
    rng = np.random.default_rng(0)
    latitude = rng.uniform(-270, 270, 1000)
    way = rng.normal(size=(1000, 2)) * 10.0 ** rng.uniform(-3, 2, (1000, 1))
    change = np.asarray(
        jax.vmap(great_circle)(*map(jnp.asarray, (latitude, way))), float
    )
    assert np.abs(change[:, 0]).max() <= 90
    phi, (east, north), zero = np.radians(latitude), np.radians(way).T, 0 * latitude
    begin = np.stack([np.cos(phi), zero, np.sin(phi)])
    ahead = east * np.stack([zero, np.sign(np.cos(phi)), zero])
    ahead += north * np.stack([-np.sin(phi), zero, np.cos(phi)])
    angle = np.hypot(east, north)
    want = np.cos(angle) * begin + np.sin(angle) / angle * ahead
    turn, lat = np.radians(change[:, 0]), phi + np.radians(change[:, 1])
    found = [np.cos(lat) * np.cos(turn), np.cos(lat) * np.sin(turn), np.sin(lat)]
    # The rounding of 270 degrees in float32.
    assert np.abs(np.stack(found) - want).max() < 3e-6


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
