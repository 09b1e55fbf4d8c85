"""Functions that take other arguments than they get, or take them in another order."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.particles import (
    Box,
    GriddedField,
    Hold,
    LevelRegion,
    Masked,
    Newtonian,
    Obstacle,
    Periodic,
    Reflect,
    Sum,
    Variable,
    run,
    track,
)


pytestmark = pytest.mark.f32

KEY = jax.random.key(0)
SEEDS = np.array([[0.1, 0.2], [0.3, 0.4]])
TIMES = np.array([0.0, 1.0])


def rotation(t, x):
    del t
    return jnp.stack([-x[1], x[0]])


def swapped(x, t):
    del t
    return jnp.stack([-x[1], x[0]])


def tracked(velocity=rotation, **options):
    return track(velocity, SEEDS, TIMES, **options)


def with_variable(rate, initial=0.0):
    return tracked(variables={"age": Variable(rate, initial)})


def needs(name, form, taken):
    return f"`{name}` must be a function `{form}`, as `lambda .*, but takes {taken}"


def nothing(name):
    return f"`{name}` must return an array, but returns None"


def swaps(name, form, reason="IndexError: Too many indices"):
    place = "with the time `t` first and one place `x` of 2 coordinates"
    return f"`{name}` must be a function `{form}`, {place}, but raises {reason}"


U, K, M, RATE = r"u\(t, x\)", r"K\(t, x\)", r"m\(t, x\)", r"rate\(t, x, value\)"
RATE_OF_AGE = r"variables\['age'\]\.rate"
FORCE, PHI, START = r"F\(t, x, v\)", r"phi\(x\)", r"v\(t, x\)"
CASES = [
    (nothing("velocity"), lambda: tracked(lambda t, x: None)),
    (nothing(r"parts\[0\]"), lambda: tracked(Sum([lambda t, x: None]))),
    (nothing("factor"), lambda: tracked(Masked(rotation, lambda t, x: None))),
    (nothing("diffusivity"), lambda: tracked(diffusivity=lambda t, x: None, key=KEY)),
    (nothing(RATE_OF_AGE), lambda: with_variable(lambda t, x, value: None)),
    (
        nothing(r"variables\['age'\]\.initial"),
        lambda: with_variable(lambda t, x, value: 1.0, lambda t, x: None),
    ),
    (
        nothing(r"forces\[0\]"),
        lambda: tracked(Newtonian([lambda t, x, v: None], 1.0)),
    ),
    (
        nothing("velocity"),
        lambda: tracked(Newtonian([], 1.0, velocity=lambda t, x: None)),
    ),
    (needs("velocity", U, r"\(x\)"), lambda: tracked(lambda x: x)),
    (needs("velocity", U, r"\(t, x, y\)"), lambda: tracked(lambda t, x, y: x)),
    (swaps("velocity", U), lambda: tracked(swapped)),
    (needs(r"parts\[1\]", U, r"\(x\)"), lambda: Sum([rotation, lambda x: x])),
    (swaps(r"parts\[0\]", U), lambda: tracked(Sum([swapped]))),
    (
        needs("diffusivity", K, r"\(x\)"),
        lambda: tracked(diffusivity=lambda x: 1e-3, key=KEY),
    ),
    (
        swaps("diffusivity", K),
        lambda: tracked(diffusivity=lambda x, t: 1e-3 * x[0], key=KEY),
    ),
    (needs("rate", RATE, r"\(t, x\)"), lambda: with_variable(lambda t, x: 1.0)),
    (swaps(RATE_OF_AGE, RATE), lambda: with_variable(lambda x, t, value: x[0])),
    (
        rf"`{RATE_OF_AGE}` must be written with `jax.numpy`",
        lambda: with_variable(lambda t, x, value: np.sin(value)),
    ),
    (needs("factor", M, r"\(x\)"), lambda: Masked(rotation, lambda x: 1.0)),
    (swaps("factor", M), lambda: tracked(Masked(rotation, lambda x, t: x[0]))),
    (
        needs(r"forces\[0\]", FORCE, r"\(t, x\)"),
        lambda: Newtonian([lambda t, x: x], 1.0),
    ),
    (
        swaps(r"forces\[0\]", FORCE),
        lambda: tracked(Newtonian([lambda x, t, v: x[0]], 1.0)),
    ),
    (
        needs("velocity", START, r"\(x\)"),
        lambda: Newtonian([lambda t, x, v: x], 1.0, velocity=lambda x: x),
    ),
    (
        swaps("velocity", START),
        lambda: tracked(Newtonian([lambda t, x, v: x], 1.0, velocity=swapped)),
    ),
    (
        needs("distance", PHI, r"\(t, x\)"),
        lambda: Obstacle(lambda t, x: x[0], Hold()),
    ),
    (needs("function", PHI, r"\(t, x\)"), lambda: LevelRegion(lambda t, x: x[0])),
    (
        "`boundary` must be a wall .* is 'periodic'. For a periodic domain write `Box",
        lambda: inspect.unwrap(track)(rotation, SEEDS, TIMES, boundary="periodic"),
    ),
    (r"`restitution` must lie in \(0, 1\], but is 2", lambda: Reflect(2.0)),
    (
        r"`sink` must be .* but is a str. For a file make an `io.TrackFile\(path",
        lambda: inspect.unwrap(run)(rotation, SEEDS, TIMES, sink="a.npy"),
    ),
]


@pytest.mark.parametrize(("message", "call"), CASES)
def test_what_a_function_must_take_is_said(message, call):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_functions_of_any_make_are_taken():
    def own(t, x, scale=2.0):
        return scale * rotation(t, x)

    expected = tracked(lambda t, x: 2 * rotation(t, x)).positions
    for velocity in (own, jax.jit(own), lambda *args: own(*args)):
        assert jnp.allclose(tracked(velocity).positions, expected)


def test_the_box_of_the_message_is_periodic():
    wall = Box([0.0, 0.0], [1.0, 1.0], Periodic())
    found = tracked(lambda t, x: 0 * x + 1.5, boundary=wall).positions[-1]
    assert jnp.allclose(found, (SEEDS + 1.5) % 1, atol=1e-5)


def test_large_integers_are_numbers_of_the_coordinates():
    # Beyond the integers of 32 bits, as a diffusivity in nm^2/s.
    def spread(value):
        options = {"steps": 4, "diffusivity": lambda t, x: value, "key": KEY}
        return jnp.std(tracked(**options).positions[-1])

    for value in (3_000_000_000, np.int64(3_000_000_000)):
        assert spread(value) == spread(3e9) > 0


BIG = 3_000_000_000


def moved(velocity):
    return tracked(velocity, steps=4).positions[-1, :, 0] - SEEDS[:, 0]


@pytest.mark.parametrize("value", [np.array([BIG, 0]), [BIG, 0], np.array([3e9, 0.0])])
def test_vectors_of_large_integers_are_numbers(value):
    # In one second a particle goes u, under a force F / 2m.
    assert jnp.allclose(moved(lambda t, x: value), 3e9)
    assert jnp.allclose(moved(Newtonian([lambda t, x, v: value], 1.0)), 1.5e9)
    thrown = Newtonian([], 1.0, velocity=lambda t, x: value)
    assert jnp.allclose(moved(thrown), 3e9)
    whole = Masked(lambda t, x: jnp.ones(2), lambda t, x: np.asarray(value)[0])
    assert jnp.allclose(moved(whole), 3e9)
    # A variable whose rate is 3e9 grows by that from 3e9.
    counted = with_variable(lambda t, x, y: value[0], lambda t, x: value[0])
    assert jnp.allclose(counted.variables["age"][-1], 6e9)


def test_conditions_count_as_zero_and_one():
    # Of u = 1 from 0.1 and 0.3 over one second, 0.4 and 0.6 of it beyond 0.7.
    beyond = {"time": Variable(lambda t, x, y: x[0] > 0.7)}
    found = tracked(lambda t, x: jnp.ones(2), variables=beyond, steps=1000)
    assert jnp.allclose(found.variables["time"][-1], jnp.array([0.4, 0.6]), atol=2e-3)
    half = Masked(lambda t, x: jnp.ones(2), lambda t, x: t < 0.5)
    assert jnp.allclose(tracked(half, steps=1000).positions[-1], SEEDS + 0.5, atol=2e-3)
    moved = tracked(lambda t, x: [x[0] > 0, True]).positions[-1]
    assert jnp.allclose(moved, SEEDS + 1, atol=1e-5)


USES = {
    "velocity": lambda value: tracked(lambda t, x: value),
    r"forces\[0\]": lambda value: tracked(Newtonian([lambda t, x, v: value], 1.0)),
    "diffusivity": lambda value: tracked(diffusivity=lambda t, x: value, key=KEY),
    "factor": lambda value: tracked(Masked(rotation, lambda t, x: value)),
    RATE_OF_AGE: lambda value: with_variable(lambda t, x, y: value),
    r"variables\['age'\]\.initial": lambda value: with_variable(
        lambda t, x, y: 0 * y, lambda t, x: value
    ),
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("value", ["3", np.array("a"), ["3", "3"]])
def test_text_is_no_number(name, value):
    message = rf"`{name}\(\.\.\.\)` must be .*, but is "
    with pytest.raises(ArgumentError, match=message):
        USES[name](value)


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("value", [2 + 1j, jnp.full(2, 2 + 1j)])
def test_complex_numbers_of_no_complex_field_are_refused(name, value):
    message = rf"`({name}|velocity)` (returns )?must (be|return) real"
    with pytest.raises(ArgumentError, match=message):
        USES[name](value)


def test_complex_fields_are_refused_where_real_ones_are_needed():
    nodes = np.linspace(0.0, 1.0, 3)
    light = GriddedField(np.full((3, 3), 2 + 1j), (nodes, nodes))
    with pytest.raises(ArgumentError, match="What `diffusivity` returns must be real"):
        tracked(diffusivity=light, key=KEY)
    with pytest.raises(ArgumentError, match=rf"`{RATE_OF_AGE}` must be real"):
        with_variable(light)
    with pytest.raises(ArgumentError, match="What `velocity` returns must be real"):
        tracked(Newtonian([], 1.0, velocity=lambda t, x: 1j * x))
