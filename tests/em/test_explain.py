"""What a gradient needs of memory is known before it is compiled."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.em import _explain
from physax.em._simulation import with_steps
from physax.grid import Grid
from physax.runtime import MemoryLimitError, check_memory
from tests.em.scenes import CELL, FREQUENCIES, PULSE, at


def plane(monitors, steps):
    region = em.DesignRegion(((30, 70), (30, 70)), jnp.full((40, 40), 2.0))
    return em.Simulation(
        Grid.uniform((100, 100), CELL),
        em.Medium(2.0, regions=region),
        em.Boundaries.all(em.CPML(8)),
        polarisation="Ez",
        steps=steps,
        sources={"dipole": em.Dipole("Ez", at(20, 50), PULSE)},
        monitors=monitors,
    )


@pytest.fixture(scope="module")
def sim():
    flux = em.FluxMonitor("x", at(80, 50), at(0, 60), FREQUENCIES)
    return plane({"flux": flux}, 2000)


@pytest.fixture(scope="module")
def line():
    """In one dimension, which compiles sooner: what is timed says nothing of size."""
    region = em.DesignRegion(((30, 70),), jnp.full(40, 2.0))
    return em.Simulation(
        Grid.uniform((100,), CELL),
        em.Medium(2.0, regions=region),
        em.Boundaries.all(em.CPML(8)),
        steps=2000,
        sources={"dipole": em.Dipole("Ez", at(20), PULSE)},
        monitors={"flux": em.FluxMonitor("x", at(80), at(0), FREQUENCIES)},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adjoint", "steps"),
    [
        (em.LinearTape(), 400),
        (em.LinearTape("bfloat16"), 2000),
        (em.LinearTape(every=100), 2000),
        (em.Reversible(), 400),
        (em.Checkpointed(), 400),
        (em.Checkpointed(60), 600),
        (em.Direct(), 400),
    ],
)
def test_compiled_gradient_takes_the_memory_that_was_told(sim, adjoint, steps):
    sim = with_steps(sim, steps)

    def flux(eps):
        moved = eqx.tree_at(lambda s: s.medium.regions[0].permittivity, sim, eps)
        return em.simulate(moved, adjoint=adjoint).monitors["flux"].flux[0]

    eps = sim.medium.regions[0].permittivity
    compiled = jax.jit(jax.grad(flux)).lower(eps).compile()
    taken = compiled.memory_analysis().temp_size_in_bytes
    assert taken == pytest.approx(em.adjoint_bytes(sim, adjoint), rel=0.15)


def everywhere(frequencies):
    """Returns a run with spectra of the whole grid."""
    found = jnp.linspace(1.8e14, 2.2e14, frequencies)
    monitor = em.FieldMonitor(("Ez",), at(50, 50), (jnp.inf, jnp.inf), found)
    return plane({"f": monitor}, 64)


def test_no_step_keeps_what_monitors_have_added_up():
    """Each frequency has a complex number a cell, and one for its cotangent."""
    one, nine = (em.adjoint_bytes(everywhere(n), em.Checkpointed()) for n in (1, 9))
    assert nine - one == pytest.approx(8 * 2 * 8 * 100 * 100, rel=0.01)


@pytest.mark.slow
def test_compiled_gradient_of_many_spectra_takes_no_more():
    sim = everywhere(9)

    def seen(eps):
        moved = eqx.tree_at(lambda s: s.medium.regions[0].permittivity, sim, eps)
        spectra = em.simulate(moved, adjoint=em.Checkpointed()).monitors["f"]
        return jnp.sum(jnp.abs(spectra.values["Ez"]) ** 2)

    eps = sim.medium.regions[0].permittivity
    compiled = jax.jit(jax.grad(seen)).lower(eps).compile()
    taken = compiled.memory_analysis().temp_size_in_bytes
    assert taken == pytest.approx(em.adjoint_bytes(sim, em.Checkpointed()), rel=0.2)


def test_table_names_every_choice(sim):
    table = em.explain(sim)
    for name in ("LinearTape()", "LinearTape('bfloat16')", "LinearTape(every="):
        assert name in table
    for name in ("Reversible()", "FrequencyDomain()", "Checkpointed()"):
        assert name in table
    assert "Direct()" in table
    assert "design regions" in table
    whole = eqx.tree_at(lambda s: s.medium, sim, em.Medium(2.0))
    assert "whole grid" in em.explain(whole)
    assert em.adjoint_bytes(whole, em.LinearTape()) > em.adjoint_bytes(
        sim, em.LinearTape()
    )


@pytest.mark.slow
def test_short_runs_tell_the_time_of_long_ones(line):
    """Which the clock of a busy machine does not judge: it is told, and grows."""
    short, long = (
        em.adjoint_seconds(with_steps(line, n), em.LinearTape(), repeats=1)
        for n in (8, 4000)
    )
    assert 0 < short < long
    table = em.explain(with_steps(line, 40), em.Reversible(), timed=True)
    assert re.search(r"Reversible\(\) .* \d\S* \(\S+ s\)", table)


@pytest.mark.slow
def test_whole_grids_and_conductivities_are_timed(line):
    region = em.DesignRegion(((30, 70),), conductivity=jnp.zeros(40))
    for medium in (em.Medium(2.0), em.Medium(2.0, regions=region)):
        one = eqx.tree_at(lambda s: s.medium, with_steps(line, 8), medium)
        assert em.adjoint_seconds(one, em.LinearTape(), repeats=1) > 0


def test_a_table_tells_what_it_cannot_time(sim, monkeypatch):
    def limited(sim, adjoint):
        if isinstance(adjoint, em.Direct):
            check_memory(1e18, "the gradient")
        if isinstance(adjoint, em.Reversible):
            raise ArgumentError("It has layers.")
        return 3.0

    monkeypatch.setattr(_explain, "adjoint_seconds", limited)
    monkeypatch.setattr(_explain, "run_seconds", lambda sim: 1.5)
    table = em.explain(sim, timed=True)
    assert "2 (3 s)" in table
    assert "Direct() was not timed: the gradient must fit" in table
    assert "Reversible() was not timed: It has layers." in table
    with pytest.raises(ArgumentError, match="It has layers"):
        em.explain(sim, em.Reversible(), timed=True)


def test_a_run_too_large_to_time_is_refused(sim):
    whole = with_steps(sim, 10**9)
    with pytest.raises(MemoryLimitError, match="shortened run that is timed must fit"):
        em.adjoint_seconds(whole, em.Direct())


class Guess(em.AbstractAdjoint):
    def prepared(self, sim):
        return self

    def review(self, residual):
        pass

    def march(self, program, steps, until):
        raise NotImplementedError


def test_a_run_of_no_steps_costs_nothing_more(sim):
    assert "LinearTape()" in em.explain(em.with_steps(sim, 0))
    with pytest.raises(ArgumentError, match="`steps` must be an integer.*is -3"):
        em.with_steps(sim, -3)


def test_unknown_adjoint_is_refused(sim):
    with pytest.raises(ArgumentError, match="`adjoint` must be LinearTape.*is Guess"):
        em.adjoint_bytes(sim, Guess())
