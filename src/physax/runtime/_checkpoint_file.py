"""The file of a checkpoint: named arrays and a header, every byte under a digest.

Layout: 8 bytes that name the format, 8 bytes with the length of the header (little
endian), 32 bytes with its SHA-256, the header (JSON), then the arrays one after the
other in C order and little endian.
"""

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._checks import PhysaxError


_MAGIC = b"physaxC\x01"
_SCHEMA = 2
_START = len(_MAGIC) + 8 + 32
_LONGEST_HEADER = 64 * 1024 * 1024
_PIECE = 16 * 1024 * 1024
# An allow-list: a dtype is never built from whatever text a file holds.
_DTYPES = {
    name: jnp.dtype(name)
    for name in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
        "bfloat16 float16 float32 float64 complex64 complex128"
    ).split()
}


class CheckpointError(PhysaxError, OSError):
    """A checkpoint cannot be written, or must not be used."""


class Checkpoint(eqx.Module):
    """What a checkpoint holds.

    Attributes:
        step: How many steps had been done.
        arrays: The arrays by name; those of several processes may lie on devices.
        digest: The digest of the problem's fingerprint.
        fields: The fields of that fingerprint; empty if only a digest was given.
        metadata: Further values, as JSON has them.
    """

    step: int
    arrays: dict[str, Any]
    digest: str
    fields: dict[str, str]
    metadata: dict


def encode_header(checkpoint: Checkpoint) -> tuple[bytes, list[np.ndarray]]:
    """Makes everything before the arrays.

    Args:
        checkpoint: What will be written.

    Returns:
        The first bytes of the file, and the arrays as they follow.

    Raises:
        CheckpointError: If a value cannot be stored.
    """
    entries, payload = [], []
    for name, array in checkpoint.arrays.items():
        array = np.asarray(array)
        if array.dtype.name not in _DTYPES:
            raise CheckpointError(
                f"The array {name!r} must have one of the dtypes "
                f"{', '.join(_DTYPES)}, but has {array.dtype.name}."
            )
        little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
        entries.append(
            {
                "name": name,
                "dtype": array.dtype.name,
                "shape": list(array.shape),
                "sha256": hashlib.sha256(_bytes(little)).hexdigest(),
            }
        )
        payload.append(little)
    header = {
        "schema": _SCHEMA,
        "step": checkpoint.step,
        "fingerprint": checkpoint.digest,
        "fields": checkpoint.fields,
        "metadata": checkpoint.metadata,
        "arrays": entries,
    }
    try:
        text = json.dumps(header, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"`metadata` must hold only what JSON can, but: {error}."
        ) from error
    if len(text) > _LONGEST_HEADER:
        raise CheckpointError(
            f"`metadata` and names must take at most {_LONGEST_HEADER} bytes, but take "
            f"{len(text)}. Store long values as arrays."
        )
    start = _MAGIC + struct.pack("<Q", len(text)) + hashlib.sha256(text).digest()
    return start + text, payload


def write_arrays(file: BinaryIO, payload: list[np.ndarray]) -> None:
    """Writes the arrays behind the header."""
    for array in payload:
        view = _bytes(array)
        # In pieces: one huge write cannot be interrupted by a signal.
        for begin in range(0, len(view), _PIECE):
            file.write(view[begin : begin + _PIECE])


def read_checkpoint(file: BinaryIO, name: str, max_bytes: int) -> Checkpoint:
    """Reads a checkpoint, and trusts nothing in it before it is verified.

    Args:
        file: The open file.
        name: Its name, for messages.
        max_bytes: The largest memory its arrays may take.

    Returns:
        What it holds.

    Raises:
        CheckpointError: If the file is not a whole, unchanged checkpoint of this
            format, or is too large.
    """
    try:
        return _read(file, max_bytes)
    except _Fault as fault:
        raise CheckpointError(f"The checkpoint `{name}` {fault}") from fault


class _Fault(Exception):
    """What is wrong with a file; the end of a sentence."""


def _read(file: BinaryIO, max_bytes: int) -> Checkpoint:
    size = os.fstat(file.fileno()).st_size
    header, begin = _read_header(file, size)
    entries = list(_entries(header))
    declared = sum(count for *_, count in entries)
    if begin + declared != size:
        raise _Fault(
            f"must have {begin + declared} bytes, but has {size}: it is truncated or "
            "damaged."
        )
    if declared > max_bytes:
        raise _Fault(
            f"must take at most {max_bytes} bytes of memory, but takes {declared}."
        )
    arrays = {}
    for name, dtype, shape, digest, _ in entries:
        array = np.empty(shape, dtype.newbyteorder("<"))
        view = _bytes(array)
        seen = hashlib.sha256()
        for start in range(0, len(view), _PIECE):
            piece = view[start : start + _PIECE]
            if file.readinto(piece) != len(piece):  # pyright: ignore
                raise _Fault("is truncated.")
            seen.update(piece)
        if seen.hexdigest() != digest:
            raise _Fault(f"is damaged: the digest of its array {name!r} is wrong.")
        arrays[name] = array.astype(dtype, copy=False)
    return Checkpoint(
        step=header["step"],
        arrays=arrays,
        digest=header["fingerprint"],
        fields=header["fields"],
        metadata=header["metadata"],
    )


def _read_header(file: BinaryIO, size: int) -> tuple[dict, int]:
    start = file.read(_START)
    if start[: len(_MAGIC)] != _MAGIC:
        raise _Fault("does not begin like a checkpoint of this format.")
    if len(start) < _START:
        raise _Fault("is truncated.")
    (length,) = struct.unpack_from("<Q", start, len(_MAGIC))
    if length > min(_LONGEST_HEADER, size - _START):
        raise _Fault("is truncated or damaged: its header does not fit.")
    text = file.read(length)
    if hashlib.sha256(text).digest() != start[-32:]:
        raise _Fault("is damaged: the digest of its header is wrong.")
    try:
        header = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_nan)
    except (ValueError, RecursionError) as error:
        raise _Fault(f"has a header that cannot be read: {error}.") from error
    if not isinstance(header, dict):
        raise _Fault("has a header that is not an object.")
    if header.get("schema") != _SCHEMA:
        raise _Fault(
            f"must have the schema {_SCHEMA}, but has {header.get('schema')!r}: "
            "another version of physax wrote it."
        )
    kinds = {
        "step": int,
        "fingerprint": str,
        "fields": dict,
        "metadata": dict,
        "arrays": list,
    }
    for name, kind in kinds.items():
        if type(header.get(name)) is not kind:
            raise _Fault(
                f"has a header whose `{name}` is not of the type {kind.__name__}."
            )
    if not all(isinstance(text, str) for text in header["fields"].values()):
        raise _Fault("has a header with an unreadable fingerprint.")
    if header["step"] < 0:
        raise _Fault(f"must have a step of at least 0, but has {header['step']}.")
    return header, _START + length


def _entries(
    header: dict,
) -> Iterator[tuple[str, np.dtype, tuple[int, ...], str, int]]:
    names = set()
    for entry in header["arrays"]:
        if not isinstance(entry, dict) or entry.keys() != {
            "name",
            "dtype",
            "shape",
            "sha256",
        }:
            raise _Fault("has a header with an unreadable array.")
        name, shape = entry["name"], entry["shape"]
        good = (
            isinstance(name, str)
            and name not in names
            and isinstance(entry["dtype"], str)
            and entry["dtype"] in _DTYPES
            and isinstance(entry["sha256"], str)
            and isinstance(shape, list)
            and len(shape) <= 32
            and all(type(n) is int and 0 <= n < 2**60 for n in shape)
        )
        if not good:
            raise _Fault("has a header with an unreadable array.")
        names.add(name)
        dtype = _DTYPES[entry["dtype"]]
        # Python's integers: a product that overflows would pass for a small array.
        count = math.prod(shape) * dtype.itemsize
        yield name, dtype, tuple(shape), entry["sha256"], count


def _unique(pairs: list[tuple[str, object]]) -> Mapping[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_nan(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _bytes(array: np.ndarray) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8))
