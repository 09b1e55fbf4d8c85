"""A balanced tree of points, for the nearest ones of a place."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


_LEAF = 8


class KDTree(eqx.Module):
    """A perfect binary tree of boxes around points; made by `make_kd_tree`.

    Node 1 is the root and the children of node i are 2 i and 2 i + 1. Each leaf holds
    as many points as the others; points at infinity fill them.

    Attributes:
        boxes: Lower and upper corner of the box of each node.
        points: The points, leaf after leaf.
        numbers: The numbers of these points as they were given; beyond the last for
            those at infinity.
        levels: Number of levels above the leaves.
    """

    boxes: Float[Array, "nodes 2 ndim"]
    points: Float[Array, "leaves leaf ndim"]
    numbers: Int[Array, "leaves leaf"]
    levels: int = eqx.field(static=True)

    def guess(self, x: Float[Array, " ndim"], count: int) -> Int[Array, " count"]:
        """Returns points that are near a place, though perhaps not the nearest.

        Args:
            x: The place.
            count: How many, no more than a leaf holds.
        """

        def down(_, node):
            left = self._square(2 * node, x) <= self._square(2 * node + 1, x)
            return 2 * node + 1 - left.astype(jnp.int32)

        node = jax.lax.fori_loop(0, self.levels, down, jnp.asarray(1, jnp.int32))
        return self.numbers[node - 2**self.levels, :count]

    def nearest(
        self, x: Float[Array, " ndim"], bound: Float[Array, ""], count: int
    ) -> Int[Array, " count"]:
        """Returns the nearest points, the nearest first.

        All nodes are visited in turn, leaving out what lies beyond the farthest of the
        nearest points so far, or beyond the bound.

        Args:
            x: The place, finite.
            bound: A square of the distance within which there are that many points.
            count: How many, no more than a leaf holds.
        """
        leaves = 2**self.levels

        def visit(state):
            node, squares, numbers = state
            far = self._square(node, x) > jnp.minimum(bound, squares[-1])
            leaf = node - leaves
            is_leaf = leaf >= 0
            at = jnp.maximum(leaf, 0)
            here = jnp.sum((self.points[at] - x) ** 2, -1)
            here = jnp.where(is_leaf & ~far, here, jnp.inf)
            squares, numbers = _best(
                jnp.concatenate([squares, here]),
                jnp.concatenate([numbers, self.numbers[at]]),
                count,
            )
            # The next node that is not below this one: up while it is a right child.
            after = node + 1
            after = after >> _trailing_zeros(after)
            return jnp.where(far | is_leaf, after, 2 * node), squares, numbers

        # After the last node comes 1 again.
        start = (
            jnp.asarray(1 if self.levels == 0 else 2, jnp.int32),
            jnp.full(count, jnp.inf, x.dtype),
            jnp.zeros(count, jnp.int32),
        )
        if self.levels == 0:
            return visit(start)[2]
        _, _, numbers = jax.lax.while_loop(lambda s: s[0] != 1, visit, start)
        return numbers

    def _square(self, node, x: Float[Array, " ndim"]) -> Float[Array, ""]:
        """Square of the distance from a place to a box."""
        box = self.boxes[node]
        way = jnp.maximum(jnp.maximum(box[0] - x, x - box[1]), 0)
        # Rounded down, so that nothing at the edge is lost.
        return (1 - 8 * jnp.finfo(x.dtype).eps) * jnp.sum(way**2)


def _best(squares: Array, numbers: Array, count: int) -> tuple[Array, Array]:
    if count == 1:
        at = jnp.argmin(squares)
        return squares[at][None], numbers[at][None]
    least, at = jax.lax.top_k(-squares, count)
    return -least, numbers[at]


def _trailing_zeros(number: Int[Array, ""]) -> Int[Array, ""]:
    return jax.lax.population_count((number & -number) - 1)


def make_kd_tree(
    points: Float[np.ndarray, "points ndim"], dtype: np.dtype, *, leaf: int = _LEAF
) -> KDTree:
    """Makes a tree by halving the points along the longer side of their box.

    Args:
        points: The points, finite.
        dtype: The precision of places.
        leaf: Least number of points in a leaf.
    """
    count, ndim = points.shape
    levels = max(0, int(np.ceil(np.log2(count / leaf))))
    leaves = 2**levels
    size = leaves * -(-count // leaves)
    size = leaves * max(leaf, size // leaves)
    places = np.full((size, ndim), np.inf)
    places[:count] = points.astype(dtype)
    order = np.arange(size)
    for level in range(levels):
        parts = places[order].reshape(2**level, -1, ndim)
        finite = np.isfinite(parts)
        low = np.min(np.where(finite, parts, np.inf), axis=1)
        high = np.max(np.where(finite, parts, -np.inf), axis=1)
        axis = np.argmax(high - low, axis=1)
        along = np.take_along_axis(parts, axis[:, None, None], 2)[..., 0]
        turn = np.argsort(along, axis=1, kind="stable")
        order = np.take_along_axis(order.reshape(2**level, -1), turn, 1).reshape(-1)
    ordered = places[order].reshape(leaves, -1, ndim)
    boxes = np.zeros((2 * leaves, 2, ndim))
    finite = np.isfinite(ordered)
    boxes[leaves:, 0] = np.min(ordered, axis=1)
    boxes[leaves:, 1] = np.max(np.where(finite, ordered, -np.inf), axis=1)
    for level in reversed(range(levels)):
        nodes = np.arange(2**level, 2 ** (level + 1))
        boxes[nodes, 0] = np.minimum(boxes[2 * nodes, 0], boxes[2 * nodes + 1, 0])
        boxes[nodes, 1] = np.maximum(boxes[2 * nodes, 1], boxes[2 * nodes + 1, 1])
    return KDTree(
        boxes=jnp.asarray(boxes, dtype),
        points=jnp.asarray(ordered, dtype),
        numbers=jnp.asarray(order.reshape(leaves, -1), jnp.int32),
        levels=levels,
    )
