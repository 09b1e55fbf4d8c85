"""Both halves of a step in one sweep over rows: the same fields, and no copies."""

import os
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.em import _sweep
from physax.grid import Grid
from tests.em.scenes import CELL, PULSE, SCENES, at, dispersive, skewed
from tests.sharding.test_em_sharding import (
    check_equal,
    collectives,
    cut,
    lines_of,
    squares,
)


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
    pytest.mark.filterwarnings("ignore:Dispersion 1 should end before the abs"),
]


@pytest.fixture(autouse=True)
def few_cores(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


@pytest.fixture
def any_size(monkeypatch):
    """Lets the grids of tests be swept, too, which are smaller than it is worth."""
    monkeypatch.setattr(_sweep, "_NARROWEST", 1)
    monkeypatch.setattr(_sweep, "_LEAST", 1)


def anew(function, argument):
    """Compiles a run anew: whether it sweeps is decided as it is traced."""
    jax.clear_caches()
    program = jax.jit(function).lower(argument).compile()
    jax.clear_caches()
    return program


def compiled(sim, layout):
    return anew(lambda s: em.simulate(s, layout=layout), sim)


def swept(program):
    return 'inlineable="false"' in (program.as_text() or "")


def lossy(scene):
    """A scene with magnetic losses, without currents that drive H."""
    sim = SCENES[scene]()
    return eqx.tree_at(
        lambda s: (s.sources, s.medium.magnetic_conductivity),
        sim,
        ({"dipole": sim.sources["dipole"]}, jnp.asarray(1e4)),
        is_leaf=lambda x: x is None,
    )


CASES = {name: make for name, make in SCENES.items() if name not in ("1-D", "rz")}
CASES["poles"] = lambda: dispersive("walls")
CASES["magnetic losses"] = lambda: lossy("Ez")


SHORT = em.GaussianPulse(2e14, 1e14)


def bounded(x, rows, steps=60, y=em.CPML(4), **options):  # noqa: B008
    """A run between these faces along the axis that is cut."""
    shape = (rows, 40)
    return em.Simulation(
        Grid.uniform(shape, CELL),
        em.Medium(jnp.full(shape, 2.0)),
        em.Boundaries(x=x, y=y),
        polarisation="Hz",
        sources={"dipole": em.Dipole("Hz", at(rows / 2 + 0.5, 20.5), SHORT)},
        monitors={
            "fields": em.FieldMonitor(("Ey",), at(rows / 2, 9), at(2, 8), [2e14])
        },
        steps=steps,
        **options,
    )


CASES["a layer at one end"] = lambda: bounded((em.PMC(), em.CPML(4)), 12)
CASES["layers of two kinds"] = lambda: bounded(
    (em.CPML(4, kappa_max=2.0), em.CPML(5)), 18
)
CASES["two rows"] = lambda: bounded((em.PEC(), em.PEC()), 4)
RARE = ["Hz", "magnetic losses", "Ez", "poles", "a layer at one end", "two rows"]


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize(
    ("case", "parts"),
    [
        *((case, 2) for case in CASES if case not in RARE),
        *(pytest.param(case, 2, marks=pytest.mark.slow) for case in RARE),
        # In three parts the layers of the others would meet.
        ("walls", 3),
        pytest.param("bloch", 3, marks=pytest.mark.slow),
        pytest.param("poles", 3, marks=pytest.mark.slow),
    ],
)
def test_a_sweep_agrees_with_one_device(case, parts):
    sim = CASES[case]()
    program = compiled(sim, cut((parts,)))
    assert swept(program)
    check_equal(program(sim), em.simulate(sim))


@pytest.mark.slow(after=1)
@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("name", ["permittivity until decay", "layer"])
def test_a_batch_is_swept(name):
    if name == "layer":
        where, until = lambda s: s.boundaries.x[0].kappa_max, None
    else:
        where, until = lambda s: s.medium.permittivity, em.Decay(1e-3)
    sim = bounded((em.CPML(4, kappa_max=2.0), em.CPML(4)), 16, steps=2000)
    values = jnp.stack([where(sim), 1 + where(sim)])

    def run(value, layout=None):
        found = em.simulate(eqx.tree_at(where, sim, value), layout=layout, until=until)
        return found.monitors["fields"].values["Ey"]

    together = anew(jax.vmap(lambda v: run(v, cut((2,)))), values)
    assert swept(together)
    for found, value in zip(together(values), values, strict=True):
        wanted = run(value)
        close = 1e-12 * np.max(np.abs(wanted))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=close)


def cube(shape=(48, 24, 26)):
    return em.Simulation(
        Grid.uniform(shape, CELL),
        em.Medium(jnp.full(shape, 2.0)),
        em.Boundaries.all(em.CPML(4)),
        sources={
            "dipole": em.Dipole(
                component="Ez", position=at(*(n / 2 for n in shape)), pulse=PULSE
            )
        },
        steps=20,
    )


@pytest.mark.f32
def test_a_swept_step_copies_no_field_and_exchanges_four_planes():
    program = compiled(cube(), cut((2,)))
    assert swept(program)
    text = program.as_text() or ""
    inside, _ = lines_of(text)
    copies = [
        line for line in inside if re.search(r"f32\[\d+,\d+,\d+\]\S* copy\(", line)
    ]
    assert not copies
    loop, _ = collectives(text)
    assert loop["collective-permute"] == 4
    assert loop["all-gather"] == loop["all-to-all"] == 0


SHAPES = {
    "narrow rows": (200, 15, 15),
    "few cells": (20, 17, 17),
    "layers that meet": (14, 60, 60),
}


@pytest.mark.slow(after=1)
@pytest.mark.f32
@pytest.mark.parametrize("case", ["y", *SHAPES])
def test_what_a_sweep_cannot_do_or_is_slower_at_is_done_in_half_steps(case):
    layout = cut((1, 2)) if case == "y" else cut((2,))
    program = compiled(cube(SHAPES.get(case, (48, 24, 26))), layout)
    assert not swept(program)


@pytest.mark.f32
def test_many_cores_for_few_devices_take_half_steps(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert not swept(compiled(cube(), cut((2,))))


def lossy_and_driven():
    """Magnetic losses, which weaken at once what a magnetic current has added."""
    sim = SCENES["Ez"]()
    return eqx.tree_at(
        lambda s: s.medium.magnetic_conductivity,
        sim,
        jnp.asarray(1e4),
        is_leaf=lambda x: x is None,
    )


@pytest.mark.slow
@pytest.mark.f32
@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("make", [lambda: skewed("walls"), lossy_and_driven])
def test_media_that_read_fields_between_the_halves_are_not_swept(make):
    assert not swept(compiled(make(), cut((2,))))


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.usefixtures("any_size")
def test_derivatives_pass_a_swept_run():
    sim, layout = CASES["magnetic losses"](), cut((2,))
    sim = eqx.tree_at(lambda s: s.monitors, sim, {"time": sim.monitors["time"]})
    eps = sim.medium.permittivity

    def loss(eps, layout):
        new = eqx.tree_at(lambda s: s.medium.permittivity, sim, eps)
        return squares(em.simulate(new, layout=layout))

    def forward(eps, layout):
        return jax.jvp(lambda x: loss(x, layout), (eps,), (jnp.ones_like(eps),))

    jax.clear_caches()
    for derivative in (jax.grad(loss), forward):
        check_equal(derivative(eps, layout), derivative(eps, None))
    jax.clear_caches()


@pytest.mark.slow
@pytest.mark.f32
@pytest.mark.usefixtures("any_size")
def test_a_driven_run_sweeps_as_well():
    # Its loops have bounds that the compiler does not know, and lie in each other.
    sim = SCENES["bloch"]()
    jax.clear_caches()
    got = em.run(sim, layout=cut((3,)), progress=False)
    want = em.run(sim, progress=False)
    check_equal(got.result, want.result)
    jax.clear_caches()
