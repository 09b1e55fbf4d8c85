"""Obstacles: where and when particles hit, where they go then, and its derivatives."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.particles import (
    Absorb,
    Box,
    Hold,
    Newtonian,
    Outlet,
    ParticleStatus,
    Periodic,
    Reflect,
    Stick,
    Variable,
    track as track_arrays,
)
from physax.particles._obstacles import Obstacle, first_hit


X64 = jnp.result_type(float) == jnp.float64
# A place is found to the rounding of positions, which are of order 10 here.
CLOSE = {"rtol": 0, "atol": 1e-12 if X64 else 2e-5}


def track(velocity, seeds, times, **options):
    return track_arrays(velocity, jnp.asarray(seeds), np.asarray(times), **options)


class Ball(eqx.Module):
    radius: jax.Array
    centre: jax.Array

    def __call__(self, x):
        return jnp.linalg.norm(x - self.centre) - self.radius


def ball(ndim, radius=1.0):
    return Ball(jnp.asarray(radius), jnp.zeros(ndim))


class Still(eqx.Module):
    """The same velocity everywhere."""

    value: Any

    def __call__(self, t, x):
        return jnp.asarray(self.value, x.dtype)


def channel(x):
    """Outside where 0 < y < 1."""
    return jnp.minimum(x[1], 1 - x[1])


hits = jax.jit(jax.vmap(first_hit, in_axes=(None, 0, 0)), static_argnums=0)


def starts_around(rng, count, low, high):
    way = rng.normal(size=(count, 3))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    return way * rng.uniform(low, high, (count, 1))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("within", [False, True])
def test_first_hit_of_a_sphere_is_the_root_of_the_quadratic(within):
    rng = np.random.default_rng(0)
    starts = starts_around(rng, 2000, *((0.01, 0.99) if within else (1.01, 3.0)))
    moves = rng.normal(size=starts.shape) * rng.choice([0.1, 1, 10], (2000, 1))
    a, b = np.sum(moves**2, 1), np.sum(starts * moves, 1)
    root = b**2 - a * (np.sum(starts**2, 1) - 1)
    safe = np.sqrt(np.maximum(root, 0))
    part = (-b + safe) / a if within else (-b - safe) / a
    expected = (root > 0) & (part > 0) & (part < 1)
    # Ways that barely touch, or end at the surface, are decided by rounding.
    clear = (np.abs(root) / a > 1e-3) & (np.abs(part - 1) > 1e-4)
    sign = -1 if within else 1
    hit = hits(
        lambda x: sign * (jnp.linalg.norm(x) - 1), *map(jnp.asarray, (starts, moves))
    )
    assert np.array_equal(hit.found[clear], expected[clear])
    assert expected.sum() > 100
    both = clear & expected
    error = (hit.part - part)[both] * np.sqrt(a)[both]
    assert np.abs(error).max() < (1e-12 if X64 else 1e-4)


@pytest.mark.parametrize("thickness", [1e-1, 1e-3, 1e-5])
def test_plates_far_thinner_than_a_step_are_hit(thickness):
    def plate(x):
        return jnp.abs(x[0]) - thickness / 2

    angles = np.deg2rad(np.array([0, 30, 60, 80, 85, -60, -85]))
    starts = np.stack([np.full(7, -1.0), np.zeros(7)], 1)
    moves = 2.5 * np.stack([np.ones(7), np.tan(angles)], 1)
    hit = hits(plate, *map(jnp.asarray, (starts, moves)))
    assert np.all(hit.found)
    assert np.allclose(hit.part, (1 - thickness / 2) / 2.5, **CLOSE)
    assert np.allclose(hit.normal, [-1, 0])


def test_five_bounces_between_two_planes_in_one_step():
    flow = Still(np.array([1.0, 5.3]))
    seeds = np.array([[0.0, 0.2], [0.0, 0.7], [0.0, 0.45]])
    end = track(
        flow, seeds, [0.0, 1.0], boundary=Obstacle(channel, Reflect(), bounces=7)
    ).positions[-1]
    folded = 1 - np.abs((seeds[:, 1] + 5.3) % 2 - 1)
    assert np.allclose(end, np.stack([[1, 1, 1], folded], 1), **CLOSE)


def test_a_particle_that_bounces_too_often_waits_at_the_surface():
    flow = Still(np.array([0.0, 5.3]))
    wall = Obstacle(channel, Reflect(), bounces=2)
    tracks = track(flow, [[0.0, 0.2]], [0.0, 1.0], boundary=wall)
    # The second hit is on y = 0.
    assert np.allclose(tracks.positions[-1], [[0.0, 0.0]], **CLOSE)
    assert tracks.status[0] == ParticleStatus.ALIVE


@pytest.mark.slow
def test_inertial_particles_lose_normal_velocity_and_keep_the_rest():
    motion = Newtonian((), 1.0, Still(np.array([1.0, 2.0])))
    for rule, speed in ((Reflect(0.5), -1.0), (Reflect(), -2.0), (Hold(), 0.0)):
        tracks = track(
            motion,
            [[0.0, 0.5]],
            [0.0, 0.4],
            boundary=Obstacle(channel, rule),
            variables={"age": Variable(lambda t, x, value: 1.0)},
        )
        assert tracks.velocities is not None
        assert np.allclose(tracks.velocities[-1], [[1.0, speed]], **CLOSE)
        # It is back for 0.15 s at this speed, or follows the wall.
        y = 1.0 + 0.15 * speed
        assert np.allclose(tracks.positions[-1], [[0.4, y]], **CLOSE)
        assert np.allclose(tracks.variables["age"][-1], 0.4, **CLOSE)


def test_particles_end_where_and_when_they_hit():
    flow = Still(np.array([2.0, 0.0]))
    rules = Absorb(), Stick(), Outlet()
    walls = [
        Obstacle(Ball(jnp.asarray(1.0), jnp.array([0.0, 10.0 * n])), rule)
        for n, rule in enumerate(rules)
    ]
    seeds = [[-3.0, 0.0], [-3.0, 10.6], [-3.0, 20.8], [-3.0, 1.2], [-9.0, 0.0]]
    tracks = track(flow, seeds, [0.0, 1.2, 2.4], boundary=walls)
    statuses = ParticleStatus.ABSORBED, ParticleStatus.STUCK, ParticleStatus.EXITED
    assert tracks.status.tolist() == [*statuses, 0, 0]
    assert tracks.face.tolist() == [0, 1, 2, -1, -1]
    assert np.allclose(tracks.ended[:3], [1.0, 1.1, 1.2], **CLOSE)
    assert np.all(np.isnan(tracks.ended[3:]))
    ends = [[-1, 0], [-0.8, 10.6], [-0.6, 20.8], [1.8, 1.2], [-4.2, 0]]
    assert np.allclose(tracks.positions[-1], ends, **CLOSE)


@pytest.mark.slow
def test_sliding_follows_a_curved_surface_and_leaves_it():
    # Around the upper half of a disk, pushed against its front at first.
    flow = Still(np.array([1.0, 0.0]))
    seeds = [[-1.5, 0.3]]
    tracks = track(
        flow, seeds, np.linspace(0, 6, 13), dt=0.01, boundary=Obstacle(ball(2), Hold())
    )
    radius = np.linalg.norm(tracks.positions[:, 0], axis=1)
    assert np.all(radius > 1 - 1e-5)
    # The tangential part of the velocity, sin(angle), takes it to the top.
    assert np.abs(tracks.positions[-1, 0, 1] - 1) < 1e-2
    assert tracks.positions[-1, 0, 0] > 1
    on_disk = tracks.positions[(radius < 1 + 1e-3) & (tracks.times > 1), 0]
    start = np.arcsin(0.3)
    hit = 1.5 - np.cos(start)
    # d angle / dt = -sin(angle) with the angle from the far side of x.
    angle = np.pi - start
    for t, x in zip(tracks.times, tracks.positions[:, 0], strict=True):
        if hit < t < hit + 1.0:
            now = 2 * np.arctan(np.tan(angle / 2) * np.exp(-(t - hit)))
            assert np.abs(np.arctan2(x[1], x[0]) - now) < 2e-2
    assert len(on_disk) >= 2


def test_none_of_the_particles_in_a_closed_room_gets_lost():
    rng = np.random.default_rng(1)
    seeds = starts_around(rng, 300, 0.0, 0.95)
    room = Obstacle(lambda x: 1 - jnp.linalg.norm(x), Reflect())
    tracks = track(
        Still(np.zeros(3)),
        seeds,
        [0.0, 1.0],
        steps=100,
        boundary=room,
        diffusivity=1.0,
        key=jax.random.key(3),
    )
    assert np.linalg.norm(tracks.positions[-1], axis=1).max() <= 1 + 1e-6
    assert tracks.counts()["alive"] == 300
    # Diffusion in a closed room leads to the uniform density: E r^2 = 3/5.
    spread = np.mean(np.sum(np.asarray(tracks.positions[-1]) ** 2, 1))
    assert abs(spread - 0.6) < 4 * np.sqrt((3 / 7 - 0.36) / 300)


@pytest.mark.slow
def test_an_obstacle_before_a_periodic_box():
    flow = Still(np.array([1.0, 0.0]))
    walls = (
        Obstacle(lambda x: jnp.abs(x[0] - 0.5) - 0.05, Reflect()),
        Box(np.zeros(2), np.ones(2), Periodic()),
    )
    end = track(flow, [[0.7, 0.5]], [0.0, 0.5], boundary=walls).positions[-1]
    # Out at x = 1 and in at 0: the way across the box does not count as a hit.
    assert np.allclose(end, [[0.2, 0.5]], **CLOSE)


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.parametrize("rule", [Absorb(), Reflect(0.7), Hold()])
def test_derivatives_through_a_hit_are_those_of_finite_differences(rule):
    def outcome(seed, radius, speed):
        body = Ball(radius, jnp.zeros(2))
        motion = Newtonian((), 1.0, lambda t, x: jnp.stack([speed, 0.1 * speed]))
        tracks = track(motion, seed[None], [0.0, 1.5], boundary=Obstacle(body, rule))
        assert tracks.velocities is not None
        total = tracks.positions[-1, 0] @ jnp.array([1.0, 2.0])
        total += tracks.velocities[-1, 0] @ jnp.array([0.3, -0.2])
        return total + (3 * tracks.ended[0] if rule.ends else 0)

    run = jax.jit(jax.value_and_grad(outcome, (0, 1, 2)))
    given = jnp.array([-3.0, 0.3]), jnp.array(1.0), jnp.array(2.0)
    slopes = run(*given)[1]
    eps = 1e-6
    for number, slope in enumerate(slopes):
        for place in np.ndindex(slope.shape):

            def shifted(by, number=number, place=place):
                changed = list(given)
                changed[number] = given[number].at[place].add(by)
                return run(*changed)[0]

            difference = (shifted(eps) - shifted(-eps)) / (2 * eps)
            assert np.allclose(slope[place], difference, rtol=1e-7, atol=1e-8)


@pytest.mark.x64
def test_the_second_derivative_of_a_hit_is_that_of_the_quadratic():
    middle, radius = jnp.array([2.0, 0.3]), 0.7

    def distance(x):
        return jnp.sqrt(jnp.sum((x - middle) ** 2)) - radius

    def heading(angle):
        return jnp.stack([jnp.cos(angle), jnp.sin(angle)])

    def found(angle):
        flow = track(
            lambda t, x: heading(angle),
            jnp.zeros((1, 2)),
            [0.0, 2.0],
            steps=4,
            boundary=Obstacle(distance, Absorb()),
        )
        return flow.ended[0]

    def expected(angle):
        along = heading(angle) @ middle
        return along - jnp.sqrt(along**2 - middle @ middle + radius**2)

    assert float(found(0.1)) == pytest.approx(float(expected(0.1)), rel=1e-12)
    exact = float(jax.grad(jax.grad(expected))(0.1))
    assert float(jax.grad(jax.grad(found))(0.1)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
@pytest.mark.x64
def test_a_function_that_closes_over_a_parameter_is_differentiated():
    def ended(radius):
        body = Obstacle(lambda x: jnp.linalg.norm(x) - radius, Absorb())
        flow = Still(np.array([2.0, 0.0]))
        tracks = track(flow, [[-3.0, 0.6], [5.0, 0.0]], [0.0, 2.0], boundary=body)
        return tracks.ended[0]

    # t = (3 - sqrt(r^2 - y^2)) / 2; the particle that hits nothing adds no NaN.
    assert np.allclose(jax.grad(ended)(1.0), -1 / (2 * 0.8), rtol=1e-12)


def test_seeds_inside_an_obstacle_are_refused():
    seeds = [[2.0, 0.0], [0.5, 0.0], [1.0, 0.0]]
    with pytest.raises(
        ArgumentError,
        match=r"`seeds` must lie outside of the obst.*"
        r"1 of 3 do not; number 1 is at \[0.5 0. \], .* is -0.5",
    ):
        track(
            Still(np.zeros(2)), seeds, [0.0, 1.0], boundary=Obstacle(ball(2), Absorb())
        )


def test_other_rules_are_refused():
    with pytest.raises(ArgumentError, match=r"must be one of Reflect\(\), Hold\(\), A"):
        Obstacle(ball(2), Periodic())


def test_a_distance_that_cannot_be_called_is_refused():
    with pytest.raises(ArgumentError, match=r"`distance` must be a function.* is 1.0"):
        Obstacle(1.0, Absorb())


def test_no_bounce_is_refused():
    with pytest.raises(
        ArgumentError, match="`bounces` must be an integer of at least 1, but is 0"
    ):
        Obstacle(ball(2), Reflect(), bounces=0)
