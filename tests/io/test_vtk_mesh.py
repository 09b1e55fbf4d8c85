"""Cells of VTK files as elements of meshes."""

import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.io._vtk_build import vtk_grid
from physax.io._vtk_cells import VTKCells
from physax.io._vtk_data import VTKData
from physax.io._vtk_mesh import merge_points, mesh_elements


def cells_of(*cells):
    """Makes cells of pairs of a type and nodes."""
    ends = np.cumsum([0, *(len(nodes) for _, nodes in cells)])
    nodes = [node for _, nodes in cells for node in nodes]
    types = np.array([number for number, _ in cells], np.uint8)
    return VTKCells(np.asarray(nodes), ends, types)


def test_elements_come_by_kind_with_their_numbers():
    hexahedron, tetrahedron = list(range(8)), [0, 1, 2, 8]
    voxel = [0, 1, 3, 2, 4, 5, 7, 6]
    cells = cells_of(
        *((11, voxel), (5, [0, 1, 2]), (10, tetrahedron), (12, hexahedron)),
        *((13, [0, 1, 2, 3, 4, 5]), (10, tetrahedron), (14, [0, 1, 2, 3, 8])),
    )
    elements, numbers = mesh_elements(cells, 3)
    assert {name: block.shape for name, block in elements.items()} == {
        "tetrahedron": (2, 4),
        "hexahedron": (2, 8),
        "prism": (1, 6),
        "pyramid": (1, 5),
    }
    # A voxel counts its nodes along the axes, a hexahedron around its faces.
    assert elements["hexahedron"].tolist() == [hexahedron, hexahedron]
    assert numbers.tolist() == [2, 5, 3, 0, 4, 6]
    flat, numbers = mesh_elements(cells_of((3, [0, 1]), (8, [0, 1, 3, 2])), 2)
    assert flat["quadrilateral"].tolist() == [[0, 1, 2, 3]]
    assert numbers.tolist() == [1]


def test_polyhedra_come_as_lists_of_faces():
    faces = [[0, 1, 2], [0, 3, 1], [1, 3, 2], [2, 3, 0]]
    cells = VTKCells(
        np.array([0, 1, 0, 1, 2, 3]),
        np.array([0, 2, 6]),
        np.array([3, 42], np.uint8),
        np.ravel(faces),
        np.arange(0, 13, 3),
        np.array([0, 0, 4]),
    )
    elements, numbers = mesh_elements(cells, 3)
    assert [face.tolist() for face in elements["polyhedron"][0]] == faces
    assert numbers.tolist() == [1]


def test_points_at_one_place_are_joined():
    points = np.array(
        [[1.0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0], [1] * 3]
    )
    data = VTKData(
        "unstructured",
        points,
        None,
        cells_of((5, [0, 1, 2]), (5, [3, 4, 5])),
        {"p": np.arange(6.0)},
        {"c": np.arange(2)},
        time=1.0,
    )
    joined = merge_points(data)
    assert np.array_equal(joined.points, points[[0, 1, 2, 5]])
    assert joined.cells.connectivity.tolist() == [0, 1, 2, 2, 0, 3]
    assert joined.point_data["p"].tolist() == [0, 1, 2, 5]
    assert joined.time == 1.0


def test_what_is_no_mesh_is_named():
    with pytest.raises(ArgumentError, match="`data` must be a mesh, but is .* 'rectil"):
        merge_points(vtk_grid([np.arange(2.0)]))
    with pytest.raises(ArgumentError, match="`ndim` must be 2 or 3, but is 1"):
        mesh_elements(cells_of((3, [0, 1])), 1)
    with pytest.raises(ArgumentError, match="3 dimensions, but some are of type 24"):
        mesh_elements(cells_of((24, list(range(10)))), 3)
    with pytest.raises(ArgumentError, match="2 dimensions, but some are of type 10"):
        mesh_elements(cells_of((10, list(range(4)))), 2)
