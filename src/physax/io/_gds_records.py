"""Checks that a GDSII stream is well formed before a reader in C++ takes it.

Such readers trust what the file says: a reference without a name or an array without
its corners crashes the process.
"""

from collections.abc import Iterator
from pathlib import Path

from .._checks import PhysaxError


class GDSError(PhysaxError, ValueError):
    """A GDSII file cannot be read or does not hold what was asked for."""


_NONE, _BITS, _INT16, _INT32, _REAL, _STRING = 0, 1, 2, 3, 5, 6

_HEADER, _BEGIN_LIBRARY, _LIBRARY_NAME, _UNITS, _END_LIBRARY = range(5)
_BEGIN_CELL, _CELL_NAME, _END_CELL = range(5, 8)
_BOUNDARY, _PATH, _REFERENCE, _ARRAY, _TEXT = range(8, 13)
_LAYER, _DATATYPE, _POINTS, _END_ELEMENT, _NAME, _COLUMNS_ROWS = (
    *(0x0D, 0x0E, 0x10, 0x11),
    *(0x12, 0x13),
)
_NODE, _TEXT_TYPE, _TEXT_STRING, _BOX, _BOX_TYPE = 0x15, 0x16, 0x19, 0x2D, 0x2E

_ELEMENTS = {
    _BOUNDARY: ({_LAYER, _DATATYPE}, 4),
    _PATH: ({_LAYER, _DATATYPE}, 2),
    _REFERENCE: ({_NAME}, 1),
    _ARRAY: ({_NAME, _COLUMNS_ROWS}, 3),
    _TEXT: ({_LAYER, _TEXT_TYPE, _TEXT_STRING}, 1),
    _NODE: ({_LAYER}, 1),
    _BOX: ({_LAYER, _BOX_TYPE}, 5),
}
"""For each element the records it must have and the least number of points."""

_OF_LIBRARY = {_LIBRARY_NAME: (_STRING, None), _UNITS: (_REAL, 16)} | {
    0x1F: (_STRING, None),
    0x20: (_STRING, None),
    0x22: (_INT16, 2),
    0x23: (_STRING, None),
    0x36: (_INT16, 2),
    0x37: (_STRING, None),
    0x38: (_NONE, 0),
}
_OF_ELEMENT = {
    _LAYER: (_INT16, 2),
    _DATATYPE: (_INT16, 2),
    0x0F: (_INT32, 4),
    _POINTS: (_INT32, None),
    _NAME: (_STRING, None),
    _COLUMNS_ROWS: (_INT16, 4),
    _TEXT_TYPE: (_INT16, 2),
    0x17: (_BITS, 2),
    _TEXT_STRING: (_STRING, None),
    0x1A: (_BITS, 2),
    0x1B: (_REAL, 8),
    0x1C: (_REAL, 8),
    0x21: (_INT16, 2),
    0x26: (_BITS, 2),
    0x2A: (_INT16, 2),
    0x2B: (_INT16, 2),
    0x2C: (_STRING, None),
    _BOX_TYPE: (_INT16, 2),
    0x2F: (_INT32, 4),
    0x30: (_INT32, 4),
    0x31: (_INT32, 4),
}
"""For each record its kind of data and number of bytes, None where that varies."""

_BRACKETS = {
    _HEADER: (_INT16, 2),
    _BEGIN_LIBRARY: (_INT16, 24),
    _END_LIBRARY: (_NONE, 0),
    _BEGIN_CELL: (_INT16, 24),
    _CELL_NAME: (_STRING, None),
    _END_CELL: (_NONE, 0),
    _END_ELEMENT: (_NONE, 0),
    **{element: (_NONE, 0) for element in _ELEMENTS},
}


def check_records(path: Path, max_bytes: int):
    """Refuses a file whose records are damaged, misplaced or incomplete.

    Args:
        path: The file.
        max_bytes: Refuses a larger file unread.

    Raises:
        GDSError: Names the file, the byte and what is wrong.
        FileNotFoundError: If there is no such file.
    """
    size = path.stat().st_size
    if size > max_bytes:
        raise GDSError(
            f"{path} has {size} bytes, more than `max_bytes` = {max_bytes}. Raise that "
            "limit if the file is trusted."
        )
    records = _records(path)
    for expected in (_HEADER, _BEGIN_LIBRARY):
        at, kind, _ = next(records)
        if kind != expected:
            raise GDSError(f"{path} is not a GDSII file: wrong record at byte {at}.")
    has_units = False
    for at, kind, _ in records:
        if kind == _END_LIBRARY and has_units:
            return
        if kind == _BEGIN_CELL and has_units:
            _check_cell(path, records)
        elif kind in _OF_LIBRARY:
            has_units = has_units or kind == _UNITS
        else:
            raise _damaged(path, at, f"record {kind:#04x} is misplaced in the library")


def _damaged(path: Path, at: int, what: str) -> GDSError:
    return GDSError(f"{path} is damaged at byte {at}: {what}.")


def _records(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yields position, kind and content of each record."""
    known = _BRACKETS | _OF_LIBRARY | _OF_ELEMENT
    data = path.read_bytes()
    if len(data) < 4 or data[:4] != b"\0\6\0\2":
        raise GDSError(f"{path} is not a GDSII file: it has no header record.")
    at = 0
    while at + 4 <= len(data):
        length = int.from_bytes(data[at : at + 2], "big")
        kind, form = data[at + 2], data[at + 3]
        if length < 4 or length % 2 or at + length > len(data):
            raise _damaged(path, at, f"a record has length {length}")
        wanted, size = known.get(kind, (None, None))
        if form != wanted or (size is not None and size != length - 4):
            what = f"record {kind:#04x} has data type {form} and {length - 4} bytes"
            raise _damaged(path, at, what)
        content = data[at + 4 : at + length]
        if form == _STRING and not content.isascii():
            raise _damaged(path, at, "a string is not in ASCII")
        # The first bit of a number in base 16 is its sign, seven more the exponent.
        if kind == _UNITS and not all(
            content[k] < 0x80 and any(content[k + 1 : k + 8]) for k in (0, 8)
        ):
            raise _damaged(path, at, "the units are not positive")
        yield at, kind, content
        at += length
    raise GDSError(f"{path} is cut off: it has no end-of-library record.")


def _check_cell(path: Path, records: Iterator[tuple[int, int, bytes]]):
    """Takes the records of one cell."""
    at, kind, content = next(records)
    if kind != _CELL_NAME or not content.rstrip(b"\0"):
        raise _damaged(path, at, "a cell has no name")
    for at, kind, _ in records:
        if kind == _END_CELL:
            return
        if kind not in _ELEMENTS:
            raise _damaged(path, at, f"record {kind:#04x} is misplaced in a cell")
        _check_element(path, at, kind, records)


def _check_element(
    path: Path, start: int, element: int, records: Iterator[tuple[int, int, bytes]]
):
    """Takes the records of one element and refuses it where one is missing."""
    required, least = _ELEMENTS[element]
    seen: set[int] = set()
    points = 0
    for at, kind, content in records:
        if kind == _END_ELEMENT:
            break
        if kind not in _OF_ELEMENT or (kind == _NAME and element not in _REFERRING):
            raise _damaged(path, at, f"record {kind:#04x} is misplaced in an element")
        if kind == _COLUMNS_ROWS and (
            element != _ARRAY
            or not all(int.from_bytes(content[k : k + 2], "big") for k in (0, 2))
        ):
            raise _damaged(path, at, "an array has no columns or rows")
        if kind == _POINTS:
            if len(content) % 8:
                raise _damaged(path, at, f"points take {len(content)} bytes")
            points += len(content) // 8
        seen.add(kind)
    exact = element in (*_REFERRING, _TEXT)
    if required - seen or points < least or (exact and points != least):
        what = f"element {element:#04x} is incomplete, with {points} points"
        raise _damaged(path, start, what)


_REFERRING = (_REFERENCE, _ARRAY)
