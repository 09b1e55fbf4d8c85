"""VTK's XML files: `.vti`, `.vtr`, `.vts`, `.vtu` and `.vtp`."""

import dataclasses
import math
import re
from collections.abc import Callable, Collection
from io import BufferedReader

import numpy as np

from ._vtk_arrays import check_size, parse_words
from ._vtk_cells import (
    SECTIONS,
    VTKCells,
    VTKFaultError,
    ends_to_offsets,
    faces_of_streams,
    polygonal_cells,
)
from ._vtk_data import GHOSTS, VTKData, cell_shape
from ._vtk_pieces import Extent, check_wanted, merge, shape_of
from ._vtk_tree import Element, parse_tree
from ._vtk_xml_arrays import ArrayReader, indices


XML_KINDS = {
    "ImageData": "image",
    "RectilinearGrid": "rectilinear",
    "StructuredGrid": "structured",
    "UnstructuredGrid": "unstructured",
    "PolyData": "polydata",
}
_LARGEST_INDEX = 1 << 40


def read_xml(
    file: BufferedReader, size: int, arrays: Collection[str] | None
) -> VTKData:
    """Reads a file that is not a parallel one.

    Args:
        file: The file.
        size: Its size in bytes.
        arrays: Names of values on points and cells to read, or `None` for all.

    Raises:
        VTKFaultError: If it is damaged or cannot be read.
    """
    root, appended = parse_tree(file)
    reader = ArrayReader(root, file, appended, size)
    kind = XML_KINDS.get(root.attributes.get("type", ""))
    if kind is None:
        raise VTKFaultError(
            f"It must be one of {', '.join(XML_KINDS)}, but is "
            f"{root.attributes.get('type')!r}."
        )
    grid = _child(root, root.get("type"))
    if len(grid.attributes.get("TimeValues", "").split()) > 1:
        raise VTKFaultError(
            "It must hold one time, but holds several in one file. Write one file for "
            "each time, and a .pvd file."
        )
    field = _field_data(reader, root, grid)
    pieces = list(grid.all("Piece"))
    if not pieces:
        raise VTKFaultError(f"<{grid.tag}> must have a <Piece>, but has none.")
    if kind in ("unstructured", "polydata"):
        read = _unstructured if kind == "unstructured" else _polydata
        parts = [(None, read(reader, piece, arrays)) for piece in pieces]
        return with_field(merge(parts, None), field)
    whole = extent_of(grid, "WholeExtent")
    parts = [
        (extent_of(piece, "Extent"), _structured(reader, grid, piece, kind, arrays))
        for piece in pieces
    ]
    return with_field(merge(parts, whole), field)


def read_time(file: BufferedReader, size: int) -> float | None:
    """Reads the time of a file, and as little else as may be."""
    root, appended = parse_tree(file, early=True)
    reader = ArrayReader(root, file, appended, size)
    grid = next(iter(root.children), None)
    return time_of(_field_data(reader, root, grid) if grid is not None else {})


def time_of(field: dict[str, np.ndarray]) -> float | None:
    """Returns the time among field data, by the name that VTK or VisIt gives it."""
    for name in ("TimeValue", "TIME"):
        if name in field and field[name].size == 1:
            return float(field[name].flat[0])
    return None


def with_field(data: VTKData, field: dict[str, np.ndarray]) -> VTKData:
    """Returns the data with field data and the time in them."""
    return dataclasses.replace(data, field_data=field, time=time_of(field))


def extent_of(element: Element, name: str) -> Extent:
    """Parses first and last index along each axis.

    Raises:
        VTKFaultError: If they are not six numbers.
    """
    words = element.get(name).split()
    if len(words) != 6 or not all(re.fullmatch(r"[+-]?\d{1,18}", w) for w in words):
        raise VTKFaultError(
            f"{name!r} of <{element.tag}> must be six integers, but is "
            f"{element.get(name)[:80]!r}."
        )
    ends = [int(word) for word in words]
    pairs = tuple(zip(ends[::2], ends[1::2], strict=True))
    for low, high in pairs:
        if high < low - 1 or max(abs(low), abs(high)) > _LARGEST_INDEX:
            raise VTKFaultError(
                f"{name!r} of <{element.tag}> must give a first and a last index for "
                f"each axis, but is {element.get(name)!r}."
            )
    return pairs


def _child(element: Element, tag: str) -> Element:
    found = element.find(tag)
    if found is None:
        raise VTKFaultError(f"<{element.tag}> must hold <{tag}>, but does not.")
    return found


def _field_data(reader: ArrayReader, root: Element, grid: Element) -> dict:
    field = {}
    for owner in (root, grid):
        for element in (e for f in owner.all("FieldData") for e in f.all("DataArray")):
            name = element.attributes.get("Name", "")
            what = f"The field array {name!r}"
            if "NumberOfTuples" in element.attributes:
                count = element.count("NumberOfTuples")
                values = reader.tuples(element, count, what)
            else:
                values = reader.array(element, None, what)
                components = element.count("NumberOfComponents", 1)
                if components == 0 or values.size % components:
                    raise VTKFaultError(f"{what} must be whole tuples, but is not.")
                values = values.reshape(-1, components)
            field[name] = values[:, 0] if values.shape[1] == 1 else values
    return field


def _values(
    reader: ArrayReader,
    piece: Element,
    counts: tuple[int, int],
    arrays: Collection[str] | None,
    shaped: Callable[[np.ndarray, bool], np.ndarray],
) -> tuple[dict, dict]:
    """Reads the values on points and on cells."""
    found: list[dict] = []
    there: list[str] = []
    for tag, count, where in zip(
        ("PointData", "CellData"), counts, ("points", "cells"), strict=True
    ):
        elements = {}
        for owner in piece.all(tag):
            for element in owner.all("DataArray"):
                elements[element.attributes.get("Name", "")] = element
        there += [f"{name} ({where})" for name in elements]
        values = {}
        for name, element in elements.items():
            # Ghosts are always read: they tell what is there twice.
            if arrays is None or name in arrays or name == GHOSTS:
                what = f"The array {name!r} on {where}"
                tuples = reader.tuples(element, count, what)
                values[name] = shaped(tuples, where == "cells")
        found.append(values)
    if sum(counts):
        check_wanted(arrays, found, there)
    return found[0], found[1]


def _squeezed(tuples: np.ndarray, cells: bool) -> np.ndarray:
    del cells
    return tuples[:, 0] if tuples.shape[1] == 1 else tuples


def _points(reader: ArrayReader, piece: Element, count: int) -> np.ndarray:
    element = _child(piece, "Points").find("DataArray") if count else None
    if element is None:
        if count:
            raise VTKFaultError("<Points> must hold a <DataArray>, but does not.")
        return np.zeros((0, 3), np.float32)
    points = reader.tuples(element, count, "The array of points")
    if points.shape[1] != 3:
        raise VTKFaultError(
            f"Points must have 3 coordinates, but have {points.shape[1]}."
        )
    return points


def _named(owner: Element) -> dict[str, Element]:
    return {e.attributes.get("Name", ""): e for e in owner.all("DataArray")}


def _lists(
    reader: ArrayReader, named: dict[str, Element], count: int, names: tuple[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Reads entries and offsets of `count` lists."""
    for name in names:
        if name not in named:
            raise VTKFaultError(
                f"Its cells must have the array {name!r}, but have "
                f"{', '.join(named) or 'none'}."
            )
    entries, offsets = names
    ends = indices(reader.array(named[offsets], count, f"The array {offsets!r}"))
    if count and (ends[0] < 0 or np.any(np.diff(ends) < 0)):
        raise VTKFaultError(
            f"The array {offsets!r} must increase from 0, but does not."
        )
    number = int(ends[-1]) if count else 0
    nodes = indices(reader.array(named[entries], number, f"The array {entries!r}"))
    return nodes, ends_to_offsets(ends)


def _unstructured(
    reader: ArrayReader, piece: Element, arrays: Collection[str] | None
) -> VTKData:
    count, number = piece.count("NumberOfPoints"), piece.count("NumberOfCells")
    points = _points(reader, piece, count)
    named = _named(_child(piece, "Cells")) if number else {}
    cells = VTKCells(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, "u1"))
    if number:
        nodes, offsets = _lists(reader, named, number, ("connectivity", "offsets"))
        if "types" not in named:
            raise VTKFaultError("Its cells must have the array 'types'.")
        types = reader.array(named["types"], number, "The array 'types'")
        if types.dtype.kind not in "iu" or np.any((types < 0) | (types > 255)):
            raise VTKFaultError("Types of cells must be numbers from 0 to 255.")
        faces = _faces(reader, named, number)
        cells = VTKCells(nodes, offsets, types.astype(np.uint8), *faces)
    values = _values(reader, piece, (count, number), arrays, _squeezed)
    return VTKData("unstructured", points, None, cells, *values)


def _faces(reader: ArrayReader, named: dict[str, Element], count: int) -> tuple:
    """Reads the faces of polyhedra, as VTK writes them before and since 9.4."""
    if "polyhedron_offsets" in named and "face_offsets" in named:
        numbers, cell_faces = _lists(
            reader, named, count, ("polyhedron_to_faces", "polyhedron_offsets")
        )
        # How many faces there are is not written elsewhere.
        element = named["face_offsets"]
        ends = indices(reader.array(element, None, "The array 'face_offsets'"))
        nodes, face_offsets = _lists(
            reader, named, ends.size, ("face_connectivity", "face_offsets")
        )
        faces = VTKCells(nodes, face_offsets, np.zeros(ends.size, np.uint8))
        if numbers.size == 0:
            return (None, None, None)
        if numbers.min() < 0 or numbers.max() >= ends.size:
            raise VTKFaultError(
                f"Polyhedra must refer to faces from 0 to {ends.size - 1}, but do not."
            )
        if np.any(numbers != np.arange(ends.size)) or numbers.size != ends.size:
            faces = faces.subset(numbers)
        return faces.connectivity, faces.offsets, cell_faces
    if "faces" not in named or "faceoffsets" not in named:
        return (None, None, None)
    ends = indices(reader.array(named["faceoffsets"], count, "The array 'faceoffsets'"))
    number = max(int(ends.max()), 0)
    stream = indices(reader.array(named["faces"], number, "The array 'faces'"))
    # The list of a cell begins where that of the last polyhedron before it ended.
    before = np.maximum.accumulate(ends_to_offsets(np.maximum(ends, 0)))[:-1]
    if not np.any(ends > before):
        return (None, None, None)
    return faces_of_streams(stream, before, ends)


def _polydata(
    reader: ArrayReader, piece: Element, arrays: Collection[str] | None
) -> VTKData:
    count = piece.count("NumberOfPoints")
    points = _points(reader, piece, count)
    parts = []
    for section in SECTIONS:
        number = piece.count(f"NumberOf{section}", 0)
        if number:
            named = _named(_child(piece, section))
            lists = _lists(reader, named, number, ("connectivity", "offsets"))
            parts.append((section, *lists))
    cells = polygonal_cells(parts)
    values = _values(reader, piece, (count, cells.types.size), arrays, _squeezed)
    return VTKData("polydata", points, None, cells, *values)


def _structured(
    reader: ArrayReader,
    grid: Element,
    piece: Element,
    kind: str,
    arrays: Collection[str] | None,
) -> VTKData:
    extent = extent_of(piece, "Extent")
    shape = shape_of(extent)
    counts = (math.prod(shape), math.prod(cell_shape(shape)))

    def shaped(tuples: np.ndarray, cells: bool) -> np.ndarray:
        return to_grid_order(tuples, cell_shape(shape) if cells else shape)

    point_data, cell_data = _values(reader, piece, counts, arrays, shaped)
    axes, points = None, None
    if kind == "image":
        axes, points = _image_places(grid, extent)
        kind = "image" if points is None else "structured"
    elif kind == "rectilinear":
        elements = list(_child(piece, "Coordinates").all("DataArray"))
        if len(elements) != 3:
            raise VTKFaultError(
                f"<Coordinates> must hold 3 arrays, but holds {len(elements)}."
            )
        x, y, z = (
            reader.array(element, n, f"The coordinates along {axis}")
            for element, n, axis in zip(elements, shape, "xyz", strict=True)
        )
        axes = (x, y, z)
    else:
        flat = _points(reader, piece, counts[0])
        points = to_grid_order(flat, shape)
    return VTKData(kind, points, axes, None, point_data, cell_data)


def to_grid_order(tuples: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Returns values `[i, j, k, components]`, without the last axis if it is one."""
    values = tuples.reshape(*shape[::-1], tuples.shape[1]).transpose(2, 1, 0, 3)
    return np.ascontiguousarray(values[..., 0] if tuples.shape[1] == 1 else values)


def _image_places(grid: Element, extent: Extent) -> tuple:
    """Returns the axes of an image, or its points if the image is turned."""

    def numbers(name: str, default: str, count: int) -> np.ndarray:
        text = grid.attributes.get(name, default).encode() + b"\n"
        what = f"{name!r} of <{grid.tag}>"
        return parse_words(text, 0, count, np.dtype("f8"), what)[0]

    return image_places(
        numbers("Origin", "0 0 0", 3),
        numbers("Spacing", "1 1 1", 3),
        extent,
        numbers("Direction", "1 0 0 0 1 0 0 0 1", 9).reshape(3, 3),
    )


def image_places(
    origin: np.ndarray, spacing: np.ndarray, extent: Extent, turn: np.ndarray
) -> tuple:
    """Returns the axes of an image and `None`, or `None` and its points if turned."""
    plain = np.array_equal(turn, np.eye(3))
    shape = shape_of(extent)
    size = sum(shape) if plain else 3 * math.prod(shape)
    check_size(size, np.dtype("f8"), "The coordinates of the image")
    steps = [
        spacing[axis] * np.arange(low, high + 1)
        for axis, (low, high) in enumerate(extent)
    ]
    if plain:
        x, y, z = (origin[axis] + step for axis, step in enumerate(steps))
        return (x, y, z), None
    offsets = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1)
    return None, origin + offsets @ turn.T
