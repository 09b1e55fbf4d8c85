"""Functions of the user: why they fail with what they are given."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact

from .._checks import ArgumentError, PhysaxError, as_array
from .._written_for_jax import written_for_jax


@contextmanager
def called_as(name: str, form: str, x: Float[Array, " ndim"]) -> Iterator[None]:
    """Explains why a function of the user fails where it gets what it should.

    Args:
        name: What the user calls it.
        form: How it is called, such as `u(t, x)`.
        x: The place that it gets.

    Raises:
        ArgumentError: If it is not written for JAX, or cannot do with these arguments.
    """
    with written_for_jax(name):
        try:
            yield
        except (IndexError, TypeError) as error:
            ours = (PhysaxError, jax.errors.JAXTypeError, jax.errors.JAXIndexError)
            if isinstance(error, ours):
                raise
            reason = (str(error).strip() or "without a message").splitlines()[0]
            raise ArgumentError(
                f"`{name}` must be a function `{form}`, with the time `t` first and "
                f"one place `x` of {x.size} coordinates, but raises "
                f"{type(error).__name__}: {reason}"
            ) from error


def _number(value: Any) -> Any:
    condition = isinstance(value, bool) or getattr(value, "dtype", "") == "bool"
    return 1 * value if condition else value


def returned(value: Any, name: str, dtype: Any) -> Inexact[Array, "..."]:
    """Returns what a function of the user gave, as an array.

    Args:
        value: What it returned, where conditions such as `x[0] > 0` count as 0 and 1.
        name: What the user calls the function.
        dtype: Of real numbers; complex ones keep theirs.

    Raises:
        ArgumentError: If it is nothing, or other than numbers.
    """
    if value is None:
        raise ArgumentError(
            f"`{name}` must return an array, but returns None: end it with `return`."
        )
    found = as_array(jax.tree.map(_number, value), f"{name}(...)")
    return found if jnp.iscomplexobj(found) else found.astype(dtype)
