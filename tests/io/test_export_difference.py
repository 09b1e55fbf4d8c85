import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.design import ConicFilter, contours, subpixel_projection
from physax.grid import Grid
from physax.io import (
    GDSLayer,
    contour_polygon,
    export_difference,
    read_gds,
    save_gds,
)
from physax.units import MICRO, NANO


H = 20 * NANO
SHAPE = (60, 50)
BLOCKS = np.zeros(SHAPE)
BLOCKS[10:30, 8:40] = BLOCKS[25:52, 20:32] = 1
BLOCKS[18:24, 15:30] = 0
SMOOTH = ConicFilter(8 * H, H)(jnp.asarray(BLOCKS))
DESIGN = subpixel_projection(SMOOTH, jnp.inf)
EXPORTED = contours(SMOOTH, H)


def amount_and_place(density):
    """Area and first moment along x, in cells."""
    return jnp.stack([jnp.sum(density), jnp.sum(density * jnp.arange(60.0)[:, None])])


@pytest.mark.slow
def test_figures_of_the_polygons_are_those_of_the_design():
    report = export_difference(amount_and_place, DESIGN, H, contour_polygon(EXPORTED))
    assert jnp.allclose(report.designed, amount_and_place(DESIGN))
    assert report.exported[0] == pytest.approx(EXPORTED.area / H**2, rel=1e-5)
    # At corners, of which there are 12, the projection is not second order.
    assert jnp.all(jnp.abs(report.difference) < 2e-3 * report.designed)
    assert report.cells_changed <= 12
    assert jnp.max(jnp.abs(report.density - DESIGN)) < 0.2
    assert report.density.dtype == DESIGN.dtype


def test_cells_that_change_are_counted():
    loops = contours(np.roll(BLOCKS, 1, axis=0), H)
    report = export_difference(jnp.sum, BLOCKS, H, contour_polygon(loops))
    # One step along x: cells at both sides of each wall.
    moved = np.count_nonzero(np.roll(BLOCKS, 1, axis=0) != BLOCKS)
    assert report.cells_changed == moved


def test_the_origin_is_that_of_the_contours():
    origin, widths = (-300 * NANO, 70 * NANO), (H, 0.5 * H)
    polygon = contour_polygon(contours(BLOCKS, widths, origin=origin))
    report = export_difference(jnp.sum, BLOCKS, widths, polygon, origin=origin)
    assert report.cells_changed == 0
    assert export_difference(jnp.sum, BLOCKS, widths, polygon).cells_changed > 100


def transmission(density):
    """Power of a dipole that leaves through a line behind the design."""
    box = ((30, 90), (35, 85))
    sim = em.Simulation(
        Grid.uniform((120, 120), H),
        em.Medium(2.1, regions=em.DesignRegion(box, 2.1 + density * (12.1 - 2.1))),
        em.Boundaries.all(em.CPML(10)),
        polarisation="Ez",
        steps=4000,
        sources={
            "dipole": em.Dipole(
                "Ez", (0.4 * MICRO, 1.2 * MICRO), em.GaussianPulse(2e14, 5e13)
            )
        },
        monitors={
            "beyond": em.FluxMonitor(
                "x",
                (2.1 * MICRO, 1.2 * MICRO),
                (0, 1.2 * MICRO),
                jnp.array([1.9e14, 2.1e14]),
            )
        },
    )
    return em.simulate(sim).monitors["beyond"].flux


@pytest.mark.slow
def test_a_simulation_of_the_file_agrees_with_that_of_the_design(tmp_path):
    pytest.importorskip("gdstk")
    save_gds(tmp_path / "device.gds", {(1, 0): EXPORTED}, precision=0.1 * NANO)
    layer = GDSLayer(em.Material(12.1))
    (structure,) = read_gds(tmp_path / "device.gds", {(1, 0): layer})
    report = export_difference(transmission, DESIGN, H, structure.shape)
    assert jnp.all(report.designed > 0)
    # What the two ways to average walls over cells differ by at 20 nm.
    assert jnp.all(jnp.abs(report.difference) < 0.02 * report.designed)
    # Walls that are off by a quarter of a cell are seen well.
    wider = contour_polygon(contours(SMOOTH, H, level=0.45))
    worse = export_difference(transmission, DESIGN, H, wider)
    assert jnp.max(jnp.abs(worse.difference / worse.designed)) > 0.1


def test_bad_input_is_refused():
    polygon = contour_polygon(EXPORTED)
    with pytest.raises(ArgumentError, match="`density` must have two axes"):
        export_difference(jnp.sum, np.ones((2, 2, 2)), H, polygon)
    with pytest.raises(ArgumentError, match="`figure` must return numbers of one sha"):
        export_difference(lambda rho: rho[rho == 1], BLOCKS, H, polygon)


@pytest.mark.parametrize("bad", [jnp.nan, jnp.inf])
def test_figures_that_are_not_finite_are_refused(bad):
    polygon = contour_polygon(EXPORTED)
    with pytest.raises(ArgumentError, match="`figure` of the design must be finite"):
        export_difference(lambda rho: rho[:2] * bad, BLOCKS, H, polygon)
    first = float(jnp.sum(BLOCKS))
    with pytest.raises(ArgumentError, match="of the exported shape must be finite"):
        export_difference(
            lambda rho: jnp.where(jnp.sum(rho) == first, 0.0, bad), BLOCKS, H, polygon
        )


def test_densities_outside_of_their_range_are_refused():
    polygon = contour_polygon(EXPORTED)
    for bad in (3.0, -0.01, jnp.nan):
        with pytest.raises(ArgumentError, match=r"`density` must lie in \[0, 1\]"):
            export_difference(jnp.sum, np.full(SHAPE, bad), H, polygon)
    export_difference(jnp.sum, np.full(SHAPE, 1 + 1e-6), H, polygon)


def test_print_is_a_short_table():
    polygon = contour_polygon(contours(BLOCKS, H))
    report = export_difference(amount_and_place, BLOCKS, H, polygon)
    lines = str(report).splitlines()
    assert lines[0].split() == ["figure", "designed", "exported", "difference"]
    assert lines[1].split()[:2] == ["0", f"{BLOCKS.sum():.6g}"]
    assert lines[3] == f"cells changed: 0 of {BLOCKS.size}"
    many = export_difference(lambda rho: jnp.ones(20) * 1j, BLOCKS, H, polygon)
    assert len(str(many).splitlines()) == 12
    assert "(9 of 20 figures)" in str(many)
