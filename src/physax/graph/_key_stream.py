"""Random keys in turn."""

import operator
from collections.abc import Iterator

import jax.random as jr
from jaxtyping import Array, Key

from .._checks import ArgumentError


def key_stream(seed: int) -> Iterator[Key[Array, ""]]:
    """Returns a new key each time, the same ones for one seed.

    What a seed that is set and read would do, without a hidden state: `keys =
    key_stream(42)`, then `next(keys)`.

    Args:
        seed: Where the stream begins.

    Returns:
        The keys, without end.

    Raises:
        ArgumentError: If `seed` is not an integer of at most 64 bits.
    """
    try:
        key = jr.key(seed if isinstance(seed, Array) else operator.index(seed))
    except (TypeError, OverflowError) as error:
        raise ArgumentError(
            f"`seed` must be an integer of at most 64 bits, but is {seed!r}."
        ) from error
    return _keys_from(key)


def _keys_from(key: Key[Array, ""]) -> Iterator[Key[Array, ""]]:
    while True:
        key, mine = jr.split(key)
        yield mine
