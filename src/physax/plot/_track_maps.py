"""Maps of what tracks tell: densities and stretching."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Num
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from .._checks import ArgumentError
from ..particles import Land
from ._canvas import add_colour_bar
from ._map_axes import (
    draw_cells,
    draw_land,
    make_map,
    map_axes,
    on_map,
    readable_time,
)
from ._samples import edges_around


def density(
    values: Num[ArrayLike, "nx ny"],
    edges: Sequence[Num[ArrayLike, " _"]],
    *,
    spherical: bool = False,
    west: float | int = -180,
    land: Land | None = None,
    logarithmic: bool = False,
    label: str | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draws a density of particles over two axes.

    Args:
        values: The density in each cell, such as of `particles.histogram_density`.
        edges: Positions of the edges of the cells, for each axis one more than cells.
        spherical: Whether they are longitudes and latitudes in degrees.
        west: The smallest longitude of the map.
        land: What to draw as land, over empty cells.
        logarithmic: Whether colours show powers of ten; empty cells stay empty.
        label: Of the colours, with the unit.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If shapes do not agree, or nothing is above 0 with `logarithmic`.
    """
    places = [np.asarray(e, float) for e in edges]
    shown = _checked(values, [e.size - 1 for e in places], "edges")
    unit = "per square degree" if spherical else "per m²"
    empty = ~(shown > 0)
    if logarithmic and empty.all():
        raise ArgumentError("`values` must be above 0 somewhere for `logarithmic`.")
    shown = np.ma.masked_where(empty, shown)
    return _draw(
        shown,
        places,
        spherical=spherical,
        west=west,
        land=land,
        label=label or f"density ({unit})",
        axes=axes,
        cmap="magma_r",
        norm=LogNorm() if logarithmic else None,
    )


def ftle_map(
    values: Num[ArrayLike, "nx ny"],
    nodes: Sequence[Num[ArrayLike, " _"]],
    *,
    spherical: bool = False,
    west: float | int = -180,
    land: Land | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draws finite-time Lyapunov exponents on the grid of seeds they belong to.

    Ridges are where neighbours part, or come together if time ran backward.

    Args:
        values: The exponents in 1/s; NaN is left empty.
        nodes: Positions of the seeds along both axes.
        spherical: Whether they are longitudes and latitudes in degrees.
        west: The smallest longitude of the map.
        land: What to draw as land.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If shapes do not agree, or an axis has fewer than two nodes.
    """
    places = [np.asarray(axis, float) for axis in nodes]
    shown = _checked(values, [axis.size for axis in places], "nodes")
    if min(shown.shape) < 2:
        raise ArgumentError(
            "`nodes` must have at least two positions along each axis, but `values` "
            f"have shape {shown.shape}."
        )
    shown = np.ma.masked_invalid(shown)
    label = "FTLE (1/s)"
    if shown.count() and float(np.abs(shown).max()) > 0:
        # The time in which neighbours part by e, in a unit one can imagine.
        unit = readable_time(np.array([0.0, 2 / float(np.abs(shown).max())]))
        if unit.size > 1:
            name = unit.name.removesuffix("s") if unit.name == "days" else unit.name
            shown, label = shown * unit.size, f"FTLE (1/{name})"
    return _draw(
        shown,
        [edges_around(axis) for axis in places],
        spherical=spherical,
        west=west,
        land=land,
        label=label,
        axes=axes,
        cmap="cividis",
        norm=None,
    )


def _checked(values, counts: list[int], name: str) -> np.ndarray:
    shown = np.asarray(values, float)
    if shown.shape != tuple(counts) or len(counts) != 2:
        raise ArgumentError(
            f"`values` must have two axes that match `{name}`, {tuple(counts)}, but "
            f"have shape {shown.shape}."
        )
    if not shown.size:
        raise ArgumentError(
            f"`values` must have a cell to be drawn, but have shape {shown.shape}."
        )
    return shown


def _draw(
    values: np.ma.MaskedArray,
    edges: list[np.ndarray],
    *,
    spherical: bool,
    west: Any,
    land: Land | None,
    label: str,
    axes: Axes | None,
    cmap: str,
    norm: LogNorm | None,
) -> Axes:
    corner = np.array([[axis[0], axis[-1]] for axis in edges]).T
    chart = make_map(corner, spherical=spherical, west=west)
    cells = on_map(chart, edges, values)
    low = np.array([axis.min() for axis in cells[:2]])
    high = np.array([axis.max() for axis in cells[:2]])
    axes = map_axes(chart, low, high, axes)
    if land is not None:
        draw_land(axes, chart, land)
    image, *_ = draw_cells(axes, chart, cells, cmap=cmap, norm=norm)
    if norm is None:
        add_colour_bar(axes, image, label)
    else:
        beside = axes.inset_axes((1.025, 0.0, 0.03, 1.0))
        axes.figure.colorbar(image, cax=beside, label=label)
    return axes
