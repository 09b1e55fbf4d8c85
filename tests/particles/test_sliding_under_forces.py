"""Particles that slide along walls under forces that couple the axes."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax.particles import (
    Absorb,
    Box,
    Hold,
    Newtonian,
    Obstacle,
    Reflect,
    track as follow,
)


pytestmark = pytest.mark.x64
TURN, WEIGHT = 2.0, 1.0


def box(rule):
    return Box([-9, 0], [9, 5], rule)


def body(rule):
    return Obstacle(lambda x: x[1], rule)


def both(rule):
    return [Obstacle(lambda x: 50 - jnp.max(jnp.abs(x)), Absorb()), box(rule)]


@pytest.mark.parametrize("walls", [box, body, both])
@pytest.mark.parametrize(
    ("rule", "direction"), [(Reflect(), 1), (Reflect(0.5), -1), (Hold(), 1)]
)
def test_a_magnetic_force_does_no_work_on_who_slides(walls, rule, direction):
    force = lambda t, x, v: jnp.stack([TURN * v[1], -TURN * v[0] - WEIGHT])  # noqa: E731
    motion = Newtonian([force], 1.0, lambda t, x: jnp.array([1.0, 0.0]))

    def errors(steps):
        tracks = follow(
            motion, [[0.0, 0.0]], [0.0, direction], steps=steps, boundary=walls(rule)
        )
        assert tracks.velocities is not None
        x, v = np.asarray(tracks.positions[-1, 0]), np.asarray(tracks.velocities[-1, 0])
        assert x[1] == v[1] == 0
        # Pressed on, it slides with the speed 1 for ever.
        return abs(v[0] - 1), abs(x[0] - direction)

    coarse, fine = errors(25), errors(50)
    # Expansion in dt: each step gains the speed (omega dt)^3 / 12 at most, and shifts
    # the place by omega (1 + omega) dt^3 / 12 too far; before, 2 dt^2 and 2 dt^3.
    assert coarse[0] < TURN * (TURN + 1) * (TURN * 0.04) ** 2 / 12
    assert coarse[1] < 2 * 0.04**2
    assert coarse[0] > 7 * fine[0]
    assert coarse[1] > 3.7 * fine[1]


@pytest.mark.parametrize("walls", [box, body, both])
def test_who_slides_leaves_when_the_force_turns_away(walls):
    # The press is 2 v_x - 3 t: the wall is left at t = 2/3 for a fall upward.
    push = lambda t, x, v: jnp.stack([TURN * v[1], 3 * t - TURN * v[0]])  # noqa: E731
    motion = Newtonian([push], 1.0, lambda t, x: jnp.array([1.0, 0.0]))
    tracks = follow(motion, [[0.0, 0.0]], [0.0, 1.0], steps=75, boundary=walls(Hold()))
    assert tracks.velocities is not None
    # From there u = v - (E x B drift) turns: v_y'' = 3 - 4 v_y, v_y = v_y' = 0.
    v_y = 0.75 * (1 - np.cos(TURN / 3))
    v_x = 1 + TURN * (0.75 / 3 - 0.75 * np.sin(TURN / 3) / TURN)
    assert np.allclose(tracks.velocities[-1, 0], [v_x, v_y], atol=3 / 75**2)


def test_who_slides_between_mirrors_goes_on_beside_another_wall():
    def force(t, x, v):
        trap_and_weight = jnp.array([-2.0 * x[0], -3.0])
        return trap_and_weight + 1.5 * jnp.stack([v[1], -v[0]]) - 0.3 * v

    motion = Newtonian([force], 1.0, lambda t, x: jnp.array([1.5, 0.3]))
    alone = Box([-0.5, 0], [0.5, 1], [Reflect(0.6), Hold()])
    far = Obstacle(lambda x: 50 - jnp.max(jnp.abs(x)), Absorb())
    steps, found = 800, []
    for walls in (alone, [far, alone]):
        tracks = follow(
            motion, [[0.2, 0.4]], np.linspace(0, 3, steps + 1), boundary=walls
        )
        assert tracks.velocities is not None
        x, v = np.asarray(tracks.positions[:, 0]), np.asarray(tracks.velocities[:, 0])
        found.append(np.hstack([x, v]))
        on, way = (x[:-1, 1] == 0) & (x[1:, 1] == 0), np.diff(x[:, 0])
        mean = (v[1:, 0] + v[:-1, 0]) / 2 * 3 / steps
        # It must move as far as its velocity says, but for v'' dt^3 / 12, v'' < 3, and
        # the shift of the place as above, omega (weight + omega v) dt^3 / 12, < 7.5.
        free = on & (v[1:, 0] * v[:-1, 0] > 0)
        assert free.sum() > 600
        assert np.abs(way - mean)[free].max() < 10.5 * (3 / steps) ** 3 / 12
    # At a bounce off a mirror the two count what forces change there in two ways, which
    # differ by the second order of a step. Before, one stood still in up to 20 steps.
    assert np.abs(found[0] - found[1]).max() < (3 / steps) ** 2


@pytest.mark.parametrize("walls", [box, body, both])
@pytest.mark.parametrize("push", [2.0, 60.0])
def test_a_force_off_the_wall_does_not_stop_who_comes_to_it(walls, push):
    motion = Newtonian(
        [lambda t, x, v: jnp.array([0.0, push])], 1.0, lambda t, x: jnp.array([1, -1.5])
    )
    tracks = follow(
        motion, [[0.0, 0.014]], np.linspace(0, 0.2, 11), boundary=walls(Hold())
    )
    # Nothing acts along the wall. Before, it stood still in the rest of that step.
    assert np.allclose(tracks.positions[:, 0, 0], np.linspace(0, 0.2, 11), atol=1e-12)
    assert np.all(tracks.positions[:, 0, 1] >= 0)
    assert tracks.positions[-1, 0, 1] > 0.01


@pytest.mark.parametrize(("walls", "lone"), [(box, True), (both, False)])
def test_who_rests_in_a_corner_trembles_at_second_order_at_most(walls, lone):
    # Pressed into the corner; a drag that is another one along each axis, and turns.
    drag = jnp.array([[-2.0, 1.5], [-1.0, -0.5]])
    force = lambda t, x, v: jnp.array([3.0, -2.0]) + drag @ v  # noqa: E731
    motion = Newtonian([force], 1.0, lambda t, x: jnp.array([1.0, -1.0]))
    speeds = []
    for steps in (100, 200):
        times = np.linspace(0, 1, steps + 1)
        tracks = follow(motion, [[8.8, 0.1]], times, boundary=walls(Hold()))
        assert tracks.velocities is not None
        assert np.allclose(tracks.positions[-steps // 4 :, 0], [9, 0], atol=1e-6)
        speeds.append(np.abs(tracks.velocities[-steps // 4 :]).max())
    # Of the push in a step, 0.03 and 0.015, what drag makes in the step: 1e-3 and less.
    assert speeds[0] < 1e-3
    assert speeds[1] <= speeds[0] / 3.5
    assert not lone or speeds == [0, 0]
