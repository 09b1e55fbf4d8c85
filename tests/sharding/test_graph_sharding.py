"""Graphs on several devices: the same numbers, cut as asked for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import P

from physax import runtime
from physax.graph import MLP, Backend, Graph, Linear, compile, op


KEY = jax.random.key(2)
X = np.asarray(jax.random.normal(KEY, (16, 8)))
MESH = {"data": 2, "model": 4}


def network():
    graph = Graph() | Linear(32).connect(input="x", output="h")
    graph += "gelu"
    graph += Linear(4).connect(output="y")
    return graph


def test_outputs_and_gradients_are_those_of_one_device():
    one = compile(network(), {"x": ("b", 8)}, KEY)
    many = compile(
        network(),
        {"x": ("b", 8)},
        KEY,
        Backend(mesh=runtime.mesh(**MESH)),
        shard={"x": P("data"), "h": P("data", "model"), "y": P("data")},
        shard_params={r"^linear\.": P("model")},
    )
    cotangent = {"y": np.ones((16, 4), np.float32)}
    expected, wanted = one.evaluate(one.params, {"x": X}, cotangent)
    outputs, gradients = many.evaluate(many.params, {"x": X}, cotangent)
    assert outputs["y"].sharding.spec == P("data")
    assert many.params["linear.weight"].sharding.spec == P("model")
    assert many.params["linear_1.weight"].sharding.is_fully_replicated
    assert jnp.allclose(outputs["y"], expected["y"], atol=3e-6)
    for name in wanted:
        assert jnp.allclose(gradients[name], wanted[name], atol=1e-5), name


def test_proposed_shardings_are_taken():
    mesh = runtime.mesh(**MESH)
    program = compile(network(), {"x": ("b", 8)}, KEY, Backend(mesh=mesh))
    rules = program.propose_shardings()
    assert rules[r"^linear\.weight$"] == P("model", "data")
    cut = compile(
        network(), {"x": ("b", 8)}, KEY, Backend(mesh=mesh), shard_params=True
    )
    weight = cut.params["linear.weight"]
    assert weight.addressable_shards[0].data.shape == (8, 4)
    assert jnp.array_equal(weight, program.params["linear.weight"])
    assert jnp.allclose(cut(x=X)["y"], program(x=X)["y"], atol=3e-6)
    fresh = cut.randomize_params(jax.random.key(9))["linear.weight"]
    assert fresh.sharding == weight.sharding


def test_arrays_are_born_in_parts():
    backend = Backend(mesh=(2, 4))
    whole = Backend()
    cut = backend.ones(128, 64, device_mesh=(2,), tensor_split=(0,))
    assert cut.sharding.spec == P("x", None)
    assert cut.addressable_shards[0].data.shape == (64, 64)
    second = backend.zeros(128, 64, device_mesh=(2, 4), tensor_split=(1, 0))
    assert second.addressable_shards[0].data.shape == (32, 32)
    first = backend.zeros(128, 64, device_mesh=(2,))
    assert first.addressable_shards[0].data.shape == (64, 64)
    spec = backend.full((8, 8), 3.0, spec=P(None, "y"))
    assert spec.addressable_shards[0].data.shape == (8, 2)
    for draw in (Backend.normal, Backend.uniform):
        mine = draw(backend, KEY, 64, 16, spec=P("x", "y"))
        assert mine.addressable_shards[0].data.shape == (32, 4)
        assert jnp.array_equal(mine, draw(whole, KEY, 64, 16))
    assert backend.ones_like(mine).sharding == mine.sharding


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda b: b.ones(7, 4, spec=P("x")), "array.*7"),
        (lambda b: b.ones(8, spec=P("z")), "z"),
        (lambda b: b.ones(8, spec=P("x", "y")), "array"),
        (
            lambda b: compile(Linear(5), {"input": (4, 8)}, backend=b,
                              shard_params={"weight": P("x")}),
            "linear.weight.*5",
        ),
        (
            lambda b: compile(Linear(8), {"input": (5, 8)}, backend=b,
                              shard={"input": P("x")}),
            "input.*5",
        ),
        (
            lambda b: compile(MLP(8, (8,), 8), {"input": (4, 8)}, backend=b,
                              shard_params={"no_such": P("x")}),
            "no_such",
        ),
    ],
)  # fmt: skip
def test_layouts_that_do_not_fit(make, message):
    with pytest.raises(ValueError, match=message):
        make(Backend(mesh=(2, 4)))


def test_a_graph_without_parameters_keeps_its_inputs_where_they_are():
    backend = Backend(mesh=(8,))
    program = compile(op("sin"), {"x": ("n",)}, backend=backend, shard={"x": P("x")})
    found = program(x=backend.array(X[:, 0], spec=P("x")))["sin"]
    assert found.sharding.spec == P("x")
    text = (
        program.forward.lower({}, {}, {"x": backend.array(X[:, 0], spec=P("x"))})
        .compile()
        .as_text()
    )
    assert "all-gather" not in text
