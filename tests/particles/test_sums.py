"""Fields made of fields, in both precisions."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.grid import Clamp, Field, Grid
from physax.particles import (
    RK4,
    Components,
    EulerMaruyama,
    GriddedField,
    Masked,
    Milstein,
    ParticleStatus,
    StochasticHeun,
    Sum,
    from_fields,
    track,
)


NODES = np.linspace(-3, 3, 7, dtype=np.float32)
SEEDS = np.array([[1.0, 0.0], [0.0, 0.5]], np.float32)
SOLVERS = [RK4(), Milstein(), EulerMaruyama(), StochasticHeun()]
TIMES = [0.0, 0.5]
PLACES = [jnp.array([0.3, -1.2]), jnp.array([-2.0, 1.7])]


def turn(t, x):
    return jnp.stack([-x[1], x[0]])


def drift(t, x):
    return jnp.array([0.25, 0.5]) + 0 * x


def sheared():
    """A velocity that is linear, and exact on a grid."""
    y = np.broadcast_to(NODES, (7, 7))
    return GriddedField(np.stack([y, 0 * y], -1), (NODES, NODES))


def look(field, x):
    return field.look(jnp.asarray(0.0), x, field.start(x))


def gridded_or_not(t, x, *, grid):
    return turn(t, x) + drift(t, x) + grid * jnp.stack([x[1], 0 * x[0]])


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_sum_moves_particles_as_the_sum_of_its_parts(solver, grid):
    noise = {} if isinstance(solver, RK4) else {"diffusivity": 0.1}
    if noise:
        noise["key"] = jax.random.key(0)
    parts = Sum([turn, drift, *([sheared()] if grid else [])])
    whole = partial(gridded_or_not, grid=grid)
    found, wanted = (
        track(field, SEEDS, TIMES, steps=5, solver=solver, **noise)
        for field in (parts, whole)
    )
    assert found.status.dtype == jnp.int32
    assert jnp.allclose(found.positions, wanted.positions, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("x", PLACES)
def test_components_are_scalar_fields(x):
    east = GriddedField(np.broadcast_to(NODES, (7, 7)), (NODES, NODES))
    seen = look(Components([east, lambda t, x: 2 * x[0]]), x)
    assert jnp.allclose(seen.value, jnp.stack([x[1], 2 * x[0]]), rtol=1e-6)
    assert seen.status == ParticleStatus.ALIVE
    assert look(Components([east, east]), 3 * x[::-1]).status == (
        ParticleStatus.LEFT_DATA
    )


def test_a_factor_of_zero_switches_a_field_off_also_beyond_its_data():
    still = Masked(sheared(), lambda t, x: jnp.where(x[0] > 2, 0.0, 0.5))
    seen = look(still, jnp.array([1.0, 2.0]))
    assert jnp.allclose(seen.value, jnp.array([1.0, 0.0]))
    away = look(still, jnp.array([9.0, 2.0]))
    assert away.status == ParticleStatus.ALIVE
    assert jnp.all(away.value == 0)
    lost = look(still, jnp.array([-9.0, 2.0]))
    assert lost.status == ParticleStatus.LEFT_DATA
    tracks = track(still, np.array([[9.0, 2.0]], np.float32), TIMES, steps=2)
    assert np.array_equal(tracks.positions[-1], [[9.0, 2.0]])


def test_components_on_a_staggered_grid_are_sampled_where_they_lie():
    grid = Grid.uniform((4, 4), 1.0)
    half, whole = jnp.arange(4) + 0.5, jnp.arange(4.0)
    u = Field(3 * half[:, None] + whole, (0.5, 0), grid)
    v = Field(whole[:, None] - 2 * half, (0, 0.5), grid)
    x = jnp.array([1.6, 2.1])
    exact = jnp.stack([3 * x[0] + x[1], x[0] - 2 * x[1]])
    both = from_fields(u, v, outside=Clamp())
    assert isinstance(both, Components)
    assert jnp.allclose(look(both, x).value, exact, rtol=1e-5)
    one = from_fields(u, u, outside=Clamp())
    assert isinstance(one, GriddedField)
    assert jnp.allclose(look(one, x).value, exact[0], rtol=1e-5)
