"""Residuals and their derivatives by all parameters."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._sums import Unit


# More tangents at once only take more memory.
_TANGENTS = 16


def jacobian_of(
    residuals: Callable, vector: Float[Array, " m"], unit: Unit
) -> tuple[Float[Array, " points"], Float[Array, "m points"]]:
    """Returns residuals and derivatives, times the unit."""
    values, push = jax.linearize(residuals, vector)
    basis = unit * jnp.eye(vector.size, dtype=vector.dtype)
    if vector.size <= _TANGENTS:
        return unit * values, jax.vmap(push)(basis)
    return unit * values, jax.lax.map(push, basis, batch_size=_TANGENTS)
