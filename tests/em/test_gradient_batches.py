"""Gradients of a batch are the batch of gradients, whatever the adjoint."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid


CELL = 20e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    "adjoint",
    [
        em.LinearTape(every=50),
        em.Reversible(),
        em.FrequencyDomain(tolerance=1e-4),
        em.Checkpointed(),
    ],
    ids=lambda adjoint: type(adjoint).__name__,
)
def test_gradients_batch(adjoint):
    region = em.DesignRegion(((12, 20), (10, 18)), jnp.full((8, 8), 2.0))
    sim = em.Simulation(
        Grid.uniform((32, 28), CELL),
        em.Medium(1.5, regions=region),
        em.Boundaries.all(em.CPML(8)),
        polarisation="Ez",
        steps=400,
        sources={
            "dipole": em.Dipole(
                "Ez", (9.6 * CELL, 14 * CELL), em.GaussianPulse(8e14, 4e14)
            )
        },
        monitors={
            "flux": em.FluxMonitor(
                "x", (22.4 * CELL, 14 * CELL), (0, 10 * CELL), [7e14, 8e14]
            )
        },
    )

    def value(permittivity):
        moved = eqx.tree_at(
            lambda s: s.medium.regions[0].permittivity, sim, permittivity
        )
        return jnp.sum(em.simulate(moved, adjoint=adjoint).monitors["flux"].flux)

    slope = jax.jit(jax.grad(value))
    batch = jnp.stack([region.permittivity, 1.2 * region.permittivity])
    got = jax.jit(jax.vmap(jax.grad(value)))(batch)
    want = jnp.stack([slope(one) for one in batch])
    assert np.max(np.abs(want)) > 0
    np.testing.assert_allclose(got, want, atol=1e-12 * np.abs(want).max(), rtol=0)


def run_of(permittivity, frequency, adjoint):
    """A run whose time step and sampling are traced."""
    sim = em.Simulation(
        Grid.uniform((24, 20), CELL),
        em.Medium(permittivity),
        em.Boundaries.all(em.CPML(5)),
        polarisation="Ez",
        steps=800,
        sources={
            "dipole": em.Dipole(
                "Ez",
                (9 * CELL, 10 * CELL),
                em.GaussianPulse(frequency, 0.4 * frequency),
            )
        },
        monitors={
            "flux": em.FluxMonitor("x", (14.4 * CELL, 10 * CELL), (0, 8 * CELL), [7e14])
        },
    )
    return jnp.sum(em.simulate(sim, adjoint=adjoint).monitors["flux"].flux)


@pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells")
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
@pytest.mark.parametrize(
    "adjoint",
    [em.Direct(), pytest.param(em.Checkpointed(every=20), marks=pytest.mark.slow)],
    ids=lambda adjoint: type(adjoint).__name__,
)
def test_the_gradient_of_a_batch_is_that_of_its_runs(adjoint):
    """Reverse mode goes through conditions that are the same in the whole batch."""
    random = np.random.default_rng(0)
    permittivity = jnp.asarray(random.uniform(1, 4, (2, 24, 20)))

    def total(permittivity, frequencies):
        runs = jax.vmap(lambda x, f: run_of(x, f, adjoint))
        return jnp.sum(runs(permittivity, frequencies))

    slope = jax.jit(jax.grad(lambda x, f: run_of(x, f, adjoint)))
    same = jnp.full(2, 7e14)
    got = jax.jit(jax.grad(total))(permittivity, same)
    want = jnp.stack([slope(x, f) for x, f in zip(permittivity, same, strict=True)])
    np.testing.assert_allclose(got, want, atol=1e-12 * np.abs(want).max(), rtol=0)
    # Alone, the run of the lower frequency samples in fewer steps than here.
    other = jnp.asarray([4e14, 7e14])
    got = jax.jit(jax.grad(total))(permittivity, other)
    want = jnp.stack([slope(x, f) for x, f in zip(permittivity, other, strict=True)])
    for one, alone in zip(got, want, strict=True):
        np.testing.assert_allclose(one, alone, atol=1e-3 * np.abs(alone).max(), rtol=0)
