"""Grids whose cells follow the materials: fine where the wavelength is short."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import ArrayLike, Float

from .._checks import ArgumentError, traced, whole
from ..grid import AXES, Grid
from ._boundaries import PEC
from ._extent import check_scale
from ._frame import check_point
from ._materials import Material
from ._scene import check_size, largest_index, places
from ._shapes import Structure, painted


# Borders nearer to each other than this part of the finest cell are one.
_SAME = 0.01
# Rounds of making cells finer beside finer ones.
_ROUNDS = 200
_SAMPLES = 400


def graded_grid(
    structures: Iterable[Structure],
    size: Sequence[float],
    wavelengths: Float[ArrayLike, "..."] | Sequence[float],
    *,
    centre: Sequence[float] | None = None,
    background: Material | PEC | None = None,
    cells: float | int = 20,
    ratio: float | int = 1.3,
    lines: Sequence[Sequence[float]] | None = None,
    layer: int | Sequence[int] = 0,
) -> Grid:
    """Makes a grid that is finer where the wavelength is shorter.

    Along each axis the edges of the boxes around the structures are lines of the grid.
    Between two lines no cell is wider than the shortest wavelength in the densest
    material there, divided by `cells`; a cell and its neighbour differ by at most
    `ratio`. Widths are known on the host: what makes them is not differentiated.

    Args:
        structures: Shapes with materials.
        size: Lengths of the grid in metres, without the layers; its length is the
            dimension.
        wavelengths: In vacuum, in metres: all that matter.
        centre: Middle of the grid in metres; the origin by default.
        background: What lies between the structures; vacuum by default.
        cells: Cells per wavelength, at least 2.
        ratio: Largest ratio of the widths of neighbours, in [1.05, 2].
        lines: For each axis, positions in metres that are to be lines, too: of sources
            and monitors, or around features inside a box.
        layer: How many equal cells to add at each end for absorbing layers, one number
            or one for each axis: 0 along a periodic one.

    Returns:
        The grid.

    Raises:
        ArgumentError: If a number is out of its range, a shape or a material is traced,
            or a line is outside of the grid.
    """
    size, waves = check_size(size, wavelengths)
    check_scale(size, waves)
    _check_numbers(cells, ratio)
    middle = check_point(
        (0.0,) * len(size) if centre is None else tuple(centre),
        len(size),
        "centre",
        "the grid",
    )
    if lines is not None and len(lines) != len(size):
        raise ArgumentError(
            f"`lines` must have one entry per axis ({len(size)}), but has {len(lines)}."
        )
    given = layer if isinstance(layer, Sequence) else [layer] * len(size)
    layers = [whole(one, "layer", 0) for one in given]
    if len(layers) != len(size):
        raise ArgumentError(
            f"`layer` must be one number or one per axis ({len(size)}), but has "
            f"{len(layers)} entries."
        )
    structures, ground = painted(structures, background)
    bounds = [_bounds(one) for one in structures]
    remedy = "Widths of cells depend on its index. Make the grid outside."
    widest, *limits = (
        float(waves.min()) / largest_index(waves, material, what, remedy) / cells
        for material, what in zip(
            [ground, *(one.material for one in structures)],
            places(structures),
            strict=True,
        )
    )
    edges = []
    for axis, (length, x) in enumerate(zip(size, middle, strict=True)):
        ends = (x - length / 2, x + length / 2)
        here = [
            (low[axis], high[axis], min(width, widest))
            for (low, high), width in zip(bounds, limits, strict=True)
            if reaches(low, high, size, middle)
        ]
        extra = [] if lines is None else [float(at) for at in lines[axis]]
        outside = [at for at in extra if not ends[0] <= at <= ends[1]]
        if outside:
            raise ArgumentError(
                f"`lines` along {AXES[axis]} must lie in the grid, {ends[0]:g} to "
                f"{ends[1]:g} m, but one is at {outside[0]:g} m."
            )
        borders, widths = _intervals(ends, here, extra, widest)
        nodes = _nodes(borders, widths, ratio)
        first, last = nodes[1] - nodes[0], nodes[-1] - nodes[-2]
        steps = np.arange(1, layers[axis] + 1)
        edges.append(
            np.concatenate(
                [nodes[0] - steps[::-1] * first, nodes, nodes[-1] + steps * last]
            )
        )
    return Grid.graded(edges)


def _check_numbers(cells: float | int, ratio: float | int):
    if not (cells >= 2 and math.isfinite(cells)):
        raise ArgumentError(f"`cells` must be at least 2 and finite, but is {cells:g}.")
    if not 1.05 <= ratio <= 2:
        raise ArgumentError(f"`ratio` must lie in [1.05, 2], but is {ratio:g}.")


def _bounds(structure: Structure) -> tuple[np.ndarray, np.ndarray]:
    low, high = structure.shape.bounds()
    if traced((low, high)):
        raise ArgumentError(
            "The shapes of `structures` must be known when the grid is made, but one "
            "is traced. Make the grid outside of `jit` and `grad`."
        )
    return np.asarray(low, float), np.asarray(high, float)


def reaches(
    low: np.ndarray, high: np.ndarray, size: Sequence[float], middle: Sequence[float]
) -> bool:
    """Whether a box meets a scene, which lies at 0 of the axes that it lacks."""
    ends = [
        (x - length / 2, x + length / 2) for length, x in zip(size, middle, strict=True)
    ]
    ends += [(0.0, 0.0)] * (3 - len(ends))
    return all(
        low[k] < b and high[k] > a if a < b else low[k] <= a <= high[k]
        for k, (a, b) in enumerate(ends)
    )


def _intervals(
    ends: tuple[float, float],
    boxes: list[tuple[float, float, float]],
    extra: list[float],
    widest: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the lines along an axis and the widest cell between each two."""
    same = _SAME * min([widest, *(width for *_, width in boxes)])
    inside = [x for low, high, _ in boxes for x in (low, high)] + extra
    borders = [ends[0]]
    for x in sorted(x for x in inside if ends[0] < x < ends[1]):
        if x - borders[-1] > same and ends[1] - x > same:
            borders.append(x)
    borders = np.array([*borders, ends[1]])
    middles = (borders[1:] + borders[:-1]) / 2
    widths = np.full(middles.size, widest)
    for low, high, width in boxes:
        # A box that is thinner than the difference of two lines has none between them.
        within = (middles > low) & (middles < high)
        widths[within] = np.minimum(widths[within], width)
    return borders, widths


def _nodes(borders: np.ndarray, widths: np.ndarray, ratio: float | int) -> np.ndarray:
    """Returns edges of cells on all borders, as wide as is allowed.

    The widest cell at a place is the least over all intervals of the interval's own
    plus a slope times the distance to it, so that widths grow by a factor per cell. An
    interval takes a whole number of cells, which makes them narrower; neighbours of
    narrower ones are then made again.
    """
    rate = 0.8 * math.log(ratio)
    caps = np.full(borders.size, np.inf)
    for _ in range(_ROUNDS):
        pieces = [_filled(borders, widths, caps, k, rate) for k in range(widths.size)]
        good = True
        for k in range(1, widths.size):
            left, right = np.diff(pieces[k - 1])[-1], np.diff(pieces[k])[0]
            if max(left, right) > ratio * min(left, right) * (1 - 1e-9):
                caps[k], good = min(left, right), False
        if good:
            return np.concatenate([*(piece[:-1] for piece in pieces), borders[-1:]])
    raise ArgumentError(
        f"`ratio` ({ratio:g}) cannot be kept between the {borders.size} lines of the "
        "grid. Allow a larger one, or remove lines."
    )


def _filled(borders, widths, caps, k: int, rate: float) -> np.ndarray:
    """Returns the edges of the cells of one interval."""
    start, stop = borders[k], borders[k + 1]
    # Denser near the ends, where narrow cells begin.
    x = start + (stop - start) * (1 - np.cos(np.linspace(0, np.pi, _SAMPLES))) / 2
    away = np.maximum(borders[:-1] - x[:, None], 0) + np.maximum(
        x[:, None] - borders[1:], 0
    )
    widest = np.min(widths + rate * away, axis=1)
    near = np.min(caps + rate * np.abs(x[:, None] - borders), axis=1)
    density = 1 / np.minimum(widest, near)
    if np.all(density == density[0]):
        # Equal to rounding, so that the axis may be uniform.
        cells = max(1, math.ceil((stop - start) * density[0] * (1 - 1e-6)))
        return np.linspace(start, stop, cells + 1)
    count = np.concatenate(
        [[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(x))]
    )
    # Whole numbers of cells should not become one more by rounding.
    cells = max(1, math.ceil(count[-1] * (1 - 1e-6)))
    edges = np.interp(np.linspace(0, count[-1], cells + 1), count, x)
    edges[0], edges[-1] = start, stop
    return edges
