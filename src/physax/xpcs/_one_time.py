"""Measured one-time correlations."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import ArgumentError, as_array, at_once, check
from ._known import wavevectors


def _rising(lags):
    lags = as_array(lags, "lags")
    if lags.ndim != 1 or not lags.size:
        raise ArgumentError(
            f"`lags` must have shape (lags,) and not be empty, but has {lags.shape}."
        )
    with at_once(lags):
        lags = check(lags, (lags > 0) & jnp.isfinite(lags), "`lags` must be positive")
        rises = jnp.append(True, lags[1:] > lags[:-1])
        return check(lags, rises, "`lags` must increase strictly")


def _curves(g2):
    g2 = as_array(g2, "g2")
    if g2.ndim != 2:
        raise ArgumentError(
            f"`g2` must have shape (curves, lags), but has shape {g2.shape}. Give a "
            "single curve as `g2[None]`."
        )
    with at_once(g2):
        return check(g2, jnp.isfinite(g2), "`g2` must be finite")


def _errors(sigma):
    sigma = as_array(sigma, "sigma")
    with at_once(sigma):
        good = (sigma > 0) & jnp.isfinite(sigma)
        return check(sigma, good, "`sigma` must be positive and finite")


def _wavevectors(q):
    return jnp.atleast_1d(wavevectors(q))


def _directions(phi):
    return None if phi is None else jnp.atleast_1d(as_array(phi, "phi"))


class OneTime(eqx.Module):
    r"""One-time intensity correlations $g_2(\tau)$, one curve for each wavevector.

    Attributes:
        lags: Delays in seconds, positive and strictly increasing.
        g2: The curves, dimensionless.
        sigma: Standard deviation of each value; one number stands for all.
        q: Wavevector of each curve in 1/angstrom.
        phi: Direction of each wavevector in radians; `None` where it is not known, or
            the curves are averages over directions.

    Raises:
        ArgumentError: If a shape does not fit, a value is not finite, the lags do not
            increase, or lags, `q` or `sigma` are not positive.
    """

    lags: Float[Array, " lags"] = eqx.field(converter=_rising)
    g2: Float[Array, "curves lags"] = eqx.field(converter=_curves)
    sigma: Float[Array, "*#shape"] = eqx.field(converter=_errors)
    q: Float[Array, " curves"] = eqx.field(converter=_wavevectors)
    phi: Float[Array, " curves"] | None = eqx.field(converter=_directions, default=None)

    def __check_init__(self):
        curves, lags = self.g2.shape
        if self.lags.size != lags:
            raise ArgumentError(
                f"`lags` must have one entry for each of the {lags} values of a curve, "
                f"but has {self.lags.size}."
            )
        for name in ("q", "phi"):
            value = getattr(self, name)
            if value is not None and value.shape != (curves,):
                raise ArgumentError(
                    f"`{name}` must have one entry for each of the {curves} curves, "
                    f"but has shape {value.shape}."
                )
        if self.sigma.shape not in ((), self.g2.shape):
            raise ArgumentError(
                f"`sigma` must be one number or have the shape {self.g2.shape} of "
                f"`g2`, but has {self.sigma.shape}."
            )

    @property
    def curves(self) -> int:
        """How many curves there are."""
        return self.g2.shape[0]
