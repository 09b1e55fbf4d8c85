"""Pictures of two-time correlation maps: data, fit, residuals, and cuts."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Num
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._checks import ArgumentError, instance
from ..xpcs import TwoTime, TwoTimeFit, fitted_two_time, neighbour_diagonal
from ._canvas import add_colour_bar, new_axes, readable_unit
from ._curves import style_grid
from ._samples import edges_around


# Colours end where this share of the values does, in percent.
_TOP = 99.8
# The labels of a square picture need room beside it.
_SQUARE = 0.82
_PANEL = 3.6


def two_time(
    data: TwoTime | Num[ArrayLike, "..."],
    index: int = 0,
    *,
    times: Num[ArrayLike, "..."] | None = None,
    limits: tuple[float | int, float | int] | None = None,
    label: str = "$c_2$",
    axes: Axes | None = None,
) -> Axes:
    """Draws a two-time map as an image.

    For a `TwoTime` the diagonal, which holds the peak of the shot noise, is shown as
    the mean of its neighbours, and what the mask leaves out is grey.

    Args:
        data: The maps, or one map.
        index: Which of the maps, counted from 0; not used for one map.
        times: Times of the frames in seconds, for one map; frame numbers if `None`.
        limits: Values at the ends of the colours; from the data if `None`.
        label: Of the colour bar.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If there is no such map, or it is not square.
    """
    title = ""
    if isinstance(data, TwoTime):
        k = _entry(data, index)
        values, at = _shown(data, k), np.asarray(data.times)
        title = _title(data, k)
    else:
        values = np.asarray(data, float)
        at = None if times is None else np.asarray(times, float)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.size:
        raise ArgumentError(
            f"`data` must be a square map, but has shape {values.shape}. Pass one map "
            "at a time."
        )
    axes = new_axes(axes, aspect=_SQUARE)
    image = _draw_map(axes, values, at, limits or _limits(values), "viridis")
    add_colour_bar(axes, image, label)
    axes.set_title(title, fontsize="medium")
    return axes


def two_time_fit(
    data: TwoTime,
    fitted: TwoTimeFit | Num[ArrayLike, "..."],
    residuals: Num[ArrayLike, "..."] | None = None,
    index: int = 0,
) -> Figure:
    """Draws the data, the fit and the residuals of one map side by side.

    Args:
        data: The maps.
        fitted: The fit, or the fitted maps.
        residuals: Differences to draw; those of data and fit if `None`, in standard
            deviations where the data state them.
        index: Which of the maps, counted from 0.

    Returns:
        A new figure.

    Raises:
        ArgumentError: If there is no such map, shapes differ, or `data` is something
            else.
    """
    instance(data, "data", TwoTime, "Make one by `io.read_two_time`.")
    k = _entry(data, index)
    fit = _like(data, fitted, "fitted")[k]
    values = _shown(data, k)
    if residuals is None:
        left, label = values - fit, "data − fit"
        if data.sigma_is_known:
            left, label = left / _sigma_of(data, k), "(data − fit) / σ"
    else:
        left, label = _like(data, residuals, "residuals")[k], "residual"
    left = np.where(np.isfinite(values), left, np.nan)
    # The diagonal is not fitted.
    left = np.where(np.eye(data.frames, dtype=bool), np.nan, left)
    # What surrounds the panels is always the same, and fitting it would take longer
    # than to draw it.
    figure = Figure(figsize=(3 * _PANEL, _PANEL), dpi=150)
    room = {"left": 0.065, "right": 0.885, "bottom": 0.13, "top": 0.84, "wspace": 0.68}
    shared = _limits(values)
    largest = np.nanpercentile(np.abs(left), _TOP) if np.isfinite(left).any() else 1.0
    both = (-float(largest) or -1.0, float(largest) or 1.0)
    panels = (
        ("data", values, shared, "viridis", "$c_2$"),
        ("fit", fit, shared, "viridis", "$c_2$"),
        ("residuals", left, both, "RdBu_r", label),
    )
    at = np.asarray(data.times)
    for axes, (name, shown, limits, colours, bar) in zip(
        figure.subplots(1, 3, gridspec_kw=room), panels, strict=True
    ):
        image = _draw_map(axes, shown, at, limits, colours)
        add_colour_bar(axes, image, bar)
        axes.set_title(name, fontsize="medium")
    figure.suptitle(_title(data, k), fontsize="medium")
    return figure


def angle_cuts(
    data: TwoTime,
    fitted: TwoTimeFit | Num[ArrayLike, "..."] | None = None,
    *,
    maps: Sequence[int] | None = None,
    age: float | int = 0.0,
    axes: Axes | None = None,
) -> Axes:
    """Draws c2 over the lag from one age of the sample, one curve for each angle.

    Args:
        data: The maps.
        fitted: The fit, or the fitted maps, drawn as lines over the points.
        maps: Which maps to draw, counted from 0; all if `None`.
        age: Time of the earlier frame in seconds; the nearest frame counts.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes, with the lag on a logarithmic scale.

    Raises:
        ArgumentError: If there is no such map, shapes differ, no frame follows, or
            `data` is something else.
    """
    instance(data, "data", TwoTime, "Make one by `io.read_two_time`.")
    chosen = range(data.maps) if maps is None else [_entry(data, k) for k in maps]
    fit = None if fitted is None else _like(data, fitted, "fitted")
    times = np.asarray(data.times, float)
    first = int(np.argmin(np.abs(times - age)))
    if first > data.frames - 2:
        raise ArgumentError(
            f"`age` must be before the last frame at {times[-1]:g} s, but is {age:g} s."
        )
    axes = new_axes(axes)
    lags = times[first + 1 :] - times[first]
    for k in chosen:
        row = _masked(data, np.asarray(data.c2[k], float))[first, first + 1 :]
        angle = f"{np.degrees(float(data.phi[k])):.4g}°"
        (points,) = axes.plot(
            lags, row, "." if fit is not None else ".-", ms=3, lw=0.7, label=angle
        )
        if fit is not None:
            axes.plot(lags, fit[k][first, first + 1 :], color=points.get_color(), lw=1)
    axes.set_xscale("log")
    axes.set_xlabel("lag (s)")
    axes.set_ylabel("$c_2$")
    axes.set_title(f"age {times[first]:.4g} s", fontsize="medium")
    style_grid(axes)
    axes.legend(fontsize="x-small", title="angle", ncols=2 if len(chosen) > 8 else 1)
    return axes


def _entry(data: TwoTime, index: int) -> int:
    if not -data.maps <= index < data.maps:
        raise ArgumentError(f"`index` must be one of {data.maps} maps, but is {index}.")
    return index % data.maps


def _title(data: TwoTime, k: int) -> str:
    angle = np.degrees(float(data.phi[k]))
    return f"q = {float(data.q[k]):.5g} Å⁻¹, φ = {angle:.4g}°"


def _shown(data: TwoTime, k: int) -> np.ndarray:
    """Returns one map with a diagonal to look at and gaps where it is not used."""
    shown = neighbour_diagonal(jnp.asarray(np.asarray(data.c2)[k]))
    return _masked(data, np.asarray(shown, float))


def _masked(data: TwoTime, values: np.ndarray) -> np.ndarray:
    if data.mask is None:
        return values
    used = np.asarray(data.mask)
    return np.where(used | used.T | np.eye(len(values), dtype=bool), values, np.nan)


def _like(data: TwoTime, values, name: str) -> np.ndarray | jax.Array:
    if isinstance(values, TwoTimeFit):
        values = fitted_two_time(values, data)
    if np.shape(values) != data.c2.shape:
        raise ArgumentError(
            f"`{name}` must have the shape {data.c2.shape} of the maps, but has "
            f"{np.shape(values)}."
        )
    return np.asarray(values, float)


def _sigma_of(data: TwoTime, k: int) -> np.ndarray:
    sigma = np.asarray(data.sigma, float)
    return np.asarray(sigma[k] if sigma.ndim else sigma)


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Returns ends of the colours that a few outliers do not set."""
    off = values[~np.eye(len(values), dtype=bool)]
    off = off[np.isfinite(off)]
    if not off.size:
        return 0.0, 1.0
    low, high = np.percentile(off, [100 - _TOP, _TOP])
    return float(low), float(high)


def _draw_map(axes: Axes, values, times, limits, colours: str):
    if times is None:
        unit, at = "frame", np.arange(1.0, len(values) + 1)
    else:
        size, unit = readable_unit(np.asarray(times, float), "s")
        at = np.asarray(times, float) / size
    edges = edges_around(at) if len(at) > 1 else at[0] + np.array([-0.5, 0.5])
    axes.set_facecolor("0.8")
    options = {"cmap": colours, "vmin": limits[0], "vmax": limits[1]}
    if np.ptp(np.diff(edges)) <= 1e-3 * np.max(np.diff(edges)):
        extent = (edges[0], edges[-1], edges[0], edges[-1])
        image = axes.imshow(values.T, origin="lower", extent=extent, **options)
    else:
        image = axes.pcolormesh(edges, edges, values.T, rasterized=True, **options)
        axes.set_aspect("equal")
    axes.set_xlabel(f"$t_1$ ({unit})")
    axes.set_ylabel(f"$t_2$ ({unit})")
    return image
