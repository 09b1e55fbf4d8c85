"""Smooth stand-ins for the worst of several figures."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._checks import positive


def soft_max(
    values: Float[Array, "..."],
    sharpness: Float[ArrayLike, ""] | int,
    axis: int | tuple[int, ...] | None = None,
) -> Float[Array, "..."]:
    r"""Returns a smooth upper mean, $\frac1k \log \frac1n \sum_i \exp(k v_i)$.

    It lies between the mean and the largest value, and below the largest by at most
    $\log(n) / k$. Equal values give that value. Its gradient is a weighted mean of
    theirs: one backward run serves all wavelengths and ports.

    Args:
        values: The figures.
        sharpness: $k$, in one over the unit of the values. With figures in [0, 1], 10
            is soft and 100 sharp.
        axis: Over which axes; all by default.

    Returns:
        The soft maximum.

    Raises:
        ArgumentError: If `sharpness` is not positive.
    """
    k = positive(sharpness, "sharpness").astype(values.dtype)
    count = values.size if axis is None else jnp.sum(jnp.ones_like(values), axis)
    total = jax.nn.logsumexp(k * values, axis)
    return (total - jnp.log(jnp.asarray(count, values.dtype))) / k


def soft_min(
    values: Float[Array, "..."],
    sharpness: Float[ArrayLike, ""] | int,
    axis: int | tuple[int, ...] | None = None,
) -> Float[Array, "..."]:
    r"""Returns a smooth lower mean, $-\frac1k \log \frac1n \sum_i \exp(-k v_i)$.

    It lies between the smallest value and the mean; see `soft_max`.

    Args:
        values: The figures.
        sharpness: $k$, in one over the unit of the values.
        axis: Over which axes; all by default.

    Returns:
        The soft minimum.

    Raises:
        ArgumentError: If `sharpness` is not positive.
    """
    return -soft_max(-values, sharpness, axis)
