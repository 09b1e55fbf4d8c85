"""Whether seeds, and what they are made of, can be used."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import (
    ArgumentError,
    at_once,
    check,
    real,
    refuse_masked,
    refuse_text,
)
from ._numbers import check_numbers


Place = ArrayLike | Sequence[ArrayLike]
"""One number for each axis: an array, or a sequence such as `(0.0, 1.5)`."""


def check_seeds(
    seeds: ArrayLike | Sequence, ndim: int | None = None
) -> Float[Array, "particles ndim"]:
    """Returns positions that may be tracked.

    Under `jit` values are not known, and only the shape is checked.

    Args:
        seeds: The positions, one row for each particle.
        ndim: How many coordinates each must have, if that is known.

    Returns:
        The positions, as floating point.

    Raises:
        ArgumentError: If they are not an array of this shape, there are none, or one
            is complex, masked or not finite.
    """
    refuse_masked(seeds, "seeds")
    refuse_text(seeds, "seeds")
    check_numbers(seeds, "seeds")
    if any(jnp.iscomplexobj(leaf) for leaf in jax.tree.leaves(seeds)):
        raise ArgumentError(
            "`seeds` must be real numbers, but are complex. Their parts become "
            "coordinates by `np.stack([seeds.real, seeds.imag], -1)`."
        )
    if not isinstance(seeds, jax.Array):
        seeds = np.asarray(seeds, float)
    if seeds.ndim != 2:
        raise ArgumentError(
            "`seeds` must have two axes, particles and coordinates, but has shape "
            f"{seeds.shape}. Write one particle as `[[x, y]]`."
        )
    if ndim is not None and seeds.shape[1] != ndim:
        raise ArgumentError(
            f"`seeds` must have {ndim} coordinates in each row, but has shape "
            f"{seeds.shape}."
        )
    if not seeds.size:
        raise ArgumentError(
            f"`seeds` must hold at least one particle, but has shape {seeds.shape}."
        )
    if not isinstance(seeds, jax.core.Tracer):
        rows = np.flatnonzero(~np.isfinite(np.asarray(seeds)).all(1))
        if rows.size:
            raise ArgumentError(
                f"`seeds` must be finite, but particle {rows[0]} is at "
                f"{np.asarray(seeds)[rows[0]].tolist()}, one of {rows.size} that are "
                "not."
            )
    return in_default_precision(seeds)


def in_default_precision(x: Any, name: str = "value") -> Float[Array, "..."]:
    """Returns real numbers in the precision that new arrays have."""
    x = real(x, name)
    with at_once(x):
        return x.astype(jnp.result_type(float))


def as_place(x: Any, name: str, ndim: int | None = None) -> Float[Array, " ndim"]:
    """Returns one finite number for each axis.

    Args:
        x: The numbers.
        name: What the caller calls them.
        ndim: How many there must be, if that is known.

    Raises:
        ArgumentError: If they are not as many, or one is not finite.
    """
    x = in_default_precision(x, name)
    if x.ndim != 1 or x.shape[0] < 1 or (ndim is not None and x.shape[0] != ndim):
        wanted = "one number for each axis" if ndim is None else f"{ndim} numbers"
        raise ArgumentError(f"`{name}` must be {wanted}, but has shape {x.shape}.")
    with at_once(x):
        return check(x, jnp.isfinite(x), f"`{name}` must be finite")


def as_box(
    low: Any, high: Any, thin: Sequence[bool] | None = None
) -> tuple[Float[Array, " ndim"], Float[Array, " ndim"]]:
    """Returns the corners of a box.

    Args:
        low: The low corner.
        high: The high corner.
        thin: Along which axes the box may have no extent.

    Raises:
        ArgumentError: If the high corner is not above the low one.
    """
    low = as_place(low, "low")
    high = as_place(high, "high", low.shape[0])
    with at_once((low, high)):
        good = low < high
        if thin is not None:
            good |= jnp.asarray(thin) & (low == high)
        return check(low, good, "`low` must be less than `high` along each axis"), high
