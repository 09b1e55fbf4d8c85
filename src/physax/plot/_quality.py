"""A picture of what was found in a measurement."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .._checks import instance
from ..xpcs import QualityReport
from ._curves import style_grid


def quality(report: QualityReport) -> Figure:
    """Draws a quality report: baseline, contrast, noise and dead frames.

    Args:
        report: From `xpcs.check_quality`.

    Returns:
        A new figure. Warnings are listed below the panels.

    Raises:
        ArgumentError: If `report` is something else.
    """
    instance(report, "report", QualityReport, "Make one by `xpcs.check_quality`.")
    figure = Figure(figsize=(8.0, 5.4), dpi=150, layout="constrained")
    (a, b), (c, d) = figure.subplots(2, 2)
    maps = np.arange(1, report.q.size + 1)
    _points(a, maps, report.baseline, "baseline")
    a.axhline(1.0, color="0.5", lw=0.8)
    _points(b, maps, report.contrast, "contrast")
    c.plot(maps, report.sigma, "o-", ms=3, lw=0.8, label="of the data")
    c.set_ylabel("σ of one value")
    if np.isfinite(report.stated_sigma).any():
        c.plot(maps, report.stated_sigma, "s--", ms=3, lw=0.8, label="stated")
        c.legend(fontsize="x-small")
    for axes in (a, b, c):
        axes.set_xlabel("map")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        style_grid(axes)
    frames = np.arange(1, report.dead.size + 1)
    d.fill_between(frames, report.dead.astype(float), step="mid", color="tab:red")
    d.set_xlim(0.5, report.dead.size + 0.5)
    d.set_ylim(0, 1)
    d.set_yticks([])
    d.set_xlabel("frame")
    count = len(report.dead_frames)
    d.set_title(f"{count} dead of {report.dead.size} frames", fontsize="medium")
    found = report.warnings or ("No problems found.",)
    figure.supxlabel("\n".join(found), fontsize="x-small", wrap=True)
    return figure


def _points(axes: Axes, maps: np.ndarray, values: np.ndarray, label: str) -> None:
    axes.plot(maps, values, "o-", ms=3, lw=0.8)
    axes.set_ylabel(label)
