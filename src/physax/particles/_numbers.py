"""Whether what is given are numbers, and not dates or masked."""

from typing import Any

import jax
import numpy as np

from .._checks import ArgumentError, masked, refuse_masked


_DATES = (
    " Dates become seconds by `(np.asarray({name}, 'datetime64[us]') - start) / "
    "np.timedelta64(1, 's')`, with the same start for fields and tracks."
)
_LENGTHS = " Divide by a second: `np.asarray({name}) / np.timedelta64(1, 's')`."


def unmasked(values: Any) -> Any:
    """Returns samples of a field with NaN where NumPy has them masked.

    As an array alone they would lose the mask, and show the number that is below it:
    1e20, say, where netCDF4 read land.

    Args:
        values: The samples, an array or a sequence.
    """
    if isinstance(values, (list, tuple)) and masked(values):
        values = np.ma.array(values)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not masked(values):
        return values.data
    kind = values.dtype if values.dtype.kind in "fc" else np.dtype(float)
    return np.where(np.ma.getmaskarray(values), np.nan, values.data).astype(kind)


def check_numbers(x: Any, name: str) -> None:
    """Refuses dates and what else is no number, and numbers that are masked.

    Args:
        x: A number, an array, or a sequence.
        name: What the caller calls it.

    Raises:
        ArgumentError: If there is anything else than numbers.
    """
    if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(x)):
        return
    refuse_masked(x, name)
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
