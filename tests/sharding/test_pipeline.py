"""A pipeline of stages gives what the stages give one after the other."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec as P

from physax import runtime
from physax._checks import ArgumentError
from physax.runtime import pipeline


pytestmark = pytest.mark.f32

STAGES, COUNT, ROWS, WIDTH = 4, 6, 8, 16
KEYS = jax.random.split(jax.random.key(3), 3)
WEIGHTS = {
    "matrix": jax.random.normal(KEYS[0], (STAGES, WIDTH, WIDTH)) / 4,
    "shift": jax.random.normal(KEYS[1], (STAGES, WIDTH)),
}
INPUTS = jax.random.normal(KEYS[2], (COUNT, ROWS, WIDTH))
FACTORS = jnp.arange(1.0, COUNT + 1)[:, None, None]
COLLECTIVES = ("collective-permute", "all-reduce", "all-gather", "all-to-all")


def stage(weights, x):
    return jnp.tanh(x @ weights["matrix"] + weights["shift"])


def one_after_the_other(stage, weights, x, stages=STAGES):
    for i in range(stages):
        x = stage(jax.tree.map(lambda a, i=i: a[i], weights), x)
    return x


def loss(outputs):
    return jnp.sum(FACTORS * outputs**2)


def assert_near(found, expected):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6 * np.max(np.abs(b)))


def counts(function, *args):
    text = jax.jit(function).lower(*args).compile().as_text()
    return [text.count(f" {n}(") + text.count(f" {n}-start(") for n in COLLECTIVES]


@pytest.mark.parametrize("rows", [None, "data"])
def test_values_and_gradients_are_those_of_the_stages_in_turn(rows):
    mesh = runtime.mesh(stage=STAGES, data=2)
    weights = jax.device_put(WEIGHTS, NamedSharding(mesh, P("stage")))
    inputs = jax.device_put(INPUTS, NamedSharding(mesh, P(None, rows)))

    def piped(weights, x):
        return pipeline(stage, weights, x, mesh=mesh, axis="stage")

    assert_near(
        jax.jit(piped)(weights, inputs), one_after_the_other(stage, WEIGHTS, INPUTS)
    )
    slope = jax.jit(jax.grad(lambda *args: loss(piped(*args)), argnums=(0, 1)))
    found = slope(weights, inputs)
    expected = jax.grad(
        lambda w, x: loss(one_after_the_other(stage, w, x)), argnums=(0, 1)
    )(WEIGHTS, INPUTS)
    assert_near(found, expected)
    # The gradient of a stage's weights lies where they do.
    assert found[0]["matrix"].sharding.spec == P("stage")


def test_communication_is_one_permute_in_the_loop_and_one_sum():
    mesh = runtime.mesh(stage=STAGES)
    weights = jax.device_put(WEIGHTS, NamedSharding(mesh, P("stage")))

    def piped(weights, x):
        return pipeline(stage, weights, x, mesh=mesh, axis="stage")

    assert counts(piped, weights, INPUTS) == [1, 1, 0, 0]
    # Forward, and the same backward.
    slope = jax.grad(lambda *args: loss(piped(*args)), argnums=(0, 1))
    assert counts(slope, weights, INPUTS) == [2, 2, 0, 0]


@pytest.mark.slow
def test_a_stage_that_is_singular_at_zero_has_finite_gradients():
    def root(weight, x):
        return weight * jnp.sqrt(x)

    mesh, weights = runtime.mesh(stage=8), jnp.linspace(1.0, 2.0, 8)
    inputs = jnp.linspace(1.0, 3.0, 5)

    def total(weights, apply):
        return jnp.sum(apply(root, weights, inputs))

    found = jax.grad(total)(
        weights, lambda *args: pipeline(*args, mesh=mesh, axis="stage")
    )
    expected = jax.grad(total)(
        weights, lambda *args: one_after_the_other(*args, stages=8)
    )
    assert_near(found, expected)


@pytest.mark.slow
def test_modules_and_trees_pass_through():
    mesh = runtime.mesh(stage=2)
    layers = eqx.filter_vmap(lambda key: eqx.nn.MLP(WIDTH, WIDTH, 8, 1, key=key))(
        jax.random.split(KEYS[0], 2)
    )

    def apply(layer, x):
        return {"a": jax.vmap(layer)(x["a"]), "n": x["n"] + 1}

    inputs = {"a": INPUTS, "n": jnp.arange(COUNT)}
    found = eqx.filter_jit(pipeline)(apply, layers, inputs, mesh=mesh, axis="stage")
    arrays, rest = eqx.partition(layers, eqx.is_array)
    x = INPUTS
    for i in range(2):
        layer = eqx.combine(jax.tree.map(lambda a, i=i: a[i], arrays), rest)
        x = jax.vmap(jax.vmap(layer))(x)
    assert_near(found["a"], x)
    np.testing.assert_array_equal(found["n"], np.arange(COUNT) + 2)


def test_a_single_microbatch_and_a_single_stage():
    found = pipeline(stage, WEIGHTS, INPUTS[:1], mesh=runtime.mesh(s=4), axis="s")
    assert_near(found, one_after_the_other(stage, WEIGHTS, INPUTS[:1]))
    first = jax.tree.map(lambda a: a[:1], WEIGHTS)
    found = pipeline(stage, first, INPUTS, mesh=runtime.mesh(s=1), axis="s")
    assert_near(found, one_after_the_other(stage, first, INPUTS, stages=1))


def test_wrong_number_of_stages_is_refused():
    with pytest.raises(
        ArgumentError,
        match=r"leading axis of 8, .* along `stage`, but `weights\['matrix'\]` has the "
        r"shape \[4, 16, 16\]",
    ):
        pipeline(stage, WEIGHTS, INPUTS, mesh=runtime.mesh(stage=8), axis="stage")


def test_unknown_axis_is_refused():
    mesh = runtime.mesh(stage=4, data=2)
    with pytest.raises(
        ArgumentError, match="`axis` must be one of .* stage, data, but is model"
    ):
        pipeline(stage, WEIGHTS, INPUTS, mesh=mesh, axis="model")


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ([INPUTS, INPUTS[:2]], r"`microbatches\[0\]` 6, `microbatches\[1\]` 2"),
        (jnp.ones(()), "`microbatches` 0"),
        ([], "no arrays"),
    ],
)
def test_microbatches_must_agree(inputs, said):
    with pytest.raises(ArgumentError, match=rf"of the same size, .* have: {said}\."):
        pipeline(stage, WEIGHTS, inputs, mesh=runtime.mesh(stage=4), axis="stage")


def test_a_stage_that_changes_the_shape_is_refused():
    with pytest.raises(
        ArgumentError, match=r"takes float32\[8, 16\] and returns \[float32\[8\]\]"
    ):
        pipeline(
            lambda w, x: [x @ w["shift"]],
            WEIGHTS,
            INPUTS,
            mesh=runtime.mesh(stage=4),
            axis="stage",
        )
