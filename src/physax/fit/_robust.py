"""What losses other than the square need: scaled rows, and the sums of their errors."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._products import matmul
from ._losses import AbstractLoss


def robust_rows(
    loss: AbstractLoss,
    values: Float[Array, " rows"],
    jacobian: Float[Array, "m rows"],
    root: Array,
    unit: float | Float[Array, ""] = 1.0,
) -> tuple[Float[Array, "k rows"], Float[Array, ""], Float[Array, "2 m rows"]]:
    """Applies a loss and the roots of weights to residuals.

    Args:
        loss: The loss.
        values: The residuals.
        jacobian: Their derivatives.
        root: The root of each weight, or of all.
        unit: What residuals and derivatives were multiplied by.

    Returns:
        The rows of the quadratic model, the cost, and those of E and B of `Parts`.
    """
    scale = loss.scale.astype(values.dtype) * unit
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
    parts = jnp.stack([jacobian * added, jacobian * (first * values / scale * root)])
    cost = scale**2 * jnp.sum(loss.rho(z) * root**2)
    return rows * root, cost, parts * root


class Parts(eqx.Module):
    r"""What the errors of a fit with a loss are made of, besides its quadratic model.

    With weights $w$ and $z = (r / s)^2$ the curvature of half the cost is $A = \sum w
    (\rho' + 2 \rho'' z) J^T J = R^T R - E$, and the variance of its gradient $B = \sum
    (w \rho' r / s)^2 J^T J$, in units of $s^2$, is of its order. Penalties count as
    measurements of known deviation 1 in both.

    Attributes:
        matrix: E and B, or triangular factors of them.
        factored: Whether these are factors.
        unit: What residuals and derivatives were multiplied by for them.
        scale: That of the loss, s.
    """

    matrix: Float[Array, "*fits 2 m m"]
    factored: Bool[Array, "*fits"]
    unit: Float[Array, "*fits"]
    scale: Float[Array, "*fits"]


def sandwich(
    factor: Float[Array, "m m"],
    half: Float[Array, "m m"],
    sound: Bool[Array, " m"],
    parts: Parts,
) -> Float[Array, "m m"]:
    """Returns A^-1 B A^-1 in the space of the columns of `half` that are sound.

    It is that of B in its units.

    References: Huber, Annals of Mathematical Statistics 35, 73 (1964); White,
    Econometrica 48, 817 (1980).

    Args:
        factor: R.
        half: The columns of V / S of R = U S V^T.
        sound: Which of them count.
        parts: E and B.
    """
    # Any basis of that space gives the same; in this one R^T R is the identity, and
    # nothing is lost to the condition of its square.
    half = jnp.where(sound, jax.lax.stop_gradient(half), 0)
    ahead = matmul(factor, half)
    turned = matmul(parts.matrix, half)
    left = jnp.where(parts.factored, turned, half)
    less, meat = matmul(jnp.swapaxes(left, -1, -2), turned)
    bread = matmul(ahead.T, ahead) - less + jnp.diag(jnp.where(sound, 0.0, 1.0))
    # NaN where it is not positive definite: there is no minimum.
    lower = jax.scipy.linalg.cho_factor(bread, lower=True)
    way = jax.scipy.linalg.cho_solve(lower, half.T)
    return matmul(matmul(way.T, meat), way)
