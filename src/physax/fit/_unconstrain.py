"""Maps between bounded parameters and numbers without bounds."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Unconstrain(eqx.Module):
    r"""Logarithms for parameters with one bound, logits for those with two.

    Where both bounds are equal the parameter is a constant, without such a number.

    Attributes:
        low: Lower bounds, infinite for none.
        high: Upper bounds.
        moving: Places of the parameters that are not constants.
    """

    low: Float[Array, " m"]
    high: Float[Array, " m"]
    moving: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, low: Float[Array, " m"], high: Float[Array, " m"]):
        """Sets up the map of concrete bounds.

        Args:
            low: Lower bounds.
            high: Upper bounds.
        """
        self.low, self.high = low, high
        moves = np.asarray(low) < np.asarray(high)
        self.moving = tuple(np.flatnonzero(moves).tolist())

    @property
    def _places(self) -> np.ndarray | slice:
        some = len(self.moving) < self.low.size
        return np.array(self.moving, int) if some else slice(None)

    def _kinds(self):
        low, high = self.low[self._places], self.high[self._places]
        below, above = jnp.isfinite(low), jnp.isfinite(high)
        return below, above, jnp.where(below, low, 0), jnp.where(above, high, 0)

    def forward(self, u: Float[Array, " moving"]) -> Float[Array, " m"]:
        """Returns the parameters."""
        below, above, low, high = self._kinds()
        # Beyond this the exponential only overflows.
        grown = jnp.exp(jnp.minimum(u, 300.0 if u.dtype == jnp.float64 else 80.0))
        between = low + (high - low) * jax.nn.sigmoid(u)
        lone = jnp.where(below, low + grown, jnp.where(above, high - grown, u))
        values = jnp.where(below & above, between, lone)
        return self.low.astype(values.dtype).at[self._places].set(values)

    def log_slope(self, u: Float[Array, " moving"]) -> Float[Array, " moving"]:
        """Returns the logarithm of the derivative of each parameter that moves."""
        below, above, low, high = self._kinds()
        width = jnp.where(below & above, high - low, 1)
        between = jnp.log(width) + jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u)
        return jnp.where(below & above, between, jnp.where(below | above, u, 0))

    def inverse(self, values: Float[Array, " m"]) -> Float[Array, " moving"]:
        """Returns the numbers without bounds, of values strictly within them."""
        below, above, low, high = self._kinds()
        values = values[self._places]
        up = jnp.where(below, values - low, 1)
        down = jnp.where(above, high - values, 1)
        lone = jnp.where(below, jnp.log(up), jnp.where(above, jnp.log(down), values))
        return jnp.where(below & above, jnp.log(up) - jnp.log(down), lone)
