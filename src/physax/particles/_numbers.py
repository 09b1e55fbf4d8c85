"""Whether what is given are numbers, and not dates."""

from typing import Any

import jax
import numpy as np

from .._checks import ArgumentError


_DATES = (
    " Dates become seconds by `(np.asarray({name}, 'datetime64[us]') - start) / "
    "np.timedelta64(1, 's')`, with the same start for fields and tracks."
)
_LENGTHS = " Divide by a second: `np.asarray({name}) / np.timedelta64(1, 's')`."


def check_numbers(x: Any, name: str) -> None:
    """Refuses dates and what else is no number.

    Args:
        x: A number, an array, or a sequence.
        name: What the caller calls it.

    Raises:
        ArgumentError: If there is anything else than numbers.
    """
    if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(x)):
        return
    try:
        host = np.asarray(x)
    except ValueError as error:
        raise ArgumentError(
            f"`{name}` must be an array of numbers, but has rows of different lengths."
        ) from error
    if host.dtype.kind == "O":
        try:
            host.astype(float)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"`{name}` must be numbers, but is not: {error}."
                f"{_DATES.format(name=name)}"
            ) from error
    remedies = {"M": _DATES, "m": _LENGTHS, "S": "", "U": ""}
    remedy = remedies.get(host.dtype.kind)
    if remedy is not None:
        raise ArgumentError(
            f"`{name}` must be numbers, but has the dtype {host.dtype}."
            f"{remedy.format(name=name)}"
        )
