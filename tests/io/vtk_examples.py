"""Data as VTK holds them, one of each kind, and comparisons with ours."""

import numpy as np
from vtkmodules.util.numpy_support import numpy_to_vtk, vtk_to_numpy
from vtkmodules.vtkCommonCore import vtkIdList, vtkPoints
from vtkmodules.vtkCommonDataModel import (
    VTK_POLYHEDRON,
    vtkCellArray,
    vtkImageData,
    vtkPolyData,
    vtkRectilinearGrid,
    vtkStructuredGrid,
    vtkUnstructuredGrid,
)


SHAPE = (4, 3, 2)
TYPES = ("u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


def add_values(data, rng=None):
    """Adds arrays of all types on points and cells, and a time."""
    rng = np.random.default_rng(0) if rng is None else rng
    sides = (
        (data.GetPointData(), data.GetNumberOfPoints()),
        (data.GetCellData(), data.GetNumberOfCells()),
    )
    for attributes, count in sides:
        add(attributes, "U", rng.normal(size=(count, 3)).astype(np.float32))
        add(attributes, "a name 5 % ü", rng.normal(size=count))
        for name in TYPES:
            values = rng.integers(0, 100, size=(count, 2)).astype(name)
            add(attributes, name, values)
    add(data.GetFieldData(), "TimeValue", np.array([0.1 + 0.2]))
    add(data.GetFieldData(), "pairs", np.arange(6.0).reshape(3, 2))
    return data


def add(attributes, name, values):
    array = numpy_to_vtk(np.ascontiguousarray(values), deep=1)
    array.SetName(name)
    attributes.AddArray(array)


def vtk_points(array):
    points = vtkPoints()
    points.SetData(numpy_to_vtk(np.ascontiguousarray(array), deep=1))
    return points


def image():
    data = vtkImageData()
    data.SetExtent(1, SHAPE[0], -1, SHAPE[1] - 2, 0, SHAPE[2] - 1)
    data.SetOrigin(0.1, -2, 3)
    data.SetSpacing(0.3, 0.25, 2)
    return data


def rectilinear():
    data, rng = vtkRectilinearGrid(), np.random.default_rng(1)
    data.SetDimensions(*SHAPE)
    setters = (data.SetXCoordinates, data.SetYCoordinates, data.SetZCoordinates)
    for n, put in zip(SHAPE, setters, strict=True):
        put(numpy_to_vtk(np.cumsum(rng.uniform(0.1, 1, n)), deep=1))
    return data


def structured():
    data, rng = vtkStructuredGrid(), np.random.default_rng(2)
    data.SetDimensions(*SHAPE)
    data.SetPoints(vtk_points(rng.normal(size=(np.prod(SHAPE), 3))))
    return data


def unstructured(polyhedra=True):
    data = vtkUnstructuredGrid()
    corners = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij"), -1)
    points = np.concatenate([corners.reshape(-1, 3), [[2, 0, 0.5], [0.1, 3, 1 / 3]]])
    data.SetPoints(vtk_points(points))
    for kind, nodes in (
        (10, [0, 1, 2, 4]),
        (12, [0, 1, 3, 2, 4, 5, 7, 6]),
        (13, [0, 1, 2, 4, 5, 6]),
        (14, [0, 1, 3, 2, 8]),
        (5, [0, 8, 9]),
        (9, [0, 1, 3, 2]),
        (3, [7, 8]),
    ):
        data.InsertNextCell(kind, len(nodes), nodes)
    if polyhedra:
        for shift in (0, 1):
            faces = [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6]]
            faces += [[0, 2, 6, 4], [1, 3, 7 + shift, 5]]
            stream = vtkIdList()
            for number in [len(faces), *(n for f in faces for n in (len(f), *f))]:
                stream.InsertNextId(number)
            data.InsertNextCell(VTK_POLYHEDRON, stream)
            data.InsertNextCell(10, 4, [1, 2, 3, 9])
    return data


def polydata():
    data, rng = vtkPolyData(), np.random.default_rng(3)
    data.SetPoints(vtk_points(rng.normal(size=(9, 3)).astype(np.float32)))
    for put, cells in (
        (data.SetVerts, [[0], [1], [2, 3]]),
        (data.SetLines, [[0, 1], [2, 3, 4, 5]]),
        (data.SetPolys, [[0, 1, 2], [3, 4, 5, 6], [4, 5, 6, 7, 8]]),
        (data.SetStrips, [[0, 1, 2, 3, 4]]),
    ):
        array = vtkCellArray()
        for nodes in cells:
            array.InsertNextCell(len(nodes), nodes)
        put(array)
    return data


MAKERS = {
    "image": image,
    "rectilinear": rectilinear,
    "structured": structured,
    "unstructured": unstructured,
    "polydata": polydata,
}


def arrays_of(attributes):
    count = attributes.GetNumberOfArrays()
    arrays = [attributes.GetArray(i) for i in range(count)]
    return {a.GetName(): vtk_to_numpy(a) for a in arrays if a is not None}


def in_vtk_order(values, structured):
    """Returns our values as VTK has them, x fastest."""
    if not structured:
        return values
    turned = values.transpose(2, 1, 0, *range(3, values.ndim))
    return turned.reshape(-1, *values.shape[3:])


def assert_same(ours, theirs, *, types=True):
    """Checks that our data hold what VTK's hold, bit for bit."""
    grid = ours.cells is None
    for mine, attributes in (
        (ours.point_data, theirs.GetPointData()),
        (ours.cell_data, theirs.GetCellData()),
        (ours.field_data, theirs.GetFieldData()),
    ):
        others = arrays_of(attributes)
        assert mine.keys() == others.keys()
        for name, values in mine.items():
            flat = in_vtk_order(values, grid and mine is not ours.field_data)
            assert np.array_equal(flat, others[name], equal_nan=True), name
            assert not types or values.dtype == others[name].dtype, name
    number = theirs.GetNumberOfPoints()
    points = np.array([theirs.GetPoint(i) for i in range(number)]).reshape(-1, 3)
    if ours.points is not None:
        assert np.array_equal(in_vtk_order(ours.points, grid), points)
    else:
        mesh = np.stack(np.meshgrid(*ours.axes, indexing="ij"), -1)
        # VTK computes the points of an image in another order of operations.
        assert np.allclose(in_vtk_order(mesh, True), points, rtol=1e-15, atol=1e-15)
    if grid:
        shape = [0, 0, 0]
        theirs.GetDimensions(shape)
        assert ours.shape == tuple(shape)
        return
    assert ours.cells.types.size == theirs.GetNumberOfCells()
    for cell in range(theirs.GetNumberOfCells()):
        assert_same_cell(ours.cells, theirs, cell)


def assert_same_cell(cells, theirs, number):
    ids = vtkIdList()
    theirs.GetCellPoints(number, ids)
    nodes = [ids.GetId(i) for i in range(ids.GetNumberOfIds())]
    low, high = cells.offsets[number : number + 2]
    mine = cells.connectivity[low:high].tolist()
    assert cells.types[number] == theirs.GetCellType(number)
    if cells.types[number] != VTK_POLYHEDRON:
        assert mine == nodes
        return
    assert sorted(mine) == sorted(nodes)
    stream = vtkIdList()
    theirs.GetFaceStream(number, stream)
    numbers = [stream.GetId(i) for i in range(stream.GetNumberOfIds())]
    first, last = cells.cell_faces[number : number + 2]
    again = [last - first]
    for face in range(first, last):
        start, end = cells.face_offsets[face : face + 2]
        again += [end - start, *cells.face_connectivity[start:end].tolist()]
    assert again == numbers
