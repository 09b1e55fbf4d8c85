"""Pictures of fitted parameters: their table and their correlations."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import ArrayLike, Num
from matplotlib.axes import Axes

from .._checks import ArgumentError
from ._canvas import add_colour_bar, new_axes


_MOST_NUMBERS = 12
# The labels of a square picture need room beside it.
_SQUARE = 0.82


def correlation_matrix(
    matrix: Num[ArrayLike, "..."],
    names: Sequence[str],
    *,
    axes: Axes | None = None,
) -> Axes:
    """Draws the correlations of parameters, with their numbers where there is room.

    Args:
        matrix: Correlations, from -1 to 1.
        names: Of the parameters.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If the matrix has another shape, or values beyond 1: those of a
            covariance, perhaps.
    """
    values = np.asarray(matrix, float)
    if values.shape != (len(names), len(names)):
        raise ArgumentError(
            f"`matrix` must have a row for each of {len(names)} names, but has shape "
            f"{values.shape}."
        )
    if np.any(np.abs(values) > 1 + 1e-5):
        raise ArgumentError(
            "`matrix` must hold correlations from -1 to 1, but has "
            f"{values.flat[np.nanargmax(np.abs(values))]:g}. Divide a covariance by "
            "the standard deviations."
        )
    axes = new_axes(axes, aspect=_SQUARE)
    image = axes.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1)
    add_colour_bar(axes, image, "correlation")
    at = range(len(names))
    axes.set_xticks(at, names, rotation=45, ha="right", fontsize="small")
    axes.set_yticks(at, names, fontsize="small")
    if len(names) <= _MOST_NUMBERS:
        for i in at:
            for j in at:
                colour = "white" if abs(values[i, j]) > 0.6 else "black"
                axes.text(
                    j,
                    i,
                    f"{values[i, j]:.2f}",
                    ha="center",
                    va="center",
                    fontsize="x-small",
                    color=colour,
                )
    return axes


def parameter_table(
    names: Sequence[str],
    values: Num[ArrayLike, "..."] | Sequence[float | int],
    errors: Num[ArrayLike, "..."] | Sequence[float | int],
    *,
    units: Sequence[str] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draws a table of parameters, rounded to two digits of their errors.

    Args:
        names: Of the parameters.
        values: Of the parameters.
        errors: Their standard errors; infinite or NaN where a parameter is not
            determined.
        units: Of the parameters.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If the lists differ in length.
    """
    columns = {"values": values, "errors": errors, "units": units or names}
    for name, column in columns.items():
        if len(np.shape(column)) != 1 or len(column) != len(names):  # pyright: ignore
            raise ArgumentError(
                f"`{name}` must have one entry for each of {len(names)} names, but has "
                f"shape {np.shape(column)}."
            )
    axes = new_axes(axes, aspect=0.1 * (len(names) + 1))
    axes.set_axis_off()
    cells = []
    for k, name in enumerate(names):
        value, error = rounded(float(values[k]), float(errors[k]))  # pyright: ignore
        cells.append([name, value, error, units[k] if units else ""])
    header = ["parameter", "value", "standard error", "unit"]
    width = 4 if units else 3
    table = axes.table(
        [row[:width] for row in cells],
        colLabels=header[:width],
        loc="center",
        cellLoc="right",
    )
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    table.scale(1.0, 1.3)
    return axes


def rounded(value: float, error: float) -> tuple[str, str]:
    """Writes a value and its error with two digits of the error.

    Args:
        value: The value.
        error: Its standard error.

    Returns:
        Both as texts.
    """
    if not np.isfinite(error):
        return f"{value:.6g}", "not determined"
    if not np.isfinite(value) or error <= 0:
        return f"{value:.6g}", f"{error:.2g}"
    digits = 1 - int(np.floor(np.log10(error)))
    large = max(abs(value), error)
    if digits < 0 or digits > 6 or large >= 1e6:
        # As many digits in front as to reach the second of the error.
        front = max(int(np.floor(np.log10(large))) + digits, 1)
        return f"{value:.{front}e}", f"{error:.1e}"
    return f"{value:.{digits}f}", f"{error:.{digits}f}"
