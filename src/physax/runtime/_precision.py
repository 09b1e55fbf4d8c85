"""Which floating point type holds, computes and sums."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from .._checks import ArgumentError


_DTYPES = ("bfloat16", "float16", "float32", "float64")


class PrecisionError(ArgumentError, TypeError):
    """A floating point type is unknown or not available."""


def _name(dtype) -> str:
    return dtype if isinstance(dtype, str) else np.dtype(dtype).name


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

    storage: str = eqx.field(static=True, converter=_name, default="float32")
    compute: str = eqx.field(static=True, converter=_name, default="float32")
    accumulate: str = eqx.field(static=True, converter=_name, default="float32")

    def __check_init__(self):
        named = {
            "storage": self.storage,
            "compute": self.compute,
            "accumulate": self.accumulate,
        }
        for field, name in named.items():
            _check_name(field, name)
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
    name = _name(dtype)
    _check_name("dtype", name)
    complex_name = "complex128" if name == "float64" else "complex64"

    def cast(leaf):
        array = isinstance(leaf, jax.Array | np.ndarray)
        if not array or not jnp.issubdtype(leaf.dtype, jnp.inexact):
            return leaf
        wide = jnp.issubdtype(leaf.dtype, jnp.complexfloating)
        return jnp.asarray(leaf).astype(complex_name if wide else name)

    return jax.tree.map(cast, tree)


def _check_name(what: str, name: str) -> None:
    if name not in _DTYPES:
        raise PrecisionError(
            f"`{what}` must be one of {', '.join(_DTYPES)}, but is {name}."
        )
    if name == "float64":
        require_x64(f"`{what}`")


def require_x64(what: str) -> None:
    """Refuses double precision while JAX has it off.

    JAX itself only warns, and then computes in float32.

    Args:
        what: What asks for it; the message begins with this.

    Raises:
        PrecisionError: If JAX's 64-bit types are off.
    """
    if not jax.config.read("jax_enable_x64"):
        raise PrecisionError(
            f"{what} must be at most float32 while JAX's 64-bit types are off, but is "
            'float64. Switch them on with `jax.config.update("jax_enable_x64", True)` '
            "at the start of the program, or set JAX_ENABLE_X64=1."
        )
