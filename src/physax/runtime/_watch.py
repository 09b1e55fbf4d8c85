"""Whether a state is still valid."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from .._checks import ArgumentError
from .._known_number import known_number


@jax.jit
def _finite(leaves: list[Array]) -> Array:
    flags = [jnp.all(jnp.isfinite(leaf)) for leaf in leaves]
    return jnp.all(jnp.stack(flags)) if flags else jnp.array(True)


def all_finite(state: Any) -> Bool[Array, ""]:
    """Whether no floating point value of a state is NaN or infinite.

    Args:
        state: Any pytree; what is not floating point does not count.

    Returns:
        True while all are finite. On several devices the state stays where it is.
    """
    leaves = [leaf for leaf in jax.tree.leaves(state) if eqx.is_inexact_array(leaf)]
    return _finite(leaves)


def check_unused(state: Any) -> None:
    """Raises if a run has gone on from a state, in its memory.

    Args:
        state: Any pytree.

    Raises:
        ArgumentError: If arrays of it are gone.
    """
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if isinstance(leaf, jax.Array) and leaf.is_deleted():
            raise ArgumentError(
                "`state` must not be used twice where a run reuses its memory, but "
                f"`state{jax.tree_util.keystr(path)}` is gone. Pass the state that the "
                "other run returned, or begin each from a copy, "
                "`jax.tree.map(jnp.copy, state)`."
            )


def locate_fault(state: Any) -> str:
    """Says where the first value of a state that is not finite is.

    Args:
        state: Any pytree.

    Returns:
        A sentence with place, index and value; empty if all values of this process are
        finite.
    """
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if not eqx.is_inexact_array(leaf) or not leaf.is_fully_addressable:
            continue
        values = np.asarray(leaf)
        bad = ~np.isfinite(values)
        if bad.any():
            index = np.unravel_index(np.argmax(bad), values.shape)
            place = f"state{jax.tree_util.keystr(path)}{[int(i) for i in index]}"
            return f"`{place}` is {values[index]}."
    return ""


def bounded(measure: Callable, limit: Any) -> Callable:
    """Makes a watch that refuses growth.

    Args:
        measure: Takes the state to a scalar, such as its energy.
        limit: The largest value that is valid. It is a number, not a multiple of what
            came before: a resumed run must judge like an uninterrupted one.

    Returns:
        A function of the state: True while the measure is finite and within the limit.

    Raises:
        ArgumentError: If the limit is no number, or NaN.
    """
    limit = known_number(limit, "limit")
    if np.isnan(limit):
        raise ArgumentError("`limit` must be a number, but is nan: nothing is below.")

    @eqx.filter_jit
    def watch(state):
        value = measure(state)
        return jnp.isfinite(value) & (value <= limit)

    return watch
