"""Damaged, truncated and hostile VTK files: an error that says what is wrong."""

import base64
import contextlib
import os
import re
import zlib

import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.io import PhysaxFileError
from physax.io._vtk_build import vtk_grid
from physax.io._vtk_cells import VTKCells
from physax.io._vtk_data import VTKData
from physax.io._vtk_read import read_vtk
from physax.io._vtk_series import read_vtk_series
from physax.io._write_vtk import write_vtk


def refusal(path, text, name="a.vtu", arrays=None):
    """Writes a file and returns why it is refused."""
    file = path / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(PhysaxFileError) as caught:
        read_vtk(file, arrays)
    assert caught.value.path == str(file)
    return caught.value.reason


def xml(body, kind="UnstructuredGrid", attributes=""):
    return f'<VTKFile type="{kind}" {attributes}><{kind}>{body}</{kind}></VTKFile>'


def array(name, values, kind="Float64", components=1, style="ascii"):
    return (
        f'<DataArray type="{kind}" Name="{name}" format="{style}" '
        f'NumberOfComponents="{components}">{values}</DataArray>'
    )


def triangle(connectivity="0 1 2", offsets="3", types="5", points=3, extra=""):
    """A triangle as XML, or what goes wrong with it."""
    return (
        f'<Piece NumberOfPoints="{points}" NumberOfCells="1"><PointData>{extra}'
        "</PointData><Points>"
        f"{array('Points', '0 0 0 1 0 0 0 1 0', components=3)}</Points><Cells>"
        f"{array('connectivity', connectivity, 'Int32')}"
        f"{array('offsets', offsets, 'Int64')}{array('types', types, 'UInt8')}"
        "</Cells></Piece>"
    )


def test_the_triangle_is_sound_before_it_is_damaged(tmp_path):
    path = tmp_path / "a.vtu"
    path.write_text(xml(triangle(extra=array("p", "1 nan -inf"))))
    data = read_vtk(path)
    assert data.cells.types.tolist() == [5]
    values = data.point_data["p"]
    assert np.array_equal(values, [1, np.nan, -np.inf], equal_nan=True)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"connectivity": "0 1"}, "must be 3 numbers, but its text has room for 2"),
        ({"connectivity": "0 100"}, "must be 3 numbers, but only 2 are there"),
        ({"connectivity": "0 1 2 3"}, "must be 3 numbers, but has more"),
        ({"connectivity": "0 1 3"}, "from 0 to 2, but number 0 of them refers to 3"),
        ({"connectivity": "0 -1 2"}, "refers to -1"),
        ({"connectivity": "0 1.5 2"}, "must be numbers, but invalid literal"),
        ({"connectivity": "0 1_0 2"}, "must be numbers, but one has an underscore"),
        ({"offsets": "-3"}, "must increase from 0, but does not"),
        ({"offsets": "999999999999"}, "must fit into the free memory"),
        ({"offsets": "9" * 30}, "must be numbers, but"),
        ({"types": "10"}, "type 10 must have 4 nodes, but cell 0 has 3"),
        ({"types": "42"}, "Polyhedra must have faces, but have none"),
        ({"types": "256"}, "from 0 to 255, but one is not"),
        ({"points": 4}, "must be 12 numbers, but its text has room for 9"),
        ({"points": 10**17}, "must fit into the free memory"),
        ({"points": "1e3"}, "must be a number of at most 18 digits, but is '1e3'"),
        ({"points": -1}, "must be a number of at most 18 digits, but is '-1'"),
        ({"extra": array("p", "1 2 3", "Float16")}, "or Bit, but is 'Float16'"),
        ({"extra": array("p", "1 2 ü")}, "The text of <DataArray> must be ASCII"),
        ({"extra": array("p", "1 2 3", style="odd")}, "but it is 'odd'"),
        ({"extra": '<DataArray type="Int8"/>'}, "must have the attribute 'format'"),
        ({"extra": array("p", "AAA", style="binary")}, "must have 8 characters of"),
        ({"extra": array("p", "AAA%AAAA", style="binary")}, "is not valid base64"),
        ({"extra": array("p", "GAAAAA==", style="binary")}, "only 0 are left"),
        ({"extra": array("p", "GQAAAA==", style="binary")}, "24 bytes .* says 25"),
    ],
)
def test_damage_to_a_mesh_is_named(damage, reason, tmp_path):
    assert re.search(reason, refusal(tmp_path, xml(triangle(**damage))))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must hold data, but is empty"),
        ("no", "not valid XML"),
        ("<a/>", "its XML begins with <a>"),
        (xml("")[:-5], "not valid XML, or is truncated"),
        (xml(""), "must have a <Piece>, but has none"),
        (xml("", "Table"), "must be one of ImageData, .* but is 'Table'"),
        (xml(triangle(), attributes='byte_order="Odd"'), "LittleEndian or BigEndian"),
        (xml(triangle(), attributes='header_type="Int8"'), "UInt32 or UInt64, but is"),
        (
            xml(
                triangle(extra=array("p", "AAAA", style="binary")),
                attributes='compressor="vtkLZ4DataCompressor"',
            ),
            "compressed by .* but is by 'vtkLZ4DataCompressor'. Rewrite it",
        ),
        (
            xml(triangle()).replace(
                "<UnstructuredGrid>", '<UnstructuredGrid TimeValues="0 1">'
            ),
            "must hold one time, but holds several",
        ),
        ("<a>" * 40, "nested at most 32 deep"),
        ('<?xml version="1.0" encoding="odd"?><a/>', "not valid XML"),
        (xml("<AppendedData/>"), "must have a <Piece>"),
        (
            '<VTKFile type="ImageData"><AppendedData encoding="raw">',
            "must begin with an underscore",
        ),
    ],
)
def test_xml_that_is_none_of_ours_is_named(text, reason, tmp_path):
    assert re.search(reason, refusal(tmp_path, text))


BOMB = """<?xml version="1.0"?>
<!DOCTYPE VTKFile [
<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>
<VTKFile type="ImageData"><ImageData>&c;</ImageData></VTKFile>"""
OUTSIDE = """<!DOCTYPE VTKFile SYSTEM "file:///etc/passwd">
<VTKFile type="ImageData"/>"""


@pytest.mark.parametrize("text", [BOMB, OUTSIDE])
@pytest.mark.parametrize("name", ["a.vti", "a.pvtu", "a.pvd"])
def test_entities_are_refused(text, name, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    read = read_vtk_series if name == "a.pvd" else read_vtk
    with pytest.raises(PhysaxFileError, match="must not declare a document type"):
        read(path)


def test_a_block_that_unpacks_to_more_than_it_says_is_refused(tmp_path):
    packed = zlib.compress(bytes(10_000_000), 9)
    header = np.array([1, 24, 0, len(packed)], "<u4").tobytes()
    text = (base64.b64encode(header) + base64.b64encode(packed)).decode()
    extra = array("p", text, style="binary")
    attributes = 'compressor="vtkZLibDataCompressor"'
    reason = refusal(tmp_path, xml(triangle(extra=extra), attributes=attributes))
    assert "must unpack to blocks of 24 bytes, but one has more" in reason


def test_a_grid_of_absurd_size_is_refused_before_it_is_made(tmp_path):
    for whole in ("0 9999999999 0 0 0 0", "0 9 0 0 0 99999999999999999999"):
        piece = f'<Piece Extent="{whole}"></Piece>'
        grid = f'<ImageData WholeExtent="{whole}">{piece}</ImageData>'
        reason = refusal(tmp_path, f'<VTKFile type="ImageData">{grid}</VTKFile>')
        assert "must fit into the free memory" in reason or "six integers" in reason
    head = "# vtk DataFile Version 3.0\nt\nBINARY\nDATASET STRUCTURED_POINTS\n"
    huge = f"{head}DIMENSIONS 99999999999 9 9\nSPACING 1 1 1\nORIGIN 0 0 0\n"
    assert "free memory" in refusal(tmp_path, huge, "a.vtk")
    points = (
        head.replace("STRUCTURED_POINTS", "POLYDATA") + "POINTS 99999999999 float\n"
    )
    assert "only 0 are left in the file" in refusal(tmp_path, points, "a.vtk")


LEGACY = """# vtk DataFile Version 3.0
t
ASCII
DATASET POLYDATA
POINTS 3 float
0 0 0 1 0 0 0 1 0
POLYGONS 1 4
3 0 1 2
POINT_DATA 3
SCALARS p double 1
LOOKUP_TABLE default
1 2 3
"""


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("# vtk", "# VTK", "must begin with '# vtk DataFile Version'"),
        ("ASCII", "TEXT", "third line must be ASCII or BINARY, but is b'TEXT'"),
        ("POLYDATA", "OCTREE", "must be one of STRUCTURED_POINTS, .* are 'OCTREE'"),
        ("POINTS 3 float", "POINTS 3 half", "must be one of bit, .* but is 'half'"),
        ("POINTS 3 float", "POINTS 3", "must have 3 words or more"),
        ("POINTS 3 float", "POINTS x float", "'x' in the line .* must be a number"),
        ("0 0 0 1", "0 0 x 1", "must be numbers, but could not convert"),
        ("3 0 1 2", "9 0 1 2", "must be 1 lists, 4 numbers in all, but are not"),
        ("3 0 1 2", "3 0 1 7", "refers to 7"),
        ("POLYGONS", "POLYGON", "unknown keyword 'POLYGON'"),
        ("POINT_DATA 3", "POINT_DATA 2", "unknown keyword '3'"),
        ("POINT_DATA 3\n", "", "SCALARS must follow POINT_DATA or CELL_DATA"),
        ("SCALARS p double 1", "", "The line 'LOOKUP_TABLE default' must have 3"),
        ("DATASET", "DATASET POLYDATA\nDATASET", "but holds several"),
        ("1 2 3\n", "1 2 3", "the file ends right after a digit"),
        ("1 2 3\n", "1 2\n", "must be 3 numbers, but"),
        ("3.0", "5.1", "must have OFFSETS, but do not"),
    ],
)
def test_damage_to_a_legacy_file_is_named(old, new, reason, tmp_path):
    assert refusal(tmp_path, b"", "a.vtk") == "It must hold data, but is empty."
    damaged = LEGACY.replace(old, new, 1)
    assert re.search(reason, refusal(tmp_path, damaged, "a.vtk"))


def test_an_unknown_suffix_and_missing_files_are_named(tmp_path):
    assert "must be one of .vtk, .vti" in refusal(tmp_path, "x", "a.stl")
    with pytest.raises(FileNotFoundError):
        read_vtk(tmp_path / "b.vtu")


def parallel(source, kind="PUnstructuredGrid"):
    piece = f'<Piece Source="{source}"/>'
    return f'<VTKFile type="{kind}"><{kind}>{piece}</{kind}></VTKFile>'


@pytest.mark.parametrize(
    "source", ["../b.vtu", "/etc/b.vtu", "x/../../b.vtu", "link/b.vtu", "..\\b.vtu", ""]
)
def test_files_elsewhere_are_refused(source, tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "b.vtu").write_text(xml(triangle()))
    (inside / "link").symlink_to(tmp_path, target_is_directory=True)
    reason = refusal(inside, parallel(source), "a.pvtu")
    assert "must name files in its own folder or below" in reason
    listed = f'<DataSet timestep="0" file="{source}"/>'
    (inside / "a.pvd").write_text(
        f'<VTKFile type="Collection"><Collection>{listed}</Collection></VTKFile>'
    )
    with pytest.raises(PhysaxFileError, match="in its own folder or below"):
        read_vtk_series(inside / "a.pvd")


def test_pieces_that_do_not_fit_are_named(tmp_path):
    assert "'b.vtu'" in refusal(tmp_path, parallel("b.vtu"), "a.pvtu").replace(
        f"{tmp_path}{os.sep}", ""
    )
    reason = refusal(tmp_path, parallel("a.pvtu"), "a.pvtu")
    assert "Its pieces must be files .vti" in reason
    assert "but is 'PTable'" in refusal(tmp_path, parallel("x", "PTable"), "a.pvtu")
    (tmp_path / "b.vtu").write_text(xml(triangle()))
    (tmp_path / "c.vtu").write_text(xml(triangle(extra=array("p", "1 2 3"))))
    both = parallel("b.vtu").replace("<Piece", '<Piece Source="c.vtu"/><Piece')
    reason = refusal(tmp_path, both, "a.pvtu")
    assert "of one kind with the same arrays and components" in reason
    # A fault in a piece names the piece.
    (tmp_path / "b.vtu").write_text(xml(triangle(types="10")))
    (tmp_path / "a.pvtu").write_text(parallel("b.vtu"))
    with pytest.raises(PhysaxFileError, match=r"b\.vtu: Cells of type 10 must"):
        read_vtk(tmp_path / "a.pvtu")


@pytest.mark.parametrize(
    ("extents", "reason"),
    [
        (["0 1 0 1 0 0"], "must cover .* but cell \\(1, 0, 0\\) is in none"),
        (["0 3 0 1 0 0"], "must lie in the whole extent"),
        (["0 2 0 1 0 0", "1 1 0 1 0 0"], "flat only where it is"),
        (["2 0 0 1 0 0"], "must give a first and a last index"),
        (["0 1 0 1"], "must be six integers"),
    ],
)
def test_pieces_of_a_grid_that_do_not_fit_are_named(extents, reason, tmp_path):
    pieces = "".join(f'<Piece Extent="{extent}"/>' for extent in extents)
    text = xml(pieces, "ImageData").replace(
        "<ImageData>", '<ImageData WholeExtent="0 2 0 1 0 0">'
    )
    assert re.search(reason, refusal(tmp_path, text, "a.vti"))


def example_files(folder):
    """Files of several formats, each with the same kind of contents."""
    rng = np.random.default_rng(0)
    data = vtk_grid(
        [np.arange(4.0), np.arange(3.0)],
        point_data={"U": rng.normal(size=(4, 3, 3)), "p": rng.normal(size=(4, 3))},
        cell_data={"c": np.arange(6).reshape(3, 2)},
        time=2.5,
    )
    for name, options in (
        ("raw.vtr", {}),
        ("plain.vtr", {"compress": False}),
        ("base64.vtr", {"base64": True}),
    ):
        write_vtk(folder / name, data, **options)
    (folder / "text.vtu").write_text(xml(triangle(extra=array("p", "1 2 3"))))
    (folder / "text.vtk").write_text(LEGACY)
    binary = LEGACY.replace("ASCII", "BINARY").split("\n")
    parts = [line.encode() for line in binary]
    parts[5] = np.array(binary[5].split(), ">f4").tobytes()
    parts[7] = np.array([3, 0, 1, 2], ">i4").tobytes()
    parts[11] = np.array([1, 2, 3], ">f8").tobytes()
    (folder / "binary.vtk").write_bytes(b"\n".join(parts))
    return sorted(folder.iterdir())


def leaves(data):
    places = [data.points, *(data.axes or ()), data.cells and data.cells.connectivity]
    arrays = [
        *data.point_data.items(),
        *data.cell_data.items(),
        *data.field_data.items(),
    ]
    return [np.asarray(x).tolist() for x in places], [
        (k, v.tolist()) for k, v in arrays
    ]


def test_truncated_files_are_refused_or_complete(tmp_path):
    for path in example_files(tmp_path):
        whole = path.read_bytes()
        right, names = leaves(read_vtk(path)), list(read_vtk(path).point_data)
        cuts = np.linspace(0, len(whole) - 1, 25).astype(int).tolist()
        for cut in [*cuts, len(whole) - 2, len(whole) - 20]:
            path.write_bytes(whole[:cut])
            try:
                # A legacy file that ends between arrays is sound: name the arrays.
                found = leaves(read_vtk(path, names))
            except PhysaxFileError:
                continue
            assert found[0] == right[0], (path.name, cut)
            assert [a for a in right[1] if a[0] in names] == [
                a for a in found[1] if a[0] in names
            ], (path.name, cut)


def test_mutated_files_give_data_or_the_error(tmp_path):
    rng = np.random.default_rng(1)
    for path in example_files(tmp_path):
        whole = path.read_bytes()
        for _ in range(30):
            mutant = bytearray(whole)
            for at in rng.integers(0, len(whole), rng.integers(1, 4)):
                mutant[at] = rng.integers(0, 256)
            path.write_bytes(mutant)
            with contextlib.suppress(PhysaxFileError):
                read_vtk(path)


POINTS = np.zeros((3, 3))
CELLS = VTKCells(np.arange(3), np.array([0, 3]), np.array([5], np.uint8))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"kind": "odd", "points": POINTS}, "`kind` must be one of image, "),
        ({"kind": "image", "points": POINTS}, "`points` must not be given"),
        ({"kind": "polydata", "points": POINTS}, "`cells` must be given"),
        ({"kind": "structured", "points": POINTS}, "must be numbered along 3 axes"),
        (
            {"kind": "unstructured", "points": POINTS[:2], "cells": CELLS},
            "from 0 to 1, but number 0 of them refers to 2",
        ),
        (
            {
                "kind": "unstructured",
                "points": POINTS,
                "cells": CELLS,
                "cell_data": {"c": np.zeros(3)},
            },
            r"`cell_data\['c'\]` must have the shape \(1,\), .* but has \(3,\)",
        ),
    ],
)
def test_data_that_do_not_fit_together_are_refused(arguments, reason):
    with pytest.raises(ArgumentError, match=reason):
        VTKData(**arguments)


def test_cells_without_a_fixed_number_of_nodes_are_no_rows():
    with pytest.raises(ArgumentError, match="fixed number of nodes, .* but is 7"):
        CELLS.of_type(7)
