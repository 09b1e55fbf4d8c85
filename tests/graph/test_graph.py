"""Composing graphs: what wires join, what is shared, nested, renamed and exposed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.graph import (
    MLP,
    FourierFeatures,
    Graph,
    GraphError,
    Linear,
    compile,
    layer,
    op,
    register_op,
)


X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)


@register_op("leaky_step")
def leaky_step(x):
    return jnp.where(x > 0, 1.0, 0.1 * x)


def test_wires_of_one_name_join_and_the_rest_are_inputs_and_outputs():
    graph = Graph() | Linear(8).connect(input="x", output="h")
    graph |= op("tanh").connect(x="h", output="t")
    graph |= op("multiply").connect(x="t", y="scale", output="y")
    assert graph.terminals == ("x", "scale")
    assert graph.results == ("y",)
    assert graph.expose("h").results == ("h", "y")
    graph = graph.rename(x="light", y="dark")
    assert graph.terminals == ("light", "scale")
    assert graph.results == ("dark",)


def test_nodes_may_be_added_before_those_that_they_read():
    graph = Graph() | op("tanh").connect(x="h", output="y")
    graph |= op("sin").connect(x="x", output="h")
    found = compile(graph, {"x": (6, 4)})(x=X)["y"]
    assert jnp.allclose(found, jnp.tanh(jnp.sin(X)), atol=1e-6)


def test_chaining_reads_the_newest_output():
    graph = Graph() + op("sin") + "cos" + leaky_step
    found = compile(graph, {"x": (6, 4)})(x=X)
    assert jnp.allclose(found["leaky_step"], leaky_step(jnp.cos(jnp.sin(X))), atol=1e-6)


def test_shapes_follow_symbols():
    graph = Graph() | Linear(8).connect(input="x", output="h")
    graph |= op("reshape", shape=(-1, 2, 4)).connect(a="h", output="y")
    graph |= op("sum", axis=0).connect(a="h", output="s")
    known = graph.with_shapes(x=("2*b", 4)).wiring.structs
    assert str(known["y"].shape) == "(2*b, 2, 4)"
    assert known["s"].shape == (8,)


def test_nodes_of_one_name_share_their_parameters():
    encoder = Linear(3)
    graph = Graph() | encoder.connect(input="a", output="u", name="encoder")
    graph |= encoder.connect(input="b", output="v", name="encoder")
    program = compile(graph, {"a": (6, 4), "b": (2, 4)})
    assert sorted(program.params) == ["encoder.bias", "encoder.weight"]
    found = program(a=X, b=X[:2])
    # Products of other sizes are summed in another order.
    assert jnp.allclose(found["u"][:2], found["v"], atol=1e-6)
    ones = {"u": np.ones((6, 3), np.float32), "v": np.ones((2, 3), np.float32)}
    _, both = program.evaluate(program.params, {"a": X, "b": X[:2]}, ones)
    assert jnp.allclose(both["encoder.bias"], 8)


def test_graphs_nest_and_say_what_they_hold():
    inner = Graph() | Linear(5).connect(input="i", output="o")
    inner += "tanh"
    outer = Graph() | inner.connect(i="x", tanh="h", name="part")
    outer += Linear(2).connect(output="y")
    program = compile(outer, {"x": ("b", 4)})
    assert sorted(program.params) == [
        "linear.bias",
        "linear.weight",
        "part.linear.bias",
        "part.linear.weight",
    ]
    flat = Graph() | Linear(5).connect(input="x", output="h", name="linear")
    assert program(x=X)["y"].shape == (6, 2)
    table = program.summary(depth=2)
    assert "part         i=x:[b,4]      h:[b,5]" in table
    assert "part.linear  input=i:[b,4]  o:[b,5]" in table
    assert " 25" in table
    assert flat.terminals == ("x",)


def test_what_a_node_draws_does_not_depend_on_the_others():
    alone = compile(Graph() | Linear(3), {"input": (6, 4)})
    graph = Graph() | Linear(9).connect(input="input", output="z", name="first")
    graph |= Linear(3).connect(input="input")
    both = compile(graph, {"input": (6, 4)})
    assert jnp.array_equal(alone.params["linear.weight"], both.params["linear.weight"])


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(
    ("block", "shape", "expected", "count"),
    [
        (layer("Linear", out_features=7), (2, 3, 4), (2, 3, 7), 35),
        (layer("Conv2d", out_channels=5, kernel_size=3), (2, 3, 8, 8), (2, 5, 6, 6),
         140),
        (layer("LayerNorm"), (2, 4), (2, 4), 8),
        (layer("GroupNorm", groups=2, rank=3), (2, 4, 5, 5), (2, 4, 5, 5), 8),
        (layer("AvgPool2d", kernel_size=2), (2, 3, 8, 8), (2, 3, 7, 7), 0),
        (layer("MLP", out_size=1, width_size=8, depth=2, activation="tanh"), (9, 3),
         (9, 1), 113),
        (layer("PReLU"), (3, 4), (3, 4), 1),
        (MLP(4, (8, 8), 2), (5, 4), (5, 2), 130),
        (FourierFeatures(6), (5, 4), (5, 12), 0),
    ],
    ids=lambda value: getattr(value, "label", None),
)  # fmt: skip
def test_layers_find_their_sizes(block, shape, expected, count):
    program = compile(block, {block.terminals[0]: shape})
    (found,) = program(**{block.terminals[0]: np.ones(shape, np.float32)}).values()
    assert found.shape == expected
    assert sum(array.size for array in program.params.values()) == count


def test_a_linear_layer_is_that_of_equinox():
    program = compile(Linear(7), {"input": (6, 4)})
    weight, bias = (program.params[f"linear.{name}"] for name in ("weight", "bias"))
    plain = eqx.nn.Linear(4, 7, key=jax.random.key(0))
    plain = eqx.tree_at(lambda m: (m.weight, m.bias), plain, (weight, bias))
    assert jnp.allclose(program(input=X)["linear"], jax.vmap(plain)(X), atol=1e-6)


def test_cells_of_recurrent_networks_have_two_inputs():
    cell = layer("GRUCell", hidden_size=3)
    program = compile(cell, {"input": (6, 4), "hidden": (6, 3)})
    assert program(input=X, hidden=np.zeros((6, 3)))["grucell"].shape == (6, 3)


def test_dropout_needs_a_key_and_infers_without():
    drop = layer("Dropout", p=0.5, keyed=True)
    key = jax.random.key(3)
    shapes = {"input": (6, 4), "key": key}
    assert drop.terminals == ("input", "key")
    found = compile(drop, shapes)(input=np.ones((6, 4)), key=key)["dropout"]
    assert set(np.unique(found)) == {0.0, 2.0}
    kept = compile(drop, shapes, inference=True)(input=X, key=key)["dropout"]
    assert jnp.array_equal(kept, X)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layer("Dense"), "`name` must be a layer of equinox.nn"),
        (lambda: layer("BatchNorm", axis_name="b"), "keeps a state"),
        (lambda: layer("Linear", width=3), "takes the options in_features"),
        (lambda: Linear(0), "`dimension` must be an integer of at least 1, but is 0"),
        (lambda: MLP(2, (0,), 1), r"`hidden_sizes\[0\]` must be an integer of at .* 0"),
        (lambda: MLP(2, (3,), 1, "grelu"), "'grelu' is not"),
        (
            lambda: FourierFeatures(3, 0.0),
            r"`scale` must be a positive .* is 0\.0",
        ),
        (lambda: op("no_such"), "'no_such' is not"),
        (lambda: op("_jit"), "'_jit' is not"),
        (lambda: op(max), "`inputs` must name the terminals of `max`"),
        (lambda: op(lambda x: x, outputs=()), "must have a result"),
        (lambda: op(lambda x: x, outputs=("x",)), "of different names, but repeats x"),
        (lambda: register_op("two words"), "must be a Python identifier"),
        (lambda: register_op("leaky_step")(lambda x: x), "'leaky_step' already is"),
    ],
)
def test_blocks_that_can_not_be(make, message):
    with pytest.raises(GraphError, match=message):
        make()


def test_any_module_is_a_block_and_its_arrays_are_parameters():
    class Spring(eqx.Module):
        stiffness: jax.Array

        def __call__(self, position):
            return -self.stiffness * position

    spring = Spring(jnp.array(3.0))
    program = compile(spring, {"position": (6, 4)})
    assert program.params == {"spring.stiffness": jnp.array(3.0)}
    assert jnp.allclose(program(position=X)["spring"], -3 * X)
    frozen = compile(op(spring, trainable=False), {"position": (6, 4)})
    assert not frozen.params
    assert frozen.constants == {"spring.stiffness": jnp.array(3.0)}


def test_a_wire_may_carry_a_tree():
    def split(x):
        return {"even": x[::2], "odd": x[1::2]}

    def join(parts):
        return parts["even"] - parts["odd"]

    graph = Graph() | op(split).connect(x="x", output="parts")
    graph |= op(join).connect(parts="parts", output="y")
    found = compile(graph, {"x": (6, 4)})(x=X)["y"]
    assert jnp.array_equal(found, X[::2] - X[1::2])
