"""What part of each cell is covered, from intervals, balls and stacks of sections."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._overlap import Intervals, ball_fraction, ends_inside, interval_fraction


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
    squared, axes, middle = radius**2, [], []
    for axis, position in zip(cells, centre, strict=True):
        if isinstance(axis, Intervals):
            axes.append(axis)
            middle.append(position)
        else:
            squared = squared - (position - place_of_cut(axis)) ** 2
    if len(axes) < 3:
        return ball_fraction(axes, middle, squared)

    # The area of a disc is quadratic in its height: the volume is exact in total.
    def disc(height):
        squared = (radius - height) * (radius + height)
        return ball_fraction(axes[:2], middle[:2], squared)

    axes[2] = Intervals(axes[2].position - middle[2], axes[2].below, axes[2].above)
    return stacked(axes, 2, -radius, radius, disc)


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
    start, stop = ends_inside(axis, low, high)
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
