"""Takes a state apart into named arrays, and puts it together again."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path

from .._checks import ArgumentError
from ._checkpoint_file import CheckpointError


def pack_state(state: Any) -> dict[str, np.ndarray]:
    """Copies a state to the host, as arrays named by their place in it.

    Args:
        state: Any pytree of JAX arrays, random keys included.

    Returns:
        The arrays.

    Raises:
        ArgumentError: If a leaf is no array, or lies on devices of other processes.
    """
    leaves, _ = tree_flatten_with_path(state)
    arrays = {}
    for path, leaf in leaves:
        name = keystr(path) or "state"
        if not isinstance(leaf, jax.Array):
            raise ArgumentError(
                f"`state{keystr(path)}` must be a JAX array to be checkpointed, but is "
                f"{type(leaf).__name__}. Make it an array or a static field."
            )
        if not leaf.is_fully_addressable:
            raise ArgumentError(
                f"`state{keystr(path)}` must lie on devices of this process to be "
                "checkpointed, but is spread over several. Give `Checkpointing` a "
                "`pack` that gathers it."
            )
        arrays[name] = np.asarray(_data(leaf))
    return arrays


def unpack_state(arrays: dict[str, np.ndarray], like: Any) -> Any:
    """Puts a state together from its named arrays.

    Args:
        arrays: What `pack_state` returned.
        like: A state of the same structure, shapes and dtypes. Each array is placed on
            devices as it is there.

    Returns:
        The state.

    Raises:
        CheckpointError: If the arrays do not fit `like`.
    """
    leaves, structure = tree_flatten_with_path(like)
    names = [keystr(path) or "state" for path, _ in leaves]
    if set(names) != set(arrays):
        missing = sorted(set(names) - set(arrays))
        extra = sorted(set(arrays) - set(names))
        raise CheckpointError(
            "The checkpoint must hold the arrays of this state, but lacks "
            f"{missing} and has {extra} besides."
        )
    placed = [
        _place(arrays[name], leaf, name)
        for name, (_, leaf) in zip(names, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, placed)


def _place(array: np.ndarray, like: jax.Array, name: str) -> jax.Array:
    data = _data(like)
    if (array.shape, array.dtype) != (data.shape, data.dtype):
        raise CheckpointError(
            f"The array {name!r} of the checkpoint must be {data.dtype}"
            f"{list(data.shape)}, but is {array.dtype}{list(array.shape)}."
        )
    # A copy: the state will be donated, `array` is not ours to give, and on the CPU
    # `device_put` may take its memory even with `may_alias=False`. An array that had no
    # fixed place must not get one, or the next call compiles anew.
    where = data.sharding if data.committed else None
    placed = jax.device_put(array.copy(), where)
    return _wrap(placed, like)


def _is_key(leaf: jax.Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _data(leaf: jax.Array) -> jax.Array:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _wrap(data: jax.Array, like: jax.Array) -> jax.Array:
    if not _is_key(like):
        return data
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(like))
