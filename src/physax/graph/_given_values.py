"""Values of inputs that a graph is compiled with."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._backend import Backend
from ._block import GraphError


def first_value(wire: str, value: Any, backend: Backend) -> Array:
    """Returns the first value of an input that becomes a parameter.

    Raises:
        GraphError: If it is not numbers.
    """
    if isinstance(value, (dict, eqx.Module)):
        raise GraphError(
            f"`trainable` must hold arrays or numbers, but `{wire}` is a "
            f"{type(value).__name__}."
        )
    array = _array("trainable", wire, value, backend)
    # An integer has no derivative: 3 is meant as 3.0.
    whole = not jnp.issubdtype(array.dtype, jnp.inexact)
    return array.astype(backend.dtype) if whole else array


def constant(wire: str, value: Any, backend: Backend) -> Any:
    """Returns the value of an input that becomes a constant, an array or a tree.

    Raises:
        GraphError: If it is not numbers.
    """
    return jax.tree.map(
        lambda leaf: _array("constants", wire, leaf, backend),
        value,
        is_leaf=lambda leaf: isinstance(leaf, list),
    )


def _array(name: str, wire: str, value: Any, backend: Backend) -> Array:
    check_numbers(name, wire, value)
    return backend.array(value)


def check_numbers(name: str, wire: str, value: Any) -> None:
    """Raises if a value is no array of numbers.

    Args:
        name: The argument that holds it.
        wire: What it is called there.
        value: The value.
    """
    try:
        array = value if isinstance(value, jax.Array) else np.asarray(value)
    except ValueError:  # Rows of several lengths.
        array = np.asarray(None)
    if isinstance(array, np.ndarray) and array.dtype.kind in "OSUMm":
        raise GraphError(
            f"`{name}` must hold arrays of numbers, but `{wire}` is {value!r}."
        )
