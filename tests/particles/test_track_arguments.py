"""What `track` refuses, what becomes of each particle, and when it begins."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.grid import Clamp
from physax.particles import (
    RK4,
    Absorb,
    Box,
    EulerMaruyama,
    GriddedField,
    Inlet,
    Leave,
    MaxeyRiley,
    Outlet,
    ParticleStatus,
    Variable,
    run,
    track,
)
from physax.particles._track import prepare
from physax.runtime import MemoryLimitError


X64 = jnp.result_type(float) == jnp.float64
CLOSE = {"rtol": 0, "atol": 1e-12 if X64 else 1e-5}
SEEDS = np.array([[0.1, 0.2], [0.3, 0.4]])
TIMES = np.array([0.0, 1.0])
KEY = jax.random.key(0)
NODES = np.linspace(0, 1, 5)


def rotation(t, x):
    del t
    return jnp.stack([-x[1], x[0]])


def growing(t, x):
    """Goes (t^2 - t0^2) / 2 along x, exactly so by RK4."""
    return jnp.stack([t + 0 * x[0], 0 * x[1]])


def gridded(times=None, **options):
    shape = (5, 5, 2) if times is None else (len(times), 5, 5, 2)
    return GriddedField(np.ones(shape) * 0.5, [NODES, NODES], times, **options)


def test_particles_begin_when_they_are_released():
    release = np.array([0.0, 0.33, 0.9, 1.0, 2.0, 0.25])
    seeds = np.zeros((6, 2))
    times = np.array([0.0, 0.5, 1.0])
    age = {"age": Variable(lambda t, x, value: 1.0)}
    tracks = track(growing, seeds, times, dt=0.25, release=release, variables=age)
    for row, time in enumerate(times):
        began = np.clip(release, 0, time)
        # The first step of a particle is the part of the step after its release.
        went = np.where(release > time, 0, (time**2 - began**2) / 2)
        assert np.allclose(tracks.positions[row, :, 0], went, **CLOSE)
        assert np.allclose(tracks.variables["age"][row], time - began, **CLOSE)
    waiting = ParticleStatus.WAITING
    # Released with a recorded time, be it the last, a particle has begun then.
    assert tracks.status.tolist() == [0, 0, 0, 0, waiting, 0]
    assert np.all(tracks.waiting() == (times[:, None] < release))
    assert np.all(tracks.moving() == ~tracks.waiting())


def test_particles_are_released_backward_in_time_too():
    release = np.array([1.0, 0.6, -0.5])
    tracks = track(growing, np.zeros((3, 2)), TIMES[::-1], steps=4, release=release)
    assert np.allclose(tracks.positions[-1, :, 0], [-0.5, -0.18, 0], **CLOSE)
    assert tracks.status.tolist() == [0, 0, ParticleStatus.WAITING]


def test_tracking_backward_returns_to_the_seeds():
    there = track(rotation, SEEDS, np.array([0.0, 2.0]), steps=80).positions[-1]
    back = track(rotation, there, np.array([2.0, 0.0]), steps=80).positions[-1]
    assert np.abs(back - SEEDS).max() < (1e-8 if X64 else 1e-6)


def test_each_fate_has_its_code():
    def strange(t, x):
        """Leads to where the velocity is infinite."""
        return jnp.stack([1 / (0.5 - jnp.minimum(x[0], 0.5)), 0 * x[1]])

    cases = [
        (gridded(), (), ParticleStatus.LEFT_DATA),
        (gridded([0.0, 0.4], time_outside=Leave()), (), ParticleStatus.LEFT_TIME),
        (strange, (), ParticleStatus.NOT_FINITE),
    ]
    seeds = np.array([[0.8, 0.6], [0.2, 0.2]])
    for velocity, walls, status in cases:
        tracks = track(velocity, seeds, TIMES, steps=10, boundary=walls)
        assert tracks.status[0] == status
        # It stays where it was before the step that failed, and so does its time.
        assert np.all(np.isfinite(tracks.positions))
        assert 0.1 < tracks.ended[0] < 0.9 or status == ParticleStatus.NOT_FINITE
        assert ParticleStatus(int(tracks.status[0])).sentence
    assert tracks.counts()["not_finite"] >= 1


def test_a_track_stops_at_the_last_place_with_data():
    tracks = track(gridded(), np.array([[0.8, 0.6]]), TIMES, steps=10)
    assert np.allclose(tracks.positions[-1], [[1.0, 0.8]], **CLOSE)
    assert np.allclose(tracks.ended, 0.4, **CLOSE)
    on = track(gridded(outside=Clamp()), np.array([[0.8, 0.6]]), TIMES, steps=10)
    assert np.allclose(on.positions[-1], [[1.3, 1.1]], **CLOSE)


def test_lists_are_as_good_as_arrays():
    tracks = track(rotation, [[0, 1], [1, 0]], [0, 1], steps=4, release=[0.0, 0.5])
    assert tracks.positions.shape == (2, 2, 2)
    assert tracks.positions.dtype == jnp.result_type(float)


REFUSED = [
    ({"seeds": np.zeros(2)}, r"`seeds` must have two axes.* \(2,\)"),
    ({"seeds": np.zeros((0, 2))}, "`seeds` must hold at least one particle"),
    ({"seeds": np.array([[0.0, np.nan]])}, "`seeds` must be finite, but particle 0"),
    (
        {"velocity": gridded(), "seeds": np.array([[0.5, 0.5], [0.5, -0.5]])},
        r"`seeds` must lie within the data .* but 1 of 2 .* 1 is at \[ 0.5 -0.5\]",
    ),
    ({"release": np.array([0.0, np.nan])}, "`release` must be finite, but entry 1"),
    ({"velocity": 3.0}, r"`velocity` must be a field or a function.*is 3.0"),
    (
        {"velocity": lambda t, x: jnp.zeros(3)},
        r"`velocity` must return 2 components for .*2 coordinates, .* shape \(3,\)",
    ),
    (
        {"solver": EulerMaruyama(), "key": KEY},
        r"`diffusivity` must be given with Euler",
    ),
    (
        {"solver": RK4(), "diffusivity": 1.0, "key": KEY},
        r"`solver` must be `EulerMaruyama\(\)`, .* with a `diffusivity`, but is RK4",
    ),
    (
        {"diffusivity": 1.0},
        "`key` must be given with a `diffusivity`, as .* but is Non",
    ),
    ({"diffusivity": -1.0, "key": KEY}, "`diffusivity` must be at least 0, but is -1"),
    (
        {"boundary": Box(np.zeros(2), np.ones(2), [(Inlet(), Outlet()), Absorb()])},
        "`key` must be given with a random inlet",
    ),
    (
        {"release": np.zeros(3)},
        r"`release` must have one time for each of 2 seeds, but has shape \(3,\)",
    ),
    ({"times": [0.0, 0.0]}, "`times` must increase"),
    (
        {"velocity": gridded([0.0, 0.5])},
        "`times` must lie within those of the data, 0 to 0.5 s, but reach from 0 to 1",
    ),
]


@pytest.mark.parametrize(("changed", "message"), REFUSED)
def test_arguments_that_cannot_be_used_are_refused(changed, message):
    given = {"velocity": rotation, "seeds": SEEDS, "times": TIMES, **changed}
    with pytest.raises(ArgumentError, match=message):
        track(**given)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"solver": RK4}, r"`solver` must be `RK4\(\)`.*Did you forget to call it"),
        ({"boundary": [Absorb()]}, r"`boundary` must be a wall such as `Box\(...\)`"),
    ],
)
def test_arguments_of_another_kind_are_refused(changed, message):
    options = dict.fromkeys(inspect.signature(prepare).parameters)
    given = {"velocity": rotation, "seeds": SEEDS, "times": TIMES, "boundary": ()}
    with pytest.raises(ArgumentError, match=message):
        # Users run it without the type checks of the tests, which come first.
        inspect.unwrap(prepare)(**{**options, **given, **changed})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: GriddedField(np.ones((5, 2)), [NODES], periods=[None, 1.0]),
            "`periods` must have one entry for each of 1 axes, but has 2",
        ),
        (
            lambda: gridded(time_period=2.0),
            "`times` must be given with `time_period`, but is None",
        ),
        (
            lambda: GriddedField(np.ones((5,) * 4), [NODES] * 4),
            "`axes` must have 1 to 3 entries, but have 4",
        ),
        (
            lambda: GriddedField(np.ones((5, 4)), [NODES, NODES]),
            r"`values` must begin with the numbers of nodes, \(5, 5\), .*\(5, 4\)",
        ),
        (
            lambda: GriddedField(np.ones((3, 5)), [NODES], TIMES),
            r"`values` must begin with the numbers of times and nodes, \(2, 5\), but",
        ),
        (
            lambda: GriddedField(
                np.ones((7, 5, 4, 2)), (np.arange(5.0), np.arange(4.0))
            ),
            r"have shape \(7, 5, 4, 2\)\. For several times pass `times`\.",
        ),
        (
            lambda: GriddedField(np.ones((5, 1)), [NODES])(jnp.zeros(()), jnp.zeros(2)),
            r"Positions must have 1 coordinates, one for each axis of the fie.*\(2,\)",
        ),
        (
            lambda: GriddedField(np.ones(2), [np.ones((2, 2))]),
            r"`axes\[0\]` must be a one-dimensional array of .* \(2, 2\)",
        ),
        (
            lambda: GriddedField(np.ones(2), [np.array([0, np.inf])]),
            r"`axes\[0\]` must be finite, but entry 1 is inf",
        ),
        (
            lambda: GriddedField(np.ones(3), [np.array([0.0, 2.0, 1.0])]),
            r"`axes\[0\]` must increase, but entries 1 and 2 are 2 and 1.$",
        ),
        (
            lambda: GriddedField(np.ones(3), [np.array([3.0, 2.0, 1.0])]),
            r"`axes\[0\]` must increase, .* Flip it, and the values along it",
        ),
        (
            lambda: GriddedField(np.ones(5), [NODES], periods=[1.0]),
            r"The period of `axes\[0\]` must be longer than its samples, which span 1,",
        ),
        (
            lambda: GriddedField(np.ones(3), [np.array([0.0, 1e-9, 1.0])]),
            r"The narrowest spacing of `axes\[0\]` must be at least 1 / 4194304 of",
        ),
        (
            lambda: jax.jit(lambda a: GriddedField(np.ones(5), [a]).values)(NODES),
            r"`axes\[0\]` must be known here, but is traced",
        ),
    ],
)
def test_fields_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize("follow", [track, run])
def test_records_that_cannot_fit_are_refused_before_they_are_made(follow):
    seeds, times = jnp.zeros((10**6, 2)), np.arange(10**6)
    size = seeds.dtype.itemsize
    needs = f"tracks must fit into .*, but needs {2 * size} TB"
    with pytest.raises(MemoryLimitError, match=needs):
        follow(rotation, seeds, times)
    # Of each particle also its own velocity and a variable.
    motion = MaxeyRiley(rotation, response_time=1.0)
    age = {"age": Variable(lambda t, x, value: 1.0)}
    with pytest.raises(MemoryLimitError, match=f"needs {5 * size} TB"):
        follow(motion, seeds, times, variables=age)
