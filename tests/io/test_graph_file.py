"""Graphs in files: the same numbers back, and nothing that a list does not allow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import io
from physax.graph import (
    MLP,
    Circuit,
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


@register_op("own_bend")
def own_bend(x):
    return x - x**3 / 3


def network():
    part = Graph(label="part") | Linear(6).connect(input="i", output="o")
    part += "own_bend"
    graph = Graph() | part.connect(i="x", own_bend="h", name="first")
    graph |= FourierFeatures(3, 2.0).connect(input="h", output="waves")
    graph |= MLP(6, (8,), 2, "tanh").connect(input="waves", output="y")
    graph |= layer("LayerNorm").connect(input="h", output="normed", name="norm")
    graph |= layer("Dropout", p=0.25, keyed=True).connect(input="normed", key="key")
    graph |= op("sum", axis=-1).connect(a="h", output="total")
    return graph.with_shapes(x=("2*b", 4)).expose("h")


def test_a_graph_comes_back_with_the_same_numbers(tmp_path):
    graph, key = network(), jax.random.key(1)
    shapes = {"key": key}
    program = compile(graph, shapes, key, inference=True)
    path = tmp_path / "graph.npz"
    io.save_graph(path, graph, program.params, program.constants)
    loaded, params, constants = io.load_graph(path)
    assert loaded.terminals == graph.terminals
    assert loaded.results == graph.results
    assert str(loaded.wiring.declared["x"].shape) == "(2*b, 4)"
    # Another key: what was drawn comes from the file, constants too.
    again = compile(loaded, shapes, jax.random.key(2), inference=True)
    again = again.with_arrays(params, constants)
    inputs = {"x": X, "key": key}
    expected = program.evaluate(program.params, inputs)
    found = again.evaluate(params, inputs)
    assert loaded.wiring.newest == graph.wiring.newest
    assert found.keys() == expected.keys()
    for wire, value in expected.items():
        assert jnp.array_equal(found[wire], value), wire


def test_inputs_that_were_given_are_given_again(tmp_path):
    graph = Graph() | op("subtract").connect(x="x", y="mean", output="d")
    graph |= op("multiply").connect(x="d", y="gain", output="z")
    mean, gain = np.arange(4.0), np.full(4, 3.0)
    program = compile(
        graph, {"x": ("b", 4)}, constants={"mean": mean}, trainable={"gain": gain}
    )
    path = tmp_path / "graph.npz"
    io.save_graph(path, graph, program.params, program.constants)
    loaded, params, constants = io.load_graph(path)
    again = compile(
        loaded,
        {"x": ("b", 4)},
        constants={"mean": constants["mean"]},
        trainable={"gain": params["gain"]},
    ).with_arrays(params, constants)
    np.testing.assert_allclose(again(x=X)["z"], (X - mean) * 3, rtol=1e-6)


def test_arrays_take_the_precision_of_the_program_and_no_other_kind():
    program = compile(op("multiply"), {"x": (3,)}, trainable={"y": np.ones(3)})
    half = program.with_arrays({"y": jnp.array([1.0, 2.0, 3.0], jnp.float16)}, {})
    assert half.params["y"].dtype == jnp.float32
    assert jnp.array_equal(half(x=X[0, :3])["multiply"], X[0, :3] * [1, 2, 3])
    text = "`y` must have the dtype .* float32, but has "
    with pytest.raises(GraphError, match=text + "complex64"):
        program.with_arrays({"y": jnp.ones(3, complex)}, {})
    program = compile(op("multiply"), {"x": (3,)}, constants={"y": np.ones(3)})
    with pytest.raises(GraphError, match=text + "int32"):
        program.with_arrays({}, {"y": jnp.ones(3, int)})


def saved(tmp_path, change):
    path = tmp_path / "graph.npz"
    io.save_graph(path, Graph() | op("tanh").connect(x="x") | Linear(3))
    content = io.load_npz(path)
    change(content)
    io.save_npz(path, content)
    return path


def set_block(**fields):
    def change(content):
        content["graph"]["nodes"][0]["block"].update(fields)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(schema=2), "schema must be 1, but is 2.*Update physax"),
        (
            lambda c: c.update(format="other"),
            "It must hold a graph by `save_graph`, but does not",
        ),
        (set_block(kind="Simulation"), "but is a 'Simulation'"),
        (set_block(name="no_such_op"), "'no_such_op' is neither"),
        (set_block(name="load"), "'load' is neither"),
        (set_block(name="while_loop"), "'while_loop' is neither"),
        (set_block(kind="Layer", rank=1), "must be a layer of equinox.nn"),
        (lambda c: c["graph"].pop("exposed"), "not hold a valid graph: 'exposed'"),
        (lambda c: c.pop("schema"), "schema must be 1, but is None"),
        (lambda c: c.update(params="hello"), "must be arrays by name"),
        (lambda c: c["graph"].update(newest="z"), "No node writes .*'z'"),
        (lambda c: c["graph"]["nodes"][0].update(inputs=[]), "not hold a valid graph"),
        (lambda c: c["graph"]["declared"].update(x=1), "not hold a valid graph"),
        (
            set_block(kind="MLP", sizes=(2, 3, 1), activation="load"),
            "'load' is neither",
        ),
        (
            set_block(kind="Layer", name="MLP", rank=1, options={"activation": "save"}),
            "'save' is neither",
        ),
    ],
)
def test_a_file_that_asks_for_more_is_refused(tmp_path, change, message):
    path = saved(tmp_path, change)
    with pytest.raises(io.PhysaxFileError, match=message):
        io.load_graph(path)


def test_functions_without_a_name_can_not_be_saved(tmp_path):
    graph = Graph() | op(lambda x: 2 * x, label="double")
    with pytest.raises(ValueError, match="`double` must be an operation with a name"):
        io.save_graph(tmp_path / "graph.npz", graph)
    with pytest.raises(GraphError, match="'while_loop' is neither"):
        io.save_graph(tmp_path / "graph.npz", Graph() | op("while_loop"))
    assert not list(tmp_path.iterdir())


def test_nested_graphs_that_share_and_circuits_come_back(tmp_path):
    inner = Graph() + Linear(3)
    graph = Graph() | inner.connect(input="x", name="n", output="a")
    graph |= inner.connect(input="y", name="n", output="b")
    graph |= Circuit(("m",), {"m.a": "m.b"}, {"in": "m.c"}).connect(m="part")
    io.save_graph(tmp_path / "graph.npz", graph)
    loaded, _, _ = io.load_graph(tmp_path / "graph.npz")
    program = compile(loaded, {"x": (2, 4), "y": (5, 4)}, discard=("circuit",))
    assert sorted(program.params) == ["n.linear.bias", "n.linear.weight"]
    assert loaded.wiring.nodes[-1].block.joins == (("m.a", "m.b"),)


def test_what_has_no_text_can_not_be_saved(tmp_path):
    path = tmp_path / "graph.npz"
    keyed = Graph() | layer("Dropout").connect(input="x", key="key")
    keyed = keyed.with_shapes(key=jax.eval_shape(lambda: jax.random.key(0)))
    with pytest.raises(ValueError, match="`key` must be that of numbers"):
        io.save_graph(path, keyed)
    own = layer("MLP", out_size=1, width_size=2, depth=1, activation=jnp.tanh)
    with pytest.raises(ValueError, match="option `activation` of `mlp` must be a"):
        io.save_graph(path, Graph() | own)
    program = compile(Linear(3), {"input": (2, 4)})
    with pytest.raises(GraphError, match="linear.weight differ"):
        program.with_arrays({"linear.bias": jnp.zeros(3)}, {})
