"""Several steps in one sweep: the same fields as step by step, and no copies."""

import os
import re
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.em import _sweep, _wavefront
from physax.grid import Grid
from physax.runtime import Precision
from tests.em.scenes import CELL, PULSE, SCENES, at, dispersive
from tests.sharding.test_em_sharding import check_equal, collectives, cut, lines_of
from tests.sharding.test_sweep import anew, bounded, lossy


pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
    pytest.mark.filterwarnings("ignore:`grid` should have at least 10 cells"),
    pytest.mark.filterwarnings("ignore:Dispersion 1 should end before the abs"),
    pytest.mark.filterwarnings("ignore:The run ends after"),
]


@pytest.fixture(autouse=True)
def depths(monkeypatch):
    """Lets small grids make several steps in a sweep; collects how many at most."""
    found = []
    depth = _wavefront._depth
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(_sweep, "_NARROWEST", 1)
    monkeypatch.setattr(_sweep, "_LEAST", 1)
    monkeypatch.setattr(_wavefront, "_LEAST", 1)
    monkeypatch.setattr(_wavefront, "_ROWS", 4)
    monkeypatch.setattr(_wavefront, "_DRIVEN", 1)
    monkeypatch.setattr(_wavefront, "_FEWEST", 2)
    monkeypatch.setattr(_wavefront, "_MOST", 5)

    def noted(program):
        found.append(depth(program))
        return found[-1]

    monkeypatch.setattr(_wavefront, "_depth", noted)
    return found


def alone(sim):
    """A scene without plane waves, and without monitors: they read every step."""
    keep = {k: s for k, s in sim.sources.items() if not isinstance(s, em.PlaneWave)}
    return eqx.tree_at(lambda s: (s.sources, s.monitors), sim, (keep, {}))


def often():
    """A magnetic current across a border, and a monitor that reads every few steps."""
    shape = (30, 20)
    pulse = em.GaussianPulse(8e14, 4e14)
    wide = em.FieldMonitor(("Ez", "Hy"), at(13, 10), at(20, 12), [6e14, 8e14])
    return em.Simulation(
        Grid.uniform(shape, CELL),
        em.Medium(jnp.full(shape, 2.0), permeability=1.5),
        em.Boundaries(x=em.Periodic(), y=em.CPML(4)),
        polarisation="Ez",
        sources={
            "sheet": em.Dipole("Hy", at(12.6, 9.3), pulse, moment=1e-6),
            "dipole": em.Dipole("Ez", at(3, 12), pulse, moment=1e-6),
        },
        monitors={"fields": wide},
        steps=40,
    )


def wrapped():
    """A dipole on both sides of where a period ends."""
    sim = SCENES["bloch"]()
    return em.Simulation(
        sim.grid,
        sim.medium,
        sim.boundaries,
        polarisation="Ez",
        sources={"dipole": em.Dipole("Ez", at(23.6, 15), PULSE, moment=1e-6)},
        steps=30,
    )


CASES = {name: lambda make=make: alone(make()) for name, make in SCENES.items()}
CASES["magnetic losses"] = lambda: alone(lossy("Ez"))
CASES["often"] = often
CASES["bloch"] = wrapped
CASES["narrow"] = lambda: bounded(
    em.CPML(4), 26, precision=Precision(storage="float32", accumulate="float32")
)
CASES["y periods"] = lambda: alone(bounded(em.CPML(4), 26, y=em.Periodic()))
CASES["little room"] = lambda: alone(bounded((em.CPML(8), em.PEC()), 24))
CASES["a layer at one end"] = lambda: alone(bounded((em.PMC(), em.CPML(4)), 26))
RARE = [
    "Hz",
    "narrow",
    "y periods",
    "little room",
    "walls",
    "magnetic losses",
    "a layer at one end",
]


@pytest.mark.parametrize(
    ("case", "parts"),
    [
        ("Ez", 2),
        ("bloch", 3),
        pytest.param("often", 3, marks=pytest.mark.slow),
        *(pytest.param(case, 2, marks=pytest.mark.slow) for case in RARE),
        pytest.param("walls", 3, marks=pytest.mark.slow),
    ],
)
def test_steps_in_one_sweep_agree_with_one_device(case, parts, depths):
    sim = CASES[case]()
    program = anew(lambda s: em.simulate(s, layout=cut((parts,))), sim)
    assert depths[-1] >= 2
    got, want = program(sim), em.simulate(sim)
    if case == "narrow":
        assert got.fields["Hz"].dtype == jnp.float32
        close = partial(np.testing.assert_allclose, rtol=0, atol=1e-6)
        for name, field in want.fields.items():
            scale = np.max(np.abs(field))
            close(got.fields[name] / scale, field / scale)
        return
    check_equal((got.fields, got.monitors), (want.fields, want.monitors))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("case", ["time", "pole", "wave", "layers that meet"])
def test_what_reads_or_changes_fields_in_each_step_is_swept_step_by_step(case, depths):
    sim = {
        "time": SCENES["walls"],
        "pole": lambda: alone(dispersive("walls")),
        "wave": SCENES["bloch"],
        "layers that meet": lambda: bounded((em.CPML(6), em.CPML(6)), 20),
    }[case]()
    anew(lambda s: em.simulate(s, layout=cut((2,))), sim)
    assert depths[-1] is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["permittivity until decay", "time step"])
def test_a_batch_takes_the_steps_that_all_of_it_may(name, depths):
    sim = bounded((em.CPML(4), em.CPML(4)), 26, steps=2000)
    where, until = lambda s: s.medium.permittivity, em.Decay(1e-3, check_every=50)
    if name == "time step":
        sim, where, until = often(), lambda s: s.dt, None
    values = jnp.stack([where(sim), where(sim) * (0.7 if name == "time step" else 2)])

    def run(value, layout=None):
        found = em.simulate(eqx.tree_at(where, sim, value), layout=layout, until=until)
        return found.monitors["fields"].values

    together = anew(jax.vmap(lambda v: run(v, cut((2,)))), values)
    assert depths[-1] >= 2
    # Monitors of a batch read as often as its longest step wants: on one device, too.
    each = jax.vmap(run) if until is None else partial(jax.lax.map, run)
    want = each(values)
    check_equal(together(values), want)


def test_a_driven_run_is_the_same_whatever_its_chunks(depths):
    sim = often()
    jax.clear_caches()
    got = em.run(sim, layout=cut((2,)), chunk=7, progress=False)
    assert depths[-1] >= 2
    check_equal(got.result, em.run(sim, progress=False).result)
    assert int(got.state.done) == sim.steps
    jax.clear_caches()


@pytest.mark.slow
def test_each_of_a_batch_makes_its_own_number_of_steps(depths):
    sim = often()

    def advanced(stop, layout=None):
        state = em.initial_state(sim, layout=layout)
        return em.advance(sim, state, 0, stop, layout=layout).fields

    jax.clear_caches()
    stops = jnp.array([23, 16, 5], jnp.int32)
    together = jax.vmap(lambda stop: advanced(stop, cut((2,))))(stops)
    assert depths[-1] >= 2
    jax.clear_caches()
    for k, stop in enumerate(stops):
        check_equal(jax.tree.map(lambda x, k=k: x[k], together), advanced(stop))


@pytest.mark.f32
def test_a_sweep_of_several_steps_copies_no_field_and_exchanges_rows_once():
    sim = bounded((em.CPML(4), em.CPML(4)), 40)
    program = anew(lambda s: em.simulate(s, layout=cut((2,))), sim)
    text = program.as_text() or ""
    inside, _ = lines_of(text)
    assert not [x for x in inside if re.search(r"f32\[20,\d+\]\S* copy\(", x)]
    loop, _ = collectives(text)
    # Each field and each memory of the layers along y, there and back; and the two
    # halves of a step alone.
    assert loop["collective-permute"] == 2 * (3 + 4) + 2
    assert loop["all-gather"] == loop["all-to-all"] == 0
