"""Pictures of tracks."""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from .._checks import ArgumentError
from ..particles import Land, ParticleStatus, Tracks
from ..particles._tracks import check_tracks
from ._canvas import add_colour_bar
from ._map_axes import (
    corners,
    draw_land,
    keep_together,
    make_map,
    map_axes,
    readable_time,
)


STATUS_COLOURS = {
    ParticleStatus.ALIVE: "tab:blue",
    ParticleStatus.WAITING: "tab:gray",
    ParticleStatus.ABSORBED: "tab:purple",
    ParticleStatus.EXITED: "tab:green",
    ParticleStatus.STUCK: "tab:brown",
    ParticleStatus.LEFT_DATA: "tab:orange",
    ParticleStatus.LEFT_TIME: "tab:olive",
    ParticleStatus.NOT_FINITE: "tab:red",
}
"""One colour for each status, the same in all pictures."""


def tracks(
    tracks: Tracks,
    colour: str = "time",
    *,
    spherical: bool = False,
    west: float | int = -180,
    land: Land | None = None,
    label: str | None = None,
    most: int = 1000,
    axes: Axes | None = None,
) -> Axes:
    """Draws where particles went, and where they are at the end as dots.

    Lines are cut at the ends of the periodic axes in `tracks.wraps`. The only
    coastlines are those of `land`, such as that of a field read from a file: nothing is
    fetched.

    Args:
        tracks: The tracks; of three dimensions the first two are drawn.
        colour: `"time"`, `"status"`, or the name of a variable along the tracks.
        spherical: Whether positions are longitude and latitude in degrees.
        west: The smallest longitude of the map; 0 for those from 0 to 360. A region
            across it, at most half of the globe, is drawn in one piece.
        land: What to draw as land.
        label: Of the colours, with the unit; the name of the variable if `None`.
        most: If there are more particles than this, evenly picked ones are drawn.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If there is no such variable, positions have one coordinate, or
            none is finite.
    """
    check_tracks(tracks)
    if most < 1:
        raise ArgumentError(f"`most` must be at least 1, but is {most}.")
    count = tracks.status.size
    picked = np.unique(np.linspace(0, count - 1, min(most, count)).astype(int))
    positions = np.asarray(tracks.positions)[:, picked]
    status = np.asarray(tracks.status)[picked]
    chart = make_map(positions, spherical=spherical, west=west, wraps=tracks.wraps)
    chart = keep_together(chart, positions)
    places = chart.places(positions)
    axes = map_axes(chart, *corners(places), axes)
    if land is not None:
        draw_land(axes, chart, land)
    segments, numbers = chart.segments(places)
    width = float(np.clip(30 / np.sqrt(len(picked)), 0.3, 1.2))
    lines = LineCollection(list(segments), linewidths=width, zorder=1)
    if colour == "status":
        shades = [STATUS_COLOURS[ParticleStatus(int(code))] for code in status]
        lines.set_colors([shades[n % len(picked)] for n in numbers])
        axes.add_collection(lines, autolim=False)
        for member in ParticleStatus:
            chosen = status == member
            if chosen.any():
                name = member.name.lower().replace("_", " ")
                text = f"{name} ({int(np.sum(np.asarray(tracks.status) == member))})"
                axes.plot(
                    *places[-1, chosen].T,
                    ".",
                    markersize=3,
                    color=STATUS_COLOURS[member],
                    label=text,
                )
        axes.legend(fontsize="small", loc="best")
    else:
        values, text = _values(tracks, colour, picked, label)
        lines.set_array(values[:-1].reshape(-1)[numbers])
        lines.set_cmap(colormaps["viridis"])
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        lines.set_clim(low, high if high > low else low + 1)
        axes.add_collection(lines, autolim=False)
        axes.plot(*places[-1].T, ".", markersize=2, color="black")
        add_colour_bar(axes, lines, text)
    if len(picked) < count:
        axes.set_title(f"{len(picked)} of {count} tracks", fontsize="medium")
    return axes


def _values(
    tracks: Tracks, colour: str, picked: np.ndarray, label: str | None
) -> tuple[np.ndarray, str]:
    """Returns what colours stand for, `[times, particles]`, and its label."""
    if colour == "time":
        times = np.asarray(tracks.times, float)
        unit = readable_time(times)
        wide = np.broadcast_to(times[:, None] / unit.size, (times.size, len(picked)))
        return wide, label or f"time ({unit.name})"
    if colour not in tracks.variables:
        known = ", ".join(repr(name) for name in ("time", "status", *tracks.variables))
        raise ArgumentError(f"`colour` must be one of {known}, but is {colour!r}.")
    return np.asarray(tracks.variables[colour], float)[:, picked], label or colour
