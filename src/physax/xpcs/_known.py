"""Values that are known while Python runs: checks of them compile no program."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Num

from .._checks import check, traced


def known(*values: Any) -> bool:
    """Returns whether no value belongs to a program that is being traced.

    Args:
        values: Arrays, or `None`.
    """
    return not traced(values)


def on_host(*values: Any) -> tuple[Any, ...]:
    """Returns arrays as those of NumPy if all are known, and unchanged otherwise.

    A comparison of such arrays runs at once. As an operation of JAX it would be
    compiled for each new shape, which takes longer than all of the arithmetic.

    Args:
        values: Arrays.
    """
    return tuple(map(np.asarray, values)) if known(*values) else values


def require(x: Num[Array, "*shape"], good: Any, message: str) -> Num[Array, "*shape"]:
    """Returns `x` where `good` holds, as `check` does.

    Args:
        x: Floating point values.
        good: The condition that must hold, from `on_host` values.
        message: What must be true, without the value; that is appended.

    Returns:
        `x`, with NaN where a condition that is traced fails.

    Raises:
        ArgumentError: If the values are known now and `good` fails.
    """
    if not known(good):
        return check(x, good, message)
    if not np.all(good):
        with jax.ensure_compile_time_eval():
            return check(x, jnp.asarray(good), message)
    return x
