import pytest

from physax.em import Material
from physax.io import GDSError, GDSLayer, read_gds


gdstk = pytest.importorskip("gdstk")

SILICON = GDSLayer(Material(permittivity=12.25))
SQUARE = [(0, 0), (1, 0), (1, 1), (0, 1)]


def layout(folder, *shapes):
    library = gdstk.Library(unit=1e-6, precision=1e-9)
    inner = library.new_cell("INNER")
    inner.add(*shapes)
    library.new_cell("DEVICE").add(
        gdstk.rectangle((-3, 0), (-2, 1), layer=1), gdstk.Reference(inner, (5, 0))
    )
    library.write_gds(folder / "device.gds")
    return folder / "device.gds"


@pytest.mark.parametrize(
    "points",
    [
        [(0, 0), (1, 1), (1, 0), (0, 1)],  # A bow tie, whose signed area is 0.
        [(0, 0), (2, 2), (2, 0), (0, 1)],
        # A bow tie with a corner where it crosses itself.
        [(0, 0), (1, 1), (2, 2), (2, 0), (1, 1), (0, 2)],
        # Twice around.
        [(0, 0), (3, 0), (3, 3), (0, 3), (0, 1), (1, 1), (1, 2), (2, 2), (2, -1)],
    ],
)
def test_polygons_that_cross_themselves_are_refused(tmp_path, points):
    path = layout(tmp_path, gdstk.Polygon(points, layer=1))
    with pytest.raises(
        GDSError, match=r"layer \(1, 0\) in cell 'INNER' of .* crosses itself: the one"
    ):
        read_gds(path, {(1, 0): SILICON})


@pytest.mark.parametrize("points", [[(0, 0), (1, 1), (2, 2)], [(0, 0), (1, 0), (0, 0)]])
def test_polygons_without_area_are_refused(tmp_path, points):
    path = layout(tmp_path, gdstk.Polygon(points, layer=1))
    with pytest.raises(
        GDSError, match=r"has no area: the one from \(0, 0\) to \((2|1)e-06, .* m. Fix"
    ):
        read_gds(path, {(1, 0): SILICON})


def test_what_is_on_other_layers_does_not_matter(tmp_path):
    bow_tie = gdstk.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)], layer=2)
    path = layout(tmp_path, bow_tie, gdstk.Polygon(SQUARE, layer=1))
    (structure,) = read_gds(path, {(1, 0): SILICON})
    assert structure.shape.outlines == (4, 4)


def test_cuts_to_holes_and_rounded_corners_pass(tmp_path):
    ring = gdstk.ellipse((0, 0), 1.5, 1.0, layer=1, tolerance=1e-4)
    framed = gdstk.boolean(
        gdstk.rectangle((3, 0), (5, 2)), gdstk.ellipse((4, 1), 0.5), "not", layer=1
    )
    path = layout(tmp_path, ring, *framed)
    (structure,) = read_gds(path, {(1, 0): SILICON})
    assert len(structure.shape.outlines) == 3


def test_an_unknown_layer_is_named_with_those_there(tmp_path):
    path = layout(tmp_path, gdstk.Polygon(SQUARE, layer=7, datatype=2))
    with pytest.raises(
        GDSError, match=r"layer \(4, 1\). The file has \[\(1, 0\), \(7, 2\)\]"
    ):
        read_gds(path, {(4, 1): SILICON})
