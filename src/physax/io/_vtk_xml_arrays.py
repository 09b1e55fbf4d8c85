"""The arrays of VTK's XML files."""

from io import BufferedReader
from typing import Literal

import numpy as np

from ._vtk_arrays import (
    LZMA,
    XML_TYPES,
    ZLIB,
    Base64Source,
    RawSource,
    bytes_to_array,
    check_size,
    parse_words,
    read_block,
)
from ._vtk_cells import VTKFaultError
from ._vtk_tree import Element


class ArrayReader:
    """Reads the arrays that elements describe."""

    def __init__(
        self, root: Element, file: BufferedReader, appended: int | None, size: int
    ):
        if root.tag != "VTKFile":
            raise VTKFaultError(
                f"It must be a VTK file, but its XML begins with <{root.tag}>."
            )
        orders: dict[str, Literal["<", ">"]] = {"LittleEndian": "<", "BigEndian": ">"}
        order = root.attributes.get("byte_order", "LittleEndian")
        if order not in orders:
            raise VTKFaultError(
                f"'byte_order' must be LittleEndian or BigEndian, but is {order!r}."
            )
        self.order: Literal["<", ">"] = orders[order]
        header = root.attributes.get("header_type", "UInt32")
        if header not in ("UInt32", "UInt64"):
            raise VTKFaultError(
                f"'header_type' must be UInt32 or UInt64, but is {header!r}."
            )
        self.header = XML_TYPES[header].newbyteorder(self.order)
        self.compressor = root.attributes.get("compressor") or None
        self.file, self.size, self.appended = file, size, appended
        last = root.find("AppendedData")
        self.encoding = "raw" if last is None else last.attributes.get("encoding")
        self._text: bytes | None = None

    def array(self, element: Element, count: int | None, what: str) -> np.ndarray:
        """Reads an array of `count` numbers, or of as many as its bytes have."""
        name = element.get("type")
        bits = name == "Bit"
        if name not in XML_TYPES and not bits:
            raise VTKFaultError(
                f"The type of {what} must be one of {', '.join(XML_TYPES)} or Bit, but "
                f"is {name!r}."
            )
        dtype = np.dtype("u1") if bits else XML_TYPES[name]
        if count is not None:
            check_size(count, dtype, what)
        if element.get("format") == "ascii":
            return self._words(element, count, dtype, what)
        if self.compressor not in (None, ZLIB, LZMA):
            raise VTKFaultError(
                f"It must be compressed by {ZLIB} or {LZMA}, or not at all, but is by "
                f"{self.compressor!r}. Rewrite it with one of these."
            )
        stored = None if count is None else -(-count // 8) if bits else count
        expected = None if stored is None else stored * dtype.itemsize
        source = self._source(element, what)
        data = read_block(source, self.header, self.compressor, expected, what)
        values = bytes_to_array(data, dtype, self.order, what)
        return np.unpackbits(values, count=count) if bits else values

    def _words(self, element, count, dtype, what) -> np.ndarray:
        # The text ended at a tag: its last number is whole.
        text = element.text() + b"\n"
        if count is None:
            count = len(text.split())
        values, end = parse_words(text, 0, count, dtype, what)
        if text[end:].strip():
            raise VTKFaultError(f"{what} must be {count} numbers, but has more.")
        return values

    def _source(self, element: Element, what: str) -> RawSource | Base64Source:
        style = element.get("format")
        if style == "binary":
            return Base64Source(element.text())
        if style != "appended" or self.appended is None:
            raise VTKFaultError(
                f"The format of {what} must be ascii, binary or appended, and appended "
                f"data must be there; but it is {style!r}, and they are "
                f"{'not ' if self.appended is None else ''}there."
            )
        offset = element.count("offset")
        if self.encoding == "raw":
            return RawSource(self.file, self.appended + offset, self.size)
        if self.encoding != "base64":
            raise VTKFaultError(
                f"The appended data must be raw or base64, but are {self.encoding!r}."
            )
        if self._text is None:
            self.file.seek(self.appended)
            self._text = self.file.read().split(b"<", 1)[0].rstrip()
        return Base64Source(self._text, offset)

    def tuples(self, element: Element, count: int, what: str) -> np.ndarray:
        """Reads `count` tuples, as an array `[count, components]`."""
        components = element.count("NumberOfComponents", 1)
        values = self.array(element, count * components, what)
        return values.reshape(count, components)


def indices(values: np.ndarray) -> np.ndarray:
    """Returns numbers of points, or offsets, as signed integers.

    Raises:
        VTKFaultError: If they are not integers, or too large.
    """
    if values.dtype.kind not in "iu" or (
        values.dtype == np.uint64 and values.size and values.max() >= 1 << 63
    ):
        raise VTKFaultError("Numbers of points and offsets must be integers of 63 bits")
    return values.astype(np.int64, copy=False)
