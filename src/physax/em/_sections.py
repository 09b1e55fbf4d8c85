"""What part of each cell is covered, from intervals, balls and stacks of sections."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._overlap import Intervals, ball_fraction, interval_fraction


class Cut(eqx.Module):
    """Where a grid cuts through a shape along an axis that it lacks.

    Attributes:
        position: Coordinate of the cut, in metres.
    """

    position: Float[Array, "..."]


Cells = Intervals | Cut | None
"""Cells along one axis. None is a cut at 0."""


def place_of_cut(cells: Cut | None) -> Float[Array, "..."] | float:
    """Returns the coordinate at which a grid cuts an axis that it lacks."""
    return 0.0 if cells is None else cells.position


def shape_of(cells: Sequence[Cells]) -> tuple[int, ...]:
    """Returns the shape of the array of all cells."""
    return jnp.broadcast_shapes(
        *(axis.position.shape for axis in cells if axis is not None)
    )


def is_line(cells: Cells, axis: int) -> bool:
    """Whether the cells along an axis are the same for all cells across it."""
    if not isinstance(cells, Intervals):
        return False
    shape = cells.position.shape
    return all(length == 1 for k, length in enumerate(shape) if k != axis)


def between(
    cells: Cells, low: Float[Array, ""], high: Float[Array, ""]
) -> Float[Array, "..."]:
    """Fraction between two bounds; without an axis, whether the cut is between them."""
    if isinstance(cells, Intervals):
        return interval_fraction(cells, low, high)
    at = place_of_cut(cells)
    return jnp.where((low <= at) & (high >= at), 1.0, 0.0).astype(low.dtype)


def in_ball(
    cells: Sequence[Cells],
    centre: Sequence[Float[Array, ""]],
    radius: Float[Array, "..."],
) -> Float[Array, "..."]:
    """Fraction inside a ball, cut along the axes that are no cells."""
    squared = radius**2
    present = []
    for axis, position in zip(cells, centre, strict=True):
        if isinstance(axis, Intervals):
            present.append((axis, position))
        else:
            squared = squared - (position - place_of_cut(axis)) ** 2
    return ball_fraction(
        [axis for axis, _ in present], [position for _, position in present], squared
    )


def stacked(
    cells: Sequence[Cells],
    along: int,
    low: Float[Array, ""],
    high: Float[Array, ""],
    section: Callable[[Float[Array, "..."]], Float[Array, "..."]],
) -> Float[Array, "..."]:
    """Fraction of each cell inside a solid that is known by its sections.

    The sections at the eight Gauss points of the part of each cell between the ends are
    averaged, which is exact where their area in a cell is a polynomial of the height.

    Args:
        cells: The cells along x, y and z.
        along: The axis of the solid.
        low: Its lower end along the axis, in metres.
        high: Its upper end.
        section: Gives for heights, in arrays like those of the cells along the axis,
            the fraction of each cell across the axis that the solid covers there.

    Returns:
        The fractions.
    """
    axis, reached = cells[along], between(cells[along], low, high)
    if not isinstance(axis, Intervals):
        return reached * section(jnp.asarray(place_of_cut(axis), low.dtype))
    start = jnp.clip(low - axis.position, -axis.below, axis.above)
    stop = jnp.clip(high - axis.position, -axis.below, axis.above)
    middle = axis.position + (start + stop) / 2
    nodes = jnp.asarray(np.polynomial.legendre.leggauss(8), middle.dtype).T

    @jax.checkpoint
    def part(node, weight):
        return weight / 2 * section(middle + node * (stop - start) / 2)

    total, _ = jax.lax.scan(
        lambda total, gauss: (total + part(*gauss), None),
        jnp.zeros(shape_of(cells), middle.dtype),
        nodes,
    )
    return total * reached
