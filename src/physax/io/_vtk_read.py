"""Reads VTK files: legacy, XML, and parallel ones that name others."""

import os
from collections.abc import Collection
from io import BufferedReader
from pathlib import Path

from .._checks import ArgumentError
from ._errors import PhysaxFileError
from ._vtk_cells import VTKFaultError
from ._vtk_data import VTKData
from ._vtk_legacy import read_legacy, read_legacy_time
from ._vtk_pieces import Extent, merge, without_ghosts
from ._vtk_tree import local_path, parse_tree
from ._vtk_xml import XML_KINDS, extent_of, read_time, read_xml, with_field


_XML = (".vti", ".vtr", ".vts", ".vtu", ".vtp")
_PARALLEL = (".pvti", ".pvtr", ".pvts", ".pvtu", ".pvtp")
VTK_SUFFIXES = (".vtk", *_XML, *_PARALLEL)


def read_vtk(path: str | os.PathLike, arrays: Collection[str] | None = None) -> VTKData:
    """Reads one VTK file.

    Reads legacy files (`.vtk`, text and binary), XML files (`.vti`, `.vtr`, `.vts`,
    `.vtu`, `.vtp`; as text, base64 or raw, compressed by zlib or LZMA or not) and
    parallel ones (`.pvtu` and the like), whose pieces must lie in the same folder or
    below and become one mesh or grid: points that pieces of a mesh share then stand
    several times, and cells that are marked as copies (ghosts) are left out. Texts
    among the arrays are passed over. Nothing in the file is trusted: sizes are compared
    with the file before memory is taken, and numbers of points with the points.

    A legacy file has no mark at its end: cut off exactly between two of its arrays, it
    is a valid file with fewer arrays. Name the `arrays` that must be there.

    Args:
        path: The file.
        arrays: Names of the values on points and cells to read, all by default. `[]`
            reads the grid or mesh alone.

    Returns:
        Its contents. A turned image comes as `"structured"`, with its points.

    Raises:
        PhysaxFileError: If the file is damaged or truncated, of an unknown kind, lacks
            one of the `arrays`, declares XML entities, or names files elsewhere.
        FileNotFoundError: If there is no such file.
    """
    if isinstance(arrays, str):
        arrays = (arrays,)
    suffix = Path(path).suffix.lower()
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            _check_kind(suffix, size)
            if suffix == ".vtk":
                return read_legacy(file.read(), arrays)
            if suffix in _XML:
                return read_xml(file, size, arrays)
            return _read_parallel(path, file, arrays)
        except (VTKFaultError, ArgumentError) as error:
            raise PhysaxFileError(path, str(error)) from error


def time_in(path: str | os.PathLike) -> float | None:
    """Returns the time that a file bears, `None` if none, without reading the rest.

    Raises:
        PhysaxFileError: If the file is damaged, or of an unknown kind.
        FileNotFoundError: If there is no such file.
    """
    suffix = Path(path).suffix.lower()
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            _check_kind(suffix, size)
            if suffix == ".vtk":
                return read_legacy_time(file.read())
            if suffix in _XML:
                return read_time(file, size)
            pieces = _sources(path, file)[2]
        except (VTKFaultError, ArgumentError) as error:
            raise PhysaxFileError(path, str(error)) from error
    return time_in(pieces[0]) if pieces else None


def _check_kind(suffix: str, size: int) -> None:
    if suffix not in VTK_SUFFIXES:
        raise VTKFaultError(
            f"Its suffix must be one of {', '.join(VTK_SUFFIXES)}, but is {suffix!r}. "
            "Series, `.pvd` files and patterns, are read by `read_vtk_series`."
        )
    if size == 0:
        raise VTKFaultError("It must hold data, but is empty.")


def _sources(
    path: str | os.PathLike, file: BufferedReader
) -> tuple[Extent | None, list[Extent | None], list[str]]:
    """Returns the whole extent, the extents of pieces, and their files."""
    root, _ = parse_tree(file)
    name = root.attributes.get("type", "")
    if root.tag != "VTKFile" or XML_KINDS.get(name[1:]) is None or name[0] != "P":
        raise VTKFaultError(
            f"It must be one of P{', P'.join(XML_KINDS)}, but is {name!r}."
        )
    grid = root.find(name)
    pieces = list(grid.all("Piece")) if grid is not None else []
    if grid is None or not pieces:
        raise VTKFaultError(f"It must name pieces in <{name}>, but names none.")
    sources = [local_path(path, piece.get("Source")) for piece in pieces]
    for source in sources:
        if Path(source).suffix.lower() not in _XML:
            raise VTKFaultError(
                f"Its pieces must be files {', '.join(_XML)}, but one is {source!r}."
            )
        if not Path(source).is_file():
            raise VTKFaultError(f"It names the piece {source!r}, which does not exist.")
    if XML_KINDS[name[1:]] in ("unstructured", "polydata"):
        return None, [None] * len(pieces), sources
    extents = [extent_of(piece, "Extent") for piece in pieces]
    return extent_of(grid, "WholeExtent"), list(extents), sources


def _read_parallel(
    path: str | os.PathLike, file: BufferedReader, arrays: Collection[str] | None
) -> VTKData:
    whole, extents, sources = _sources(path, file)
    parts = []
    for extent, source in zip(extents, sources, strict=True):
        data = without_ghosts(read_vtk(source, arrays))
        if extent is not None:
            shape = tuple(high - low + 1 for low, high in extent)
            if data.shape != shape:
                raise VTKFaultError(
                    f"The piece {source!r} must have {shape} points by its extent, but "
                    f"has {data.shape}."
                )
        parts.append((extent, data))
    return with_field(merge(parts, whole), parts[0][1].field_data)
