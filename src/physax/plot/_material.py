"""Refractive index and absorption over wavelength."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import ArrayLike, Num
from matplotlib.axes import Axes

from .._checks import ArgumentError
from ..em import Material, MaterialFit, complex_permittivity
from ..units import SPEED_OF_LIGHT
from ._canvas import new_axes
from ._curves import label_wavelengths, style_grid


def material(
    shown: Material | MaterialFit,
    wavelengths: Num[ArrayLike, "..."] | Sequence[float | int] | None = None,
    *,
    label: str | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draws the index n and the extinction coefficient k of a material.

    For a fit it draws the table as dots beside the curves. A material without losses
    has no curve of k.

    Args:
        shown: The material, or a fit to a table.
        wavelengths: Where, in metres; for a fit by default those of its table.
        label: Name of the curves in the legend.
        axes: Where to draw, also for a second material; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If wavelengths are missing, not positive, or not a list.
    """
    fit = shown if isinstance(shown, MaterialFit) else None
    if wavelengths is None:
        if fit is None:
            raise ArgumentError("`wavelengths` must be given to draw a material.")
        waves = np.asarray(fit.wavelengths)
        waves = np.geomspace(waves[0], waves[-1], 400)
    else:
        waves = np.asarray(wavelengths, float)
    if waves.ndim != 1 or not waves.size or not np.all(waves > 0):
        raise ArgumentError(
            "`wavelengths` must be a list of positive numbers, but has shape "
            f"{waves.shape}."
        )
    one = shown.material if isinstance(shown, MaterialFit) else shown
    values = complex_permittivity(one, SPEED_OF_LIGHT / waves)
    index = np.sqrt(np.asarray(values, complex)).reshape(len(waves), -1)
    axes = new_axes(axes)
    unit = label_wavelengths(axes, waves)
    for column, axis in zip(
        index.T, "xyz" if index.shape[1] == 3 else " ", strict=True
    ):
        _curves(
            axes, waves / unit.size, column, f"{label or ''} {{}} {axis}", fit, unit
        )
    axes.set_ylabel("n, k (dimensionless)")
    style_grid(axes)
    axes.legend(fontsize="small")
    return axes


def _curves(axes: Axes, x, index: np.ndarray, text: str, fit, unit) -> None:
    order = np.argsort(x)
    for name, part, style in (("n", np.real, "-"), ("k", np.imag, "--")):
        y = part(index)
        if name == "k" and not np.any(y):
            continue
        title = " ".join(text.format(name).split())
        style = "x" if len(x) == 1 else style
        (line,) = axes.plot(x[order], y[order], style, label=title)
        if fit is not None:
            given, colour = part(np.asarray(fit.table)), line.get_color()
            places = np.asarray(fit.wavelengths) / unit.size
            axes.plot(places, given, ".", color=colour, label=f"{title}, table")
