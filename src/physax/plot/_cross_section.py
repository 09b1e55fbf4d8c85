"""Profiles of the modes of a cross-section."""

import numpy as np
from matplotlib.axes import Axes

from .._checks import ArgumentError, instance
from ..em import CrossSectionModes
from ._canvas import add_colour_bar, choose, new_axes
from ._samples import aspect_of, draw_image, edges_around


def cross_section_mode(
    modes: CrossSectionModes,
    index: int = 0,
    component: str | None = None,
    *,
    axes: Axes | None = None,
) -> Axes:
    """Draws a field component of one mode that carries 1 W over the cross-section.

    Args:
        modes: From `cross_section_modes`.
        index: Which mode, counted from 0.
        component: `"Ex"` to `"Hz"`; the larger of Ex and Ey if `None`. For Ez and Hz,
            which are a quarter of a period late, the imaginary part is drawn.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes; their title is the effective index.

    Raises:
        ArgumentError: If there is no such mode or component, the section is one cell
            wide, or these are other modes.
    """
    instance(modes, "modes", CrossSectionModes, "Draw those of `slab_mode` by `mode`.")
    count = len(modes.effective_index)
    if not -count <= index < count:
        raise ArgumentError(
            f"`index` must be one of {count} modes, counted from 0, but is {index}."
        )
    if component is None:
        component = "Ex" if float(modes.x_fraction[index]) >= 0.5 else "Ey"
    name = choose("component", component, tuple(modes.fields))
    values = np.asarray(modes.fields[name][index])
    if min(values.shape) < 2:
        raise ArgumentError(
            f"`modes` must have at least 2 cells a side, but {name} has the shape "
            f"{values.shape}."
        )
    along = name[1] == "z"
    values = np.imag(values) if along else np.real(values)
    points = (np.asarray(x) for x in modes.coordinates[name])
    borders = {axis: edges_around(x) for axis, x in zip("xy", points, strict=True)}
    axes = new_axes(axes, aspect_of(borders))
    largest = float(np.max(np.abs(values)))
    image = draw_image(
        axes, values, borders, cmap="RdBu_r", vmin=-largest, vmax=largest
    )
    shown = name if name[0] == "E" else f"η₀{name}"
    add_colour_bar(axes, image, f"{'Im' if along else 'Re'} {shown} (V/m)")
    effective = complex(modes.effective_index[index])
    loss = f" {effective.imag:+.2e}i" if effective.imag else ""
    guided = "" if bool(modes.guided[index]) else ", not guided"
    title = f"mode {index % count + 1}: index {effective.real:.5f}{loss}{guided}"
    axes.set_title(title, fontsize="medium")
    return axes
