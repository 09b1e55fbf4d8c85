import inspect

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.em import Material, fill_fraction
from physax.grid import Grid
from physax.io import GDSError, GDSLayer, MissingPackageError, read_gds
from physax.units import MICRO


gdstk = pytest.importorskip("gdstk")

SILICON = GDSLayer(Material(permittivity=12.25))
GRID = Grid.centred((60, 60), 0.1 * MICRO)


@pytest.fixture
def layout(tmp_path):
    """A layout with touching rectangles, a ring, an array of a cell and a path."""
    library = gdstk.Library(unit=1e-6, precision=1e-9)
    post = library.new_cell("POST")
    post.add(gdstk.rectangle((0, 0), (0.2, 0.3), layer=2))
    device = library.new_cell("DEVICE")
    device.add(
        gdstk.rectangle((-2, -0.25), (0.03, 0.25), layer=1),
        gdstk.rectangle((0.03, -0.25), (2, 0.25), layer=1),
        gdstk.rectangle((-2, 1), (-1, 2), layer=1),
        gdstk.ellipse((0, 0), 1.5, 1.0, layer=3, tolerance=1e-4),
        gdstk.Reference(post, (-2, -2), columns=3, rows=2, spacing=(1, 0.5)),
        gdstk.FlexPath([(0, 0), (2, 0)], 0.4, layer=4, simple_path=True),
    )
    path = tmp_path / "device.gds"
    library.write_gds(path)
    return path


def area(structure):
    return jnp.sum(fill_fraction(structure.shape, GRID, (0.5, 0.5))) * 0.01


@pytest.mark.slow
def test_areas_of_layers_are_those_drawn(layout):
    wanted = {1: 3.0, 2: 6 * 0.06, 3: np.pi * (1.5**2 - 1), 4: 0.8}
    read = read_gds(layout, {(layer, 0): SILICON for layer in wanted})
    for structure, size in zip(read, wanted.values(), strict=True):
        assert structure.material.permittivity == 12.25
        # Coordinates are rounded to 1 nm in the file, circles cut at 1e-4 um.
        assert area(structure) == pytest.approx(size, rel=2e-3)


def test_touching_pieces_leave_no_seam(layout):
    (structure,) = read_gds(layout, {(1, 0): SILICON})
    fraction = fill_fraction(structure.shape, GRID, (0.5, 0.5))
    assert jnp.allclose(fraction[12:48, 30], 1, atol=1e-5)


def test_layer_has_its_height_and_origin(layout):
    layer = GDSLayer(Material(permittivity=4.0), -0.11 * MICRO, 0.11 * MICRO)
    (structure,) = read_gds(
        layout, {(4, 0): layer}, cell="DEVICE", centre=(1 * MICRO, 0.0)
    )
    assert structure.shape.low == pytest.approx(-0.11 * MICRO)
    corners = np.asarray(structure.shape.vertices) / MICRO
    assert np.allclose(np.max(corners, axis=0), [1, 0.2], atol=2e-3)
    assert np.allclose(np.min(corners, axis=0), [-1, -0.2], atol=2e-3)


def test_missing_layer_cell_and_file_are_named(layout, tmp_path):
    with pytest.raises(GDSError, match=r"device.gds has no polygon on layer \(7, 0\)"):
        read_gds(layout, {(7, 0): SILICON})
    with pytest.raises(GDSError, match="has no cell 'NO'; it has .'DEVICE', 'POST'."):
        read_gds(layout, {(1, 0): SILICON}, cell="NO")
    with pytest.raises(FileNotFoundError, match=r"none.gds"):
        read_gds(tmp_path / "none.gds", {(1, 0): SILICON})
    with pytest.raises(ArgumentError, match="`layers` must name at least one"):
        read_gds(layout, {})
    for bad in (-1, True, 1.0):
        with pytest.raises(
            ArgumentError, match=r"`layers\[.*\]` must be an integer of"
        ):
            # Users run it without the type checks of the tests.
            inspect.unwrap(read_gds)(layout, {(bad, 0): SILICON})


def test_layers_are_integers_of_any_library(layout):
    ours = read_gds(layout, {(1, 0): SILICON})
    theirs = inspect.unwrap(read_gds)(layout, {(np.int64(1), np.uint8(0)): SILICON})
    assert eqx.tree_equal(ours, theirs)


def test_two_top_cells_need_a_choice(tmp_path):
    library = gdstk.Library()
    for name in ("A", "B"):
        library.new_cell(name).add(gdstk.rectangle((0, 0), (1, 1), layer=1))
    library.write_gds(tmp_path / "two.gds")
    with pytest.raises(GDSError, match="has 2 top cells .'A', 'B'.: give one"):
        read_gds(tmp_path / "two.gds", {(1, 0): SILICON})


def test_damaged_files_are_refused(layout):
    good = layout.read_bytes()
    for cut in (0, 3, 40, len(good) // 2, len(good) - 4):
        layout.write_bytes(good[:cut])
        with pytest.raises(GDSError, match=r"device.gds"):
            read_gds(layout, {(1, 0): SILICON})
    layout.write_bytes(b"%PDF-1.4 not a layout")
    with pytest.raises(GDSError, match="is not a GDSII file"):
        read_gds(layout, {(1, 0): SILICON})


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("seed", range(2))
def test_no_damage_crashes_the_reader(layout, seed):
    # The reader in C++ takes the process down with it where its input is not sound.
    good = layout.read_bytes()
    random = np.random.default_rng(seed)
    for _ in range(100):
        bad = bytearray(good)
        for at in random.integers(len(bad), size=random.integers(1, 4)):
            bad[at] = random.integers(256)
        layout.write_bytes(bad)
        try:
            read_gds(layout, {(1, 0): SILICON}, max_vertices=2000)
        except GDSError:
            continue


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"\x00\x08\x13\x02\x00\x03", b"\x00\x08\x13\x02\x00\x00", "no columns"),
        (b"\x00\x04\x11\x00", b"\x00\x04\x04\x00", "misplaced in an element"),
        (b"\x00\x04\x08\x00", b"\x00\x04\x0a\x00", "is incomplete"),
        (b"POST", b"P\xffST", "not in ASCII"),
        (b"\x00\x14\x03\x05\x3e", b"\x00\x14\x03\x05\xbe", "not positive"),
    ],
)
def test_damage_is_described(layout, old, new, message):
    good = layout.read_bytes()
    assert old in good
    layout.write_bytes(good.replace(old, new, 1))
    with pytest.raises(GDSError, match=rf"device.gds is damaged at byte .*{message}"):
        read_gds(layout, {(1, 0): SILICON})


def test_limits(layout):
    with pytest.raises(GDSError, match="more than `max_bytes` = 100"):
        read_gds(layout, {(1, 0): SILICON}, max_bytes=100)
    with pytest.raises(GDSError, match="has 24 vertices on the wanted layers"):
        read_gds(layout, {(2, 0): SILICON}, max_vertices=20)


def test_arrays_of_arrays_are_counted_before_they_are_resolved(tmp_path):
    library = gdstk.Library()
    cell = library.new_cell("C0")
    cell.add(gdstk.rectangle((0, 0), (1, 1), layer=1))
    for level in range(1, 6):
        above = library.new_cell(f"C{level}")
        above.add(gdstk.Reference(cell, columns=999, rows=999, spacing=(2, 2)))
        cell = above
    library.write_gds(tmp_path / "bomb.gds")
    with pytest.raises(GDSError, match="more than `max_vertices` = 50000"):
        read_gds(tmp_path / "bomb.gds", {(1, 0): SILICON})


def test_cells_that_refer_to_themselves_or_to_nothing_are_refused(tmp_path):
    square = gdstk.rectangle((0, 0), (1, 1), layer=1)
    loop = gdstk.Library()
    loop.new_cell("A").add(gdstk.Reference("B"), square)
    loop.new_cell("B").add(gdstk.Reference("A"))
    loop.write_gds(tmp_path / "loop.gds")
    with pytest.raises(GDSError, match="cell 'A' contains itself"):
        read_gds(tmp_path / "loop.gds", {(1, 0): SILICON}, cell="A")
    hole = gdstk.Library()
    hole.new_cell("A").add(gdstk.Reference("B"), square.copy())
    hole.write_gds(tmp_path / "hole.gds")
    with pytest.raises(GDSError, match=r"hole.gds is not a valid GDSII file"):
        read_gds(tmp_path / "hole.gds", {(1, 0): SILICON})


def test_missing_package_is_named(layout, without):
    without("gdstk")
    with pytest.raises(MissingPackageError, match=r"pip install 'physax\[photonics\]'"):
        read_gds(layout, {(1, 0): SILICON})


def test_a_layer_upside_down_is_refused():
    with pytest.raises(ArgumentError, match=r"`high` must be above `low` \(1e-06\)"):
        GDSLayer(Material(2.0), 1e-6, 0.0)


@pytest.mark.parametrize("centre", [0.0, (0.0, 0.0, 0.0), (0.0, np.nan), "xy"])
def test_a_centre_is_two_finite_numbers(layout, centre):
    with pytest.raises(ArgumentError, match="`centre` must be two finite numbers, but"):
        # Users run it without the type checks of the tests.
        inspect.unwrap(read_gds)(layout, {(1, 0): SILICON}, centre=centre)


def test_a_layer_has_a_material():
    with pytest.raises(ArgumentError, match=r"`material` must be .*`library\('Si'\)`"):
        GDSLayer("Si")


SLOPED = pytest.mark.parametrize("sidewall", [0.2, -0.2])


@pytest.fixture
def framed(tmp_path):
    """A layout with a frame, whose hole a cut joins to the outside."""
    library = gdstk.Library(unit=1e-6, precision=1e-9)
    around, hole = (gdstk.rectangle((-x, -0.5), (x, 0.5)) for x in (1, 0.4))
    hole.scale(1, 0.5)
    frame = gdstk.boolean(around, hole, "not", layer=1)
    assert len(frame) == 1
    library.new_cell("FRAME").add(*frame)
    library.write_gds(tmp_path / "frame.gds")
    return tmp_path / "frame.gds"


def frame_volume(sidewall):
    """Of the frame, 0.4 um high, in cubic micrometres."""

    def frustum(x, y, slope):
        # Simpson's rule is exact: the area is a parabola in the height.
        rise = np.tan(slope) * 0.4 * np.array([0, 0.5, 1])
        areas = (x - 2 * rise) * (y - 2 * rise)
        return 0.4 / 6 * (areas[0] + 4 * areas[1] + areas[2])

    return frustum(2, 1, sidewall) - frustum(0.8, 0.5, -sidewall)


@SLOPED
def test_sidewalls_narrow_polygons_and_widen_holes(framed, sidewall):
    grid = Grid.centred((26, 16, 6), 0.1 * MICRO)

    layer = GDSLayer(Material(), -0.2 * MICRO, 0.2 * MICRO, sidewall)
    (structure,) = read_gds(framed, {(1, 0): layer})
    found = jnp.sum(fill_fraction(structure.shape, grid, (0.5, 0.5, 0.5))) * 1e-3
    # Prisms are right to 1e-6, corners to the nanometre of the file.
    assert found == pytest.approx(frame_volume(sidewall), rel=1e-5)


def test_sidewalls_that_cannot_be_are_refused(framed, without):
    with pytest.raises(ArgumentError, match=r"must be finite where .* -inf and 1e-07"):
        GDSLayer(Material(), high=1e-7, sidewall=0.1)
    with pytest.raises(
        ArgumentError, match=r"`sidewall` must lie in \(-pi / 2, pi / 2"
    ):
        GDSLayer(Material(), 0.0, 1e-7, sidewall=80.0)
    steep = {(1, 0): GDSLayer(Material(), 0.0, 0.4 * MICRO, sidewall=0.8)}
    with pytest.raises(GDSError, match=r"frame.gds are not valid: .*wall around all"):
        read_gds(framed, steep)
    without("shapely")
    with pytest.raises(MissingPackageError, match="a `sidewall` need the package"):
        read_gds(framed, steep)
