"""Data of `curve_fit` as arrays of numbers."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._checks import (
    ArgumentError,
    at_once,
    native,
    refuse_masked,
    refuse_text,
    refuse_traced,
)
from ..runtime import require_x64


INSIDE = "Use `least_squares`, which works inside."


def _numbers(x, name: str) -> np.ndarray:
    refuse_traced(x, name, INSIDE)
    refuse_text(x, name)
    refuse_masked(x, name)
    try:
        values = native(np.asarray(x))
        values = values.astype(float) if values.dtype.kind == "O" else values
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"`{name}` must be an array of numbers with rows of equal length, but is "
            f"of the type {type(x).__name__}: {str(error).rstrip('.')}."
        ) from error
    if values.dtype.kind in "mM":
        raise ArgumentError(
            f"`{name}` must be numbers, but has dtype {values.dtype}. For seconds "
            "write `(x - x[0]) / np.timedelta64(1, 's')`."
        )
    return values


def _floating(values: np.ndarray, name: str) -> np.ndarray:
    """Returns integers as numbers of JAX's default precision, and others unchanged."""
    if values.dtype.kind not in "iub":
        return values
    found = values.astype(jnp.result_type(float))
    lost = found.astype(float) != values.astype(float)
    if np.any(lost):
        raise ArgumentError(
            f"`{name}` must be integers that {found.dtype} holds exactly, but has "
            f"{values[lost][0]}. Subtract the first of them, or switch on JAX's 64-bit "
            "types."
        )
    return found


def reals(x: Any, name: str) -> np.ndarray:
    """Returns real numbers in float64.

    Args:
        x: What was given.
        name: Of the argument, for messages.

    Raises:
        ArgumentError: If it is something else.
    """
    values = _numbers(x, name)
    if values.dtype.kind == "c":
        raise ArgumentError(
            f"`{name}` must be real numbers, but has dtype {values.dtype}."
        )
    return values.astype(float)


def finite_numbers(x: Any, name: str, check_finite: bool) -> Array:
    """Returns numbers in their own precision, integers in JAX's default one.

    Args:
        x: What was given.
        name: Of the argument, for messages.
        check_finite: Whether to refuse what is not finite.

    Raises:
        ArgumentError: If it is something else, or integers need more digits.
        PrecisionError: If JAX's 64-bit types are off while it is float64.
    """
    values = _floating(_numbers(x, name), name)
    if values.dtype == np.float64:
        require_x64(f"`{name}`")
    if check_finite and not np.all(np.isfinite(values)):
        first = np.unravel_index(np.argmin(np.isfinite(values)), values.shape)
        place = ", ".join(map(str, first))
        raise ArgumentError(
            f"`{name}` must be finite, but {name}[{place}] is {values[first]:g} "
            f"({np.sum(~np.isfinite(values))} of {values.size} are not). Leave these "
            "points out."
        )
    with at_once(values):
        return jnp.asarray(values)
