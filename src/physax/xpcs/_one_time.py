"""Measured one-time correlations."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, optional, real, true_or_false
from ._known import on_host, require
from ._measured import deviations, directions, increasing, wavevectors, wide


def _lags(lags):
    lags = wide(real(lags, "lags"))
    if lags.ndim != 1 or not lags.size:
        raise ArgumentError(
            f"`lags` must have shape (lags,) and not be empty, but has {lags.shape}."
        )
    (now,) = on_host(lags)
    lags = require(lags, (now > 0) & (now < np.inf), "`lags` must be positive")
    return increasing(lags, "lags")


# Lags of `multi_tau` that few pairs of frames have, for instance.
_REMEDY = " (cut the lags where it is not from `lags`, `g2` and `sigma`)"


def _curves(g2):
    g2 = real(g2, "g2")
    if g2.ndim != 2:
        raise ArgumentError(
            f"`g2` must have shape (curves, lags), but has shape {g2.shape}. Give a "
            "single curve as `g2[None]`."
        )
    (now,) = on_host(g2)
    return require(g2, abs(now) < np.inf, f"`g2` must be finite{_REMEDY}")


def _wavevectors(q):
    return jnp.atleast_1d(wavevectors(q))


def _directions(phi):
    return jnp.atleast_1d(directions(phi))


class OneTime(eqx.Module):
    r"""One-time intensity correlations $g_2(\tau)$, one curve for each wavevector.

    Attributes:
        lags: Delays in seconds, positive and strictly increasing.
        g2: The curves, dimensionless.
        sigma: Standard deviation of each value; one number applies to all.
        q: Wavevector of each curve in 1/angstrom.
        phi: Direction of each wavevector in radians; `None` if it is not known, or
            the curves are averages over directions.
        sigma_is_known: Whether `sigma` is known, and not only relative. If not, the
            errors of a fit follow from its residuals.

    Raises:
        ArgumentError: If a shape does not fit, a value is not finite, the lags do not
            increase, lags, `q` or `sigma` are not positive, or `phi` is in degrees.
    """

    lags: Float[Array, " lags"] = eqx.field(converter=_lags)
    g2: Float[Array, "curves lags"] = eqx.field(converter=_curves)
    sigma: Float[Array, "*#shape"] = eqx.field(
        converter=lambda x: deviations(x, _REMEDY)
    )
    q: Float[Array, " curves"] = eqx.field(converter=_wavevectors)
    phi: Float[Array, " curves"] | None = eqx.field(
        converter=optional(_directions), default=None
    )
    sigma_is_known: bool = eqx.field(
        static=True,
        converter=lambda x: true_or_false(x, "sigma_is_known"),
        default=True,
    )

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
