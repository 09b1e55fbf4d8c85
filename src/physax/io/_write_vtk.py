"""Writes VTK's XML files: grids, meshes, points and tracks."""

import base64 as encoding
import html
import os
import zlib
from pathlib import Path

import numpy as np

from .._checks import ArgumentError
from .._whole_file import whole_file
from ._vtk_arrays import XML_TYPES, ZLIB
from ._vtk_build import as_values
from ._vtk_cells import SECTIONS, VTKCells, section_of
from ._vtk_data import SUFFIXES, VTKData


_NAMES = {dtype: name for name, dtype in XML_TYPES.items()}
_TAGS = {
    "image": "ImageData",
    "rectilinear": "RectilinearGrid",
    "structured": "StructuredGrid",
    "unstructured": "UnstructuredGrid",
    "polydata": "PolyData",
}
_BLOCK = 1 << 20
# The fastest level: the others take several times as long for a few per cent.
_LEVEL = 1
# How far an image may be from a uniform grid, in units of its spacing.
_UNIFORM = 1e-5


def write_vtk(
    path: str | os.PathLike,
    data: VTKData,
    *,
    compress: bool = True,
    base64: bool = False,
) -> None:
    """Writes a grid or mesh and its values as one XML file of VTK.

    The file appears whole or not at all. Numbers are little-endian with 64-bit headers,
    and keep their types; 16-bit floating point becomes 32-bit.

    Args:
        path: The file, with the suffix of its kind: `.vti` for `"image"`, `.vtr` for
            `"rectilinear"`, `.vts` for `"structured"`, `.vtu` for `"unstructured"`,
            `.vtp` for `"polydata"`.
        data: What to write; see `vtk_grid`, `vtk_points` and `vtk_tracks`.
        compress: Whether to compress by zlib.
        base64: Whether to write text instead of raw bytes, by a third larger: raw bytes
            are not valid XML, which programs other than VTK's may expect.

    Raises:
        ArgumentError: If the suffix is another, an image is not uniform, or arrays are
            of a type that VTK does not have.
        OSError: If the file cannot be written.
    """
    suffix = SUFFIXES[data.kind]
    if Path(path).suffix.lower() != suffix:
        raise ArgumentError(
            f"`path` must end in {suffix!r} for data of kind {data.kind!r}, but is "
            f"{os.fspath(path)!r}."
        )
    writer = _Writer(compress, base64)
    body = _grid(writer, data)
    head = (
        '<?xml version="1.0"?>\n'
        f'<VTKFile type="{_TAGS[data.kind]}" version="1.0" '
        'byte_order="LittleEndian" header_type="UInt64"'
        f"{f' compressor={chr(34)}{ZLIB}{chr(34)}' if compress else ''}>\n"
    )
    style = "base64" if base64 else "raw"
    with whole_file(path) as file:
        file.write((head + body).encode())
        file.write(f'<AppendedData encoding="{style}">\n_'.encode())
        file.writelines(writer.blocks)
        file.write(b"\n</AppendedData>\n</VTKFile>\n")


class _Writer:
    """Collects arrays and describes them."""

    def __init__(self, compress: bool, base64: bool):
        self.compress, self.base64 = compress, base64
        self.blocks: list[bytes] = []
        self._length = 0

    def array(self, name: str, values: np.ndarray, extra: str = "") -> str:
        """Adds an array `[tuples]` or `[tuples, components]`; returns its element."""
        values = as_values(values)
        if any(ord(letter) < 32 for letter in name) or not name:
            raise ArgumentError(
                f"Names of arrays must be texts without control characters, but one is "
                f"{name!r}."
            )
        components = values.shape[1] if values.ndim > 1 else 1
        element = (
            f'<DataArray type="{_NAMES[values.dtype.newbyteorder("=")]}" '
            f'Name="{html.escape(name)}" NumberOfComponents="{components}" {extra}'
            f'format="appended" offset="{self._length}"/>\n'
        )
        little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        self._add(little.tobytes())
        return element

    def _add(self, data: bytes) -> None:
        def coded(part: bytes) -> bytes:
            return encoding.b64encode(part) if self.base64 else part

        def sizes(*numbers: int) -> bytes:
            return np.asarray(numbers, "<u8").tobytes()

        if self.compress:
            starts = range(0, len(data), _BLOCK)
            parts = [zlib.compress(data[a : a + _BLOCK], _LEVEL) for a in starts]
            lengths = [len(part) for part in parts]
            header = sizes(len(parts), _BLOCK, len(data) % _BLOCK, *lengths)
            new = [coded(header), coded(b"".join(parts))]
        else:
            new = [coded(sizes(len(data)) + data)]
        self.blocks += new
        self._length += sum(len(block) for block in new)


def _flat(values: np.ndarray, structured: bool) -> np.ndarray:
    """Returns values in VTK's order, with x fastest."""
    if not structured:
        return values
    turned = values.transpose(2, 1, 0, *range(3, values.ndim))
    return turned.reshape(-1, *values.shape[3:])


def _grid(writer: _Writer, data: VTKData) -> str:
    """Returns the elements of the grid and all that is on it."""
    structured = data.cells is None
    values = {
        tag: "".join(
            writer.array(name, _flat(array, structured))
            for name, array in arrays.items()
        )
        for tag, arrays in (
            ("PointData", data.point_data),
            ("CellData", data.cell_data),
        )
    }
    inner = "".join(f"<{tag}>\n{text}</{tag}>\n" for tag, text in values.items())
    tag, attributes, piece = _TAGS[data.kind], "", ""
    if data.points is not None:
        points = writer.array("Points", _flat(data.points, structured))
        inner += f"<Points>\n{points}</Points>\n"
    if data.cells is None:
        extent = " ".join(f"0 {n - 1}" for n in data.shape)
        attributes, piece = f' WholeExtent="{extent}"', f' Extent="{extent}"'
        if data.kind == "image":
            attributes += _image_places(data)
        elif data.axes is not None:
            axes = "".join(
                writer.array(name, axis)
                for name, axis in zip("xyz", data.axes, strict=True)
            )
            inner += f"<Coordinates>\n{axes}</Coordinates>\n"
    else:
        piece = f' NumberOfPoints="{data.shape[0]}"'
        if data.kind == "unstructured":
            piece += f' NumberOfCells="{data.cells.types.size}"'
            inner += f"<Cells>\n{_cells(writer, data.cells)}</Cells>\n"
        else:
            counts, text = _sections(writer, data.cells)
            piece += counts
            inner += text
    field = _field(writer, data)
    return f"<{tag}{attributes}>\n{field}<Piece{piece}>\n{inner}</Piece>\n</{tag}>\n"


def _field(writer: _Writer, data: VTKData) -> str:
    arrays = dict(data.field_data)
    if data.time is not None:
        arrays["TimeValue"] = np.array([data.time])
    text = "".join(
        writer.array(name, values, f'NumberOfTuples="{len(values)}" ')
        for name, values in arrays.items()
    )
    return f"<FieldData>\n{text}</FieldData>\n" if text else ""


def _image_places(data: VTKData) -> str:
    assert data.axes is not None
    origins, spacings = [], []
    for name, given in zip("xyz", data.axes, strict=True):
        axis = given.astype(np.float64)
        origin = float(axis[0]) if axis.size else 0.0
        spacing = float(axis[-1] - axis[0]) / (axis.size - 1) if axis.size > 1 else 1.0
        uniform = origin + spacing * np.arange(axis.size)
        room = _UNIFORM * abs(spacing)
        if given.dtype.kind == "f" and axis.size:
            room += 4 * np.finfo(given.dtype).eps * np.abs(axis).max()
        if spacing <= 0 or np.any(~(np.abs(axis - uniform) <= room)):
            raise ArgumentError(
                f"An image must have uniform spacing, but the axis {name} is {axis}. "
                "Use the kind 'rectilinear'."
            )
        origins.append(repr(origin))
        spacings.append(repr(spacing))
    return f' Origin="{" ".join(origins)}" Spacing="{" ".join(spacings)}"'


def _cells(writer: _Writer, cells: VTKCells) -> str:
    text = writer.array("connectivity", cells.connectivity)
    text += writer.array("offsets", cells.offsets[1:])
    text += writer.array("types", cells.types)
    if cells.cell_faces is None:
        return text
    stream, ends = _face_streams(cells)
    # The form that every version of VTK reads.
    text += writer.array("faces", stream)
    return text + writer.array("faceoffsets", ends)


def _face_streams(cells: VTKCells) -> tuple[np.ndarray, np.ndarray]:
    """Returns the faces as lists, and where that of each cell ends, -1 for none."""
    assert cells.face_connectivity is not None
    assert cells.face_offsets is not None
    assert cells.cell_faces is not None
    counts = np.diff(cells.cell_faces)
    solid = counts > 0
    # Before each face stands its size, before the first of a cell their number.
    sized = np.insert(
        cells.face_connectivity, cells.face_offsets[:-1], np.diff(cells.face_offsets)
    )
    starts = (cells.face_offsets + np.arange(cells.face_offsets.size))[cells.cell_faces]
    stream = np.insert(sized, starts[:-1][solid], counts[solid])
    ends = starts[1:] + np.cumsum(solid)
    return stream, np.where(solid, ends, -1)


def _sections(writer: _Writer, cells: VTKCells) -> tuple[str, str]:
    """Returns the counts and the elements of the sections of polygonal data."""
    section = section_of(cells.types)
    if np.any(section < 0) or np.any(np.diff(section) < 0):
        raise ArgumentError(
            "Cells of polydata must be vertices (types 1, 2), lines (3, 4), polygons "
            "(5, 7, 9) and strips (6), in this order, but have the types "
            f"{cells.types[:20].tolist()}."
        )
    counts, text = "", ""
    for number, name in enumerate(SECTIONS):
        part = cells.subset(section == number)
        counts += f' NumberOf{name}="{part.types.size}"'
        arrays = writer.array("connectivity", part.connectivity)
        arrays += writer.array("offsets", part.offsets[1:])
        text += f"<{name}>\n{arrays}</{name}>\n"
    return counts, text
