"""Splitting the elements of a mesh into triangles or tetrahedra that fit together."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._checks import ArgumentError


# Nodes of each kind of element, in the order of VTK.
FLAT = {"triangle": 3, "quadrilateral": 4}
SOLID = {"tetrahedron": 4, "hexahedron": 8, "prism": 6, "pyramid": 5}
POLYHEDRON = "polyhedron"

# Faces of the solids, counterclockwise as seen from outside. Files hold prisms in both
# orders of their two triangles, so a prism is turned as it needs.
_FACES = {
    "tetrahedron": ((0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)),
    "hexahedron": (
        (0, 3, 2, 1),
        (4, 5, 6, 7),
        (0, 1, 5, 4),
        (1, 2, 6, 5),
        (2, 3, 7, 6),
        (3, 0, 4, 7),
    ),
    "prism": ((0, 2, 1), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)),
    "pyramid": ((0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
}
_TURNED = ("prism", POLYHEDRON)


class Simplices(NamedTuple):
    """A mesh as triangles or tetrahedra.

    Attributes:
        points: The nodes, and behind them the centres of faces and elements that the
            splitting needed.
        corners: Numbers of the points of each simplex.
        owner: The element to which each simplex belongs.
        volumes: Areas or volumes, all positive.
        averages: For each pair of a centre and one of its nodes the centre, counted
            from the first centre, and the node. Centres are the means of their nodes.
    """

    points: np.ndarray
    corners: np.ndarray
    owner: np.ndarray
    volumes: np.ndarray
    averages: np.ndarray


class _Faces(NamedTuple):
    """Faces of one number of nodes, and the element each belongs to."""

    nodes: np.ndarray
    owner: np.ndarray


def split(
    points: np.ndarray, elements: Mapping[str, Any], *, rounding: float, orient: bool
) -> Simplices:
    """Splits elements into simplices that neighbours share face by face.

    Quadrilateral faces are cut by the diagonal from their smallest node number, and an
    element is the star of its smallest node; where that makes no sound simplices, of
    its centre. Faces of more nodes are stars of their centres, and polyhedra always.

    Args:
        points: The nodes, in float64.
        elements: For each kind its elements.
        rounding: Relative rounding of the coordinates.
        orient: Whether inverted elements are turned over.

    Returns:
        The simplices that have a volume. What is lost where a strongly warped element
        makes others is covered by its other simplices.

    Raises:
        ArgumentError: If an element has no volume or is inverted.
    """
    names = _names(elements)
    number = sum(counts(elements).values())
    no_centres = np.zeros((2, 0), int)
    if points.shape[1] == 2:
        corners, owner = _split_flat(points, elements)
        centres, mixed = no_centres, np.zeros(number, bool)
    else:
        faces = _faces(elements)
        mixed = _mixed(faces, elements, names)
        points, corners, owner, centres = _split_solid(points, faces, elements)
    volumes, exact, given = _volumes(points[corners], rounding)
    # Where faces are not all seen from one side, signs tell nothing.
    volumes = np.where(mixed[owner], np.abs(volumes), volumes)
    volumes = _signed(volumes, owner, elements, names, given, orient)
    sound = volumes > exact
    return Simplices(points, corners[sound], owner[sound], volumes[sound], centres)


def counts(elements: Mapping[str, Any]) -> dict[str, int]:
    """Returns the number of elements of each kind."""
    return {kind: len(block) for kind, block in elements.items()}


def _names(elements: Mapping[str, Any]) -> Callable[[int], str]:
    """Returns a function that names an element by its number in the whole mesh."""
    kinds = list(elements)
    ends = np.cumsum(list(counts(elements).values()))

    def name(number: int) -> str:
        block = int(np.searchsorted(ends, number, side="right"))
        first = int(ends[block - 1]) if block else 0
        return f"element {number - first} of `elements[{kinds[block]!r}]`"

    return name


def _of_kinds(elements: Mapping[str, Any], kinds: Collection[str]) -> np.ndarray:
    """Tells which elements are of some kinds."""
    return np.repeat(
        [kind in kinds for kind in elements], list(counts(elements).values())
    )


def _signed(
    volumes: np.ndarray,
    owner: np.ndarray,
    elements: Mapping[str, Any],
    names: Callable[[int], str],
    noise: np.ndarray,
    orient: bool,
) -> np.ndarray:
    """Returns volumes that are positive in elements of the right orientation."""
    number = sum(counts(elements).values())
    total = np.bincount(owner, volumes, number)
    empty = np.flatnonzero(np.abs(total) <= np.bincount(owner, noise, number))
    if empty.size:
        raise ArgumentError(
            "`elements` must have a volume, in two dimensions an area, but "
            f"{names(int(empty[0]))} has none ({total[empty[0]]:g}); so have "
            f"{empty.size - 1} others. Remove them from the mesh."
        )
    inverted = np.flatnonzero((total < 0) & ~_of_kinds(elements, _TURNED))
    if inverted.size and not orient:
        raise ArgumentError(
            "`elements` must list their nodes in the order of VTK, but "
            f"{names(int(inverted[0]))} is inverted: its volume is "
            f"{total[inverted[0]]:g}; so are {inverted.size - 1} others. If only the "
            "order is wrong, `orient=True` turns them; if the mesh is tangled, repair "
            "it."
        )
    return volumes * np.sign(total)[owner]


def _volumes(places: np.ndarray, rounding: float) -> tuple[np.ndarray, ...]:
    """Returns signed volumes, their noise by arithmetic, and by the coordinates'."""
    edges = places[:, 1:] - places[:, :1]
    if edges.shape[-1] == 2:
        cofactors = edges[:, ::-1, ::-1] * np.array([[1, -1], [-1, 1]])
        share = 1 / 2
    else:
        cofactors = np.cross(np.roll(edges, -1, 1), np.roll(edges, -2, 1))
        share = 1 / 6
    volumes = share * np.sum(edges[:, 0] * cofactors[:, 0], -1)
    cofactors = share * np.abs(cofactors)
    exact = 8 * np.finfo(float).eps * np.sum(np.abs(edges) * cofactors, (1, 2))
    reach = np.max(np.abs(places), axis=1)
    given = exact + rounding * np.sum(cofactors * reach[:, None], (1, 2))
    return volumes, exact, given


def _split_flat(
    points: np.ndarray, elements: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Cuts quadrilaterals by the diagonal that leaves the larger smallest triangle."""
    corners, owner, first = [], [], 0
    for kind, block in elements.items():
        numbers = first + np.arange(len(block))
        first += len(block)
        if kind == "triangle":
            corners.append(block)
            owner.append(numbers)
            continue
        cuts = np.stack([block[:, [0, 1, 2, 0, 2, 3]], block[:, [0, 1, 3, 1, 2, 3]]], 1)
        areas = _volumes(points[cuts.reshape(-1, 3)], 0.0)[0].reshape(-1, 2, 2)
        sign = np.sign(areas.sum(-1, keepdims=True))
        best = np.argmax(np.min(areas * sign, -1), -1)
        corners.append(cuts[np.arange(len(block)), best].reshape(-1, 3))
        owner.append(np.repeat(numbers, 2))
    return np.concatenate(corners), np.concatenate(owner)


def _faces(elements: Mapping[str, Any]) -> list[_Faces]:
    """Collects the faces of all solids by their number of nodes."""
    found: dict[int, list[_Faces]] = {}
    first = 0
    for kind, block in elements.items():
        numbers = first + np.arange(len(block))
        first += len(block)
        if kind == POLYHEDRON:
            for number, element in zip(numbers, block, strict=True):
                for face in element:
                    one = _Faces(np.asarray(face, int)[None], np.array([number]))
                    found.setdefault(len(face), []).append(one)
            continue
        for face in _FACES[kind]:
            found.setdefault(len(face), []).append(_Faces(block[:, face], numbers))
    return [
        _Faces(
            np.concatenate([face.nodes for face in faces]),
            np.concatenate([face.owner for face in faces]),
        )
        for faces in found.values()
    ]


def _mixed(
    faces: list[_Faces], elements: Mapping[str, Any], names: Callable[[int], str]
) -> np.ndarray:
    """Tells of which polyhedra some faces are seen from inside, some from outside."""
    mixed = np.zeros(sum(counts(elements).values()), bool)
    if POLYHEDRON not in elements:
        return mixed
    polyhedra = _of_kinds(elements, {POLYHEDRON})
    edges = []
    for nodes, owner in faces:
        mine = polyhedra[owner]
        ends = np.stack([nodes[mine], np.roll(nodes[mine], -1, 1)], -1)
        owners = np.repeat(owner[mine], nodes.shape[1])
        edges.append(np.column_stack([owners, ends.reshape(-1, 2)]))
    edges = np.concatenate(edges)
    way = np.where(edges[:, 1] < edges[:, 2], 1, -1)
    edges[:, 1:].sort(1)
    shared, which, times = np.unique(
        edges, axis=0, return_inverse=True, return_counts=True
    )
    open_edges = np.flatnonzero(times != 2)
    if open_edges.size:
        number, a, b = (int(i) for i in shared[open_edges[0]])
        raise ArgumentError(
            "`elements['polyhedron']` must be closed, each edge shared by two faces, "
            f"but in {names(number)} {times[open_edges[0]]} faces share the edge from "
            f"node {a} to node {b}."
        )
    one_way = np.bincount(which.reshape(-1), way, len(shared)) != 0
    mixed[shared[one_way, 0]] = True
    return mixed


def _split_solid(
    points: np.ndarray, faces: list[_Faces], elements: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Makes each element the star of one point over the triangles of its surface."""
    number = sum(counts(elements).values())
    centres = _Centres(points)
    triangles, owner = _triangles(faces, centres)
    corner = np.full(number, np.iinfo(int).max)
    for nodes, owners in faces:
        np.minimum.at(corner, owners, nodes.min(1))
    # All faces at the smallest node of an element are cut from there.
    away = np.all(triangles != corner[owner][:, None], axis=1)
    corners = np.column_stack([corner[owner], triangles])
    volumes, exact, _ = _volumes(centres.all_points()[corners], 0.0)
    total = np.bincount(owner, volumes, number)
    unsound = away & (volumes * np.sign(total)[owner] <= exact)
    starred = _of_kinds(elements, {POLYHEDRON})
    starred[owner[unsound]] = True
    starred &= ~_of_kinds(elements, {"tetrahedron"})
    members = np.concatenate(
        [
            np.column_stack([np.repeat(owners, nodes.shape[1]), nodes.reshape(-1)])
            for nodes, owners in faces
        ]
    )
    members = np.unique(members[starred[members[:, 0]]], axis=0)
    middle = np.cumsum(starred) - 1
    middle += centres.add(middle[members[:, 0]], members[:, 1])
    apex = np.where(starred, middle, corner)
    kept = away | starred[owner]
    corners = np.column_stack([apex[owner], triangles])[kept]
    return centres.all_points(), corners, owner[kept], centres.pairs()


def _triangles(
    faces: list[_Faces], centres: "_Centres"
) -> tuple[np.ndarray, np.ndarray]:
    """Cuts faces into triangles; the same nodes make the same triangles."""
    triangles, owner = [], []
    for nodes, owners in faces:
        size = nodes.shape[1]
        if size == 4:
            turn = (nodes.argmin(1)[:, None] + np.arange(4)) % 4
            nodes = np.take_along_axis(nodes, turn, 1)
            parts = [nodes[:, [0, 1, 2]], nodes[:, [0, 2, 3]]]
        elif size > 4:
            shared, which = np.unique(np.sort(nodes, 1), axis=0, return_inverse=True)
            numbers = np.repeat(np.arange(len(shared)), size)
            middle = centres.add(numbers, shared.reshape(-1)) + which.reshape(-1)
            parts = [
                np.column_stack([middle, nodes[:, k], nodes[:, (k + 1) % size]])
                for k in range(size)
            ]
        else:
            parts = [nodes]
        triangles += parts
        owner += [owners] * len(parts)
    return np.concatenate(triangles), np.concatenate(owner)


class _Centres:
    """Points that are means of nodes, numbered behind the nodes."""

    def __init__(self, points: np.ndarray):
        self._points = points
        self._groups: list[np.ndarray] = []
        self._count = 0

    def add(self, group: np.ndarray, nodes: np.ndarray) -> int:
        """Adds the mean of the nodes of each group; returns the first one's number."""
        first = self._count
        self._groups.append(np.stack([first + group, nodes]))
        self._count += int(group.max(initial=-1)) + 1
        return len(self._points) + first

    def pairs(self) -> np.ndarray:
        """Returns for each centre and node of it, the centre and the node."""
        return np.concatenate([np.zeros((2, 0), int), *self._groups], 1)

    def all_points(self) -> np.ndarray:
        """Returns the nodes and behind them the centres."""
        centre, node = self.pairs()
        if not self._count:
            return self._points
        share = 1 / np.bincount(centre, minlength=self._count)
        means = [
            share * np.bincount(centre, self._points[node, axis], self._count)
            for axis in range(self._points.shape[1])
        ]
        return np.concatenate([self._points, np.stack(means, -1)])
