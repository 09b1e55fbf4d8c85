"""Adjoints on any mesh: gradients, collectives, memory."""

import equinox as eqx
import jax
import pytest

from physax import em
from physax.grid import Grid
from tests.em import test_adjoints
from tests.em.scenes import CELL, FREQUENCIES, PULSE, at, random_permittivity
from tests.em.test_adjoints import scene
from tests.em.test_linear_tape import gradient, linear, squares
from tests.sharding.test_em_sharding import check_equal, collectives, cut


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.x64,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]


@pytest.mark.parametrize(
    ("scene", "sizes"),
    [
        # A layer of 8 cells along x is thicker than a block of 6.
        ("Ez", (8, 1)),
        ("walls", (2, 4)),
        ("bloch", (4, 2)),
        ("3-D", (2, 2, 2)),
    ],
)
def test_gradient_on_any_mesh_agrees_with_one_device(scene, sizes):
    sim = linear(scene)
    want = gradient(sim, em.LinearTape())
    check_equal(gradient(sim, em.LinearTape(), layout=cut(sizes)), want)


def test_tape_made_again_on_a_mesh_agrees_with_one_device():
    sim = linear("bloch")
    tape = em.LinearTape(every=7)
    rule = em.Decay(0.5, check_every=5)
    want = gradient(sim, tape, until=rule)
    check_equal(gradient(sim, tape, until=rule, layout=cut((4, 2))), want)


@pytest.mark.parametrize(
    ("adjoint", "kind", "sizes"),
    [
        # A layer of 5 cells along x is thicker than a block of 4.
        (em.Reversible(), "Ez", (8, 1)),
        (em.Reversible(), "3-D", (2, 2, 2)),
        (em.FrequencyDomain(), "Ez", (4, 2)),
    ],
)
def test_other_adjoints_agree_with_one_device(adjoint, kind, sizes):
    narrow = isinstance(adjoint, em.FrequencyDomain)
    sim = scene(kind, *((1500, 6e3, 5e13) if narrow else (60,)))
    want = test_adjoints.gradient(sim, adjoint)
    check_equal(test_adjoints.gradient(sim, adjoint, cut(sizes)), want)


def test_way_back_exchanges_what_the_way_there_does():
    layout, shape = cut((4, 2)), (48, 40)
    eps = jax.device_put(random_permittivity(shape), layout.sharding(2))
    sim = em.Simulation(
        Grid.uniform(shape, CELL),
        em.Medium(eps),
        em.Boundaries.all(em.CPML(8)),
        polarisation="Ez",
        steps=30,
        sources={"dipole": em.Dipole("Ez", at(23.6, 20), PULSE)},
        monitors={
            "flux": em.FluxMonitor("x", at(26, 18), at(0, 16), FREQUENCIES),
            "fields": em.FieldMonitor(("Hy",), at(22, 18), at(18, 12), FREQUENCIES),
        },
    )

    def loss(eps):
        moved = eqx.tree_at(lambda s: s.medium.permittivity, sim, eps)
        tape = em.LinearTape()
        return squares(em.simulate(moved, layout=layout, adjoint=tape))

    compiled = jax.jit(jax.grad(loss)).lower(eps).compile()
    loop, rest = collectives(compiled.as_text())
    # Four planes on the way there, and four back.
    assert loop["collective-permute"] == 8
    # The one sum is the energy, for the look at its peak.
    assert loop["all-reduce"] <= 1
    assert loop["all-gather"] == loop["all-to-all"] == 0
    assert rest["all-gather"] == rest["all-to-all"] == rest["collective-permute"] == 0
    slope = compiled(eps)
    assert slope.sharding.is_equivalent_to(eps.sharding, 2)
    assert slope.addressable_shards[0].data.shape == (12, 20)
