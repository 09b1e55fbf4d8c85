"""Data that are read block by block: arrays on disk, or any iterator."""

import mmap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Sharding
from jaxtyping import PyTree

from .._checks import ArgumentError, PhysaxError, whole
from .._known_number import known_number
from .._written_for_jax import check_function
from ..runtime import round_up
from ._passes import points_in


class DataError(PhysaxError, OSError):
    """A part of the data cannot be read, or is not finite."""


class CountError(DataError):
    """A stream gives another number of points than it says: not a chunk to skip."""


class Block(NamedTuple):
    """Some points in memory.

    Attributes:
        batch: The arrays, all blocks of one length.
        first: The first point of them that counts.
        last: One past the last.
    """

    batch: PyTree
    first: int
    last: int


class Stream(eqx.Module):
    """Data that come from an iterator, which is opened anew for each pass.

    Attributes:
        open: Called without arguments for each pass, and once before; returns a new
            iterator of trees of arrays whose first axis is the points, of any lengths.
            The same points must come in the same order each time.
        points: How many points it gives in all.

    Raises:
        ArgumentError: If `open` cannot be called, or `points` is not positive.
    """

    open: Callable = eqx.field(static=True)
    points: int = eqx.field(static=True, converter=lambda x: whole(x, "points"))

    def __check_init__(self):
        check_function(self.open, "open", "lambda: iter(blocks)")


class Skip(eqx.Module):
    """Allows chunks of data that cannot be read or are not finite.

    Attributes:
        max_fraction: The fraction of all chunks that may be left out, in [0, 1).

    Raises:
        ArgumentError: If `max_fraction` is out of its range.
    """

    max_fraction: float = eqx.field(
        static=True, converter=lambda x: known_number(x, "max_fraction")
    )

    def __check_init__(self):
        if not 0 <= self.max_fraction < 1:
            raise ArgumentError(
                f"`max_fraction` must lie in [0, 1), but is {self.max_fraction:g}."
            )


def count_points(data: PyTree) -> int:
    """Returns the number of points of data in memory, on disk or from an iterator."""
    stream = stream_of(data)
    return points_in(data) if stream is None else stream.points


def _is_stream(x) -> bool:
    return isinstance(x, Stream)


def stream_of(data: PyTree) -> Stream | None:
    """Returns the stream in the data, or None."""
    found = [x for x in jax.tree.leaves(data, is_leaf=_is_stream) if _is_stream(x)]
    return found[0] if found else None


def in_memory(data: PyTree) -> bool:
    """Returns whether all data are arrays in memory."""
    if stream_of(data) is not None:
        return False
    leaves = jax.tree.leaves(data)
    return all(
        isinstance(x, jax.Array)
        or (isinstance(x, np.ndarray) and not isinstance(x, np.memmap))
        for x in leaves
    )


_TRIES = 3


def read_blocks(
    data: PyTree, size: int, first: int, where: Sharding | None = None
) -> Iterator[Block]:
    """Reads a pass, each block while the one before is computed with.

    Args:
        data: Arrays in memory or on disk, or with a `Stream`.
        size: Points in a block.
        first: The block to begin with.
        where: Devices over which the points of a block are divided; of arrays on disk,
            each process reads what its devices need.

    Yields:
        The blocks from there to the last.
    """
    stream = stream_of(data)
    blocks = (
        _array_blocks(data, size, first, where)
        if stream is None
        else _stream_blocks(data, stream, size, first, where)
    )
    with ThreadPoolExecutor(1, thread_name_prefix="physax-read") as reader:
        ahead = reader.submit(next, blocks, None)
        while (block := ahead.result()) is not None:
            ahead = reader.submit(next, blocks, None)
            yield block


def _array_blocks(
    data: PyTree, size: int, first: int, where: Sharding | None
) -> Iterator[Block]:
    count = points_in(data)
    size = min(size, count)
    for begin in range(first * size, count, size):
        start = min(begin, count - size)
        batch = jax.tree.map(lambda x, s=start: _read(x, s, s + size, where), data)
        yield Block(batch, begin - start, size)


def _read(array, start: int, stop: int, where: Sharding | None):
    if isinstance(array, jax.Array):
        part = _slice(array, start, stop - start)
        return part if where is None else _divided(np.asarray(part), where)
    for attempt in range(_TRIES):
        try:
            part = _divided(array[start:stop], where)
            break
        except OSError as error:
            if attempt == _TRIES - 1:
                raise DataError(
                    f"the points from {start} to {stop} could not be read in {_TRIES} "
                    f"attempts: {error}"
                ) from error
            time.sleep(0.1 * 4**attempt)
    _forget(array)
    return part


def _divided(array: np.ndarray, where: Sharding | None) -> jax.Array:
    """Copies host memory, or a file behind it, to devices.

    Copies of the last point follow where it does not fall into equal parts.
    """
    if where is None:
        return jax.device_put(np.array(array))
    size = round_up(len(array), len(where.device_set))

    def part(index: tuple[slice, ...] | None) -> np.ndarray:
        begin, end, _ = (index or (slice(None),))[0].indices(size)
        points = np.array(array[begin:end])
        more = end - begin - len(points)
        return np.concatenate([points, np.repeat(array[-1:], more, axis=0)])

    return jax.make_array_from_callback((size, *array.shape[1:]), where, part)


@eqx.filter_jit
def _slice(array, start, size: int):
    return jax.lax.dynamic_slice_in_dim(array, start, size)


def _forget(array) -> None:
    """Lets go of the pages of a file that were read: they would count as used."""
    if not isinstance(array, np.memmap) or array.mode == "c":
        return
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap):
        base.madvise(mmap.MADV_DONTNEED)


def _stream_blocks(
    data, stream: Stream, size: int, first: int, where: Sharding | None
) -> Iterator[Block]:
    """Cuts what an iterator gives into blocks of one size."""
    size = min(size, stream.points)
    held: list[PyTree] = []
    seen = waiting = number = 0
    last = None
    for part in _parts(stream):
        seen, waiting = seen + points_in(part), waiting + points_in(part)
        if seen > stream.points:
            break
        held.append(part)
        if waiting < size:
            continue
        whole, begin = _joined(held), 0
        for begin in range(0, waiting - size + 1, size):
            block = jax.tree.map(lambda x, b=begin: x[b : b + size], whole)
            number += 1
            if number * size == stream.points:
                last = block  # until it is known that nothing follows
            elif number > first:
                yield _streamed(data, block, size, 0, where)
        held = [jax.tree.map(lambda x, b=begin: x[b + size :], whole)]
        waiting = points_in(held[0])
    if seen != stream.points:
        more = seen > stream.points
        remedy = (
            "Correct `points`."
            if more
            else "`open` must return a new iterator at each call, not one that was "
            "read before; if it does, correct `points`."
        )
        raise CountError(
            f"The stream must give `points`, {stream.points}, points in each pass, but "
            f"gave {'at least ' * more}{seen}. {remedy}"
        )
    if last is not None:
        yield _streamed(data, last, size, 0, where)
    elif number >= first:
        padded = jax.tree.map(
            lambda x: np.concatenate([np.repeat(x[-1:], size - waiting, axis=0), x]),
            _joined(held),
        )
        yield _streamed(data, padded, size, size - waiting, where)


def _parts(stream: Stream) -> Iterator[PyTree]:
    first = None
    try:
        blocks = stream.open()
        _check_blocks(blocks, stream.points)
        for part in blocks:
            part = jax.tree.map(np.asarray, part)
            shapes = jax.tree.map(_shape_of_a_point, part)
            first = shapes if first is None else first
            if shapes != first:
                raise ArgumentError(
                    "`open` must give blocks that differ in nothing but their length, "
                    f"but after blocks of points of the shape {first} it gives one of "
                    f"{shapes}. Reshape it."
                )
            yield part
    except OSError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the stream could not be read: {error}") from error


def _shape_of_a_point(array: np.ndarray) -> str:
    return f"({', '.join(map(str, array.shape[1:]))})"


def _check_blocks(blocks: Any, points: int) -> None:
    """Raises if arrays of all points come one by one, each as if it were a block."""

    def is_whole(x):
        return isinstance(x, np.ndarray | jax.Array) and x.shape[:1] == (points,)

    several = isinstance(blocks, tuple | list) and len(blocks) > 1
    if several and all(map(is_whole, blocks)):
        raise ArgumentError(
            "`open` must return a list or an iterator of blocks, but returns "
            f"{len(blocks)} arrays of all {points} points, each of which would be a "
            "block. One block of them is `[(x, y)]`."
        )


def _joined(parts: list) -> PyTree:
    if len(parts) == 1:
        return parts[0]
    return jax.tree.map(lambda *xs: np.concatenate(xs), *parts)


def _streamed(data, batch, size: int, first: int, where: Sharding | None) -> Block:
    put = jax.tree.map(jnp.asarray, batch)
    if where is not None:
        put = jax.tree.map(lambda x: _divided(np.asarray(x), where), batch)
    whole = jax.tree.map(
        lambda x: put if _is_stream(x) else x, data, is_leaf=_is_stream
    )
    return Block(whole, first, size)
