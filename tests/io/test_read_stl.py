"""Solids from STL files against the shapes that they are of."""

import math
import struct

import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.grid import Grid
from physax.io import MissingPackageError, PhysaxFileError, read_stl
from physax.units import MICRO


trimesh = pytest.importorskip("trimesh")

GRID = Grid.centred((14, 13, 12), 0.1 * MICRO)
SIZE = (0.83, 0.93, 0.72)
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
FACES = [
    *[(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)],
    *[(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)],
]


def ball(rings):
    """Triangles of a sphere of radius 1 between circles of latitude."""

    def point(i, j):
        polar, around = math.pi * i / rings, math.pi * (j % (2 * rings)) / rings
        if i in (0, rings):
            return (0.0, 0.0, 1.0 if i == 0 else -1.0)
        ring = math.sin(polar)
        return (ring * math.cos(around), ring * math.sin(around), math.cos(polar))

    found = []
    for i in range(rings):
        for j in range(2 * rings):
            a, b, c, d = (
                point(i, j),
                point(i + 1, j),
                point(i + 1, j + 1),
                point(i, j + 1),
            )
            found += [(a, b, c)] if i < rings - 1 else []
            found += [(a, c, d)] if i > 0 else []
    return np.array([t for t in found if len(set(t)) == 3])


def box():
    return CORNERS[np.array(FACES)] * np.array(SIZE) / 2


def write(path, triangles, *, text=False):
    """Writes an STL file, as the format's description has it."""
    if text:
        lines = ["solid one"]
        for corners in triangles:
            lines += ["facet normal 0 0 0", "outer loop"]
            lines += ["vertex {:.9g} {:.9g} {:.9g}".format(*c) for c in corners]
            lines += ["endloop", "endfacet"]
        path.write_text("\n".join([*lines, "endsolid one"]))
        return path
    data = b"".ljust(80) + struct.pack("<I", len(triangles))
    for corners in triangles:
        data += struct.pack("<12fH", 0, 0, 0, *np.ravel(corners), 0)
    path.write_bytes(data)
    return path


def fractions(shape):
    return np.asarray(em.fill_fraction(shape, GRID, (0.5, 0.0, 0.5)))


def read_mesh(path):
    solid = read_stl(path)
    assert isinstance(solid, em.TriangleMesh)
    return solid


@pytest.mark.parametrize("text", [False, True])
def test_a_box_is_the_box(tmp_path, text):
    solid = read_mesh(write(tmp_path / "box.stl", box(), text=text))
    assert solid.vertices.shape == (8, 3)
    wanted = em.Box(0.0, tuple(x * MICRO for x in SIZE))
    found, wanted = fractions(solid), fractions(wanted)
    # Cells that one face cuts are exact but for the rounding of planes along an axis;
    # in the others one plane stands for two or three.
    cut = (wanted > 0) & (wanted < 1)
    assert np.max(np.abs(found - wanted)[~cut]) < 0.02
    assert np.max(np.abs(found - wanted)) < 0.1
    assert np.sum(found) == pytest.approx(np.sum(wanted), rel=1e-2)
    for end, size in zip(solid.bounds(), (-1, 1), strict=True):
        assert jnp.allclose(end, size * jnp.array(SIZE) / 2 * MICRO, rtol=1e-6, atol=0)


@pytest.mark.slow
def test_a_sphere_is_the_sphere(tmp_path):
    solid = read_mesh(write(tmp_path / "ball.stl", ball(12) * 0.5))
    found, wanted = fractions(solid), fractions(em.Sphere(0.0, 0.5 * MICRO))
    # The middles of the faces are r (1 - cos(pi / 24)) = 4 nm inside, of cells of 100.
    assert np.max(np.abs(found - wanted)) < 0.09
    assert np.sqrt(np.mean((found - wanted) ** 2)) < 0.02
    triangles = np.asarray(solid.vertices)[solid.triangles] / MICRO
    volume = np.sum(np.linalg.det(triangles)) / 6
    assert np.sum(found) * 1e-3 == pytest.approx(volume, rel=6e-3)


@pytest.mark.slow
def test_a_dent_is_outside():
    # An L: where two faces meet inward, the farther plane must not decide.
    ell = [(0, 0), (1.2, 0), (1.2, 0.5), (0.5, 0.5), (0.5, 1.2), (0, 1.2)]
    flat = np.array(ell) - 0.55
    points = np.concatenate([np.c_[flat, np.full(6, z)] for z in (-0.3, 0.35)])
    cap = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    sides = [(i, (i + 1) % 6, (i + 1) % 6 + 6) for i in range(6)]
    sides += [(i, (i + 1) % 6 + 6, i + 6) for i in range(6)]
    faces = [t[::-1] for t in cap] + [tuple(k + 6 for k in t) for t in cap] + sides
    solid = em.TriangleMesh(points * MICRO, faces)
    wanted = em.Polygon(flat * MICRO, "z", -0.3 * MICRO, 0.35 * MICRO)
    error = np.abs(fractions(solid) - fractions(wanted))
    assert np.max(error) < 0.15
    assert np.sqrt(np.mean(error**2)) < 0.02


def test_units_place_and_orientation(tmp_path):
    inward = write(tmp_path / "box.stl", box()[:, ::-1])
    solid = read_stl(inward, unit=2e-3, centre=(1.0, 2.0, 3.0), parts=1)
    low, high = solid.bounds()
    assert jnp.allclose(low + high, jnp.array([2.0, 4.0, 6.0]))
    assert jnp.allclose(high - low, 2e-3 * jnp.array(SIZE), rtol=1e-3)
    assert isinstance(solid, em.TriangleMesh)
    assert solid.parts == 1


def block(low, high, *, inward=False):
    """Triangles of a box between two corners in micrometres, and its shape."""
    low, high = np.array(low), np.array(high)
    corners = ((low + high) / 2 + CORNERS * (high - low) / 2)[np.array(FACES)]
    shape = em.Box.from_corners(low * MICRO, high * MICRO)
    return corners[:, ::-1] if inward else corners, shape


# Of two boxes: the first, the second, and what the solid is.
LEFT = ((-0.55, -0.4, -0.4), (-0.15, 0.4, 0.4))
PAIRS = {
    "apart": (LEFT, ((0.1, -0.3, -0.3), (0.6, 0.3, 0.3)), em.Union),
    "inside": (
        ((-0.6, -0.6, -0.5), (0.6, 0.6, 0.5)),
        ((-0.3, -0.2, -0.2), (0.2, 0.3, 0.2)),
        lambda both: both[0] - both[1],
    ),
    "crossing": (
        ((-0.62, -0.3, -0.3), (0.6, 0.3, 0.3)),
        ((-0.3, -0.62, -0.2), (0.25, 0.6, 0.33)),
        em.Union,
    ),
    "stacked": (LEFT, ((-0.15, -0.3, -0.3), (0.6, 0.3, 0.3)), em.Union),
}


@pytest.mark.parametrize("way", PAIRS)
@pytest.mark.parametrize(
    "inward", [(False, False), (False, True), (True, False), (True, True)]
)
def test_each_of_two_bodies_counts(tmp_path, way, inward):
    one, other, combined = PAIRS[way]
    parts = [block(*one, inward=inward[0]), block(*other, inward=inward[1])]
    path = write(tmp_path / "two.stl", np.concatenate([part for part, _ in parts]))
    if way == "inside" and inward[0] == inward[1]:
        with pytest.raises(PhysaxFileError, match="around a cavity must run"):
            read_stl(path)
        return
    if way in ("crossing", "stacked") and inward[0] != inward[1]:
        with pytest.raises(PhysaxFileError, match="must face the same way, but those"):
            read_stl(path)
        return
    found = read_stl(path, parts=1)
    assert isinstance(found, em.Union) == (way in ("crossing", "stacked"))
    error = fractions(found) - fractions(combined([shape for _, shape in parts]))
    # As of one box above, with cells in one part, which errs more at edges.
    assert np.max(np.abs(error)) < 0.35
    assert np.sqrt(np.mean(error**2)) < 0.02


@pytest.mark.parametrize("low", [-0.4, -0.45])
def test_a_post_in_a_cavity_may_stand_on_its_wall(tmp_path, low):
    outer, _ = block((-0.6, -0.6, -0.5), (0.6, 0.6, 0.5))
    cavity, _ = block((-0.5, -0.5, -0.4), (0.5, 0.5, 0.4), inward=True)
    post, _ = block((-0.2, -0.2, low), (0.2, 0.2, 0.2))
    path = write(tmp_path / "post.stl", np.concatenate([outer, cavity, post]))
    volume = fractions(read_stl(path)).sum() * 0.1**3
    # Edges err as those of one box do.
    assert volume == pytest.approx(1.44 - 0.8 + 0.16 * 0.6, rel=0.02)


def test_bodies_that_meet_or_face_the_wrong_way_are_no_mesh():
    def mesh(one, other, inward=False):
        faces = np.array(FACES) + 8
        corners = [
            np.mean(ends, 0) + CORNERS * np.ptp(ends, 0) / 2 for ends in (one, other)
        ]
        return em.TriangleMesh(
            np.concatenate(corners), [*FACES, *(faces[:, ::-1] if inward else faces)]
        )

    for way in ("crossing", "stacked"):
        with pytest.raises(ArgumentError, match="cross nor touch, .* 0 and 12 do"):
            mesh(*PAIRS[way][:2])
    with pytest.raises(
        ArgumentError, match="from outside, but the body of triangle 12"
    ):
        mesh(*PAIRS["apart"][:2], inward=True)
    with pytest.raises(ArgumentError, match="within it, but the body of triangle 12"):
        mesh(*PAIRS["inside"][:2])
    mesh(*PAIRS["inside"][:2], inward=True)


def test_a_surface_with_a_hole_is_refused(tmp_path):
    path = write(tmp_path / "open.stl", box()[1:])
    with pytest.raises(
        PhysaxFileError, match=r"open.stl: the surface is not valid.* 3 edges are"
    ):
        read_stl(path)


def test_a_face_that_is_turned_over_is_refused(tmp_path):
    triangles = box()
    triangles[4] = triangles[4][::-1]
    with pytest.raises(PhysaxFileError, match="in opposite directions"):
        read_stl(write(tmp_path / "box.stl", triangles))


def test_what_is_no_stl_is_refused(tmp_path):
    path = tmp_path / "noise.stl"
    for data in (b"", b"solid nothing", b"PK\x03\x04 not a surface", bytes(200)):
        path.write_bytes(data)
        with pytest.raises(PhysaxFileError, match="noise.stl: ") as error:
            read_stl(path)
        assert "max_triangles" not in str(error.value)
    with pytest.raises(PhysaxFileError, match="no triangles: it is cut short, or no"):
        read_stl(path)
    whole = write(tmp_path / "box.stl", box()).read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(PhysaxFileError, match="noise.stl: "):
        read_stl(path)
    with pytest.raises(OSError, match="missing.stl"):
        read_stl(tmp_path / "missing.stl")


def test_bad_arguments_are_refused(tmp_path):
    path = write(tmp_path / "box.stl", box())
    with pytest.raises(ArgumentError, match="`unit` must be positive and finite"):
        read_stl(path, unit=0.0)
    with pytest.raises(ArgumentError, match="`centre` must be three finite numbers"):
        read_stl(path, centre=np.zeros(2))
    with pytest.raises(PhysaxFileError, match=r"1 to 11 triangles \(`max_triangles`\)"):
        read_stl(path, max_triangles=11)


@pytest.mark.parametrize(
    ("vertices", "triangles", "message"),
    [
        (np.zeros((4, 2)), FACES, r"`vertices` must have shape \(n, 3\)"),
        (np.full((8, 3), math.inf), FACES, "`vertices` must be finite"),
        (CORNERS, np.zeros((0, 3), int), "`triangles` must be integers of shape"),
        (CORNERS, np.zeros((4, 3)), "`triangles` must be integers of shape .* float64"),
        (CORNERS[:7], FACES, "indices of the 7 vertices, from 0, but has 7"),
        (CORNERS, FACES[1:], "`triangles` must close a solid"),
        (CORNERS, [t[::-1] for t in FACES], "counterclockwise as seen from outside"),
    ],
)
def test_unsound_surfaces_are_refused(vertices, triangles, message):
    with pytest.raises(ArgumentError, match=message):
        em.TriangleMesh(vertices, triangles)


def test_parts_are_checked():
    with pytest.raises(ArgumentError, match="`parts` must be an integer of at least 1"):
        em.TriangleMesh(CORNERS, FACES, 0)


def test_missing_package_is_named(tmp_path, without):
    without("trimesh")
    with pytest.raises(MissingPackageError, match=r"pip install 'physax\[photonics\]'"):
        read_stl(tmp_path / "box.stl")
