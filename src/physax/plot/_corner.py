"""Samples of a posterior, each parameter and each pair."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import ArrayLike, Num
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._checks import ArgumentError


# One and two standard deviations of a Gaussian in two dimensions.
_LEVELS = (0.393, 0.865)


def corner(
    samples: Num[ArrayLike, "..."],
    names: Sequence[str],
    *,
    truth: Sequence[float | int] | None = None,
    bins: int = 30,
) -> Figure:
    """Draws samples of a posterior: each parameter, and each pair of two.

    Contours enclose 39 % and 86 % of the samples, one and two standard deviations of a
    Gaussian in two dimensions. Samples that are not finite are left out.

    Args:
        samples: The samples.
        names: Of the parameters.
        truth: Values to mark.
        bins: Along each axis.

    Returns:
        A new figure.

    Raises:
        ArgumentError: If there is not one name per column, fewer than two samples are
            finite, or `truth` has another length.
    """
    values = np.asarray(samples, float)
    if values.ndim != 2 or values.shape[1] != len(names) or not len(names):
        raise ArgumentError(
            f"`samples` must have one column for each of {len(names)} names, but has "
            f"shape {values.shape}."
        )
    if truth is not None and len(truth) != len(names):
        raise ArgumentError(
            f"`truth` must have {len(names)} entries, but has {len(truth)}."
        )
    values = values[np.all(np.isfinite(values), axis=1)]
    if len(values) < 2:
        raise ArgumentError(
            f"`samples` must have at least 2 finite rows, but has {len(values)}."
        )
    count = len(names)
    size = max(1.3 * count + 0.8, 2.8)
    figure = Figure(figsize=(size, size), dpi=150, layout="constrained")
    grid = figure.subplots(count, count, squeeze=False)
    edges = [_edges(column, bins) for column in values.T]
    for i in range(count):
        for j in range(count):
            axes = grid[i, j]
            if j > i:
                axes.set_axis_off()
            elif i == j:
                axes.hist(values[:, i], edges[i], histtype="stepfilled", alpha=0.7)
                axes.set_yticks([])
                _mark(axes, truth, j, None)
            else:
                _pair(axes, values[:, j], values[:, i], edges[j], edges[i])
                _mark(axes, truth, j, i)
            if j <= i:
                _label(axes, names, i, j, count)
    return figure


def _edges(column: np.ndarray, bins: int) -> np.ndarray:
    low, high = float(column.min()), float(column.max())
    # A parameter that never moved still has a picture.
    slack = 0.0 if high > low else max(abs(low), 1.0) * 1e-6
    return np.linspace(low - slack, high + slack, bins + 1)


def _pair(axes: Axes, x, y, across: np.ndarray, up: np.ndarray) -> None:
    density, _, _ = np.histogram2d(x, y, bins=[across, up])
    image = np.where(density > 0, density, np.nan).T
    axes.pcolormesh(across, up, image, cmap="Blues", rasterized=True)
    falling = np.sort(density.ravel())[::-1]
    enclosed = np.cumsum(falling) / falling.sum()
    levels = sorted({float(falling[np.searchsorted(enclosed, p)]) for p in _LEVELS})
    if levels[0] < density.max():
        inside = [level for level in levels if level < density.max()]
        x, y = ((e[1:] + e[:-1]) / 2 for e in (across, up))
        axes.contour(x, y, density.T, inside, colors="black", linewidths=0.7)


def _mark(
    axes: Axes, truth: Sequence[float | int] | None, j: int, i: int | None
) -> None:
    if truth is None:
        return
    axes.axvline(truth[j], color="tab:red", lw=0.8)
    if i is not None:
        axes.axhline(truth[i], color="tab:red", lw=0.8)


def _label(axes: Axes, names: Sequence[str], i: int, j: int, count: int) -> None:
    axes.tick_params(labelsize="xx-small", labelrotation=30)
    axes.locator_params(axis="x", nbins=3)
    if i == count - 1:
        axes.set_xlabel(names[j], fontsize="small")
    else:
        axes.set_xticklabels([])
    if j == 0 and i > 0:
        axes.set_ylabel(names[i], fontsize="small")
        axes.locator_params(axis="y", nbins=3)
    elif i != j:
        axes.set_yticklabels([])
