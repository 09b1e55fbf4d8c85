"""Poles that are stepped once in two steps do what they do in each."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from physax import em
from physax.em._program import build_program, one_by_one
from physax.em._simulate import finish
from physax.em._simulation import with_steps
from physax.em._state import rest, step
from physax.grid import Grid
from tests.em.scenes import CELL, PULSE, at, dispersive


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.x64,
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


def answer(result):
    return result.fields, result.monitors


@jax.jit
def singly(sim):
    """The same run, with poles that are brought up to date in each step."""
    program = one_by_one(build_program(sim))
    make = lambda n, state: step(program, state, n)  # noqa: E731
    return finish(program, lax.fori_loop(0, sim.steps, make, rest(program)))


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
        *(pytest.param(s, marks=pytest.mark.slow) for s in ("bloch", "3-D", "rz")),
    ],
)
def test_pairs_of_steps_agree_with_steps_one_by_one(scene, monkeypatch):
    monkeypatch.setattr("physax.em._program.default_platform", lambda: "cpu")
    sim = line() if scene == "line" else with_steps(dispersive(scene), 31)
    assert build_program(sim).pairs
    agree(answer(em.simulate(sim)), answer(singly(sim)))


def test_where_a_run_is_divided_changes_no_bit():
    sim = eqx.tree_at(lambda s: s.monitors, line(), {})
    whole = em.run(sim, progress=False, chunk=31)
    begun = em.run(with_steps(sim, 13), progress=False, chunk=13)
    parts = em.run(sim, state=begun.state, start=13, progress=False, chunk=3)
    for got in (parts.result, em.simulate(sim)):
        agree(answer(got), answer(whole.result), 0)
    agree(parts.state, whole.state, 0)


def test_a_state_from_within_a_pair_of_steps_is_refused_elsewhere():
    begun = em.run(with_steps(line(), 13), progress=False)
    with pytest.raises(ValueError, match=r"`start` must be 13, .* even .* but is 0"):
        em.run(line(), state=begun.state, progress=False)


def test_gradients_are_those_of_steps_one_by_one():
    def slope(adjoint):
        def energy(factor):
            result = em.simulate(stronger(line(), factor), adjoint=adjoint)
            return jnp.sum(result.monitors["time"].values["Ez"] ** 2)

        return float(jax.grad(energy)(1.0))

    want = slope(em.Direct())
    assert want != 0
    # The tape makes its steps again in chunks, of which some begin within a pair.
    assert slope(em.LinearTape(every=7)) == pytest.approx(want, rel=1e-10, abs=0)


@pytest.mark.slow
def test_batches_of_pairs_are_those_of_each():
    sim = with_steps(dispersive("walls"), 9)
    rule = em.Decay(1e-30, check_every=3)
    factors = jnp.array([0.5, 2.0])
    got = jax.vmap(lambda f: answer(em.simulate(stronger(sim, f), until=rule)))(factors)
    for i, factor in enumerate(factors):
        one = answer(singly(stronger(sim, factor)))
        agree(jax.tree.map(lambda x, i=i: x[i], got), one)
