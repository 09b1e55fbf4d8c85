"""Whether an argument is a number, a density, a size or a function."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from .._checks import (
    ArgumentError,
    kind_of,
    real,
    refuse_text,
    whole,
)


def as_density(x: Any, name: str = "density") -> Float[Array, "..."]:
    """Returns values on cells as an array of real floating-point numbers.

    Args:
        x: What was given.
        name: What the caller calls it.

    Raises:
        ArgumentError: If it is something else, or has no cell.
    """
    refuse_text(x, name)
    array = real(x, name)
    if not array.size:
        raise ArgumentError(
            f"`{name}` must have at least one cell, but has shape {array.shape}."
        )
    return array


def as_shape(shape: Any, name: str = "shape") -> tuple[int, ...]:
    """Returns a number of cells along each axis.

    Args:
        shape: What was given.
        name: What the caller calls it.

    Raises:
        ArgumentError: If it is not a sequence of positive integers, or is empty.
    """
    return tuple(whole(size, name) for size in as_sequence(shape, name, "(64, 64)"))


def as_sequence(x: Any, name: str, example: str) -> tuple[Any, ...]:
    """Returns the entries of a sequence or an array, at least one.

    Args:
        x: What was given.
        name: What the caller calls it.
        example: What the user could write.

    Raises:
        ArgumentError: If it is not a sequence, or is empty.
    """
    sequence = isinstance(x, Sequence) and not isinstance(x, str | bytes)
    if not (sequence or np.ndim(x)):
        raise ArgumentError(
            f"`{name}` must be a sequence, such as `{example}`, but is {kind_of(x)}"
        )
    if not len(x):
        raise ArgumentError(f"`{name}` must have at least one entry, but is empty.")
    return tuple(x)


_FARTHEST = 10


def check_reach(
    length: float, name: str, shape: tuple[int, ...], widths: tuple[float, ...]
) -> None:
    """Raises if a length is far beyond the design, as one that is not in metres is.

    Args:
        length: The length in metres.
        name: What the caller calls it.
        shape: Cells of the design along each axis.
        widths: Of its cells along each axis, in metres.

    Raises:
        ArgumentError: If it is.
    """
    extent = max(cells * width for cells, width in zip(shape, widths, strict=True))
    if length > _FARTHEST * extent:
        raise ArgumentError(
            f"`{name}` must be at most {_FARTHEST} times as long as the design, which "
            f"has {extent:g} m, but is {length:g} m. Write it and `spacing` in metres."
        )
