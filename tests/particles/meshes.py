"""Meshes of all kinds of elements, and places in them."""

import numpy as np
from scipy.spatial import Delaunay


def grid(*axes):
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1)


def delaunay(ndim, count):
    rng = np.random.default_rng(3)
    corners = grid(*[[0.0, 1.0]] * ndim).reshape(-1, ndim)
    points = np.concatenate([corners, rng.uniform(0, 1, (count, ndim))])
    nodes = Delaunay(points).simplices
    volume = np.linalg.det(points[nodes[:, 1:]] - points[nodes[:, :1]])
    kind = ["triangle", "tetrahedron"][ndim - 2]
    return points, {kind: nodes[np.abs(volume) > 1e-12]}


def blocks(shape):
    """Node numbers around each cell of a structured grid, in the order of VTK."""
    numbers = np.arange(np.prod(shape)).reshape(shape)
    around = [(0, 0), (1, 0), (1, 1), (0, 1)]
    around = [(*at, level) for level in (0, 1) for at in around]
    parts = [
        numbers[tuple(slice(k, n - 1 + k) for k, n in zip(at, shape, strict=True))]
        for at in around
    ]
    return np.stack(parts, -1).reshape(-1, 8)


FACES = [
    [0, 3, 2, 1],
    [4, 5, 6, 7],
    [0, 1, 5, 4],
    [1, 2, 6, 5],
    [2, 3, 7, 6],
    [3, 0, 4, 7],
]


def solids(kind):
    """The unit cube of one kind of element, or of all."""
    axes = [np.linspace(0, 1, n) ** 1.3 for n in (5, 6, 4)]
    points = grid(*axes).reshape(-1, 3)
    cells = blocks((5, 6, 4))
    prisms = cells[:, [[0, 1, 3, 4, 5, 7], [1, 2, 3, 5, 6, 7]]].reshape(-1, 6)
    middle = len(points) + np.arange(len(cells))
    tips = np.concatenate(
        [np.column_stack([cells[:, face[::-1]], middle]) for face in FACES]
    )
    if kind == "hexahedron":
        return points, {kind: cells}
    if kind == "prism":
        return points, {kind: prisms}
    if kind == "pyramid":
        return np.concatenate([points, points[cells].mean(1)]), {kind: tips}
    if kind == "polyhedron":
        return points, {kind: [[cell[face] for face in FACES] for cell in cells]}
    third = len(cells) // 3
    return points, {
        "hexahedron": cells[:third],
        "prism": prisms[2 * third : 4 * third],
        "polyhedron": [[cell[face] for face in FACES] for cell in cells[2 * third :]],
    }


def graded(ndim):
    """Cells from 1 to 1e-3 thick, along every axis."""
    axis = np.concatenate([[0], np.geomspace(1e-3, 1, 12)])
    return grid(*[axis] * ndim).reshape(-1, ndim), structured((13,) * ndim)


def structured(shape):
    if len(shape) == 3:
        return {"hexahedron": blocks(shape)}
    flat = blocks((*shape, 2))[:, :4] // 2
    return {"quadrilateral": flat}


def curvilinear(ndim):
    """A grid that is bent inside its straight faces."""
    x = grid(*[np.linspace(0, 1, 9)] * ndim)
    bend = 0.06 * np.prod(np.sin(np.pi * x), axis=-1)
    return (x + bend[..., None]).reshape(-1, ndim), structured((9,) * ndim)


def thin(ndim):
    """Elements 1e-4 of their length thick."""
    points, elements = delaunay(ndim, 60)
    return points * np.array([1, 1, 1e-4])[-ndim:], elements


MESHES = {
    "regular": lambda n: (
        grid(*[np.linspace(0, 1, 6)] * n).reshape(-1, n),
        structured((6,) * n),
    ),
    "graded": graded,
    "curvilinear": curvilinear,
    "random": lambda n: delaunay(n, 300),
    "thin": thin,
}


def places_inside(points, count):
    """Random places in a box of which the mesh fills every part."""
    ndim = points.shape[1]
    x = np.random.default_rng(1).uniform(0, 1, (count, ndim))
    x[:, -1] *= points[:, -1].max()
    return x
