"""What looks right and would go wrong in silence."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.graph import (
    Backend,
    Graph,
    GraphError,
    Linear,
    compile,
    coupler,
    joined,
    layer,
    op,
    waveguide,
)


def product(x, y):
    return x * y


def test_options_of_other_types_are_other_blocks():
    whole = jax.ShapeDtypeStruct((2,), jnp.int32)
    found = []
    for option in (1, 1.0, True, 1 + 0j):
        block = op(product, y=option).connect(output="o")
        found.append((Graph() | block).with_shapes(x=whole).wiring.structs["o"].dtype)
    assert found == ["int32", "float32", "int32", "complex64"]


def test_options_before_the_wires_are_bound_by_name():
    def difference(a, b):
        return a - b

    block = op(difference, a=10.0)
    assert block.terminals == ("b",)
    assert compile(block, {"b": (2,)})(b=np.ones(2))["difference"][0] == 9
    partial = op(functools.partial(difference, b=1.0), inputs=("a",), label="less")
    assert compile(partial, {"a": (2,)})(a=np.ones(2))["less"][0] == 0


def test_several_wires_make_the_list_that_an_operation_takes():
    block = op("concat", inputs=("a", "b"), axis=0)
    found = compile(block, {"a": (2,), "b": (3,)})(a=np.ones(2), b=np.zeros(3))
    assert jnp.array_equal(found["concat"], jnp.array([1.0, 1, 0, 0, 0]))
    block = op("where", inputs=("condition", "x", "y"))
    shapes = {"condition": jax.ShapeDtypeStruct((2,), bool), "x": (2,), "y": (2,)}
    found = compile(block, shapes)(
        condition=np.array([True, False]), x=np.ones(2), y=np.zeros(2)
    )
    assert jnp.array_equal(found["where"], jnp.array([1.0, 0]))


@pytest.mark.parametrize(
    ("shapes", "sizes"),
    [
        ({"u": ("n",), "v": ("2*n",)}, (2, 5)),
        ({"u": ("n",), "v": ("n + 3",)}, (2, 6)),
        ({"u": ("n",), "v": ("2*n - 1",)}, (2, 4)),
        # Nothing tells n itself.
        ({"u": ("2*n",), "v": ("2*n",)}, (2, 4)),
    ],
)
def test_expressions_of_symbols_hold(shapes, sizes):
    block = op(lambda u, v: jnp.sum(u) + jnp.sum(v), label="both")
    program = compile(block, shapes)
    with pytest.raises(GraphError, match="must stand for one size"):
        program(u=np.ones(sizes[0]), v=np.ones(sizes[1]))


def test_a_size_that_follows_from_others_says_so():
    program = compile(op(lambda u, v: v, label="b"), {"u": ("n",), "v": ("n + 3",)})
    wanted = (
        r"3 must stand for one size, but is 5 by the sizes of other inputs and 6 in"
    )
    with pytest.raises(GraphError, match=wanted):
        program(u=np.ones(2), v=np.ones(6))


@pytest.mark.parametrize("given", ["constants", "trainable"])
@pytest.mark.parametrize("value", ["x", object(), [[1.0], [1.0, 2.0]]])
def test_what_is_no_numbers_can_not_be_compiled_in(given, value):
    with pytest.raises(GraphError, match=f"`{given}` must hold arrays of num.*`y` is"):
        compile(op("add"), {"x": (3,)}, **{given: {"y": value}})


def test_a_declared_symbol_is_one_size_for_all_that_compile_gets():
    graph = Graph() | op(lambda u, v: jnp.sum(u) + jnp.sum(v), label="both")
    graph = graph.with_shapes(u=("n",), v=("n",))
    with pytest.raises(GraphError, match="n must stand for one size, but is 4"):
        compile(graph, {"u": (4,), "v": (3,)})
    program = compile(graph, trainable={"v": [1.0, 2.0, 3.0]})
    with pytest.raises(GraphError, match=r"`u` must have shape \[3\]"):
        program(u=np.ones(4))


OTHER_TYPES = [
    "bfloat16",
    "complex64",
    pytest.param("float32", marks=pytest.mark.x64),
]


def sines():
    return Graph() | op("sin").connect(x="x", output="y")


@pytest.mark.parametrize("dtype", OTHER_TYPES)
@pytest.mark.parametrize(
    "graph",
    [
        sines().with_shapes(x=(3,)),
        sines().with_shapes(x=("n",), y=("n",)),
        Graph() | sines().with_shapes(x=("n",)).connect(x="x", output="y"),
    ],
    ids=["declared", "both", "nested"],
)
def test_a_backend_replaces_the_default_type_of_declared_shapes(graph, dtype):
    backend = Backend(dtype)
    program = compile(graph, {"x": (3,)}, backend=backend)
    assert program(x=np.ones(3))["y"].dtype == dtype
    program = compile(graph, trainable={"x": [1.0, 2.0, 3.0]}, backend=backend)
    assert program()["y"].dtype == dtype


@pytest.mark.parametrize("dtype", OTHER_TYPES)
def test_declared_shapes_and_other_types_are_checked_with_every_backend(dtype):
    graph, backend = sines().with_shapes(x=(3,)), Backend(dtype)
    with pytest.raises(GraphError, match=r"`x` must have shape \[3\].*gets \[4\]"):
        compile(graph, {"x": (4,)}, backend=backend)
    with pytest.raises(GraphError, match=r"`x` must have shape \[3\].*\[3\] int32"):
        compile(graph, {"x": jax.ShapeDtypeStruct((3,), jnp.int32)}, backend=backend)
    # The declared type itself fits, too.
    same = jax.ShapeDtypeStruct((3,), jnp.result_type(float))
    program = compile(graph, {"x": same}, backend=backend)
    assert program(x=np.ones(3))["y"].dtype == same.dtype


def hidden():
    graph = Graph() | Linear(2).connect(input="x", output="h")
    return graph | op("sin").connect(x="h", output="y")


@pytest.mark.parametrize(
    "dtype", [*OTHER_TYPES, pytest.param("complex64", marks=pytest.mark.x64)]
)
@pytest.mark.parametrize(
    "graph",
    [
        hidden().with_shapes(x=("n", 3), h=("n", 2), y=("n", 2)),
        Graph() | hidden().with_shapes(h=("n", 2)).connect(x="x", output="y"),
        (Graph() | Linear(3).connect(input="x", output="m"))
        | hidden().with_shapes(x=("n", 3)).connect(x="m", output="y"),
    ],
    ids=["declared", "within", "before"],
)
def test_declared_wires_behind_a_layer_are_of_the_type_of_its_parameters(graph, dtype):
    program = compile(graph, {"x": (4, 3)}, backend=Backend(dtype))
    found = program(x=np.ones((4, 3)))["y"]
    assert found.dtype == dtype
    assert program.wiring.structs["y"].dtype == dtype
    real = {array.dtype for array in program.params.values()}
    assert real == {np.dtype(dtype) if dtype != "complex64" else np.dtype("float32")}


def test_an_integer_that_is_trained_is_a_real_number():
    program = compile(op("square"), trainable={"x": 3})
    _, gradients = program.evaluate(program.params, {}, {"square": True})
    assert gradients["x"] == 6.0
    with pytest.raises(GraphError, match="`x` is a dict"):
        compile(op("square"), trainable={"x": {"a": 1.0}})


@pytest.mark.parametrize("three", [3, np.int32(3), np.uint8(3)])
def test_integers_in_place_of_parameters_have_gradients(three):
    program = compile(op("square"), trainable={"x": 1.0})
    outputs, gradients = program.evaluate({"x": three}, {}, {"square": True})
    assert outputs["square"].dtype == gradients["x"].dtype == program.params["x"].dtype
    assert (outputs["square"], gradients["x"]) == (9.0, 6.0)
    assert program.evaluate({"x": three}, {})["square"].dtype == jnp.float32
    with pytest.raises(GraphError, match="`x` must be real, as .* is complex64. Take"):
        program.evaluate({"x": np.complex64(3)}, {}, {"square": True})


def test_arrays_and_cotangents_must_fit():
    program = compile(Linear(2), {"input": (3, 4)})
    x = {"input": np.ones((3, 4))}
    wrong = program.params | {"linear.bias": np.float32(1)}
    with pytest.raises(GraphError, match=r"`linear.bias` must have shape \[2\]"):
        program.evaluate(wrong, x)
    with pytest.raises(GraphError, match="must be real as its values are"):
        program.evaluate(program.params, x, {"linear": 1j * np.ones((3, 2))})
    with pytest.raises(GraphError, match="must have the structure of the output"):
        program.evaluate(program.params, x, {"linear": [1.0]})


def test_inputs_gain_precision_kind_and_never_lose_a_part():
    program = compile(op("negative"), {"x": (2,)}, backend=Backend("complex64"))
    assert program(x=np.array([1, 2]))["negative"].dtype == jnp.complex64
    assert program(x=np.array([1.5, 2]))["negative"][0] == -1.5
    small = compile(op("negative"), {"x": jax.ShapeDtypeStruct((1,), jnp.int8)})
    # The default type is shown, too, where only the types differ.
    with pytest.raises(GraphError, match=r"\[1\] int8, but has \[1\] float32"):
        small(x=np.ones(1, np.float32))
    with pytest.raises(GraphError, match=r"\[1\] int8, but has \[1\] int32"):
        small(x=np.array([300]))
    real = compile(op("negative"), {"x": (1,)})
    with pytest.raises(GraphError, match="complex64"):
        real(x=np.array([1j]))


def test_group_norm_asks_for_the_axes_of_an_item():
    with pytest.raises(GraphError, match="`rank` must be given for GroupNorm"):
        layer("GroupNorm", groups=2)
    block = layer("GroupNorm", groups=2, rank=3)
    x = np.asarray(jax.random.normal(jax.random.key(0), (2, 4, 6, 6)))
    expected = jax.vmap(eqx.nn.GroupNorm(2, 4))(x)
    found = compile(block, {"input": x.shape})(input=x)["groupnorm"]
    assert jnp.allclose(found, expected, atol=1e-5)


def test_names_that_connect_takes_are_refused_and_output_finds_its_result():
    with pytest.raises(GraphError, match="must not be called name"):
        op(lambda name, x: x)
    with pytest.raises(GraphError, match="takes any number of arguments"):
        op(lambda *a: sum(a))
    with pytest.raises(GraphError, match="`inputs` must name the terminals of 'clip'"):
        op("clip")
    with pytest.raises(GraphError, match="must have a result"):
        Graph() | Graph()
    block = op(lambda x: (x, -x), outputs=("c", "output"), label="both")
    graph = Graph() | block.connect(x="x", output="z")
    assert compile(graph, {"x": (1,)})(x=np.ones(1))["z"] == -1


def test_no_wire_is_called_self():
    with pytest.raises(GraphError, match="not 'self'"):
        Graph() | op("sin").connect(x="self", output="y")


def test_debugging_does_not_stand_in_the_way_of_an_outer_jit():
    program = compile(op("log"), {"x": (2,)}, backend=Backend(debug=True))
    assert jnp.isnan(jax.jit(lambda x: program(x=x)["log"])(-np.ones(2)))[0]


@pytest.mark.parametrize("split", [(0, 1), (0, 0), ()])
def test_a_split_that_does_not_fit_the_mesh_is_refused(split):
    meshes = {(0, 1): (1,), (0, 0): (1, 1), (): (1,)}
    with pytest.raises(GraphError, match="a different axis of the array for each"):
        Backend().ones(8, 4, device_mesh=meshes[split], tensor_split=split)


def test_the_precision_of_a_backend_holds_for_its_operations():
    backend = Backend(precision="highest", platform="cpu")
    assert backend.device == "cpu"
    shown = str(jax.make_jaxpr(backend.matmul)(np.eye(2), np.eye(2)))
    assert "HIGHEST" in shown
    with pytest.raises(GraphError, match="`platform` must not come with `device`"):
        Backend(device="cpu:0", platform="cpu")


@pytest.mark.parametrize(
    "joins",
    [
        {"a.out": "b.in", "b.in": "a.out"},
        {"a.out": "a.out"},
        {"a.out": "b.in", "b.out": "b.in"},
    ],
)
def test_a_port_is_joined_once(joins):
    parts = {"a": waveguide(1.0), "b": waveguide(1.0)}
    with pytest.raises(GraphError, match="is twice"):
        joined(parts, joins, {"in": "a.in"})


def test_a_coupler_passes_a_fraction():
    with pytest.raises(ArgumentError, match=r"must lie in \[0, 1\], but is 1.2"):
        coupler(1.2)
