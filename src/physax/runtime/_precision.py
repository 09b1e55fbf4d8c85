"""Which floating point type holds, computes and sums."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from .._checks import ArgumentError


_FLOATS = ("bfloat16", "float16", "float32", "float64")
# Types that JAX makes shorter while its 64-bit types are off, and to what.
_WIDE = {
    "float64": "float32",
    "complex128": "complex64",
    "int64": "int32",
    "uint64": "uint32",
}


class PrecisionError(ArgumentError, TypeError):
    """A floating point type is unknown or not available."""


def dtype_name(dtype: Any, what: str, known: Sequence[str] = _FLOATS) -> str:
    """Returns the name of a dtype.

    Args:
        dtype: A dtype, or its name.
        what: Name of the argument, for messages.
        known: The names that are allowed.

    Raises:
        PrecisionError: If the dtype is not allowed, or has 64 bits while JAX has these
            off.
    """
    try:
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in known:
        raise PrecisionError(
            f"`{what}` must be one of {', '.join(known)}, but is {name}."
        )
    if name in _WIDE:
        require_x64(f"`{what}`", name)
    return name


def _converter(field: str) -> Callable[[Any], str]:
    return lambda dtype: dtype_name(dtype, field)


class Precision(eqx.Module):
    """The floating point types of a computation.

    Each attribute is one of `"bfloat16"`, `"float16"`, `"float32"`, `"float64"`, or a
    dtype that is converted to its name.

    Attributes:
        storage: Type of large arrays that stay in memory.
        compute: Type of the arithmetic on them.
        accumulate: Type of sums over many values, at least as precise as `compute`.

    Raises:
        PrecisionError: If a type is unknown, or is float64 while JAX has it off.
        ArgumentError: If `accumulate` is less precise than `compute`.
    """

    storage: str = eqx.field(
        static=True, converter=_converter("storage"), default="float32"
    )
    compute: str = eqx.field(
        static=True, converter=_converter("compute"), default="float32"
    )
    accumulate: str = eqx.field(
        static=True, converter=_converter("accumulate"), default="float32"
    )

    def __check_init__(self):
        if jnp.finfo(self.accumulate).eps > jnp.finfo(self.compute).eps:
            raise ArgumentError(
                f"`accumulate` must be at least as precise as `compute`, "
                f"{self.compute}, but is {self.accumulate}."
            )

    @property
    def storage_dtype(self) -> np.dtype:
        """The dtype of `storage`."""
        return jnp.dtype(self.storage)

    @property
    def compute_dtype(self) -> np.dtype:
        """The dtype of `compute`."""
        return jnp.dtype(self.compute)

    @property
    def accumulate_dtype(self) -> np.dtype:
        """The dtype of `accumulate`."""
        return jnp.dtype(self.accumulate)

    @property
    def complex_dtype(self) -> np.dtype:
        """The complex dtype whose parts are at least as precise as `accumulate`."""
        wide = self.accumulate == "float64"
        return jnp.dtype("complex128" if wide else "complex64")


def cast_floating(tree: PyTree, dtype: str | np.dtype | type) -> PyTree:
    """Casts the floating point arrays of a tree.

    Args:
        tree: Any pytree. Complex arrays become `complex128` if `dtype` is float64,
            otherwise `complex64`: there are no smaller ones. What is neither real nor
            complex floating point, Python numbers included, stays as it is.
        dtype: One of `"bfloat16"`, `"float16"`, `"float32"`, `"float64"`, such as
            `precision.compute`.

    Returns:
        The tree, with its arrays cast. Gradients pass through.

    Raises:
        PrecisionError: If the type is unknown, or is float64 while JAX has it off.
    """
    name = dtype_name(dtype, "dtype")
    complex_name = "complex128" if name == "float64" else "complex64"

    def cast(leaf):
        array = isinstance(leaf, jax.Array | np.ndarray)
        if not array or not jnp.issubdtype(leaf.dtype, jnp.inexact):
            return leaf
        wide = jnp.issubdtype(leaf.dtype, jnp.complexfloating)
        return jnp.asarray(leaf).astype(complex_name if wide else name)

    return jax.tree.map(cast, tree)


def require_x64(what: str, dtype: str = "float64") -> None:
    """Refuses double precision while JAX has it off.

    JAX itself only warns, and then computes in float32.

    Args:
        what: What asks for it; the message begins with this.
        dtype: Name of the 64-bit type.

    Raises:
        PrecisionError: If JAX's 64-bit types are off.
    """
    if not jax.config.read("jax_enable_x64"):
        raise PrecisionError(
            f"{what} must be at most {_WIDE[dtype]} while JAX's 64-bit types are off, "
            f"but is {dtype}. Switch them on with "
            '`jax.config.update("jax_enable_x64", True)` at the start of the program, '
            "or set JAX_ENABLE_X64=1."
        )
