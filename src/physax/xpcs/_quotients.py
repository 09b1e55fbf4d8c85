"""Quotients such as sin(x)/x, exact and differentiable where both parts vanish."""

from math import factorial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


# Below this the series below are exact to 5e-17: the first term left out is x^14 / 15!.
_SMALL = 0.5
_TERMS = 7


def _series(squared, sign: int, of=lambda k: 1):
    """Sums `of(k) (sign x^2)^k / (2 k + 1)!` by Horner's rule."""
    total = jnp.zeros_like(squared)
    for k in reversed(range(_TERMS)):
        total = total * squared + of(k) * sign**k / factorial(2 * k + 1)
    return total


def sinhc(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Returns sinh(x) / x, which is 1 at 0, with all its derivatives."""
    small = jnp.abs(x) < _SMALL
    safe = jnp.where(small, 1, x)
    near = jnp.where(small, x, 0)
    # Beyond the series nothing cancels, and XLA's sinh is much more to compile.
    sinh = (jnp.exp(safe) - jnp.exp(-safe)) / 2
    return jnp.where(small, _series(near**2, 1), sinh / safe)


def _parts(a, b):
    """Returns b - a and the sine of it, and where the series is better."""
    x = b - a
    # Sines of the two parts, not of the difference: where `a` is a column and `b` a
    # row, this takes a few products for each pair instead of a sine.
    sine = jnp.sin(b) * jnp.cos(a) - jnp.cos(b) * jnp.sin(a)
    return x, sine, jnp.abs(x) < _SMALL


@jax.custom_jvp
def sinc_of_difference(
    a: Float[Array, "..."], b: Float[Array, "..."]
) -> Float[Array, "..."]:
    """Returns sin(b - a) / (b - a), which is 1 where both agree.

    Args:
        a: Angles in radians, of a shape that broadcasts with that of `b`: a column and
            a row give the values of all pairs at the cost of sines of their entries.
        b: Angles in radians.
    """
    x, sine, small = _parts(a, b)
    near = jnp.where(small, x, 0)
    return jnp.where(small, _series(near**2, -1), sine / jnp.where(small, 1, x))


@sinc_of_difference.defjvp
def _sinc_of_difference_jvp(primals, tangents):
    a, b = primals
    da, db = tangents
    value = sinc_of_difference(a, b)
    x, _, small = _parts(a, b)
    near = jnp.where(small, x, 0)
    cosine = jnp.cos(b) * jnp.cos(a) + jnp.sin(b) * jnp.sin(a)
    # (sin x / x)' = (cos x - sin x / x) / x = -x (2/3! - 4 x^2/5! + 6 x^4/7! - ...).
    slope = jnp.where(
        small,
        near * _derivative_series(near**2),
        (cosine - value) / jnp.where(small, 1, x),
    )
    return value, slope * (db - da)


def _derivative_series(squared):
    """Sums the series of (sin x / x)' / x."""
    total = jnp.zeros_like(squared)
    for k in reversed(range(1, _TERMS + 1)):
        total = total * squared + 2 * k * (-1) ** k / factorial(2 * k + 1)
    return total
