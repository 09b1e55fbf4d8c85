"""VTK's legacy files, `.vtk`: text, or text and big-endian bytes.

Reference: Kitware, *VTK File Formats*, "Simple Legacy Formats"; version 5.1 of the
format keeps cells as offsets and connectivity.
"""

import re
from collections.abc import Callable, Collection
from urllib.parse import unquote

import numpy as np

from ._vtk_arrays import (
    bytes_to_array,
    check_size,
    count_at,
    parse_words,
    word_at,
)
from ._vtk_cells import VTKFaultError, ends_to_offsets
from ._vtk_data import GHOSTS, VTKData
from ._vtk_legacy_data import LegacyParts, assemble
from ._vtk_pieces import check_wanted
from ._vtk_xml import time_of


_HEADER = re.compile(rb"# vtk DataFile Version (\d{1,3})\.(\d{1,3})\s*")
_LOOKUP_LINE = re.compile(rb"\s*LOOKUP_TABLE[^\n]{0,1000}\n", re.IGNORECASE)
_TYPES = {
    **{name: np.dtype("u1") for name in ("bit", "unsigned_char", "vtktypeuint8")},
    **{name: np.dtype("i1") for name in ("char", "signed_char", "vtktypeint8")},
    **{name: np.dtype("u2") for name in ("unsigned_short", "vtktypeuint16")},
    **{name: np.dtype("i2") for name in ("short", "vtktypeint16")},
    **{name: np.dtype("u4") for name in ("unsigned_int", "vtktypeuint32")},
    # Identifiers have 64 bits in memory, but 32 in the file.
    **{name: np.dtype("i4") for name in ("int", "vtkidtype", "vtktypeint32")},
    # What Linux and macOS write; files from Windows would have 32 bits here.
    **{
        name: np.dtype("u8")
        for name in ("unsigned_long", "unsigned_long_long", "vtktypeuint64")
    },
    **{name: np.dtype("i8") for name in ("long", "long_long", "vtktypeint64")},
    "float": np.dtype("f4"),
    "double": np.dtype("f8"),
}
_KINDS = {
    "STRUCTURED_POINTS": "image",
    "RECTILINEAR_GRID": "rectilinear",
    "STRUCTURED_GRID": "structured",
    "UNSTRUCTURED_GRID": "unstructured",
    "POLYDATA": "polydata",
}
_SECTION_NAMES = {
    "VERTICES": "Verts",
    "LINES": "Lines",
    "POLYGONS": "Polys",
    "TRIANGLE_STRIPS": "Strips",
}
# Attributes with a fixed number of components.
_COMPONENTS = {
    "VECTORS": 3,
    "NORMALS": 3,
    "TENSORS": 9,
    "TENSORS6": 6,
    "GLOBAL_IDS": 1,
    "PEDIGREE_IDS": 1,
    "EDGE_FLAGS": 1,
}


def read_legacy(text: bytes, arrays: Collection[str] | None) -> VTKData:
    """Reads a legacy file.

    Args:
        text: The whole file.
        arrays: Names of values on points and cells to read, or `None` for all.

    Raises:
        VTKFaultError: If it is damaged or cannot be read.
    """
    legacy = _Legacy(text, arrays)
    legacy.read()
    check_wanted(arrays, list(legacy.parts.values.values()), legacy.there)
    return assemble(legacy.parts)


def read_legacy_time(text: bytes) -> float | None:
    """Reads the time of a legacy file, which comes before its points."""
    legacy = _Legacy(text, ())
    legacy.read(only_time=True)
    return time_of(legacy.parts.field)


class _Cursor:
    """A place in a legacy file."""

    def __init__(self, text: bytes):
        self.text, self.at = text, 0

    def line(self) -> bytes:
        """Returns the rest of the line, and goes behind its end."""
        end = self.text.find(b"\n", self.at)
        if end < 0:
            raise VTKFaultError("It ends within a line: it is truncated.")
        line, self.at = self.text[self.at : end], end + 1
        return line.rstrip(b"\r")

    def words(self) -> list[str]:
        """Returns the words of the next line that is not empty, none at the end."""
        rest = re.compile(rb"\s*").match(self.text, self.at)
        self.at = rest.end() if rest else self.at
        if self.at == len(self.text):
            return []
        line = self.line()
        if len(line) > 4096:
            raise VTKFaultError(
                f"A line with a keyword must be short, but one has {len(line)} bytes."
            )
        return line.decode("utf-8", errors="replace").split()


class _Legacy:
    """What was read of a legacy file so far."""

    def __init__(self, text: bytes, arrays: Collection[str] | None):
        head = _HEADER.match(text)
        if head is None:
            raise VTKFaultError(
                "It must begin with '# vtk DataFile Version', but begins with "
                f"{text[:40]!r}."
            )
        self.cursor = _Cursor(text)
        self.cursor.line()
        self.cursor.line()
        style = self.cursor.line().strip().upper()
        if style not in (b"ASCII", b"BINARY"):
            raise VTKFaultError(
                f"Its third line must be ASCII or BINARY, but is {style[:40]!r}."
            )
        self.ascii = style == b"ASCII"
        self.by_offsets = int(head[1]) >= 5
        self.arrays = arrays
        self.parts = LegacyParts()
        self.there: list[str] = []
        # Where values belong that come next, and how many: on points or on cells.
        self.place: str | None = None
        self.count = 0

    def read(self, *, only_time: bool = False) -> None:
        """Reads on to the end of the file, or up to the points."""
        while words := self.cursor.words():
            key = words[0].upper()
            if only_time and key in ("POINTS", "DIMENSIONS"):
                return
            for keys, reader in self._readers():
                if key in keys:
                    reader(key, words)
                    break
            else:
                raise VTKFaultError(
                    f"It has the unknown keyword {words[0][:40]!r}: it is damaged or "
                    "truncated, or of a kind that is not read."
                )
        if self.count and not any(f"({self.place})" in t for t in self.there):
            raise VTKFaultError(
                f"It must have values on {self.place}, but ends before: it is "
                "truncated."
            )

    def _readers(self) -> tuple[tuple[Collection[str], Callable], ...]:
        return (
            (("DATASET",), self._dataset),
            (("FIELD",), self._field),
            (("METADATA",), self._metadata),
            (("DIMENSIONS",), self._dimensions),
            (("ORIGIN", "SPACING", "ASPECT_RATIO"), self._image),
            (("POINTS",), self._points),
            (("X_COORDINATES", "Y_COORDINATES", "Z_COORDINATES"), self._coordinates),
            (("CELLS", *_SECTION_NAMES), self._cells),
            (("CELL_TYPES",), self._cell_types),
            (("POINT_DATA", "CELL_DATA"), self._data),
            (("SCALARS",), self._scalars),
            (("COLOR_SCALARS",), self._colors),
            (("LOOKUP_TABLE",), self._table),
            (("TEXTURE_COORDINATES",), self._texture),
            (_COMPONENTS, self._attribute),
        )

    def numbers(self, count: int, type_name: str, what: str) -> np.ndarray:
        """Reads numbers; those of type vtkIdType and bits become whole types."""
        name = type_name.lower()
        if name not in _TYPES:
            raise VTKFaultError(
                f"The type of {what} must be one of {', '.join(_TYPES)}, but is "
                f"{type_name[:40]!r}."
            )
        dtype = _TYPES[name]
        cursor = self.cursor
        if self.ascii:
            wide = np.dtype("i8") if name == "vtkidtype" else dtype
            found = parse_words(cursor.text, cursor.at, count, wide, what)
            values, cursor.at = found
            return values
        size = -(-count // 8) if name == "bit" else count * dtype.itemsize
        left = len(cursor.text) - cursor.at
        if size > left:
            raise VTKFaultError(
                f"{what} must have {size} bytes, but only {left} are left in the file. "
                "It is truncated, or its header is wrong."
            )
        data = cursor.text[cursor.at : cursor.at + size]
        cursor.at += size
        values = bytes_to_array(data, dtype, ">", what)
        if name == "bit":
            return np.unpackbits(values, count=count)
        return values.astype(np.int64) if name == "vtkidtype" else values

    def _dataset(self, key, words):
        del key
        name = words[1].upper() if len(words) > 1 else ""
        if name not in _KINDS:
            raise VTKFaultError(
                f"Its data must be one of {', '.join(_KINDS)}, but are {name[:40]!r}."
            )
        if self.parts.kind is not None:
            raise VTKFaultError("It must hold one DATASET, but holds several.")
        self.parts.kind = _KINDS[name]

    def _field(self, key, words):
        del key
        for _ in range(count_at(words, 2)):
            head = self.cursor.words()
            if head and head[0].upper() == "METADATA":
                self._metadata(head[0], head)
                head = self.cursor.words()
            if head == ["NULL_ARRAY"]:
                continue
            name = unquote(head[0]) if head else ""
            components, tuples = count_at(head, 1), count_at(head, 2)
            type_name = word_at(head, 3)
            if type_name.lower() == "string":
                self._skip_strings(components * tuples, name)
                continue
            what = f"The array {name!r}"
            values = self.numbers(components * tuples, type_name, what)
            self._keep(name, values, components, tuples)

    def _skip_strings(self, count: int, name: str) -> None:
        """Passes over texts: a line each, or after a length of 1, 2, 4 or 8 bytes."""
        cursor = self.cursor
        for _ in range(count):
            if self.ascii:
                cursor.line()
                continue
            # The first two bits tell how long the length is.
            first = cursor.text[cursor.at : cursor.at + 1]
            if not first:
                break
            size = 8 >> (first[0] >> 6)
            length = int.from_bytes(cursor.text[cursor.at : cursor.at + size], "big")
            cursor.at += size + (length & ((1 << (8 * size - 2)) - 1))
        if cursor.at > len(cursor.text) or (count and cursor.at == len(cursor.text)):
            raise VTKFaultError(f"The texts of {name!r} end early: it is truncated.")

    def _metadata(self, key, words):
        del key, words
        # It ends with an empty line.
        while self.cursor.line().strip():
            pass

    def _dimensions(self, key, words):
        del key
        self.parts.shape = tuple(count_at(words, axis) for axis in (1, 2, 3))

    def _image(self, key, words):
        line = " ".join(words[1:]).encode() + b"\n"
        values, _ = parse_words(line, 0, 3, np.dtype("f8"), key)
        self.parts.image["ORIGIN" if key == "ORIGIN" else "SPACING"] = values

    def _points(self, key, words):
        del key
        count = count_at(words, 1)
        flat = self.numbers(3 * count, word_at(words, 2), "The array of points")
        self.parts.points = flat.reshape(count, 3)

    def _coordinates(self, key, words):
        what = f"The array {key}"
        self.parts.axes[key[0]] = self.numbers(
            count_at(words, 1), word_at(words, 2), what
        )

    def _cells(self, key, words):
        first, size = count_at(words, 1), count_at(words, 2)
        if self.by_offsets and first:
            lists = self._offset_lists(first, size)
        else:
            lists = self._counted_lists(key, first, size)
        if key == "CELLS":
            self.parts.cells = lists
        else:
            self.parts.sections.append((_SECTION_NAMES[key], *lists))

    def _offset_lists(self, first: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        parts = []
        for name, count in (("OFFSETS", first), ("CONNECTIVITY", size)):
            words = self.cursor.words()
            if not words or words[0].upper() != name:
                raise VTKFaultError(f"Its cells must have {name}, but do not.")
            values = self.numbers(count, word_at(words, 1), f"The array {name}")
            if values.dtype.kind not in "iu":
                raise VTKFaultError(f"{name} must be integers, but are not.")
            parts.append(values.astype(np.int64))
        offsets, nodes = parts
        return nodes, offsets

    def _counted_lists(
        self, key: str, count: int, size: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Reads cells as the number of their nodes and the nodes, one after another."""
        flat = self.numbers(size, "int", f"The array {key}").astype(np.int64)
        check_size(count, np.dtype("i8"), f"The offsets of {key}")
        entries = flat.tolist()
        sizes, at = [], 0
        while at < size and len(sizes) < count and 0 <= entries[at] < size - at:
            sizes.append(entries[at])
            at += 1 + entries[at]
        if at != size or len(sizes) != count:
            raise VTKFaultError(
                f"{key} must be {count} lists, {size} numbers in all, but are not."
            )
        offsets = ends_to_offsets(np.cumsum(np.asarray(sizes, np.int64)))
        keep = np.ones(size, bool)
        keep[offsets[:-1] + np.arange(count)] = False
        return flat[keep], offsets

    def _cell_types(self, key, words):
        del key
        count = count_at(words, 1)
        types = self.numbers(count, "int", "The array CELL_TYPES")
        if np.any((types < 0) | (types > 255)):
            raise VTKFaultError("Types of cells must be numbers from 0 to 255.")
        self.parts.types = types.astype(np.uint8)

    def _data(self, key, words):
        self.place = "points" if key == "POINT_DATA" else "cells"
        self.count = count_at(words, 1)

    def _scalars(self, key, words):
        del key
        components = count_at(words, 3) if len(words) > 3 else 1
        # Old writers leave this line out.
        table = _LOOKUP_LINE.match(self.cursor.text, self.cursor.at)
        if table:
            self.cursor.at = table.end()
        self._one(words, components, word_at(words, 2))

    def _colors(self, key, words):
        del key
        self._one(words, count_at(words, 2), "float" if self.ascii else "unsigned_char")

    def _table(self, key, words):
        del key
        kind = "float" if self.ascii else "unsigned_char"
        self.numbers(4 * count_at(words, 2), kind, "The colour table")

    def _texture(self, key, words):
        del key
        self._one(words, count_at(words, 2), word_at(words, 3))

    def _attribute(self, key, words):
        self._one(words, _COMPONENTS[key], word_at(words, 2))

    def _one(self, words: list[str], components: int, type_name: str) -> None:
        name = unquote(word_at(words, 1))
        if self.place is None:
            raise VTKFaultError(f"{words[0]} must follow POINT_DATA or CELL_DATA.")
        what = f"The array {name!r}"
        values = self.numbers(components * self.count, type_name, what)
        self._keep(name, values, components, self.count)

    def _keep(self, name, values, components: int, tuples: int) -> None:
        values = values.reshape(tuples, components)
        if self.place is None:
            self.parts.field[name] = values[:, 0] if components == 1 else values
            return
        if tuples != self.count:
            raise VTKFaultError(
                f"The array {name!r} must have {self.count} tuples, but has {tuples}."
            )
        self.there.append(f"{name} ({self.place})")
        if self.arrays is None or name in self.arrays or name == GHOSTS:
            self.parts.values[self.place][name] = values
