import numpy as np
import pytest
import scipy.ndimage

from physax._checks import ArgumentError
from physax.design import Contours, SolidPart, contours
from physax.io import MissingPackageError, save_stl
from physax.units import MICRO, NANO


pytest.importorskip("shapely")
trimesh = pytest.importorskip("trimesh")

H = 10 * NANO
SQUARE = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * MICRO


def ring():
    x = (np.arange(60) + 0.5) * H
    r = np.hypot(x[:, None] - 300 * NANO, x - 300 * NANO)
    return np.maximum(60 * NANO - np.abs(r - 180 * NANO), 50 * NANO - r)


def noise(seed):
    values = np.random.default_rng(seed).standard_normal((50, 50))
    return scipy.ndimage.gaussian_filter(values, 1.5)


def triangles_in(path):
    """What the file says, read by the definition of the format."""
    data = path.read_bytes()
    assert not data.startswith(b"solid")
    (count,) = np.frombuffer(data[80:84], "<u4")
    assert len(data) == 84 + 50 * count
    numbers = np.frombuffer(
        data[84:], [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("rest", "<u2")]
    )
    assert not numbers["rest"].any()
    return numbers["normal"].astype(float), numbers["corners"].astype(float)


def directed_edges(corners):
    _, index = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    index = index.reshape(-1, 3)
    return np.concatenate([index[:, [0, 1]], index[:, [1, 2]], index[:, [2, 0]]])


DESIGNS = {
    "square": Contours([SolidPart(SQUARE)]),
    "ring": contours(ring(), H, level=0, origin=(-250 * NANO, 1 * MICRO)),
    "binary": contours(ring() > 0, H),
    "noise": contours(noise(1), H, level=0.02),
    # Corners on straight edges, of the outline and of a hole.
    "flat": Contours(
        [
            SolidPart(
                np.array([[0, 0], [1, 0], [2, 0], [4, 0], [4, 4], [1, 4], [0, 4]]) * H,
                (np.array([[1, 1], [1, 2], [1, 3], [3, 3], [3, 1], [2, 1]]) * H,),
            )
        ]
    ),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_the_solid_is_watertight_with_normals_outward(tmp_path, name):
    path, design = tmp_path / "device.stl", DESIGNS[name]
    save_stl(path, [(design, -110 * NANO, 110 * NANO)])
    normals, corners = triangles_in(path)

    edges = directed_edges(corners)
    assert len(np.unique(edges, axis=0)) == len(edges)
    # Each edge is shared by two triangles that run along it in opposite directions.
    assert {tuple(e) for e in edges} == {tuple(e) for e in edges[:, ::-1]}

    # By the theorem of Gauss; positive only if triangles run around outward normals.
    volume = np.sum(corners[:, 0] * np.cross(corners[:, 1], corners[:, 2])) / 6
    assert volume * MICRO**3 == pytest.approx(design.area * 220 * NANO, rel=1e-6)

    u, v = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    twice = np.cross(u, v)
    size = np.linalg.norm(twice, axis=1)
    assert np.allclose(np.sum(normals * twice, axis=1), size, rtol=1e-5)
    assert np.allclose(np.linalg.norm(normals, axis=1)[size > 0], 1, rtol=1e-6)


@pytest.mark.parametrize("name", ["ring", "noise"])
def test_another_program_finds_the_same_solid(tmp_path, name):
    path, design = tmp_path / "device.stl", DESIGNS[name]
    save_stl(path, [(design, 0, 220 * NANO)], unit=NANO)
    mesh = trimesh.load(path)
    assert mesh.is_watertight
    assert mesh.is_winding_consistent
    assert mesh.volume == pytest.approx(design.area * 220e-9 * 1e27, rel=1e-6)
    assert mesh.bounds[:, 2] == pytest.approx([0, 220])
    # A part has the Euler number 2, less 2 for each hole.
    holes = sum(len(part.holes) for part in design.parts)
    assert mesh.euler_number == 2 * len(design.parts) - 2 * holes


def test_layers_stand_on_each_other(tmp_path):
    wide, narrow = (Contours([SolidPart(SQUARE * size)]) for size in (1.0, 0.5))
    save_stl(
        tmp_path / "steps.stl", [(wide, 0, 1 * MICRO), (narrow, 1 * MICRO, 3 * MICRO)]
    )
    _, corners = triangles_in(tmp_path / "steps.stl")
    assert len(corners) == 2 * 12
    volume = np.sum(corners[:, 0] * np.cross(corners[:, 1], corners[:, 2])) / 6
    assert volume == pytest.approx(1 + 0.25 * 2)
    assert corners[..., 2].max() == 3


FAR = Contours([SolidPart(SQUARE * 1e-4 + 1e-2)])


@pytest.mark.parametrize(
    ("layers", "options", "message"),
    [
        ([], {}, "`layers` must have at least one polygon"),
        ([(Contours(()), 0, 1e-6)], {}, "`layers` must have at least one polygon"),
        ([(DESIGNS["square"], 1e-6, 1e-6)], {}, "must be above its lower end"),
        ([(DESIGNS["square"], 0, np.inf)], {}, "both finite"),
        ([(DESIGNS["square"], 0, 1e-6)], {"unit": 0}, "`unit` must be positive"),
        ([(FAR, 0, 1e-6)], {}, "must stay valid when rounded to float32"),
    ],
)
def test_what_cannot_be_written_is_refused_and_the_old_file_stays(
    tmp_path, layers, options, message
):
    path = tmp_path / "device.stl"
    path.write_bytes(b"old")
    with pytest.raises(ArgumentError, match=message):
        save_stl(path, layers, **options)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_missing_package_is_named(tmp_path, without):
    without("shapely")
    with pytest.raises(MissingPackageError, match=r"pip install 'physax\[photonics\]'"):
        save_stl(tmp_path / "device.stl", [(DESIGNS["square"], 0, 1e-6)])
