"""What follows from the triangular factor of a fit: covariances and errors."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._products import matmul
from ._robust import Parts, sandwich
from ._sums import norms_of, rank_limit


def root(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Returns the square root, whose derivative at 0 is 0; what is no size as it is."""
    some = x > 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, x, 1)), x)


def equal_columns(factor: Float[Array, "n m"]) -> tuple[Array, Array]:
    """Returns columns of length 1, and their lengths."""
    norms = norms_of(factor)
    norms = jnp.where(norms > 0, norms, 1)
    return factor / norms, norms


class Statistics(NamedTuple):
    """What follows from the factor of a fit, as the properties of `FitResult` say."""

    active: Array
    degrees_of_freedom: Array
    reduced_chi2: Array
    full_covariance: Array
    covariance: Array
    linear_errors: Array
    standard_errors: Array
    correlation: Array
    condition: Array


@partial(jax.jit, static_argnames=("linear", "absolute"))
def statistics(factor, held, parts, chi2, norm, count, *, linear: int, absolute: bool):
    """Computes all at once, for each fit: one small program instead of dozens."""
    each = partial(_of_one, linear=linear, absolute=absolute)
    for _ in chi2.shape:
        each = jax.vmap(each)
    return each(factor, held, parts, chi2, norm, count)


def _of_one(
    factor, held, parts, chi2, norm, count, *, linear: int, absolute: bool
) -> Statistics:
    freedom = count - (factor.shape[-1] - jnp.sum(held))
    left = jnp.maximum(freedom, 1)
    full, norms = _inverse_products(factor, held, parts)
    if parts is not None:
        sizes = parts.scale / norms * jnp.sqrt(count / left)
    else:
        sizes = 1 / norms if absolute else norm / norms / jnp.sqrt(left)
    # The errors of columns of length 1 are numbers of order 1, which have squares.
    equal = root(jnp.diagonal(full))
    # What is infinite stays so where the residuals vanish, and with them the scale.
    loose = jnp.isinf(full)
    scaled = jnp.where(loose, 0, full) * sizes[:, None] * sizes
    errors = jnp.where(jnp.isinf(equal), jnp.inf, equal * sizes)
    scaled = jnp.where(loose, jnp.inf, scaled)
    if parts is not None or not absolute:
        # Without degrees of freedom nothing is known of the scale, nor of a sign.
        nothing = jnp.where(held[:, None] | held[None, :], 0, jnp.inf)
        scaled = jnp.where(freedom > 0, scaled, nothing)
        errors = jnp.where(freedom > 0, errors, jnp.diagonal(nothing))
    own = errors[linear:]
    known = jnp.where(jnp.isfinite(own) & (own > 0), equal[linear:], 0)
    sigma = jnp.linalg.svd(equal_columns(factor)[0], compute_uv=False)
    return Statistics(
        active=held[linear:],
        degrees_of_freedom=freedom,
        reduced_chi2=jnp.where(freedom > 0, chi2 / left, jnp.nan),
        full_covariance=scaled,
        covariance=scaled[linear:, linear:],
        linear_errors=errors[:linear],
        standard_errors=own,
        correlation=correlation_of(full[linear:, linear:], known),
        condition=sigma[0] / sigma[-1],
    )


def _inverse_products(
    factor: Float[Array, "n n"], held: Array, parts: Parts | None
) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
    """Returns the inverse of R^T R in what is not held, infinite where it has none.

    With `parts` it is that of A, times B, times that of A, in their units.

    Returns:
        This of columns of length 1, and their lengths.
    """
    equal, norms = equal_columns(factor)
    free = jnp.where(held, 0, equal)
    _, sigma, right = jnp.linalg.svd(free)
    sound = sigma > rank_limit(sigma.size, sigma.dtype) * sigma[0]
    inverse = jnp.where(sound, 1 / jnp.where(sound, sigma, 1), 0)
    half = right.T * inverse
    # A parameter with a part in the null space has no variance, whatever the rest is.
    null = jnp.where(sound, 0, right.T**2)
    loose = (jnp.sum(null, axis=1) > 1e-8) & ~held
    still = held[:, None] | held[None, :]
    if parts is None:
        covariance = matmul(half, half.T)
    else:
        covariance = sandwich(equal, half, sound, _equal_parts(parts, norms))
    covariance = jnp.where(still, 0, covariance)
    infinite = jnp.diag(jnp.where(loose, jnp.inf, 0))
    covariance = jnp.where(
        loose[:, None] | loose[None, :],
        jnp.where(jnp.eye(len(norms), dtype=bool), infinite, jnp.nan),
        covariance,
    )
    return covariance, norms


unscaled = jax.jit(_inverse_products)


def _equal_parts(parts: Parts, norms: Float[Array, " n"]) -> Parts:
    """Returns E and B, or their factors, of columns of length 1."""
    norms = norms * parts.unit
    matrix = parts.matrix / norms
    rows = jnp.where(parts.factored, jnp.ones_like(norms), norms)
    matrix = matrix / rows[:, None]
    return Parts(matrix, parts.factored, parts.unit, parts.scale)


def correlation_of(
    covariance: Float[Array, "free free"], errors: Float[Array, " free"]
) -> Float[Array, "free free"]:
    """Returns the correlation of parameters; NaN where an error is 0 or infinite."""
    known = jnp.isfinite(errors) & (errors > 0)
    safe = jnp.where(known, errors, 1)
    both = known[:, None] & known[None, :]
    return jnp.where(both, covariance / safe[:, None] / safe, jnp.nan)
