"""Opens NetCDF, zarr, HDF5 and npz files as named arrays that are read in part."""

import glob
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from .._checks import ArgumentError
from ._errors import PhysaxFileError
from ._gds import MissingPackageError
from ._hdf5 import natural_key


NETCDF_SUFFIXES = (".nc", ".nc4", ".cdf", ".netcdf")
ZARR_SUFFIXES = (".zarr",)
HDF5_SUFFIXES = (".h5", ".hdf5", ".hdf")
NPZ_SUFFIXES = (".npz",)

# The default of the library netCDF is 9.969e36.
_FILL = 9.9e36

Paths = str | os.PathLike | Sequence[str | os.PathLike]


class StoredArray(NamedTuple):
    """An array in a file.

    Attributes:
        dims: Names of its dimensions.
        shape: Its shape.
        attributes: What the file says of it.
        read: Reads a part, given an index for each dimension.
        valid: The least and the largest value that is one; others stand for none.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    attributes: Mapping[str, Any]
    read: Callable[[tuple[Any, ...]], np.ndarray]
    valid: tuple[float, float] = (-np.inf, np.inf)


class StoredData(NamedTuple):
    """An open file.

    Attributes:
        path: The file.
        arrays: Its arrays by name.
        close: Closes it.
    """

    path: Path
    arrays: Mapping[str, StoredArray]
    close: Callable[[], None]


def import_xarray(what: str) -> Any:
    """Returns the package xarray.

    Args:
        what: What needs it, as the subject of a sentence in the plural.

    Raises:
        MissingPackageError: If it is not installed.
    """
    try:
        import xarray
    except ImportError as error:
        raise MissingPackageError(
            f"{what} need the package xarray: pip install 'physax[flows]' h5netcdf "
            "cftime."
        ) from error
    return xarray


def list_files(paths: Paths) -> list[Path]:
    """Returns the files of a pattern, or a list of files and patterns.

    Args:
        paths: A file, a pattern as a shell has it, or several of them.

    Raises:
        PhysaxFileError: If a pattern fits to no file.
        FileNotFoundError: If there is no such file.
        ArgumentError: If the list is empty, or is not of names of files.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else _names(paths)
    if not given:
        raise ArgumentError("`paths` must name at least one file, but is empty.")
    found: list[Path] = []
    for entry in (os.fspath(path) for path in given):
        if glob.has_magic(entry) and not Path(entry).exists():
            fitting = sorted(glob.glob(entry), key=natural_key)
            if not fitting:
                raise PhysaxFileError(entry, "It must match files, but matches none.")
            found += map(Path, fitting)
        elif not Path(entry).exists():
            raise FileNotFoundError(f"There is no file {entry!r}.")
        else:
            found.append(Path(entry))
    return found


def _names(paths: Any) -> list[str | os.PathLike]:
    """Returns a list of names of files."""
    # A dataset of xarray is a mapping of its variables.
    plain = isinstance(paths, Iterable) and not isinstance(paths, Mapping)
    given: list[Any] = list(paths) if plain else [paths]
    wrong = [one for one in given if not isinstance(one, str | os.PathLike)]
    if wrong:
        listed = isinstance(paths, list | tuple)
        one = wrong[0] if listed else paths
        remedy = (
            " Write it to a file first: `data.to_netcdf('flow.nc')`."
            if isinstance(one, Mapping | Iterable)
            else ""
        )
        raise ArgumentError(
            f"`paths` must be names of files, but {'holds' if listed else 'is'} a "
            f"{type(one).__name__}.{remedy}"
        )
    return given


def refuse_needless(
    paths: Sequence[str | os.PathLike], axes: Sequence[str] | None, time: str | None
) -> None:
    """Refuses names of coordinates of files that name their dimensions.

    Args:
        paths: The files, or patterns.
        axes: As for `open_stored`.
        time: As for `open_stored`.

    Raises:
        ArgumentError: If one is given, and no file may need it.
    """
    named = NETCDF_SUFFIXES + ZARR_SUFFIXES
    if any(Path(path).suffix.lower() not in named for path in paths):
        return
    for name, value in (("axes", axes), ("time", time)):
        if value is not None:
            raise ArgumentError(
                f"`{name}` must be left out of NetCDF and zarr files, whose dimensions "
                f"have names, but is {value!r}: it is for .h5 and .npz files. To say "
                "what a dimension is, set the attribute `axis` of its coordinate."
            )


def open_stored(path: Path, axes: Sequence[str] | None, time: str | None) -> StoredData:
    """Opens a file; nothing but its description is read.

    Args:
        path: The file.
        axes: Names of the arrays of coordinates, in the order of dimensions, of a
            file without names of dimensions.
        time: Name of the array of times in such a file.

    Raises:
        PhysaxFileError: If it is damaged or of an unknown kind.
        MissingPackageError: If xarray is needed and not installed.
    """
    suffix = path.suffix.lower()
    if suffix in NETCDF_SUFFIXES or suffix in ZARR_SUFFIXES:
        return _guarded(_open_xarray(path, zarr=suffix in ZARR_SUFFIXES))
    if suffix in HDF5_SUFFIXES:
        return _guarded(_open_hdf5(path, axes, time))
    if suffix in NPZ_SUFFIXES:
        return _open_npz(path, axes, time)
    kinds = (*NETCDF_SUFFIXES, *ZARR_SUFFIXES, *HDF5_SUFFIXES, *NPZ_SUFFIXES)
    raise PhysaxFileError(
        path,
        f"Its suffix must be one of {', '.join(kinds)}, but is {suffix!r}."
        + (" Name the files in the folder, as '*.nc'." if path.is_dir() else ""),
    )


def _guarded(data: StoredData) -> StoredData:
    """Lets errors of reading name the file and the array."""

    def guard(name: str, array: StoredArray) -> StoredArray:
        def read(key):
            try:
                return array.read(key)
            except (OSError, RuntimeError, ValueError, EOFError, zlib.error) as error:
                raise PhysaxFileError(
                    data.path,
                    f"{name!r} cannot be read: {error}. Its data may be damaged.",
                ) from error

        return array._replace(read=read)

    arrays = {name: guard(name, array) for name, array in data.arrays.items()}
    return data._replace(arrays=arrays)


def _open_xarray(path: Path, *, zarr: bool) -> StoredData:
    xarray = import_xarray("NetCDF and zarr files")
    # Consolidated or not: the rest is there in any case.
    options: dict[str, Any] = {"engine": "zarr", "consolidated": False} if zarr else {}
    try:
        data = xarray.open_dataset(
            path, decode_times=False, decode_timedelta=False, chunks=None, **options
        )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        # xarray writes paragraphs.
        reason = str(error).partition(". ")[0].rstrip(".")
        raise PhysaxFileError(
            path,
            f"It cannot be read: {reason}. If the file is valid, a package may be "
            "missing: pip install h5netcdf netCDF4 zarr.",
        ) from error

    def stored(variable) -> StoredArray:
        unwritten = "_FillValue" not in variable.encoding

        def read(key):
            values = np.asarray(variable[key].values)
            if unwritten and values.dtype.kind == "f":
                never = np.abs(values) >= _FILL
                values = np.where(never, np.nan, values) if never.any() else values
            return values

        dims, told = tuple(map(str, variable.dims)), dict(variable.attrs)
        valid = _valid(told, variable.encoding, variable.dtype)
        return StoredArray(dims, variable.shape, told, read, valid)

    arrays = {str(name): stored(v) for name, v in data.variables.items()}
    return StoredData(path, arrays, data.close)


def _valid(
    attributes: Mapping[str, Any], encoding: Mapping[str, Any], dtype: np.dtype
) -> tuple[float, float]:
    """Returns the least and the largest valid value, by section 2.5.1 of CF.

    Args:
        attributes: What the file says: `valid_range`, or `valid_min` and `valid_max`;
            whole numbers for packed values are packed, too.
        encoding: How values were packed.
        dtype: Of the values as unpacked.
    """
    scale = float(encoding.get("scale_factor", 1))
    offset = float(encoding.get("add_offset", 0))
    stored = np.dtype(encoding.get("dtype", dtype))
    pair = list(np.ravel(attributes.get("valid_range", ())))
    if len(pair) != 2:
        pair = [attributes.get("valid_min"), attributes.get("valid_max")]
    low, high = map(np.asarray, pair)
    packed = stored.kind in "iu" and "f" not in (low.dtype.kind, high.dtype.kind)
    if packed and scale < 0:
        low, high = high, low
    ends = []
    for end, given in ((-np.inf, low), (np.inf, high)):
        if given.dtype.kind not in "iuf" or given.size != 1:
            ends.append(end)
            continue
        value, margin = float(given.item()), 0.0
        if packed:
            if str(encoding.get("_Unsigned")).lower() == "true":
                value %= 2 ** (8 * stored.itemsize)
            value, margin = scale * value + offset, 0.5 * abs(scale)
        # What one is in 64 bits and the other in 32.
        margin = max(margin, 4 * float(np.finfo(np.float32).eps) * abs(value))
        ends.append(value + np.copysign(margin, end))
    return ends[0], ends[1]


def _named(
    path: Path,
    shapes: Mapping[str, tuple[int, ...]],
    axes: Sequence[str] | None,
    time: str | None,
) -> dict[str, tuple[str, ...]]:
    """Gives names to the dimensions of arrays that have none."""
    there = ", ".join(sorted(shapes))
    if axes is None:
        raise ArgumentError(
            f"`axes` must name the arrays of coordinates in {path.name}, in the order "
            f"of dimensions, such as [x, y]; there are {there}."
        )
    if isinstance(axes, str):
        raise ArgumentError(
            f"`axes` must be a list of names, as ['x', 'y'], but is {axes!r}; there "
            f"are {there}."
        )
    for name in (*axes, *([] if time is None else [time])):
        if len(shapes.get(name, ())) != 1:
            raise PhysaxFileError(
                path,
                f"It must have the one-dimensional array {name!r}, but has {there}.",
            )
    places = tuple(axes)
    nodes = tuple(shapes[name][0] for name in places)
    dims: dict[str, tuple[str, ...]] = {name: (name,) for name in places}
    if time is not None:
        dims[time] = (time,)
    for name, shape in shapes.items():
        if name in dims:
            continue
        if shape == nodes:
            dims[name] = places
        elif time is not None and shape == (*shapes[time], *nodes):
            dims[name] = (time, *places)
        else:
            dims[name] = tuple(f"{name}_{number}" for number in range(len(shape)))
    return dims


def _open_hdf5(path: Path, axes, time) -> StoredData:
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise PhysaxFileError(path, f"It is not a valid HDF5 file: {error}.") from error
    found: dict[str, h5py.Dataset] = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu":
            found[name] = item

    with ExitStack() as on_error:
        on_error.callback(file.close)
        file.visititems(visit)
        dims = _named(path, {n: item.shape for n, item in found.items()}, axes, time)
        on_error.pop_all()

    def stored(name: str) -> StoredArray:
        item = found[name]
        attributes = {
            key: value
            for key, value in item.attrs.items()
            if isinstance(value, str | float | int | np.number)
        }
        # HDF5 has no negative steps; all flips come later.
        read = lambda key: np.asarray(item[key])  # noqa: E731
        return StoredArray(dims[name], item.shape, attributes, read)

    return StoredData(path, {name: stored(name) for name in found}, file.close)


def _open_npz(path: Path, axes, time) -> StoredData:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise PhysaxFileError(path, f"It is not a valid npz file: {error}.") from error
    arrays = {
        name: array for name, array in arrays.items() if array.dtype.kind in "fiu"
    }
    dims = _named(path, {n: array.shape for n, array in arrays.items()}, axes, time)

    def stored(name: str) -> StoredArray:
        array = arrays[name]
        return StoredArray(dims[name], array.shape, {}, lambda key: array[key])

    return StoredData(path, {name: stored(name) for name in arrays}, lambda: None)
