"""Checks of the numbers that describe a measurement, the same for maps and curves."""

from collections.abc import Sequence
from math import pi
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, positive, real
from ._known import on_host, require


# That of X-rays of 1 MeV, scattered back.
_LARGEST = 1000.0


def wide(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Returns numbers in float32 or wider: half precision may store, not compute."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def wavevectors(q: ArrayLike | Sequence) -> Array:
    """Returns wavevectors in 1/angstrom, refusing those in 1/m by their size."""
    q = wide(positive(q, "q"))
    (now,) = on_host(q)
    message = f"`q` must be in 1/angstrom, below {_LARGEST:g} (1/m times 1e-10)"
    return require(q, now < _LARGEST, message)


def directions(phi: ArrayLike | Sequence) -> Array:
    """Returns angles in radians, refusing those in degrees by their size."""
    phi = wide(real(phi, "phi"))
    (now,) = on_host(phi)
    message = "`phi` must be in radians, from -2 pi to 2 pi (use `jnp.deg2rad`)"
    # A little more than a full turn, for numbers that were rounded.
    return require(phi, abs(now) < 2 * pi + 1e-3, message)


def deviations(sigma: ArrayLike | Sequence, remedy: str = "") -> Array:
    """Returns standard deviations, refusing those that are not positive and finite.

    Args:
        sigma: The standard deviations.
        remedy: What to do about others, in parentheses.
    """
    sigma = wide(real(sigma, "sigma"))
    (now,) = on_host(sigma)
    what = "`sigma`, the standard deviation of one value,"
    good = (now > 0) & (now < np.inf)
    return require(sigma, good, f"{what} must be positive and finite{remedy}")


def increasing(x: Float[Array, " n"], name: str) -> Float[Array, " n"]:
    """Returns numbers, refusing those that do not increase strictly."""
    (now,) = on_host(x)
    # The first one has none before it.
    before = now[np.maximum(np.arange(len(now)) - 1, 0)]
    good = (now > before) | (np.arange(len(now)) == 0)
    return require(x, good, f"`{name}` must increase strictly")


def per_map(x: Any, maps: int, name: str) -> Float[Array, " maps"]:
    """Returns one number for each map; a single one applies to all.

    Args:
        x: The numbers, an array.
        maps: How many maps there are.
        name: What the caller calls them.
    """
    if x.shape not in ((), (1,), (maps,)):
        raise ArgumentError(
            f"`{name}` must be one number or one for each of the {maps} maps, but has "
            f"shape {x.shape}."
        )
    return jnp.broadcast_to(x, (maps,))
