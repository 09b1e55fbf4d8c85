"""Boxes that cannot tell the force on a body are refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, PhysaxWarning, em
from physax.grid import Grid
from physax.units import MICRO
from tests.em.force_scenes import (
    CELL,
    FREE,
    FREQUENCY,
    PULSE,
    between,
    block,
    box,
    of,
    scene,
)


@pytest.mark.slow
def test_box_in_a_body_is_refused():
    with pytest.raises(
        ArgumentError, match="within three cells of all faces of monitor 'force'"
    ):
        scene("Ez", {"force": box(1, 3)})
    sigma = jnp.zeros((56, 52)).at[:, :14].set(1.0)
    with pytest.raises(
        ArgumentError, match="faces of monitor 'force' must be lossless"
    ):
        scene("Ez", {"force": box(3, 9)}, em.Medium(conductivity=sigma))


def test_faces_where_powers_of_the_field_act_are_refused():
    def build(chi3, **powers):
        one = em.Nonlinearity(((0, 56), (0, 52)), chi3=chi3, **powers)
        scene("Ez", {"force": box(3, 3)}, em.Medium(nonlinearities=one))

    # A box of cells may be larger than the body that it is for.
    inside = jnp.zeros((56, 52)).at[32:38, 22:30].set(1e-18)
    build(inside)
    message = "monitor 'force' must be lossless and linear.*nonlinear susc.*but is inf"
    with pytest.raises(ArgumentError, match=message):
        build(inside.at[35, 33].set(1e-18))
    with pytest.raises(ArgumentError, match=message):
        build(inside, sigma3=1e-18)


@pytest.mark.slow
def test_sources_are_three_cells_off():
    sim = scene("Ez", {"far": box(3, 3), "near": between((23, 18), (42, 34))})
    seen = em.simulate(sim).monitors
    np.testing.assert_allclose(of(seen["near"]), of(seen["far"]), rtol=1e-6)
    for low in (22, 18):
        with pytest.raises(
            ArgumentError, match="three cells or more from the currents"
        ):
            scene("Ez", {"force": between((low, 18), (42, 34))})


@pytest.mark.slow
def test_boxes_lie_within_a_plane_wave():
    def push(*ends):
        source = em.PlaneWave("+x", "Ez", (28 * CELL,) * 2, (24 * CELL,) * 2, PULSE)
        sim = em.Simulation(
            Grid.uniform((56, 56), CELL),
            block(4.0, ((26, 30), (25, 31))),
            em.Boundaries.all(em.CPML(8)),
            sources={"wave": source},
            monitors={str(k): between((k, k), (56 - k, 56 - k)) for k in ends},
            steps=900,
            polarisation="Ez",
        )
        return [one.force["x"][0] for one in em.simulate(sim).monitors.values()]

    # The wave's face at node 16 has a magnetic current half a cell outside.
    wide, narrow = push(19, 22)
    assert float(wide) == pytest.approx(float(narrow), rel=1e-7)
    for low in (18, 14, 12):
        with pytest.raises(ArgumentError, match="'wave', and within its box, but"):
            push(low)


@pytest.mark.slow
def test_body_that_only_a_program_knows_gives_nan():
    sim = scene("Ez", {"force": box(3, 3)}, em.Medium(jnp.ones((56, 52))), steps=2)

    @jax.jit
    def force(level):
        here = eqx.tree_at(lambda s: s.medium.permittivity, sim, level)
        return em.simulate(here).monitors["force"].force["x"]

    assert np.isfinite(force(jnp.ones((56, 52)))).all()
    assert np.isnan(force(jnp.ones((56, 52)).at[30, 26].set(2.0))).all()


@pytest.mark.parametrize(
    ("size", "match"),
    [
        ((FREE, 0.3 * MICRO), "must enclose a box, but is inf m along x"),
        ((0.0, 0.3 * MICRO), "must enclose a box, but is 0 m along x"),
        ((0.3 * MICRO, 48 * CELL), "must have its faces 3 cells or more inside"),
    ],
)
def test_open_boxes_are_refused(size, match):
    boundaries = em.Boundaries(x=em.CPML(8), y=em.PEC())
    monitor = em.ForceMonitor((28 * CELL, 26 * CELL), size, FREQUENCY)
    with pytest.raises(ArgumentError, match=match):
        scene("Ez", {"force": monitor}, em.Medium(), boundaries)


@pytest.mark.filterwarnings("ignore:Without `sources`")
def test_a_box_without_an_axis_of_a_force_is_refused():
    wall = em.Boundaries(r=em.CPML(8), z=(em.PEC(), em.CPML(8)))
    shut = em.Boundaries(r=em.PEC(), z=em.CPML(8))

    def forces(length, boundaries, height=20):
        monitor = em.ForceMonitor((0.0, 19 * CELL), (length, height * CELL), FREQUENCY)
        sim = em.Simulation(
            Grid.uniform((30, 48), CELL),
            boundaries=boundaries,
            cylindrical=em.Cylindrical(1),
            monitors={"force": monitor},
            steps=1,
        )
        return em.simulate(sim).monitors["force"].force

    with pytest.raises(ArgumentError, match="two faces along the axis of a force"):
        forces(20 * CELL, wall, height=38)
    assert set(forces(FREE, shut)) == {"z"}
    with pytest.raises(ArgumentError, match="is inf m along r"):
        forces(FREE, wall)


def test_frequency_that_nothing_emits_is_told():
    monitor = em.ForceMonitor((35 * CELL, 26 * CELL), (CELL * 14,) * 2, FREQUENCY / 4)
    with pytest.warns(PhysaxWarning, match="what it records there is rounding"):
        scene("Ez", {"force": monitor})
