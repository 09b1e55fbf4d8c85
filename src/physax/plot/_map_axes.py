"""Axes for places in a plane or on a globe, with land."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import ListedColormap
from matplotlib.ticker import FuncFormatter, MultipleLocator

from .._checks import ArgumentError, instance, real, single
from ..particles import Land, wrap_globe
from ._canvas import Unit, is_even, new_axes, readable_unit
from ._samples import edges_around


_TIMES = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"))
_LAND = ListedColormap(["#c9c2b0"])
# What longitudes in float32 are known to, in degrees.
_ROUNDING = 1e-4
_ENDLESS = np.array([[-np.inf, -np.inf], [np.inf, np.inf]])


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
        wraps: The low and the high end of both axes, as places, where positions jump
            from one to the other; infinite where they do not.
    """

    spherical: bool
    west: float
    unit: Unit
    wraps: np.ndarray = _ENDLESS

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
            the globe are drawn at both edges, those over the end of a periodic axis are
            cut there.
        """
        pairs = np.stack([places[:-1], places[1:]], axis=2).reshape(-1, 2, 2)
        numbers = np.arange(len(pairs))
        if self.spherical:
            return _at_both_edges(pairs, numbers, float(np.diff(self.wraps[:, 0])[0]))
        for axis in range(2):
            pairs[:, 1, axis] -= _jumps(pairs, axis, np.diff(self.wraps[:, axis])[0])
        for axis, (low, high) in enumerate(self.wraps.T):
            if np.isfinite(high - low):
                pairs, numbers = _cut(pairs, numbers, axis, low, high)
        return pairs, numbers


def _jumps(pairs: np.ndarray, axis: int, period: float) -> np.ndarray:
    """Returns by how many whole periods, as a length, segments are too long."""
    if not np.isfinite(period):
        return np.zeros(len(pairs))
    return period * np.round((pairs[:, 1, axis] - pairs[:, 0, axis]) / period)


def _at_both_edges(pairs: np.ndarray, numbers: np.ndarray, period: float):
    """Draws segments over the edge at both edges: one leaves, one comes in."""
    jump = _jumps(pairs, 0, 360.0)
    leaving = pairs.copy()
    leaving[:, 1, 0] -= jump
    shift = jump + _jumps(leaving, 0, period)
    leaving[:, 1, 0] = pairs[:, 1, 0] - shift
    over = shift != 0
    coming = pairs[over].copy()
    coming[:, 0, 0] += shift[over]
    return np.concatenate([leaving, coming]), np.append(numbers, numbers[over])


def _cut(pairs: np.ndarray, numbers: np.ndarray, axis: int, low: float, high: float):
    """Cuts segments that end beyond the end of an axis, and goes on at the other."""
    size = high - low
    # Beyond the end as a whole are pieces that another axis has cut off.
    begin = pairs[:, 0, axis]
    beyond = (begin > high).astype(float) - (begin < low)
    pairs = pairs.copy()
    pairs[..., axis] -= size * beyond[:, None]
    goal = pairs[:, 1, axis]
    over = (goal > high) | (goal < low)
    start, stop = pairs[over, 0], pairs[over, 1]
    up = stop[:, axis] > high
    end = np.where(up, high, low)
    part = (end - start[:, axis]) / (stop - start)[:, axis]
    border = start + part[:, None] * (stop - start)
    border[:, axis] = end
    leaving, coming = pairs.copy(), np.stack([border, stop], axis=1)
    leaving[over, 1] = border
    coming[..., axis] -= np.where(up, size, -size)[:, None]
    return np.concatenate([leaving, coming]), np.append(numbers, numbers[over])


def make_map(
    positions: np.ndarray, *, spherical: bool, west: Any, wraps: Any = None
) -> Map:
    """Makes a map for positions, `[..., ndim]`.

    Args:
        positions: The positions.
        spherical: Whether they are longitude and latitude in degrees.
        west: The smallest longitude.
        wraps: As of `Tracks`.

    Raises:
        ArgumentError: If they have fewer than two coordinates, or `west` is no
            longitude.
    """
    single(real(west, "west"), "west")
    west = float(west)
    if not abs(west) <= 360:
        raise ArgumentError(
            f"`west` must be a longitude from -360 to 360, but is {west:g}."
        )
    if positions.shape[-1] < 2:
        raise ArgumentError(
            "`tracks` must have at least two coordinates to be drawn, but have "
            f"{positions.shape[-1]}."
        )
    unit = Unit(1.0, "") if spherical else readable_unit(positions[..., :2], "m")
    ends = _ENDLESS if wraps is None else np.asarray(wraps, float)[:, :2] / unit.size
    return Map(spherical, west, unit, ends)


def keep_together(chart: Map, positions: np.ndarray) -> Map:
    """Returns a map that shows a region over the edge of the globe in one piece.

    Args:
        chart: The map.
        positions: All that is drawn. Where it needs half of the globe at most, the
            edge goes to the middle of what is left.
    """
    if not chart.spherical:
        return chart
    x = chart.places(positions)[..., 0]
    x = np.unique(x[np.isfinite(x)])
    gaps = np.diff(x)
    if not gaps.size or gaps.max() < 180:
        return chart
    widest = int(gaps.argmax())
    return chart._replace(west=float(x[widest : widest + 2].mean()))


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
    even = is_even(ratio)
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
    # A region may go on beyond the end of the map: labels are those of its places.
    return np.maximum(low, [low[0], -90.0]), np.minimum(high, [high[0], 90.0])


def corners(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the corners of a box around places, a little larger.

    Raises:
        ArgumentError: If no place is finite.
    """
    flat = places.reshape(-1, 2)
    flat = flat[np.isfinite(flat).all(axis=1)]
    if not flat.size:
        raise ArgumentError(
            "`tracks` must have a finite position to be drawn, but all of "
            f"{places.shape[0]} times of {places.shape[1]} particles are NaN or "
            "infinite."
        )
    low, high = flat.min(axis=0), flat.max(axis=0)
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
    chart: Map, edges: Sequence[np.ndarray], values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns borders of cells and values `[nx, ny]`, in the order of the map.

    Args:
        chart: The map.
        edges: Borders of the cells along both axes.
        values: One for each cell.
    """
    x, y = (np.asarray(axis, float) for axis in edges)
    if chart.spherical:
        # Cells that go around the globe begin in the west; others stay together.
        around = abs(x[-1] - x[0] - 360) < 1e-3
        begin = x[:-1] if around else (x[:1] + x[1:2]) / 2
        turns = np.floor((begin - chart.west + _ROUNDING) / 360)
        if around:
            begin = begin - 360 * turns
            order = np.argsort(begin)
            x = np.append(begin[order], begin[order[0]] + 360)
            values = values[order]
        else:
            x = x - 360 * turns
    return x / chart.unit.size, y / chart.unit.size, values


def draw_cells(
    axes: Axes,
    chart: Map,
    cells: tuple[np.ndarray, np.ndarray, np.ndarray],
    **options: Any,
) -> list[QuadMesh]:
    """Draws cells, on a globe in each turn that reaches into the axes.

    Args:
        axes: Where; limits stay.
        chart: The map.
        cells: Borders and values, as of `on_map`.
        **options: Passed on to matplotlib.

    Returns:
        The images, where `on_map` puts the cells first; none if no cell is in the axes.
    """
    x, y, values = cells
    limits = axes.get_xlim(), axes.get_ylim()
    turns = [0]
    if chart.spherical:
        low, high = limits[0]
        first = np.ceil((low - x.max() + _ROUNDING) / 360)
        last = np.floor((high - x.min() - _ROUNDING) / 360)
        turns = sorted(range(int(first), int(last) + 1), key=abs)
    images = [
        axes.pcolormesh(x + 360 * turn, y, values.T, rasterized=True, **options)
        for turn in turns
    ]
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    return images


def draw_land(axes: Axes, chart: Map, land: Any) -> None:
    """Draws the cells around nodes that are land.

    Args:
        axes: Where.
        chart: The map.
        land: In three dimensions what is land at every height is drawn.

    Raises:
        ArgumentError: If it is no `Land`, or has one dimension.
    """
    instance(land, "land", Land, "Make one by `fill_land` or `Land(mask, axes)`.")
    mask = np.asarray(land.mask)
    nodes = [np.asarray(axis) for axis in land.coordinates()]
    if mask.ndim == 1:
        raise ArgumentError("`land` must have at least two axes, but has one.")
    flat = mask if mask.ndim == 2 else np.asarray(mask.all(axis=2))
    cells = on_map(chart, [edges_around(axis) for axis in nodes[:2]], flat)
    shown = np.ma.masked_where(~cells[2], np.ones(flat.shape))
    draw_cells(axes, chart, (*cells[:2], shown), cmap=_LAND, zorder=0)
