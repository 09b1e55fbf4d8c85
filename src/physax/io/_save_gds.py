"""Writes designs as GDSII files."""

import math
import os
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import ArgumentError
from .._whole_file import whole_file
from ..design import Contours, SolidPart
from ..units import MICRO, NANO
from ._errors import PhysaxFileError
from ._gds import MissingPackageError
from ._gds_records import GDSError, check_records


# As many points as one record of the file can hold.
_MAX_POINTS = 8190
_MAX_NUMBER = 2**15 - 1
_MAX_COORDINATE = 2**31 - 1
# A fixed date: the same design gives the same bytes.
_EPOCH = datetime(1980, 1, 1)
_CELL_NAME = re.compile(r"[A-Za-z0-9_?$]{1,32}")


def save_gds(
    path: str | os.PathLike,
    layers: Mapping[tuple[int, int], Contours],
    *,
    cell: str = "DESIGN",
    unit: float | int = MICRO,
    precision: float | int = NANO,
) -> None:
    """Writes the contours of designs as a layout of one cell.

    GDSII knows no holes: a polygon with holes is written with cuts from its outline to
    them, which `read_gds` and layout editors close again. The file appears whole or
    not at all, and the same contours give the same bytes. Needs gdstk, which
    `pip install physax[photonics]` brings.

    Args:
        path: The file, by custom `*.gds`.
        layers: For each pair (layer, datatype) its polygons.
        cell: Name of the cell, of up to 32 letters, digits, `_`, `?` and `$`.
        unit: What layout editors show as 1, in metres.
        precision: The raster in metres to which corners are rounded.

    Raises:
        MissingPackageError: If gdstk is not installed.
        ArgumentError: If a layer has no polygon or a bad number, one of its polygons
            has no area once rounded, it is too large for the raster, or a name or unit
            is not valid.
        OSError: If the file cannot be written.
    """
    try:
        import gdstk
    except ImportError as error:
        raise MissingPackageError(
            "Writing GDSII needs the package gdstk: pip install 'physax[photonics]'."
        ) from error

    _check_file(layers, cell, unit, precision)
    library = gdstk.Library(unit=unit, precision=precision)
    drawn = library.new_cell(cell)
    for key, contours in layers.items():
        for part in contours.parts:
            drawn.add(*_polygons(gdstk, part, key, unit, precision))
    with whole_file(path) as file:
        library.write_gds(file.name, max_points=_MAX_POINTS, timestamp=_EPOCH)
        try:
            check_records(Path(file.name), _MAX_COORDINATE)
        except GDSError as error:
            # The package does not tell when the disk is full.
            raise PhysaxFileError(
                path, "It could not be written completely."
            ) from error


def _check_file(layers, cell: str, unit: float | int, precision: float | int):
    if not layers:
        raise ArgumentError(
            "`layers` must name at least one (layer, datatype), but is empty."
        )
    for key, contours in layers.items():
        if not all(0 <= number <= _MAX_NUMBER for number in key):
            raise ArgumentError(
                "`layers` must have layers and datatypes from 0 to "
                f"{_MAX_NUMBER}, but has {key}."
            )
        if not contours.parts:
            raise ArgumentError(
                f"`layers` must have polygons on each layer, but {key} has none. Is "
                "the density above the level anywhere?"
            )
    if not _CELL_NAME.fullmatch(cell):
        raise ArgumentError(
            f"`cell` must be 1 to 32 letters, digits, '_', '?' or '$', but is {cell!r}."
        )
    if not 0 < precision <= unit < math.inf:
        raise ArgumentError(
            f"`precision` must be positive and at most `unit` ({unit:g} m), but is "
            f"{precision:g} m."
        )


def _polygons(
    gdstk, part: SolidPart, key: tuple[int, int], unit, precision
) -> list[Any]:
    """One part as polygons without holes, in the unit of the file."""
    loops = [_rounded(gdstk, loop, key, unit, precision) for loop in part.loops]
    layer, datatype = key
    pieces = gdstk.boolean(
        loops[:1],
        loops[1:],
        "not" if len(loops) > 1 else "or",
        precision=precision / unit,
        layer=layer,
        datatype=datatype,
    )
    if not sum(piece.area() for piece in pieces) > 0:
        raise _without_area(part.outline, key, precision)
    return pieces


def _rounded(gdstk, loop: np.ndarray, key: tuple[int, int], unit, precision) -> Any:
    steps = np.rint(loop / precision)
    if np.abs(steps).max() > _MAX_COORDINATE:
        raise ArgumentError(
            f"`precision` must be at least {np.abs(loop).max() / _MAX_COORDINATE:.3g} "
            f"m for polygons as far out as {np.abs(loop).max():g} m, but is "
            f"{precision:g} m."
        )
    polygon = gdstk.Polygon(steps * (precision / unit))
    # The least area on the raster is half a square.
    if polygon.area() < 0.25 * (precision / unit) ** 2:
        raise _without_area(loop, key, precision)
    return polygon


def _without_area(loop: np.ndarray, key: tuple[int, int], precision) -> ArgumentError:
    x, y = loop[0]
    return ArgumentError(
        f"Polygons must have an area, but one on layer {key} near ({x:g}, {y:g}) m has "
        f"none once rounded to `precision` = {precision:g} m. Take a finer one, or "
        "leave such polygons out with `least_area` of `design.contours`."
    )
