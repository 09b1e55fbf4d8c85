"""Bounds of coefficients that enter linearly."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, at_once
from .._known_number import known_number


def linear_limits(
    bounds: tuple[Any, Any], names: int, width: int
) -> tuple[Float[Array, " linear"], Float[Array, " linear"]]:
    """Spreads bounds of linear coefficients over all of them.

    Args:
        bounds: The lower and the upper bound, each None, a number or one for each name,
            of which any may be None.
        names: Number of names.
        width: How many coefficients each name stands for.

    Returns:
        Lower and upper bounds.

    Raises:
        ArgumentError: If a bound is no number, NaN or traced, or they are crossed or do
            not fit the names.
    """
    ends = zip(bounds, (-np.inf, np.inf), strict=True)
    low, high = (np.repeat(_each(bound, names, empty), width) for bound, empty in ends)
    if np.any(np.isnan(low) | np.isnan(high)):
        raise ArgumentError(
            "`linear_bounds` must be numbers or None, but one of them is NaN. Write "
            "None for no bound."
        )
    if not np.all(low <= high):
        worst = int(np.argmin(low <= high))
        raise ArgumentError(
            f"`linear_bounds` must be in increasing order, but are {low[worst]:g} "
            f"and {high[worst]:g}."
        )
    with at_once(()):
        return jnp.asarray(low), jnp.asarray(high)


def _each(bound: Any, names: int, empty: float) -> np.ndarray:
    """Returns a bound for each name."""
    several = isinstance(bound, list | tuple) or np.ndim(bound)
    given = list(bound) if several else [bound] * names
    if len(given) != names:
        raise ArgumentError(
            "`linear_bounds` must be numbers or hold one for each of the "
            f"{names} coefficients (the offset last), but one of them has {len(given)}."
        )
    remedy = "Give numbers; a coefficient that is known belongs in `basis`."
    ends = (
        empty if b is None else known_number(b, "linear_bounds", remedy) for b in given
    )
    return np.array(list(ends), float)
