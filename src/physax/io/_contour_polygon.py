"""Contours of a design as a shape that can be rasterised."""

import math

import numpy as np
from jaxtyping import ArrayLike

from .._checks import ArgumentError
from ..design import Contours
from ..em import Polygon


def contour_polygon(
    contours: Contours, *, low: ArrayLike = -math.inf, high: ArrayLike = math.inf
) -> Polygon:
    """Makes the shape that contours enclose, to simulate what is exported.

    Args:
        contours: The polygons of a flat design.
        low: Lower end along z in metres, or -inf.
        high: Upper end along z in metres, or inf.

    Returns:
        A prism over all parts, without their holes.

    Raises:
        ArgumentError: If there is no part, or `high` is not above `low`.
    """
    loops = [loop for part in contours.parts for loop in part.loops]
    if not loops:
        raise ArgumentError("`contours` must have at least one part, but has none.")
    return Polygon(
        np.concatenate(loops),
        low=low,  # pyright: ignore[reportArgumentType]
        high=high,  # pyright: ignore[reportArgumentType]
        outlines=tuple(len(loop) for loop in loops),
    )
