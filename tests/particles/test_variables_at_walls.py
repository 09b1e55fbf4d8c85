"""Variables of particles that end at a wall: what they are at the hit, not after it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.particles import (
    Absorb,
    Box,
    Coast,
    Inlet,
    Land,
    Newtonian,
    Obstacle,
    Outlet,
    ParticleStatus,
    Periodic,
    Reflect,
    Stick,
    Variable,
    track,
)
from tests.particles.walls import EndingWall


pytestmark = pytest.mark.x64

# A wall at 1/2 before particles that begin at 1, alone and among others.
FLOOR = Box([0.5], [3], [(Absorb(), Outlet())])
BODY = Obstacle(lambda x: x[0] - 0.5, Stick())
FAR = Box([-3], [3], [Reflect()])
LAND = Coast(Land(np.array([True] * 2 + [False] * 5), [np.arange(7.0) - 1]))
MIRRORED = Box([0.5], [1.1], [(Outlet(), Reflect())])
WALLS = [FLOOR, BODY, [BODY, FAR], [FAR, FLOOR], LAND, [LAND, FAR], MIRRORED]
NAMES = ["box", "body", "bodies", "boxes", "land", "land and box", "mirror"]


def down(t, x):
    return -x


def fall(begin=None):
    return Newtonian([lambda t, x, v: -jnp.ones_like(x)], 1.0, begin)


def clock(t, x, value):
    return 1.0


# Their integrals along x' = -x from 1 to 1/2 are ln(2), 1/2 and 3/8.
RATES = {
    "clock": clock,
    "x": lambda t, x, value: x[0],
    "square": lambda t, x, value: x[0] ** 2,
    "fallen": lambda t, x, value: 2 * (1 - x[0]),
}
VARIABLES = {name: Variable(rate) for name, rate in RATES.items()}


def follow(motion, walls, steps, seed=1.0):
    return track(
        motion,
        jnp.reshape(jnp.asarray(seed), (1, 1)),
        [0, 2.0],
        steps=steps,
        boundary=walls,
        variables=VARIABLES,
    )


def last(tracks, name="clock"):
    return tracks.variables[name][-1, 0]


@pytest.mark.parametrize("walls", WALLS, ids=NAMES)
def test_integrals_to_the_hit_are_of_second_order(walls):
    # A chord in time h is off by h^2 / 8 of the second derivative, at most 1 here.
    for steps in (13, 53):
        tracks = follow(down, walls, steps)
        assert tracks.status[0] != ParticleStatus.ALIVE
        assert np.isclose(last(tracks), tracks.ended[0], rtol=1e-12)
        assert np.isclose(last(tracks, "x"), 0.5, rtol=1e-12)
        assert abs(last(tracks, "square") - 0.375) < (2 / steps) ** 2 / 8


@pytest.mark.parametrize("walls", [FLOOR, [BODY, FAR], MIRRORED])
def test_integrals_to_the_hit_under_a_force_are_of_second_order(walls):
    # It falls for 1 s: of t^2 dt, whose second derivative is at most 2 (1 + h).
    for steps in (7, 53):
        tracks, h = follow(fall(), walls, steps), 2 / steps
        assert np.isclose(last(tracks), 1, rtol=1e-12)
        assert np.isclose(tracks.velocities[-1, 0, 0], -1, rtol=1e-12)
        assert abs(last(tracks, "fallen") - 1 / 3) < 2 * (1 + h) * h**2 / 8


def test_what_is_integrated_goes_on_at_mirrors_and_across_periods():
    # Westward from 0.3, in one step: it is thrown back at 0, or goes on at 1.
    west = lambda t, x: jnp.array([-1.0])  # noqa: E731
    mirror = Box([0], [5], [Reflect()])
    body = Obstacle(lambda x: jnp.abs(x[0] - 0.6) - 0.1, Absorb())
    for walls, time in (
        (Box([0], [1], [(Reflect(), Absorb())]), 1.3),
        ([mirror, Box([-3], [1], [Absorb()])], 1.3),
        ([Box([0], [1], [Periodic()]), body], 0.6),
    ):
        tracks = follow(west, walls, 1, 0.3)
        assert np.isclose(tracks.ended[0], time)
        assert np.isclose(last(tracks), time)


@pytest.mark.parametrize("walls", [FLOOR, [BODY, FAR], LAND])
def test_derivatives_by_seeds_are_those_of_the_value_at_the_hit(walls):
    # Of x dt it is seed - 1/2, of x^2 dt half the difference of squares.
    def values(seed):
        tracks = follow(down, walls, 21, seed)
        return jnp.stack([last(tracks, name) for name in ("clock", "x", "square")])

    values = jax.jit(values)
    forward, reverse = jax.jacfwd(values)(1.0), jax.jacrev(values)(1.0)
    central = (values(1 + 1e-5) - values(1 - 1e-5)) / 2e-5
    assert np.allclose(forward, reverse, rtol=1e-12)
    assert np.allclose(forward, central, rtol=1e-8)
    assert np.isclose(forward[1], 1, rtol=1e-12)
    # That of a chord is off by h / 2 of the second derivative, at most 1 here.
    assert np.allclose(forward, 1, atol=1 / 21)


def test_a_particle_on_land_keeps_its_velocity_at_the_hit():
    tracks = follow(fall(), LAND, 7)
    assert np.isclose(tracks.velocities[-1, 0, 0], -tracks.ended[0])
    assert np.isclose(last(tracks), tracks.ended[0])


def at_value(most):
    """Makes a wall that ends particles whose variable reaches a value."""

    def reached(before, after, passage):
        more = after.y[-1] - before.y[-1]
        part = (most - before.y[-1]) / jnp.where(more > 0, more, 1)
        return (more > 0) & (part <= 1), part

    return EndingWall(reached, 1)


@pytest.mark.parametrize("others", [[], [Box([0], [1], Reflect())]])
def test_walls_see_variables_where_a_way_begins_also_behind_a_bounce(others):
    # From 0.3 to the mirror at 1 in 0.7 s, and on its way back for 0.2 s, in one step.
    east = lambda t, x: jnp.array([1.0])  # noqa: E731
    tracks = track(
        east,
        [[0.3]],
        [0, 2.0],
        boundary=[*others, at_value(0.9)],
        variables={"c": Variable(clock)},
    )
    assert np.isclose(tracks.ended[0], 0.9)
    assert np.isclose(last(tracks, "c"), 0.9)
    assert np.isclose(tracks.positions[-1, 0, 0], 0.8 if others else 1.2)


def test_particles_under_a_force_come_in_once_for_each_time_they_leave():
    # At the inlet they wait for the end of the step, with other walls, too. They begin
    # with v = 1 and cross in sqrt(3) - 1 s, of which the last step counts in full.
    eastward = Newtonian(
        [lambda t, x, v: jnp.ones_like(x)], 1.0, lambda t, x: jnp.ones_like(x)
    )
    tube = Box([0.0], [1.0], [(Inlet(), Outlet())])
    for walls in (tube, [tube, FAR]):
        tracks = track(
            eastward,
            [[0.0]],
            [0, 3.0],
            steps=30,
            boundary=walls,
            key=jax.random.key(0),
            variables={"age": Variable(clock)},
        )
        assert tracks.entries[0] == 3
        assert np.isclose(tracks.since[0], 2.4)
        assert np.isclose(tracks.variables["age"][-1, 0], 0.6)
