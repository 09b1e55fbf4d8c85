"""Smooth approximations to the largest and the smallest of several values."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, positive, single
from ._argument_checks import as_density


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
        ArgumentError: If `sharpness` is not positive, or there is no such axis.
    """
    values = as_density(values, "values")
    _check_axis(axis, values.ndim)
    k = single(positive(sharpness, "sharpness"), "sharpness").astype(values.dtype)
    count = values.size if axis is None else jnp.sum(jnp.ones_like(values), axis)
    total = jax.nn.logsumexp(k * values, axis)
    return (total - jnp.log(jnp.asarray(count, values.dtype))) / k


def _check_axis(axis: Any, ndim: int) -> None:
    each = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
    for one in each:
        integer = isinstance(one, int | np.integer) and not isinstance(one, bool)
        if not (integer and -ndim <= one < ndim):
            raise ArgumentError(
                f"`axis` must be None, or integers from {-ndim} to {ndim - 1}, but is "
                f"{axis!r}."
            )


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
        ArgumentError: As for `soft_max`.
    """
    return -soft_max(-as_density(values, "values"), sharpness, axis)
