"""Polar diagrams of far fields."""

import numpy as np
from jaxtyping import ArrayLike, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from .._checks import ArgumentError, instance
from ..em import FarField


# Below the strongest direction; what is weaker lies at the centre.
_LOWEST_DB = -40.0


def far_field(
    far: FarField,
    frequency: int = 0,
    *,
    angles: Float[ArrayLike, " directions"] | None = None,
    decibel: bool = False,
    axes: Axes | None = None,
) -> Axes:
    """Draws the intensity of a far field over angle.

    Args:
        far: Along one row of directions.
        frequency: Number of the frequency.
        angles: In radians; in 2-D those of the directions if `None`, needed in 3-D.
        decibel: Whether in decibel below the largest, down to -40.
        axes: Where to draw, with the projection "polar"; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If the directions are not one row, or `angles` are missing or of
            another number, the axes are not polar, or `far` is something else.
    """
    instance(far, "far", FarField, "Make one by `em.far_field`.")
    units, power = np.asarray(far.directions), np.asarray(far.intensity)[frequency]
    if power.ndim != 1:
        raise ArgumentError(
            "`far` must have one row of directions to be drawn, but their shape is "
            f"{power.shape}. Project along a circle."
        )
    flat = units.shape[-1] == 2
    if angles is None and not flat:
        raise ArgumentError(
            "`angles` must be given in 3-D, such as the theta or the phi of the "
            "directions, but is None."
        )
    turn = np.arctan2(units[:, 1], units[:, 0]) if angles is None else angles
    turn = np.asarray(turn)
    if turn.shape != power.shape:
        raise ArgumentError(
            f"`angles` must have one entry for each of the {power.size} directions, "
            f"but have shape {turn.shape}."
        )
    if axes is None:
        figure = Figure(figsize=(5.0, 5.2), dpi=150, layout="constrained")
        axes = figure.add_subplot(projection="polar")
    if not isinstance(axes, PolarAxes):
        raise ArgumentError(
            f'`axes` must have the projection "polar", but are {type(axes).__name__}.'
        )
    if decibel:
        share = power / np.max(power)
        power = 10 * np.log10(np.maximum(share, 10 ** (_LOWEST_DB / 10)))
        axes.set_rlim(_LOWEST_DB, 0.0)
    else:
        axes.set_rlim(0.0, 1.05 * np.max(power))
    axes.plot(turn, power)
    axes.set_xlabel("angle (degrees)" if angles is not None else "φ (degrees)")
    unit = "W fs²/(m rad)" if flat else "W fs²/sr"
    axes.set_title(f"Intensity ({'dB below the largest' if decibel else unit})")
    return axes
