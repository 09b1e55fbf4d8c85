"""Takes the holes of a layout's polygons apart from what is around them."""

from typing import Any

import numpy as np


def separate_holes(
    shapely: Any, outlines: list[np.ndarray], raster: float
) -> list[np.ndarray]:
    """Returns outlines without the cuts by which a layout joins holes to them.

    Sides that slope would open a cut. Corners within a step of the raster from the line
    between their neighbours are left out, for edges of its length vanish on a slope.

    Args:
        shapely: The package.
        outlines: Closed, without crossings and overlaps.
        raster: Precision of the layout.

    Returns:
        Outlines that run counterclockwise, and clockwise those of holes.
    """
    rings = [shapely.Polygon(points) for points in outlines]
    whole = shapely.make_valid(rings, method="structure", keep_collapsed=False)
    parts = shapely.get_parts(shapely.simplify(whole, raster))
    loops = []
    for part in shapely.orient_polygons(parts):
        if not part.is_empty:
            loops += [part.exterior, *part.interiors]
    return [np.asarray(loop.coords)[:-1] for loop in loops]
