"""Bounces of particles on which forces act that depend on their velocity."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.particles import (
    Absorb,
    Box,
    MaxeyRiley,
    Newtonian,
    Obstacle,
    Reflect,
    StokesDrag,
    track as follow,
)


pytestmark = pytest.mark.x64
TAU = 0.3


def still(t, x):
    return 0 * x


def fast(t, x):
    return 0 * x + 3.0


def box(ndim, wall):
    return Box(np.full(ndim, -wall), np.full(ndim, wall), Reflect())


def body(ndim, wall):
    return Obstacle(lambda x: wall - jnp.max(jnp.abs(x)), Reflect())


def both(ndim, wall):
    far = Obstacle(lambda x: 50 - jnp.max(jnp.abs(x)), Absorb())
    return [far, box(ndim, wall)]


def ends(motion, seeds, time, dt, walls):
    tracks = follow(motion, seeds, [0.0, time], dt=dt, boundary=walls)
    assert tracks.velocities is not None
    return np.asarray(tracks.positions[-1]), np.asarray(tracks.velocities[-1])


@pytest.mark.parametrize("walls", [box, body, both])
@pytest.mark.parametrize(
    "motion",
    [
        MaxeyRiley(still, TAU, relative_velocity=3.0),
        Newtonian([StokesDrag(still, 1 / TAU)], 1.0, fast),
    ],
)
def test_drag_slows_particles_that_bounce_as_others(walls, motion):
    seeds, wall, time = np.linspace(-0.5, 0.5, 201)[:, None], 0.6, 0.4
    # Mirrors fold the line: s = 3 tau (1 - exp(-t / tau)), v = 3 exp(-t / tau).
    way = (seeds + 3 * TAU * (1 - np.exp(-time / TAU)) + wall) % (4 * wall)
    exact = np.where(way < 2 * wall, way, 4 * wall - way) - wall
    back = way > 2 * wall
    assert back.sum() > 100
    errors = []
    for dt in (0.02, 0.01):
        x, v = ends(motion, seeds, time, dt, walls(1, wall))
        share = (v / (3 * np.exp(-time / TAU))) ** 2 - 1
        # Expansion in dt: on average a bounce takes (dt / tau)^2 / 3 of the energy.
        mean = np.mean(share[back])
        assert np.isclose(mean, -((dt / TAU) ** 2) / 3, rtol=0.15)
        assert np.max(np.abs(share)) < 3 * (dt / TAU) ** 2
        errors.append([abs(mean), np.max(np.abs(x - exact))])
    assert np.all(np.divide(*errors) > 3.5)


@pytest.mark.parametrize("walls", [box, body, both])
def test_a_magnetic_field_does_not_heat_particles_between_mirrors(walls):
    turn = lambda t, x, v: 2 * jnp.stack([v[1], -v[0]])  # noqa: E731
    motion = Newtonian([turn], 1.0, lambda t, x: jnp.array([1.0, 0.4]))
    seeds = np.random.default_rng(0).uniform(-0.5, 0.5, (200, 2))

    def gain(dt):
        v = ends(motion, seeds, 2.0, dt, walls(2, 0.7))[1]
        return np.mean(np.abs(np.sum(v**2, 1) / 1.16 - 1))

    coarse, fine = gain(0.04), gain(0.01)
    # Some 3 bounces of (omega dt)^2 / 3 each; without the change of the force at the
    # hit it would be of first order, 30 times as much.
    assert coarse < 2 * (2 * 0.04) ** 2
    assert fine < coarse / 8


@pytest.mark.parametrize("walls", [box, both])
@pytest.mark.parametrize("direction", [1, -1])
def test_a_magnetic_field_does_not_heat_particles_in_a_corner(walls, direction):
    turn = lambda t, x, v: 2 * jnp.stack([v[1], -v[0]])  # noqa: E731
    speed = jnp.array([0.8, 0.7])
    motion = Newtonian([turn], 1.0, lambda t, x: direction * speed)
    shares = np.array([[0.1, 0.1], [0.1, 0.3], [0.5, 0.2], [0.35, 0.4]])
    gains = []
    for dt in (0.04, 0.02):
        # Both walls are met within one step.
        seeds = 0.7 - shares * dt
        tracks = follow(
            motion, seeds, [0.0, direction * dt], dt=dt, boundary=walls(2, 0.7)
        )
        assert tracks.velocities is not None
        v = np.asarray(tracks.velocities[-1])
        assert np.all(np.sign(v) == -direction)
        gains.append(np.max(np.abs(np.sum(v**2, 1) / 1.13 - 1)))
    assert gains[0] < 3 * (2 * 0.04) ** 2
    assert gains[1] < gains[0] / 3.5


@pytest.mark.parametrize("walls", [box, both])
def test_drag_in_a_corner_is_the_same_along_both_axes(walls):
    motion = MaxeyRiley(still, TAU, relative_velocity=1.0)
    v = ends(motion, np.full((1, 2), 0.595), 0.02, 0.02, walls(2, 0.6))[1][0]
    assert v[0] == pytest.approx(v[1], rel=1e-12)
    assert v[0] == pytest.approx(-np.exp(-0.02 / TAU), rel=2e-3)


def test_derivatives_through_a_bounce_under_drag_are_those_of_finite_differences():
    def end(tau):
        motion = MaxeyRiley(still, tau, relative_velocity=3.0)
        seeds = jnp.linspace(-0.5, 0.5, 7)[:, None]
        walls = box(1, 0.6)
        tracks = follow(motion, seeds, [0.0, 0.4], steps=10, boundary=walls)
        return jnp.sum(tracks.positions[-1] ** 2)

    value, eps = jax.jit(jax.value_and_grad(end)), 1e-6
    difference = (value(TAU + eps)[0] - value(TAU - eps)[0]) / (2 * eps)
    assert np.isclose(value(TAU)[1], difference, rtol=1e-6)
