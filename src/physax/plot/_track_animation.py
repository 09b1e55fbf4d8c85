"""Moving pictures of particles."""

import os
from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection

from .._checks import whole
from ..particles import Land, Tracks
from ..particles._tracks import check_tracks
from ._map_axes import (
    corners,
    draw_land,
    keep_together,
    make_map,
    map_axes,
    readable_time,
)
from ._movie_writer import movie_writer, whole_movie
from ._tracks import STATUS_COLOURS


def animate_tracks(
    tracks: Tracks,
    path: str | os.PathLike,
    *,
    spherical: bool = False,
    west: float | int = -180,
    land: Land | None = None,
    tail: int = 5,
    every: int = 1,
    frames_per_second: int = 15,
    dpi: float | int = 100,
) -> Path:
    """Writes particles that move, with a tail of where they were, as GIF or MP4.

    What is waiting for its release is not drawn, what has ended takes the colour of its
    status. The file is written whole or not at all.

    Args:
        tracks: The tracks; of three dimensions the first two are drawn.
        path: The file, `*.gif` or `*.mp4`. MP4 needs the program ffmpeg.
        spherical: Whether positions are longitude and latitude in degrees.
        west: The smallest longitude of the map, as for `tracks`.
        land: What to draw as land.
        tail: Recorded times that the tail goes back; 0 for none.
        every: Draws only one in so many recorded times.
        frames_per_second: Speed.
        dpi: Resolution in pixels per inch; the picture is 6.4 inches wide.

    Returns:
        The file.

    Raises:
        ArgumentError: If the suffix is another, ffmpeg is needed and not found, or an
            argument is of the wrong kind or out of range.
        FileNotFoundError: If there is no folder for the file.
    """
    path = Path(path)
    check_tracks(tracks)
    every, tail = whole(every, "every"), whole(tail, "tail", 0)
    writer = movie_writer(path, frames_per_second, dpi)
    positions = np.asarray(tracks.positions)
    chart = make_map(positions, spherical=spherical, west=west, wraps=tracks.wraps)
    chart = keep_together(chart, positions)
    places = chart.places(positions)
    axes = map_axes(chart, *corners(places), None)
    if land is not None:
        draw_land(axes, chart, land)
    times = np.asarray(tracks.times, float)
    unit = readable_time(times)
    moving, waiting = np.asarray(tracks.moving()), np.asarray(tracks.waiting())
    colours = np.array([STATUS_COLOURS[s] for s in STATUS_COLOURS])
    final = colours[np.asarray(tracks.status)]
    lines = LineCollection([], linewidths=0.6, colors="tab:blue", alpha=0.6)
    axes.add_collection(lines, autolim=False)
    dots = axes.scatter(*places[0].T, s=6, c="tab:blue", zorder=2)
    figure = axes.get_figure(root=True)
    assert figure is not None
    axes.set_title(" ", fontsize="medium")
    # The layout of the first frame holds: others must not shift.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    with whole_movie(writer, figure, path, dpi):
        for row in range(0, len(times), every):
            shown = ~waiting[row]
            begin = max(row - tail, 0)
            lines.set_segments(list(chart.segments(places[begin : row + 1, shown])[0]))
            dots.set_offsets(places[row, shown])
            shades = np.where(moving[row], "tab:blue", final)[shown]
            dots.set_facecolor(list(shades))
            axes.set_title(
                f"{times[row] / unit.size:.4g} {unit.name}", fontsize="medium"
            )
            writer.grab_frame()
    return path
