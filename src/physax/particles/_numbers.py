"""Whether arguments are numbers, and not text, dates or masked."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import (
    ArgumentError,
    at_once,
    check,
    kind_of,
    masked,
    real,
    refuse_masked,
    refuse_text,
    single,
)


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


def host_numbers(x: Any, name: str) -> np.ndarray:
    """Returns real numbers that are known before compiling, in float64.

    Args:
        x: What was given.
        name: What the caller calls it.

    Raises:
        ArgumentError: If it is something else.
    """
    refuse_text(x, name)
    check_numbers(x, name)
    host = np.asarray(x)
    if host.dtype.kind not in "biufO":
        raise ArgumentError(f"`{name}` must be real, but has dtype {host.dtype}.")
    return host.astype(float)


def check_mask(mask: Any, name: str) -> None:
    """Raises unless an argument is a boolean or an array of them.

    Args:
        mask: What was given.
        name: What the caller calls it.

    Raises:
        ArgumentError: If it is something else.
    """
    refuse_masked(mask, name)
    array = mask if isinstance(mask, jax.Array) else np.asarray(mask)
    if array.dtype.kind != "b":
        raise ArgumentError(
            f"`{name}` must hold booleans, but has dtype {array.dtype}. Compare "
            "numbers first, as by `> 0`."
        )


def check_listed(x: Any, name: str, example: str) -> None:
    """Raises unless an argument is a list, a tuple or an array.

    Args:
        x: What was given.
        name: What the caller calls it.
        example: What the user could write.

    Raises:
        ArgumentError: If it is something else.
    """
    if isinstance(x, (str, bytes, dict, type)) or not np.iterable(x):
        raise ArgumentError(
            f"`{name}` must be a list, such as `{example}`, but is {kind_of(x)}"
        )


def check_numbers(x: Any, name: str) -> None:
    """Raises if anything in an argument is not a number, or is masked.

    Args:
        x: A number, an array, or a sequence.
        name: What the caller calls it.

    Raises:
        ArgumentError: If it holds dates, text, masked numbers or other objects.
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


def fraction(name: str) -> Callable[[ArrayLike], Float[Array, ""]]:
    """Makes a field converter that checks for one number in (0, 1].

    Args:
        name: Of the field.
    """

    def convert(x):
        x = single(real(x, name), name)
        with at_once(x):
            # 1 may have been rounded up.
            good = (x > 0) & (x < 1 + 1e-6)
            return check(x, good, f"`{name}` must lie in (0, 1]")

    return convert
