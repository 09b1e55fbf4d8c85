"""Random keys in turn."""

from collections.abc import Iterator

import jax.random as jr
from jaxtyping import Array, Key


def key_stream(seed: int) -> Iterator[Key[Array, ""]]:
    """Yields a new key each time, the same ones for one seed.

    What a seed that is set and read would do, without a hidden state: `keys =
    key_stream(42)`, then `next(keys)`.

    Args:
        seed: Where the stream begins.

    Yields:
        Keys.
    """
    key = jr.key(seed)
    while True:
        key, mine = jr.split(key)
        yield mine
