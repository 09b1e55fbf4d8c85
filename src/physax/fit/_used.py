"""What of the data counts: the rest must not reach a fit or its derivative."""

from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree


def safe_points(data: PyTree, used: Bool[Array, " points"]) -> PyTree:
    """Puts a point that counts in place of those that do not.

    What these give is not used, but the derivative of it would be NaN if they are.

    Args:
        data: Arrays whose first axis is the points.
        used: Which points count.
    """
    place = jnp.argmax(used)

    def replaced(x):
        where = used.reshape(-1, *[1] * (x.ndim - 1))
        return jnp.where(where, x, jax.lax.dynamic_slice_in_dim(x, place, 1))

    return jax.tree.map(lambda x: replaced(jnp.asarray(x)), data)


# Points of a mask that are read at once: it may be on disk.
_AT_ONCE = 2**20


def first_used(observed: Any, used: Any = None) -> Float[Array, ""]:
    """Returns the first value that counts, to be subtracted from all of them.

    Any constant near the data will do; the fit does not depend on which.

    Args:
        observed: Values, whose first axis is the points; they may be on disk.
        used: Which of them count, or None for all.
    """
    shape = tuple(observed.shape)
    if isinstance(used, jax.Array) and not _on_host(used):
        place = jnp.argmax(jnp.broadcast_to(used, shape))
        return jax.lax.stop_gradient(jnp.ravel(jnp.asarray(observed))[place])
    point, place = (0, 0) if used is None else _first_place(used, shape)
    values = jnp.asarray(observed[point : point + 1])
    return jax.lax.stop_gradient(jnp.ravel(values)[place])


def _first_place(used, shape: tuple[int, ...]) -> tuple[int, int]:
    """Returns the first point that counts, and which of its values does."""
    for start in range(0, shape[0], _AT_ONCE):
        part = np.asarray(used[start : start + _AT_ONCE])
        part = np.broadcast_to(part, (len(part), *shape[1:])).reshape(len(part), -1)
        if part.any():
            point, place = divmod(int(np.argmax(part)), part.shape[1])
            return start + point, place
    return 0, 0


def _on_host(used: Array) -> bool:
    return not isinstance(used, jax.core.Tracer) and used.is_fully_addressable
