"""Where perfect metal has no place, and what is told of it."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.grid import Grid
from physax.units import SPEED_OF_LIGHT
from tests.em.test_metal import NAMES


ROD = em.Structure(em.Box((4.0, 4.0), (2.5, 2.5)), em.PEC())


@pytest.mark.parametrize(
    ("more", "options", "message"),
    [
        ([], {"averaging": "polarised"}, "with `averaging='polarised'`"),
        ([em.Material(np.eye(3) * 2)], {}, "with a tensor"),
        ([em.Material(2.0, chi3=1e-20)], {}, "with a nonlinear material"),
    ],
)
def test_what_metal_does_not_go_with_is_refused(more, options, message):
    grid = Grid.uniform((8, 8), 1.0)
    slabs = [em.Structure(em.Box((1.0, 4.0), (1.0, 1.0)), one) for one in more]
    with pytest.raises(ArgumentError, match=message):
        em.rasterise([*slabs, ROD], grid, components=NAMES["Hz"], **options)


def test_rings_of_metal_are_refused():
    grid = Grid.uniform((8, 8), 1.0)
    with pytest.raises(ArgumentError, match="with a grid of r and z"):
        em.rasterise([ROD], grid, components=em.Cylindrical.components)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (lambda f: em.Dipole("Ez", (4.0, 4.0), f), "must not lie inside perfect metal"),
        (
            lambda f: em.ModeSource(em.Port((4.0, 4.0), 6.0, "+x"), f),
            "must not meet perfect metal",
        ),
        (
            lambda f: em.Dipole("Hx", (4.0, 4.0), f),
            "must not lie inside perfect metal",
        ),
        (
            lambda f: em.GaussianBeam(em.Port((4.0, 4.0), 6.0, "+x"), f, 2.0),
            "must not meet perfect metal",
        ),
        (
            lambda f: em.PlaneWave("+x", "Ez", (4.0, 4.0), (2.0, 4.0), f),
            "must lie in a linear medium .* but meet perfect metal",
        ),
    ],
)
def test_sources_in_metal_are_refused(part, message):
    grid = Grid.uniform((8, 8), 1.0)
    medium = em.rasterise([ROD], grid, components=NAMES["Ez"])
    pulse = em.GaussianPulse(SPEED_OF_LIGHT / 20, SPEED_OF_LIGHT / 60)
    with pytest.raises(ArgumentError, match=message):
        em.Simulation(
            grid, medium, sources={"a": part(pulse)}, polarisation="Ez", steps=1
        )


@pytest.mark.parametrize(
    "monitor",
    [
        em.ModeMonitor(em.Port((4.0, 4.0), 6.0, "+x"), [1e7]),
        em.NearFieldMonitor((4.0, 4.0), (2.0, 4.0), [1e7]),
        em.ForceMonitor((4.0, 4.0), (2.0, 2.0), [1e7]),
    ],
)
def test_monitors_that_need_a_medium_are_refused_in_metal(monitor):
    grid = Grid.uniform((8, 8), 1.0)
    medium = em.rasterise([ROD], grid, components=NAMES["Ez"])
    with pytest.raises(ArgumentError, match="'a' must not meet perfect metal, but"):
        em.Simulation(grid, medium, monitors={"a": monitor}, polarisation="Ez", steps=1)


@pytest.mark.filterwarnings("ignore:Without `sources`")
def test_a_record_is_not_sent_from_metal():
    grid, pulse = Grid.uniform((8, 8), 1.0), em.GaussianPulse(1e7, 3e6)
    near = em.NearFieldMonitor((4.0, 4.0), (2.0, 4.0), [1e7])
    sim = em.Simulation(grid, monitors={"near": near}, polarisation="Ez", steps=1)
    source = em.HuygensSource(em.simulate(sim).monitors["near"], pulse)
    with pytest.raises(ArgumentError, match="'a' must not meet perfect metal"):
        em.Simulation(
            grid,
            em.rasterise([ROD], grid, components=NAMES["Ez"]),
            sources={"a": source},
            polarisation="Ez",
            steps=1,
        )


def test_metal_is_refused_where_it_has_no_place():
    grid = Grid.uniform((8, 8), 1.0)
    medium = em.rasterise([ROD], grid, components=NAMES["Ez"])
    with pytest.raises(ArgumentError, match="cross-section must not hold perfect"):
        em.cross_section_modes(grid, medium, 1e7)
    with pytest.raises(ArgumentError, match="must not hold perfect metal in cylindri"):
        em.Simulation(grid, medium, cylindrical=em.Cylindrical(0), steps=1)
    powers = em.Nonlinearity(((0, 1), (0, 1)), chi3=1e-20)
    mixed = em.Medium(nonlinearities=powers, metal=medium.metal)
    with pytest.raises(ArgumentError, match="`nonlinearities` of a medium with"):
        em.Simulation(grid, mixed, polarisation="Ez", steps=1)
    wide = Grid.uniform((8, 9), 1.0)
    with pytest.raises(ArgumentError, match=r"entry of shape \(8, 9\) for each of"):
        em.Simulation(wide, medium, polarisation="Ez", steps=1)
    with pytest.raises(ArgumentError, match="that of 'Ex' is missing"):
        em.Simulation(grid, medium, polarisation="Hz", steps=1)


def test_metal_is_told_of():
    grid = Grid.uniform((8, 8), 1.0)
    medium = em.rasterise([ROD], grid, components=NAMES["Ez"])
    sim = em.Simulation(grid, medium, polarisation="Ez", steps=1)
    # Nine nodes of 64 lie in the rod.
    assert "metal         perfect, over 14.06% of the edges" in em.describe(sim)
    assert "LinearTape()" in em.explain(sim)


def test_turned_metal_is_refused():
    grid = Grid.uniform((8, 8, 8), 1.0)
    can = em.rotate(em.Cylinder((4.0, 4.0, 4.0), 2.0, "z", 3.0), 0.4, "x")
    with pytest.raises(ArgumentError, match="only lines and faces are asked for"):
        em.rasterise([em.Structure(can, em.PEC())], grid)


def test_faces_must_have_room():
    with pytest.raises(ArgumentError, match="above 0 for H"):
        em.Metal({"Hx": jnp.zeros((2, 2))})
