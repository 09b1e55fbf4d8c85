"""Indices drawn in proportion to weights, exactly also among millions."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray


@partial(jax.jit, static_argnums=2)
def pick(
    key: PRNGKeyArray, weights: Float[Array, " kinds"], count: int
) -> Int[Array, " count"]:
    """Draws indices with probabilities in proportion to weights.

    In two steps, first a block of indices and then one of the block: a uniform number
    in float32 has 23 bits, too coarse for the shares of a million kinds. What has no
    weight is never drawn.

    Args:
        key: Of random numbers.
        weights: At least 0, not all 0.
        count: How many to draw.
    """
    kinds = weights.shape[0]
    side = max(1, int(np.ceil(np.sqrt(kinds))))
    blocks = -(-kinds // side)
    table = jnp.pad(weights, (0, side * blocks - kinds)).reshape(blocks, side)
    within = _rising(jnp.cumsum(table, 1), table > 0)
    across = _rising(jnp.cumsum(within[:, -1]), within[:, -1] > 0)
    u = jax.random.uniform(key, (2, count), weights.dtype)
    zero = jnp.zeros(count, int)
    block = _first_above(across, zero, blocks, u[0] * across[-1])
    start = block * side
    target = u[1] * within[block, -1]
    return _first_above(within.reshape(-1), start, side, target)


def _rising(sums: Array, positive: Array) -> Array:
    """Returns running sums that increase at positive weights only.

    Sums taken in parallel are rounded differently from one to the next.
    """
    steps = jnp.where(positive, sums, 0)
    return jax.lax.cummax(steps, axis=steps.ndim - 1)


def _first_above(sums: Array, low: Array, length: int, target: Array) -> Array:
    """Returns the first index from `low` on where the sums are above a target.

    Args:
        sums: Running sums.
        low: Where each search begins.
        length: How many entries it has.
        target: Below the last of them; it is rounded down where it equals that.
    """
    last = sums[low + length - 1]
    target = jnp.minimum(target, jnp.nextafter(last, jnp.zeros_like(last)))

    # Written out, halvings are fused, each repeated in both of the next: the compiler
    # takes minutes for a million kinds.
    def halve(_, ends):
        low, high = ends
        middle = (low + high) // 2
        above = sums[middle] > target
        low, high = jnp.where(above, low, middle + 1), jnp.where(above, middle, high)
        return jnp.minimum(low, high), high

    ends = low, low + length - 1
    return jax.lax.fori_loop(0, length.bit_length(), halve, ends)[0]
