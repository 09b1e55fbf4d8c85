"""Pictures of a result, as files."""

import math
from pathlib import Path

import matplotlib as mpl
import numpy as np

from .. import plot
from .._whole_file import whole_file
from ..xpcs import QualityReport, TwoTime
from ._xpcs_results import Stored


def draw_results(folder: Path, stored: Stored, most: int) -> list[Path]:
    """Draws maps, cuts, the table and the correlations of a fit.

    Args:
        folder: Where the pictures go.
        stored: The result.
        most: How many maps are drawn; evenly chosen if there are more.

    Returns:
        The files.
    """
    data, fitted = stored.data, stored.fitted
    made = []
    for k in _chosen(data.maps, most):
        figure = plot.two_time_fit(data, fitted, None, k)
        name = f"map_{_label(data, k)}.png"
        made.append(_save(figure, folder / name))
    cuts = plot.angle_cuts(data, fitted, maps=_chosen(data.maps, 8))
    made.append(_save(cuts.figure, folder / "cuts.png"))
    made.append(_save(_table(stored).figure, folder / "parameters.png"))
    found = stored.analysis.get("correlation", {})
    if len(found.get("names", ())) > 1:
        matrix = np.array(found["matrix"], float)
        axes = plot.correlation_matrix(matrix, found["names"])
        made.append(_save(axes.figure, folder / "correlation.png"))
    if stored.samples is not None:
        figure = plot.corner(*stored.samples)
        made.append(_save(figure, folder / "corner.png"))
    return made


def draw_data(
    folder: Path, data: TwoTime, report: QualityReport, most: int
) -> list[Path]:
    """Draws maps, cuts and the quality report of data.

    Args:
        folder: Where the pictures go.
        data: The maps.
        report: Of these.
        most: How many maps are drawn.

    Returns:
        The files.
    """
    made = [
        _save(plot.two_time(data, k).figure, folder / f"data_{_label(data, k)}.png")
        for k in _chosen(data.maps, most)
    ]
    cuts = plot.angle_cuts(data, maps=_chosen(data.maps, 8))
    made.append(_save(cuts.figure, folder / "cuts.png"))
    made.append(_save(plot.quality(report), folder / "quality.png"))
    return made


def _table(stored: Stored):
    rows = stored.parameters
    shown = list(rows)[:30]
    return plot.parameter_table(
        shown,
        [_number(rows[name].get("value")) for name in shown],
        [_number(rows[name].get("uncertainty")) for name in shown],
        units=[str(rows[name].get("unit", "")) for name in shown],
    )


def _number(value) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _chosen(count: int, most: int) -> list[int]:
    if most < 1:
        return []
    return np.unique(np.linspace(0, count - 1, min(most, count)).astype(int)).tolist()


def _label(data: TwoTime, k: int) -> str:
    """Names a map by number and angle: unique, and in their order."""
    return f"{k + 1:03d}_phi{np.degrees(float(data.phi[k])):.1f}"


def _save(figure, path: Path) -> Path:
    # Nothing in these pictures gains from the slower exact simplification.
    with mpl.rc_context({"path.simplify_threshold": 1.0}), whole_file(path) as file:
        figure.savefig(file, format="png", dpi=110)
    return path
