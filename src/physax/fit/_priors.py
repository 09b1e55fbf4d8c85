"""Prior distributions of parameters."""

import math
from abc import abstractmethod
from functools import partial

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, PyTree

from .._checks import ArgumentError, instance, positive, real
from ._given import unlike


def _deviation(x) -> Float[Array, "*shape"]:
    return positive(x, "deviation")


class AbstractPrior(eqx.Module):
    """The distribution of a number, or of each number of an array."""

    @abstractmethod
    def log_density(self, x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Returns the logarithm of the density at `x`, per unit of x."""

    @abstractmethod
    def residual(self, x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Returns a residual whose square represents the prior in a fit."""


def _log_normal_density(z, deviation):
    return -0.5 * z**2 - jnp.log(deviation) - 0.5 * math.log(2 * math.pi)


class Normal(AbstractPrior):
    """The normal distribution.

    Attributes:
        mean: Its mean.
        deviation: Its standard deviation.
    """

    mean: Float[Array, "*shape"] = eqx.field(converter=partial(real, name="mean"))
    deviation: Float[Array, "*shape"] = eqx.field(converter=_deviation)

    def log_density(self, x):
        return _log_normal_density(self.residual(x), self.deviation)

    def residual(self, x):
        return (x - self.mean) / self.deviation


class LogNormal(AbstractPrior):
    """The logarithm is normal: the number is known up to a factor.

    As a residual it is the density per unit of ln x, whose maximum is the median.

    Attributes:
        median: Its median, positive.
        deviation: Standard deviation of ln x.
    """

    median: Float[Array, "*shape"] = eqx.field(
        converter=lambda x: positive(x, "median")
    )
    deviation: Float[Array, "*shape"] = eqx.field(converter=_deviation)

    def log_density(self, x):
        inside = x > 0
        safe = jnp.where(inside, x, 1)
        density = _log_normal_density(self.residual(safe), self.deviation)
        return jnp.where(inside, density - jnp.log(safe), -jnp.inf)

    def residual(self, x):
        return (jnp.log(x) - jnp.log(self.median)) / self.deviation


class TruncatedNormal(AbstractPrior):
    """The normal distribution between two limits.

    As a residual it is that of the normal distribution: give its limits as bounds.

    Attributes:
        mean: Mean of the normal distribution.
        deviation: Its standard deviation.
        low: The lower limit.
        high: The upper limit.
    """

    mean: Float[Array, "*shape"] = eqx.field(converter=partial(real, name="mean"))
    deviation: Float[Array, "*shape"] = eqx.field(converter=_deviation)
    low: Float[Array, "*shape"] = eqx.field(
        converter=partial(real, name="low"), default=-math.inf
    )
    high: Float[Array, "*shape"] = eqx.field(
        converter=partial(real, name="high"), default=math.inf
    )

    def __check_init__(self):
        _check_limits(self.low, self.high)

    def log_density(self, x):
        low = (self.low - self.mean) / self.deviation
        high = (self.high - self.mean) / self.deviation
        # In the tail where the cumulative distribution keeps its digits.
        turned = low > 0
        low, high = jnp.where(turned, -high, low), jnp.where(turned, -low, high)
        above = log_ndtr(high)
        part = above + jnp.log(-jnp.expm1(log_ndtr(low) - above))
        density = _log_normal_density(self.residual(x), self.deviation) - part
        return jnp.where((x >= self.low) & (x <= self.high), density, -jnp.inf)

    def residual(self, x):
        return (x - self.mean) / self.deviation


class Uniform(AbstractPrior):
    """All values between two limits are equally likely. In a fit, use bounds instead.

    Attributes:
        low: The lower limit.
        high: The upper limit.
    """

    low: Float[Array, "*shape"] = eqx.field(converter=partial(real, name="low"))
    high: Float[Array, "*shape"] = eqx.field(converter=partial(real, name="high"))

    def __check_init__(self):
        _check_limits(self.low, self.high)

    def log_density(self, x):
        density = -jnp.log(self.high - self.low)
        return jnp.where((x >= self.low) & (x <= self.high), density, -jnp.inf)

    def residual(self, x):
        return jnp.zeros_like(x)


def _check_limits(low, high) -> None:
    if not isinstance(low, jax.core.Tracer) and not bool(jnp.all(low < high)):
        raise ArgumentError(
            f"`low` must be less than `high`, but they are {low} and {high}."
        )


class PriorResiduals(eqx.Module):
    """Priors as residuals: the `penalty` of a `LeastSquares`.

    The residuals of the data must then be in units of their standard deviations.

    Attributes:
        priors: A tree of priors like the parameters, or its upper part; None for none.
    """

    priors: PyTree

    def __call__(self, parameters: PyTree) -> Float[Array, " priors"]:
        """Returns one residual for each number that has a prior."""
        parts = [
            jnp.ravel(prior.residual(x)) for prior, x in pairs(self.priors, parameters)
        ]
        return jnp.concatenate(parts) if parts else jnp.zeros(0)


def log_prior(priors: PyTree, parameters: PyTree) -> Float[Array, ""]:
    """Returns the logarithm of the density of all priors together.

    Args:
        priors: A tree of priors like the parameters, or its upper part; None for none.
        parameters: Where to evaluate them.
    """
    return sum(
        (jnp.sum(prior.log_density(x)) for prior, x in pairs(priors, parameters)),
        start=jnp.zeros(()),
    )


def pairs(priors: PyTree, parameters: PyTree) -> list[tuple[AbstractPrior, Array]]:
    """Returns each prior with the numbers that it describes.

    Raises:
        ArgumentError: If the trees do not fit together.
    """
    found = []

    def add(prior, part):
        if prior is not None:
            instance(prior, "priors", AbstractPrior, "Write `Normal(0.0, 1.0)`.")
            leaves = [x for x in jax.tree.leaves(part) if eqx.is_inexact_array(x)]
            found.extend((prior, x) for x in leaves)

    def ends(x):
        return x is None or isinstance(x, AbstractPrior)

    try:
        jax.tree.map(add, priors, parameters, is_leaf=ends)
    except ArgumentError:
        raise
    except ValueError as error:
        raise ArgumentError(
            "`priors` must be a tree like the parameters, but does not fit: "
            + unlike(
                jax.tree.map(ends, priors, is_leaf=ends),
                parameters,
                "parameters",
                error,
            )
        ) from error
    return found
