"""Checks of functions that users write, most of which are traced."""

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._checks import ArgumentError, kind_of


def check_function(
    x: Any, name: str, example: str = "", *, optional: bool = False
) -> None:
    """Raises unless an argument is a function.

    Args:
        x: What was given.
        name: What the caller calls it.
        example: What to write instead.
        optional: Whether it may be `None`.

    Raises:
        ArgumentError: If it is something else.
    """
    if not (callable(x) or (optional and x is None)):
        choice = "a function"
        if example:
            choice += f" such as `{example}`"
        if optional:
            choice += " or None"
        raise ArgumentError(f"`{name}` must be {choice}, but is {kind_of(x)}")


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


def floating(x: Any, name: str) -> Any:
    """Returns what a function gave, refusing all but arrays that have derivatives.

    Args:
        x: What it returned, or the shape of that.
        name: What the user calls the function.

    Raises:
        ArgumentError: If it is no array of floating point or complex numbers.
    """
    if not isinstance(x, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct):
        raise ArgumentError(
            f"`{name}` must return one array of numbers, but returns {kind_of(x)} Join "
            "several by `jnp.stack` or `jnp.concatenate`."
        )
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        raise ArgumentError(
            f"`{name}` must return floating point numbers, but returns {x.dtype}: "
            "these have no derivative."
        )
    return x


@contextmanager
def written_for_jax(name: str) -> Iterator[None]:
    """Explains what a function of the user cannot do while it is traced.

    Args:
        name: What the user calls it.

    Raises:
        ArgumentError: If it hands a traced value to NumPy or Python, or decides by one.
    """
    try:
        yield
    except jax.errors.TracerArrayConversionError as error:
        raise ArgumentError(
            f"`{name}` must be written with `jax.numpy`, but hands its arguments to "
            "NumPy: replace `np.` in it by `jnp.`."
        ) from error
    except jax.errors.TracerBoolConversionError as error:
        raise ArgumentError(
            f"`{name}` must be one formula for all values, but decides by one: replace "
            "`if`, `and` and the like in it by `jnp.where`."
        ) from error
    except (
        jax.errors.ConcretizationTypeError,
        jax.errors.NonConcreteBooleanIndexError,
        jax.errors.TracerIntegerConversionError,
    ) as error:
        raise _needs_number(name) from error
    except TypeError as error:
        # Of arrays, `math.exp` and `float` ask for the shape before the value. NumPy's
        # own text begins with a small letter.
        if not re.match("Only .*scalar arrays can be converted to", str(error)):
            raise
        raise _needs_number(name) from error


def _needs_number(name: str) -> ArgumentError:
    return ArgumentError(
        f"`{name}` must not need a value as a Python number or as the size of an "
        "array, but does: replace `math.`, `float`, `int` and `.item()` in it by "
        "`jax.numpy`, and masks by `jnp.where`."
    )
