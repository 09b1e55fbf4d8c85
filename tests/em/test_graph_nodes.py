"""Solvers as nodes of a graph: one gradient through the whole chain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em, graph
from physax.grid import Grid


pytestmark = [pytest.mark.x64, pytest.mark.slow]

CELL = 50e-9
SHAPE = (60, 44)
WAVE = 1.55e-6
X = np.arange(SHAPE[0])[:, None]
Y = np.arange(SHAPE[1])[None, :]
GUIDE = np.where(abs(Y - 21.5) < 4, 6.0, 1.0) * np.ones(SHAPE)
INSIDE = (abs(X - 29.5) < 6) & (abs(Y - 21.5) < 6)
PORTS = {
    "left": em.Port((16 * CELL, 22 * CELL), 28 * CELL, "+x", offset=3 * CELL),
    "right": em.Port((44 * CELL, 22 * CELL), 28 * CELL, "-x", offset=3 * CELL),
}
PLACES = np.stack(np.broadcast_arrays((X - 29.5) / 6, (Y - 21.5) / 6), axis=-1)


def device(density):
    """The parts of a circuit: S-parameters of the guide with a designed block."""
    core = 1 + 5 * jax.nn.sigmoid(density[..., 0])
    eps = jnp.where(INSIDE, core, GUIDE)
    sim = em.Simulation(
        Grid.uniform(SHAPE, CELL),
        em.Medium(eps),
        em.Boundaries.all(em.CPML(8)),
        polarisation="Ez",
        steps=700,
    )
    return em.scatterer(em.s_parameters(sim, PORTS, WAVE))


def through(circuit):
    return jnp.abs(circuit("out", "in")[0]) ** 2


def chain():
    """Network -> permittivity -> FDTD -> S-parameters -> circuit -> loss."""
    model = graph.Graph() | graph.MLP(2, (8,), 1, "tanh").connect(
        input="places", output="density"
    )
    model |= graph.op(device).connect(density="density", output="block")
    model |= graph.op(graph.waveguide, inputs=("phase",), label="gap").connect(
        output="gap"
    )
    etalon = graph.Circuit(
        ("first", "gap", "second"),
        {"first.right": "gap.in", "gap.out": "second.left"},
        {"in": "first.left", "out": "second.right"},
    )
    model |= etalon.connect(first="block", gap="gap", second="block", output="etalon")
    model |= graph.op(through, label="loss").connect(circuit="etalon", output="loss")
    return graph.compile(
        model,
        key=jax.random.key(3),
        backend=graph.Backend("float64"),
        constants={"places": PLACES},
        trainable={"phase": 0.7},
    )


def test_the_gradient_of_the_whole_chain_passes_the_taylor_test():
    program = chain()
    params = program.params
    direction = {
        **program.randomize_params(jax.random.key(5)),
        "phase": jnp.array(0.4),
    }
    outputs, gradients = program.evaluate(params, {}, {"loss": True})
    assert 0.01 < outputs["loss"] < 1
    slope = sum(jnp.vdot(gradients[name], direction[name]) for name in params)

    def loss(t):
        moved = {name: params[name] + t * direction[name] for name in params}
        # The program of the gradient, which is compiled already.
        return program.evaluate(moved, {}, {"loss": True})[0]["loss"]

    steps = (4e-3, 2e-3, 1e-3)
    rests = [abs(loss(h) - outputs["loss"] - h * slope) for h in steps]
    orders = np.log2(np.array(rests[:-1]) / np.array(rests[1:]))
    assert np.all(np.abs(orders - 2) < 0.05)
    # Not by chance: the slope is not small beside what it leaves.
    assert rests[-1] < 0.05 * steps[-1] * abs(slope)
