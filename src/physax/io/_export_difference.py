"""How much a design changes by being written as polygons."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import ArgumentError
from ..em import AbstractShape, fill_fraction
from ..grid import Grid


class ExportDifference(eqx.Module):
    """The figures of a design and of its exported polygons.

    Attributes:
        designed: Figures of the density as designed.
        exported: Figures of the polygons, rasterised onto the same cells.
        density: The rasterised polygons: the part of each cell that they cover.
        cells_changed: How many cells are on the other side of the level.
    """

    designed: Num[Array, "*figures"]
    exported: Num[Array, "*figures"]
    density: Float[Array, "nx ny"]
    cells_changed: int

    @property
    def difference(self) -> Num[Array, "*figures"]:
        """The exported figures minus the designed ones."""
        return self.exported - self.designed


def export_difference(
    figure: Callable[[Array], ArrayLike],
    density: ArrayLike,
    spacing: float | int | Sequence[float | int],
    exported: AbstractShape,
    *,
    origin: tuple[float | int, float | int] = (0.0, 0.0),
    level: float | int = 0.5,
) -> ExportDifference:
    """Compares the figures of a design with those of what was exported.

    Args:
        figure: Takes a density, 0 to 1 in each cell, to one or more numbers, such as
            the transmission that a simulation finds.
        density: The density of the design, as `figure` took it before.
        spacing: Width of a cell in metres, one for both axes or one for each.
        exported: What was exported: the shape that `read_gds` finds in the file, or
            `contour_polygon(contours)`.
        origin: Low corner (x, y) of the design in metres.
        level: What is above it counts as solid in `cells_changed`.

    Returns:
        Both figures, the rasterised density, and how many cells changed.

    Raises:
        ArgumentError: If `density` is not flat, or the figures differ in shape.
    """
    before = jnp.asarray(density, dtype=float)
    if before.ndim != 2:
        raise ArgumentError(
            f"`density` must have two axes, but has shape {before.shape}. Extrude it "
            "inside `figure`."
        )
    grid = Grid.uniform(before.shape, spacing, origin)
    after = fill_fraction(exported, grid, (0.5, 0.5)).astype(before.dtype)
    designed, redone = jnp.asarray(figure(before)), jnp.asarray(figure(after))
    if designed.shape != redone.shape:
        raise ArgumentError(
            f"`figure` must return numbers of one shape, but returns {designed.shape} "
            f"and {redone.shape}."
        )
    changed = np.asarray(before > level) != np.asarray(after > level)
    return ExportDifference(designed, redone, after, int(np.count_nonzero(changed)))
