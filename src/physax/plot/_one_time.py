"""Curves of one-time correlations."""

import numpy as np
from jaxtyping import ArrayLike, Num
from matplotlib.axes import Axes

from .._checks import ArgumentError, instance
from ..xpcs import G2Fit, OneTime
from ._canvas import new_axes
from ._curves import style_grid


def g2(
    data: OneTime,
    fitted: G2Fit | Num[ArrayLike, "..."] | None = None,
    *,
    axes: Axes | None = None,
) -> Axes:
    """Draws one-time correlations with their errors over the lag.

    Args:
        data: The curves.
        fitted: What `fit_g2` found, or curves at the same lags, drawn as lines.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes, with the lag on a logarithmic scale.

    Raises:
        ArgumentError: If `fitted` has another shape than the curves, or `data` is
            something else.
    """
    instance(data, "data", OneTime, "Make one by `xpcs.one_time` or `io.read_g2`.")
    fitted = fitted.values if isinstance(fitted, G2Fit) else fitted
    if fitted is not None and np.shape(fitted) != data.g2.shape:
        raise ArgumentError(
            f"`fitted` must have the shape {data.g2.shape} of the curves, but has "
            f"{np.shape(fitted)}."
        )
    axes = new_axes(axes)
    lags, values = np.asarray(data.lags), np.asarray(data.g2)
    errors = np.broadcast_to(np.asarray(data.sigma), values.shape)
    for k, (curve, error) in enumerate(zip(values, errors, strict=True)):
        label = f"{float(data.q[k]):.4g}"
        if data.phi is not None:
            label += f", {np.degrees(float(data.phi[k])):.4g}°"
        line = axes.errorbar(
            lags,
            curve,
            error,
            fmt="." if fitted is not None else ".-",
            ms=4,
            lw=0.8,
            elinewidth=0.6,
            label=label,
        )
        if fitted is not None:
            axes.plot(
                lags, np.asarray(fitted)[k], color=line.lines[0].get_color(), lw=1
            )
    axes.set_xscale("log")
    axes.set_xlabel("lag (s)")
    axes.set_ylabel("$g_2$")
    style_grid(axes)
    axes.legend(fontsize="x-small", title="q (Å⁻¹)")
    return axes
