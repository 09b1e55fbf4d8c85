"""Takes a state apart into named arrays, and puts it together again."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path

from .._checks import ArgumentError, native
from ._checkpoint_file import CheckpointError
from ._shards import Place, Spread, is_spread


def as_arrays(state: Any) -> Any:
    """Returns a state as JAX arrays of definite dtype, as a checkpoint gives it back.

    Numbers of Python and weak types would take part in sums with the dtype of others,
    and compile again what a resumed run continues.

    Args:
        state: Any pytree of arrays and numbers.

    Returns:
        The state. Arrays of NumPy are copied: a run may reuse the memory.

    Raises:
        ArgumentError: If a leaf is neither an array of numbers nor a number.
    """
    leaves, structure = tree_flatten_with_path(state)
    return jax.tree.unflatten(structure, [_as_array(*leaf) for leaf in leaves])


def _as_array(path, leaf: Any) -> jax.Array:
    if isinstance(leaf, jax.Array):
        # What a run has used up may stand for the shapes of a state.
        weak = not _is_key(leaf) and leaf.weak_type and not leaf.is_deleted()
        return leaf.astype(leaf.dtype) if weak else leaf
    try:
        given = native(np.asarray(leaf))
        dtype = jnp.result_type(given)
    except TypeError as error:
        raise _no_array(path, leaf) from error
    if given.dtype.kind in "iu" and np.any(given != given.astype(dtype)):
        raise ArgumentError(
            f"`state{keystr(path)}` must fit into {dtype}, but does not. Call "
            "`jax.config.update('jax_enable_x64', True)` first."
        )
    return jax.device_put(np.array(given, dtype))


def _no_array(path, leaf: Any) -> ArgumentError:
    return ArgumentError(
        f"`state{keystr(path)}` must be a JAX array to be checkpointed, but is "
        f"{type(leaf).__name__}. Make it an array or a static field."
    )


def pack_state(state: Any, whole: Any = None) -> dict[str, np.ndarray | Spread]:
    """Copies a state to the host, as arrays named by their place in it.

    Args:
        state: Any pytree of JAX arrays, random keys included.
        whole: Shapes of a state without what pads it at the high ends of axes, which is
            left out; by default nothing is.

    Returns:
        The arrays. Those that are spread over several processes stay on their devices,
        padding included.

    Raises:
        ArgumentError: If a leaf is not an array.
    """
    leaves, _ = tree_flatten_with_path(state)
    shapes = [np.shape(x) for x in jax.tree.leaves(state if whole is None else whole)]
    arrays = {}
    for (path, leaf), shape in zip(leaves, shapes, strict=True):
        if not isinstance(leaf, jax.Array):
            raise _no_array(path, leaf)
        data = _data(leaf)
        if is_spread(data):
            shape = (*shape, *data.shape[len(shape) :])
            arrays[_name(path)] = Spread(data, shape)
        else:
            arrays[_name(path)] = np.asarray(data)[(*map(slice, shape), ...)]
    return arrays


def unpack_state(arrays: Mapping[str, Any], like: Any, whole: Any = None) -> Any:
    """Puts a state together from its named arrays.

    Args:
        arrays: What `pack_state` returned, or `load_checkpoint` has read.
        like: A state of the same structure, shapes and dtypes, or the structs of one.
            Each array is placed on devices as it is there.
        whole: The shapes that were given to `pack_state`; zeros pad them to those of
            `like`.

    Returns:
        The state.

    Raises:
        ArgumentError: If a leaf of `like` is not an array of JAX or the struct of one.
        CheckpointError: If the arrays do not fit `like`.
    """
    leaves, structure = _models(like)
    names = [_name(path) for path, _ in leaves]
    if set(names) != set(arrays):
        missing = sorted(set(names) - set(arrays))
        extra = sorted(set(arrays) - set(names))
        raise CheckpointError(
            "The checkpoint must hold the arrays of this state, but lacks "
            f"{missing} and also has {extra}."
        )
    shapes = [leaf.shape for leaf in jax.tree.leaves(like if whole is None else whole)]
    placed = [
        _place(arrays[name], leaf, name, shape)
        for name, (_, leaf), shape in zip(names, leaves, shapes, strict=True)
    ]
    return jax.tree.unflatten(structure, placed)


def array_places(like: Any, whole: Any = None) -> dict[str, Place]:
    """Describes by name where the arrays of a state go.

    Args:
        like: A state, or the structs of one.
        whole: The shapes that were given to `pack_state`.

    Returns:
        The `places` of a `Checkpointing`.

    Raises:
        ArgumentError: If a leaf of `like` is not an array of JAX or the struct of one.
    """
    leaves, _ = _models(like)
    shapes = [leaf.shape for leaf in jax.tree.leaves(like if whole is None else whole)]
    found = {}
    for (path, leaf), shape in zip(leaves, shapes, strict=True):
        data = _data(leaf)
        struct = jax.ShapeDtypeStruct(data.shape, data.dtype, sharding=data.sharding)
        found[_name(path)] = Place(struct, (*shape, *data.shape[len(shape) :]))
    return found


def _models(like: Any) -> tuple[list, Any]:
    """Takes apart what says how arrays lie."""
    leaves, structure = tree_flatten_with_path(like)
    for path, leaf in leaves:
        if not isinstance(leaf, jax.Array | jax.ShapeDtypeStruct):
            raise _no_array(path, leaf)
    return leaves, structure


def _name(path) -> str:
    return keystr(path) or "state"


def _place(
    array: np.ndarray | jax.Array, like: Any, name: str, shape: tuple[int, ...]
) -> jax.Array:
    data = _data(like)
    if isinstance(array, jax.Array):
        return _wrap(array, like)  # It was read by shards, and is where it belongs.
    wanted = (*shape, *data.shape[len(shape) :])
    if (array.shape, array.dtype) != (wanted, data.dtype):
        raise CheckpointError(
            f"The array {name!r} of the checkpoint must be {data.dtype}"
            f"{list(wanted)}, but is {array.dtype}{list(array.shape)}."
        )
    if wanted == data.shape:
        # The state will be donated, `array` is not ours to give, and on the CPU
        # `device_put` may take its memory even with `may_alias=False`.
        array = array.copy()
    else:
        more = zip(wanted, data.shape, strict=True)
        array = np.pad(array, [(0, larger - smaller) for smaller, larger in more])
    # An array without a fixed place must not get one, or the next call compiles again.
    where = data.sharding if getattr(data, "committed", True) else None
    if where is not None and not where.is_fully_addressable:
        placed = jax.make_array_from_callback(data.shape, where, array.__getitem__)
    else:
        placed = jax.device_put(array, where)
    return _wrap(placed, like)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _data(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _wrap(data: jax.Array, like: Any) -> jax.Array:
    if not _is_key(like):
        return data
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(like))
