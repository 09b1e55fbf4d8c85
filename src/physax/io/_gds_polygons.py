"""Refuses polygons of a layout whose inside is not what was drawn."""

from pathlib import Path
from typing import Any

from ._gds_records import GDSError


def check_polygons(
    gdstk: Any, library: Any, top: Any, wanted: set[tuple[int, int]], path: Path
):
    """Refuses polygons that have no area or cross themselves.

    The shoelace formula counts what an outline runs around twice twice, and what it
    runs around backwards negative. So a polygon crosses itself if this is not the area
    of what it covers, but for the rounding of its corners to the raster of the file.
    Outlines that touch themselves, as those with a cut to a hole do, pass.

    Args:
        gdstk: The package.
        library: The layout.
        top: Its cell. Cells it refers to are looked at too.
        wanted: Pairs (layer, datatype) to look at.
        path: The file, for the message.

    Raises:
        GDSError: Names the cell, the layer, the place and what is wrong.
    """
    precision = library.precision / library.unit
    for cell in (top, *top.dependencies(True)):
        for shape in cell.polygons:
            if (shape.layer, shape.datatype) not in wanted:
                continue
            united = gdstk.boolean(shape, [], "or", precision=precision)
            covered = sum(piece.area() for piece in united)
            crosses = abs(shape.area() - covered) > shape.perimeter() * precision
            if covered == 0 or crosses:
                what = "crosses itself" if crosses else "has no area"
                (x, y), (right, top_) = shape.bounding_box()
                corners = [f"{v * library.unit:.4g}" for v in (x, y, right, top_)]
                raise GDSError(
                    f"A polygon on layer ({shape.layer}, {shape.datatype}) in cell "
                    f"{cell.name!r} of {path} {what}: the one from "
                    f"({corners[0]}, {corners[1]}) to ({corners[2]}, {corners[3]}) m. "
                    "Fix or delete it in the layout."
                )
