"""Derivatives by the time at which a particle is released, on a step and between."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.particles import (
    Box,
    FieldAdjoint,
    Gravity,
    GriddedField,
    Newtonian,
    Obstacle,
    Reflect,
    track,
)


# Every one is on a step of 0.05, rounded up or down, but for three. Nobody is released
# after the last time: the derivative there is that of an earlier release.
RELEASE = np.append(0.05 * np.arange(21), [0.012, 0.333, 0.99])
MIRROR = Box([-9.0, -9.0], [0.57, 9.0], Reflect())
BODY = Obstacle(lambda x: 9 - x[1], Reflect())
X64 = jnp.result_type(float) == jnp.float64


def check_by_release(last, slope, **close):
    """Asserts derivatives by each particle's release, forward and in reverse."""
    at, weights = jnp.asarray(RELEASE), np.array([1.0, 0.5])
    forward = jax.jvp(last, (at,), (jnp.ones_like(at),))[1]
    np.testing.assert_allclose(forward, slope, **close)
    reverse = jax.grad(lambda release: jnp.sum(last(release) @ weights))(at)
    np.testing.assert_allclose(reverse, slope @ weights, **close)


@pytest.mark.parametrize("times", [[0.0, 0.5, 1.0], [1.0, 0.0]])
def test_derivatives_by_the_release_of_who_follows_a_flow(times):
    def last(release):
        tracks = track(
            lambda t, x: jnp.stack([1 + t, 0 * t]),
            np.zeros((RELEASE.size, 2)),
            times,
            dt=0.05,
            release=release,
        )
        return tracks.positions[-1]

    # x is the integral of 1 + t from the release on.
    slope = np.stack([-1 - RELEASE, 0 * RELEASE], 1)
    check_by_release(last, slope, rtol=1e-13 if X64 else 1e-5)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("walls", [None, MIRROR, [MIRROR, BODY]])
def test_derivatives_by_the_release_of_who_falls(walls):
    stones = Newtonian(
        [Gravity(1.0, [0.0, -9.81])], 1.0, velocity=lambda t, x: jnp.array([1.0, 2.0])
    )

    def last(release):
        at = np.zeros((RELEASE.size, 2))
        how = {"dt": 0.05, "release": release, "boundary": walls}
        return track(stones, at, [0, 1], **how).positions[-1]

    # The mirror turns around who comes to it.
    across = np.where((1 - RELEASE > 0.57) & (walls is not None), 1, -1)
    slope = np.stack([across, 9.81 * (1 - RELEASE) - 2], 1)
    check_by_release(last, slope, atol=1e-12 if X64 else 2e-5)


def test_the_adjoint_of_a_field_has_derivatives_by_the_release():
    nodes = np.array([-2.0, 0.0, 2.0])
    field = GriddedField(np.broadcast_to([1.0, 0.5], (3, 3, 2)), (nodes, nodes))

    def total(release):
        at = np.zeros((RELEASE.size, 2))
        how = FieldAdjoint()
        tracks = track(field, at, [0, 1], dt=0.05, release=release, adjoint=how)
        return jnp.sum(tracks.positions[-1])

    slope = jax.grad(total)(jnp.asarray(RELEASE))
    np.testing.assert_allclose(slope, -1.5, rtol=1e-12 if X64 else 1e-5)


@pytest.mark.parametrize("release", [0.0, 0.3, 0.5, 0.6, 0.7])
def test_who_diffuses_spreads_the_less_the_later_it_is_released_on_a_step(release):
    count, steps, diffusivity = 4000, 9, 0.01

    def squares(release):
        tracks = track(
            lambda t, x: 0 * x,
            np.zeros((count, 1)),
            [0.0, 0.9],
            steps=steps,
            release=jnp.full(count, release),
            diffusivity=diffusivity,
            key=jax.random.key(0),
        )
        return tracks.positions[-1, :, 0] ** 2

    slope = jax.jvp(squares, (release,), (1.0,))[1]
    # The variance is 2 K (t - r). The derivative of one square by the length of its
    # first step has the standard deviation 2 K sqrt(n + 1), n being the steps.
    error = 2 * diffusivity * np.sqrt((steps + 1) / count)
    assert abs(jnp.mean(slope) + 2 * diffusivity) < 4 * error


@pytest.mark.parametrize("times", [(0.0, 1.0), (1.0, 0.0)])
def test_who_diffuses_from_the_last_time_on_has_no_derivative(times):
    def end(release):
        return track(
            lambda t, x: 1 + x,
            np.zeros((3, 1)),
            times,
            steps=4,
            release=jnp.full(3, release),
            diffusivity=lambda t, x: 0.1 * (1 + x[0]),
            key=jax.random.key(0),
        ).positions[-1]

    value, slope = jax.jvp(end, (times[1],), (1.0,))
    assert np.all(np.asarray(value) == 0)
    assert np.all(np.asarray(slope) == 0)


@pytest.mark.x64
def test_a_release_rounded_before_the_first_time_has_its_derivative():
    def end(release):
        flow = lambda t, x: jnp.ones(1)  # noqa: E731
        tracks = track(flow, np.zeros((2, 1)), [0.3, 1.3], dt=0.25, release=release)
        return tracks.positions[-1, :, 0]

    early = jnp.asarray([0.1 + 0.2, np.nextafter(0.3, 0)])
    slope = jax.jvp(end, (early,), (jnp.ones(2),))[1]
    np.testing.assert_allclose(slope, -1, rtol=1e-12)
    # Refused where it is known; where it is traced the first time counts.
    long = jax.jit(lambda r: jax.jvp(end, (r,), (jnp.ones(2),)))
    value, slope = long(jnp.asarray([-0.5, 0.2]))
    np.testing.assert_allclose(value, 1.0, rtol=1e-12)
    np.testing.assert_array_equal(slope, 0)
