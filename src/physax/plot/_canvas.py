"""Axes to draw on, and lengths in a readable unit."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .._checks import ArgumentError


POWERS = (-3, 4)
"""Exponents beyond which a power of ten stands beside an axis instead of zeros."""

_PREFIXES = ((1e-15, "f"), (1e-12, "p"), (1e-9, "n"), (1e-6, "µ"), (1e-3, "m"))
_WIDTH, _LOWEST, _HIGHEST = 6.4, 2.4, 7.5
# Intervals between ticks of an upright axis, for each inch.
_TICKS = 3.6
# Longer pictures than this are stretched.
_MOST_ELONGATED = 8.0


class Unit(NamedTuple):
    """A unit with a prefix.

    Attributes:
        size: In the unit without the prefix.
        name: With the prefix.
    """

    size: float
    name: str


def readable_unit(values: np.ndarray, name: str) -> Unit:
    """Chooses the prefix with which the largest value lies between 1 and 1,000.

    Args:
        values: In the unit of that name.
        name: For example "m".

    Returns:
        The unit.
    """
    finite = np.abs(values[np.isfinite(values)])
    largest = float(np.max(finite, initial=0.0))
    # A rounding below 1,000 nm should still be 1 um.
    largest *= 1 + 1e-6
    chosen = Unit(1.0, name)
    if 0 < largest < 1:
        fitting = [p for p in _PREFIXES if p[0] <= largest] or [_PREFIXES[0]]
        chosen = Unit(fitting[-1][0], fitting[-1][1] + name)
    return chosen


def is_even(ratio: float | int) -> bool:
    """Tells whether pictures of this height over width are drawn to scale."""
    return bool(1 / _MOST_ELONGATED <= ratio <= _MOST_ELONGATED)


def new_axes(axes: Axes | None, aspect: float = 0.65) -> Axes:
    """Returns the given axes, or those of a new figure.

    The figure is not known to pyplot: nothing has to be closed, and no window opens.

    Args:
        axes: Where to draw, or `None`.
        aspect: Height over width of what will be drawn.

    Returns:
        The axes.
    """
    if axes is not None:
        return axes
    high = 0.75 * _WIDTH * aspect
    height = float(np.clip(high + 0.9, _LOWEST, _HIGHEST))
    figure = Figure(figsize=(_WIDTH, height), dpi=150, layout="compressed")
    axes = figure.add_subplot()
    # About as many ticks as matplotlib chooses, but not anew after each change of the
    # size: with wider labels the axes get smaller, with fewer ticks larger again, and
    # what is drawn has labels that nobody made room for.
    count = int(np.clip(_TICKS * min(high, height - 0.9), 4, 9))
    axes.yaxis.set_major_locator(MaxNLocator(count, steps=[1, 2, 2.5, 5, 10]))
    return axes


def add_colour_bar(axes: Axes, image: ScalarMappable, label: str) -> None:
    """Draws a colour bar as high as the axes, to their right."""
    beside = axes.inset_axes((1.025, 0.0, 0.03, 1.0))
    axes.figure.colorbar(image, cax=beside, label=label)
    beside.ticklabel_format(axis="y", scilimits=POWERS, useMathText=True)


def choose(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """Returns `value` if it is allowed."""
    if value not in allowed:
        raise ArgumentError(f"`{name}` must be one of {allowed}, but is {value!r}.")
    return value
