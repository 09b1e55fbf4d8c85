"""Gradients of flow maps and exponents of Lyapunov."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.particles import (
    Absorb,
    Box,
    MaxeyRiley,
    Obstacle,
    Outlet,
    ParticleStatus,
    Periodic,
    Reflect,
    cauchy_green,
    flow_map,
    flow_map_gradient,
    flow_map_gradient_on_grid,
    ftle,
    ftle_on_grid,
    track,
)


X64 = jnp.result_type(float) == jnp.float64
TIGHT = 1e-9 if X64 else 1e-5
TIMES = np.array([0.0, 0.5, 1.0])
SEEDS = np.array([[0.3, 0.4], [-1.2, 0.7], [0.0, 0.0]])


def saddle(t, x):
    del t
    return x * jnp.array([1.0, -1.0])


def swirl(t, x):
    """Cells that grow stronger with time; free of divergence."""
    a, b = x
    strength = 1 + 0.2 * t
    return strength * jnp.stack([-jnp.sin(a) * jnp.cos(b), jnp.cos(a) * jnp.sin(b)])


def test_gradients_are_those_of_the_tracks_and_keep_area():
    found = flow_map(swirl, SEEDS, TIMES, steps=40)

    def last(x):
        return track(swirl, x[None], TIMES, steps=40).positions[-1, 0]

    expected = jax.jit(jax.vmap(jax.jacfwd(last)))(jnp.asarray(SEEDS))
    # Differentiated steps are the steps of the derivative.
    assert np.allclose(found.gradient[-1], expected, atol=1e-13 if X64 else 2e-6)
    assert np.allclose(jnp.linalg.det(found.gradient), 1, atol=1e-8 if X64 else 1e-5)
    assert np.allclose(found.gradient[0], np.eye(2))
    assert found.positions.dtype == found.gradient.dtype == jnp.result_type(float)


def test_a_saddle_stretches_at_its_rate_forward_and_backward():
    gradient = flow_map_gradient(saddle, SEEDS, TIMES, steps=40)
    assert np.allclose(gradient, np.diag(np.exp([1, -1])), atol=TIGHT)
    assert np.allclose(ftle(gradient, 1.0), 1, atol=TIGHT)
    assert np.allclose(
        cauchy_green(gradient), np.diag(np.exp([2, -2])), atol=10 * TIGHT
    )
    back = flow_map_gradient(saddle, SEEDS, -TIMES, steps=40)
    assert np.allclose(ftle(back, -1.0), 1, atol=TIGHT)


@pytest.mark.slow
def test_particles_that_end_have_no_gradient():
    box = Box(np.full(2, -2.0), np.full(2, 2.0), [Outlet(), Periodic()])
    seeds = np.array([[1.5, 0.3], [0.3, 0.3]])
    found = flow_map(saddle, seeds, TIMES, steps=40, boundary=box)
    assert found.status.tolist() == [ParticleStatus.EXITED, ParticleStatus.ALIVE]
    assert np.all(np.isnan(found.gradient[:, 0]))
    assert np.allclose(found.positions[-1, 0, 0], 2.0, atol=TIGHT)
    assert np.allclose(found.gradient[-1, 1], np.diag(np.exp([1, -1])), atol=TIGHT)


def test_differences_on_a_grid_are_divided_by_the_distance_once():
    # A linear map: exact, on graded axes and at their ends too.
    xs, ys = np.array([-1.0, -0.5, 0.2, 0.3, 1.0]), np.linspace(0.5, 2, 4)
    grid = np.stack(np.meshgrid(xs, ys, indexing="ij"), -1)
    end = grid * np.exp([1.0, -1.0])
    found = jax.jit(ftle_on_grid)(end, [xs, ys], 1.0)
    assert found.shape == (5, 4)
    assert np.allclose(found, 1, atol=10 * TIGHT)


@pytest.mark.x64
def test_differences_on_a_grid_have_the_second_order():
    differences = jax.jit(flow_map_gradient_on_grid)

    def error(nodes):
        xs, ys = np.linspace(0.2, 1.2, nodes) ** 2, np.linspace(0.3, 1.1, nodes)
        a, b = np.meshgrid(xs, ys, indexing="ij")
        places = np.stack([np.sin(a + 2 * b), np.cos(a * b)], -1)
        first = np.stack([np.cos(a + 2 * b), 2 * np.cos(a + 2 * b)], -1)
        second = np.stack([-b * np.sin(a * b), -a * np.sin(a * b)], -1)
        exact = np.stack([first, second], -2)
        return np.abs(differences(places, [xs, ys]) - exact).max()

    assert 1.85 < np.log2(error(41) / error(81)) < 2.15


@pytest.mark.x64
def test_ftle_has_derivatives_also_where_stretches_coincide():
    assert np.allclose(ftle(jnp.eye(2), 2.0), 0)
    slope = jax.jit(jax.grad(lambda f: ftle(f, 2.0)))
    assert np.all(np.isfinite(slope(jnp.eye(2))))
    assert np.all(np.isfinite(slope(jnp.eye(3))))
    f = jnp.array([[1.2, 0.7], [-0.1, 0.9]])
    left, values, right = np.linalg.svd(f)
    # The derivative of the largest singular value is the product of its vectors.
    expected = np.outer(left[:, 0], right[0]) / values[0] / 2
    assert np.allclose(slope(f), expected, rtol=1e-12, atol=0)
    bend = jax.jit(jax.jacfwd(slope))(f)[0, 1]
    step = jnp.zeros((2, 2)).at[0, 1].set(1e-5)
    assert np.allclose(bend, (slope(f + step) - slope(f - step)) / 2e-5, atol=1e-9)


@pytest.mark.slow
@pytest.mark.x64
def test_a_parameter_of_the_flow_is_found_through_the_exponent():
    def stretch(rate):
        gradient = flow_map_gradient(
            lambda t, x: rate * saddle(t, x), SEEDS[:1], TIMES, steps=20
        )
        return ftle(gradient, 1.0)[0]

    assert np.allclose(jax.jacfwd(stretch)(0.8), 1, atol=1e-6)


def test_what_has_no_gradient_of_a_flow_map_is_refused():
    with pytest.raises(
        ArgumentError, match="`velocity` must be a field or.*MaxeyRiley"
    ):
        flow_map(MaxeyRiley(saddle, 1.0), SEEDS, TIMES)
    with pytest.raises(
        ArgumentError, match="`diffusivity` cannot be given for the gra"
    ):
        flow_map(saddle, SEEDS, TIMES, diffusivity=1.0, key=jax.random.key(0))


def test_walls_that_turn_particles_around_are_refused():
    box = Box(np.full(2, -2.0), np.full(2, 2.0), [Absorb(), Reflect()])
    with pytest.raises(ArgumentError, match=r"`boundary` must have faces.*Reflect\(\)"):
        flow_map(saddle, SEEDS, TIMES, boundary=box)


def test_walls_that_are_no_box_are_refused():
    with pytest.raises(
        ArgumentError, match="`boundary` must be a `Box` for the gradien"
    ):
        flow_map(saddle, SEEDS, TIMES, boundary=Obstacle(jnp.sum, Absorb()))


def test_seeds_outside_the_box_are_refused():
    box = Box(np.zeros(2), np.ones(2), Absorb())
    with pytest.raises(ArgumentError, match="1 of 3 do not; number 1 is at"):
        flow_map(saddle, SEEDS, TIMES, boundary=box)


def test_axes_that_do_not_fit_are_refused():
    axes = [np.arange(4.0), np.arange(3.0)]
    with pytest.raises(
        ArgumentError,
        match=r"`positions` must have an axis for each.*"
        r"\(4, 3, 2\), but have shape \(3, 4, 2\)",
    ):
        ftle_on_grid(np.zeros((3, 4, 2)), axes, 1.0)
    with pytest.raises(
        ArgumentError, match=r"`axes\[1\]` must have at least 3 nodes, b"
    ):
        ftle_on_grid(np.zeros((4, 2, 2)), [axes[0], np.arange(2.0)], 1.0)
    with pytest.raises(ArgumentError, match=r"`axes\[1\]` must increase, .* is -1"):
        ftle_on_grid(np.zeros((4, 3, 2)), [axes[0], -axes[1]], 1.0)
