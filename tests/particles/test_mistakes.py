"""Mistakes that users make: what they are told, and what numbers that fail leave."""

import inspect
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.particles import (
    Absorb,
    Box,
    Checkpointed,
    Diffusivity,
    Euler,
    EulerMaruyama,
    FieldAdjoint,
    Gravity,
    GriddedField,
    Hold,
    MaxeyRiley,
    Newtonian,
    Obstacle,
    Overdamped,
    ParticleStatus,
    Reflect,
    Stick,
    StochasticHeun,
    StokesDrag,
    Sum,
    Variable,
    release_repeatedly,
    run,
    track,
)
from physax.particles._mesh import _checked_elements, _checked_points
from physax.particles._schedule import plan_steps


pytestmark = pytest.mark.f32

CLOSE = {"rtol": 1e-5, "atol": 1e-6}
SEEDS = np.array([[0.1, 0.2], [0.3, 0.4]])
TIMES = np.array([0.0, 1.0])
KEY = jax.random.key(0)
DAYS = np.array(["2020-01-01", "2020-01-03"], "datetime64[s]")
ALONG = np.array([0.5, 0.0])


def rotation(t, x):
    del t
    return jnp.stack([-x[1], x[0]])


def along(t, x):
    return 0 * x + 0.5 * (jnp.arange(x.size) == 0)


def of_three(*args):
    del args
    return jnp.zeros(3)


def falling(*forces, **options):
    return Newtonian(forces, 1.0, **options)


OF_ANOTHER_KIND = [
    ({"mesh": 4}, r"`mesh` must be .* `physax.runtime.mesh\(4\)`, but is 4"),
    ({"key": 0}, r"`key` must be a key, as `jax.random.key\(0\)`, but is 0"),
    (
        {"key": jnp.zeros((3, 2), jnp.uint32)},
        r"`key` must be a key.* is an array of uint32",
    ),
    ({"key": jax.random.split(KEY)}, r"`key` must be one key.* has shape \(2,\)"),
    ({"boundary": Absorb}, r"`boundary` must .*Absorb'>. It is a face: `Box\(low"),
    ({"boundary": Absorb()}, r"`boundary` must be a wall.*is Absorb\(\). It is a face"),
    ({"boundary": Box}, "`boundary` must be a wall.*Box'>. Did you forget to call it"),
    ({"boundary": 3}, r"`boundary` must be a wall such as `Box\(...\)`, but is 3.$"),
    ({"adjoint": FieldAdjoint}, r"`adjoint` must be `Checkpointed\(\)` .* forget to c"),
    ({"variables": [1]}, "`variables` must be given by name, as .*, but are a list"),
    ({"batch": 2.5}, "`batch` must be an integer of at least 1, but is 2.5"),
]


@pytest.mark.parametrize(("changed", "message"), OF_ANOTHER_KIND)
def test_arguments_of_another_kind_are_refused(changed, message):
    with pytest.raises(ArgumentError, match=message):
        # Users run it without the type checks of the tests, which come first.
        inspect.unwrap(track)(rotation, SEEDS, TIMES, **changed)


def test_a_number_of_devices_is_no_mesh_in_a_run_either():
    with pytest.raises(ArgumentError, match=r"`mesh` must be a mesh of .*, but is 4"):
        inspect.unwrap(run)(rotation, SEEDS, TIMES, mesh=4, progress=False)


def in_numpy(t, x):
    return np.array([-x[1], x[0]])


def by_branches(t, x):
    return x if x[0] > 0 else -x


def by_math(t, x):
    return math.sin(x[0]) * x


REFUSED = [
    ({"velocity": in_numpy}, "`velocity` must be written with `jax.numpy`"),
    ({"velocity": by_math}, "`velocity` must .* as a Python number"),
    ({"diffusivity": by_math, "key": KEY}, "`diffusivity` must .* a Python number"),
    ({"velocity": lambda t, x: x[x > 0]}, "`velocity` must .* masks by `jnp.where`"),
    ({"velocity": by_branches}, "`velocity` must be one formula .* by `jnp.where`"),
    ({"velocity": GriddedField}, "`velocity` must be a field.*Did you forget to call"),
    ({"diffusivity": np.ones(3), "key": KEY}, r"`diffusivity` must .*2 .*shape \(3,\)"),
    ({"diffusivity": of_three, "key": KEY}, r"What `diffusivity` returns .*\(3,\)"),
    ({"diffusivity": Diffusivity, "key": KEY}, "`diffusivity` must be a number, one"),
    ({"diffusivity": "1", "key": KEY}, "`diffusivity` must be numbers, but .* <U1"),
    ({"times": DAYS}, r"`times` must be .*datetime64\[s\]. Dates become seconds by"),
    ({"times": DAYS.tolist()}, "`times` must be numbers.* Dates become seconds by"),
    ({"times": DAYS - DAYS[0]}, r"`times` must .*timedelta64\[s\]. Divide by a second"),
    ({"times": ["0", "1"]}, "`times` must be numbers, but has the dtype <U1.$"),
    ({"times": [[0, 1], [2]]}, "`times` must be an array .* rows of different lengths"),
    ({"release": DAYS}, "`release` must be numbers, but .* Dates become seconds"),
]


@pytest.mark.parametrize(("changed", "message"), REFUSED)
def test_arguments_that_do_not_fit_are_refused(changed, message):
    given = {"velocity": rotation, "seeds": SEEDS, "times": TIMES, **changed}
    with pytest.raises(ArgumentError, match=message):
        track(**given)


@pytest.mark.parametrize("dt", [np.timedelta64(1, "s"), np.ones(2)])
def test_a_step_that_is_not_one_number_is_refused(dt):
    with pytest.raises(ArgumentError, match=r"`dt` must be (numbers|one number), but"):
        inspect.unwrap(plan_steps)(TIMES, dt, None)


@pytest.mark.parametrize(
    "times", [DAYS, DAYS.tolist(), ["2020-01-01", "2020-01-03"]], ids=type
)
def test_dates_become_numbers_as_the_message_says(times):
    start = np.datetime64("2020-01-01")
    seconds = (np.asarray(times, "datetime64[us]") - start) / np.timedelta64(1, "s")
    assert seconds.tolist() == [0, 2 * 86400]


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (Variable, r"`variables\['age'\]` must be a `Variable\(rate\)`, but is <class"),
        (lambda t, x, value: 1.0, r"`variables\['age'\]` must be .*, but is <function"),
        (
            Variable(lambda t, x, value: x),
            r"`variables\['age'\]\.rate` must return one number.* \(2,\)",
        ),
    ],
)
def test_what_is_no_variable_is_refused(rate, message):
    with pytest.raises(ArgumentError, match=message):
        inspect.unwrap(track)(rotation, SEEDS, TIMES, variables={"age": rate})


MOTIONS = [
    (lambda: MaxeyRiley(rotation, 1.0, 2.0, [0, 0, -9.81]), r"`gravity` .*\(3,\)"),
    (lambda: MaxeyRiley(rotation, 1.0, 2.0, [-9.81]), r"`gravity` .*2 .*\(1,\)"),
    (
        lambda: MaxeyRiley(rotation, 1.0, relative_velocity=[0, 0, 1.0]),
        r"`relative_velocity` must be one number, or .* of 2 coord.* shape \(3,\)",
    ),
    (lambda: MaxeyRiley(of_three, 1.0), r"What `velocity` returns must .*\(3,\)"),
    (lambda: Overdamped(of_three, [], 1.0), r"What `velocity` returns must .*\(3,\)"),
    (lambda: falling(Gravity(1.0, [0, 0, -1.0])), r"`acceleration` .*\(3,\)"),
    (lambda: falling(StokesDrag(of_three, 1.0)), r"`velocity` of a drag .*\(3,\)"),
    (lambda: falling(of_three), r"What `forces\[0\]` returns must .*\(3,\)"),
    (lambda: falling(velocity=of_three), r"What `velocity` returns must .*\(3,\)"),
]


@pytest.mark.parametrize(("make", "message"), MOTIONS)
def test_vectors_of_another_length_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        track(make(), SEEDS, TIMES)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: falling(Gravity), r"`forces\[0\]` must be .*Did you forget to call"),
        (lambda: falling(3.0), r"`forces\[0\]` must be a force or .*, but is 3.0"),
        (
            lambda: Newtonian(Gravity(1.0, ALONG), 1.0),
            r"`forces` must be a list .* as `\[force\]`, but is a Gravity",
        ),
        (lambda: falling(velocity=ALONG), r"`velocity` must be a function .*`v\(t, x"),
        (lambda: Variable(3.0), "`rate` must be a function .*, but is 3.0"),
        (lambda: Sum(along), r"`parts` must be a list .*, but is a function"),
        (lambda: Sum([along, 3.0]), r"`parts\[1\]` must be a field or .*, but is 3.0"),
        (
            lambda: Sum([along, of_three])(0.0, ALONG),
            r"`parts` must return values of one shape, .* \[\(2,\), \(3,\)\]",
        ),
        (
            lambda: GriddedField(np.ones((2, 2, 1)), [TIMES], DAYS),
            r"`times` must be numbers, but has the dtype datetime64\[s\]",
        ),
        (
            lambda: inspect.unwrap(release_repeatedly)(SEEDS, DAYS),
            "`times` must be numbers.* Dates become seconds",
        ),
        (
            lambda: inspect.unwrap(_checked_points)([["a", "b"]]),
            r"`points` must be numbers, but is \[\['a', 'b'\]\]",
        ),
    ],
)
def test_what_is_made_of_something_else_is_refused(make, message):
    # Converters see what users give before the type checks of the tests do.
    with pytest.raises(ArgumentError, match=message):
        make()


ELEMENTS = [
    (np.array([[0, 1, 2]]), 2, r"`elements` must be .*\{'triangle': .* are a ndarray"),
    ([("triangle", [[0, 1, 2]])], 2, "`elements` must be given by kind.* are a list"),
    ({"triangle": [[0, 1, 2], [0]]}, 2, r"`elements\['triangle'\]` .* different leng"),
    ({"polyhedron": [0, 1]}, 3, "must be a list of polyhedra, each a list of faces"),
    ({"polyhedron": [[0, 1]]}, 3, "each a list of node .* a face of number 0 is not"),
]


@pytest.mark.parametrize(("elements", "ndim", "message"), ELEMENTS)
def test_elements_in_another_form_are_refused(elements, ndim, message):
    with pytest.raises(ArgumentError, match=message):
        inspect.unwrap(_checked_elements)(elements, np.zeros((3, ndim)))


# Data end half way: nodes from 1.0 on are land.
ROW = np.arange(6) / 4
SPEEDS = np.where(ROW < 1, 0.4, np.nan)[:, None]
KEPT = jnp.asarray([[0.1], [0.2]])
# Meets NaN in its second step, by `RK4()` in a stage of it.
LOST = jnp.asarray([[0.1], [0.4]])


@eqx.filter_jit
def slopes(seeds, weights, **options):
    """Derivatives by samples, seeds, times and a wall; and the status."""

    def outcome(values, seeds, times, low):
        flow = eqx.tree_at(lambda f: f.values, GriddedField(SPEEDS, [ROW]), values)
        box = eqx.tree_at(lambda b: b.low, Box([0], [2], Reflect()), low)
        tracks = track(flow, seeds, times, steps=2, boundary=box, **options)
        return weights @ tracks.positions[-1, :, 0], tracks.status

    by = jax.grad(outcome, (0, 1, 2, 3), has_aux=True)
    return by(jnp.asarray(SPEEDS), seeds, jnp.asarray(TIMES), jnp.zeros(1))


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", [Checkpointed(), FieldAdjoint()])
def test_samples_of_nan_spoil_no_derivative(adjoint):
    # Where nobody goes there: all samples together move a particle by the time.
    first, second = jnp.eye(2)
    far, status = slopes(KEPT, first, adjoint=adjoint)
    assert status.tolist() == [ParticleStatus.ALIVE] * 2
    assert np.allclose(np.sum(far[0]), 1, **CLOSE)
    assert np.allclose(far[1], [[1], [0]], **CLOSE)
    assert np.allclose(far[2], [-0.4, 0.4], **CLOSE)
    # Where another particle does.
    near, status = slopes(LOST, first, adjoint=adjoint)
    assert status.tolist() == [ParticleStatus.ALIVE, ParticleStatus.NOT_FINITE]
    assert all(np.allclose(a, b, **CLOSE) for a, b in zip(far, near, strict=True))
    # It stays where it was before the step, and so do its own derivatives.
    own, _ = slopes(LOST, second, adjoint=adjoint)
    assert np.allclose(np.sum(own[0]), 0.5, **CLOSE)
    assert np.allclose(own[1], [[0], [1]], **CLOSE)
    assert np.allclose(own[2], [-0.2, 0.2], **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [EulerMaruyama(), StochasticHeun()])
def test_a_particle_that_diffuses_into_nan_spoils_no_derivative(solver):
    seeds = jnp.asarray([[0.1], [0.6]])
    by, status = slopes(seeds, jnp.ones(2), solver=solver, diffusivity=1e-6, key=KEY)
    assert status.tolist() == [ParticleStatus.ALIVE, ParticleStatus.NOT_FINITE]
    assert all(np.all(np.isfinite(each)) for each in by)


def test_a_sample_of_nan_counts_also_with_a_weight_of_zero():
    # The first is on the last node that has data, the second short of it.
    seeds = [[0.75], [0.5]]
    flow = GriddedField(SPEEDS, [ROW])
    tracks = track(flow, seeds, [0.0, 0.25, 0.5, 1.0], dt=0.25, solver=Euler())
    assert tracks.status.tolist() == [ParticleStatus.NOT_FINITE] * 2
    assert np.allclose(tracks.positions[-1], [[0.75], [0.8]], **CLOSE)
    assert np.allclose(tracks.ended, [0, 0.75], **CLOSE)


def norm(x):
    return jnp.linalg.norm(x)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [Absorb(), Reflect(), Hold()])
def test_the_centre_of_a_round_room_is_a_place_as_others(rule):
    # One that begins there, one that comes there, one that is far, and meets nothing.
    seeds = jnp.asarray([[0.0, 0.0], [-0.5, 0.0], [-1.0, 0.3]])
    weights = jnp.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def ends(seeds, radius):
        room = Obstacle(lambda x: radius - norm(x), rule)
        last = track(along, seeds, [0.0, 1.0, 2.0], boundary=room).positions[-1]
        return jnp.sum(weights * last), last

    by, last = jax.jit(jax.grad(ends, (0, 1), has_aux=True))(seeds, 2.0)
    assert np.allclose(last, seeds + jnp.asarray([1, 0]), **CLOSE)
    assert np.allclose(by[0], weights, **CLOSE)
    assert np.allclose(by[1], 0, **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [Reflect(), Hold()])
def test_a_particle_at_the_centre_of_a_body_is_lifted_out(rule):
    def radius(seed):
        body = Obstacle(lambda x: norm(x) - 1, rule)
        tracks = track(lambda t, x: 0 * x, seed[None], TIMES, boundary=body)
        return norm(tracks.positions[-1, 0])

    # Traced, so that the seed is not refused.
    value, slope = jax.jit(jax.value_and_grad(radius))(jnp.zeros(2))
    assert np.allclose(value, 1, **CLOSE)
    assert np.all(np.isfinite(slope))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("face", [Absorb(), Reflect(), Hold()])
@pytest.mark.parametrize("speed", [np.inf, -np.inf])
def test_no_wall_makes_sense_of_a_velocity_that_is_not_finite(face, speed):
    def flow(t, x):
        return jnp.where(x > 0.35, speed, 0.1)

    tracks = track(flow, SEEDS, TIMES, boundary=Box([0, 0], [1, 1], face))
    assert tracks.status.tolist() == [ParticleStatus.ALIVE, ParticleStatus.NOT_FINITE]
    assert np.allclose(tracks.positions[-1], [[0.2, 0.3], SEEDS[1]], **CLOSE)
    assert tracks.ended[1] == 0


@pytest.mark.parametrize("face", [Absorb(), Reflect(), Hold()])
def test_a_box_of_traced_corners_out_of_order_ends_all_particles(face):
    @jax.jit
    def status(high):
        box = Box(jnp.zeros(2), high, face)
        return track(along, SEEDS, TIMES, boundary=box).status

    assert status(jnp.ones(2)).tolist() == [ParticleStatus.ALIVE] * 2
    bad = jnp.asarray([1.0, -1.0])
    assert status(bad).tolist() == [ParticleStatus.NOT_FINITE] * 2


def ball(x):
    return Obstacle(lambda y: norm(y - jnp.asarray([x, 0.0])) - 0.05, Stick())


@pytest.mark.slow
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_of_several_walls_the_one_that_is_met_first_ends_a_particle(order):
    # On a way of 0.5 in one step: a body, a second one behind it, and a face.
    walls = [ball(0.25), ball(0.35), Box([0, -1], [0.45, 1], Absorb())]
    faces = np.cumsum([0, *(walls[n].faces() for n in order)])

    def ended(seeds):
        tracks = track(along, seeds, TIMES, boundary=[walls[n] for n in order])
        return tracks.ended.sum(), tracks

    seeds = jnp.asarray([[0.0, 0.0], [0.28, 0.0], [0.1, 0.3]])
    by, tracks = jax.grad(ended, has_aux=True)(seeds)
    assert np.allclose(tracks.ended, [0.4, 0.04, 0.7], **CLOSE)
    stuck, absorbed = ParticleStatus.STUCK, ParticleStatus.ABSORBED
    assert tracks.status.tolist() == [stuck, stuck, absorbed]
    place = [faces[order.index(0)], faces[order.index(1)], faces[order.index(2)] + 1]
    assert tracks.face.tolist() == place
    assert np.allclose(by[:, 0], -2, **CLOSE)
