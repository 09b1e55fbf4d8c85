"""Curves over time."""

import numpy as np
from matplotlib.axes import Axes

from .._checks import ArgumentError, kind_of
from ..em import EnergySeries, TimeSeries
from ._canvas import choose, new_axes, readable_unit
from ._curves import style_grid


def time_series(
    series: TimeSeries | EnergySeries,
    component: str | None = None,
    *,
    axes: Axes | None = None,
) -> Axes:
    """Draws fields at a point, or the energy in the grid, over time.

    For a region with several samples the largest modulus is drawn. Energy has a
    logarithmic axis, on which a decay is straight.

    Args:
        series: The result of a `TimeMonitor` or an `EnergyMonitor`. That of a
            `simulate` that `Decay` stopped ends in zeros; see `em.recorded`.
        component: Which to draw; all if `None`.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If there is no such component, or `series` is something else.
    """
    if isinstance(series, EnergySeries):
        return _draw_energy(series, new_axes(axes, 0.5))
    if not isinstance(series, TimeSeries):
        raise ArgumentError(
            "`series` must be a `TimeSeries` or an `EnergySeries`, but is "
            f"{kind_of(series)} From a `Result`, pass one of `monitors`."
        )
    names = tuple(series.values)
    if component is not None:
        names = (choose("component", component, names),)
    axes = new_axes(axes, 0.5)
    unit = readable_unit(np.concatenate([series.times[n] for n in names]), "s")
    for name in names:
        values = np.asarray(series.values[name])
        values = values.reshape(len(values), -1)
        text = name if name[0] == "E" else f"η₀{name}"
        if values.shape[1] > 1:
            y, text = np.abs(values).max(axis=1), f"max |{text}|"
        else:
            y = np.real(values[:, 0])
        axes.plot(np.asarray(series.times[name]) / unit.size, y, label=text, lw=1)
    axes.set_xlabel(f"time ({unit.name})")
    axes.set_ylabel("field (V/m)")
    style_grid(axes)
    axes.legend(fontsize="small", loc="upper right")
    return axes


def _draw_energy(series: EnergySeries, axes: Axes) -> Axes:
    times, energy = np.asarray(series.times), np.asarray(series.energy)
    unit = readable_unit(times, "s")
    # Nothing has entered the grid at first, and zero has no logarithm.
    axes.plot(times / unit.size, np.where(energy > 0, energy, np.nan))
    axes.set_yscale("log")
    axes.set_xlabel(f"time ({unit.name})")
    axes.set_ylabel("energy (J/m$^k$, $k$ missing axes)")
    style_grid(axes)
    return axes
