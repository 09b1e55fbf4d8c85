"""Derivatives of fields on meshes: by places and by values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._loop import iterate
from physax.particles import Mesh, MeshField
from physax.particles._cell_field import CellField

from .meshes import delaunay, places_inside, solids


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("field", [MeshField, CellField])
def test_the_jacobian_of_the_place_is_the_identity(field):
    points, elements = solids("mixed")
    mesh = Mesh(points, elements)
    places = points if field is MeshField else np.asarray(mesh.centres)
    velocity = field(mesh, places)
    x = jnp.asarray(places_inside(points, 100))

    def value(x):
        return velocity.look(jnp.zeros(()), x, velocity.start(x)).value

    atol = 1e-5 if x.dtype == jnp.float32 else 1e-13
    for jacobian in (jax.jacfwd, jax.jacrev):
        slopes = jax.jit(jax.vmap(jacobian(value)))(x)
        np.testing.assert_allclose(
            slopes, np.broadcast_to(np.eye(3), (100, 3, 3)), atol=atol
        )


@pytest.mark.slow
@pytest.mark.x64
def test_gradients_pass_through_steps_that_carry_the_memory():
    # Of a sum of final places, by a value at a node, by the start, and by both modes.
    points, elements = delaunay(2, 60)
    mesh = Mesh(points, elements)
    spin = np.stack([0.5 - points[:, 1], points[:, 0] - 0.5], -1)
    spin += 0.1 * np.random.default_rng(0).normal(size=spin.shape)
    x = jnp.asarray(np.random.default_rng(1).uniform(0.4, 0.6, (40, 2)))

    @jax.jit
    def final(values, x):
        field = MeshField(mesh, values)

        def step(state, n):
            x, memory = state
            seen = jax.vmap(field.look, (None, 0, 0))(n * 0.1, x, memory)
            return x + 0.1 * seen.value, seen.memory

        state = (x, jax.vmap(field.start)(x))
        return jnp.sum(iterate(step, state, 0, 6, checkpoint=2)[0][0] ** 2)

    spin = jnp.asarray(spin)
    by_values, by_x = jax.jit(jax.grad(final, (0, 1)))(spin, x)
    keys = jax.random.split(jax.random.key(0))
    along = [
        jax.random.normal(k, a.shape) for k, a in zip(keys, (spin, x), strict=True)
    ]
    slope = jnp.vdot(by_values, along[0]) + jnp.vdot(by_x, along[1])
    _, forward = jax.jvp(final, (spin, x), tuple(along))
    np.testing.assert_allclose(slope, forward, rtol=1e-11)
    h = 1e-7
    high = final(spin + h * along[0], x + h * along[1])
    low = final(spin - h * along[0], x - h * along[1])
    # The field has kinks, but no place crosses one within the step.
    np.testing.assert_allclose(slope, (high - low) / (2 * h), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.x64
def test_values_of_elements_have_a_gradient_through_their_slopes():
    points, elements = delaunay(2, 40)
    mesh = Mesh(points, elements)
    x = jnp.asarray(places_inside(points, 20))
    count = mesh.elements

    @jax.jit
    def total(values):
        field = CellField(mesh, values)
        look = jax.vmap(lambda x: field.look(jnp.zeros(()), x, field.start(x)).value)
        return jnp.sum(look(x))

    values = jnp.asarray(np.random.default_rng(0).normal(size=count))
    # The sum is linear in the values.
    slope = jax.grad(total)(values)
    np.testing.assert_allclose(slope @ values, total(values), rtol=1e-10)
    # A constant stays one, so that each place's gradient adds up to 1.
    np.testing.assert_allclose(jnp.sum(slope), len(x), rtol=1e-10)
