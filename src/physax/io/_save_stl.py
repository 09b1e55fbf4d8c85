"""Writes designs as solids in STL files."""

import os
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from .._checks import ArgumentError
from .._whole_file import whole_file
from ..design import Contours, SolidPart
from ..units import MICRO
from ._gds import MissingPackageError


_HEADER_BYTES = 80
_TRIANGLE = np.dtype(
    [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]
)

Triangles = Float[np.ndarray, "_ 3 3"]


def save_stl(
    path: str | os.PathLike,
    layers: Sequence[tuple[Contours, float | int, float | int]],
    *,
    unit: float | int = MICRO,
) -> None:
    """Writes contours with a height as closed solids, in binary STL.

    Each part of each layer is a prism: two caps and upright walls, normals outward,
    every edge shared by two triangles. Layers that touch are solids of their own.
    Corners are rounded to float32, the precision of the format. The file appears whole
    or not at all. Needs shapely 2.1 or newer, which `pip install physax[photonics]`
    brings.

    Args:
        path: The file, by custom `*.stl`.
        layers: For each layer its polygons, and its lower and upper end along z in
            metres.
        unit: The length of 1 in the file, in metres: STL has no units.

    Raises:
        MissingPackageError: If shapely is missing or too old.
        ArgumentError: If there is no polygon, a layer has no height, `unit` is not
            positive, or polygons meet once rounded to float32.
        OSError: If the file cannot be written.
    """
    if not 0 < unit < np.inf:
        raise ArgumentError(f"`unit` must be positive and finite, but is {unit:g}.")
    prisms = [
        _prism(part, *_ends(low, high, unit))
        for contours, low, high in layers
        for part in _in_single_precision(contours, unit).parts
    ]
    if not prisms:
        raise ArgumentError("`layers` must have at least one polygon, but has none.")
    corners = np.concatenate(prisms)
    records = np.zeros(len(corners), _TRIANGLE)
    records["corners"] = corners
    records["normal"] = _normals(corners)
    # Readers take a file that starts with "solid" for one of text.
    header = f"binary STL, unit {unit:g} m".encode()
    with whole_file(path) as file:
        file.write(header.ljust(_HEADER_BYTES)[:_HEADER_BYTES])
        file.write(np.uint32(len(records)).astype("<u4").tobytes())
        file.write(records.tobytes())


def _ends(
    low: float | int, high: float | int, unit: float | int
) -> tuple[float, float]:
    bottom, top = float(np.float32(low / unit)), float(np.float32(high / unit))
    if not (top > bottom and np.isfinite([bottom, top]).all()):
        raise ArgumentError(
            "The upper end of each entry of `layers` must be above its lower end, both "
            f"finite in float32, but they are {high:g} and {low:g} m."
        )
    return bottom, top


def _in_single_precision(contours: Contours, unit: float | int) -> Contours:
    """The same polygons in the unit of the file, with the rounding of the file."""

    def rounded(loop: np.ndarray) -> np.ndarray:
        points = (loop / unit).astype(np.float32).astype(float)
        return points[np.any(points != np.roll(points, 1, axis=0), axis=1)]

    try:
        return Contours(
            [
                SolidPart(rounded(part.outline), tuple(map(rounded, part.holes)))
                for part in contours.parts
            ]
        )
    except ArgumentError as error:
        raise ArgumentError(
            "The polygons of `layers` must stay valid when rounded to float32, but do "
            f"not: {error} Move the origin nearer to them, or leave tiny ones out."
        ) from error


def _prism(part: SolidPart, bottom: float, top: float) -> Triangles:
    flat = _triangulated(part)
    walls = [_walls(loop, bottom, top) for loop in part.loops]
    return np.concatenate([_at(flat[:, ::-1], bottom), _at(flat, top), *walls])


def _triangulated(part: SolidPart) -> Float[np.ndarray, "_ 3 2"]:
    """Cuts a part into triangles with the corners that it has, counterclockwise."""
    try:
        from shapely import Polygon, constrained_delaunay_triangles, get_coordinates
    except ImportError as error:
        raise MissingPackageError(
            "Writing STL needs the package shapely, 2.1 or newer: pip install "
            "'physax[photonics]'."
        ) from error
    triangles = constrained_delaunay_triangles(Polygon(part.outline, part.holes))
    # Each is a closed ring of four points.
    corners = get_coordinates(triangles).reshape(-1, 4, 2)[:, :3]
    (ux, uy), (vx, vy) = (corners[:, 1:] - corners[:, :1]).transpose(1, 2, 0)
    clockwise = ux * vy - uy * vx < 0
    corners[clockwise] = corners[clockwise, ::-1]
    return corners


def _at(
    flat: Float[np.ndarray, "*points 2"], height: float
) -> Float[np.ndarray, "*points 3"]:
    return np.concatenate([flat, np.full((*flat.shape[:-1], 1), height)], axis=-1)


def _walls(loop: np.ndarray, bottom: float, top: float) -> Triangles:
    """Two triangles on each edge; the solid is on the left of the loop."""
    low, high = _at(loop, bottom), _at(loop, top)
    next_low, next_high = np.roll(low, -1, axis=0), np.roll(high, -1, axis=0)
    first = np.stack([low, next_low, next_high], axis=1)
    second = np.stack([low, next_high, high], axis=1)
    return np.concatenate([first, second])


def _normals(corners: Triangles) -> Float[np.ndarray, "_ 3"]:
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    return normal / np.where(length > 0, length, 1)
