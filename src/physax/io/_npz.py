"""Results in NumPy's npz format, every byte under a digest.

The file is an uncompressed archive of arrays in NumPy's own format, which `np.load`
opens too. Its member `header.npy` says in JSON what the arrays belong to and what the
SHA-256 of each is; the comment of the archive holds the SHA-256 of the header.
"""

import hashlib
import io
import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

from .._checks import refuse_traced
from .._whole_file import whole_file
from ._encoding import EncodingError, decode, encode, stored_dtype
from ._errors import PhysaxFileError


_FORMAT = "physax-results"
_SCHEMA = 1
_HEADER = "header.npy"
_COMMENT = re.compile(rb"physax-results ([0-9a-f]{64})")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MAX_RANK = 32


def save_npz(path: str | os.PathLike, results: eqx.Module | Mapping[str, Any]) -> None:
    """Saves results exactly, as one file.

    The file appears whole or not at all, and an older one stays until then. The same
    results give the same bytes.

    Args:
        path: The file, by custom `*.npz`.
        results: The `Result` of a run, the result of one monitor, `SParameters`, a
            `Field`, what a fit returns; or a dictionary of such, of arrays, numbers and
            strings. A model that is a class of your own cannot be saved.

    Raises:
        ArgumentError: If a value is of a kind that cannot be saved.
        OSError: If the file cannot be written.
    """
    refuse_traced(results, "results", "Save what the compiled function returns.")
    arrays: list[np.ndarray] = []
    content = encode(results, arrays)
    members, entries = {}, []
    for number, array in enumerate(arrays):
        member = _npy(array)
        members[f"array_{number}.npy"] = member
        entries.append(
            {
                "dtype": array.dtype.name,
                "shape": list(array.shape),
                "sha256": hashlib.sha256(member).hexdigest(),
            }
        )
    header = {
        "format": _FORMAT,
        "schema": _SCHEMA,
        "content": content,
        "arrays": entries,
    }
    text = _npy(np.frombuffer(json.dumps(header, allow_nan=False).encode(), np.uint8))
    digest = hashlib.sha256(text).hexdigest()
    with whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.comment = f"{_FORMAT} {digest}".encode()
        for name, data in {_HEADER: text, **members}.items():
            # A fixed date: the same results give the same bytes.
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)


def load_npz(path: str | os.PathLike) -> Any:
    """Loads what `save_npz` saved: the same modules, with the same bits.

    Nothing in the file is run or trusted: classes come from a fixed list, each byte is
    checked against its digest, and no array is made larger than the file.

    Args:
        path: The file.

    Returns:
        The module or dictionary that was saved. Arrays that were NumPy's come back as
        NumPy's, others as JAX's.

    Raises:
        PhysaxFileError: If the file is damaged, of another version or not by
            `save_npz`, or holds 64-bit numbers while JAX has them off.
        FileNotFoundError: If there is no such file.
    """
    # A file that cannot be opened says so itself.
    with Path(path).open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                header, members = _read(archive, os.fstat(file.fileno()).st_size)
        except _UNREADABLE as error:
            raise PhysaxFileError(
                path, f"It is not a valid npz file: {error}."
            ) from error
        except EncodingError as error:
            raise PhysaxFileError(path, str(error)) from error
    try:
        arrays = [
            _array(entry, data)
            for entry, data in zip(header["arrays"], members, strict=True)
        ]
        return decode(header["content"], arrays)
    except (EncodingError, RecursionError) as error:
        raise PhysaxFileError(path, str(error)) from error


# What the standard library raises on damaged archives. An OSError comes of seeking to
# before the start; the last two are for features that we never use, a password and
# unknown ways to compress.
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
    RuntimeError,
    NotImplementedError,
)


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    np.lib.format.write_array(buffer, little, (1, 0), allow_pickle=False)
    return buffer.getvalue()


def _read(archive: zipfile.ZipFile, size: int) -> tuple[dict, list[bytes]]:
    """Reads the header and the arrays' bytes, and compares all with the digests."""
    comment = _COMMENT.fullmatch(archive.comment)
    if comment is None:
        raise EncodingError("It is damaged, or was not written by `save_npz`.")
    infos = {info.filename: info for info in archive.infolist()}
    if len(infos) != len(archive.infolist()):
        raise EncodingError("It is damaged: a name occurs twice.")
    declared = 0
    for info in infos.values():
        declared += info.file_size
        stored = info.compress_type == zipfile.ZIP_STORED
        # Checked before anything is read, so that no lie makes us ask for memory.
        if not stored or info.file_size != info.compress_size or declared > size:
            raise EncodingError(f"It is damaged: {info.filename!r} has the wrong size.")
    header = _header(archive, infos, comment[1].decode())
    names = [f"array_{number}.npy" for number in range(len(header["arrays"]))]
    if infos.keys() != {_HEADER, *names}:
        raise EncodingError("It is damaged: arrays are missing or left over.")
    members = []
    for name, entry in zip(names, header["arrays"], strict=True):
        data = archive.read(infos[name])
        known = isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "sha256"}
        if not known or hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise EncodingError(f"It is damaged: the digest of {name!r} is wrong.")
        members.append(data)
    return header, members


def _header(archive: zipfile.ZipFile, infos: dict, digest: str) -> dict:
    if _HEADER not in infos:
        raise EncodingError("It is damaged, or was not written by `save_npz`.")
    data = archive.read(infos[_HEADER])
    if hashlib.sha256(data).hexdigest() != digest:
        raise EncodingError("It is damaged: the digest of its header is wrong.")
    try:
        header = json.loads(_payload(data))
    except (ValueError, RecursionError) as error:
        raise EncodingError(f"Its header cannot be read: {error}.") from error
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise EncodingError("Its header is not one of `save_npz`.")
    if header.get("schema") != _SCHEMA:
        raise EncodingError(
            f"It must have the schema {_SCHEMA}, but has {header.get('schema')!r}: "
            "another version of physax wrote it."
        )
    if header.keys() != {"format", "schema", "content", "arrays"}:
        raise EncodingError("Its header has missing or unknown keys.")
    if not isinstance(header["arrays"], list):
        raise EncodingError("Its header has no list of arrays.")
    return header


def _payload(member: bytes) -> bytes:
    """Returns what follows the header of NumPy's format, version 1."""
    if member[:8] != b"\x93NUMPY\x01\x00" or len(member) < 10:
        raise EncodingError("An array is not in version 1 of NumPy's format.")
    return member[10 + int.from_bytes(member[8:10], "little") :]


def _array(entry: dict, member: bytes) -> np.ndarray:
    """Makes an array of the shape that the header declares, if the bytes fit it."""
    shape, name = entry["shape"], entry["dtype"]
    good = (
        isinstance(shape, list)
        and len(shape) <= _MAX_RANK
        and all(type(n) is int and n >= 0 for n in shape)
    )
    if not good:
        raise EncodingError("The shape of an array cannot be read.")
    dtype = stored_dtype(name)
    payload = _payload(member)
    # Python's integers: a product that overflows would pass for a small array.
    if dtype.name != name or math.prod(shape) * dtype.itemsize != len(payload):
        raise EncodingError(
            f"An array of shape {tuple(shape)} and dtype {name} does not fit its "
            f"{len(payload)} bytes."
        )
    array = np.frombuffer(payload, dtype.newbyteorder("<")).reshape(shape)
    # A copy: what comes back can be written to, and does not hold the file's bytes.
    return array.astype(dtype)
