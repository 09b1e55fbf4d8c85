"""Curves of an optimisation."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import ArrayLike, Float
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .._checks import ArgumentError
from ._canvas import new_axes
from ._curves import style_grid


def convergence(
    values: Float[ArrayLike, " iterations"]
    | Sequence[float]
    | Mapping[str, Sequence[float]],
    *,
    label: str = "objective",
    logarithmic: bool = False,
    axes: Axes | None = None,
) -> Axes:
    """Draws values over the iterations of an optimisation or a fit.

    Args:
        values: One value per iteration, or several such lists by name.
        label: Label of the vertical axis, with its unit if it has one.
        logarithmic: Whether that axis is logarithmic.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If a list is empty or not one-dimensional.
    """
    named = isinstance(values, Mapping)
    curves = values.items() if named else [(None, values)]
    axes = new_axes(axes)
    for name, curve in curves:
        y = np.asarray(curve)
        if y.ndim != 1 or not y.size:
            raise ArgumentError(
                f"`values` must be one value per iteration, but has shape {y.shape}."
            )
        axes.plot(np.arange(y.size), y, ".-", label=name)
    if logarithmic:
        axes.set_yscale("log")
    axes.set_xlabel("iteration")
    axes.set_ylabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    style_grid(axes)
    if named:
        axes.legend(fontsize="small")
    return axes
