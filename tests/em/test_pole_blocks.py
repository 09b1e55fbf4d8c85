"""Poles that are stepped once in a block of steps do what they do in each."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from physax import em
from physax.em._pole_blocks import BlockMemory
from physax.em._poles import recursion
from physax.em._program import build_program, one_by_one
from physax.em._simulate import finish
from physax.em._simulation import with_steps
from physax.em._state import rest, step
from physax.grid import Grid
from physax.units import ETA_0, SPEED_OF_LIGHT
from tests.em.scenes import CELL, PULSE, at, dispersive


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.x64,
    pytest.mark.usefixtures("in_blocks"),
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
    pytest.mark.filterwarnings("ignore:Dispersion 1 should end before the abs"),
]


def line():
    """Poles of one state and of two along a line."""
    poles = em.Lorentz(0.8, 3e14, 2e13), em.Debye(0.5, 3e-16)
    return em.Simulation(
        Grid.uniform((40,), CELL),
        em.Medium(2.0, dispersions=em.Dispersion(((15, 30),), poles, 0.7)),
        em.Boundaries.all(em.PEC()),
        steps=31,
        sources={
            "in": em.Dipole(component="Ez", position=at(10), pulse=PULSE, moment=1e-6)
        },
        monitors={"time": em.TimeMonitor(("Ez",), at(20), at(0), every=1)},
    )


def mixture():
    """Poles of all kinds in boxes that overlap, with parts of cells and losses."""
    random = np.random.default_rng(0)
    low, high = ((8, 30),), ((20, 36),)
    parts = [random.uniform(0, 1, 22), random.uniform(0, 1, 16)]
    parts[0][::3] = 0
    residue = em.PoleResidue(-1e14 + 2e15j, 3e13 - 6e14j)
    few = em.Lorentz(1.5, 3e14, 2e13), em.Debye(2.0, 3e-16)
    many = em.Drude(2.5e14, 1e13), residue, em.Debye(0.7, 5e-16)
    medium = em.Medium(
        jnp.asarray(random.uniform(1, 4, 40)),
        conductivity=jnp.asarray(random.uniform(0, 3e4, 40)),
        dispersions=(
            em.Dispersion(low, few, {"Ez": jnp.asarray(parts[0])}),
            em.Dispersion(high, many, jnp.asarray(parts[1])),
            em.Dispersion(low, em.Debye(1.0, 1e-15), 0.4),
        ),
    )
    grid, walls = Grid.uniform((40,), CELL), em.Boundaries.all(em.PEC())
    return em.Simulation(grid, medium, walls, steps=241)


def in_numpy(sim, magnetic):
    """Steps a line as the equations stand, with a state and a drive for each pole."""
    dt, medium = sim.dt, sim.medium
    length = SPEED_OF_LIGHT * float(dt)
    loss = np.asarray(medium.conductivity) * ETA_0 * length / 2
    inertia, poles = np.array(medium.permittivity), []
    for one in medium.dispersions:
        where, fraction = slice(*one.box[0]), np.asarray(one.at("Ez"))
        for pole in one.poles:
            way = jax.tree.map(np.asarray, recursion(pole, dt))
            inertia[where] += fraction * way.amplitude * way.inertia
            state = np.zeros((len(way.inflow), len(fraction)))
            poles.append([where, fraction * way.amplitude, way, state])
    electric, magnetic = np.zeros_like(inertia), np.array(magnetic)
    for _ in range(sim.steps):
        magnetic += length / CELL * np.diff(electric, append=0)
        curl = length / CELL * np.diff(magnetic, prepend=0)
        for where, amount, way, state in poles:
            given = way.outflow @ state + 2 * way.inertia * electric[where]
            curl[where] -= amount * given
        old = electric
        electric = ((inertia - loss) * old + curl) / (inertia + loss)
        electric[0] = 0
        for one in poles:
            where, _, way, state = one
            both = electric[where] + old[where]
            one[-1] = way.matrix @ state + np.outer(way.inflow, both)
    return electric


def answer(result):
    return result.fields, result.monitors


def last(program, state, steps):
    make = lambda n, state: step(program, state, n)  # noqa: E731
    return lax.fori_loop(0, steps, make, state)


@jax.jit
def singly(sim):
    """The same run, with poles that are brought up to date in each step."""
    program = one_by_one(build_program(sim))
    return finish(program, last(program, rest(program), sim.steps))


def agree(got, want, tolerance=1e-12):
    """Compares norms, by default to some thousand roundings."""
    got, want = (jax.tree.leaves(eqx.filter(x, eqx.is_array)) for x in (got, want))
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        gap = np.linalg.norm(np.ravel(np.asarray(one) - np.asarray(other)))
        assert gap <= tolerance * np.linalg.norm(np.ravel(np.asarray(other)))


def stronger(sim, factor):
    return eqx.tree_at(
        lambda s: s.medium.dispersions[0].poles[0].strength,
        sim,
        replace_fn=lambda strength: factor * strength,
    )


@pytest.mark.parametrize(
    "scene",
    [
        "line",
        *(
            pytest.param(s, marks=pytest.mark.slow)
            for s in ("bloch", "3-D", "axial", "rz")
        ),
    ],
)
def test_blocks_of_steps_agree_with_steps_one_by_one(scene):
    sim = line() if scene == "line" else with_steps(dispersive(scene), 31)
    assert build_program(sim).blocks
    agree(answer(em.simulate(sim)), answer(singly(sim)))


@pytest.mark.parametrize("blocks", [True, False])
def test_a_mixture_of_poles_is_stepped_as_in_numpy(blocks):
    sim, start = mixture(), np.random.default_rng(1).normal(size=40)
    program = build_program(sim)
    program = program if blocks else one_by_one(program)
    state = rest(program)
    state = eqx.tree_at(lambda s: s.fields["Hy"], state, jnp.asarray(start))
    got = eqx.filter_jit(last)(program, state, sim.steps)
    agree(got.fields["Ez"], in_numpy(sim, start))


@pytest.mark.parametrize(("least", "blocks"), [(2 * 15, True), (2 * 15 + 1, False)])
def test_few_poles_are_advanced_in_each_step(least, blocks, monkeypatch):
    monkeypatch.setattr("physax.em._pole_blocks.LEAST", least)
    sim = with_steps(line(), 14)
    assert build_program(sim).blocks == blocks
    jax.clear_caches()
    state = em.run(sim, progress=False).state
    assert isinstance(state.poles["Ez"][0], BlockMemory) == blocks
    if not blocks:
        em.run(line(), state=state, progress=False)


def test_where_a_run_is_divided_changes_no_bit():
    sim = eqx.tree_at(lambda s: s.monitors, line(), {})
    whole = em.run(sim, progress=False, chunk=31)
    begun = em.run(with_steps(sim, 13), progress=False, chunk=13)
    parts = em.run(sim, state=begun.state, progress=False, chunk=4)
    for got in (parts.result, em.simulate(sim)):
        agree(answer(got), answer(whole.result), 0)
    agree(parts.state, whole.state, 0)


def test_gradients_are_those_of_steps_one_by_one():
    def slope(adjoint):
        def energy(factor):
            result = em.simulate(stronger(line(), factor), adjoint=adjoint)
            return jnp.sum(result.monitors["time"].values["Ez"] ** 2)

        return float(jax.grad(energy)(1.0))

    want = slope(em.Direct())
    assert want != 0
    # The tape makes its steps again in chunks, of which some begin within a block.
    assert slope(em.LinearTape(every=7)) == pytest.approx(want, rel=1e-10, abs=0)


@pytest.mark.slow
def test_batches_of_blocks_are_those_of_each():
    sim = with_steps(dispersive("walls"), 9)
    rule = em.Decay(1e-30, check_every=3)
    factors = jnp.array([0.5, 2.0])
    got = jax.vmap(lambda f: answer(em.simulate(stronger(sim, f), until=rule)))(factors)
    for i, factor in enumerate(factors):
        one = answer(singly(stronger(sim, factor)))
        agree(jax.tree.map(lambda x, i=i: x[i], got), one)
