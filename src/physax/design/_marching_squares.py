"""Marching squares: the loops along which a density on cells crosses a level."""

import numpy as np
from jaxtyping import Bool, Float, Int


_MARGIN = 1e-3
"""How near, in parts of its edge, a crossing may come to a sample.

Loops around a sample that has the level itself stay apart, and keep an area.
"""


def level_loops(
    density: Float[np.ndarray, "nx ny"],
    edges: tuple[Float[np.ndarray, " x_edges"], Float[np.ndarray, " y_edges"]],
    level: float,
) -> list[Float[np.ndarray, "_ 2"]]:
    r"""Finds the closed loops between samples above a level and the rest.

    Samples lie at the middles of the cells and go on unchanged to the edge of the box,
    along which parts are closed. Between neighbours the density is linear. In a square
    whose diagonals differ, it is decided by the saddle of the bilinear interpolant,
    $(ac - bd) / (a + c - b - d)$, which parts are one. At the level itself solid parts
    stay apart: so corners that touch do not connect. References: Lorensen and Cline,
    *Marching cubes*, Computer Graphics 21, 163 (1987); Nielson and Hamann, *The
    asymptotic decider*, IEEE Visualization, 83 (1991).

    Args:
        density: One value per cell.
        edges: Positions of the borders of the cells, along x and along y.
        level: The level. What is above it is solid.

    Returns:
        Loops of points (x, y) with the solid on their left, the first not repeated.
        They neither cross nor touch.
    """
    # Samples on the edge of the box, and a ring of void with no width around them:
    # what is solid at the edge ends there.
    values = np.pad(np.pad(density, 1, mode="edge"), 1, constant_values=level - 1)
    x, y = map(_sample_positions, edges)
    inside = values > level

    points_x, numbers_x = _crossings(values, inside, x, y, level)
    points_y, numbers_y = _crossings(values.T, inside.T, y, x, level)
    points = np.concatenate([points_x, points_y[:, ::-1]])
    numbers_y = numbers_y.T + len(points_x)

    following = _following(values, inside, numbers_x, numbers_y, level, len(points))
    return [_without_repeats(points[chain]) for chain in _chains(following)]


def _sample_positions(edges: np.ndarray) -> np.ndarray:
    middles = (edges[:-1] + edges[1:]) / 2
    return np.concatenate([edges[[0, 0]], middles, edges[[-1, -1]]])


def _crossings(values, inside, along, across, level):
    """Crossings between neighbours along the first axis: points and their numbers."""
    changes = inside[:-1] != inside[1:]
    i, j = np.nonzero(changes)
    before, after = values[i, j], values[i + 1, j]
    part = np.clip((level - before) / (after - before), _MARGIN, 1 - _MARGIN)
    first = along[i] + part * (along[i + 1] - along[i])
    numbers = np.zeros(changes.shape, int)
    numbers[i, j] = np.arange(i.size)
    return np.stack([first, across[j]], axis=1), numbers


def _following(
    values: Float[np.ndarray, "nx ny"],
    inside: Bool[np.ndarray, "nx ny"],
    numbers_x: Int[np.ndarray, "_ ny"],
    numbers_y: Int[np.ndarray, "nx _"],
    level: float,
    count: int,
) -> Int[np.ndarray, " {count}"]:
    """For each crossing the next one on its loop."""
    corners = [slice(None, -1), slice(1, None)]
    # Corners and sides of every square, both counterclockwise from the low corner.
    around = [(0, 0), (1, 0), (1, 1), (0, 1)]
    solid = [inside[corners[i], corners[j]] for i, j in around]
    a, b, c, d = (values[corners[i], corners[j]] for i, j in around)
    sides = [numbers_x[:, :-1], numbers_y[1:], numbers_x[:, 1:], numbers_y[:-1]]

    leaves = [solid[k] & ~solid[(k + 1) % 4] for k in range(4)]
    enters = [~solid[k] & solid[(k + 1) % 4] for k in range(4)]
    only_entry = sum(
        np.where(enter, side, 0) for enter, side in zip(enters, sides, strict=True)
    )
    saddle = leaves[0] & leaves[2] | leaves[1] & leaves[3]
    bend = np.where(saddle, a + c - b - d, 1)
    joined = (a * c - b * d) / bend > level

    following = np.zeros(count, int)
    for k in range(4):
        # Around the void corner where the solid is one, else around the solid one.
        beside = np.where(joined, sides[(k + 1) % 4], sides[k - 1])
        target = np.where(saddle, beside, only_entry)
        following[sides[k][leaves[k]]] = target[leaves[k]]
    return following


def _chains(following: np.ndarray) -> list[list[int]]:
    """Follows the numbers around, loop by loop."""
    after = following.tolist()
    seen = [False] * len(after)
    chains = []
    for first in range(len(after)):
        chain, here = [], first
        while not seen[here]:
            seen[here] = True
            chain.append(here)
            here = after[here]
        if chain:
            chains.append(chain)
    return chains


def _without_repeats(loop: np.ndarray) -> np.ndarray:
    return loop[np.any(loop != np.roll(loop, 1, axis=0), axis=1)]
