"""Losses: how much a residual of some size counts."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import positive


def _scale(x) -> Float[Array, ""]:
    return positive(x, "scale")


class AbstractLoss(eqx.Module):
    r"""A function $\rho(z)$ of the squared residual $z = (r / s)^2$.

    The cost is $\sum s^2 \rho(r^2 / s^2)$, twice that of SciPy. Near $z = 0$ every loss
    is $z$, so residuals well below the scale $s$ count as in least squares.
    """

    scale: eqx.AbstractVar[Float[Array, ""]]

    @abstractmethod
    def rho(self, z: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Returns the loss at the squared residuals `z`."""

    @abstractmethod
    def slopes(
        self, z: Float[Array, "*n"]
    ) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """Returns the first and the second derivative of the loss at `z`."""


class Squared(AbstractLoss):
    r"""Least squares, $\rho = z$: right where the noise is normal."""

    scale: Float[Array, ""] = eqx.field(converter=_scale, default=1.0)

    def rho(self, z):
        return z

    def slopes(self, z):
        return jnp.ones_like(z), jnp.zeros_like(z)


class SoftL1(AbstractLoss):
    r"""A smooth absolute value, $\rho = 2 (\sqrt{1 + z} - 1)$.

    Attributes:
        scale: The residual beyond which it grows linearly, in the residual's unit.
    """

    scale: Float[Array, ""] = eqx.field(converter=_scale, default=1.0)

    def rho(self, z):
        return 2 * z / (jnp.sqrt(1 + z) + 1)

    def slopes(self, z):
        root = 1 / jnp.sqrt(1 + z)
        return root, -0.5 * root**3


class Huber(AbstractLoss):
    r"""Squares up to the scale, then straight lines: $2 \sqrt z - 1$ for $z > 1$.

    Reference: Huber, *Robust estimation of a location parameter*, Annals of
    Mathematical Statistics 35, 73 (1964).

    Attributes:
        scale: The residual at which squares end, in the residual's unit.
    """

    scale: Float[Array, ""] = eqx.field(converter=_scale, default=1.0)

    def rho(self, z):
        far = jnp.maximum(z, 1)
        return jnp.where(z <= 1, z, 2 * jnp.sqrt(far) - 1)

    def slopes(self, z):
        far = jnp.maximum(z, 1)
        root = 1 / jnp.sqrt(far)
        return root, jnp.where(z <= 1, 0, -0.5 * root**3)


class Cauchy(AbstractLoss):
    r"""Nearly ignores outliers: $\rho = \ln(1 + z)$.

    Attributes:
        scale: The residual beyond which influence decreases, in the residual's unit.
    """

    scale: Float[Array, ""] = eqx.field(converter=_scale, default=1.0)

    def rho(self, z):
        return jnp.log1p(z)

    def slopes(self, z):
        first = 1 / (1 + z)
        return first, -(first**2)


class Arctan(AbstractLoss):
    r"""Bounds what one residual can cost: $\rho = \arctan z$.

    Attributes:
        scale: The residual near which the cost levels off, in the residual's unit.
    """

    scale: Float[Array, ""] = eqx.field(converter=_scale, default=1.0)

    def rho(self, z):
        return jnp.arctan(z)

    def slopes(self, z):
        first = 1 / (1 + z**2)
        return first, -2 * z * first**2
