"""A tracker, a fit and a diffrax solve as nodes, differentiated through."""

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import graph
from physax.fit import LeastSquares, least_squares
from physax.particles import GriddedField, track


pytestmark = pytest.mark.x64

AXIS = np.linspace(-2, 2, 21)
TURN = np.stack(np.broadcast_arrays(-AXIS[None, :], AXIS[:, None]), axis=-1)


def carried(samples, seeds):
    field = GriddedField(samples, (AXIS, AXIS))
    return track(field, seeds, [0.0, 1.0], steps=40).positions[-1]


def slope_of(program, name, step):
    """The derivative of the loss by one parameter, forward and by its gradient."""
    _, gradients = program.evaluate(program.params, {}, {"loss": True})

    def loss(t):
        moved = program.params | {name: program.params[name] + t}
        return program.evaluate(moved, {})["loss"]

    return gradients[name], (loss(step) - loss(-step)) / (2 * step)


@pytest.mark.slow
def test_a_tracker_is_a_node():
    model = graph.Graph() | graph.op("multiply").connect(
        x="turn", y="rate", output="samples"
    )
    model |= graph.op(carried).connect(seeds="seeds", samples="samples", output="ends")
    model += graph.op(lambda x: jnp.sum(x[:, 0] ** 2), label="loss")
    program = graph.compile(
        model,
        backend=graph.Backend("float64"),
        trainable={"rate": 1.3},
        constants={"turn": TURN, "seeds": [[1.0, 0.0], [0.5, 0.2]]},
    )
    found, expected = slope_of(program, "rate", 1e-5)
    assert jnp.allclose(found, expected, rtol=1e-7)
    # A rotation by 1.3: the first comes to (cos 1.3, sin 1.3).
    value = np.cos(1.3) ** 2 + (0.5 * np.cos(1.3) - 0.2 * np.sin(1.3)) ** 2
    assert jnp.allclose(program()["loss"], value, rtol=1e-5)


def test_a_fit_is_a_node():
    x = np.linspace(0, 3, 30)

    def decay(y):
        def residual(p, data):
            return p[0] * jnp.exp(-p[1] * data[0]) - data[1]

        return least_squares(
            LeastSquares(residual, np.array([1.0, 1.0]), (x, y))
        ).values

    model = graph.Graph() | graph.op(
        lambda rate: 2 * jnp.exp(-rate * x), label="signal"
    ).connect(output="y")
    model |= graph.op(decay).connect(y="y", output="found")
    model += graph.op(lambda p: p[1] ** 2, label="loss")
    program = graph.compile(
        model, backend=graph.Backend("float64"), trainable={"rate": 0.8}
    )
    found, expected = slope_of(program, "rate", 1e-5)
    assert jnp.allclose(program()["loss"], 0.64, rtol=1e-8, atol=0)
    assert jnp.allclose(found, 1.6, rtol=1e-5)
    assert jnp.allclose(expected, 1.6, rtol=1e-5)


@pytest.mark.slow
def test_a_diffrax_solve_is_a_node():
    def swing(stiffness):
        term = diffrax.ODETerm(lambda t, y, k: jnp.array([y[1], -k * y[0]]))
        start = jnp.array([1.0, 0.0])
        done = diffrax.diffeqsolve(
            term, diffrax.Tsit5(), 0, 1, 0.01, start, args=stiffness
        )
        return done.ys[-1]

    model = graph.Graph() | graph.op(swing).connect(output="end")
    model += graph.op(lambda y: y[0], label="loss")
    program = graph.compile(
        model, backend=graph.Backend("float64"), trainable={"stiffness": 4.0}
    )
    outputs, gradients = program.evaluate(program.params, {}, {"loss": True})
    # cos(sqrt(k)), and its derivative by k at 4.
    assert jnp.allclose(outputs["loss"], np.cos(2.0), atol=1e-9)
    assert jnp.allclose(gradients["stiffness"], -np.sin(2.0) / 4, atol=1e-8)
