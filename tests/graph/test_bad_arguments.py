"""Arguments of another kind are refused by their names, with what to write instead."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.graph import (
    FourierFeatures,
    GraphError,
    Linear,
    _program,
    compile,
    layer,
    op,
    register_op,
)
from physax.graph._operation import operation_named


SHAPES = {"input": (2, 4)}


@pytest.fixture(autouse=True)
def _unchecked(monkeypatch):
    """Users run it without the type checks of the tests, which come first."""
    for place, name in (
        (FourierFeatures, "__init__"),
        (_program.Program, "__call__"),
        (_program, "_evaluate"),
    ):
        monkeypatch.setattr(place, name, inspect.unwrap(getattr(place, name)))


def raw(function):
    return inspect.unwrap(function)


def sine():
    return compile(op("sin"), {"x": (3,)})


TABLE = [
    (
        "`dimension` must be an integer of at least 1, but is '8'",
        lambda: raw(Linear)("8"),
    ),
    (
        "`dimension` must be an integer of at least 1, but is 8.0",
        lambda: raw(Linear)(8.0),
    ),
    (
        "An operation must be given by its name, as 'tanh', but is .*`register_op`",
        lambda: raw(operation_named)(jnp.tanh),
    ),
    (
        "`scale` must be a positive number, but is '1'",
        lambda: FourierFeatures(2, "1"),
    ),
    (
        "`count` must be an integer of at least 1, but is 2.5",
        lambda: FourierFeatures(2.5),
    ),
    ("`name` must be a layer of equinox.nn, .* but is 3", lambda: raw(layer)(3)),
    (
        "`function` must be a function, a module with .*, but is an int",
        lambda: raw(op)(3),
    ),
    (
        "`name` must be a Python identifier, as in `@register_op",
        lambda: raw(register_op)(sine),
    ),
    (
        "`inputs` must be a dict of arrays by name, but is an array",
        lambda: sine().forward({}, {}, np.ones(3)),
    ),
    (
        "`params` must be a dict of arrays by name, but is an array",
        lambda: sine().forward(np.ones(3), {}, {"x": np.ones(3)}),
    ),
    (
        "`inputs` must hold arrays of numbers, but `x` is 'a'",
        lambda: sine()(x="a"),
    ),
    (
        "`inputs` must hold arrays of numbers, but `x` is array",
        lambda: compile(op("sin"), {"x": (3,)}, jit=False)(x=np.array(["a", "b", "c"])),
    ),
    (
        "`inputs` must be a dict of arrays by name, but is a str",
        lambda: sine().evaluate({}, "x"),
    ),
    (
        "`params` must hold arrays of numbers, but `linear.bias` is 'a'",
        lambda: compile(Linear(3), SHAPES).evaluate(
            {"linear.weight": np.ones((3, 4)), "linear.bias": "a"},
            {"input": np.ones((2, 4))},
        ),
    ),
    (
        "`output_gradients` must be a dict of arrays by name, but is a str",
        lambda: sine().evaluate({}, {"x": np.ones(3)}, "sin"),
    ),
    (
        "`output_gradients` must hold arrays of numbers, but `sin` is 'a'",
        lambda: sine().evaluate({}, {"x": np.ones(3)}, {"sin": "a"}),
    ),
]


KEY = r"Give a key in place of a shape: `shapes=\{'key': jax.random.key\(0\)\}`"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, f"`key` is dangling: .* {KEY}"),
        ({"key": ()}, rf"`key` must be a key of random numbers, but is \[\]. {KEY}"),
        ({"key": (2,)}, rf"`key` must be a key .*, but is \[2\]. {KEY}"),
    ],
)
def test_a_layer_that_draws_says_how_it_gets_its_key(given, message):
    with pytest.raises(GraphError, match=message):
        compile(layer("Dropout", p=0.5), {"input": (2, 4), **given})


@pytest.mark.parametrize("key", [3, jax.random.PRNGKey(1)])
def test_what_is_no_key_is_refused_where_one_was_declared(key):
    shapes = {"input": (2, 4), "key": jax.random.key(0)}
    program = compile(layer("Dropout", p=0.5), shapes)
    with pytest.raises(GraphError, match=r"`key` must have shape \[\] key<fry>, but"):
        program(input=np.ones((2, 4)), key=key)


@pytest.mark.parametrize(("message", "call"), TABLE)
def test_arguments_of_another_kind_are_refused(message, call):
    with pytest.raises(GraphError, match=message):
        call()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"key": 0}, r"`key` must be a key, as `jax.random.key\(0\)`, but is 0"),
        ({"key": jnp.ones(2)}, "`key` must be a key, .*, but is an array of float32"),
        ({"backend": "jax"}, "`backend` must be a `Backend`, but is a str. Write"),
    ],
)
def test_options_of_compile_of_another_kind_are_refused(option, message):
    with pytest.raises(ArgumentError, match=message):
        raw(compile)(Linear(3), SHAPES, **option)


def test_raw_keys_draw_as_well():
    untyped = raw(compile)(Linear(3), SHAPES, jax.random.PRNGKey(1))
    typed = compile(Linear(3), SHAPES, jax.random.key(1))
    for name in typed.params:
        assert jnp.array_equal(untyped.params[name], typed.params[name])
