"""Boxes: walls, outlets and inlets beside what can be counted and computed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

from physax._checks import ArgumentError
from physax.particles import (
    Absorb,
    Box,
    Euler,
    FluxWeighted,
    Hold,
    Inlet,
    Newtonian,
    OnSphere,
    Outlet,
    ParticleStatus,
    Pattern,
    Periodic,
    Reflect,
    Stick,
    Uniform,
    track,
)


X64 = jnp.result_type(float) == jnp.float64
CLOSE = {"rtol": 0, "atol": 1e-12 if X64 else 1e-5}
UNIT = np.zeros(2), np.ones(2)
KEY = jax.random.key(0)
ONE_STEP = np.array([0.0, 1.0])


def steady(*velocity):
    value = np.array(velocity)
    return lambda t, x: jnp.asarray(value, x.dtype) + 0 * x


def test_five_bounces_and_several_periods_in_one_step():
    seeds = np.array([[0.2, 0.2], [0.5, 0.7], [0.0, 1.0]])
    for sign in (1, -1):
        box = Box(*UNIT, [Periodic(), Reflect()])
        flow = steady(sign * 3.4, sign * 5.3)
        end = track(flow, seeds, ONE_STEP, boundary=box).positions[-1]
        x = (seeds[:, 0] + sign * 3.4) % 1
        y = 1 - np.abs((seeds[:, 1] + sign * 5.3) % 2 - 1)
        assert np.allclose(end, np.stack([x, y], 1), **CLOSE)


def test_each_bounce_takes_a_part_of_the_normal_velocity():
    box = Box(*UNIT, [Periodic(), (Reflect(0.5), Reflect(0.8))])
    # 0, 1, 2, 3 bounces upward, and as many downward.
    moves = np.array([0.3, 1.2, 4.0, 7.0, -0.3, -1.2, -4.0, -7.0])
    seeds = np.stack([np.arange(8) / 10, np.full(8, 0.5)], 1)
    launch = jnp.asarray(np.stack([np.zeros(8), moves], 1))
    motion = Newtonian(
        (), 1.0, lambda t, x: launch[jnp.argmin(jnp.abs(x[0] - seeds[:, 0]))]
    )
    tracks = track(motion, seeds, ONE_STEP, boundary=box)
    low = np.array([0, 0, 1, 1, 0, 1, 1, 2])
    high = np.array([0, 1, 1, 2, 0, 0, 1, 1])
    kept = 0.5**low * 0.8**high * (-1.0) ** (low + high)
    assert tracks.velocities is not None
    assert np.allclose(tracks.velocities[-1, :, 1], moves * kept, **CLOSE)


def test_a_held_particle_slides_and_a_mirror_may_face_an_outlet():
    box = Box(*UNIT, [(Reflect(), Outlet()), Hold()])
    seeds = np.array([[0.2, 0.5], [0.7, 0.5]])
    tracks = track(steady(-0.6, 0.9), seeds, ONE_STEP, boundary=box)
    assert np.allclose(tracks.positions[-1], [[0.4, 1.0], [0.1, 1.0]], **CLOSE)
    assert np.all(tracks.alive)


FACES = [
    (Absorb(), ParticleStatus.ABSORBED),
    (Stick(), ParticleStatus.STUCK),
    (Outlet(), ParticleStatus.EXITED),
]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("face", "status"), FACES)
def test_particles_end_on_the_first_face_that_they_meet(face, status):
    seeds = np.array([[0.5, 0.6], [0.6, 0.5], [0.1, 0.1]])
    tracks = track(steady(0.8, 0.8), seeds, ONE_STEP, boundary=Box(*UNIT, face))
    assert tracks.status.tolist() == [status, status, ParticleStatus.ALIVE]
    # Low x, high x, low y, high y.
    assert tracks.face.tolist() == [3, 1, -1]
    assert np.allclose(tracks.ended[:2], 0.5, **CLOSE)
    assert np.isnan(tracks.ended[2])
    places = [[0.9, 1.0], [1.0, 0.9], [0.9, 0.9]]
    assert np.allclose(tracks.positions[-1], places, **CLOSE)


COUNT, DT, STEPS = 4000, 0.07, 25


def run_through(placement, seeds, velocity=None, faces=None, dims=2):
    box = Box(
        np.zeros(dims),
        np.ones(dims),
        [(Inlet(placement), Outlet()), *[Periodic()] * (dims - 1)]
        if faces is None
        else faces,
    )
    times = np.array([0.0, DT * STEPS])
    flow = steady(1.0, *[0.0] * (dims - 1)) if velocity is None else velocity
    return track(flow, seeds, times, steps=STEPS, boundary=box, key=KEY)


def chance(counts, expected):
    """Returns the probability of counts that are farther from what is expected."""
    return chi2.sf(np.sum((counts - expected) ** 2 / expected), len(counts) - 1)


def test_as_many_come_in_as_go_out_and_their_ages_are_right():
    seeds = np.random.default_rng(0).uniform(size=(COUNT, 2))
    tracks = run_through(Uniform(), seeds)
    assert np.all(tracks.alive)
    # Out after 1 - x, in again at the end of that step, and out after another 1.
    first = np.ceil((1 - seeds[:, 0]) / DT) * DT
    second = first + np.ceil(1 / DT) * DT
    entries = 1.0 * (first < DT * STEPS) + (second < DT * STEPS)
    clear = np.abs((1 - seeds[:, 0]) / DT % 1 - 0.5) < 0.49
    assert np.array_equal(tracks.entries[clear], entries[clear])
    assert {0, 1, 2} >= set(np.unique(tracks.entries)) >= {1, 2}
    since = np.where(entries > 1, second, first)
    assert np.allclose(tracks.since[clear], since[clear], atol=1e-12 if X64 else 1e-5)
    age = DT * STEPS - tracks.since
    # They wait on the face, whatever is left of the step.
    assert np.allclose(tracks.positions[-1, :, 0], age, atol=1e-12 if X64 else 1e-5)
    assert np.all(tracks.face == 0)
    again = run_through(Uniform(), seeds)
    assert np.array_equal(tracks.positions, again.positions)


def test_a_uniform_inlet_is_uniform_and_keeps_nothing_of_the_past():
    seeds = np.stack([np.linspace(0, 1, COUNT), np.full(COUNT, 0.25)], 1)
    y = np.asarray(run_through(Uniform(), seeds).positions[-1, :, 1])
    counts = np.histogram(y, 20, (0, 1))[0]
    assert counts.sum() == COUNT
    assert 1e-4 < chance(counts, COUNT / 20) < 1 - 1e-4
    assert abs(np.corrcoef(y[1:], y[:-1])[0, 1]) < 4 / np.sqrt(COUNT)


@pytest.mark.slow
def test_a_flux_weighted_inlet_follows_the_flux():
    def pipe(t, x):
        return jnp.stack([x[1] * (1 - x[1]) * (1 + x[2]), 0 * t, 0 * t]) * 6

    placement = FluxWeighted.of(pipe, np.zeros(3), np.ones(3), face=0, cells=(20, 4))
    seeds = np.full((COUNT, 3), [0.99, 0.5, 0.5])
    # Slow enough that each comes in once.
    drift = steady(0.02 / DT, 0.0, 0.0)
    tracks = run_through(placement, seeds, velocity=drift, dims=3)
    assert np.all(tracks.entries == 1)
    y, z = np.asarray(tracks.positions[-1])[:, 1:].T
    counts = np.histogram2d(y, z, (10, 2), [(0, 1), (0, 1)])[0]
    edges = np.linspace(0, 1, 11)
    share = np.diff(3 * edges**2 - 2 * edges**3)
    upper = np.array([1.25, 1.75]) / 3
    # Cells of the inflow are small: their steps change shares by 1 in 1000.
    expected = COUNT * share[:, None] * upper
    assert 1e-4 < chance(counts.ravel(), expected.ravel()) < 1 - 1e-4


@pytest.mark.parametrize(
    ("face", "velocity", "share"),
    [
        # Through a meridian u a d(lat), through a parallel v a cos(lat) d(lon).
        (0, (10.0, 0.0, 0.0), lambda lat, z: 0 * lat + 1),
        (3, (0.0, -10.0, 0.0), lambda lon, z: 0 * lon + 1),
        (4, (0.0, 0.0, 1e-3), lambda lon, lat: np.cos(np.radians(lat))),
    ],
)
def test_an_inlet_on_a_sphere_follows_the_flux_through_its_area(face, velocity, share):
    low, high = np.array([0.0, 0.0, 0.0]), np.array([10.0, 80.0, 100.0])
    flow = OnSphere(steady(*velocity))
    placement = FluxWeighted.of(flow, low, high, face=face, cells=(8, 8))
    unit = jax.random.uniform(KEY, (COUNT, 3))
    place = jax.jit(jax.vmap(lambda u: placement.place(u, 0, low, high)))
    others = [axis for axis in range(3) if axis != face // 2]
    one, two = np.asarray(place(unit))[:, others].T
    edges = [np.linspace(low[axis], high[axis], 9) for axis in others]
    counts = np.histogram2d(one, two, edges)[0]
    middle = [(e[1:] + e[:-1]) / 2 for e in edges]
    part = np.broadcast_to(share(*np.meshgrid(*middle, indexing="ij")), counts.shape)
    expected = COUNT * part / part.sum()
    assert 1e-4 < chance(counts.ravel(), expected.ravel()) < 1 - 1e-4


@pytest.mark.slow
def test_the_size_of_cells_counts_in_the_flux():
    edges = np.array([0.0, 0.7, 1.0])
    placement = FluxWeighted((edges,), np.array([1.0, 4.0]), 0)
    tracks = run_through(placement, np.full((COUNT, 2), [0.99, 0.5]))
    low = float(np.sum(tracks.positions[-1, :, 1] < 0.7))
    part = 0.7 / (0.7 + 1.2)
    assert abs(low - COUNT * part) < 4 * np.sqrt(COUNT * part * (1 - part))


def test_a_pattern_persists():
    y = np.linspace(0.05, 0.95, 7)
    places = np.stack([np.zeros(7), y], 1)
    seeds = np.stack([np.linspace(0.3, 0.9, 7), y[::-1]], 1)
    box = Box(*UNIT, [(Inlet(Pattern(places)), Outlet()), Periodic()])
    # Needs no key.
    tracks = track(steady(1.0, 0.0), seeds, [0.0, 0.98], steps=7, boundary=box)
    assert np.all(tracks.entries == 1)
    assert np.allclose(tracks.positions[-1, :, 1], y, **CLOSE)


def test_particles_that_turn_back_through_the_inlet_come_in_again():
    placement = Pattern(np.array([[0.0, 0.3]]))
    tracks = run_through(placement, np.array([[0.5, 0.5]]), velocity=steady(-1.0, 0.0))
    assert tracks.entries[0] > 1
    assert tracks.status[0] == ParticleStatus.ALIVE


@pytest.mark.slow
@pytest.mark.x64
def test_tracks_have_derivatives_by_the_walls_and_through_bounces():
    def outcome(high, seed):
        mirror = Box(jnp.zeros(1), high, Reflect())
        sink = Box(jnp.zeros(1), high, Absorb())
        flow = steady(2.3)
        kept = track(flow, seed[None], ONE_STEP, boundary=mirror)
        ended = track(flow, seed[None], ONE_STEP, boundary=sink)
        return 3 * kept.positions[-1, 0, 0] + 5 * ended.ended[0]

    wall, place = jax.grad(outcome, (0, 1))(jnp.ones(1), jnp.array([0.4]))
    # 2.7 is folded twice: x = x0 + u t - 2 w; it meets the wall at (w - x0) / u.
    assert np.allclose(wall, -6 + 5 / 2.3)
    assert np.allclose(place, 3 - 5 / 2.3)


@pytest.mark.parametrize("face", [Absorb(), (Outlet(), Reflect())])
def test_a_hit_has_its_derivative_where_a_step_ends_on_the_face(face):
    def hit(place, wall):
        box = Box(jnp.stack([wall, -5.0]), np.full(2, 3.0), [face, Hold()])
        flow, times = steady(-1.0, 0.5), np.array([0.0, 0.25, 1.0])
        ended = track(flow, place[None], times, dt=0.25, boundary=box, solver=Euler())
        return jnp.append(ended.positions[-1, 0], ended.ended[0])

    # After one step it is on the face, and leaves in the second.
    given = jnp.array([0.25, 0.0]), jnp.zeros(())
    assert np.allclose(hit(*given), [0, 0.125, 0.25], **CLOSE)
    by_place, by_wall = jax.jacrev(hit, (0, 1))(*given)
    # The hit is at (w, y0 + (x0 - w) / 2), and at the time x0 - w.
    assert np.allclose(by_place, [[0, 0], [0.5, 1], [1, 0]], **CLOSE)
    assert np.allclose(by_wall, [1, -0.5, -1], **CLOSE)


SQUARE = np.array([0.0, 0.0]), np.array([1.0, 1.0])
BAD_BOXES = [
    (
        lambda: Box(np.zeros(2), np.ones(3), Absorb()),
        r"`low` and `high` must have one.*shapes \(2,\) and \(3,\)",
    ),
    (
        lambda: Box(*SQUARE, [Absorb()]),
        "`faces` must be one, or one for each of 2 axes, but are 1",
    ),
    (
        lambda: Box(*SQUARE, [Absorb(), (Periodic(), Absorb())]),
        r"`faces` must be `Periodic\(\)` at both ends of an axis, but along axis 1",
    ),
    (
        lambda: Box(*SQUARE, [Inlet(), Absorb()]),
        "`faces` must hold at most one `Inlet`, but hold 2",
    ),
    (
        lambda: Box(*SQUARE, [(Absorb(), Absorb(), Absorb()), Absorb()]),
        "`faces` must give one face or a pair for each axis, but has an entry of 3",
    ),
    (
        lambda: Box(*SQUARE, "reflect"),
        r"`faces` must be made of Periodic\(\), .*Inlet\(\), but has 'reflect'",
    ),
    (
        lambda: Box(*SQUARE, [Absorb(), Reflect]),
        r"`faces` must be made of Periodic\(\), .* but has <class",
    ),
    (
        lambda: Box(np.array([0.0, 1.0]), np.ones(2), Absorb()),
        "`high` must be above `low`, but along axis 1 they are 1 and 1",
    ),
    (lambda: Reflect(0.0), r"`restitution` must lie in \(0, 1\], but is 0"),
    (
        lambda: FluxWeighted((np.arange(3.0),), np.ones(3), 0),
        r"`inflow` must have one entry for each cell, \(2,\), but has shape \(3,\)",
    ),
    (
        lambda: FluxWeighted((np.arange(3.0),), np.array([0.0, -1.0]), 0),
        "`inflow` must be positive somewhere, but nothing comes in: .* is 0",
    ),
    (
        lambda: Box(
            *SQUARE,
            [(Inlet(FluxWeighted((np.arange(3.0),), np.ones(2), 1)), Outlet()), Hold()],
        ),
        "`placement` must be for a face normal to axis 0 of 2, but `normal` is 1",
    ),
    (
        lambda: Box(*SQUARE, [(Inlet(Pattern(np.zeros((4, 3)))), Outlet()), Hold()]),
        r"`places` must be at least one, of 2 coordinates each, but .*\(4, 3\)",
    ),
]


@pytest.mark.parametrize(("make", "message"), BAD_BOXES)
def test_boxes_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_an_inlet_that_lets_nothing_in_is_refused_by_its_reason_under_jit():
    def make(x):
        return FluxWeighted((np.arange(3.0),), np.array([0.0, -1.0]), 0).inflow * x

    with pytest.raises(ArgumentError, match="comes in: the largest entry is 0"):
        jax.jit(make)(1.0)


def test_seeds_outside_the_box_are_refused():
    seeds = np.array([[0.5, 0.5], [0.5, 1.5], [2.0, 0.0]])
    with pytest.raises(
        ArgumentError,
        match=r"`seeds` must lie in the box from .*2 of 3 "
        r"do not; number 1 is at \[0.5 1.5\]",
    ):
        track(steady(0.0, 0.0), seeds, ONE_STEP, boundary=Box(*UNIT, Absorb()))


def test_seeds_of_another_dimension_are_refused():
    with pytest.raises(
        ArgumentError, match="`seeds` must have 2 coordinates, .* but have 3"
    ):
        track(
            steady(0.0, 0.0, 0.0),
            np.zeros((1, 3)),
            ONE_STEP,
            boundary=Box(*UNIT, Absorb()),
        )
