"""Absorbers: what they send back, what they keep stable, and what they refuse."""

import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks._cpml_cases import CASES, reflection
from benchmarks._physax_cpml import physax_trace
from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.grid import Grid
from tests.em.scenes import CELL, at


THIN = "ignore:.*should have layers of at least"


@pytest.mark.x64
@pytest.mark.parametrize("target", [1e-2, 1e-4])
def test_waves_at_normal_incidence_return_from_the_wall_alone(target):
    case, cells = CASES[0], 40
    layer = em.Absorber(cells, reflection=target)
    found = [physax_trace(case, cells, far, layer) for far in (0, case.far)]
    # The grid slows waves down by half a percent.
    assert reflection(*found) == pytest.approx(target, rel=0.06)


@pytest.mark.x64
def test_the_impedance_of_the_medium_stays():
    index, cells, wave = 2.0, 40, 40 * CELL
    pulse = em.GaussianPulse(3e8 / wave / index, 3e7 / wave / index)

    def trace(far):
        count = 60 + far + 2 * cells
        sim = em.Simulation(
            Grid.uniform((count,), CELL),
            em.Medium(index**2, permeability=1.5),
            em.Boundaries(x=(em.CPML(cells), em.Absorber(cells, reflection=0.1))),
            sources={"in": em.Dipole("Ez", at(cells + 20), pulse)},
            monitors={"at": em.TimeMonitor(("Ez",), at(cells + 50), (0.0,))},
            steps=4000,
        )
        return np.ravel(em.simulate(sim).monitors["at"].values["Ez"])

    near, far = trace(0), trace(3000)
    back = np.max(np.abs(near - far)) / np.max(np.abs(far))
    assert back == pytest.approx(0.1 ** np.sqrt(1.5 * index**2), rel=0.05)


def film(face):
    """The largest energy near a dipole on a metal film, early and late."""
    cells, band = 60, (24, 36)
    metal = em.Dispersion(((0, cells), band), em.Drude(2e15, 2e13))
    sim = em.Simulation(
        Grid.uniform((cells, cells), CELL),
        em.Medium(dispersions=metal),
        em.Boundaries.all(face),
        polarisation="Hz",
        steps=20_000,
        sources={"in": em.Dipole("Ex", at(30, 37), em.GaussianPulse(5e14, 3e14))},
        monitors={
            "at": em.TimeMonitor(("Hz",), at(30, 30), at(10, 10), every=200),
        },
    )
    values = em.simulate(sim).monitors["at"].values["Hz"]
    energy = np.sum(np.asarray(values, float).reshape(len(values), -1) ** 2, axis=1)
    return np.max(energy[:20]), np.max(energy[-20:])


@pytest.mark.filterwarnings(THIN)
@pytest.mark.filterwarnings("ignore:The fields")
def test_metal_may_reach_into_an_absorber_but_not_into_a_perfect_layer():
    early, late = film(em.Absorber(12))
    assert late < 1e-4 * early
    with pytest.warns(PhysaxWarning, match="take an `Absorber` there"):
        _, late = film(em.CPML(12))
    assert not late < 1e6 * early


@pytest.mark.filterwarnings(THIN)
def test_media_of_design_regions_and_their_losses_are_absorbed_too():
    shape, box = (60, 12), ((0, 60), (0, 12))

    def left(region):
        sim = em.Simulation(
            Grid.uniform(shape, CELL),
            em.Medium(2.0, conductivity=10.0, regions=region),
            em.Boundaries(x=em.Absorber(20), y=em.Periodic()),
            polarisation="Ez",
            steps=600,
            sources={"in": em.Dipole("Ez", at(30, 6), em.GaussianPulse(3e14, 2e14))},
        )
        return em.simulate(sim).fields["Ez"]

    eps, sigma = jnp.full(shape, 2.0), jnp.full(shape, 10.0)
    want = left(())
    assert np.max(np.abs(want)) > 0
    scale = float(np.max(np.abs(want)))
    for region in (em.DesignRegion(box, eps), em.DesignRegion(box, eps, sigma)):
        np.testing.assert_allclose(left(region), want, rtol=0, atol=1e-5 * scale)


def test_what_absorbers_do_not_go_with_is_refused():
    grid = Grid.uniform((60, 60), CELL)

    def build(face):
        faces = em.Boundaries.all(face)
        return em.Simulation(grid, boundaries=faces, polarisation="Ez", steps=4)

    sim = build(em.Absorber(20))
    with pytest.raises(ArgumentError, match="cannot undo what an `Absorber` takes"):
        em.simulate(sim, adjoint=em.Reversible())
    assert "Reversible() is refused: it cannot undo absorbers" in em.explain(sim)
    with pytest.raises(ArgumentError, match="must not be an `Absorber` here"):
        em.cross_section_modes(grid, em.Medium(2.0), 2e14, boundaries=sim.boundaries)
    with pytest.raises(ArgumentError, match="must leave room between the absorbing"):
        build(em.Absorber(30))
    with pytest.warns(PhysaxWarning, match="at least 20 cells, but one has 8"):
        build(em.Absorber(8))
    with pytest.raises(ArgumentError, match="`reflection` must"):
        em.Absorber(20, reflection=1.5)
    assert "Absorber of 20 cells" in em.describe(sim)
