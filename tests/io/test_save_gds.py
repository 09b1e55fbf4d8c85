import math

import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.design import Contours, SolidPart, contours
from physax.em import Material, fill_fraction
from physax.grid import Grid
from physax.io import (
    GDSLayer,
    MissingPackageError,
    PhysaxFileError,
    contour_polygon,
    read_gds,
    save_gds,
)
from physax.units import MICRO, NANO


gdstk = pytest.importorskip("gdstk")

H = 10 * NANO
ORIGIN = (-200 * NANO, 50 * NANO)
LAYER = GDSLayer(Material(permittivity=12.25))


def ring(cells=60):
    """A ring with an island in its hole, and a bar to the edge: signed distances."""
    x = (np.arange(cells) + 0.5) * H
    r = np.hypot(x[:, None] - 300 * NANO, x - 300 * NANO)
    bar = 60 * NANO - np.abs(x - 300 * NANO) + 0 * r
    bar[x < 450 * NANO] = -1
    band = 60 * NANO - np.abs(r - 180 * NANO)
    return np.maximum.reduce([band, bar, 50 * NANO - r])


def as_density(distance):
    return np.clip(0.5 + distance / H, 0, 1)


def rasterised(shape, like):
    grid = Grid.uniform(like.shape, H, ORIGIN)
    return np.asarray(fill_fraction(shape, grid, (0.5, 0.5)))


def square(low, size, holes=()):
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    return SolidPart(low + size * corners, holes)


@pytest.mark.slow
def test_a_design_comes_back_but_for_its_interface(tmp_path):
    density = as_density(ring())
    exact = contours(ring(), H, level=0, origin=ORIGIN)
    assert sorted(len(part.holes) for part in exact.parts) == [0, 1]
    save_gds(tmp_path / "ring.gds", {(3, 1): exact})
    (structure,) = read_gds(tmp_path / "ring.gds", {(3, 1): LAYER})
    back = rasterised(structure.shape, density)
    assert back.sum() * H**2 == pytest.approx(exact.area, rel=1e-3)
    # Corners are rounded to 0.05 cells. Across a wall the density is the covered part
    # of a cell only if the wall runs along the cells.
    away = np.abs(ring()) > H
    assert np.abs(back - density)[away].max() < 1e-5
    assert np.abs(back - density).max() < 0.2
    assert np.array_equal(back > 0.5, density > 0.5)


def test_a_binary_array_comes_back_cell_by_cell(tmp_path):
    binary = ring() > 0
    save_gds(tmp_path / "ring.gds", {(1, 0): contours(binary, H, origin=ORIGIN)})
    (structure,) = read_gds(tmp_path / "ring.gds", {(1, 0): LAYER})
    back = rasterised(structure.shape, binary)
    # At most the four corners of a cell are cut, an eighth of it each.
    assert np.array_equal(back > 0.5, binary)
    assert np.abs(back - binary).max() < 0.5


@pytest.mark.slow
def test_the_file_holds_the_polygons_of_the_contours(tmp_path):
    exact = contours(ring(), H, level=0, origin=ORIGIN)
    save_gds(tmp_path / "ring.gds", {(1, 0): exact}, precision=0.01 * NANO)
    (structure,) = read_gds(tmp_path / "ring.gds", {(1, 0): LAYER})
    direct = rasterised(contour_polygon(exact), ring())
    # 1e-3 of a cell for the raster, and some for float32.
    assert np.abs(rasterised(structure.shape, ring()) - direct).max() < 3e-3
    assert direct.sum() * H**2 == pytest.approx(exact.area, rel=1e-6)


def test_layers_cell_and_unit_are_those_asked_for(tmp_path):
    low = Contours([square(0.0, 1 * MICRO)])
    high = Contours([square(0.25 * MICRO, 0.5 * MICRO)])
    save_gds(
        tmp_path / "two.gds",
        {(1, 0): low, (2, 5): high},
        cell="GRATING_1",
        unit=NANO,
        precision=0.5 * NANO,
    )
    library = gdstk.read_gds(tmp_path / "two.gds")
    assert (library.unit, library.precision) == pytest.approx((1e-9, 5e-10))
    (cell,) = library.cells
    assert cell.name == "GRATING_1"
    areas = {(p.layer, p.datatype): p.area() for p in cell.polygons}
    assert areas == pytest.approx({(1, 0): 1e6, (2, 5): 0.25e6})


def test_outlines_of_many_points_come_back_whole(tmp_path):
    angle = np.linspace(0, 2 * math.pi, 20_001)[:-1]
    circle = 100 * MICRO * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    disc = Contours([SolidPart(circle)])
    save_gds(tmp_path / "disc.gds", {(1, 0): disc})
    pieces = gdstk.read_gds(tmp_path / "disc.gds").cells[0].polygons
    assert len(pieces) > 1
    area = sum(piece.area() for piece in pieces) * MICRO**2
    assert area == pytest.approx(disc.area, rel=1e-6)


def test_the_same_design_gives_the_same_bytes(tmp_path):
    layers = {(1, 0): contours(ring() > 0, H)}
    for name in ("a.gds", "b.gds"):
        save_gds(tmp_path / name, layers)
    assert (tmp_path / "a.gds").read_bytes() == (tmp_path / "b.gds").read_bytes()


SPECK = Contours([square(0.0, 1 * MICRO), square(3.1 * MICRO, 0.3 * NANO)])
PINHOLE = Contours(
    [square(0.0, 1 * MICRO, (square(5.1e-7, 3e-10).outline,))],
)
GOOD = {(1, 0): Contours([square(0.0, 1 * MICRO)])}


@pytest.mark.parametrize(
    ("layers", "options", "message"),
    [
        ({}, {}, "`layers` must name at least one"),
        ({(1, 0): Contours(())}, {}, r"polygons on each layer, but \(1, 0\) has none"),
        ({(-1, 0): GOOD[1, 0]}, {}, r"from 0 to 32767, but has \(-1, 0\)"),
        ({(1, 2**15): GOOD[1, 0]}, {}, r"but has \(1, 32768\)"),
        (
            {(2, 0): SPECK},
            {},
            r"on layer \(2, 0\) near \(3.1e-06, 3.1e-06\) m has none",
        ),
        ({(2, 0): PINHOLE}, {}, "has none once rounded to `precision` = 1e-09 m"),
        (GOOD, {"cell": "Grüße"}, "`cell` must be 1 to 32 letters"),
        (GOOD, {"precision": 0}, "`precision` must be positive and at most `unit`"),
        (GOOD, {"precision": 1.0}, "but is 1 m"),
        (GOOD, {"precision": 1e-16}, r"at least 4.66e-16 m for polygons as far out"),
    ],
)
def test_what_cannot_be_written_is_refused_and_the_old_file_stays(
    tmp_path, layers, options, message
):
    path = tmp_path / "device.gds"
    path.write_bytes(b"old")
    with pytest.raises(ArgumentError, match=message):
        save_gds(path, layers, **options)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file(tmp_path, largest_file):
    path = tmp_path / "device.gds"
    path.write_bytes(b"old")
    # Beyond this size writing fails, of which the package tells nothing.
    with (
        largest_file(100),
        pytest.raises(PhysaxFileError, match="could not be written completely"),
    ):
        save_gds(path, GOOD)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_missing_package_is_named(tmp_path, without):
    without("gdstk")
    with pytest.raises(MissingPackageError, match=r"pip install 'physax\[photonics\]'"):
        save_gds(tmp_path / "device.gds", GOOD)


def test_contours_without_a_part_are_no_shape():
    with pytest.raises(ArgumentError, match="`contours` must have at least one part"):
        contour_polygon(Contours(()))
