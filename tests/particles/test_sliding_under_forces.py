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
