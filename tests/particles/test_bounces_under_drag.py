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


@pytest.mark.parametrize("walls", [box, body, both])
def test_a_bounce_changes_the_force_along_an_axis_of_no_velocity(walls):
    # Across crossed fields E x B leads straight into the mirror; behind it the velocity
    # turns around that of the drift: v - (1, 0) from (-2, 0).
    turn, wall, hit, time = 3.0, 1.0, 0.213, 0.4
    force = lambda t, x, v: turn * jnp.stack([v[1], 1 - v[0]])  # noqa: E731
    motion = Newtonian([force], 1.0, lambda t, x: jnp.array([1.0, 0.0]))
    angle = turn * (time - hit)
    exact = np.array([1 - 2 * np.cos(angle), 2 * np.sin(angle)])
    for dt in (0.04, 0.01):
        seeds = np.array([[wall - hit, 0.0]])
        error = ends(motion, seeds, time, dt, walls(2, wall))[1][0] - exact
        # By Taylor's theorem, as the change of the force stays as it is in the step.
        assert np.max(np.abs(error)) < (turn * dt) ** 2


@pytest.mark.parametrize("several", [False, True])
def test_drag_acts_on_particles_that_end_behind_a_bounce(several):
    errors = []
    for dt in (0.04, 0.02):
        motion = MaxeyRiley(still, TAU, relative_velocity=-1.0)
        walls = Box([0.0], [dt / 2], [(Reflect(), Absorb())])
        if several:
            walls = [Obstacle(lambda x: 50 - x[0], Absorb()), walls]
        seeds = np.array([[dt / 4]])
        tracks = follow(motion, seeds, [0.0, dt], steps=1, boundary=walls)
        assert tracks.velocities is not None
        # The velocity falls by the way over tau, and the time follows from it.
        way = 3 * dt / 4
        time = -TAU * np.log(1 - way / TAU)
        assert np.isclose(tracks.ended[0], time, atol=dt**2)
        assert tracks.positions[-1, 0, 0] == dt / 2
        errors.append(abs(float(tracks.velocities[-1, 0, 0]) - (1 - way / TAU)))
    assert errors[0] < (0.04 / TAU) ** 2 / 4
    assert errors[0] > 3.5 * errors[1]


def test_drag_slows_particles_that_bounce_twice_in_a_step():
    motion = MaxeyRiley(still, TAU, relative_velocity=3.0)
    seeds, time = np.linspace(-0.07, 0.07, 101)[:, None], 0.4

    def loss(dt):
        v = ends(motion, seeds, time, dt, box(1, 0.075))[1]
        return np.abs(np.mean((v / (3 * np.exp(-time / TAU))) ** 2) - 1)

    # Once or twice per step of 0.05; with the change of the first bounce kept as it is
    # behind the second, particles of 0.1 gained 50 times their energy.
    assert loss(0.1) < 2 * (0.1 / TAU) ** 2
    assert loss(0.1) > 3 * loss(0.05) > 9 * loss(0.025)


@pytest.mark.parametrize("speed", [0.1, 1e-170])
def test_derivatives_by_the_velocity_do_not_depend_on_how_slow_it_is(speed):
    def place(velocity, walls):
        motion = MaxeyRiley(still, TAU, relative_velocity=velocity)
        tracks = follow(motion, [[0.0]], [0.0, 0.1], steps=10, boundary=walls)
        return tracks.positions[-1, 0, 0]

    def carried(velocity, walls):
        u = lambda t, x: 0 * x + velocity  # noqa: E731
        return follow(u, [[0.0]], [0.0, 0.1], boundary=walls).positions[-1, 0, 0]

    rule = Reflect(0.5)
    for walls in (Box([0.0], [9.0], rule), Obstacle(lambda x: x[0], rule)):
        slope = jax.grad(place)(-speed, walls)
        exact = -0.5 * TAU * (1 - np.exp(-0.1 / TAU))
        # Expansion in dt of the one bounce: (1 + r) / (2 r) (dt / tau)^2.
        assert np.isclose(slope, exact, rtol=2 * (0.01 / TAU) ** 2)
    folded = Box([0.0], [9.0], [(Reflect(), Absorb())])
    assert np.isclose(jax.grad(carried)(-0.1, folded), -0.1)
    assert np.isfinite(jax.grad(carried)(-speed, folded))
