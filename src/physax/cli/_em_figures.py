"""Pictures of a simulation and of what its monitors saw, as files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.animation import FFMpegWriter

from .. import em, plot
from .._checks import ArgumentError
from .._whole_file import whole_file


SCENE = "simulation.png"
"""The picture of the simulation, before it runs."""


def check_animation(suffix: str | None, sim: em.Simulation) -> None:
    """Refuses moving pictures of nothing, and those this machine cannot write."""
    if suffix == "mp4" and not FFMpegWriter.isAvailable():
        raise ArgumentError(
            "`animation` must be gif, but is mp4: that needs the program ffmpeg, which "
            "is not there. Install it: `apt install ffmpeg`, or `conda install ffmpeg`."
        )
    if suffix is None:
        return
    boxes = [
        sim.place(name)[0].box
        for name, monitor in sim.monitors.items()
        if isinstance(monitor, em.TimeMonitor)
    ]
    if not any(_is_area([high - low for low, high in box]) for box in boxes):
        raise ArgumentError(
            "`animation` must be left out without a `TimeMonitor` on an area in "
            f"`monitors`, but is {suffix!r}. Add one, with `size` above 0 along two "
            "axes, in 3-D 0 along the third."
        )


def draw_simulation(folder: Path, sim: em.Simulation) -> Path:
    """Draws permittivity, sources, monitors and faces."""
    return _save(plot.simulation(sim), folder / SCENE)


def draw_results(
    folder: Path,
    sim: em.Simulation,
    monitors: dict[str, Any],
    animation: str | None,
) -> list[Path]:
    """Draws what each monitor saw, in files that begin with its name.

    Args:
        folder: Where the pictures go.
        sim: The simulation.
        monitors: The results by name.
        animation: The suffix of moving pictures; none if `None`.

    Returns:
        The files.
    """
    made = []
    outline = sim if sim.grid.ndim == 2 else None
    for name, result in monitors.items():
        if isinstance(
            result,
            em.SpectralFlux | em.ModeAmplitudes | em.SpectralForce | em.Emission,
        ):
            made.append(_save(plot.spectrum(result), folder / f"{name}.png"))
        elif isinstance(result, em.EnergySeries):
            made.append(_save(plot.time_series(result), folder / f"{name}.png"))
        elif isinstance(result, em.SpectralFields):
            made += _fields(folder, name, result, outline)
        elif isinstance(result, em.TimeSeries):
            made.append(_save(plot.time_series(result), folder / f"{name}.png"))
            first = next(iter(result.values))
            shape = np.shape(result.values[first])[1:]
            if animation is not None and _is_area(shape):
                path = folder / f"{name}_{first}.{animation}"
                made.append(plot.animate(result, first, path, outline=outline))
    return made


def _is_area(shape: Sequence[int]) -> bool:
    """Tells whether samples of a shape lie along two axes."""
    return sum(n > 1 for n in shape) == 2


def _fields(
    folder: Path,
    name: str,
    result: em.SpectralFields,
    outline: em.Simulation | None,
) -> list[Path]:
    """Draws each component at the median frequency, and spectra where it is a point."""
    order = np.argsort(np.asarray(result.frequencies))
    made, middle = [], int(order[(len(order) - 1) // 2])
    for component in result.values:
        path = folder / f"{name}_{component}.png"
        shape = np.shape(result.values[component])[1:]
        if max(shape) > 1:
            over = outline if _is_area(shape) else None
            made.append(
                _save(plot.field(result, component, middle, outline=over), path)
            )
    if not made or len(result.frequencies) > 1:
        made.append(_save(plot.spectrum(result), folder / f"{name}.png"))
    return made


def _save(axes, path: Path) -> Path:
    # Nothing in these pictures gains from the slower exact simplification.
    with mpl.rc_context({"path.simplify_threshold": 1.0}), whole_file(path) as file:
        axes.get_figure(root=True).savefig(file, format="png", dpi=110)
    return path
