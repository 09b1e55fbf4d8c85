"""Axes of curves: wavelengths, and a faint grid."""

import numpy as np
from matplotlib.axes import Axes

from ..units import MICRO, NANO
from ._canvas import POWERS, Unit, readable_unit


def label_wavelengths(axes: Axes, wavelengths: np.ndarray) -> Unit:
    """Labels the horizontal axis; optical wavelengths are in nanometres.

    Args:
        axes: The axes.
        wavelengths: In metres.

    Returns:
        The unit to draw in.
    """
    longest = float(np.max(wavelengths))
    optical = 0.1 * MICRO <= longest < 10 * MICRO
    unit = Unit(NANO, "nm") if optical else readable_unit(wavelengths, "m")
    axes.set_xlabel(f"wavelength ({unit.name})")
    # Without this, ticks of a narrow band would be offsets from a number beside them.
    axes.ticklabel_format(axis="x", useOffset=False)
    return unit


def style_grid(axes: Axes) -> None:
    """Draws a faint grid, and shortens the numbers of a linear vertical axis."""
    if axes.get_yscale() == "linear":
        axes.ticklabel_format(axis="y", scilimits=POWERS, useMathText=True)
    axes.grid(visible=True, color="0.9", lw=0.8)
    axes.set_axisbelow(True)
