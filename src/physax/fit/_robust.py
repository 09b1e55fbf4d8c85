"""What losses other than the square need: scaled rows, and the sums of their errors."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._products import matmul
from ._losses import AbstractLoss


def robust_rows(
    loss: AbstractLoss,
    values: Float[Array, " rows"],
    jacobian: Float[Array, "m rows"],
    root: Array,
) -> tuple[Float[Array, "k rows"], Float[Array, ""], Float[Array, "2 m rows"]]:
    """Applies a loss and the roots of weights to residuals.

    Args:
        loss: The loss.
        values: The residuals.
        jacobian: Their derivatives.
        root: The root of each weight, or of all.

    Returns:
        The rows of the quadratic model, the cost, and those whose products
        `bread_and_meat` takes.
    """
    scale = loss.scale.astype(values.dtype)
    z = (values / scale) ** 2
    first, second = loss.slopes(z)
    # Triggs' correction: the curvature of the loss, kept positive. With a smaller
    # least curvature fits take more steps, with a larger one they go astray.
    bend, least = first + 2 * second * z, 1e-5 * first
    kept = jnp.sqrt(jnp.maximum(bend, least))
    rows = jnp.concatenate([jacobian * kept, (values * first / kept)[None]])
    # What keeping it positive has added. The root of 0 has no derivative.
    added = jnp.where(
        bend < least, jnp.sqrt(jnp.where(bend < least, least - bend, 1)), 0
    )
    parts = jnp.stack([jacobian * added, jacobian * (first * values * root)])
    cost = scale**2 * jnp.sum(loss.rho(z) * root**2)
    return rows * root, cost, parts * root


def bread_and_meat(
    factor: Float[Array, "m m"],
    products: Float[Array, "2 m m"],
    penalties: Float[Array, "m rows"] | None,
) -> Float[Array, "2 m m"]:
    r"""Returns the two matrices of the errors of a fit with a loss.

    With weights $w$ and $z = (r / s)^2$ these are $A = \sum w (\rho' + 2 \rho'' z)
    J^T J$, the curvature of half the cost, and $B = \sum (w \rho' r)^2 J^T J$, the
    variance of its gradient. The covariance is $A^{-1} B A^{-1}$. Penalties count as
    measurements of known deviation 1 in both.

    References: Huber, Annals of Mathematical Statistics 35, 73 (1964); White,
    Econometrica 48, 817 (1980).

    Args:
        factor: Of the quadratic model, whose curvature was kept positive.
        products: Of the rows of `robust_rows`, summed over all points.
        penalties: Derivatives of the residuals that are not data.
    """
    meat = products[1]
    if penalties is not None:
        meat = meat + matmul(penalties, penalties.T)
    return jnp.stack([matmul(factor.T, factor) - products[0], meat])
