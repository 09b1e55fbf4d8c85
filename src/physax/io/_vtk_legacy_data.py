"""Puts together what was read of a legacy VTK file."""

import math

import numpy as np

from ._vtk_cells import (
    POLYHEDRON,
    SECTIONS,
    VTKCells,
    VTKFaultError,
    ends_to_offsets,
    faces_of_streams,
    polygonal_cells,
)
from ._vtk_data import VTKData
from ._vtk_xml import image_places, time_of, to_grid_order


class LegacyParts:
    """The parts of a legacy file, `None` or empty until they are read.

    Attributes:
        kind: The kind of data.
        shape: How many points a grid has along each axis.
        points: The points, `[points, 3]`.
        axes: Coordinates along `"X"`, `"Y"` and `"Z"`.
        image: `"ORIGIN"` and `"SPACING"` of an image.
        sections: Of polygonal data: name, nodes and offsets of each kind of cells.
        cells: Of unstructured grids: nodes and offsets.
        types: VTK's numbers of the types of the cells.
        field: Field data.
        values: Arrays on `"points"` and on `"cells"`, `[tuples, components]`.
    """

    def __init__(self):
        self.kind: str | None = None
        self.shape: tuple[int, ...] | None = None
        self.points: np.ndarray | None = None
        self.axes: dict[str, np.ndarray] = {}
        self.image = {"ORIGIN": np.zeros(3), "SPACING": np.ones(3)}
        self.sections: list[tuple[str, np.ndarray, np.ndarray]] = []
        self.cells: tuple[np.ndarray, np.ndarray] | None = None
        self.types: np.ndarray | None = None
        self.field: dict[str, np.ndarray] = {}
        self.values: dict[str, dict[str, np.ndarray]] = {"points": {}, "cells": {}}


def assemble(parts: LegacyParts) -> VTKData:
    """Returns what was read, if it is complete."""
    if parts.kind is None:
        raise VTKFaultError("It must hold a DATASET, but ends before: truncated.")
    if parts.kind in ("unstructured", "polydata"):
        places = _mesh(parts)
    else:
        places = _grid(parts)
    points, axes, cells = places
    bare = VTKData(parts.kind, points, axes, cells)
    found = []
    for place, shape in (("points", bare.shape), ("cells", bare.cell_shape)):
        arrays = parts.values[place]
        for name, values in arrays.items():
            if len(values) != math.prod(shape):
                raise VTKFaultError(
                    f"The array {name!r} must have {math.prod(shape)} tuples, one "
                    f"for each of the {place}, but has {len(values)}."
                )
        found.append(
            {
                name: to_grid_order(values, shape)
                if cells is None
                else (values[:, 0] if values.shape[1] == 1 else values)
                for name, values in arrays.items()
            }
        )
    point_data, cell_data = found
    return VTKData(
        parts.kind,
        points,
        axes,
        cells,
        point_data,
        cell_data,
        parts.field,
        time_of(parts.field),
    )


def _mesh(parts: LegacyParts):
    if parts.points is None:
        raise VTKFaultError("It must have POINTS, but ends before: truncated.")
    if parts.kind == "polydata":
        order = list(SECTIONS)
        for _, nodes, offsets in parts.sections:
            _check_offsets(nodes, offsets)
        names = [name for name, _, _ in parts.sections]
        if len(set(names)) != len(names):
            raise VTKFaultError("It must have each kind of cells at most once.")
        cells = polygonal_cells(
            sorted(parts.sections, key=lambda part: order.index(part[0]))
        )
    else:
        cells = _unstructured_cells(parts)
    return parts.points, None, cells


def _unstructured_cells(parts: LegacyParts) -> VTKCells:
    if (parts.cells is None) != (parts.types is None) and (
        parts.types is None or parts.types.size
    ):
        raise VTKFaultError(
            "It must have both CELLS and CELL_TYPES, but has one: truncated."
        )
    if parts.cells is None or parts.types is None:
        none = np.zeros(0, np.int64)
        return VTKCells(none, np.zeros(1, np.int64), np.zeros(0, np.uint8))
    nodes, offsets = parts.cells
    _check_offsets(nodes, offsets)
    if offsets.size != parts.types.size + 1:
        raise VTKFaultError(
            f"CELL_TYPES must be {offsets.size - 1} numbers, but are "
            f"{parts.types.size}."
        )
    solid = parts.types == POLYHEDRON
    if not np.any(solid):
        return VTKCells(nodes, offsets, parts.types)
    # Here the nodes of a polyhedron are those of its faces, with their numbers.
    ends = np.where(solid, offsets[1:], -1)
    faces = faces_of_streams(nodes, offsets[:-1], ends)
    face_nodes, face_offsets, cell_faces = faces
    pieces = []
    for cell in range(solid.size):
        if solid[cell]:
            low, high = face_offsets[cell_faces[cell : cell + 2]]
            pieces.append(np.unique(face_nodes[low:high]))
        else:
            pieces.append(nodes[offsets[cell] : offsets[cell + 1]])
    sizes = np.cumsum([piece.size for piece in pieces])
    connectivity = np.concatenate(pieces)
    return VTKCells(connectivity, ends_to_offsets(sizes), parts.types, *faces)


def _grid(parts: LegacyParts):
    if parts.shape is None:
        raise VTKFaultError("It must have DIMENSIONS, but ends before: truncated.")
    if parts.kind == "image":
        extent = tuple((0, n - 1) for n in parts.shape)
        origin, spacing = parts.image["ORIGIN"], parts.image["SPACING"]
        axes, _ = image_places(origin, spacing, extent, np.eye(3))
        return None, axes, None
    if parts.kind == "rectilinear":
        sizes = tuple(parts.axes[a].size if a in parts.axes else 0 for a in "XYZ")
        if sizes != parts.shape:
            raise VTKFaultError(
                f"Its coordinates must be {parts.shape} along x, y and z, but are "
                f"{sizes}."
            )
        return None, tuple(parts.axes[a] for a in "XYZ"), None
    count = math.prod(parts.shape)
    if parts.points is None or len(parts.points) != count:
        found = 0 if parts.points is None else len(parts.points)
        raise VTKFaultError(
            f"It must have {count} points by its DIMENSIONS {parts.shape}, but has "
            f"{found}."
        )
    return to_grid_order(parts.points, parts.shape), None, None


def _check_offsets(nodes: np.ndarray, offsets: np.ndarray) -> None:
    if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != nodes.size:
        raise VTKFaultError(
            f"Offsets of cells must increase from 0 to {nodes.size}, but do not."
        )
    if np.any(np.diff(offsets) < 0):
        raise VTKFaultError("Offsets of cells must not decrease, but do.")
