"""Outlines of polygons: which are sound, and how much of any cell they cover."""

import math
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError
from ..grid import AXES
from ._overlap import Intervals, clipped, limited, on_border, polygon_fraction
from ._sections import Cells, Cut, is_line


# Edges that cross by less than this part of the outline's extent only touch: corners
# on the raster of a layout do.
_TOUCH = 1e-5
# Pairs of edges that are compared at once.
_PAIRS = 1_000_000


def following(counts: Sequence[int]) -> np.ndarray:
    """Returns for each vertex the index of the next one of its outline."""
    index = np.arange(sum(counts)) + 1
    ends = np.cumsum(counts)
    index[ends - 1] = ends - np.asarray(counts)
    return index


def check_outlines(
    vertices: np.ndarray,
    counts: Sequence[int],
    name: str,
    remedy: str = "Order the vertices along the outline.",
):
    """Refuses outlines that enclose nothing definite.

    Args:
        vertices: The corners of all outlines, of shape (n, 2).
        counts: How many belong to each.
        name: What to call them.
        remedy: What to do about edges that cross.

    Raises:
        ArgumentError: If a vertex equals the next one, an outline has no area, or two
            edges cross; the message names the vertices.
    """
    points = np.asarray(vertices, float)
    following_one = following(counts)
    steps = points[following_one] - points
    extent = float(np.max(np.ptp(points, axis=0)))
    same = np.flatnonzero(np.all(steps == 0, axis=1))
    if same.size:
        one = int(same[0])
        raise ArgumentError(
            f"Each of `{name}` must differ from the next, but numbers {one} and "
            f"{following_one[one]} are both ({points[one, 0]:g}, {points[one, 1]:g}) "
            "m. Leave one out."
        )
    rounding = float(np.finfo(vertices.dtype).eps * np.max(np.abs(points)))
    ends = np.cumsum(counts)
    for start, stop in zip(ends - np.asarray(counts), ends, strict=True):
        own = points[start:stop] - points[start]
        least = 4 * rounding * math.sqrt(len(own))
        if np.linalg.svd(own, compute_uv=False)[1] <= least:
            raise ArgumentError(
                f"`{name}` must enclose an area, but numbers {start} to {stop - 1} lie "
                "on one line."
            )
    for one, other in _crossings(points, steps, _TOUCH * extent):
        raise ArgumentError(
            f"The outline of `{name}` must not cross itself, but its edges from "
            f"numbers {one} and {other} cross, near ({points[one, 0]:g}, "
            f"{points[one, 1]:g}) m. {remedy}"
        )


def _crossings(
    start: np.ndarray, step: np.ndarray, touch: float
) -> Iterator[tuple[int, int]]:
    """Yields pairs of edges that cross by more than a length."""
    stop = start + step
    low, high = np.minimum(start, stop), np.maximum(start, stop)
    order = np.argsort(low[:, 0])
    # Only an edge that begins, along x, before this one ends can cross it.
    last = np.searchsorted(low[order, 0], high[order, 0])
    pairs = np.maximum(last - np.arange(len(order)) - 1, 0)
    begin = 0
    while begin < len(order):
        total = np.cumsum(pairs[begin:])
        end = begin + max(1, int(np.searchsorted(total, _PAIRS)))
        count = pairs[begin:end]
        rank = np.repeat(np.arange(begin, begin + len(count)), count)
        offset = np.arange(len(rank)) - np.repeat(np.cumsum(count) - count, count)
        one, other = order[rank], order[rank + 1 + offset]
        meet = (low[one, 1] < high[other, 1]) & (low[other, 1] < high[one, 1])
        one, other = one[meet], other[meet]
        apart = [
            _sides(start[a], step[a], start[b], stop[b], touch)
            for a, b in ((one, other), (other, one))
        ]
        for k in np.flatnonzero(apart[0] & apart[1]):
            yield min(int(one[k]), int(other[k])), max(int(one[k]), int(other[k]))
        begin = end


def _sides(start, step, first, second, touch):
    """Whether two points lie on both sides of each line, farther than a length."""
    length = np.hypot(*step.T)

    def distance(point):
        (dx, dy), (px, py) = step.T, (point - start).T
        return (dx * py - dy * px) / length

    one, other = distance(first), distance(second)
    return (one * other < 0) & (np.minimum(np.abs(one), np.abs(other)) > touch)


def in_outlines(
    cells: Sequence[Cells], along: int, edges: Float[Array, "edges 4 ..."]
) -> Float[Array, "..."]:
    """Fraction of each cell, across an axis, inside closed outlines.

    Args:
        cells: The cells along x, y and z.
        along: The axis across which the outlines lie.
        edges: Start and end of each edge, on the axes across in their order, each a
            number or an array that broadcasts against those of the cells.

    Returns:
        An array that broadcasts against those of the cells.

    Raises:
        ArgumentError: If the grid lacks an axis across.
    """
    across = across_of(along)
    first, second = (cells[k] for k in across)
    if isinstance(first, Cut) and second is not None:
        return line_fraction(first, second, edges)
    if isinstance(second, Cut) and first is not None:
        return line_fraction(second, first, edges[:, jnp.array([1, 0, 3, 2])])
    if not (isinstance(first, Intervals) and isinstance(second, Intervals)):
        raise ArgumentError(
            f"A polygon along {AXES[along]} needs a grid with the axes "
            f"{AXES[across[0]]} and {AXES[across[1]]}, but the grid lacks one. "
            "Use a `Box`."
        )
    in_rows = is_line(first, across[0]) and is_line(second, across[1])
    if edges.ndim > 2 or not in_rows:
        return polygon_fraction_at(first, second, edges)
    part = polygon_fraction(first, second, edges)
    shape = [1] * first.position.ndim
    shape[across[0]], shape[across[1]] = part.shape
    return part.reshape(shape)


def across_of(along: int) -> tuple[int, int]:
    """Returns the two other axes, in their order."""
    first, second = (k for k in range(3) if k != along)
    return first, second


def line_fraction(
    x: Cut, y: Intervals | Cut, edges: Float[Array, "edges 4 ..."]
) -> Float[Array, "..."]:
    """Fraction of each piece of a line inside closed outlines, exactly.

    Args:
        x: Where the lines cut the first axis.
        y: The pieces along the second axis, or points.
        edges: As for `polygon_fraction_at`.

    Returns:
        The fractions.
    """
    at, shape = x.position, jnp.broadcast_shapes(x.position.shape, y.position.shape)
    shape = jnp.broadcast_shapes(shape, edges.shape[2:])

    @jax.checkpoint
    def below(edge):
        before, after = edge[0] <= at, edge[2] <= at
        run = jnp.where(before == after, 1, edge[2] - edge[0])
        height = edge[1] + (at - edge[0]) / run * (edge[3] - edge[1])
        if isinstance(y, Cut):
            part = jnp.where(height > y.position, 1.0, 0.0)
        else:
            part = (height - y.position + y.below) / (y.below + y.above)
            part = clipped(part, 0.0, 1.0, jnp.finfo(part.dtype).eps ** 0.5)
        return jnp.where(before == after, 0, jnp.where(before, part, -part))

    def add(total, edge):
        return total + below(edge), None

    total, _ = jax.lax.scan(add, jnp.zeros(shape, edges.dtype), edges)
    twice_area = jnp.sum((edges[:, 2] - edges[:, 0]) * (edges[:, 3] + edges[:, 1]), 0)
    return limited(total * jnp.sign(twice_area))


def polygon_fraction_at(
    x: Intervals, y: Intervals, edges: Float[Array, "edges 4 ..."]
) -> Float[Array, "..."]:
    """Fraction of each cell inside closed outlines, exactly, for any cells.

    Other than `polygon_fraction` it takes cells that neither touch nor stand in rows
    and columns, and outlines that differ from cell to cell. The work grows as edges x
    cells.

    Args:
        x: The cells along the first axis.
        y: The cells along the second axis.
        edges: Start (x, y) and end (x, y) of each edge of the outlines, each a number
            or an array that broadcasts against those of the cells.

    Returns:
        The fractions.
    """
    width, height = x.below + x.above, y.below + y.above
    origin_x, origin_y = x.position - x.below, y.position - y.below
    shape = jnp.broadcast_shapes(origin_x.shape, origin_y.shape, edges.shape[2:])

    def coordinate(place, origin, size):
        far = 1 + jnp.max(jnp.abs(origin) / size)
        return on_border((place - origin) / size, 8 * jnp.finfo(far.dtype).eps * far)

    # In units of the cell, so that no square of a length leaves float32's range.
    @jax.checkpoint
    def below(edge):
        """Area of a cell below an edge, positive towards +x."""
        ax, bx = (coordinate(edge[k], origin_x, width) for k in (0, 2))
        ay, by = (coordinate(edge[k], origin_y, height) for k in (1, 3))
        left, right = jnp.clip(ax, 0, 1), jnp.clip(bx, 0, 1)
        upright = ax == bx
        run = jnp.where(upright, 1, bx - ax)
        # An upright edge has no area below it, but gets one where a corner moves.
        start = jnp.where(upright, 0, (left - ax) / run)
        stop = jnp.where(upright, 1, (right - ax) / run)
        low, high = ay + start * (by - ay), ay + stop * (by - ay)
        return (right - left) * _mean_of_clipped(low, high)

    def add(total, edge):
        return total + below(edge), None

    total, _ = jax.lax.scan(add, jnp.zeros(shape, edges.dtype), edges)
    twice_area = jnp.sum((edges[:, 2] - edges[:, 0]) * (edges[:, 3] + edges[:, 1]), 0)
    return limited(total * jnp.sign(twice_area))


def _mean_of_clipped(low, high):
    """Mean of clip(t, 0, 1) over t from `low` to `high`."""
    rise = high - low
    flat = jnp.abs(rise) < jnp.finfo(rise.dtype).eps ** 0.5
    start, stop = jnp.clip(low, 0, 1), jnp.clip(high, 0, 1)
    above = jnp.maximum(high, 1) - jnp.maximum(low, 1)
    area = (stop - start) * (start + stop) / 2 + above
    middle = jnp.clip((low + high) / 2, 0, 1)
    return jnp.where(flat, middle, area / jnp.where(flat, 1, rise))
