"""Residence, first passage and connectivity."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.path import Path

from physax.particles import (
    ages,
    connectivity_matrix,
    first_passage,
    histogram_density,
    inside_region,
    lifetimes,
    residence_time,
)
from physax.particles._regions import (
    BoxRegion,
    LevelRegion,
    PolygonRegion,
)

from .tracks import ALIVE, EXITED, STUCK, WAITING, make_tracks, straight


KEY = jax.random.key(11)
EPS = float(jnp.finfo(jnp.result_type(float)).eps)

HEIGHTS = np.linspace(-0.9, 0.9, 7)
POISEUILLE = 2 * (1 - HEIGHTS**2)


@pytest.fixture(scope="module")
def channel():
    # Rows at uneven times; the last particles are still inside at the end.
    times = np.array([0, 0.3, 0.7, 1.1, 2.0, 2.9])
    seeds = np.stack([np.full(7, -0.5), HEIGHTS], 1)
    return straight(times, seeds, np.stack([POISEUILLE, 0 * HEIGHTS], 1))


def test_first_passage_through_plane_poiseuille_flow(channel):
    outlet = BoxRegion(low=(1.5, -np.inf), high=(np.inf, np.inf))
    expected = 2 / POISEUILLE
    expected[expected > 2.9] = np.nan
    assert np.isnan(expected).any()
    for region in (outlet, LevelRegion(lambda x: 1.5 - x[0])):
        found = first_passage(channel, region)
        np.testing.assert_allclose(found, expected, rtol=20 * EPS)
        assert found.dtype == jnp.result_type(float)


def test_residence_in_a_box_of_the_channel(channel):
    box = BoxRegion((0.0, -0.7), (1.5, 0.7))
    last = np.minimum(2.0 / POISEUILLE, 2.9)
    expected = np.maximum(last - 0.5 / POISEUILLE, 0) * (np.abs(HEIGHTS) < 0.7)
    np.testing.assert_allclose(residence_time(channel, box), expected, rtol=20 * EPS)


def test_a_box_is_found_also_by_one_long_step():
    tracks = straight([0.0, 10.0], [[-5.0, 0.2], [-5.0, 2.0]], [[1.0, 0.0]] * 2)
    box = BoxRegion((0.0, 0.0), (1.0, 1.0))
    np.testing.assert_allclose(residence_time(tracks, box), [1, 0], rtol=1e-6)
    np.testing.assert_allclose(first_passage(tracks, box), [5, np.nan], rtol=1e-6)


def test_several_visits_are_added():
    times = np.linspace(0, 2, 4001)
    x = np.cos(2 * np.pi * times)[:, None, None]
    tracks = make_tracks(times, x)
    # |cos| < 1/2 for a third of the time; first after a sixth of a period. Chords of
    # 5e-4 miss the curve by 3e-7.
    band = BoxRegion((-0.5,), (0.5,))
    np.testing.assert_allclose(residence_time(tracks, band), 2 / 3, rtol=1e-5)
    np.testing.assert_allclose(first_passage(tracks, band), 1 / 6, rtol=1e-5)
    smooth = LevelRegion(lambda x: x[0] ** 2 - 0.25)
    np.testing.assert_allclose(residence_time(tracks, smooth), 2 / 3, rtol=1e-5)


# Particle 0 waits until 0.5; 1 exits at 1.25; 2 sticks in the region at 1.5; 3 was
# injected again at 1.5; 4 waits for ever.
FATES = {
    "since": [0.5, 0.0, 0.0, 1.5, 99.0],
    "ended": [np.nan, 1.25, 1.5, np.nan, np.nan],
    "status": [ALIVE, EXITED, STUCK, ALIVE, WAITING],
    "face": [-1, 3, 1, 3, -1],
    "entries": [0, 0, 0, 2, 0],
}


@pytest.fixture(scope="module")
def fates():
    return straight(np.arange(4.0), np.zeros((5, 1)), np.ones((5, 1)), **FATES)


def test_waiting_and_ended_particles_do_not_reside(fates):
    everywhere = BoxRegion((-np.inf,), (np.inf,))
    found = residence_time(fates, everywhere)
    np.testing.assert_allclose(found, [2.5, 1.25, 1.5, 1.5, 0], rtol=1e-6)
    # They move by 1 each second and sit in their seed at 0 before.
    beyond = BoxRegion((1.0,), (np.inf,))
    found = residence_time(fates, beyond)
    # Of the one that came in again only what was from the next row on is known.
    np.testing.assert_allclose(found, [1.5, 0.25, 0.5, 0.5, 0], rtol=1e-6)
    found = first_passage(fates, BoxRegion((0.9,), (np.inf,)))
    np.testing.assert_allclose(found, [0.9, 0.9, 0.9, 0.9, np.nan], rtol=1e-6)


def test_lifetimes_come_from_the_time_of_the_hit(fates):
    nan = np.nan
    np.testing.assert_allclose(lifetimes(fates), [nan, 1.25, 1.5, nan, nan])
    np.testing.assert_allclose(lifetimes(fates, 3), [nan, 1.25, nan, nan, nan])


def test_ages_of_particles_that_move(fates):
    nan = np.nan
    expected = [
        [nan, 0, 0, nan, nan],
        [0.5, 1, 1, nan, nan],
        [1.5, nan, nan, 0.5, nan],
        [2.5, nan, nan, 1.5, nan],
    ]
    found = jax.jit(ages)(fates)
    np.testing.assert_allclose(found, expected)
    spread = histogram_density(found[3][:, None], [np.arange(4.0)], np.ones(5))
    np.testing.assert_array_equal(spread, [0, 1, 1])


def test_which_particles_move_in_a_region(fates):
    found = inside_region(fates, BoxRegion((0.4,), (2.2,)))
    expected = [
        [0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [0, 0, 0, 1, 0],
    ]
    np.testing.assert_array_equal(found, expected)


def test_backward_tracks_have_positive_times():
    known = {"ended": [np.nan, -1.5], "status": [ALIVE, EXITED]}
    tracks = straight([0.0, -1.0, -3.0], [[0.0], [0.0]], [[1.0], [1.0]], **known)
    there = BoxRegion((-np.inf,), (-0.5,))
    np.testing.assert_allclose(residence_time(tracks, there), [2.5, 1.0], rtol=1e-6)
    np.testing.assert_allclose(first_passage(tracks, there), [0.5, 0.5], rtol=1e-6)
    np.testing.assert_allclose(lifetimes(tracks), [np.nan, 1.5])
    np.testing.assert_allclose(ages(tracks)[:, 0], [0, 1, 3])


def test_a_yes_or_no_function_enters_halfway():
    tracks = straight(np.arange(4.0), [[0.0]], [[1.0]])
    found = residence_time(tracks, lambda x: (x[0] > 0.9) & (x[0] < 2.1))
    np.testing.assert_allclose(found, 2, rtol=1e-6)


# An outline that is not convex.
CORNERS = np.array([[0, 0], [4, 0], [4, 3], [2, 1], [0, 3]], float)


OUTSIDE_IN = np.array([[2.0, -1.0], [5.0, 4.0], [1.0, 1.0]])


@pytest.mark.slow
@pytest.mark.parametrize("sense", [1, -1])
def test_polygon_agrees_with_matplotlib(sense):
    region = PolygonRegion(CORNERS[::sense])
    places = jax.random.uniform(KEY, (2000, 2), minval=-1, maxval=5)
    found = jax.vmap(region.contains)(places)
    np.testing.assert_array_equal(found, Path(CORNERS).contains_points(places))
    distances = [region.distance(jnp.asarray(p)) for p in OUTSIDE_IN]
    np.testing.assert_allclose(distances, [1, np.sqrt(2), -np.sqrt(0.5)], rtol=1e-6)
    tracks = straight([0.0, 4.0], [[-1.0, 0.5]], [[0.5, 0.0]])
    # From 1 outside to 0.5 inside, the level is taken as linear.
    np.testing.assert_allclose(first_passage(tracks, region), 4 / 1.5, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize(
    "region",
    [
        BoxRegion((0.0, -0.7), (1.5, np.inf)),
        PolygonRegion([[0.0, -0.7], [1.5, -0.7], [1.5, 0.8], [0.0, 0.8]]),
    ],
    ids=["box", "polygon"],
)
def test_gradients_of_times(channel, region):
    @jax.jit
    def total(positions, since):
        moved = eqx.tree_at(
            lambda t: (t.positions, t.since), channel, (positions, since)
        )
        came = first_passage(moved, region)
        came = jnp.where(jnp.isnan(came), 0, came)
        return jnp.sum(jnp.sin(residence_time(moved, region)) + jnp.cos(came))

    # Off the symmetry axis, where two sides are equally near.
    values = (channel.positions + 0.013, channel.since + 0.01)
    ways = [jax.random.normal(KEY, x.shape) for x in values]
    slopes = jax.grad(total, (0, 1))(*values)
    slope = sum(jnp.vdot(s, w) for s, w in zip(slopes, ways, strict=True))
    step = 1e-6
    ends = [
        total(*(x + s * w for x, w in zip(values, ways, strict=True)))
        for s in (step, -step)
    ]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


# Connectivity.


@pytest.mark.slow
def test_connectivity_of_a_shift():
    # Sources of 2, 3 and 1 particles; each goes one region on, and the last leaves.
    seeds = np.array([0.1, 0.7, 1.1, 1.2, 1.8, 2.5])[:, None]
    known = {"ended": [np.nan] * 5 + [0.5], "status": [ALIVE] * 5 + [EXITED]}
    tracks = straight([0.0, 1.0], seeds, np.ones((6, 1)), **known)
    boxes = [BoxRegion((i,), (i + 1.0,)) for i in range(4)]
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 2] = 1
    expected[3] = np.nan
    found = jax.jit(lambda t: connectivity_matrix(t, boxes, boxes))(tracks)
    np.testing.assert_allclose(found, expected)
    # The frozen particle is in region 3 at x = 3, but it has exited.
    labels = np.array([0, 0, 1, 1, -1, 2])
    found = connectivity_matrix(tracks, labels, [lambda x: x[0] - 2.5])
    np.testing.assert_allclose(found, [[1], [1], [0]])
    everyone = (ALIVE, EXITED)
    found = connectivity_matrix(tracks, labels, labels + 1, count=everyone)
    np.testing.assert_allclose(found, [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


@pytest.mark.slow
def test_connectivity_counts_weights_and_only_known_starts(fates):
    weights = jnp.asarray([1.0, 3.0, 4.0, 100.0, 100.0])
    whole = [BoxRegion((-np.inf,), (np.inf,))]

    def probability(weights):
        return connectivity_matrix(fates, whole, whole, weights=weights)[0, 0]

    # Alive and stuck: 1 and 4 of 8; injected again or waiting ones do not count.
    np.testing.assert_allclose(probability(weights), 5 / 8)
    slope = jax.grad(probability)(weights)
    expected = [1 / 8 - 5 / 64, -5 / 64, 1 / 8 - 5 / 64, 0, 0]
    np.testing.assert_allclose(slope, expected, rtol=1e-5)
