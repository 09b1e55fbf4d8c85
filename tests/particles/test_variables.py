"""Variables along tracks: what they are when a particle begins, and begins again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.particles import (
    Box,
    GriddedField,
    Inlet,
    Outlet,
    Pattern,
    Variable,
    run,
    track,
)


SEEDS = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.2, 0.8], [0.4, 0.1]])
TIMES = np.linspace(0.0, 2.0, 9)
NUMBERS = np.array([3.0, -1.0, 4.0, 1.5, 9.0])
# At the speed 1/2 all leave through the east once, and come in again in the west.
ROUND = Box([0, 0], [1, 1], [(Inlet(Pattern(SEEDS)), Outlet()), Outlet()])


def east(t, x):
    return jnp.array([0.5, 0.0])


def still(t, x, value):
    return 0.0


def place_and_time(t, x):
    return 10 * t + x[1]


def driven(*args, **options):
    return run(*args, progress=False, **options).tracks


def batches(*args, **options):
    return track(*args, batch=2, **options)


@pytest.mark.parametrize("follow", [track, batches, driven])
def test_each_particle_begins_with_its_own_number_also_where_it_comes_in(follow):
    tracks = follow(
        east,
        SEEDS,
        TIMES,
        boundary=ROUND,
        variables={
            "own": Variable(lambda t, x, value: 1.0, NUMBERS),
            "all": Variable(still, 7.0),
        },
    )
    assert np.array_equal(tracks.entries, [1] * 5)
    assert np.allclose(tracks.variables["own"][0], NUMBERS)
    age = TIMES[-1] - np.asarray(tracks.since)
    assert np.allclose(tracks.variables["own"][-1], NUMBERS + age, atol=1e-5)
    assert np.all(np.asarray(tracks.variables["all"]) == 7)


def test_a_function_tells_where_and_when_a_particle_begins():
    release = np.array([0.0, 0.25, 0.5, 0.6, 1.9])
    tracks = track(
        east,
        SEEDS,
        TIMES,
        boundary=ROUND,
        release=release,
        variables={"mark": Variable(still, place_and_time)},
    )
    mark = np.asarray(tracks.variables["mark"])
    assert np.allclose(mark[0], 10 * release + SEEDS[:, 1])
    # `Pattern` lets them in at the latitude where they were.
    since = np.asarray(tracks.since)
    assert np.array_equal(tracks.entries, [1, 1, 1, 0, 0])
    assert np.allclose(mark[-1], 10 * since + SEEDS[:, 1], rtol=1e-6)


def test_a_field_tells_where_and_when_a_particle_begins():
    nodes = np.linspace(0, 1, 5)
    t, x, y = np.meshgrid([0.0, 2.0], nodes, nodes, indexing="ij")
    warmth = GriddedField(1 + t + 2 * x + 3 * y, (nodes, nodes), [0.0, 2.0])
    tracks = track(
        east,
        SEEDS,
        [0.0, 0.5],
        release=np.full(5, 0.25),
        variables={"warmth": Variable(still, warmth)},
    )
    expected = 1.25 + SEEDS @ [2.0, 3.0]
    assert np.allclose(tracks.variables["warmth"], expected, rtol=1e-5)


def test_derivatives_by_the_beginning():
    def last(numbers):
        decay = {"c": Variable(lambda t, x, value: -value, numbers)}
        return track(east, SEEDS, TIMES, steps=80, variables=decay).variables["c"][-1]

    slope = jax.jacrev(last)(jnp.asarray(NUMBERS))
    # The error of RK4, and of float32.
    assert np.allclose(slope, np.exp(-2.0) * np.eye(5), atol=1e-6)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (NUMBERS[:3], r"`variables\['c'\].initial` must be one number, or one for each "
         r"of 5 seeds, but has shape \(3,\)"),
        (NUMBERS[:, None], r"each of 5 seeds, but has shape \(5, 1\)"),
        (lambda x: 1.0, r"`initial` must be a function `initial\(t, x\)`"),
        (lambda t, x: x, r"`variables\['c'\].initial` must return one number, but .* "
         r"of shape \(2,\)"),
        ("warm", "`initial` must be .*, but is 'warm'"),
        (GriddedField, "`initial` must be .*GriddedField'>. Did you forget to call it"),
    ],
)  # fmt: skip
def test_other_beginnings_are_refused(initial, message):
    with pytest.raises(ArgumentError, match=message):
        track(east, SEEDS, TIMES, variables={"c": Variable(still, initial)})
