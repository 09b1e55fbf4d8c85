"""Moving pictures of a field."""

import os
from pathlib import Path

import numpy as np

from .._checks import ArgumentError, whole
from ..em import Simulation, TimeSeries
from ._canvas import choose
from ._field import PARTS, field, samples_of
from ._movie_writer import movie_writer, whole_movie
from ._samples import cut


def animate(
    series: TimeSeries,
    component: str | None,
    path: str | os.PathLike,
    *,
    part: str = "real",
    plane: tuple[str, float | int] | None = None,
    outline: Simulation | None = None,
    every: int = 1,
    frames_per_second: int = 15,
    dpi: float | int = 100,
) -> Path:
    """Writes the snapshots of a `TimeMonitor` as a moving picture, GIF or MP4.

    The file is written whole or not at all.
    All frames have the same colours, so that growth and decay are seen.

    Args:
        series: The snapshots, on an area or a volume. Those of a `simulate` that
            `Decay` stopped end in zeros, without which `em.recorded` returns them.
        component: For example `"Ez"`; the first one if `None`.
        path: The file, `*.gif` or `*.mp4`. MP4 needs the program ffmpeg.
        part: As in `field`.
        plane: As in `field`.
        outline: As in `field`.
        every: Draws only one in so many snapshots.
        frames_per_second: Speed.
        dpi: Resolution in pixels per inch; the picture is 6.4 inches wide.

    Returns:
        The file.

    Raises:
        ArgumentError: If the suffix is another, ffmpeg is needed and not found, the
            samples do not lie on an area, or an argument is out of range.
        FileNotFoundError: If there is no folder for the file.
    """
    path = Path(path)
    every = whole(every, "every")
    writer = movie_writer(path, frames_per_second, dpi)
    style = PARTS[choose("part", part, tuple(PARTS))]
    first = samples_of(series, component, 0)
    _, left = cut(first.values, first.points, plane, first.axes)
    if len(left) != 2:
        raise ArgumentError(
            f"`series` must lie on an area, but extends along {tuple(left)} only."
        )
    axes = field(series, component, 0, part=part, plane=plane, outline=outline)
    figure = axes.get_figure(root=True)
    assert figure is not None
    (image,) = axes.images or axes.collections[:1]
    name = next(iter(series.values)) if component is None else component
    image.set_clim(*style.limits(style.of(np.asarray(series.values[name]))))
    # The layout of the first frame holds: others must not shift.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    with whole_movie(writer, figure, path, dpi):
        for index in range(0, len(series.values[name]), every):
            samples = samples_of(series, name, index)
            values, _ = cut(
                style.of(samples.values), samples.points, plane, samples.axes
            )
            image.set_array(values.T)
            axes.set_title(samples.title, fontsize="medium")
            writer.grab_frame()
    return path
