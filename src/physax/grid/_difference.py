"""Differences of neighbouring samples, as a staggered scheme takes them."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Inexact

from .._checks import ArgumentError


def forward_difference(
    values: Inexact[Array, "*shape"],
    axis: int,
    next_plane: Inexact[Array, "*plane"] | None = None,
) -> Inexact[Array, "*shape"]:
    r"""Subtracts each sample from the next one along an axis.

    Entry $i$ is $f_{i+1} - f_i$, which approximates the derivative at $i + 1/2$ times
    the width of cell $i$. The result has the shape of the values, so that blocks of a
    distributed grid stay equal.

    Args:
        values: Samples $f_i$.
        axis: Axis of the difference; negative numbers count from the last.
        next_plane: The samples after the last one: the halo, of size 1 along `axis`.
            Without it they are zero.

    Returns:
        The differences, in the unit of the values.

    Raises:
        ArgumentError: If the halo does not fit to the values.
    """
    later = lax.slice_in_dim(values, 1, None, axis=axis)
    plane = _plane(values, axis, next_plane, "next_plane")
    return jnp.concatenate([later, plane], axis) - values


def backward_difference(
    values: Inexact[Array, "*shape"],
    axis: int,
    previous_plane: Inexact[Array, "*plane"] | None = None,
) -> Inexact[Array, "*shape"]:
    r"""Subtracts from each sample the one before it along an axis.

    Entry $i$ is $f_i - f_{i-1}$. For samples at $i + 1/2$ it approximates the
    derivative at node $i$ times the dual width there. Without halos this is minus the
    transpose of `forward_difference`.

    Args:
        values: Samples $f_i$.
        axis: Axis of the difference; negative numbers count from the last.
        previous_plane: The samples before the first one: the halo, of size 1 along
            `axis`. Without it they are zero.

    Returns:
        The differences, in the unit of the values.

    Raises:
        ArgumentError: If the halo does not fit to the values.
    """
    earlier = lax.slice_in_dim(values, 0, -1, axis=axis)
    plane = _plane(values, axis, previous_plane, "previous_plane")
    return values - jnp.concatenate([plane, earlier], axis)


def _plane(values: Array, axis: int, plane: Array | None, name: str) -> Array:
    shape = list(values.shape)
    shape[axis] = 1
    if plane is None:
        return jnp.zeros(shape, values.dtype)
    if plane.shape != tuple(shape):
        raise ArgumentError(
            f"`{name}` must have shape {tuple(shape)}, that of `values` with size 1 "
            f"along axis {axis}, but has shape {plane.shape}."
        )
    return plane
