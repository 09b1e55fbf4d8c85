"""Boxes of cells: checked, compared, and as an index."""

import operator
from typing import Any

from .._checks import ArgumentError
from ..grid import Block, Box


def as_box(value: Any) -> Box:
    """Returns half-open ranges of cells as a tuple of pairs of integers."""
    try:
        box = tuple((operator.index(low), operator.index(high)) for low, high in value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            "`box` must hold a pair of integers (first cell, one past the last) for "
            f"each axis, but is {value!r}."
        ) from error
    if not box or any(not 0 <= low < high for low, high in box):
        raise ArgumentError(
            f"`box` must hold ranges of at least one cell, but is {box}."
        )
    return box


def size_of(box: Box) -> tuple[int, ...]:
    """Returns the number of cells of a box along each axis."""
    return tuple(high - low for low, high in box)


def cells_of(box: Box, within: Box | None = None) -> tuple[slice, ...]:
    """Returns the index of the cells of a box in the grid, or within another box."""
    starts = [0] * len(box) if within is None else [low for low, _ in within]
    return tuple(
        slice(low - start, high - start)
        for (low, high), start in zip(box, starts, strict=True)
    )


def common(one: Box, other: Box) -> Box:
    """Returns the cells that two boxes have in common; along some axis it may be 0."""
    ends = ((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(one, other, strict=True))
    return tuple((low, max(low, high)) for low, high in ends)


def of_cells(box: Box, shape: tuple[int, ...]) -> Box:
    """Returns a box with the last cells for the points behind them."""
    return tuple(
        (min(low, n - 1), min(high, n))
        for (low, high), n in zip(box, shape, strict=True)
    )


def meet(one: Box, other: Box) -> bool:
    """Whether two boxes have cells in common."""
    return all(low < high for low, high in common(one, other))


def check_inside(box: Box, shape: tuple[int, ...], what: str) -> None:
    """Refuses a box that does not lie in a grid.

    Args:
        box: The box.
        shape: Cells of the grid.
        what: The thing that has the box, for the message.

    Raises:
        ArgumentError: If it reaches out of the grid or has another number of axes.
    """
    fits = len(box) == len(shape)
    fits &= all(high <= cells for (_, high), cells in zip(box, shape, strict=False))
    if not fits:
        raise ArgumentError(
            f"`box` of {what} must lie in the grid of {shape} cells, but is {box}."
        )


def to_wall(
    box: Box, grid: tuple[int, ...], stored: tuple[int, ...]
) -> tuple[Box, list[tuple[int, int]]]:
    """Extends a box that ends at a magnetic wall over the node on the wall.

    Args:
        box: The box.
        grid: Cells of the grid.
        stored: The same with the nodes on magnetic walls.

    Returns:
        The box, and by how much values in it are to be padded.
    """
    more = [
        (0, all_ - cells if high == cells else 0)
        for (_, high), cells, all_ in zip(box, grid, stored, strict=True)
    ]
    pairs = zip(box, more, strict=True)
    return tuple((low, high + extra) for (low, high), (_, extra) in pairs), more


def in_block(box: Box, block: Block) -> Box:
    """Returns a box in cells of a block; it has all of them along axes that are cut."""
    return tuple(
        span if parts == 1 else (0, cells)
        for span, cells, parts in zip(box, block.shape, block.parts, strict=True)
    )


def over_cuts(box: Box, block: Block) -> tuple[Box, list[tuple[int, int]]]:
    """Extends a box over all cells along the axes that devices cut.

    Args:
        box: The box.
        block: How devices cut the grid.

    Returns:
        The box, and by how much values in it are to be padded.
    """
    out, more = [], []
    for (low, high), here, parts in zip(box, block.shape, block.parts, strict=True):
        whole = here * parts
        out.append((low, high) if parts == 1 else (0, whole))
        more.append((0, 0) if parts == 1 else (low, whole - high))
    return tuple(out), more
