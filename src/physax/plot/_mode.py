"""Profiles of slab modes."""

import numpy as np
from jaxtyping import ArrayLike, Float
from matplotlib.axes import Axes

from .._checks import ArgumentError, instance
from ..em import SlabMode
from ._canvas import new_axes, readable_unit
from ._curves import style_grid


def mode(
    mode: SlabMode,
    coordinates: Float[ArrayLike, " points"],
    *,
    axis: str = "y",
    axes: Axes | None = None,
) -> Axes:
    """Draws the transverse fields of a slab mode that carries 1 W/m.

    Args:
        mode: From `slab_mode`.
        coordinates: Positions of its points in metres.
        axis: Name of the axis that the points lie on.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes; their title is the effective index.

    Raises:
        ArgumentError: If the points are not as many as the mode has, or it is
            another kind of mode.
    """
    instance(
        mode,
        "mode",
        SlabMode,
        "Draw those of `cross_section_modes` by `cross_section_mode`.",
    )
    points = np.asarray(coordinates)
    if points.shape != np.shape(mode.electric):
        raise ArgumentError(
            f"`coordinates` must have the shape {np.shape(mode.electric)} of the mode, "
            f"but has {points.shape}."
        )
    axes = new_axes(axes)
    unit = readable_unit(points, "m")
    axes.plot(points / unit.size, np.asarray(mode.electric), label="E")
    axes.plot(points / unit.size, np.asarray(mode.magnetic), "--", label="η₀H")
    axes.set_xlabel(f"{axis} ({unit.name})")
    axes.set_ylabel("transverse field (V/m)")
    guided = "" if bool(mode.guided) else ", not guided"
    index = float(mode.effective_index)
    axes.set_title(f"effective index {index:.5f}{guided}", fontsize="medium")
    style_grid(axes)
    axes.legend(fontsize="small")
    return axes
