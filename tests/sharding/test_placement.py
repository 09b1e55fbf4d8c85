"""Arrays lie where the rules say."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec as P

from physax import runtime
from physax._checks import ArgumentError
from physax.runtime import place, propose, shardings


pytestmark = pytest.mark.f32


@pytest.fixture
def mesh():
    return runtime.mesh(data=2, model=4)


def tree():
    return {
        "layers": [
            {"weight": jnp.arange(48.0).reshape(8, 6)},
            {"weight": jnp.arange(72.0).reshape(6, 12)},
        ],
        "shift": jnp.arange(6.0),
        "activation": jnp.tanh,
    }


def test_the_first_rule_that_fits_holds(mesh):
    found = shardings(
        tree(),
        mesh,
        {r"layers\.0": P("model"), "weight$": P(None, ("model",)), "layers": P("data")},
    )
    assert found["layers"][0]["weight"] == NamedSharding(mesh, P("model"))
    assert found["layers"][1]["weight"] == NamedSharding(mesh, P(None, ("model",)))
    assert found["shift"] == NamedSharding(mesh, P())
    assert found["activation"] is None


def test_arrays_are_placed_and_keep_their_values(mesh):
    placed = place(tree(), mesh, {"weight": P("data")})
    for a, b in zip(placed["layers"], tree()["layers"], strict=True):
        np.testing.assert_array_equal(a["weight"], b["weight"])
        rows = b["weight"].shape[0] // 2
        shards = a["weight"].addressable_shards
        assert {s.data.shape[0] for s in shards} == {rows}
        assert len({s.device for s in shards}) == 8
    assert placed["shift"].sharding.is_fully_replicated
    assert placed["activation"] is jnp.tanh


def test_paths_of_modules_are_those_of_their_attributes(mesh):
    model = eqx.nn.MLP(8, 8, 16, 2, key=jax.random.key(0))
    placed = place(model, mesh, {r"^layers\.\d\.weight$": P("model", "data")})
    assert placed.layers[1].weight.sharding.spec == P("model", "data")
    assert placed.layers[1].bias.sharding.spec == P()
    x = jnp.ones(8)
    # The sums over a divided axis come in another order.
    np.testing.assert_allclose(placed(x), model(x), rtol=1e-5, atol=1e-6)


def test_shapes_alone_and_out_shardings_serve(mesh):
    def draw(key):
        return {"w": jax.random.normal(key, (16, 3)), "b": jnp.zeros(3)}

    key = jax.random.key(1)
    wanted = shardings(jax.eval_shape(draw, key), mesh, {"w": P(("data", "model"))})
    born = jax.jit(draw, out_shardings=wanted)(key)
    assert born["w"].addressable_shards[0].data.shape == (2, 3)
    np.testing.assert_allclose(born["w"], draw(key)["w"], rtol=1e-6)


def test_the_proposal_divides_the_largest_axes(mesh):
    rules = propose(tree(), mesh)
    # Four devices first: 8 of (8, 6), 12 of (6, 12); then two the axes that are left.
    assert rules == {
        r"^layers\.0\.weight$": P("model", "data"),
        r"^layers\.1\.weight$": P("data", "model"),
        "^shift$": P("data"),
    }
    placed = place(tree(), mesh, rules)
    shards = placed["layers"][0]["weight"].addressable_shards
    assert {s.data.shape for s in shards} == {(2, 3)}


def test_what_cannot_be_divided_is_not_proposed(mesh):
    assert propose({"a": jnp.ones((3, 5)), "b": jnp.ones(()), "c": "x"}, mesh) == {}
    assert propose({"a": jnp.ones((4, 6))}, runtime.mesh(one=1)) == {}


BAD = [
    ({"(": P()}, r"must be a regular expression, but '\(' is not one: missing \)"),
    ({"wieght": P()}, r"'wieght' fits none. There are: layers\.0\.weight, layers\.1\."),
    ({"shift": P("rows")}, "'shift' must name axes of the mesh, data, model, .* rows"),
    ({"wei": P("data", "data")}, "'wei' must name each axis of the mesh once at most"),
    (
        {"shift": P(None, "data")},
        r"for `shift` must have at most 1 entries, .* shape \[6\], but is",
    ),
    (
        {"shift": P("model")},
        r"Axis 0 of `shift`, of shape \[6\], must be a multiple of the 4 devices along "
        "model, but is 6. Pad it to 8,",
    ),
    (
        {"1.weight": P(None, ("data", "model"))},
        r"Axis 1 of `layers.1.weight`, of shape \[6, 12\], .* 8 devices along data and "
        "model, but is 12. Pad it to 16",
    ),
]


@pytest.mark.parametrize(("rules", "said"), BAD)
def test_rules_that_cannot_hold_are_refused(mesh, rules, said):
    with pytest.raises(ArgumentError, match=said):
        place(tree(), mesh, rules)
