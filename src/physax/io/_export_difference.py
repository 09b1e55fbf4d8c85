"""How much a design changes by being written as polygons."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import ArgumentError, check, traced
from ..em import AbstractShape, fill_fraction
from ..grid import Grid


# By how much filters and projections may round a density out of [0, 1].
_ROUNDING = 1e-4


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

    def __str__(self) -> str:
        """Lists the figures, nine at most, and counts the cells that changed."""
        if traced(self):
            return repr(self)
        columns = (self.designed, self.exported, self.difference)
        count = self.designed.size
        rows = np.unique(np.linspace(0, count - 1, min(count, 9)).round().astype(int))
        heads = ("designed", "exported", "difference")
        lines = ["figure" + "".join(f"{head:>16}" for head in heads)]
        for row in rows:
            values = (np.ravel(np.asarray(column))[row].item() for column in columns)
            lines.append(f"{row:6d}" + "".join(f"{value:16.6g}" for value in values))
        if len(rows) < count:
            lines.append(f"({len(rows)} of {count} figures)")
        lines.append(f"cells changed: {self.cells_changed} of {self.density.size}")
        return "\n".join(lines)


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
        origin: Low corner (x, y) of the design in metres, in the coordinates of
            `exported`: that given to `contours`.
        level: What is above it counts as solid in `cells_changed`.

    Returns:
        Both figures, the rasterised density, and how many cells changed.

    Raises:
        ArgumentError: If `density` is not flat or leaves [0, 1], or the figures differ
            in shape or are not finite.
    """
    before = jnp.asarray(density, dtype=float)
    if before.ndim != 2:
        raise ArgumentError(
            f"`density` must have two axes, but has shape {before.shape}. Extrude it "
            "inside `figure`."
        )
    inside = (before >= -_ROUNDING) & (before <= 1 + _ROUNDING)
    before = check(before, inside, "`density` must lie in [0, 1]")
    grid = Grid.uniform(before.shape, spacing, origin)
    after = fill_fraction(exported, grid, (0.5, 0.5)).astype(before.dtype)
    designed, redone = jnp.asarray(figure(before)), jnp.asarray(figure(after))
    if designed.shape != redone.shape:
        raise ArgumentError(
            f"`figure` must return numbers of one shape, but returns {designed.shape} "
            f"and {redone.shape}."
        )
    for figures, which in ((designed, "design"), (redone, "exported shape")):
        finite = jnp.isfinite(figures)
        check(figures, finite, f"`figure` of the {which} must be finite")
    changed = np.asarray(before > level) != np.asarray(after > level)
    return ExportDifference(designed, redone, after, int(np.count_nonzero(changed)))
