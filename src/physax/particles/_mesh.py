"""Unstructured meshes, prepared for finding places in them."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from .._checks import ArgumentError, refuse_traced, true_or_false
from .._gather import gather
from ._hash_grid import HashGrid, make_hash_grid
from ._numbers import check_numbers, host_numbers
from ._simplex_rows import element_centres, neighbours, simplex_rows
from ._simplices import FLAT, POLYHEDRON, SOLID, split


class Mesh(eqx.Module):
    r"""Elements in two or three dimensions, split into triangles or tetrahedra.

    In two dimensions elements are triangles and quadrilaterals; in three tetrahedra,
    hexahedra, prisms, pyramids and polyhedra, all with nodes in the order of VTK. A
    prism may list its two triangles either way; faces of a polyhedron may start
    anywhere. A polyhedron must see all its faces from the mean of its nodes.

    The splitting into simplices is conforming: neighbours cut a shared face alike, so
    that fields given at nodes are continuous, linear in each simplex. Places are found
    exactly: by walking from the simplex where the particle was, else in a hash grid
    that files a simplex in every bin it touches. All of this is prepared on the host in
    float64; on the device positions count from a corner of the simplex, so that
    nothing is lost far from the origin, and an element may be as thin as the rounding
    of its coordinates.

    Attributes:
        points: The nodes, in metres.
        centres: The centre of mass of each element.
        owner: The element to which each simplex belongs. Elements are numbered kind
            after kind in the order of `elements`.
        largest: The largest simplex of each element.
        arms: The way from the centre of each element to the reference corner of its
            largest simplex.
        rows: Of each simplex its reference corner, the rounding of that, the heights
            over its faces in units of its longest edge, and the triangular factors of
            its edges.
        links: Of each simplex the neighbours across the faces opposite to its corners,
            -1 where there is none, and then its corners.
        averages: For the centres of faces and elements, which follow the nodes as
            corners, each centre and one of its nodes in turn.
        bins: The hash grid of the simplices.
        tolerance: A place this far outside a simplex, in units of the longest edge,
            still belongs to it: what rounding takes.
        centre_count: Number of the centres in `averages`.
    """

    points: Float[Array, "nodes ndim"]
    centres: Float[Array, "elements ndim"]
    owner: Int[Array, " simplices"]
    largest: Int[Array, " elements"]
    arms: Float[Array, "elements ndim"]
    rows: Float[Array, "simplices numbers"]
    links: Int[Array, "simplices links"]
    averages: Int[Array, "2 pairs"]
    bins: HashGrid
    tolerance: float = eqx.field(static=True)
    centre_count: int = eqx.field(static=True)

    def __init__(
        self,
        points: Float[ArrayLike, "nodes ndim"],
        elements: Mapping[str, Any],
        *,
        orient: bool = False,
    ):
        """Prepares a mesh.

        Args:
            points: The nodes; NumPy float64 keeps their places exact.
            elements: For each kind, `"triangle"`, `"quadrilateral"`, `"tetrahedron"`,
                `"hexahedron"`, `"prism"` or `"pyramid"`, the numbers of the nodes of
                its elements, `[elements, nodes]`. A `"polyhedron"` is a list of faces,
                each a list of node numbers.
            orient: Whether to turn elements whose nodes are listed the wrong way, as
                they are in `scipy.spatial.Delaunay` of 3-D points.

        Raises:
            ArgumentError: If the points are not finite or not 2-D or 3-D, a node
                number is not in the mesh, or an element has no volume or is inverted.
        """
        orient = true_or_false(orient, "orient")
        host, rounding = _checked_points(points)
        blocks = _checked_elements(elements, host)
        parts = split(host, blocks, rounding=rounding, orient=orient)
        dtype = np.dtype(jnp.result_type(float))
        eps = float(np.finfo(dtype).eps)
        self.points = jnp.asarray(host, dtype)
        centres = element_centres(parts, sum(len(block) for block in blocks.values()))
        self.centres = jnp.asarray(centres, dtype)
        self.owner = jnp.asarray(parts.owner, jnp.int32)
        order = np.argsort(parts.volumes, kind="stable")
        largest = np.zeros(len(centres), int)
        largest[parts.owner[order]] = order
        self.largest = jnp.asarray(largest, jnp.int32)
        rows, corners = simplex_rows(parts, dtype)
        self.rows = jnp.asarray(rows)
        arms = parts.points[corners[largest, 0]] - centres
        self.arms = jnp.asarray(arms, dtype)
        links = np.concatenate([neighbours(corners), corners], 1)
        self.links = jnp.asarray(links, jnp.int32)
        self.averages = jnp.asarray(parts.averages, jnp.int32)
        places = parts.points[corners]
        reach = 32 * eps * np.max(np.ptp(places, axis=1), -1, keepdims=True)
        low, high = places.min(1) - reach, places.max(1) + reach
        self.bins = make_hash_grid(low, high, dtype)
        self.tolerance = 16 * eps
        self.centre_count = len(parts.points) - len(host)

    @classmethod
    def structured(
        cls, coordinates: Float[ArrayLike, "*nodes ndim"], *, orient: bool = True
    ) -> "Mesh":
        """Makes a mesh of a curvilinear grid, in rows and columns but bent.

        Args:
            coordinates: Places of the nodes, `[nx, ny, 2]` or `[nx, ny, nz, 3]`; they
                are numbered with the last axis fastest.
            orient: Whether to turn the grid if it is left-handed.

        Raises:
            ArgumentError: If the shape is not one of these, or as for `Mesh`.
        """
        shape = np.shape(coordinates)
        ndim = len(shape) - 1
        if ndim not in (2, 3) or shape[-1] != ndim or min(shape[:-1]) < 2:
            raise ArgumentError(
                "`coordinates` must have shape (nx, ny, 2) or (nx, ny, nz, 3), with at "
                f"least two nodes along each axis, but have {shape}."
            )
        numbers = np.arange(np.prod(shape[:-1])).reshape(shape[:-1])
        around = [(0, 0), (1, 0), (1, 1), (0, 1)]
        if ndim == 3:
            around = [(*corner, level) for level in (0, 1) for corner in around]
        corners = [
            numbers[tuple(slice(k, n - 1 + k) for k, n in zip(at, shape, strict=False))]
            for at in around
        ]
        kind = "quadrilateral" if ndim == 2 else "hexahedron"
        block = np.stack(corners, -1).reshape(-1, len(corners))
        points = (
            coordinates
            if isinstance(coordinates, jax.Array)
            else np.asarray(coordinates)
        )
        return cls(points.reshape(-1, ndim), {kind: block}, orient=orient)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.points.shape[1]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return len(self.centres)

    def first_guess(self, x: Float[Array, " ndim"]) -> Int[Array, ""]:
        """Returns a simplex near a place, where a search may begin.

        Args:
            x: The place.
        """
        x = jax.lax.stop_gradient(x).astype(self.rows.dtype)
        start = jax.lax.stop_gradient(self.bins).candidates(x)[0]
        return self.bins.entries[jnp.minimum(start, self.bins.entries.size - 1)]

    def weights(
        self, x: Float[Array, " ndim"], simplex: Int[Array, ""]
    ) -> list[Float[Array, ""]]:
        """Returns the barycentric coordinates of a place, one for each corner.

        Args:
            x: The place.
            simplex: The simplex.
        """
        n = self.ndim
        row = self._row(simplex, 0, 2 * n)
        factors = self._row(simplex, 3 * n + 1, n * n)
        offset = [(x[i] - row[i]) + row[n + i] for i in range(n)]
        # Substitution, not the inverse: its error is that of moving the place by
        # rounding, also in a sliver whose inverse is large.
        along = []
        for i in range(n):
            rest = offset[i] - sum(factors[n * i + j] * along[j] for j in range(i))
            along.append(rest * factors[n * i + i])
        for i in reversed(range(n - 1)):
            for j in range(i + 1, n):
                along[i] = along[i] - factors[n * i + j] * along[j]
        return [1 - sum(along[1:], along[0]), *along]

    def depth(
        self, x: Float[Array, " ndim"], simplex: Int[Array, ""]
    ) -> tuple[Float[Array, ""], Int[Array, ""]]:
        """Returns how deep a place lies in a simplex, and the neighbour next to it.

        Args:
            x: The place.
            simplex: The simplex.

        Returns:
            The smallest distance to a face in units of the longest edge, negative
            outside; and the simplex behind that face.
        """
        n = self.ndim
        weights = self.weights(x, simplex)
        heights = self._row(simplex, 2 * n, n + 1)
        depth, face = weights[0] * heights[0], jnp.asarray(0, jnp.int32)
        for k in range(1, n + 1):
            other = weights[k] * heights[k]
            face = jnp.where(other < depth, k, face)
            depth = jnp.minimum(depth, other)
        return depth, gather(self.links, simplex, face)

    def _row(
        self, simplex: Int[Array, ""], first: int, count: int
    ) -> list[Float[Array, ""]]:
        rows = jax.lax.stop_gradient(self.rows)
        row = gather(rows, simplex)
        return [row[first + k] for k in range(count)]


def _checked_points(points: ArrayLike) -> tuple[np.ndarray, float]:
    """Returns the points in float64, and how finely they were given."""
    refuse_traced(points, "points", "Make the mesh outside and pass it in.")
    host, given = host_numbers(points, "points"), np.asarray(points)
    if host.ndim != 2 or host.shape[1] not in (2, 3):
        raise ArgumentError(
            "`points` must have two or three coordinates each, shape (nodes, 2) or "
            f"(nodes, 3), but have shape {host.shape}."
        )
    wrong = np.flatnonzero(~np.all(np.isfinite(host), axis=1))
    if wrong.size:
        raise ArgumentError(
            f"`points` must be finite, but node {wrong[0]} is {host[wrong[0]]}."
        )
    single = given.dtype.kind == "f" and given.dtype.itemsize < 8
    return host, float(np.finfo(given.dtype if single else float).eps)


def _checked_elements(elements: Any, points: np.ndarray) -> dict[str, Any]:
    kinds = FLAT if points.shape[1] == 2 else SOLID
    known = [*kinds, *([POLYHEDRON] if kinds is SOLID else [])]
    blocks: dict[str, Any] = {}
    if not isinstance(elements, Mapping):
        raise ArgumentError(
            "`elements` must be given by kind, as `{'triangle': triangles}` of the "
            f"kinds {', '.join(known)}, but are a {type(elements).__name__}."
        )
    for kind, block in elements.items():
        if kind not in known:
            raise ArgumentError(
                f"`elements` of points with {points.shape[1]} coordinates must be of "
                f"the kinds {', '.join(known)}, but include {kind!r}."
            )
        if kind == POLYHEDRON:
            blocks[kind] = _as_polyhedra(block)
            flat = [face for one in blocks[kind] for face in one]
            numbers = np.concatenate(flat) if flat else np.zeros(0, int)
        else:
            check_numbers(block, f"elements[{kind!r}]")
            blocks[kind] = numbers = np.asarray(block)
            if numbers.ndim != 2 or numbers.shape[1] != kinds[kind]:
                raise ArgumentError(
                    f"`elements[{kind!r}]` must have shape (elements, {kinds[kind]}), "
                    f"but have {numbers.shape}."
                )
            if numbers.dtype.kind not in "iu":
                raise ArgumentError(
                    f"`elements[{kind!r}]` must hold numbers of nodes, but their dtype "
                    f"is {numbers.dtype}."
                )
            blocks[kind] = numbers = numbers.astype(int)
        wrong = numbers[(numbers < 0) | (numbers >= len(points))]
        if wrong.size:
            raise ArgumentError(
                f"`elements[{kind!r}]` must hold node numbers from 0 to "
                f"{len(points) - 1}, but hold {wrong.flat[0]}."
            )
    if not sum(len(block) for block in blocks.values()):
        raise ArgumentError("`elements` must hold at least one element, but has none.")
    return blocks


def _as_polyhedra(block: Any) -> list[list[np.ndarray]]:
    """Returns the node numbers of each face of each polyhedron."""
    wanted = (
        f"`elements[{POLYHEDRON!r}]` must be a list of polyhedra, each a list of "
        "faces, each a list of node numbers, but "
    )
    try:
        faces = [[np.asarray(face, int) for face in one] for one in block]
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{wanted}is not: {error}.") from error
    for number, one in enumerate(faces):
        if any(face.ndim != 1 for face in one):
            raise ArgumentError(f"{wanted}a face of number {number} is not.")
    return faces
