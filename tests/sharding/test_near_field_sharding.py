"""Near fields recorded across blocks, their projection and its gradient."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from tests.em import test_force
from tests.em.dipoles import PHI, block, scene
from tests.em.test_huygens import CELL, FREQUENCY, PULSE, scene as huygens_scene
from tests.sharding.test_em_sharding import check_equal, cut


pytestmark = [
    # Fluxes are small differences of large products: rounding is not the subject.
    pytest.mark.x64,
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]


@pytest.mark.slow
def test_far_field_and_its_gradient_on_a_mesh():
    sim = scene("Ez", block(1.5), steps=60)

    def loss(density, layout):
        here = eqx.tree_at(lambda s: s.medium, sim, block(1.5 + density))
        near = em.simulate(here, layout=layout).monitors["near"]
        found = em.far_field(near, em.direction(PHI))
        return 1e10 * jnp.sum(found.intensity), (near.values, near.flux, found.values)

    grey = jnp.asarray(np.random.default_rng(0).uniform(0, 0.5, (4, 5)))
    run = jax.grad(loss, has_aux=True)
    check_equal(run(grey, cut((4, 2))), run(grey, None))


@pytest.mark.slow
def test_currents_sent_and_recorded_on_a_mesh():
    monitors = {"near": em.NearFieldMonitor((0.0,) * 2, (10 * CELL,) * 2, FREQUENCY)}
    dipole = em.Dipole("Ez", (CELL, 0.0), PULSE)
    options = {"cells": 32, "steps": 150}
    first = huygens_scene(2, "Ez", dipole, monitors, **options)
    near = em.simulate(first).monitors["near"]
    monitors["near"] = em.NearFieldMonitor((0.0,) * 2, (14 * CELL,) * 2, FREQUENCY)

    def loss(moved, layout):
        sent = eqx.tree_at(lambda n: n.values, near, moved)
        source = em.HuygensSource(sent, PULSE)
        sim = huygens_scene(2, "Ez", source, monitors, **options)
        found = em.simulate(sim, layout=layout).monitors["near"]
        return 1e10 * jnp.sum(found.outflow), (found.values, found.flux)

    run = jax.grad(loss, has_aux=True)
    want = run(near.values, None)
    check_equal(run(near.values, cut((4, 2))), want)
    check_equal(
        em.simulate(first, layout=cut((4, 2))).monitors["near"].values, near.values
    )


@pytest.mark.slow
def test_force_and_its_gradient_on_a_mesh():
    sim = test_force.scene("Ez", {"force": test_force.box(4, 4)}, steps=60)

    def loss(density, layout):
        here = eqx.tree_at(lambda s: s.medium, sim, test_force.block(2.0 + density))
        force = em.simulate(here, layout=layout).monitors["force"].force
        return 1e20 * (force["x"][0] + force["y"][0]), force

    grey = jnp.asarray(np.random.default_rng(0).uniform(0, 0.5, (6, 8)))
    run = jax.grad(loss, has_aux=True)
    check_equal(run(grey, cut((4, 2))), run(grey, None))
