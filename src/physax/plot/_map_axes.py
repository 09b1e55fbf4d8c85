"""Axes for places in a plane or on a globe, with land."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.ticker import FuncFormatter, MultipleLocator

from .._checks import ArgumentError
from ..particles import Land, wrap_globe
from ._canvas import Unit, new_axes, readable_unit
from ._samples import edges_around


_TIMES = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"))
_LAND = ListedColormap(["#c9c2b0"])
# Longer pictures than this are stretched.
_MOST_ELONGATED = 8.0


def readable_time(times: np.ndarray) -> Unit:
    """Chooses the unit in which the span of times is at least 2."""
    span = float(np.ptp(times))
    for size, name in _TIMES:
        if span >= 2 * size:
            return Unit(size, name)
    return readable_unit(np.asarray(times), "s")


class Map(NamedTuple):
    """How positions become places in a picture.

    Attributes:
        spherical: Whether they are longitude and latitude in degrees.
        west: The smallest longitude.
        unit: Of lengths in a plane.
    """

    spherical: bool
    west: float
    unit: Unit

    def places(self, positions: np.ndarray) -> np.ndarray:
        """Returns places, wrapped on a globe."""
        plane = np.asarray(positions, float)[..., :2]
        if not self.spherical:
            return plane / self.unit.size
        return np.asarray(wrap_globe(plane, self.west), float)

    def segments(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the segments between places that follow each other.

        Args:
            places: Shape `[times, particles, 2]`.

        Returns:
            The segments `[segments, 2, 2]`, and for each the number of its first
            place, counted through `[times - 1, particles]`. Segments over the edge of
            the globe are drawn at both edges.
        """
        pairs = np.stack([places[:-1], places[1:]], axis=2).reshape(-1, 2, 2)
        numbers = np.arange(len(pairs))
        if not self.spherical:
            return pairs, numbers
        jump = pairs[:, 1, 0] - pairs[:, 0, 0]
        over = np.abs(jump) > 180
        # On its way the particle leaves at one edge and comes in at the other.
        shift = np.where(over, -360 * np.sign(jump), 0)
        leaving, coming = pairs.copy(), pairs[over].copy()
        leaving[:, 1, 0] += shift
        coming[:, 0, 0] -= shift[over]
        return np.concatenate([leaving, coming]), np.append(numbers, numbers[over])


def make_map(positions: np.ndarray, *, spherical: bool, west: float) -> Map:
    """Makes a map for positions, `[..., ndim]`.

    Raises:
        ArgumentError: If they have fewer than two coordinates.
    """
    if positions.shape[-1] < 2:
        raise ArgumentError(
            "`tracks` must have at least two coordinates to be drawn, but have "
            f"{positions.shape[-1]}."
        )
    unit = Unit(1.0, "") if spherical else readable_unit(positions[..., :2], "m")
    return Map(spherical, west, unit)


def map_axes(chart: Map, low: np.ndarray, high: np.ndarray, axes: Axes | None) -> Axes:
    """Returns axes with labels, limits and ticks of a map.

    Args:
        chart: The map.
        low: The low corner of what is drawn, as places of the map.
        high: The high corner.
        axes: Where to draw, or `None`.
    """
    if chart.spherical:
        low, high = _window(chart, low, high)
    width, height = high - low
    safe = max(width, 1e-30)
    stretch = 1.0
    if chart.spherical:
        middle = np.radians(np.clip((low[1] + high[1]) / 2, -75, 75))
        stretch = 1.0 if width > 180 else float(1 / np.cos(middle))
    ratio = stretch * height / safe
    even = 1 / _MOST_ELONGATED <= ratio <= _MOST_ELONGATED
    axes = new_axes(axes, ratio if even else 0.65)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_aspect(stretch if even else "auto")
    if chart.spherical:
        axes.set_xlabel("longitude (degrees)")
        axes.set_ylabel("latitude (degrees)")
        axes.xaxis.set_major_formatter(FuncFormatter(_east_or_west))
        axes.yaxis.set_major_formatter(FuncFormatter(_north_or_south))
        if width > 180:
            axes.xaxis.set_major_locator(MultipleLocator(60))
            axes.yaxis.set_major_locator(MultipleLocator(30))
    else:
        axes.set_xlabel(f"x ({chart.unit.name})")
        axes.set_ylabel(f"y ({chart.unit.name})")
    return axes


def _window(chart: Map, low: np.ndarray, high: np.ndarray):
    """Returns the corners of a map: all of the globe, if most of it is needed."""
    if high[0] - low[0] > 180:
        return np.array([chart.west, -90.0]), np.array([chart.west + 360, 90.0])
    west = [chart.west, -90.0]
    return np.maximum(low, west), np.minimum(high, [chart.west + 360, 90.0])


def corners(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the corners of a box around places, a little larger."""
    flat = places.reshape(-1, 2)
    low, high = np.nanmin(flat, axis=0), np.nanmax(flat, axis=0)
    extent = high - low
    margin = 0.05 * np.where(extent > 0, extent, max(float(extent.max()), 1e-12))
    return low - margin, high + margin


def _east_or_west(x: float | int, _) -> str:
    x = (x + 180) % 360 - 180
    side = "" if x in (0, -180) else "E" if x > 0 else "W"
    return f"{abs(x):g}°{side}"


def _north_or_south(y: float | int, _) -> str:
    side = "" if y == 0 else "N" if y > 0 else "S"
    return f"{abs(y):g}°{side}"


def on_map(
    chart: Map, nodes: tuple[np.ndarray, np.ndarray], values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns borders of cells and values `[nx, ny]`, in the order of the map.

    Args:
        chart: The map.
        nodes: Positions of the samples along both axes.
        values: The samples.
    """
    x, y = (np.asarray(axis, float) for axis in nodes)
    if chart.spherical:
        around = np.ptp(x) * x.size / (x.size - 1) > 359
        if around:
            x = chart.west + (x - chart.west) % 360
            order = np.argsort(x)
            x, values = x[order], values[order]
        else:
            x = x - 360 * np.floor((x[0] - chart.west) / 360)
    x, y = (edges_around(axis / chart.unit.size) for axis in (x, y))
    return x, y, values


def draw_land(axes: Axes, chart: Map, land: Land) -> None:
    """Draws the cells around nodes that are land.

    Args:
        axes: Where.
        chart: The map.
        land: In three dimensions what is land at every height is drawn.

    Raises:
        ArgumentError: If the land has one dimension.
    """
    mask = np.asarray(land.mask)
    nodes = [np.asarray(axis) for axis in land.coordinates()]
    if mask.ndim == 1:
        raise ArgumentError("`land` must have at least two axes, but has one.")
    flat = mask if mask.ndim == 2 else np.asarray(mask.all(axis=2))
    x, y, mask = on_map(chart, (nodes[0], nodes[1]), flat)
    limits = axes.get_xlim(), axes.get_ylim()
    shown = np.ma.masked_where(~mask.T, np.ones(mask.T.shape))
    for shift in (0, 360) if chart.spherical else (0,):
        # The cell at the seam sticks out of the map on one side.
        axes.pcolormesh(x - shift, y, shown, cmap=_LAND, zorder=0, rasterized=True)
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
