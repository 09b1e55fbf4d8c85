"""Bodies in a surface of triangles: which meet, and which lies inside which."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .._checks import ArgumentError


# Surfaces nearer than this part of their extent touch: which of the two is nearest to a
# point is then a matter of rounding.
_TOUCH = 1e-6
# Pairs of an edge and a triangle that are compared at once.
_PAIRS = 200_000

Corners = Float[np.ndarray, "_ 3 3"]
Edges = Float[np.ndarray, "edges 2 3"]


class Bodies(NamedTuple):
    """The bodies of a closed surface.

    Attributes:
        number: The body of each triangle.
        first: The first triangle of each.
        volume: What each encloses, negative where it faces inward.
        meet: Whether the surfaces of two cross or touch.
        inside: Whether body [i, j] i lies inside body j.
    """

    number: Int[np.ndarray, " triangles"]
    first: Int[np.ndarray, " bodies"]
    volume: Float[np.ndarray, " bodies"]
    meet: Bool[np.ndarray, "bodies bodies"]
    inside: Bool[np.ndarray, "bodies bodies"]


def check_closed(triangles: Int[np.ndarray, "triangles 3"], count: int):
    """Refuses a surface with an edge that is not passed once each way."""
    following = np.roll(triangles, -1, axis=1)
    there = (triangles.astype(np.int64) * count + following).ravel()
    back = (following.astype(np.int64) * count + triangles).ravel()
    edges, times = np.unique(there, return_counts=True)
    bad = edges[(times > 1) | ~np.isin(edges, back)]
    if bad.size:
        one, other = divmod(int(bad[0]), count)
        raise ArgumentError(
            "`triangles` must close a solid, each edge shared by two that run along "
            f"it in opposite directions, but {bad.size} edges are not, the first from "
            f"vertex {one} to {other}. Repair the surface."
        )


def bodies_of(
    vertices: Float[np.ndarray, "vertices 3"], triangles: Int[np.ndarray, "triangles 3"]
) -> Bodies:
    """Finds the bodies of a closed surface, the parts that share no edge."""
    number = _numbers(triangles)
    # Relative to one of them, for the rounding of what is far from the origin.
    corners = np.asarray(vertices, float)[triangles] - vertices[triangles[0, 0]]
    volume = np.bincount(number, np.linalg.det(corners) / 6)
    each = [corners[number == k] for k in range(len(volume))]
    touch = _TOUCH * float(np.max(np.ptp(corners, axis=(0, 1))))
    low = np.array([one.min(axis=(0, 1)) for one in each]) - touch
    high = np.array([one.max(axis=(0, 1)) for one in each]) + touch

    meet = np.zeros((len(each), len(each)), bool)
    inside = meet.copy()
    for i in range(len(each)):
        near = np.all((low[i] <= high) & (low <= high[i]), axis=1)
        for j in np.flatnonzero(near[:i]):
            meet[i, j] = meet[j, i] = _meet(each[i], each[j], touch)
            if not meet[i, j]:
                inside[i, j] = _encloses(each[j], each[i][0, 0])
                inside[j, i] = _encloses(each[i], each[j][0, 0])
    first = np.unique(number, return_index=True)[1]
    return Bodies(number, first, volume, meet, inside)


def check_bodies(
    vertices: Float[np.ndarray, "vertices 3"], triangles: Int[np.ndarray, "triangles 3"]
):
    """Refuses a closed surface that leaves open on which side of it the solid is.

    Args:
        vertices: The corners.
        triangles: Their indices.

    Raises:
        ArgumentError: If two bodies cross or touch, one faces inward that is not inside
            another, or outward inside another.
    """
    bodies = bodies_of(vertices, triangles)
    if bodies.meet.any():
        one, other = bodies.first[np.argwhere(bodies.meet)[0]]
        raise ArgumentError(
            "Bodies of `triangles` must neither cross nor touch, but those of "
            f"triangles {one} and {other} do. Make a mesh of each and unite them: "
            "`a | b`."
        )
    # A body inside another is a cavity, one inside that is solid again.
    cavity = bodies.inside.sum(axis=1) % 2 == 1
    wrong = ~(np.where(cavity, -1, 1) * bodies.volume > 0)
    if wrong.any():
        body = int(np.argmax(wrong))
        which = (
            f"the body of triangle {bodies.first[body]} encloses "
            f"{bodies.volume[body]:g} m^3"
        )
        raise ArgumentError(
            f"`triangles` must run counterclockwise as seen from outside, but {which}. "
            "Reverse each."
            if not cavity[body]
            else "`triangles` around a cavity must run counterclockwise as seen from "
            f"within it, but {which} and lies inside another body. Reverse each, or "
            "leave the body out."
        )


def _numbers(triangles: Int[np.ndarray, "triangles 3"]):
    """Numbers the bodies: triangles that share an edge are of one."""
    count = len(triangles)
    ends = np.sort(np.stack([triangles, np.roll(triangles, -1, axis=1)], -1), axis=-1)
    _, edge = np.unique(ends.reshape(-1, 2), axis=0, return_inverse=True)
    edge = edge.ravel()
    size = count + int(edge.max()) + 1
    owner = np.repeat(np.arange(count), 3)
    links = coo_array((np.ones(3 * count), (owner, count + edge)), shape=(size, size))
    _, number = connected_components(links, directed=False)
    return np.unique(number[:count], return_inverse=True)[1].ravel()


def _encloses(corners: Corners, point: Float[np.ndarray, "3"]) -> bool:
    """Whether a point is inside: a closed surface around it subtends 4 pi.

    The solid angle of each triangle is by Van Oosterom and Strackee, IEEE Transactions
    on Biomedical Engineering 30, 125 (1983).
    """
    a, b, c = np.moveaxis(corners - point, 1, 0)
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))

    def dot(x, y):
        return np.sum(x * y, axis=1)

    over = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb
    angle = 2 * np.arctan2(dot(a, np.cross(b, c)), over)
    return abs(float(np.sum(angle))) > 2 * np.pi


def _meet(one: Corners, other: Corners, touch: float) -> bool:
    """Whether two surfaces cross, or come within a length of each other."""
    # Of surfaces that do, an edge of one ends at or passes through a face of the other.
    return any(
        _cut(np.stack([a, np.roll(a, -1, axis=1)], 2).reshape(-1, 2, 3), b, touch)
        for a, b in ((one, other), (other, one))
    )


def _cut(edges: Edges, faces: Corners, touch: float) -> bool:
    """Whether any edge comes within a length of any triangle."""
    edges = _near(edges, faces, touch)
    faces = _near(faces, edges, touch)
    if len(edges) * len(faces) <= _PAIRS:
        return _any_cut(edges, faces, touch)
    more = edges if len(edges) > len(faces) else faces
    middles = more.mean(axis=1)
    order = np.argsort(middles[:, np.argmax(np.ptp(middles, axis=0))])
    halves = (more[part] for part in np.array_split(order, 2))
    return any(
        _cut(half, faces, touch) if more is edges else _cut(edges, half, touch)
        for half in halves
    )


def _near(some: np.ndarray, others: np.ndarray, touch: float) -> np.ndarray:
    """Returns those that reach into the box around others."""
    if not len(others):
        return some[:0]
    low, high = others.min(axis=(0, 1)) - touch, others.max(axis=(0, 1)) + touch
    return some[np.all((some.min(axis=1) <= high) & (some.max(axis=1) >= low), axis=1)]


def _any_cut(edges: Edges, faces: Corners, touch: float) -> bool:
    normal = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
    size = np.linalg.norm(normal, axis=1, keepdims=True)
    # Triangles without area are the edges of others.
    flat = size[:, 0] > 0
    faces, normal = faces[flat], normal[flat] / size[flat]
    start, stop = (edges[:, k] @ normal.T for k in range(2))
    plane = np.sum(faces[:, 0] * normal, axis=1)
    start, stop = start - plane, stop - plane
    passes = (np.minimum(start, stop) <= touch) & (np.maximum(start, stop) >= -touch)
    e, f = np.nonzero(passes)
    start, run = start[e, f], (start - stop)[e, f]
    way = np.clip(start / np.where(run == 0, 1, run), 0, 1)[:, None]
    point = edges[e, 0] + way * (edges[e, 1] - edges[e, 0])
    within = np.ones(len(e), bool)
    for k in range(3):
        along = faces[f, (k + 1) % 3] - faces[f, k]
        inward = np.cross(normal[f], along)
        depth = np.sum(inward * (point - faces[f, k]), axis=1)
        within &= depth >= -touch * np.linalg.norm(along, axis=1)
    return bool(within.any())
