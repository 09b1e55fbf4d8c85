"""VTK meshes made ready for `particles.Mesh`."""

import itertools
from typing import Any

import numpy as np

from .._checks import ArgumentError
from ._vtk_cells import POLYHEDRON, VTKCells
from ._vtk_data import VTKData


# Of each number of dimensions, VTK's type, the name of `Mesh`, and the order of nodes
# where it differs: pixels and voxels count along the axes.
_KINDS: dict[int, tuple[tuple[int, str, list[int] | None], ...]] = {
    2: (
        (5, "triangle", None),
        (9, "quadrilateral", None),
        (8, "quadrilateral", [0, 1, 3, 2]),
    ),
    3: (
        (10, "tetrahedron", None),
        (12, "hexahedron", None),
        (11, "hexahedron", [0, 1, 3, 2, 4, 5, 7, 6]),
        (13, "prism", None),
        (14, "pyramid", None),
    ),
}
# Types of fewer dimensions: points, lines and surfaces beside the elements.
_POINTS_AND_LINES = {0, 1, 2, 3, 4, 21, 35}
_SMALLER = {
    2: _POINTS_AND_LINES,
    3: _POINTS_AND_LINES | {5, 6, 7, 8, 9, 22, 23, 28, 30, 32, 34, 36},
}


def mesh_elements(cells: VTKCells, ndim: int) -> tuple[dict[str, Any], np.ndarray]:
    """Returns cells by kind, as `particles.Mesh` takes its elements.

    Points, lines, and in three dimensions surfaces are left out: meshes often hold
    their boundaries too.

    Args:
        cells: The cells.
        ndim: The number of dimensions of the elements, 2 or 3.

    Returns:
        The elements by kind, and for each element in the order of the mesh its number
        among the cells, by which values on cells are put in order.

    Raises:
        ArgumentError: If `ndim` is another, or a cell is of a kind that the mesh does
            not know, such as a curved one.
    """
    if ndim not in _KINDS:
        raise ArgumentError(f"`ndim` must be 2 or 3, but is {ndim}.")
    known = {number for number, _, _ in _KINDS[ndim]} | _SMALLER[ndim]
    known |= {POLYHEDRON} if ndim == 3 else set()
    present = np.flatnonzero(np.bincount(cells.types, minlength=256))
    odd = [int(number) for number in present if int(number) not in known]
    if odd:
        raise ArgumentError(
            f"`cells` must be of VTK's types {sorted(known)} in {ndim} dimensions, but "
            f"some are of type {odd[0]}. Split them first, as VTK's "
            "vtkDataSetTriangleFilter does."
        )
    blocks: dict[str, list[np.ndarray]] = {}
    numbers: dict[str, list[np.ndarray]] = {}
    for number, name, order in _KINDS[ndim]:
        nodes, which = cells.of_type(number)
        if which.size:
            turned = nodes if order is None else nodes[:, order]
            blocks.setdefault(name, []).append(turned)
            numbers.setdefault(name, []).append(which)
    elements: dict[str, Any] = {k: np.concatenate(v) for k, v in blocks.items()}
    order = [number for parts in numbers.values() for number in parts]
    solid = np.flatnonzero(cells.types == POLYHEDRON)
    if solid.size:
        elements["polyhedron"] = [_faces(cells, cell) for cell in solid.tolist()]
        order.append(solid)
    return elements, np.concatenate([np.zeros(0, np.int64), *order])


def _faces(cells: VTKCells, cell: int) -> list[np.ndarray]:
    assert cells.face_connectivity is not None
    assert cells.face_offsets is not None
    assert cells.cell_faces is not None
    first, last = cells.cell_faces[cell : cell + 2]
    ends = cells.face_offsets[first : last + 1].tolist()
    return [
        cells.face_connectivity[start:end] for start, end in itertools.pairwise(ends)
    ]


def merge_points(data: VTKData) -> VTKData:
    """Joins points of a mesh that lie at exactly the same place.

    Pieces of a parallel file share the points between them, each with its own copy;
    joined, the pieces are neighbours. The values are those of the first copy.

    Args:
        data: Data of the kind `"unstructured"` or `"polydata"`.

    Returns:
        The same cells on fewer points.

    Raises:
        ArgumentError: If the data are of another kind.
    """
    cells = data.cells
    if cells is None or data.points is None:
        raise ArgumentError(
            f"`data` must be a mesh, but is of the kind {data.kind!r}, whose points "
            "are a grid."
        )
    _, first, inverse = np.unique(
        data.points, axis=0, return_index=True, return_inverse=True
    )
    # In the order in which they stand, not in that of their coordinates.
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    new, kept = rank[inverse.reshape(-1)], first[order]
    faces = cells.face_connectivity
    joined = VTKCells(
        new[cells.connectivity],
        cells.offsets,
        cells.types,
        None if faces is None else new[faces],
        cells.face_offsets,
        cells.cell_faces,
    )
    return VTKData(
        data.kind,
        data.points[kept],
        None,
        joined,
        {name: values[kept] for name, values in data.point_data.items()},
        data.cell_data,
        data.field_data,
        data.time,
    )
