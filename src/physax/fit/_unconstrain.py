"""Maps between bounded parameters and numbers without bounds."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Unconstrain(eqx.Module):
    r"""Logarithms for parameters with one bound, logits for those with two.

    Attributes:
        low: Lower bounds, infinite for none.
        high: Upper bounds.
    """

    low: Float[Array, " m"]
    high: Float[Array, " m"]

    def _kinds(self):
        below, above = jnp.isfinite(self.low), jnp.isfinite(self.high)
        low = jnp.where(below, self.low, 0)
        high = jnp.where(above, self.high, 0)
        return below, above, low, high

    def forward(self, u: Float[Array, " m"]) -> Float[Array, " m"]:
        """Returns the parameters."""
        below, above, low, high = self._kinds()
        # Beyond this the exponential only overflows.
        grown = jnp.exp(jnp.minimum(u, 300.0 if u.dtype == jnp.float64 else 80.0))
        between = low + (high - low) * jax.nn.sigmoid(u)
        lone = jnp.where(below, low + grown, jnp.where(above, high - grown, u))
        return jnp.where(below & above, between, lone)

    def log_slope(self, u: Float[Array, " m"]) -> Float[Array, " m"]:
        """Returns the logarithm of the derivative of each parameter."""
        below, above, low, high = self._kinds()
        width = jnp.where(below & above, high - low, 1)
        between = jnp.log(width) + jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u)
        return jnp.where(below & above, between, jnp.where(below | above, u, 0))

    def inverse(self, values: Float[Array, " m"]) -> Float[Array, " m"]:
        """Returns the numbers without bounds, of values strictly within them."""
        below, above, low, high = self._kinds()
        up = jnp.where(below, values - low, 1)
        down = jnp.where(above, high - values, 1)
        lone = jnp.where(below, jnp.log(up), jnp.where(above, jnp.log(down), values))
        return jnp.where(below & above, jnp.log(up) - jnp.log(down), lone)
