"""Reads device layouts from GDSII files."""

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, PhysaxError, instance, numeric, traced, whole
from ..em import PEC, Material, Polygon, Prism, Structure
from ..em._prism import as_sidewall
from ..em._shape_fields import upper_end
from ..em._shapes import as_material
from ._centre import as_centre
from ._gds_holes import separate_holes
from ._gds_polygons import check_polygons
from ._gds_records import GDSError, check_records


class MissingPackageError(PhysaxError, ImportError):
    """An optional package that a function needs is not installed."""


class GDSLayer(eqx.Module):
    r"""What a layer of a layout represents.

    Attributes:
        material: The material inside its polygons; `em.PEC()` for perfect metal.
        low: Lower end along z in metres, or -inf.
        high: Upper end along z in metres, or inf.
        sidewall: Angle between the sides and the z axis in radians, as etching leaves
            them, in $(-\pi / 2, \pi / 2)$. Where it is positive, polygons become
            narrower upward and their holes wider; at `low` they are as drawn. `low` and
            `high` must then be finite.

    Raises:
        ArgumentError: If `material` is something else, such as a name, `high` is not
            above `low`, `sidewall` is out of its range, or an end is infinite with it.
    """

    material: Material | PEC = eqx.field(converter=as_material)
    low: Float[Array, ""] = eqx.field(converter=numeric("low"), default=-math.inf)
    high: Float[Array, ""] = eqx.field(converter=numeric("high"), default=math.inf)
    sidewall: Float[Array, ""] = eqx.field(converter=as_sidewall, default=0.0)

    def __check_init__(self):
        upper_end(self.low, self.high)
        if self.sloped and not traced((self.low, self.high)):
            ends = float(self.low), float(self.high)
            if not all(map(math.isfinite, ends)):
                raise ArgumentError(
                    "`low` and `high` must be finite where there is a `sidewall`, but "
                    f"are {ends[0]:g} and {ends[1]:g}."
                )

    @property
    def sloped(self) -> bool:
        """Whether the sides may not be upright."""
        return traced(self.sidewall) or bool(self.sidewall != 0)


def read_gds(
    path: str | os.PathLike,
    layers: Mapping[tuple[int, int], GDSLayer],
    *,
    cell: str | None = None,
    centre: ArrayLike | Sequence[ArrayLike] | None = None,
    max_bytes: int = 200_000_000,
    max_vertices: int = 50_000,
) -> list[Structure]:
    """Reads the polygons of some layers of a layout as structures.

    References and arrays are resolved, paths become polygons, and the polygons of a
    layer are united, so that pieces that touch leave no seam. A magnified reference
    scales the widths of all its paths, also those that the file calls absolute (a
    negative WIDTH), which the format would leave as they are. Needs gdstk, and for
    layers with a `sidewall` shapely, which `pip install physax[photonics]` brings.

    Args:
        path: The file.
        layers: For each pair (layer, datatype) to read what it represents. Layers that
            come later overwrite earlier ones.
        cell: Name of the cell; may be left out where one cell only is on top.
        centre: Point (x, y) of the layout in metres that becomes the origin.
        max_bytes: Refuses a larger file.
        max_vertices: Refuses a layout with more vertices once arrays are resolved:
            uniting polygons that overlap takes a time that grows as their square.

    Returns:
        One structure per entry of `layers`, in the same order.

    Raises:
        MissingPackageError: If gdstk or, where it is needed, shapely is missing.
        GDSError: If the file is not a valid GDSII file, too large, or lacks the cell
            or a layer; or a polygon on these layers has no area or crosses itself.
        FileNotFoundError: If there is no such file.
        ArgumentError: If `layers` is empty or not of `GDSLayer` by pairs, or `centre`
            not two finite numbers.
    """
    layers = _checked_layers(layers)
    origin = np.zeros(2) if centre is None else as_centre(centre, 2)
    try:
        import gdstk
    except ImportError as error:
        raise MissingPackageError(
            "Reading GDSII needs the package gdstk: pip install 'physax[photonics]'."
        ) from error

    path = Path(path)
    check_records(path, max_bytes)
    library = _library(gdstk, path)
    top = _chosen_cell(library, cell, path)
    _check_size(top, set(layers), max_vertices, path)
    check_polygons(gdstk, library, top, set(layers), path)

    structures = []
    for (number, datatype), layer in layers.items():
        found = top.get_polygons(layer=number, datatype=datatype)
        if not found:
            there = sorted(library.layers_and_datatypes())
            raise GDSError(
                f"Cell {top.name!r} of {path} has no polygon on layer "
                f"({number}, {datatype}). The file has {there}."
            )
        raster = library.precision / library.unit
        united = gdstk.boolean(found, [], "or", precision=raster)
        outlines = [np.asarray(shape.points) for shape in united]
        if layer.sloped:
            outlines = separate_holes(_shapely(), outlines, raster)
        outlines = [points * library.unit - origin for points in outlines]
        shape = _joined(outlines, layer, path)
        structures.append(Structure(shape, layer.material))
    return structures


def _shapely() -> Any:
    try:
        import shapely
    except ImportError as error:
        raise MissingPackageError(
            "Layers with a `sidewall` need the package shapely: pip install "
            "'physax[photonics]'."
        ) from error
    return shapely


def _checked_layers(layers: Any) -> dict[tuple[int, int], GDSLayer]:
    example = "Write `{(1, 0): GDSLayer(material)}`."
    if not isinstance(layers, Mapping):
        raise ArgumentError(
            "`layers` must be a dict of `GDSLayer` by (layer, datatype), but is a "
            f"{type(layers).__name__}. {example}"
        )
    if not layers:
        raise ArgumentError(
            "`layers` must name at least one (layer, datatype), but is empty."
        )
    found = {}
    for key, layer in layers.items():
        if not isinstance(key, tuple) or len(key) != 2:
            raise ArgumentError(
                "`layers` must have pairs of integers (layer, datatype) as keys, "
                f"but one is {key!r}. {example}"
            )
        number, datatype = (whole(one, f"layers[{key}]", 0) for one in key)
        named = f"layers[{number, datatype}]"
        found[number, datatype] = instance(layer, named, GDSLayer, example)
    return found


def _joined(outlines: list[np.ndarray], layer: GDSLayer, path: Path) -> Polygon | Prism:
    """One shape of many outlines."""
    if not outlines:
        raise GDSError(f"The polygons of a layer in {path} have no area.")
    outlines = [_distinct(points) for points in outlines]
    counts = tuple(map(len, outlines))
    try:
        if layer.sloped:
            return Prism(
                np.concatenate(outlines),
                layer.low,
                layer.high,
                sidewall=layer.sidewall,
                outlines=counts,
            )
        return Polygon(
            np.concatenate([_counterclockwise(points) for points in outlines]),
            low=layer.low,
            high=layer.high,
            outlines=counts,
        )
    except ArgumentError as error:
        raise GDSError(
            f"The polygons of a layer in {path} are not valid: {error}"
        ) from error


def _counterclockwise(points: np.ndarray) -> np.ndarray:
    x, y = points.T
    area = np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))
    return points if area > 0 else points[::-1]


def _distinct(points: np.ndarray) -> np.ndarray:
    """Leaves out vertices that equal the next one in the default precision."""
    rounded = points.astype(jnp.result_type(float))
    return points[np.any(rounded != np.roll(rounded, -1, axis=0), axis=1)]


def _library(gdstk, path: Path):
    """Reads a file, taking what the reader only warns of as an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            library = gdstk.read_gds(path)
        except (OSError, RuntimeError, ValueError) as error:
            raise GDSError(f"{path} is not a valid GDSII file: {error}.") from error
    if caught:
        raise GDSError(f"{path} is not a valid GDSII file: {caught[0].message}")
    return library


def _chosen_cell(library, name: str | None, path: Path) -> Any:
    """The cell of that name, or the only one on top."""
    if name is None:
        top = library.top_level()
        if len(top) == 1:
            return top[0]
        names = sorted(cell.name for cell in top)
        raise GDSError(
            f"{path} has {len(top)} top cells {names}: give one of them as `cell`."
        )
    for cell in library.cells:
        if cell.name == name:
            return cell
    names = sorted(cell.name for cell in library.cells)
    raise GDSError(f"{path} has no cell {name!r}; it has {names}.")


def _check_size(top, wanted: set[tuple[int, int]], max_vertices: int, path: Path):
    """Counts the vertices before arrays of arrays are resolved."""
    counts: dict[str, int] = {}
    open_cells: list[str] = []

    def copies(element) -> int:
        return max(1, element.repetition.size or 1)

    def count(cell) -> int:
        if cell.name in counts:
            return counts[cell.name]
        if cell.name in open_cells:
            raise GDSError(f"{path} is damaged: cell {cell.name!r} contains itself.")
        open_cells.append(cell.name)
        total = 0
        for shape in cell.polygons:
            if (shape.layer, shape.datatype) in wanted:
                total += len(shape.points) * copies(shape)
        for line in cell.paths:
            if wanted & set(zip(line.layers, line.datatypes, strict=True)):
                total += 2 * len(line.spine()) * copies(line)
        for reference in cell.references:
            total += count(reference.cell) * copies(reference)
        open_cells.pop()
        counts[cell.name] = total
        return total

    vertices = count(top)
    if vertices > max_vertices:
        raise GDSError(
            f"{path} has {vertices} vertices on the wanted layers, more than "
            f"`max_vertices` = {max_vertices}. Raise that limit, or read a smaller "
            "cell."
        )
