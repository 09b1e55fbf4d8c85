"""How VTK files store an array of numbers: as text, base64, raw or compressed bytes."""

import binascii
import lzma
import re
import zlib
from io import BufferedReader
from typing import Literal

import numpy as np

from ..runtime import available_memory
from ._vtk_cells import VTKFaultError


XML_TYPES = {
    **{f"Float{n}": np.dtype(f"f{n // 8}") for n in (32, 64)},
    **{f"Int{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    **{f"UInt{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)},
}
ZLIB, LZMA = "vtkZLibDataCompressor", "vtkLZMADataCompressor"

# Text is taken apart in pieces, since each number becomes an object of Python.
_PIECE = 1 << 20
_ALWAYS_FITS = 1 << 24
_MOST_MEMORY_OF_LZMA = 1 << 28
_WORD_END = re.compile(rb"\s")


def check_size(count: int, dtype: np.dtype, what: str) -> None:
    """Refuses an array that the memory could not hold, before it is made.

    Raises:
        VTKFaultError: If it is too large.
    """
    size = count * dtype.itemsize
    if size < _ALWAYS_FITS:
        return
    free = available_memory().host
    if free is not None and size > free:
        raise VTKFaultError(
            f"{what} must fit into the free memory, {free} bytes, but by its header "
            f"has {size}. If that is right, read fewer `arrays`, or in smaller pieces."
        )


def parse_words(
    text: bytes, start: int, count: int, dtype: np.dtype, what: str
) -> tuple[np.ndarray, int]:
    """Parses numbers that are separated by white space.

    Args:
        text: The text.
        start: Where to begin.
        count: How many numbers to parse.
        dtype: Their type.
        what: What they are, for messages.

    Returns:
        The numbers, and where the last one ends.

    Raises:
        VTKFaultError: If there are fewer, one is not a number of this type, or the text
            ends right after the last, which then may be cut.
    """
    # The shortest number takes one character and another that separates.
    most = (len(text) - start + 1) // 2
    if count > most:
        raise VTKFaultError(
            f"{what} must be {count} numbers, but its text has room for {most} at "
            "most. The file is truncated, or its header is wrong."
        )
    values, found = np.empty(count, dtype), 0
    while found < count:
        if start >= len(text):
            raise VTKFaultError(
                f"{what} must be {count} numbers, but only {found} are there."
            )
        end = _WORD_END.search(text, min(start + _PIECE, len(text)))
        stop = end.start() if end else len(text)
        words = text[start:stop].split(None, count - found)
        rest = 0
        if len(words) > count - found:
            rest = len(words.pop())
        values[found : found + len(words)] = _numbers(words, dtype, what)
        found += len(words)
        start = stop - rest
    if count and not text[start - 1 : start].isspace() and start == len(text):
        raise VTKFaultError(
            f"{what} must be followed by the end of a line, but the file ends right "
            "after a digit, so that more may be missing. End its last line."
        )
    return values, start


def _numbers(words: list[bytes], dtype: np.dtype, what: str) -> np.ndarray:
    joined = b" ".join(words)
    convert, wide = (float, np.float64) if dtype.kind == "f" else (int, np.int64)
    if dtype == np.uint64:
        wide = np.uint64
    try:
        # Python would accept 1_000.
        if b"_" in joined:
            raise ValueError("one has an underscore")
        values = np.fromiter(map(convert, words), wide, len(words))
    except (ValueError, OverflowError) as error:
        raise VTKFaultError(f"{what} must be numbers, but {error}.") from error
    if dtype.kind != "f" and values.size:
        limits = np.iinfo(dtype)
        if values.min() < limits.min or values.max() > limits.max:
            raise VTKFaultError(
                f"{what} must be numbers from {limits.min} to {limits.max}, but one is "
                "not."
            )
    return values


def bytes_to_array(
    data: bytes | bytearray, dtype: np.dtype, order: Literal["<", ">"], what: str
) -> np.ndarray:
    """Returns bytes as numbers in the byte order of this computer."""
    if len(data) % dtype.itemsize:
        raise VTKFaultError(
            f"{what} must be numbers of {dtype.itemsize} bytes, but has {len(data)} "
            "bytes."
        )
    values = np.frombuffer(data, dtype.newbyteorder(order))
    # Bytes cannot be written to, but what was read into a bytearray can.
    return values.astype(dtype, copy=not values.flags.writeable)


class RawSource:
    """Raw bytes of an open file, read in order.

    Args:
        file: The file.
        start: Where they begin.
        size: The size of the whole file.
    """

    def __init__(self, file: BufferedReader, start: int, size: int):
        self._file, self._start, self._size = file, start, size

    def take(self, count: int, what: str) -> bytearray:
        """Returns the next bytes, all of them.

        Raises:
            VTKFaultError: If there are fewer.
        """
        left = max(self._size - self._start, 0)
        if count > left:
            raise VTKFaultError(
                f"{what} must have {count} bytes, but only {left} are left in the "
                "file. It is truncated, or its header is wrong."
            )
        self._file.seek(self._start)
        data = bytearray(count)
        found = self._file.readinto(data)
        if found != count:
            raise VTKFaultError(
                f"{what} must have {count} bytes, but only {found} could be read."
            )
        self._start += count
        return data


class Base64Source:
    """Bytes in base64, read in order.

    They may be one stream or several, if each begins where one call of `take` does.

    Args:
        text: The text.
        start: Where it begins.
    """

    def __init__(self, text: bytes, start: int = 0):
        self._text, self._start, self._left = text, start, b""

    def take(self, count: int, what: str) -> bytes:
        """Returns the next bytes, all of them.

        Raises:
            VTKFaultError: If there are fewer, or they are no base64.
        """
        length = 4 * -(-max(count - len(self._left), 0) // 3)
        piece = self._text[self._start : self._start + length]
        if len(piece) < length:
            raise VTKFaultError(
                f"{what} must have {length} characters of base64, but only "
                f"{len(piece)} are left. The file is truncated, or its header is "
                "wrong."
            )
        try:
            data = self._left + binascii.a2b_base64(piece, strict_mode=True)
        except (binascii.Error, ValueError) as error:
            raise VTKFaultError(f"{what} is not valid base64: {error}.") from error
        if len(data) < count:
            raise VTKFaultError(
                f"{what} must have {count} bytes, but its base64 ends after "
                f"{len(data)}."
            )
        self._start += length
        self._left = data[count:]
        return data[:count]


def read_block(
    source: RawSource | Base64Source,
    header: np.dtype,
    compressor: str | None,
    expected: int | None,
    what: str,
) -> bytes | bytearray:
    """Reads the bytes of one array with the sizes before them.

    Args:
        source: From where.
        header: The type of the sizes, in the byte order of the file.
        compressor: VTK's name of the compression, or `None`.
        expected: How many bytes the array must have, if that is known.
        what: What it is, for messages.

    Returns:
        The bytes, unpacked.

    Raises:
        VTKFaultError: If sizes disagree, or the data are damaged.
    """

    def sizes(count: int) -> list[int]:
        data = source.take(count * header.itemsize, f"The header of {what}")
        return np.frombuffer(data, header).tolist()

    if compressor is None:
        (size,) = sizes(1)
        _check_expected(size, expected, what)
        return source.take(size, what)
    # In base64 the header is a stream of its own. Three sizes end at a full group of
    # its characters, so that it can be read in two parts.
    blocks, block, last = sizes(3)
    if last > block:
        raise VTKFaultError(f"{what} must end in a smaller block, but does not.")
    size = blocks * block - (block - last if blocks and last else 0)
    _check_expected(size, expected, what)
    lengths = sizes(blocks)
    packed = memoryview(source.take(sum(lengths), what))
    parts, at = [], 0
    for number, length in enumerate(lengths, 1):
        size = last if number == blocks and last else block
        parts.append(_unpacked(packed[at : at + length], size, compressor, what))
        at += length
    return bytearray().join(parts)


def _check_expected(size: int, expected: int | None, what: str) -> None:
    if expected is not None and size != expected:
        raise VTKFaultError(
            f"{what} must have {expected} bytes by its type and number of values, but "
            f"its header says {size}."
        )
    check_size(size, np.dtype("u1"), what)


def _unpacked(packed: memoryview, size: int, compressor: str, what: str) -> bytes:
    """Unpacks one block, at most one byte beyond its declared size."""
    try:
        if compressor == ZLIB:
            unpacker = zlib.decompressobj()
        else:
            unpacker = lzma.LZMADecompressor(memlimit=_MOST_MEMORY_OF_LZMA)
        data = unpacker.decompress(packed, size + 1)
    except (zlib.error, lzma.LZMAError) as error:
        raise VTKFaultError(f"{what} cannot be unpacked: {error}.") from error
    # The end of the stream holds a check sum.
    if len(data) != size or not unpacker.eof:
        raise VTKFaultError(
            f"{what} must unpack to blocks of {size} bytes, but one has "
            f"{'more' if len(data) > size else len(data)}."
        )
    return data


def word_at(words: list[str], at: int) -> str:
    """Returns a word of a line, or says that the line is too short."""
    if len(words) <= at:
        raise VTKFaultError(
            f"The line {' '.join(words)[:80]!r} must have {at + 1} words or more."
        )
    return words[at]


def count_at(words: list[str], at: int) -> int:
    """Returns a word of a line as a number that is not negative."""
    word = word_at(words, at)
    if not re.fullmatch(r"\d{1,18}", word, re.ASCII):
        raise VTKFaultError(
            f"{word[:40]!r} in the line {' '.join(words)[:80]!r} must be a number of "
            "at most 18 digits."
        )
    return int(word)
