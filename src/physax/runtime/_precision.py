"""Which floating point type holds, computes and sums."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

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
            if name not in _DTYPES:
                raise PrecisionError(
                    f"`{field}` must be one of {', '.join(_DTYPES)}, but is {name}."
                )
            if name == "float64":
                require_x64(f"`{field}`")
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
