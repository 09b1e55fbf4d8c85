"""Loops with fewer points, nowhere further from the first ones than a tolerance."""

from collections.abc import Sequence

import numpy as np

from ._loops import Loop, meetings, parents, signed_area


_ROUNDING = 1e-12
"""What counts as straight, in parts of the size of a loop."""

_HALVINGS = 6


def simplified_loops(loops: Sequence[Loop], tolerance: float) -> list[Loop]:
    """Simplifies loops so that they still neither cross nor touch.

    Each loop loses the points that a straight edge passes at no more than the
    tolerance. Where loops would meet, turn inside out, or change which lies in which,
    those take a smaller tolerance. Reference: Douglas and Peucker, *Algorithms for the
    reduction of the number of points*, Cartographica 10, 112 (1973).

    Args:
        loops: Loops that do not cross, touch or repeat points.
        tolerance: Largest distance, in the unit of the points.

    Returns:
        The simplified loops, in the same order.
    """
    allowed = np.full(len(loops), float(tolerance))
    results = [_simplified(loop, tolerance) for loop in loops]
    around = parents(loops)
    disturbed = _disturbed(loops, results, around)
    for _ in range(_HALVINGS):
        for k in disturbed:
            allowed[k] /= 2
            results[k] = _simplified(loops[k], allowed[k])
        disturbed = _disturbed(loops, results, around) if disturbed else disturbed
    # What still is in the way goes back to all of its points.
    while disturbed:
        for k in disturbed:
            results[k] = loops[k]
        disturbed = _disturbed(loops, results, around) - disturbed
    return results


def _disturbed(
    loops: Sequence[Loop], results: Sequence[Loop], around: np.ndarray
) -> set[int]:
    """Indices of loops that are no longer sound among the others."""
    owner = np.repeat(np.arange(len(results)), [len(loop) for loop in results])
    found = set(owner[meetings(results)].ravel().tolist())
    for k, (before, after) in enumerate(zip(loops, results, strict=True)):
        if signed_area(before) * signed_area(after) <= 0:
            found.add(k)
    now = parents(results)
    for k in np.flatnonzero(now != around):
        found |= {int(k), int(now[k]), int(around[k])}
    return found - {-1}


def _simplified(loop: Loop, tolerance: float) -> Loop:
    """Simplifies one loop."""
    # The leftmost point and the one furthest from it are corners for certain.
    loop = np.roll(loop, -int(np.lexsort(loop.T[::-1])[0]), axis=0)
    far = int(np.argmax(np.sum((loop - loop[0]) ** 2, axis=1)))
    closed = np.concatenate([loop, loop[:1]])
    allowed = tolerance + _ROUNDING * float(np.ptp(loop, axis=0).max())
    keep = np.zeros(len(closed), bool)
    keep[[0, far]] = True
    spans = [(0, far), (far, len(loop))]
    while spans:
        first, last = spans.pop()
        if last - first < 2:
            continue
        distances = _distances(closed[first + 1 : last], closed[first], closed[last])
        worst = int(np.argmax(distances))
        if distances[worst] > allowed:
            middle = first + 1 + worst
            keep[middle] = True
            spans += [(first, middle), (middle, last)]
    if np.count_nonzero(keep[:-1]) < 3:
        # Thinner than the tolerance: a triangle is the least that has an area.
        keep[np.argmax(_distances(loop, loop[0], loop[far]))] = True
    return loop[keep[:-1]]


def _distances(points: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Distances of points from a segment."""
    along = stop - start
    length = float(along @ along)
    part = (points - start) @ along / length if length else np.zeros(len(points))
    nearest = start + np.clip(part, 0, 1)[:, None] * along
    return np.hypot(*(points - nearest).T)
