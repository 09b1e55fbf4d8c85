"""How fast the error of each integrator falls with its step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.grid import Cubic, CubicHermite, Linear
from physax.particles import (
    RK2,
    RK4,
    Carried,
    Diffusivity,
    Euler,
    EulerMaruyama,
    Milstein,
    RK4ThreeEighths,
    StochasticHeun,
    track,
)

from . import flows


pytestmark = pytest.mark.x64

SOLVERS = [RK4(), RK2(), Euler(), RK4ThreeEighths()]


def rotation(t, x):
    del t
    return jnp.stack([-x[1], x[0]])


def growing(t, x):
    """x = (x0 + 1) exp(sin(t)) - 1: depends on time, and not linearly."""
    return (x + 1) * jnp.cos(t)


def observed_order(velocity, seeds, exact, end, solver, steps):
    errors = []
    for count in (steps, 2 * steps):
        times = np.array([0.0, end])
        last = track(velocity, seeds, times, steps=count, solver=solver).positions[-1]
        errors.append(np.abs(last - exact).max())
    return np.log2(errors[0] / errors[1])


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
def test_order_in_solid_rotation(solver):
    seeds, angle = np.array([[1.0, 0.0], [0.3, -0.4]]), 2.0
    c, s = np.cos(angle), np.sin(angle)
    exact = seeds @ np.array([[c, s], [-s, c]])
    steps = 400 if solver.order == 1 else 20
    order = observed_order(rotation, seeds, exact, angle, solver, steps)
    assert abs(order - solver.order) < 0.1


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
def test_order_where_the_velocity_depends_on_time(solver):
    seeds, end = np.array([[0.2], [1.5]]), 1.5
    exact = (seeds + 1) * np.exp(np.sin(end)) - 1
    steps = 200 if solver.order == 1 else 40
    order = observed_order(growing, seeds, exact, end, solver, steps)
    assert abs(order - solver.order) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "least", "most"),
    [(Linear(), 1.95, 2.05), (Cubic(), 3.9, 4.1), (CubicHermite(), 3.0, 4.0)],
    ids=["linear", "cubic", "hermite"],
)
def test_order_of_the_whole_under_refinement_of_the_grid(method, least, most):
    # Nodes, instants and steps grow together.
    seeds, last = flows.seeds(100), 4.0
    exact = track(flows.gyre, seeds, [0, last], steps=320).positions[-1]
    errors = []
    for cells in (32, 64):
        field = flows.gridded_gyre(
            cells + 1, cells + 1, last, method=method, time_method=method
        )
        found = track(field, seeds, [0, last], steps=2 * cells).positions[-1]
        errors.append(jnp.sqrt(jnp.mean((found - exact) ** 2)))
    assert least < np.log2(errors[0] / errors[1]) < most


PATHS, FINEST = 4000, 256
RATE = 0.05


def geometric(t, x):
    """With K = r x^2 the noise is sqrt(2 r) x dW: geometric Brownian motion."""
    del t
    return RATE * x**2


@pytest.fixture(scope="module")
def brownian():
    """Increments of paths over one second, and where the exact solution ends."""
    noise = np.random.default_rng(7).normal(size=(FINEST, PATHS)) / np.sqrt(FINEST)
    total = noise.sum(axis=0)
    # dX = 2 r X dt + sqrt(2 r) X dW, so that ln X has the drift 2 r - r.
    return noise, np.exp(RATE + np.sqrt(2 * RATE) * total)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("solver", "order"),
    [(EulerMaruyama(), 0.5), (Milstein(), 1), (StochasticHeun(), 1)],
)
def test_strong_order_with_a_diffusivity_that_varies(brownian, solver, order):
    noise, exact = brownian
    motion = Carried(lambda t, x: jnp.zeros_like(x))

    @jax.jit
    def march(kicks, h):
        def step(x, kick):
            return jax.vmap(
                lambda x, kick: solver.step(
                    motion, geometric, jnp.zeros(()), h, x[None], (), kick[None]
                ).y[0]
            )(x, kick), None

        return jax.lax.scan(step, jnp.ones(PATHS), kicks)[0]

    errors = []
    for steps in (16, 64):
        h = 1 / steps
        kicks = noise.reshape(steps, -1, PATHS).sum(axis=1) / np.sqrt(h)
        errors.append(
            np.mean(np.abs(march(jnp.asarray(kicks), jnp.asarray(h)) - exact))
        )
    assert abs(np.log2(errors[0] / errors[1]) / 2 - order) < 0.15


def test_heun_is_of_second_order_without_noise():
    motion = Carried(growing)
    still = Diffusivity(0.0)

    @jax.jit
    def error(h):
        def step(n, x):
            made = StochasticHeun().step(motion, still, n * h, h, x, (), jnp.zeros(1))
            return made.y

        last = jax.lax.fori_loop(0, jnp.rint(1 / h).astype(int), step, jnp.ones(1))
        return jnp.abs(last[0] - (2 * jnp.exp(jnp.sin(1.0)) - 1))

    assert abs(np.log2(error(1 / 100) / error(1 / 200)) - 2) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("solver", [EulerMaruyama(), Milstein(), StochasticHeun()])
def test_backward_in_time_particles_spread_as_they_do_forward(solver):
    def last(times):
        return track(
            lambda t, x: 0 * x,
            np.linspace(0.5, 2, 5)[:, None],
            times,
            steps=4,
            solver=solver,
            diffusivity=geometric,
            key=jax.random.key(1),
        ).positions[-1]

    times = np.array([0.0, 1.0])
    assert np.allclose(last(times), last(-times), rtol=1e-13)


def varying(t, x):
    return 1 + x**2


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(
    ("solver", "shape"),
    [
        (Milstein(), varying),
        (StochasticHeun(), varying),
        (EulerMaruyama(), varying),
        (Milstein(), None),
    ],
)
def test_particles_that_wait_spoil_no_derivative(solver, shape):
    def last(p):
        strength, angular, shift, released = p
        tracks = track(
            lambda t, x: angular * rotation(t, x),
            shift + jnp.array([[0.5, 0.4], [0.3, 0.7], [0.1, 0.2], [0.6, 0.6]]),
            np.linspace(0, 1, 5),
            # At once, after a whole step, within one, and never.
            release=jnp.array([0.0, 0.25, 0.0, 2.0]).at[2].set(released),
            solver=solver,
            diffusivity=strength
            if shape is None
            else lambda t, x: strength * shape(t, x),
            key=jax.random.key(0),
        )
        return jnp.sum(tracks.positions[-1] * jnp.arange(1.0, 9.0).reshape(4, 2))

    def derivatives(p):
        return jax.jvp(jax.value_and_grad(last), (p,), (direction,))

    at, direction, step = np.array([0.01, 0.3, 0.0, 0.3]), np.arange(1.0, 5.0), 1e-5
    around = np.concatenate([[at], at + step * np.eye(4), at - step * np.eye(4)])
    (value, slope), (along, bend) = jax.jit(jax.vmap(derivatives))(around)
    expected = (value[1:5] - value[5:]) / (2 * step)
    np.testing.assert_allclose(slope[0], expected, rtol=1e-6)
    np.testing.assert_allclose(along[0], slope[0] @ direction, rtol=1e-10)
    expected = direction @ (slope[1:5] - slope[5:]) / (2 * step)
    np.testing.assert_allclose(bend[0], expected, rtol=1e-6)
