"""Polygons cut into trapezoids by level lines through their corners."""

from itertools import pairwise

import numpy as np
from jaxtyping import Float

from .._checks import ArgumentError


def trapezoids(
    corners: Float[np.ndarray, "..."],
) -> tuple[
    Float[np.ndarray, " pieces"],
    Float[np.ndarray, " pieces"],
    Float[np.ndarray, "pieces 2"],
    Float[np.ndarray, "pieces 2"],
]:
    """Cuts the inside of a polygon into trapezoids with two level sides.

    Args:
        corners: The corners in either sense, in float64.

    Returns:
        The levels of the lower and the upper side of each piece, and the ends of its
        lower and of its upper side.

    Raises:
        ArgumentError: If there are fewer than three corners, one is not finite, sides
            cross, or the area is 0.
    """
    if corners.ndim != 2 or corners.shape[0] < 3 or corners.shape[1] != 2:
        raise ArgumentError(
            "`vertices` must be at least 3 corners with 2 coordinates each, but have "
            f"shape {corners.shape}."
        )
    bad = np.flatnonzero(~np.isfinite(corners).all(1))
    if bad.size:
        raise ArgumentError(
            f"`vertices` must be finite, but corner {bad[0]} is at "
            f"{corners[bad[0]].tolist()}."
        )
    ends = np.roll(corners, -1, 0)
    flat = corners[:, 1] == ends[:, 1]
    rising = (corners[:, 1] < ends[:, 1])[:, None, None]
    sides = np.stack([corners, ends], 1)
    sides = np.where(rising, sides, sides[:, ::-1])[~flat]
    levels = np.unique(corners[:, 1])
    pieces = [_pieces_between(sides, low, high) for low, high in pairwise(levels)]
    if pieces:
        low, high, bottom, top = map(np.concatenate, zip(*pieces, strict=True))
        if np.any(np.diff(bottom) + np.diff(top) > 0):
            return low, high, bottom, top
    raise ArgumentError(
        "The area of `vertices` must be positive, but is 0: the corners lie on a line, "
        "or the outline goes back on itself."
    )


def _pieces_between(sides: np.ndarray, low: float, high: float):
    """Returns the pieces between neighbouring levels of corners."""
    start, stop = sides[:, 0], sides[:, 1]
    across = (start[:, 1] <= low) & (stop[:, 1] >= high)
    start, stop = start[across], stop[across]
    slope = (stop[:, 0] - start[:, 0]) / (stop[:, 1] - start[:, 1])
    # From the nearer end: at a corner both sides then meet exactly.
    bottom = start[:, 0] + slope * (low - start[:, 1])
    top = stop[:, 0] + slope * (high - stop[:, 1])
    order = np.argsort(bottom + top, kind="stable")
    bottom, top = bottom[order], top[order]
    slack = 1e-12 * np.max(np.abs(sides))
    crossing = (np.diff(bottom) < -slack) | (np.diff(top) < -slack)
    if crossing.any():
        at = int(np.argmax(crossing))
        raise ArgumentError(
            "The sides of `vertices` must not cross, but two do near "
            f"({(bottom[at] + top[at]) / 2:g}, {(low + high) / 2:g}). Seed the parts "
            "one by one."
        )
    pieces = bottom.size // 2
    return (
        np.full(pieces, low),
        np.full(pieces, high),
        np.maximum.accumulate(bottom).reshape(pieces, 2),
        np.maximum.accumulate(top).reshape(pieces, 2),
    )
