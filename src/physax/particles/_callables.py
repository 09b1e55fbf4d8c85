"""Functions of the user: whether they take what they are given."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
from jaxtyping import Array, Float

from .._checks import ArgumentError, PhysaxError
from .._written_for_jax import written_for_jax


def check_takes(function: Callable[..., Any], name: str, form: str) -> None:
    """Raises if a function does not take as many arguments as it will get.

    Args:
        function: The function; one whose signature is not known passes.
        name: What the caller calls it.
        form: How it is called, such as `u(t, x)`.

    Raises:
        ArgumentError: If it takes another number of arguments.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    taken = form.partition("(")[2].rstrip(")")
    try:
        signature.bind(*taken.split(", "))
    except TypeError as error:
        raise ArgumentError(
            f"`{name}` must be a function `{form}`, as `lambda {taken}: ...`, but "
            f"takes {signature}."
        ) from error


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
