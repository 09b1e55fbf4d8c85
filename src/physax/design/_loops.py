"""Closed loops of points: their areas, which lies in which, where their edges meet."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int


Loop = Float[np.ndarray, "_ 2"]

_PAIRS_AT_ONCE = 1_000_000


def signed_area(loop: Loop) -> float:
    """Returns the area inside a loop, positive if it runs counterclockwise."""
    # From its first point on: far from the origin, products of coordinates lose digits.
    x, y = (loop - loop[0]).T
    return float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y) / 2)


def parents(loops: Sequence[Loop]) -> Int[np.ndarray, " _"]:
    """Finds for each loop the smallest one around it.

    Args:
        loops: Loops that do not cross.

    Returns:
        For each loop the index of that one, or -1 if none is around it.
    """
    found = np.full(len(loops), -1)
    if not loops:
        return found
    areas = np.abs([signed_area(loop) for loop in loops])
    low = np.array([loop.min(axis=0) for loop in loops])
    high = np.array([loop.max(axis=0) for loop in loops])
    for k, loop in enumerate(loops):
        point = loop[0]
        within = np.all((low <= point) & (point <= high), axis=1)
        candidates = np.flatnonzero(within & (areas > areas[k]))
        for other in candidates[np.argsort(areas[candidates], kind="stable")]:
            if _contains(loops[other], point):
                found[k] = other
                break
    return found


def _contains(loop: Loop, point: np.ndarray) -> bool:
    """Whether a ray from the point crosses the loop an odd number of times."""
    start, stop = loop - point, np.roll(loop, -1, axis=0) - point
    crosses = (start[:, 1] > 0) != (stop[:, 1] > 0)
    turn = start[:, 0] * stop[:, 1] - start[:, 1] * stop[:, 0]
    upward = stop[:, 1] > start[:, 1]
    return bool(np.count_nonzero(crosses & ((turn > 0) == upward)) % 2)


def meetings(loops: Sequence[Loop]) -> Int[np.ndarray, "pairs 2"]:
    """Finds edges that cross or touch others than their neighbours.

    Two neighbours count as well where the second runs back along the first.

    Args:
        loops: The loops.

    Returns:
        Pairs of edges; edge k starts at point k of all loops one after another.
    """
    if not loops:
        return np.zeros((0, 2), int)
    start = np.concatenate(loops)
    stop = np.concatenate([np.roll(loop, -1, axis=0) for loop in loops])
    sizes = np.array([len(loop) for loop in loops])
    ends = np.cumsum(sizes)
    following = np.arange(len(start)) + 1
    following[ends - 1] = ends - sizes

    found = [_folds(start, stop, following)]
    for i, j in _near_pairs(np.minimum(start, stop), np.maximum(start, stop)):
        apart = (following[i] != j) & (following[j] != i)
        i, j = i[apart], j[apart]
        meet = _meet(start[i], stop[i], start[j], stop[j])
        found.append(np.stack([i[meet], j[meet]], axis=1))
    return np.concatenate(found)


def _near_pairs(
    low: Float[np.ndarray, "edges 2"], high: Float[np.ndarray, "edges 2"]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields pairs whose bounding boxes meet, by a sweep along x."""
    order = np.argsort(low[:, 0], kind="stable")
    left, right = low[order, 0], high[order, 0]
    counts = np.searchsorted(left, right, side="right") - np.arange(1, len(order) + 1)
    ends = np.cumsum(counts)
    for block in range(0, int(ends[-1]), _PAIRS_AT_ONCE):
        pair = np.arange(block, min(block + _PAIRS_AT_ONCE, int(ends[-1])))
        first = np.searchsorted(ends, pair, side="right")
        second = first + 1 + pair - (ends - counts)[first]
        i, j = order[first], order[second]
        near = (low[i, 1] <= high[j, 1]) & (low[j, 1] <= high[i, 1])
        yield i[near], j[near]


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Which side of the line from a to b the point c is on: 1 left, -1 right."""
    u, v = b - a, c - a
    return np.sign(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])


def _meet(a, b, c, d) -> np.ndarray:
    """Whether segments ab and cd, whose bounding boxes meet, share a point."""
    return (_turn(a, b, c) * _turn(a, b, d) <= 0) & (
        _turn(c, d, a) * _turn(c, d, b) <= 0
    )


def _folds(start, stop, following) -> np.ndarray:
    """Edges and the next one, where that runs straight back."""
    back = _turn(start, stop, stop[following]) == 0
    ahead = np.sum((stop - start) * (stop[following] - stop), axis=1)
    edge = np.flatnonzero(back & (ahead <= 0))
    return np.stack([edge, following[edge]], axis=1)
