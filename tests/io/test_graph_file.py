"""Graphs in files: the same numbers back, and nothing that a list does not allow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import io
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
    io.save_graph(tmp_path / "graph.npz", graph, program.params)
    loaded, params = io.load_graph(tmp_path / "graph.npz")
    assert loaded.terminals == graph.terminals
    assert loaded.results == graph.results
    assert str(loaded.wiring.declared["x"].shape) == "(2*b, 4)"
    again = compile(loaded, shapes, key, inference=True)
    inputs = {"x": X, "key": key}
    expected = program.evaluate(program.params, inputs)
    found = again.evaluate(params, inputs)
    assert found.keys() == expected.keys()
    for wire, value in expected.items():
        assert jnp.array_equal(found[wire], value), wire


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
        (lambda c: c.update(format="other"), "It holds no graph"),
        (set_block(kind="Simulation"), "but is a 'Simulation'"),
        (set_block(name="no_such_op"), "'no_such_op' is neither"),
        (set_block(name="load"), "'load' is neither"),
        (set_block(name="while_loop"), "'while_loop' is neither"),
        (set_block(kind="Layer", rank=1), "must be a layer of equinox.nn"),
        (lambda c: c["graph"].pop("exposed"), "no sound graph: 'exposed'"),
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
