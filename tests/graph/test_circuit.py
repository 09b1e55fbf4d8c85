"""Circuits against the formulas of textbooks, which sum the reflections by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.graph import (
    Circuit,
    Graph,
    GraphError,
    Scatterer,
    compile,
    coupler,
    from_sax,
    joined,
    op,
    to_sax,
    waveguide,
)


pytestmark = pytest.mark.x64

PHASE = np.linspace(0, 4 * np.pi, 101)


def mirror(reflection):
    """A lossless symmetric mirror of a given power reflection."""
    r = jnp.sqrt(reflection) + 0j
    t = 1j * jnp.sqrt(1 - reflection)
    return Scatterer(jnp.array([[r, t], [t, r]]), ("a", "b"))


@pytest.mark.slow
def test_two_mirrors_are_an_etalon():
    parts = {"first": mirror(0.7), "gap": waveguide(PHASE), "second": mirror(0.7)}
    joins = {"first.b": "gap.in", "gap.out": "second.a"}
    etalon = joined(parts, joins, {"west": "first.a", "east": "second.b"})
    # Airy's formula with the coefficient of finesse 4 R / (1 - R)^2.
    expected = 1 / (1 + 4 * 0.7 / 0.3**2 * np.sin(PHASE) ** 2)
    through = jnp.abs(etalon("east", "west")) ** 2
    assert jnp.allclose(through, expected, atol=1e-12)
    back = jnp.abs(etalon("west", "west")) ** 2
    assert jnp.allclose(through + back, 1, atol=1e-12)


@pytest.mark.slow
def test_an_interferometer_splits_by_the_difference_of_phase():
    half = coupler(0.5)
    parts = {"split": half, "arm": waveguide(PHASE), "join": half}
    joins = {
        "split.out0": "arm.in",
        "arm.out": "join.in0",
        "split.out1": "join.in1",
    }
    ports = {"in": "split.in0", "bar": "join.out0", "cross": "join.out1"}
    mzi = joined(parts, joins, ports)
    bar = jnp.abs(mzi("bar", "in")) ** 2
    assert jnp.allclose(bar, np.sin(PHASE / 2) ** 2, atol=1e-12)
    cross = jnp.abs(mzi("cross", "in")) ** 2
    assert jnp.allclose(cross, np.cos(PHASE / 2) ** 2, atol=1e-12)


def test_a_ring_and_its_gradient_by_the_coupling():
    loss = 0.95

    def through(power):
        parts = {"bus": coupler(power), "ring": waveguide(PHASE, loss)}
        joins = {"bus.out1": "ring.in", "ring.out": "bus.in1"}
        ring = joined(parts, joins, {"in": "bus.in0", "out": "bus.out0"})
        return ring("out", "in")

    # Yariv, Electronics Letters 36, 321 (2000): (t - a exp) / (1 - t a exp).
    t = np.sqrt(1 - 0.2)
    turn = loss * np.exp(1j * PHASE)
    assert jnp.allclose(through(0.2), (t - turn) / (1 - t * turn), atol=1e-12)
    # Critical coupling: nothing passes where t equals the amplitude of a turn.
    assert jnp.abs(through(1 - loss**2)[0]) < 1e-7

    def power(coupling):
        return jnp.sum(jnp.abs(through(coupling)) ** 2)

    slope = (power(0.2 + 1e-6) - power(0.2 - 1e-6)) / 2e-6
    assert jnp.allclose(jax.grad(power)(0.2), slope, rtol=1e-8)


def test_a_lossless_circuit_keeps_the_power_of_any_waves():
    rng = np.random.default_rng(4)

    def unitary(ports):
        m = rng.normal(size=(5, len(ports), len(ports), 2)) @ [1, 1j]
        return Scatterer(jnp.linalg.qr(m)[0], ports)

    parts = {name: unitary(("p", "q", "r")) for name in "abc"}
    joins = {"a.p": "b.p", "b.q": "c.q", "c.r": "a.r"}
    values = joined(parts, joins, {"u": "a.q", "v": "b.r", "w": "c.p"}).values
    product = values @ jnp.conj(jnp.swapaxes(values, -1, -2))
    assert jnp.allclose(product, jnp.eye(3), atol=1e-10)


def test_ports_that_are_left_absorb():
    parts = {"split": coupler(0.25)}
    (value,) = joined(parts, {}, {"in": "split.in0"}).values.ravel()
    assert value == 0


def test_dictionaries_of_sax_go_both_ways():
    part = coupler(np.array([0.1, 0.4]))
    given = to_sax(part)
    # By (input, output): light from in0 crosses to out1 with i times the root.
    assert jnp.allclose(given["in0", "out1"], 1j * jnp.sqrt(jnp.array([0.1, 0.4])))
    back = from_sax(given)
    assert back.ports == part.ports
    assert jnp.array_equal(back.values, part.values)
    isolator = from_sax({("in", "out"): 0.9})
    assert isolator("out", "in") == 0.9
    assert isolator("in", "out") == 0


def test_a_circuit_is_a_node_and_is_designed_end_to_end():
    ring = Circuit(
        ("bus", "loop"),
        {"bus.out1": "loop.in", "loop.out": "bus.in1"},
        {"in": "bus.in0", "out": "bus.out0"},
        label="ring",
    )
    graph = Graph() | op(coupler).connect(coupling="coupling", output="bus")
    graph |= op(waveguide, inputs=("phase", "amplitude"), label="loop").connect(
        output="loop"
    )
    graph |= ring.connect(bus="bus", loop="loop", output="device")
    graph |= op(lambda s: jnp.abs(s("out", "in")) ** 2, label="power").connect(
        s="device", output="dip"
    )
    program = compile(
        graph, trainable={"coupling": 0.3}, constants={"phase": 0.0, "amplitude": 0.9},
        discard=("device",) if "device" in graph.results else (),
    )  # fmt: skip
    params = program.params
    for _ in range(300):
        _, gradients = program.evaluate(params, {}, {"dip": True})
        params = {"coupling": params["coupling"] - 0.05 * gradients["coupling"]}
    assert jnp.allclose(params["coupling"], 1 - 0.9**2, atol=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scatterer(jnp.zeros((2, 3)) + 0j, ("a", "b")), r"shape \(2, 3\)"),
        (lambda: Scatterer(jnp.zeros((2, 2)) + 0j, ("a", "a")), "different names"),
        (lambda: mirror(0.5)("c", "a"), "not 'c'"),
        (lambda: Circuit(("m",), {"m.a": "m.b"}, {"in": "m.a"}), "'m.a' is twice"),
        (lambda: Circuit(("m",), {}, {"in": "n.a"}), "such as 'm.in', but is 'n.a'"),
        (lambda: joined({"m": mirror(0.5)}, {}, {"in": "m.c"}), "m.a, m.b.*'m.c'"),
    ],
)
def test_circuits_that_can_not_be(make, message):
    with pytest.raises(GraphError, match=message):
        make()


def test_a_scatterer_takes_a_matrix_of_real_numbers():
    swap = Scatterer([[0, 1], [1, 0]], ("in", "out"))
    assert swap.values.dtype == complex
    assert swap("out", "in") == 1


def test_sweeps_that_do_not_fit_are_named():
    parts = {"a": waveguide(PHASE), "b": waveguide(PHASE[:4])}
    with pytest.raises(
        GraphError, match=r"broadcast, .* \(101,\) of 'a', \(4,\) of 'b'"
    ):
        joined(parts, {"a.out": "b.in"}, {"in": "a.in", "out": "b.out"})
    with pytest.raises(GraphError, match=r"broadcast, .* \(4,\) of \('i', 'o'\)"):
        from_sax({("o", "i"): PHASE, ("i", "o"): PHASE[:4]})
    with pytest.raises(GraphError, match="`parameters` must be a dictionary by pairs"):
        from_sax({})
