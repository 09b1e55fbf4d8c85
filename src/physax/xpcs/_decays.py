"""Shapes of one-time correlations."""

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import positive, real


# Not 0 in float32 either, in which times may be.
_POSITIVE = (float(np.finfo(np.float32).tiny), None)


def _time(x) -> Float[Array, ""]:
    return positive(x, "tau")


class AbstractDecay(eqx.Module):
    r"""The field correlation $g_1(\tau)$, 1 at no delay.

    The intensity correlation is $g_2 = o + b\,g_1^2$.
    """

    @abstractmethod
    def __call__(self, lags: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Returns the field correlation at delays in seconds."""

    @abstractmethod
    def scaled(self, time: Float[Array, ""]) -> "AbstractDecay":
        """Returns a decay of this shape with its time scale replaced, for a start."""

    def bounds(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Returns the lower and the upper bound of numbers by name, None for no bound.

        `fit_g2` keeps these where it is given no others. A decay of your own may define
        this; by default nothing is bounded.
        """
        return {}


class Simple(AbstractDecay):
    r"""One exponential, $\exp(-\tau / \tau_c)$: free diffusion.

    Attributes:
        tau: The relaxation time $\tau_c$ of the field in seconds; $1 / \Gamma$.
    """

    tau: Float[Array, ""] = eqx.field(converter=_time, default=1.0)

    def __call__(self, lags):
        return jnp.exp(-lags / self.tau)

    def scaled(self, time):
        return Simple(time)

    def bounds(self):
        return {"tau": _POSITIVE}


class Stretched(AbstractDecay):
    r"""A stretched or compressed exponential, $\exp(-(\tau / \tau_c)^\gamma)$.

    Its derivative by a delay of 0 is set to 0.

    Reference: Kohlrausch, Annalen der Physik 167, 179 (1854), for the stretched one;
    Cipelletti et al., PRL 84, 2275 (2000), for the compressed one in gels.

    Attributes:
        tau: The relaxation time $\tau_c$ of the field in seconds.
        gamma: The exponent: below 1 a spread of times, above 1 ballistic motion.
    """

    tau: Float[Array, ""] = eqx.field(converter=_time, default=1.0)
    gamma: Float[Array, ""] = eqx.field(
        converter=partial(real, name="gamma"), default=1.0
    )

    def __call__(self, lags):
        # Neither the power nor the logarithm has a derivative by both numbers at 0.
        ratio = lags / self.tau
        some = ratio != 0
        power = jnp.exp(self.gamma * jnp.log(jnp.where(some, ratio, 1)))
        return jnp.exp(-jnp.where(some, power, 0))

    def scaled(self, time):
        return Stretched(time, self.gamma)

    def bounds(self):
        return {"tau": _POSITIVE, "gamma": (0.05, 5.0)}


class Double(AbstractDecay):
    r"""Two exponentials, $f \exp(-\tau / \tau_1) + (1 - f) \exp(-\tau / \tau_2)$.

    Attributes:
        fast: The shorter relaxation time $\tau_1$ in seconds.
        slow: The longer one, $\tau_2$, in seconds.
        fraction: The part $f$ of the field that decays fast.
    """

    fast: Float[Array, ""] = eqx.field(converter=_time, default=1.0)
    slow: Float[Array, ""] = eqx.field(converter=_time, default=10.0)
    fraction: Float[Array, ""] = eqx.field(
        converter=partial(real, name="fraction"), default=0.5
    )

    def __call__(self, lags):
        fast, slow = jnp.exp(-lags / self.fast), jnp.exp(-lags / self.slow)
        return self.fraction * fast + (1 - self.fraction) * slow

    def scaled(self, time):
        return Double(time / 3, time * 3, self.fraction)

    def bounds(self):
        return {"fast": _POSITIVE, "slow": _POSITIVE, "fraction": (0.0, 1.0)}
