"""Hankel functions of the first kind: the waves of a line source."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float


_NODES = 96


def hankel(x: Float[Array, "*shape"]) -> tuple[Complex[Array, "*shape"], ...]:
    r"""Returns $H_0^{(1)}$ and $H_1^{(1)}$, over $e^{ix}$.

    From $\int_0^\infty e^{-u^2} u^{2 \nu} (1 + i u^2 / 2x)^{\nu - 1/2} du$ by Gauss's
    rule: to 1e-6 for $x > 0.3$, to 1e-10 for $x > 1$. Reference: Watson, *A Treatise on
    the Theory of Bessel Functions*, 2nd edition (1944), section 6.12.

    Args:
        x: Positive.

    Returns:
        Both; differentiable.
    """
    nodes, weights = np.polynomial.hermite.hermgauss(_NODES)
    half = nodes > 0
    square, weights = nodes[half] ** 2, 2 * weights[half] / np.sqrt(np.pi)
    root = jnp.sqrt(1 + 0.5j * jnp.asarray(square, x.dtype) / x[..., None])
    scale = jnp.sqrt(2 / (jnp.pi * x))
    zeroth = jnp.sum(jnp.asarray(weights, x.dtype) / root, axis=-1)
    first = jnp.sum(jnp.asarray(2 * weights * square, x.dtype) * root, axis=-1)
    turn = np.exp(-0.25j * np.pi)
    zeroth, first = scale * turn * zeroth, -1j * scale * turn * first
    return zeroth, first
