"""Programs: options of `compile`, values and gradients against plain JAX."""

import itertools
import zlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec

from physax.graph import (
    MLP,
    Backend,
    FourierFeatures,
    Graph,
    GraphError,
    Linear,
    NotFiniteError,
    compile,
    op,
)
from physax.runtime import count_compiles, memory, no_recompile


KEY = jax.random.key(7)
X = np.asarray(jax.random.normal(KEY, (12, 5)))


def network():
    graph = Graph() | Linear(8).connect(input="x", output="h")
    graph += "tanh"
    graph += Linear(2).connect(output="y")
    return graph


def by_hand(params, x):
    h = jnp.tanh(x @ params["linear.weight"].T + params["linear.bias"])
    return h @ params["linear_1.weight"].T + params["linear_1.bias"]


def test_outputs_and_gradients_are_those_of_plain_jax():
    program = compile(network(), {"x": ("b", 5)}, KEY)
    cotangent = np.asarray(jax.random.normal(KEY, (12, 2)))
    outputs, gradients = program.evaluate(program.params, {"x": X}, {"y": cotangent})
    expected, pull = jax.vjp(lambda p: by_hand(p, X), program.params)
    assert jnp.allclose(outputs["y"], expected, atol=1e-6)
    (wanted,) = pull(cotangent)
    for name, gradient in gradients.items():
        assert jnp.allclose(gradient, wanted[name], atol=1e-5), name
    plain = program.evaluate(program.params, {"x": X})
    assert jnp.array_equal(plain["y"], outputs["y"])


@pytest.mark.slow
def test_the_program_is_a_pytree():
    program = compile(network(), {"x": ("b", 5)}, KEY)

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(program, x):
        return jnp.sum(program(x=x)["y"] ** 2)

    def loss(params):
        return jnp.sum(by_hand(params, X) ** 2)

    found = gradient(program, X).params
    wanted = jax.grad(loss)(program.params)
    for name in wanted:
        assert jnp.allclose(found[name], wanted[name], rtol=1e-4, atol=1e-5)
    batch = jax.vmap(lambda x: program(x=x[None])["y"][0])(X)
    assert jnp.allclose(batch, program(x=X)["y"], atol=1e-6)
    programs = eqx.filter_vmap(program.init)(jax.random.split(KEY, 3))
    found = eqx.filter_vmap(lambda p: p(x=X)["y"])(programs)
    assert found.shape == (3, 12, 2)
    assert not jnp.allclose(found[0], found[1])


def test_optax_trains_the_parameters_and_nothing_compiles_twice():
    program = compile(network(), {"x": (12, 5)}, KEY)
    target = jnp.sin(3 * X[:, :2])
    optimiser = optax.adam(0.02)

    @jax.jit
    def step(params, state):
        outputs, gradients = program.evaluate(
            params,
            {"x": X},
            {"y": 2 * (program.evaluate(params, {"x": X})["y"] - target)},
        )
        updates, state = optimiser.update(gradients, state)
        loss = jnp.sum((outputs["y"] - target) ** 2)
        return optax.apply_updates(params, updates), state, loss

    params = program.params
    state = optimiser.init(params)
    params, state, first = step(params, state)
    with no_recompile():
        for _ in range(300):
            params, state, last = step(params, state)
    assert last < 0.05 * first


def test_inputs_become_parameters_or_constants():
    graph = Graph() | op("multiply").connect(x="x", y="scale", output="scaled")
    graph |= op("add").connect(x="scaled", y="shift", output="y")
    program = compile(
        graph, {"x": (3,)}, trainable={"scale": 2.0}, constants={"shift": [1.0, 2, 3]}
    )
    assert program.inputs == ("x",)
    assert list(program.params) == ["scale"]
    x = np.array([1.0, 10, 100], np.float32)
    outputs, gradients = program.evaluate(
        program.params, {"x": x}, {"y": np.ones(3, np.float32)}
    )
    assert jnp.array_equal(outputs["y"], jnp.array([3.0, 22, 203]))
    assert gradients == {"scale": jnp.array(111.0)}


def test_true_is_one_for_scalars_and_absent_outputs_count_as_zero():
    graph = Graph() | op("sum").connect(a="x", output="total")
    graph |= op("argmax").connect(a="x", output="place")
    graph |= op("max").connect(a="x", output="peak")
    program = compile(graph, trainable={"x": [1.0, 5.0, 2.0]})
    outputs, gradients = program.evaluate(program.params, {}, {"total": True})
    assert outputs["place"] == 1
    assert jnp.array_equal(gradients["x"], jnp.ones(3))
    _, gradients = program.evaluate(
        program.params, {}, {"total": True, "peak": jnp.array(10.0)}
    )
    assert jnp.array_equal(gradients["x"], jnp.array([1.0, 11, 1]))


def test_discarded_outputs_and_what_they_alone_need_are_gone():
    graph = network() | Linear(3).connect(input="z", output="other")
    program = compile(graph, {"x": (12, 5)}, discard=("other",))
    assert program.inputs == ("x",)
    assert program.outputs == ("y",)
    assert set(program.params) == set(compile(network(), {"x": (12, 5)}).params)


def test_fresh_draws_differ_and_one_key_gives_one_draw():
    graph = Graph() | FourierFeatures(4).connect(input="x")
    graph += Linear(2).connect(output="y")
    program = compile(graph, {"x": (12, 5)}, KEY)
    again = compile(graph, {"x": (12, 5)}, KEY)
    other = jax.random.key(8)
    assert jnp.array_equal(program(x=X)["y"], again(x=X)["y"])
    drawn = program.randomize_params(other)
    assert not jnp.array_equal(drawn["linear.weight"], program.params["linear.weight"])
    fresh = program.init(other)
    assert jnp.array_equal(fresh.params["linear.weight"], drawn["linear.weight"])
    name = "fourier.numbers"
    assert list(program.constants) == [name]
    assert not jnp.array_equal(fresh.constants[name], program.constants[name])
    params, rest = program.split()
    assert rest.params == {}
    found = rest.evaluate(params, {"x": X})["y"]
    assert jnp.array_equal(found, program(x=X)["y"])


def test_constants_have_no_gradient():
    graph = Graph() | FourierFeatures(4).connect(input="x")
    program = compile(graph, {"x": (12, 5)})

    def loss(program):
        return jnp.sum(program(x=X)["fourier"] ** 3)

    found = eqx.filter_grad(loss)(program)
    assert not jnp.any(found.constants["fourier.numbers"])


def test_a_dtype_holds_for_parameters_inputs_and_outputs():
    program = compile(network(), {"x": (12, 5)}, KEY, Backend("bfloat16"))
    assert {array.dtype for array in program.params.values()} == {jnp.dtype("bfloat16")}
    assert program(x=X)["y"].dtype == jnp.bfloat16
    exact = compile(network(), {"x": (12, 5)}, KEY)(x=X)["y"]
    # Two products of 8 significant bits each.
    assert jnp.max(jnp.abs(program(x=X)["y"] - exact)) < 0.05


@pytest.mark.slow
@pytest.mark.x64
def test_double_precision_and_a_gradient_by_finite_differences():
    program = compile(network(), {"x": (12, 5)}, KEY, Backend("float64"))
    params, direction = program.params, program.randomize_params(jax.random.key(1))
    assert params["linear.weight"].dtype == jnp.float64

    def loss(t):
        moved = jax.tree.map(lambda p, d: p + t * d, params, direction)
        return jnp.sum(program.evaluate(moved, {"x": X})["y"] ** 2)

    outputs = program.evaluate(params, {"x": X})
    _, gradients = program.evaluate(params, {"x": X}, {"y": 2 * outputs["y"]})
    slope = sum(jnp.vdot(gradients[name], direction[name]) for name in params)
    # Taylor test: what the slope leaves falls with the square of the step.
    rests = [abs(loss(h) - loss(0.0) - h * slope) for h in (1e-3, 5e-4, 2.5e-4)]
    orders = np.log2(np.array(rests[:-1]) / np.array(rests[1:]))
    assert np.all(np.abs(orders - 2) < 0.05)


def test_complex_parameters_and_a_phase():
    def interfere(phase, amplitudes):
        return jnp.abs(amplitudes[0] + amplitudes[1] * jnp.exp(1j * phase)) ** 2

    program = compile(
        op(interfere),
        trainable={"phase": 0.3, "amplitudes": np.array([0.5, 0.5j], np.complex64)},
    )
    outputs, gradients = program.evaluate(program.params, {}, {"interfere": True})
    # |1/2 + i/2 exp(i phase)|^2 = (1 - sin phase) / 2
    assert jnp.allclose(outputs["interfere"], (1 - jnp.sin(0.3)) / 2, atol=1e-6)
    assert jnp.allclose(gradients["phase"], -jnp.cos(0.3) / 2, atol=1e-6)
    assert gradients["amplitudes"].dtype == jnp.complex64


def test_debugging_names_the_first_node_that_is_not_finite():
    graph = Graph() + op("log") + "sqrt" + "sum"
    program = compile(graph, {"x": (3,)}, backend=Backend(debug=True))
    assert jnp.isfinite(program(x=np.array([2.0, 3, 4]))["sum"])
    with pytest.raises(NotFiniteError, match=r"`log` writes log:\[3\] with NaN"):
        program(x=np.array([2.0, -1, 4]))
    with pytest.raises(NotFiniteError, match=r"`sqrt` writes sqrt:\[3\] with NaN"):
        program(x=np.array([2.0, 0.5, 4]))
    with pytest.raises(NotFiniteError, match=r"`input` writes x:\[3\]"):
        program(x=np.array([2.0, np.nan, 4]))
    graph = Graph() + op("sqrt") + "sum"
    program = compile(graph, trainable={"x": [0.0]}, backend=Backend(debug=True))
    with pytest.raises(NotFiniteError, match="the gradient by x came with NaN"):
        program.evaluate(program.params, {}, {"sum": True})


def test_without_jit_functions_are_run_each_time():
    runs = []

    def counted(x):
        runs.append(type(x))
        return 2 * x

    quick = compile(op(counted), {"x": (2,)})
    quick(x=np.ones(2))
    traced = len(runs)
    quick(x=np.ones(2))
    assert len(runs) == traced
    slow = compile(op(counted), {"x": (2,)}, jit=False)
    before = len(runs)
    slow(x=np.ones(2))
    slow(x=np.ones(2))
    assert len(runs) == before + 2
    assert not issubclass(runs[-1], jax.core.Tracer)


def test_the_table_is_printed(capsys):
    compile(network(), {"x": ("b", 5)}, verbose=True)
    shown = capsys.readouterr().out
    assert "linear_1  input=tanh:[b,8]  y:[b,2]" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trainable": {"q": 1.0}}, "`trainable` must name inputs of the graph, x"),
        ({"constants": {"h": 1.0}}, "`constants` must name inputs of the graph, x"),
        ({"discard": ("q",)}, "`discard` must name outputs, y, but got 'q'"),
        ({"discard": ("y",)}, "must have an output, but has none left"),
        ({"shard": {"q": PartitionSpec()}}, "`shard` must name wires of the graph"),
        ({"shard_params": True}, "`shard_params` needs a mesh"),
        (
            {"constants": {"x": X}, "shapes": {"x": (12, 5)}},
            "is in shapes and constants",
        ),
    ],
)
def test_options_that_can_not_be(options, message):
    with pytest.raises(GraphError, match=message):
        compile(network(), **({"shapes": {"x": (12, 5)}} | options))


def test_output_gradients_that_can_not_be():
    graph = network() | op("argmax").connect(a="x", output="place")
    program = compile(graph, {"x": (12, 5)})

    def run(**gradients):
        program.evaluate(program.params, {"x": X}, gradients)

    with pytest.raises(GraphError, match="must name outputs, place, y, but got q"):
        run(q=1.0)
    with pytest.raises(GraphError, match=r"must have its shape, \[12,2\]"):
        run(y=np.ones((3, 2), np.float32))
    with pytest.raises(GraphError, match=r"`place` is \[\] int32"):
        run(place=1.0)
    with pytest.raises(GraphError, match="`propose_shardings` needs a mesh"):
        program.propose_shardings()
    with pytest.raises(GraphError, match="has no nodes"):
        compile(Graph())


@pytest.mark.slow
def test_less_is_kept_for_gradients_and_they_stay_the_same():
    def deep(remat):
        layer = Graph(label="layer") + Linear(64).connect(input="i", output="h")
        layer = layer + "gelu" + "sin" + op("tanh").connect(output="o")
        graph = Graph()
        for number in range(32):
            name = {"name": f"layer{number}"}
            wire = f"h{number - 1}" if number else "x"
            graph |= layer.connect(i=wire, o=f"h{number}", **name)
        return compile(graph, {"x": (512, 64)}, KEY, remat=remat)

    x = np.asarray(jax.random.normal(KEY, (512, 64)))
    found, used = {}, {}
    for policy in ("none", "dots_saveable", "nothing_saveable"):
        program = deep(policy)
        arguments = (program.params, {}, {"x": x}, {"h31": np.ones((512, 64), "f4")})
        used[policy] = memory(program.pull_back, *arguments).temporary
        found[policy] = program.pull_back(*arguments)[1]
    for name, gradient in found["none"].items():
        for policy, others in found.items():
            assert jnp.allclose(others[name], gradient, rtol=1e-4, atol=1e-5), policy
    # What each of the 32 layers would keep besides its input is gone: one array.
    inputs = 32 * x.nbytes
    assert used["none"] > used["dots_saveable"] > used["nothing_saveable"]
    assert used["none"] > used["nothing_saveable"] + 0.9 * inputs


# One needs names, for which there is no argument.
@pytest.mark.parametrize("policy", ["some", "save_only_these_names"])
def test_an_unknown_policy_is_refused_before_anything_runs(policy):
    message = f"`remat` must be one of none, .*nothing_saveable.*, but is {policy!r}"
    with pytest.raises(GraphError, match=message):
        compile(network(), {"x": (12, 5)}, remat=policy)


@pytest.mark.slow
def test_equal_nodes_are_compiled_once():
    def programs(layers, **named):
        graph = Graph()
        for number in range(layers):
            # Nodes of an inner graph count as those of the graph itself.
            part = Linear(11) if number % 2 else Graph() | Linear(11)
            name = {"name": f"layer{number}"}
            wire = f"h{number - 1}" if number else "x"
            terminal = part.terminals[0]
            graph |= part.connect(**{terminal: wire}, output=f"h{number}", **name)
        with count_compiles() as count:
            program = compile(graph, {"x": (3, 11)}, KEY, **named)
            program(x=np.ones((3, 11)))
        return count.names, program.params

    names, few = programs(4)
    # The keys of nodes, their arrays, and the program itself.
    assert names.count("jit(draw)") == 1
    assert len(names) <= 5
    # What draws is there already; what runs is another program.
    twice, many = programs(24)
    assert len(twice) == 1
    # Of another dtype are the arrays, and all wires with them.
    twice, _ = programs(48, backend=Backend("bfloat16"))
    assert len(twice) == 2
    for name, value in few.items():
        assert jnp.array_equal(value, many[name])
    weights = jnp.stack([v for name, v in many.items() if "weight" in name])
    assert len(jnp.unique(weights[:, 0, 0])) == 24


@pytest.mark.slow
def test_layers_of_equal_sizes_are_drawn_as_those_of_equinox():
    program = compile(MLP(6, (6, 6, 9, 6), 6), {"input": (2, 6)}, KEY)
    (name,) = program.wiring.names
    key = jax.random.fold_in(KEY, zlib.crc32(name.encode()))
    sizes = (6, 6, 6, 9, 6, 6)
    keys = jax.random.split(key, 5)
    for number, pair in enumerate(itertools.pairwise(sizes)):
        wanted = eqx.nn.Linear(*pair, key=keys[number])
        found = program.params[f"mlp.layers.{number}.weight"]
        assert jnp.array_equal(found, wanted.weight)


def test_arrays_of_a_module_are_copied_not_drawn():
    module = eqx.filter_vmap(eqx.nn.Linear(3, 2, key=KEY))
    program = compile(op(module, inputs=("x",), label="held"), {"x": (4, 3)})
    (weight,) = (v for name, v in program.params.items() if "weight" in name)
    assert jnp.array_equal(weight, module._fun.weight)
    weight.delete()
    assert not module._fun.weight.is_deleted()
