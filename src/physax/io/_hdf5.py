"""HDF5 files as data: nothing outside the file is followed, no size is believed."""

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from .._checks import PhysaxError
from ..runtime import check_memory
from ._errors import PhysaxFileError


# Longer lists of q, angles or times than this are a lie.
_MOST_NUMBERS = 10_000_000
_MOST_LISTED = 40
_LONGEST_CHAIN = 16
_SECONDS = ("s", "sec", "second", "seconds")

# What h5py raises on damaged files, and on filters that are not installed.
_UNREADABLE = (
    OSError,
    RuntimeError,
    KeyError,
    ValueError,
    TypeError,
    OverflowError,
)


@contextmanager
def open_hdf5(path: str | os.PathLike) -> Iterator[h5py.File]:
    """Opens a file for reading; whatever HDF5 says of it then names the file.

    Args:
        path: The file.

    Yields:
        The open file.

    Raises:
        PhysaxFileError: If the file is not a valid HDF5 file, or is damaged.
        FileNotFoundError: If there is no such file.
    """
    # A file that cannot be opened says so itself.
    with Path(path).open("rb"):
        pass
    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            yield file
    except PhysaxError:
        raise
    except _UNREADABLE as error:
        raise PhysaxFileError(
            path, f"It is not a valid HDF5 file, or is truncated: {_text(error)}."
        ) from error


def natural_key(name: str) -> tuple:
    """Returns a key that sorts `a2` before `a10`."""
    parts = re.split(r"(\d+)", name)
    return tuple((int(p), "") if p.isdigit() else (-1, p) for p in parts if p)


def find(
    file: h5py.File, name: str
) -> h5py.Dataset | h5py.Group | h5py.Datatype | None:
    """Follows a path inside the file, one link after the other.

    Args:
        file: The file.
        name: The path from its root.

    Returns:
        What lies there, or `None`.

    Raises:
        PhysaxFileError: If a link leads out of the file or in a circle.
    """
    return _walk(file, file, _parts(name), name, _LONGEST_CHAIN)


def _parts(name: str) -> list[str]:
    return [part for part in name.split("/") if part not in ("", ".")]


def _walk(file: h5py.File, at: h5py.Group, parts: list[str], name: str, left: int):
    found = at
    for part in parts:
        if not isinstance(found, h5py.Group):
            return None
        link = found.get(part, getlink=True)
        if link is None:
            return None
        if isinstance(link, h5py.ExternalLink):
            raise PhysaxFileError(
                file.filename,
                f"`{name}` must lie in this file, but is a link to the file "
                f"{link.filename!r}. Copy it into this file (h5repack, or "
                "`h5py.File.copy` with `expand_external=True`).",
            )
        if isinstance(link, h5py.SoftLink):
            if left == 0:
                raise PhysaxFileError(
                    file.filename, f"`{name}` must not be a circular link, but is."
                )
            start = file if link.path.startswith("/") else found
            found = _walk(file, start, _parts(link.path), name, left - 1)
            if found is None:
                return None
            continue
        if not isinstance(link, h5py.HardLink):
            raise PhysaxFileError(
                file.filename, f"`{name}` must not go through a link of unknown kind."
            )
        found = found[part]
    return found


def dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """Returns a dataset of real numbers whose values lie in this file.

    Args:
        file: The file.
        name: Its path.

    Returns:
        The dataset, unread.

    Raises:
        PhysaxFileError: If there is none, or it is of another kind.
    """
    found = find(file, name)
    if found is None:
        raise PhysaxFileError(
            file.filename,
            f"It must hold the dataset `{name}`, but has {listing(file)}.",
        )
    if not isinstance(found, h5py.Dataset):
        raise PhysaxFileError(
            file.filename,
            f"`{name}` must be a dataset, but is a {type(found).__name__.lower()}.",
        )
    if found.is_virtual or found.external:
        raise PhysaxFileError(
            file.filename,
            f"`{name}` must be stored in this file, but takes its values from "
            "others. Copy the values into one file.",
        )
    if found.dtype.kind not in "fiu" or found.shape is None:
        raise PhysaxFileError(
            file.filename,
            f"`{name}` must be an array of real numbers, but is {found.dtype} of "
            f"shape {found.shape}.",
        )
    if found.size and not found.id.get_storage_size():
        raise PhysaxFileError(
            file.filename,
            f"`{name}` must hold values, but only its shape {found.shape} was written.",
        )
    if found.chunks is not None:
        # A chunk is unpacked as a whole, however little of it is asked for.
        check_memory(
            math.prod(found.chunks) * found.dtype.itemsize,
            f"{file.filename}: one chunk of `{name}`",
        )
    return found


def numbers(file: h5py.File, name: str, *, finite: bool = True) -> np.ndarray:
    """Reads a short dataset whole, in float64.

    Args:
        file: The file.
        name: Its path.
        finite: Whether NaN and infinity are refused.

    Returns:
        The values.

    Raises:
        PhysaxFileError: If there is no such dataset, it is too long to be a list, or
            holds NaN or infinity.
    """
    data = dataset(file, name)
    if math.prod(data.shape) > _MOST_NUMBERS:
        raise PhysaxFileError(
            file.filename,
            f"`{name}` must have at most {_MOST_NUMBERS} numbers, but its shape is "
            f"{data.shape}.",
        )
    values = np.asarray(data[()], np.float64)
    bad = ~np.isfinite(values)
    if finite and np.any(bad):
        raise PhysaxFileError(
            file.filename,
            f"`{name}` must be finite, but holds {values[bad].flat[0]} at index "
            f"{tuple(int(i) for i in np.argwhere(bad)[0])}.",
        )
    return values


def scalar(file: h5py.File, name: str) -> float | None:
    """Reads one positive number, which old files store as an array of one.

    Args:
        file: The file.
        name: Its path.

    Returns:
        The number, or `None` if there is no such dataset.

    Raises:
        PhysaxFileError: If there are several numbers, or it is not positive.
    """
    if find(file, name) is None:
        return None
    values = numbers(file, name)
    if values.size != 1 or values.flat[0] <= 0:
        raise PhysaxFileError(
            file.filename,
            f"`{name}` must be one positive number, but is {values.tolist()}.",
        )
    return float(values.flat[0])


def seconds(file: h5py.File, name: str) -> float | None:
    """Reads a time, refusing another unit than seconds if the file names one."""
    value = scalar(file, name)
    if value is None:
        return None
    unit = text_attribute(dataset(file, name), "units")
    if unit is not None and unit.strip().lower() not in _SECONDS:
        raise PhysaxFileError(
            file.filename,
            f"`{name}` must be in seconds, but is in {unit!r}. Give `dt` yourself.",
        )
    return value


def text_attribute(item: h5py.Dataset | h5py.Group, name: str) -> str | None:
    """Returns an attribute that is a text, or `None`."""
    value = item.attrs.get(name)
    value = value.decode(errors="replace") if isinstance(value, bytes) else value
    return value if isinstance(value, str) else None


def listing(file: h5py.File) -> str:
    """Names the datasets of a file and their shapes, for messages."""
    lines: list[str] = []
    _list(file, "", lines, {file["/"]})
    if len(lines) > _MOST_LISTED:
        more = len(lines) - _MOST_LISTED
        lines = [*lines[:_MOST_LISTED], f"{more} or more others"]
    return ", ".join(lines) if lines else "no datasets at all"


def _list(group: h5py.Group, prefix: str, lines: list[str], seen: set) -> None:
    for name in group:
        if max(len(lines), len(seen)) > 2 * _MOST_LISTED:
            return
        link, path = group.get(name, getlink=True), f"{prefix}{name}"
        if not isinstance(link, h5py.HardLink):
            lines.append(f"{path} (a link)")
            continue
        item = group[name]
        if isinstance(item, h5py.Dataset):
            lines.append(f"{path} {item.shape}")
        elif isinstance(item, h5py.Group) and item not in seen:
            # A group can hold itself.
            seen.add(item)
            _list(item, f"{path}/", lines, seen)


def _text(error: BaseException) -> str:
    return str(error).strip("'\". ") or type(error).__name__
