"""The npz cache of two-time correlations, read map by map and never unpickled."""

import json
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._checks import PhysaxError
from ..runtime import check_memory
from ._errors import PhysaxFileError
from ._two_time_index import Index, MapPlace, check_times


Q, PHI, T1, T2, C2 = "wavevector_q_list", "phi_angles_list", "t1", "t2", "c2_exp"
METADATA = "cache_metadata_json"

# What the standard library and NumPy raise on damaged archives.
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    tokenize.TokenError,
    SyntaxError,
    EOFError,
    OSError,
    ValueError,
    TypeError,
    OverflowError,
    RuntimeError,
    NotImplementedError,
)


class Member(NamedTuple):
    """An array of the archive, unread.

    Attributes:
        name: Of the array.
        shape: Its shape.
        dtype: Its type.
        fortran: Whether the first index runs fastest.
        start: Where the values begin in the member.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    start: int


@contextmanager
def open_npz(path: str | os.PathLike) -> Iterator[zipfile.ZipFile]:
    """Opens an archive; whatever is wrong with it then names the file.

    Args:
        path: The file.

    Yields:
        The archive.

    Raises:
        PhysaxFileError: If it is not a valid npz file, or is damaged.
        FileNotFoundError: If there is no such file.
    """
    with Path(path).open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                names = archive.namelist()
                if len(set(names)) != len(names):
                    raise PhysaxFileError(path, "It is damaged: a name occurs twice.")
                for info in archive.infolist():
                    # Compares the two places in which the name of a member stands: a
                    # damaged name would make an array that may be absent vanish.
                    archive.open(info).close()
                yield archive
        except PhysaxError:
            raise
        except _UNREADABLE as error:
            raise PhysaxFileError(
                path, f"It is not a valid npz file, or is truncated: {error}."
            ) from error


def is_npz(path: str | os.PathLike) -> bool:
    """Tells whether a file begins like a zip archive."""
    with Path(path).open("rb") as file:
        return file.read(2) == b"PK"


def member(path: str | os.PathLike, archive: zipfile.ZipFile, name: str) -> Member:
    """Reads the header of an array and checks it against the size of the member.

    Args:
        path: The file, for messages.
        archive: The archive.
        name: Of the array.

    Returns:
        What the header says.

    Raises:
        PhysaxFileError: If there is no such array, it is pickled, or its shape does
            not fit its size.
    """
    try:
        info = archive.getinfo(f"{name}.npy")
    except KeyError as error:
        there = ", ".join(n.removesuffix(".npy") for n in archive.namelist())
        raise PhysaxFileError(
            path, f"It must hold the array `{name}`, but has {there or 'none'}."
        ) from error
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise PhysaxFileError(
                path, f"`{name}` is in version {version} of NumPy's format."
            )
        shape, fortran, dtype = read(file)
        start = file.tell()
    if dtype.hasobject:
        raise PhysaxFileError(
            path,
            f"`{name}` is pickled, and pickles are never loaded: they can run "
            "anything. Save the array again with plain numbers.",
        )
    needed = start + math.prod(shape) * dtype.itemsize
    if needed != info.file_size:
        raise PhysaxFileError(
            path,
            f"`{name}` of shape {shape} and {dtype} must take {needed} bytes, but has "
            f"{info.file_size}: it is damaged.",
        )
    check_memory(needed, f"{os.fspath(path)}: `{name}` of shape {shape}")
    return Member(name, shape, dtype, fortran, start)


def array(path, archive: zipfile.ZipFile, name: str, *, ndim: int) -> np.ndarray:
    """Reads an array of real numbers whole.

    Args:
        path: The file, for messages.
        archive: The archive.
        name: Of the array.
        ndim: How many axes it must have.

    Returns:
        The array.

    Raises:
        PhysaxFileError: If it is of another kind or has other axes.
    """
    found = member(path, archive, name)
    if found.dtype.kind not in "fiub" or len(found.shape) != ndim:
        raise PhysaxFileError(
            path,
            f"`{name}` must be an array of numbers with {ndim} axes, but is of shape "
            f"{found.shape} and {found.dtype}."
            + (" An old cache: rewrite it." if name in (T1, T2) else ""),
        )
    with archive.open(f"{name}.npy") as file:
        _exactly(file, found.start)
        data = _exactly(file, found.dtype.itemsize * math.prod(found.shape))
        # The checksum is compared at the end of the member.
        file.read(1)
    order = "F" if found.fortran else "C"
    values = np.frombuffer(data, found.dtype).reshape(found.shape, order=order)
    return values.astype(found.dtype.newbyteorder("="))


def _exactly(file, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise EOFError("an array ends too early")
    return data


def npz_index(path: str | os.PathLike, archive: zipfile.ZipFile) -> Index:
    """Reads everything but the maps.

    Args:
        path: The file, for messages.
        archive: The archive.

    Returns:
        The index.

    Raises:
        PhysaxFileError: If an array is missing or has a wrong shape or value.
    """
    if "cache_metadata.npy" in archive.namelist():
        # Old caches keep a pickled dictionary there.
        member(path, archive, "cache_metadata")
    _check_complete(path, archive)
    c2 = member(path, archive, C2)
    if len(c2.shape) != 3 or c2.shape[1] != c2.shape[2] or c2.dtype.kind != "f":
        raise PhysaxFileError(
            path,
            f"`{C2}` must be of real numbers and shape (maps, frames, frames), but is "
            f"of shape {c2.shape} and {c2.dtype}.",
        )
    maps, frames, _ = c2.shape
    q = array(path, archive, Q, ndim=1).astype(np.float64)
    phi = array(path, archive, PHI, ndim=1).astype(np.float64)
    if not maps or q.size != maps or phi.size != maps:
        raise PhysaxFileError(
            path,
            f"There must be as many entries in all lists, but `{Q}` has {q.size}, "
            f"`{PHI}` has {phi.size} and `{C2}` has {maps}.",
        )
    if not np.all((q > 0) & np.isfinite(q)):
        k = int(np.argmin((q > 0) & np.isfinite(q)))
        raise PhysaxFileError(
            path, f"`{Q}` must be positive, but is {q[k]:g} for map {k + 1}."
        )
    if not np.all(np.isfinite(phi)):
        raise PhysaxFileError(path, f"`{PHI}` must be finite, but has NaN or infinity.")
    t1 = array(path, archive, T1, ndim=1).astype(np.float64)
    t2 = array(path, archive, T2, ndim=1).astype(np.float64)
    check_times(os.fspath(path), T1, t1, frames)
    if not np.array_equal(t1, t2):
        raise PhysaxFileError(path, f"`{T1}` and `{T2}` must be equal, but are not.")
    places = tuple(MapPlace(C2, k) for k in range(maps))
    dtype = c2.dtype.newbyteorder("=")
    return Index(q, np.radians(phi), places, frames, dtype, t1)


def _check_complete(path: str | os.PathLike, archive: zipfile.ZipFile) -> None:
    """Refuses one of our own archives if arrays vanished from its directory."""
    if f"{METADATA}.npy" not in archive.namelist():
        return
    found = member(path, archive, METADATA)
    if found.dtype.kind != "U" or found.shape:
        return
    with archive.open(f"{METADATA}.npy") as file:
        _exactly(file, found.start)
        data = _exactly(file, found.dtype.itemsize)
        file.read(1)
    try:
        about = json.loads(str(np.frombuffer(data, found.dtype)[0]))
    except (ValueError, RecursionError):
        # That of others is not needed.
        return
    names = about.get("arrays") if isinstance(about, dict) else None
    there = set(archive.namelist())
    for name in names if isinstance(names, list) else ():
        if f"{name}.npy" not in there:
            raise PhysaxFileError(
                path, f"It is damaged: the array `{name}` is missing."
            )


def npz_maps(
    path: str | os.PathLike,
    archive: zipfile.ZipFile,
    maps: np.ndarray,
    part: slice,
    name: str = C2,
) -> np.ndarray:
    """Reads some maps, with one whole map in memory beside them.

    Args:
        path: The file, for messages.
        archive: The archive.
        maps: Numbers of the maps, ascending.
        part: The frames.
        name: Of the array of maps.

    Returns:
        The maps as they are stored.
    """
    found = member(path, archive, name)
    if found.fortran:
        # The index of the map runs fastest: no map lies in one piece.
        whole = array(path, archive, name, ndim=3)
        return np.ascontiguousarray(whole[maps][:, part, part])
    count, frames, _ = found.shape
    size = part.stop - part.start
    read = np.empty((len(maps), size, size), found.dtype.newbyteorder("="))
    with archive.open(f"{name}.npy") as file:
        _exactly(file, found.start)
        for k in range(count):
            data = _exactly(file, frames * frames * found.dtype.itemsize)
            at = np.searchsorted(maps, k)
            if at < len(maps) and maps[at] == k:
                one = np.frombuffer(data, found.dtype).reshape(frames, frames)
                read[at] = one[part, part]
        # The checksum is compared at the end of the member.
        file.read(1)
    return read


def write_npy(archive: zipfile.ZipFile, name: str, values: np.ndarray) -> None:
    """Writes one array into an archive; the same values give the same bytes."""
    info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
    with archive.open(info, "w", force_zip64=True) as file:
        np.lib.format.write_array(
            file, np.asarray(values, order="C"), (1, 0), allow_pickle=False
        )
