"""Solids given by the triangles of their surface."""

from collections.abc import Sequence
from itertools import product

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from .._checks import ArgumentError, check, whole
from ._bodies import check_bodies, check_closed
from ._combinations import AbstractShape
from ._overlap import Intervals
from ._sections import place_of_cut, shape_of
from ._shape_fields import as_floats


def _vertices(x: ArrayLike | Sequence) -> Float[Array, "vertices 3"]:
    x = as_floats(x, "vertices")
    if x.ndim != 2 or x.shape[1] != 3:
        raise ArgumentError(
            f"`vertices` must have shape (n, 3), but has shape {x.shape}."
        )
    return check(x, jnp.isfinite(x), "`vertices` must be finite")


def _triangles(x: ArrayLike | Sequence) -> Int[np.ndarray, "triangles 3"]:
    x = np.asarray(x)
    if x.ndim != 2 or x.shape[1] != 3 or not len(x) or x.dtype.kind not in "iu":
        raise ArgumentError(
            "`triangles` must be integers of shape (m, 3) with m at least 1, but is "
            f"{x.dtype} of shape {x.shape}."
        )
    return x.astype(np.int32)


class TriangleMesh(AbstractShape):
    """A solid within a closed surface of triangles.

    Several bodies may lie apart, and one inside another is a cavity: its triangles run
    counterclockwise as seen from within it.

    The cells are divided into parts, and each part is cut by the plane of the triangle
    nearest to its middle. That is exact where the surface is flat in a part; a part
    with an edge of the solid gets too much of it, up to a quarter, in a dent too
    little. With the length $L$ of all edges and parts of width $h$ a box is some
    0.07 $L h^2$ too large, a tetrahedron 0.12, a wedge of 10 degrees 0.16, each at most
    twice to four times as much. A film much thinner than a part counts as up to half a
    part thick: choose `parts` such that two fit into it. Differentiable in the vertices
    and in the cells; the normal of a flat face is exact. The work grows as triangles x
    cells x parts, so simplify what is finer than the grid.

    Attributes:
        vertices: Positions (x, y, z) in metres.
        triangles: For each triangle the indices of its vertices, counterclockwise as
            seen from outside.
        parts: Into how many parts each cell is divided along each axis.

    Raises:
        ArgumentError: If a shape or number is wrong, the surface is not closed or not
            oriented one way, a body faces the wrong way, two cross or touch, or `parts`
            is not positive.
    """

    vertices: Float[Array, "vertices 3"] = eqx.field(converter=_vertices)
    triangles: Int[np.ndarray, "triangles 3"] = eqx.field(converter=_triangles)
    parts: int = eqx.field(
        static=True, converter=lambda n: whole(n, "parts"), default=2
    )

    def __check_init__(self):
        count = self.vertices.shape[0]
        least, most = int(self.triangles.min()), int(self.triangles.max())
        if least < 0 or most >= count:
            raise ArgumentError(
                f"`triangles` must hold indices of the {count} vertices, from 0, but "
                f"has {least if least < 0 else most}."
            )
        check_closed(self.triangles, count)
        if not isinstance(self.vertices, jax.core.Tracer):
            check_bodies(np.asarray(self.vertices), self.triangles)

    def covered(self, cells):
        shape = shape_of(cells)
        present = [k for k, axis in enumerate(cells) if isinstance(axis, Intervals)]
        corners = self.vertices[self.triangles]
        normals = _normals(corners)
        flat = jax.lax.stop_gradient((corners, normals))
        surface = (*flat, *_pseudonormals(*flat))
        middle, widths = [], []
        for axis in cells:
            if isinstance(axis, Intervals):
                middle.append(axis.position + (axis.above - axis.below) / 2)
                widths.append((axis.below + axis.above) / self.parts)
            else:
                middle.append(jnp.asarray(place_of_cut(axis), corners.dtype))
                widths.append(jnp.zeros((), corners.dtype))

        @jax.checkpoint
        def part(offset):
            points = [
                jnp.broadcast_to(x + offset[k] * w, shape)
                for k, (x, w) in enumerate(zip(middle, widths, strict=True))
            ]
            nearest, squared = _nearest(jax.lax.stop_gradient(points), *surface)
            normal = [normals[nearest, k] for k in range(3)]
            distance = sum(
                n * (x - corners[nearest, 0, k])
                for k, (n, x) in enumerate(zip(normal, points, strict=True))
            )
            spans = [jnp.abs(n) * w for n, w in zip(normal, widths, strict=True)]
            cut = _behind_plane(distance, spans)
            # No triangle reaches into the part, and planes that do are of others.
            whole = squared > sum(w**2 for w in widths) / 4
            return jnp.where(whole, jnp.where(distance < 0, 1.0, 0.0), cut)

        middles = np.arange(self.parts) - (self.parts - 1) / 2
        steps = [middles if k in present else [0.0] for k in range(3)]
        offsets = jnp.asarray(list(product(*steps)), corners.dtype)
        total, _ = jax.lax.scan(
            lambda total, offset: (total + part(offset), None),
            jnp.zeros(shape, corners.dtype),
            offsets,
        )
        return total / offsets.shape[0]

    def bounds(self):
        used = self.vertices[np.unique(self.triangles)]
        return jnp.min(used, axis=0), jnp.max(used, axis=0)


def _normals(corners: Float[Array, "triangles 3 3"]) -> Float[Array, "triangles 3"]:
    """Returns unit normals, 0 of triangles without area."""
    normal = jnp.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    # In units of its largest entry, whose square stays in float32's range.
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(normal), axis=1, keepdims=True))
    normal = normal / jnp.where(largest > 0, largest, 1)
    square = jnp.sum(normal**2, axis=1, keepdims=True)
    return normal / jnp.sqrt(jnp.where(square > 0, square, 1))


def _pseudonormals(
    corners: Float[Array, "triangles 3 3"], normals: Float[Array, "triangles 3"]
) -> tuple[Float[Array, "triangles 3 3"], Float[Array, "triangles 3 3"]]:
    """Returns normals that say on which side of a corner or an edge a point is.

    They are sums of the unit normals of the faces there, of a corner weighted with
    their angles (Baerentzen and Aanaes, IEEE Transactions on Visualization and Computer
    Graphics 11, 243, 2005): a point nearest to the corner or edge is outside where it
    lies ahead.

    Returns:
        Those of the three corners, and of the edges from each to the next.
    """

    def sums(places, values):
        # What lies at the same place is one, also without a common index.
        places, values = places.reshape(-1, 3), values.reshape(-1, 3)
        _, number = jnp.unique(places, axis=0, return_inverse=True, size=len(places))
        number = number.ravel()
        total = jnp.zeros_like(values).at[number].add(values)
        return total[number].reshape(corners.shape)

    following = jnp.roll(corners, -1, axis=1)
    along = following - corners
    length = jnp.linalg.norm(along, axis=2, keepdims=True)
    along = along / jnp.where(length > 0, length, 1)
    # Half the chord between the two directions from a corner is the sine of half of
    # the angle: precise at sharp corners, too.
    chord = jnp.linalg.norm(along + jnp.roll(along, 1, axis=1), axis=2, keepdims=True)
    angles = 2 * jnp.arcsin(jnp.minimum(chord / 2, 1))
    normals = normals[:, None, :]
    return (
        sums(corners, angles * normals),
        sums(corners + following, jnp.broadcast_to(normals, corners.shape)),
    )


# Of triangles that share the nearest point, those whose planes say rightly whether a
# point is outside come first, and of them the one whose plane is farthest.
_TIE = 1e-4


def _nearest(points, corners, normals, at_corners, at_edges):
    """Returns for each point the nearest triangle and its squared distance.

    The point lies before the plane of that triangle if and only if it is outside.
    """

    def dot(u, v):
        return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]

    def look(best, triangle):
        least, index, squared = best
        number, corner, normal, at_corner, at_edge = triangle
        away = [[x - c[k] for k, x in enumerate(points)] for c in corner]
        ahead = [dot(n, x) for n, x in zip(at_corner, away, strict=True)]
        inside, edges, side = True, jnp.inf, 0.0
        for start, stop in ((0, 1), (1, 2), (2, 0)):
            along = corner[stop] - corner[start]
            length = jnp.sum(along**2)
            t = dot(along / jnp.where(length > 0, length, 1), away[start])
            t = jnp.clip(t, 0, 1)
            off = [x - t * along[k] for k, x in enumerate(away[start])]
            square = dot(off, off)
            here = jnp.where(
                t <= 0,
                ahead[start],
                jnp.where(t >= 1, ahead[stop], dot(at_edge[start], away[start])),
            )
            side = jnp.where(square < edges, here, side)
            edges = jnp.minimum(edges, square)
            inside = inside & (dot(jnp.cross(normal, along), away[start]) >= 0)
        plane = dot(normal, away[0])
        face = inside & jnp.any(normal != 0)
        distance = jnp.where(face, plane**2, edges)
        agrees = face | (side * plane >= 0)
        score = distance + _TIE * (jnp.where(agrees, 0, 2) * distance - plane**2)
        nearer = score < least
        best = (
            jnp.where(nearer, score, least),
            jnp.where(nearer, number, index),
            jnp.where(nearer, distance, squared),
        )
        return best, None

    shape = points[0].shape
    far = jnp.full(shape, jnp.inf, corners.dtype)
    numbers = jnp.arange(corners.shape[0], dtype=jnp.int32)
    start = (far, jnp.zeros(shape, jnp.int32), far)
    surface = (numbers, corners, normals, at_corners, at_edges)
    (_, index, squared), _ = jax.lax.scan(look, start, surface, unroll=2)
    return index, squared


# Least extent of a cell along one axis as seen by a plane, in parts of the whole: the
# formula divides by their product. It moves a fraction by 0.3 % at most.
_THIN = 0.02


def _behind_plane(distance, spans):
    """Fraction of a block on the negative side of a plane.

    Args:
        distance: Of the middle of the block from the plane, positive in front of it.
        spans: Widths of the block times the entries of the normal, without sign.
    """
    whole = spans[0] + spans[1] + spans[2]
    whole = jnp.where(whole > 0, whole, 1)
    parts = [jnp.maximum(span / whole, _THIN) for span in spans]
    depth = -distance / whole
    # A spline in the distance: third differences of its cube over the corners.
    total = sum(
        a
        * b
        * c
        * jnp.maximum(depth + (a * parts[0] + b * parts[1] + c * parts[2]) / 2, 0) ** 3
        for a, b, c in product((1, -1), repeat=3)
    )
    reach = (parts[0] + parts[1] + parts[2]) / 2
    fraction = total / (6 * parts[0] * parts[1] * parts[2])
    cut = jnp.abs(depth) < reach
    return jnp.where(cut, jnp.clip(fraction, 0, 1), jnp.where(depth > 0, 1.0, 0.0))
