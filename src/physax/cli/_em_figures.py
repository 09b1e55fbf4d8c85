"""Pictures of a simulation and of what its monitors saw, as files."""

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


def check_animation(suffix: str | None) -> None:
    """Refuses moving pictures that this machine cannot write."""
    if suffix == "mp4" and not FFMpegWriter.isAvailable():
        raise ArgumentError(
            "`animation` must be gif, but is mp4: that needs the program ffmpeg, which "
            "is not there. Install it: `apt install ffmpeg`, or `conda install ffmpeg`."
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
            if animation is not None and len(_extent(result, first)) == 2:
                path = folder / f"{name}_{first}.{animation}"
                made.append(plot.animate(result, first, path, outline=outline))
    return made


def _extent(result: em.SpectralFields | em.TimeSeries, component: str) -> list[int]:
    """Returns the numbers of samples along the axes that have several."""
    return [n for n in np.shape(result.values[component])[1:] if n > 1]


def _fields(
    folder: Path,
    name: str,
    result: em.SpectralFields,
    outline: em.Simulation | None,
) -> list[Path]:
    """Draws each component at the middle frequency, and spectra where it is a point."""
    made, middle = [], len(result.frequencies) // 2
    for component in result.values:
        path = folder / f"{name}_{component}.png"
        extent = _extent(result, component)
        if extent:
            over = outline if len(extent) == 2 else None
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
