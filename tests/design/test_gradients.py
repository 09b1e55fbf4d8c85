"""Gradients against finite differences, and the order of what a gradient leaves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.design import (
    ConicFilter,
    FixedRegions,
    GaussianFilter,
    Mirror,
    Renormalise,
    Transposition,
    extrude,
    hole_penalty,
    island_penalty,
    length_constraints,
    robust_densities,
    simp_material,
    soft_max,
    subpixel_projection,
    symmetrise,
    tanh_projection,
)


pytestmark = pytest.mark.x64

INFINITY = float("inf")


def smooth(shape=(20, 20), seed=0):
    """Filtered noise, stretched so that it crosses one half in many places."""
    noise = jnp.asarray(np.random.default_rng(seed).random(shape), float)
    filtered = ConicFilter(4.0, 1.0)(noise)
    return (filtered - filtered.min()) / (filtered.max() - filtered.min())


def weigh(values, seed=7):
    """A number that depends on each value in its own way."""
    weights = np.random.default_rng(seed).standard_normal(values.shape)
    return jnp.sum(jnp.asarray(weights) * values)


MASK = np.zeros((20, 20), bool)
MASK[3:5, 4:9] = True


def pipeline(x):
    """All that stands between parameters and permittivity."""
    x = FixedRegions(solid=MASK)(symmetrise(x, Mirror(0), Transposition()))
    x = ConicFilter(3.0, 1.0, Renormalise())(x)
    return simp_material(subpixel_projection(x, 12.0), 2.0, 12.0)


def robust(x):
    family = robust_densities(x, 8.0, projection=tanh_projection)
    return soft_max(jnp.stack([weigh(rho, k) for k, rho in enumerate(family)]), 1.0)


SHAPES = [(40,), (20, 20), (7, 8, 9)]
CASES = {
    **{
        f"subpixel {shape} {beta} {curvature}": (
            lambda x, b=beta, c=curvature: subpixel_projection(x, b, curvature=c),
            shape,
        )
        for shape in SHAPES
        for beta in (8.0, INFINITY)
        for curvature in (False, True)
    },
    "tanh": (lambda x: tanh_projection(x, 8.0, 0.4), (20, 20)),
    "gaussian": (lambda x: GaussianFilter(1.5, 1.0)(x) ** 2, (20, 20)),
    "pipeline": (pipeline, (20, 20)),
    "robust": (robust, (20, 20)),
    "lengths": (
        lambda x: length_constraints(
            x, subpixel_projection(x, 16.0), 4.0, 1.0, decay=2.0
        ),
        (20, 20),
    ),
    "islands": (lambda x: 1e3 * island_penalty(0.1 + 0.8 * x), (9, 8)),
    "holes": (lambda x: 1e3 * hole_penalty(0.1 + 0.8 * x), (4, 5, 6)),
}


@pytest.mark.slow(after=6)
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_finite_differences(name):
    # Central differences with h = 1e-6: rounding leaves 1e-10 of the value, which is
    # some 10 times the gradient's part in one direction, and third derivatives less.
    function, shape = CASES[name]
    x = smooth(shape)
    dx = jnp.asarray(np.random.default_rng(1).standard_normal(shape))
    figure = jax.jit(lambda x: weigh(jnp.atleast_1d(function(x))))
    h = 1e-6
    change = (figure(x + h * dx) - figure(x - h * dx)) / (2 * h)
    gradient = jax.jit(jax.grad(figure))(x)
    size = float(jnp.linalg.norm(gradient))
    assert size > 1e-3
    assert jnp.sum(gradient * dx) == pytest.approx(
        float(change), rel=1e-5, abs=1e-6 * size
    )


@pytest.mark.parametrize("name", ["tanh", "pipeline", "robust", "islands"])
def test_what_a_gradient_leaves_is_of_second_order(name):
    function, shape = CASES[name]
    x = smooth(shape)
    dx = jnp.asarray(np.random.default_rng(2).standard_normal(shape))
    figure = jax.jit(lambda x: weigh(jnp.atleast_1d(function(x))))
    slope = jnp.sum(jax.jit(jax.grad(figure))(x) * dx)
    steps = [1e-3, 1e-4]
    rest = [abs(float(figure(x + h * dx) - figure(x) - h * slope)) for h in steps]
    assert np.log10(rest[0] / rest[1]) == pytest.approx(2, abs=0.05)


@pytest.mark.slow
def test_gradients_of_leaning_walls():
    # Where the density is flat the modulus of its gradient has a kink, so it has a
    # slope everywhere here; limited differences leave kinks where they change sign.
    across = np.arange(60) - 29.5
    r = np.hypot(across[:, None], across)
    density = jnp.asarray(1 / (1 + np.exp((r - 12.3) / 4)) + 0.002 * across)
    dx = jnp.asarray(np.cos(0.2 * across)[:, None] * np.sin(0.3 * across + 1))
    figure = jax.jit(lambda x: weigh(extrude(x, [1.0, 1.0], angle=0.5, reference=0.0)))
    h = 1e-6
    change = (figure(density + h * dx) - figure(density - h * dx)) / (2 * h)
    gradient = jax.jit(jax.grad(figure))(density)
    assert jnp.all(jnp.isfinite(gradient))
    assert jnp.sum(gradient * dx) == pytest.approx(float(change), rel=2e-2)


@pytest.mark.slow
def test_second_derivatives_of_the_subpixel_projection_are_bounded():
    # The polynomial has two continuous derivatives.
    x = smooth((12, 12))
    dx = jnp.asarray(np.random.default_rng(3).standard_normal(x.shape))
    figure = lambda x: weigh(subpixel_projection(x, INFINITY, curvature=True))  # noqa: E731
    product = jax.jit(lambda x: jax.jvp(jax.grad(figure), (x,), (dx,))[1])(x)
    assert jnp.all(jnp.isfinite(product))
