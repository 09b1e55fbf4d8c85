"""The examples of networks in front of solvers, at a small size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples import neural_design, neural_velocity
from examples.neural_velocity import random_flow, released
from physax import io
from physax.units import NANO


def printed_number(text, before):
    """The number that follows some words."""
    return float(text.split(before)[1].split()[0].rstrip("%,;"))


@pytest.mark.f32
@pytest.mark.slow
def test_painted_and_pixelled_lens_gather_light(tmp_path, capsys):
    neural_design.main(["--small", "--output", str(tmp_path)])
    made = io.load_npz(tmp_path / "neural_design.npz")
    for name in neural_design.NAMES:
        course, solid = made[f"{name}_course"], made[f"{name}_solid"]
        assert course.shape == made[f"{name}_grey"].shape == (10,)
        assert course.max() > 2 * course[0]
        assert min(made[f"{name}_gain"]) > 1.5
        assert np.array_equal(solid, solid[::-1])
        # Cells at an interface remain; at the start all are nearly one half.
        assert made[f"{name}_grey"][-1] < 0.3 < 0.8 < made[f"{name}_grey"][0]
    assert (tmp_path / "neural_design.png").stat().st_size > 1000
    assert "network, seed 0: gain" in capsys.readouterr().out


@pytest.mark.x64
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::physax.PhysaxWarning")
def test_gradient_by_the_weights_passes_the_taylor_test():
    lens = neural_design.small_lens(120 * NANO)
    program = neural_design.painted(lens, 0, width=8)
    params, direction = program.params, program.randomize_params(jax.random.key(5))
    outputs, gradients = program.evaluate(params, {"beta": 8.0}, {"gain": True})
    slope = sum(jnp.vdot(gradients[name], direction[name]) for name in params)

    def gain(t):
        moved = {name: params[name] + t * direction[name] for name in params}
        # As above: without gradients another program would be compiled.
        return program.evaluate(moved, {"beta": 8.0}, {"gain": True})[0]["gain"]

    steps = (4e-3, 2e-3, 1e-3)
    rests = [abs(gain(h) - outputs["gain"] - h * slope) for h in steps]
    orders = np.log2(np.array(rests[:-1]) / np.array(rests[1:]))
    assert np.all(np.abs(orders - 2) < 0.05)
    # Not by chance: the slope is not small beside what it leaves.
    assert rests[-1] < 0.05 * steps[-1] * abs(slope)


@pytest.mark.slow
@pytest.mark.x64
def test_learned_velocity_has_no_divergence_and_keeps_to_the_basin():
    flow = random_flow()
    places = jax.random.uniform(jax.random.key(1), (50, 2)) * jnp.array([2.0, 1.0])
    slopes = jax.jit(jax.vmap(jax.jacfwd(lambda x: flow(3.0, x))))(places)
    divergence = jnp.trace(slopes, axis1=1, axis2=2)
    assert jnp.max(jnp.abs(slopes)) > 0.1
    assert jnp.max(jnp.abs(divergence)) < 1e-14
    across = places.at[:, 0].set(2.0), places.at[:, 1].set(0.0)
    velocity = jax.jit(jax.vmap(lambda x: flow(3.0, x)))
    for axis, coast in enumerate(across):
        assert jnp.max(jnp.abs(velocity(coast)[:, axis])) < 1e-15


@pytest.mark.x64
@pytest.mark.slow
def test_gradient_through_the_tracker_is_that_of_finite_differences():
    seen, flow = released(4, 0), random_flow(8)
    shifts = jax.random.normal(jax.random.key(2), (5, 4, 2))
    x = {"weights": flow.weights, "shifts": shifts}
    keys = jax.random.split(jax.random.key(3), len(jax.tree.leaves(x)))
    keys = jax.tree.unflatten(jax.tree.structure(x), list(keys))
    direction = jax.tree.map(lambda k, v: jax.random.normal(k, v.shape), keys, x)

    @jax.jit
    def misfit(t):
        moved = jax.tree.map(lambda v, d: v + t * d, x, direction)
        return neural_velocity.tracked_misfit(moved, flow.network, seen)

    # Of fourth order, so that neither rounding nor what is left out is near 1e-6.
    h = 1e-3
    near, far = (misfit(k * h) - misfit(-k * h) for k in (1, 2))
    slope = (8 * near - far) / (12 * h)
    assert jnp.allclose(jax.grad(misfit)(0.0), slope, rtol=1e-6)


@pytest.mark.f32
@pytest.mark.slow
def test_network_predicts_drifters_better_than_a_polynomial(tmp_path, capsys):
    neural_velocity.main(["--small", "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    network, polynomial = (
        printed.split(neural_velocity.TITLES[name])[1]
        for name in ("tracked", "polynomial")
    )
    found, baseline = (
        [
            printed_number(text, words)
            for words in ("velocity within ", "fitted off by ")
        ]
        for text in (network, polynomial)
    )
    # Percent of the velocity, and km after a day, of the 27 that a day takes a drifter
    # at the mean speed.
    assert found[0] < 14 < 1.5 * 14 < baseline[0]
    assert found[1] < 2.7 < baseline[1]
    assert (tmp_path / "neural_velocity.png").stat().st_size > 1000
