"""At the ends of the data, of a box, and of time, where seeds often lie."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.particles import (
    Box,
    GriddedField,
    Inlet,
    MaxeyRiley,
    Obstacle,
    Outlet,
    ParticleStatus,
    Pattern,
    Periodic,
    Reflect,
    Variable,
    ages,
    run,
    track,
)
from tests.particles import particle_run
from tests.particles.flows import gridded_gyre, seeds
from tests.particles.walls import EndingWall


NODES = np.linspace(0, 1, 11)
X, Y = np.meshgrid(NODES, NODES, indexing="ij")


def test_a_particle_that_leaves_in_its_first_step_was_no_seed_outside():
    flow = GriddedField(np.stack([1 + 0 * X, 0 * X], -1), (NODES, NODES))
    tracks = track(flow, [[0.95, 0.5], [0.1, 0.5]], [0, 0.1, 0.2])
    assert tracks.status.tolist() == [ParticleStatus.LEFT_DATA, ParticleStatus.ALIVE]
    np.testing.assert_allclose(tracks.positions[-1, 0], [0.95, 0.5], rtol=1e-6)


@pytest.mark.parametrize("several", [False, True])
def test_a_particle_that_comes_in_with_a_recorded_time_has_an_age_of_0_then(several):
    box = Box([0.0], [1.0], [(Inlet(Pattern([[0.0]])), Outlet())])
    far = Obstacle(lambda x: x[0] + 9, Reflect())
    boundary = [far, box] if several else box
    begin, times = np.linspace(0.0123, 0.9871, 60), np.linspace(0, 5, 51)
    flow = lambda t, x: 0.93 + 0 * x  # noqa: E731
    tracks = track(flow, begin[:, None], times, dt=0.05, boundary=boundary)
    place, since = begin, np.zeros(60, int)
    for step in range(1, 101):
        out = place + 0.93 * 0.05 > 1
        place = np.where(out, 0, place + 0.93 * 0.05)
        since = np.where(out, step, since)
    age = (2 * np.arange(51)[:, None] - since) * 0.05
    found = np.asarray(ages(tracks))
    assert np.any(since == 100)
    np.testing.assert_allclose(found, np.where(age < 0, np.nan, age), atol=2e-6)
    assert np.all(found[age == 0] == 0)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("face", [Periodic(), Reflect(), Outlet()])
def test_derivatives_of_seeds_on_a_wall_are_whole(face):
    box = Box([0, 0], [1, 1], [face, face])

    def ends(y):
        at = jnp.stack([jnp.asarray(0.5), y])[None]
        flow = lambda t, x: jnp.stack([0.1 + 0 * x[0], 0 * x[1]])  # noqa: E731
        return track(flow, at, [0.0, 1.0], steps=5, boundary=box).positions[-1, 0, 1]

    assert jax.grad(ends)(0.0) == 1


@pytest.mark.slow
def test_derivatives_on_the_outermost_nodes_are_whole():
    flow = GriddedField(np.stack([X, -Y], -1), (NODES, NODES))
    for corner in (0.0, 1.0):
        slope = jax.jacobian(lambda x: flow(0.0, x))(jnp.full(2, corner))
        np.testing.assert_allclose(slope, np.diag([1.0, -1.0]), atol=1e-5)


@pytest.mark.slow
@pytest.mark.x64
def test_the_flow_s_acceleration_is_whole_at_the_first_instant():
    times = np.linspace(0, 2, 5)
    flow = GriddedField(
        np.broadcast_to(times[:, None, None], (5, 11, 1)), (NODES,), times
    )
    motion = MaxeyRiley(flow, 0.5, density_ratio=2.0)

    def formula(t, x):
        return t + 0 * x

    by_formula = MaxeyRiley(formula, 0.5, density_ratio=2.0)
    ends = [
        track(m, [[0.1]], [0, 0.5], steps=4).velocities[-1, 0, 0]
        for m in (motion, by_formula)
    ]
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.f32
def test_releases_in_later_windows_are_those_of_the_whole_series():
    at, release = seeds(3).astype("f4"), [0, 1.51, 3.0]
    options = {"release": release, "steps": 40}
    expected = track(gridded_gyre(instants=14), at, [0, 4.0], **options)
    found = run(particle_run.windows(), at, [0, 4.0], progress=False, **options)
    np.testing.assert_array_equal(found.tracks.status, expected.status)
    np.testing.assert_allclose(
        found.tracks.positions, expected.positions, rtol=0, atol=2e-6
    )


def still(t, x):
    return 0 * x


@pytest.mark.f32
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch": 0}, "`batch` must be an integer of at least 1, but is 0"),
        ({"steps": 2.5}, "`steps` must be an integer of at least 1, but is 2.5"),
        ({"release": [-1.0]}, "`release` must not come before the first of `times`, 0"),
        (
            {"times": 1.7e9 + 60 * np.arange(3)},
            "`times` of 1.7e.09 s in float32 must have steps of at least",
        ),
    ],
)
def test_more_arguments_that_cannot_be_used_are_refused(changed, message):
    given = {"seeds": [[0.5]], "times": [0.0, 1.0], **changed}
    with pytest.raises(ArgumentError, match=message):
        track(still, **given)


def test_whole_numbers_of_any_kind_and_no_walls_are_understood():
    slow = track(
        lambda t, x: jnp.array([1]),
        [[0.5]],
        [0, 1],
        steps=np.int64(4),
        boundary=None,
        variables={"age": Variable(lambda t, x, value: 1.0)},
    )
    np.testing.assert_allclose(slow.positions[-1], [[1.5]], rtol=1e-6)
    np.testing.assert_allclose(slow.variables["age"][-1], [1], rtol=1e-6)


def at_age(seconds):
    """Makes the wall of the guide, that ends particles at an age."""

    def reached(before, after, passage):
        left = jnp.maximum(before.since + seconds - passage.t, 0)
        found = (left <= passage.h) & (passage.h > 0)
        return found, left / jnp.where(found, passage.h, jnp.inf)

    return EndingWall(reached, 2)


@pytest.mark.parametrize("others", [[], [Box([0, 0], [1, 1], Reflect())]])
def test_a_wall_of_the_user_ends_particles_at_an_age(others):
    # Eastward at 1/2 from 0.2 and 0.7. In a box the latter is at 1 after 1 s; the step
    # from there ends at 0.875, its image, and the next is eastward again.
    tracks = track(
        lambda t, x: jnp.array([0.5, 0.0]),
        [[0.2, 0.5], [0.7, 0.5]],
        np.linspace(0, 2, 9),
        release=[0.0, 0.4],
        boundary=[*others, at_age(0.9)],
    )
    assert np.all(tracks.status == ParticleStatus.ABSORBED)
    assert np.allclose(tracks.ended, [0.9, 1.3], atol=1e-6)
    assert np.all(tracks.face == 4 * len(others))
    ends = [0.65, 0.9 if others else 1.15]
    assert np.allclose(tracks.positions[-1, :, 0], ends, atol=1e-6)


def test_derivatives_of_who_waits_for_a_release_are_finite():
    def square(seeds):
        walls = at_age(0.9)
        tracks = track(
            lambda t, x: jnp.stack([-x[1], x[0]]) * (1 + t),
            seeds,
            np.linspace(0, 2, 21),
            release=[0.0, 0.43],
            boundary=walls,
        )
        return jnp.sum(tracks.positions[-1] ** 3)

    seeds = jnp.array([[0.2, 0.5], [0.7, 0.5]])
    forward = jax.jacfwd(square)(seeds)
    assert jnp.all(jnp.abs(forward) > 1e-3)
    assert jnp.allclose(jax.grad(square)(seeds), forward, rtol=1e-4)
