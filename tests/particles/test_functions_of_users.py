"""Functions that take other arguments than they get, or take them in another order."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.particles import (
    Box,
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
