"""How values approach their limit with finer cells."""

import numpy as np
from matplotlib.axes import Axes

from .._checks import ArgumentError, instance
from ..em import Convergence
from ._canvas import new_axes
from ._curves import style_grid


def grid_convergence(
    study: Convergence,
    *,
    label: str = "distance from the limit",
    axes: Axes | None = None,
) -> Axes:
    """Draws how far values are from their limit, over the resolution.

    Both axes are logarithmic; a dashed line has the order of the study, and a band the
    error bar of the limit, below which distances mean nothing.

    Args:
        study: Of one number, or of few: each entry is a curve.
        label: Label of the vertical axis, with its unit if it has one.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If the values have more than one axis, or `study` is something
            else.
    """
    instance(study, "study", Convergence, "Make one by `em.converge`.")
    if study.limit.ndim > 1:
        raise ArgumentError(
            "`study` must be of one number or a list of them, but its values have the "
            f"shape {study.limit.shape}. Draw one entry at a time."
        )
    axes = new_axes(axes)
    r = study.resolutions
    distances = np.abs(study.values - study.limit).reshape(len(r), -1)
    errors, orders = np.atleast_1d(study.error), np.atleast_1d(study.order)
    for k, (distance, error, order) in enumerate(
        zip(distances.T, errors, orders, strict=True)
    ):
        name = f"{k}: " if study.limit.ndim else ""
        (dots,) = axes.plot(r, distance, "o", label=f"{name}order {order:.2f}")
        line = distance[-1] * (r / r[-1]) ** -order
        axes.plot(r, line, "--", color=dots.get_color(), lw=1)
        axes.axhspan(0, error, color=dots.get_color(), alpha=0.12, lw=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(r, [f"{x:g}" for x in r], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_xlabel("resolution")
    axes.set_ylabel(label)
    style_grid(axes)
    axes.legend(fontsize="small")
    return axes
