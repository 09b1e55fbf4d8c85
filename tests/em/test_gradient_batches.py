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
