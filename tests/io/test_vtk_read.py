"""Files by VTK's own writers, read by ours."""

import numpy as np
import pytest


vtk = pytest.importorskip("vtk")

from physax.io import PhysaxFileError  # noqa: E402
from physax.io._vtk_read import read_vtk, time_in  # noqa: E402
from tests.io.vtk_examples import (  # noqa: E402
    MAKERS,
    SHAPE,
    add,
    add_values,
    assert_same,
    unstructured,
)


XML_WRITERS = {
    "image": (vtk.vtkXMLImageDataWriter, "vti"),
    "rectilinear": (vtk.vtkXMLRectilinearGridWriter, "vtr"),
    "structured": (vtk.vtkXMLStructuredGridWriter, "vts"),
    "unstructured": (vtk.vtkXMLUnstructuredGridWriter, "vtu"),
    "polydata": (vtk.vtkXMLPolyDataWriter, "vtp"),
}
PARALLEL_WRITERS = {
    "image": (vtk.vtkXMLPImageDataWriter, "pvti"),
    "rectilinear": (vtk.vtkXMLPRectilinearGridWriter, "pvtr"),
    "structured": (vtk.vtkXMLPStructuredGridWriter, "pvts"),
    "unstructured": (vtk.vtkXMLPUnstructuredGridWriter, "pvtu"),
    "polydata": (vtk.vtkXMLPPolyDataWriter, "pvtp"),
}
ENCODINGS = {
    "ascii": lambda w: w.SetDataModeToAscii(),
    "inline base64": lambda w: w.SetDataModeToBinary(),
    "appended base64": lambda w: (w.SetDataModeToAppended(), w.EncodeAppendedDataOn()),
    "appended raw": lambda w: (w.SetDataModeToAppended(), w.EncodeAppendedDataOff()),
}
COMPRESSIONS = {
    "none": lambda w: w.SetCompressorTypeToNone(),
    "zlib": lambda w: w.SetCompressorTypeToZLib(),
    "lzma": lambda w: w.SetCompressorTypeToLZMA(),
}


def write(writer, data, path):
    writer.SetInputData(data)
    writer.SetFileName(str(path))
    assert writer.Write() == 1
    return path


def reread(reader, path):
    reader.SetFileName(str(path))
    reader.Update()
    return reader.GetOutput()


def reread_as(tmp_path, kind, encoding, compression, bits, big):
    data = add_values(MAKERS[kind]())
    maker, suffix = XML_WRITERS[kind]
    writer = maker()
    ENCODINGS[encoding](writer)
    COMPRESSIONS[compression](writer)
    writer.SetHeaderType(bits)
    if big:
        writer.SetByteOrderToBigEndian()
    # Smaller than the arrays, so that there are several blocks.
    writer.SetBlockSize(64)
    path = write(writer, data, tmp_path / f"a.{suffix}")
    ours = read_vtk(path)
    assert ours.kind == kind
    assert ours.time == time_in(path) == 0.1 + 0.2
    assert_same(ours, data)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_each_kind_of_xml_file_is_read_exactly(kind, encoding, tmp_path):
    reread_as(tmp_path, kind, encoding, "zlib", 32, False)


@pytest.mark.slow(after=3)
@pytest.mark.parametrize("encoding", list(ENCODINGS)[1:])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_each_binary_encoding_is_read_exactly(encoding, compression, tmp_path):
    cases = ((32, False), (32, True), (64, False), (64, True))
    # VTK takes long to set up LZMA for each block.
    for bits, big in cases[-1:] if compression == "lzma" else cases:
        reread_as(tmp_path, "polydata", encoding, compression, bits, big)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("version", [42, 51])
def test_legacy_files_are_read_exactly(kind, binary, version, tmp_path):
    data = add_values(MAKERS[kind]())
    bits, ids = vtk.vtkBitArray(), vtk.vtkIdTypeArray()
    for k in range(data.GetNumberOfCells()):
        bits.InsertNextValue(k % 3 == 0)
        ids.InsertNextValue(k)
    bits.SetName("bits")
    ids.SetName("ids")
    data.GetCellData().SetGlobalIds(ids)
    texts = vtk.vtkStringArray()
    texts.SetName("texts")
    for text in ("a b", "", "x" * 100, "ü"):
        texts.InsertNextValue(text)
    data.GetFieldData().AddArray(texts)
    data.GetPointData().SetActiveVectors("U")
    data.GetCellData().SetActiveScalars("a name 5 % ü")
    if kind == "image":
        # The format has no first index.
        data.SetExtent(0, SHAPE[0] - 1, 0, SHAPE[1] - 1, 0, SHAPE[2] - 1)
    # VTK's wrapper shows no bits to NumPy.
    plain = type(data)()
    plain.DeepCopy(data)
    data.GetCellData().AddArray(bits)
    writer = vtk.vtkDataSetWriter()
    (writer.SetFileTypeToBinary if binary else writer.SetFileTypeToASCII)()
    writer.SetFileVersion(version)
    path = write(writer, data, tmp_path / "a.vtk")
    ours = read_vtk(path)
    assert ours.kind == kind
    # VTK's text has fewer digits than the numbers.
    assert ours.time == time_in(path) == (0.1 + 0.2 if binary else 0.3)
    found = ours.cell_data.pop("bits")
    assert np.array_equal(found.ravel(order="F"), np.arange(found.size) % 3 == 0)
    plain.GetFieldData().RemoveArray("texts")
    # Compare with what VTK reads of it.
    if not binary:
        reader = vtk.vtkDataSetReader()
        reader.ReadAllScalarsOn()
        reader.ReadAllVectorsOn()
        reader.ReadAllFieldsOn()
        plain = reread(reader, path)
        plain.GetFieldData().RemoveArray("texts")
        plain.GetCellData().RemoveArray("bits")
    assert_same(ours, plain)


def test_positions_stored_as_values_are_those_of_the_grid(tmp_path):
    data = MAKERS["rectilinear"]()
    places = [data.GetPoint(i) for i in range(data.GetNumberOfPoints())]
    add(data.GetPointData(), "x", np.array(places))
    path = write(vtk.vtkXMLRectilinearGridWriter(), data, tmp_path / "a.vtr")
    ours = read_vtk(path)
    assert ours.point_data["x"].flags.c_contiguous
    mesh = np.stack(np.meshgrid(*ours.axes, indexing="ij"), -1)
    assert np.array_equal(ours.point_data["x"], mesh)


def test_a_turned_image_comes_with_its_points(tmp_path):
    data = add_values(MAKERS["image"]())
    data.SetDirectionMatrix(0, -1, 0, 1, 0, 0, 0, 0, 1)
    path = write(vtk.vtkXMLImageDataWriter(), data, tmp_path / "a.vti")
    ours = read_vtk(path)
    assert ours.kind == "structured"
    number = data.GetNumberOfPoints()
    points = np.array([data.GetPoint(i) for i in range(number)])
    mine = ours.points.transpose(2, 1, 0, 3).reshape(-1, 3)
    assert np.allclose(mine, points, rtol=1e-15, atol=1e-15)


def test_a_flat_image_and_empty_data(tmp_path):
    flat = vtk.vtkImageData()
    flat.SetDimensions(3, 2, 1)
    add_values(flat)
    path = write(vtk.vtkXMLImageDataWriter(), flat, tmp_path / "a.vti")
    ours = read_vtk(path)
    assert ours.shape == (3, 2, 1)
    assert ours.cell_shape == (2, 1, 1)
    assert_same(ours, flat)
    for suffix, writer in (
        ("vtk", vtk.vtkDataSetWriter()),
        ("vtu", vtk.vtkXMLUnstructuredGridWriter()),
    ):
        empty = vtk.vtkUnstructuredGrid()
        ours = read_vtk(write(writer, empty, tmp_path / f"e.{suffix}"))
        assert ours.shape == ours.cell_shape == (0,)
        assert ours.time is None


def test_cells_of_one_type_come_as_rows(tmp_path):
    path = write(vtk.vtkXMLUnstructuredGridWriter(), unstructured(), tmp_path / "a.vtu")
    nodes, numbers = read_vtk(path).cells.of_type(10)
    assert nodes.tolist() == [[0, 1, 2, 4], [1, 2, 3, 9], [1, 2, 3, 9]]
    assert numbers.tolist() == [0, 8, 10]


def test_old_attributes_of_legacy_files_are_read(tmp_path):
    path = tmp_path / "a.vtk"
    lines = """# vtk DataFile Version 2.0
    old
    ascii
    dataset structured_points
    dimensions 2 1 1
    aspect_ratio 1 2 3
    origin 0.5 0 0
    point_data 2
    scalars T float
    lookup_table t
    1 2
    lookup_table t 2
    0 0 0 1 1 1 1 1
    scalars old int 2
    1 2 3 4
    color_scalars c 3
    0 0.5 1 1 0.5 0
    vectors V double
    1 2 3 4 5 6
    texture_coordinates tex 2 float
    1 2 3 4
    tensors G float
    1 2 3 4 5 6 7 8 9
    1 2 3 4 5 6 7 8 9
    field FieldData 1
    p%20q 1 2 unsigned_char
    7 8
    """
    path.write_bytes("\r\n".join(x.strip() for x in lines.split("\n")).encode())
    ours = read_vtk(path)
    assert [axis.tolist() for axis in ours.axes] == [[0.5, 1.5], [0.0], [0.0]]
    assert {name: values.shape[3:] for name, values in ours.point_data.items()} == {
        **{"T": (), "old": (2,), "c": (3,), "V": (3,), "tex": (2,), "G": (9,)},
        "p q": (),
    }
    assert ours.point_data["V"][1, 0, 0].tolist() == [4, 5, 6]
    assert ours.point_data["p q"].dtype == np.uint8


@pytest.mark.parametrize("kind", ["image", "rectilinear", "structured"])
def test_parallel_grids_become_one(kind, tmp_path):
    data = add_values(MAKERS[kind]())
    if kind == "image":
        data.SetExtent(0, SHAPE[0] - 1, 0, SHAPE[1] - 1, 0, SHAPE[2] - 1)
    maker, suffix = PARALLEL_WRITERS[kind]
    writer = maker()
    writer.SetNumberOfPieces(3)
    writer.SetStartPiece(0)
    writer.SetEndPiece(2)
    path = write(writer, data, tmp_path / f"a.{suffix}")
    assert len(list(tmp_path.iterdir())) == 4
    ours = read_vtk(path)
    assert ours.time == time_in(path)
    assert_same(ours, data)


@pytest.mark.parametrize("kind", ["unstructured", "polydata"])
def test_parallel_meshes_become_one(kind, tmp_path):
    maker, suffix = PARALLEL_WRITERS[kind]
    piece_maker, piece_suffix = XML_WRITERS[kind]
    first = add_values(MAKERS[kind]())
    second = add_values(MAKERS[kind](), np.random.default_rng(7))
    # VTK writes a mesh as one piece: the other is put in.
    path = write(maker(), first, tmp_path / f"a.{suffix}")
    write(piece_maker(), second, tmp_path / f"b.{piece_suffix}")
    piece = f'<Piece Source="b.{piece_suffix}"/>\n</P'
    text = path.read_text().replace("</PUnstructuredGrid>", f"{piece}UnstructuredGrid>")
    path.write_text(text.replace("</PPolyData>", f"{piece}PolyData>"))
    if kind == "unstructured":
        theirs = reread(vtk.vtkXMLPUnstructuredGridReader(), path)
    else:
        # VTK's parallel reader takes values on strips for those on polygons.
        both = vtk.vtkAppendPolyData()
        both.AddInputData(first)
        both.AddInputData(second)
        both.Update()
        theirs = both.GetOutput()
    assert theirs.GetNumberOfCells() == 2 * first.GetNumberOfCells()
    theirs.SetFieldData(first.GetFieldData())
    assert_same(read_vtk(path), theirs)


def test_copies_of_cells_in_parallel_files_are_left_out(tmp_path):
    data = unstructured()
    marks = np.zeros(data.GetNumberOfCells(), np.uint8)
    marks[[1, 7]] = 1
    add(data.GetCellData(), "vtkGhostType", marks)
    add(data.GetCellData(), "number", np.arange(marks.size))
    path = write(vtk.vtkXMLPUnstructuredGridWriter(), data, tmp_path / "a.pvtu")
    ours = read_vtk(path, ["number"])
    assert ours.cell_data["number"].tolist() == [0, 2, 3, 4, 5, 6, 8, 9, 10]
    assert set(ours.cell_data) == {"number"}
    assert ours.cells.types.tolist() == [10, 13, 14, 5, 9, 3, 10, 42, 10]
    assert ours.cells.cell_faces[-2:].tolist() == [6, 6]


@pytest.mark.parametrize("suffix", ["vtk", "vtu"])
def test_named_arrays_alone_are_read(suffix, tmp_path):
    writer = {"vtk": vtk.vtkDataSetWriter, "vtu": vtk.vtkXMLUnstructuredGridWriter}
    path = write(writer[suffix](), add_values(unstructured()), tmp_path / f"a.{suffix}")
    ours = read_vtk(path, ["U"])
    assert list(ours.point_data) == list(ours.cell_data) == ["U"]
    assert not read_vtk(path, []).point_data
    with pytest.raises(
        PhysaxFileError,
        match=r"arrays \['V'\] of `arrays`, but has U \(.*f8 \(cells\)",
    ):
        read_vtk(path, ["U", "V"])
