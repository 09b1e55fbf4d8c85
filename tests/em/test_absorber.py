"""Absorbers: what they send back, what they keep stable, and what they refuse."""

import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks._cpml_cases import CASES, reflection
from benchmarks._physax_cpml import physax_trace
from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.cli._em_limits import check_cells
from physax.em._fading import build_fade
from physax.grid import Grid
from physax.runtime import MemoryLimitError
from physax.units import SPEED_OF_LIGHT
from tests.em.scenes import CELL, at


WIDE = em.Absorber(10**4)
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


FACES = {
    "x": [(em.Absorber(20), em.PEC()), (em.PEC(), em.Absorber(20))],
    "y": [(em.Absorber(24), em.PEC()), (em.PEC(), em.Absorber(24))],
}


def fade(name, **faces):
    """What absorbers take of a component on 60 by 64 cells."""
    sim = em.Simulation(
        Grid.uniform((60, 64), CELL),
        boundaries=em.Boundaries(**faces),
        polarisation="Hz",
        steps=2,
    )
    return np.asarray(build_fade(sim, name, (60, 64)))


@pytest.mark.parametrize("name", ["Ex", "Ey", "Hz"])
def test_absorbers_at_all_faces_add(name):
    all_faces = {axis: [pair[0][0], pair[1][1]] for axis, pair in FACES.items()}
    parts = [fade(name, **{axis: f}) for axis, both in FACES.items() for f in both]
    assert all(np.max(part) > 0 for part in parts)
    np.testing.assert_allclose(fade(name, **all_faces), sum(parts), rtol=1e-6)


def test_absorbers_at_both_ends_mirror_each_other():
    # Half a cell apart, as layers are: E on the nodes, H between them.
    low, high = (fade(n, x=f) for n, f in zip(("Ey", "Hz"), FACES["x"], strict=True))
    np.testing.assert_allclose(low, high[::-1], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("ratio", [0.25, 1.0, 2.0])
@pytest.mark.parametrize("low", [True, False])
def test_reflection_is_that_of_cells_of_any_width(ratio, low):
    widths = CELL * np.geomspace(1, ratio, 40)
    widths = np.append(widths[::-1], [CELL] * 30) if low else [*[CELL] * 30, *widths]
    layer = em.Absorber(40, reflection=1e-2)
    sim = em.Simulation(
        Grid.graded([np.append(0.0, np.cumsum(widths))]),
        boundaries=em.Boundaries(x=(layer, em.PEC()) if low else (em.PEC(), layer)),
        steps=2,
        dt=1e-17,
    )
    # The low one ends with the cell around node 0, the high one with the last cell.
    name, around = "Hy", np.asarray(sim.grid.cell_widths(0))
    if low:
        name, around = "Ez", (np.append(around[0], around[:-1]) + around) / 2
    taken = np.asarray(build_fade(sim, name, sim.grid.shape), float) / 0.5e-17
    loss = 2 * np.sum(taken * around) / SPEED_OF_LIGHT
    assert np.exp(-loss) == pytest.approx(1e-2, rel=0.02)


def test_scenes_have_absorbers_outside_of_their_size():
    faces = em.Boundaries(x=em.Absorber(20), y=em.CPML(10))
    sim = em.scene(
        [],
        size=(20 * CELL, 20 * CELL),
        wavelengths=20 * CELL,
        spacing=CELL,
        polarisation="Ez",
        boundaries=faces,
    )
    assert sim.grid.shape == (60, 40)
    with pytest.raises(MemoryLimitError):
        check_cells(
            (1e3 * CELL,) * 3,
            20 * CELL,
            CELL,
            lambda _: em.Boundaries.all(WIDE),
            painted=False,
        )


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
    with pytest.warns(PhysaxWarning, match="take an `Absorber`"):
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
    for region in (
        em.DesignRegion(box, eps),
        em.DesignRegion(box, eps, sigma),
        em.DesignRegion(box, conductivity=sigma),
    ):
        np.testing.assert_allclose(left(region), want, rtol=0, atol=1e-5 * scale)


def test_what_absorbers_do_not_go_with_is_refused():
    grid = Grid.uniform((60, 60), CELL)

    def build(face):
        faces = em.Boundaries.all(face)
        return em.Simulation(grid, boundaries=faces, polarisation="Ez", steps=4)

    sim = build(em.Absorber(20))
    with pytest.raises(ArgumentError, match="cannot undo what an `Absorber` absorbs"):
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
