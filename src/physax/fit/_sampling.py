"""Starts spread over the bounds."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._checks import ArgumentError
from ._parameters import Parameters


class AbstractSampling(eqx.Module):
    """A way to spread points over a unit cube."""

    @abstractmethod
    def points(
        self, key: PRNGKeyArray, count: int, size: int
    ) -> Float[Array, "count size"]:
        """Returns points in the unit cube.

        Args:
            key: Key of the random numbers.
            count: How many points.
            size: Dimensions of the cube.
        """


class LatinHypercube(AbstractSampling):
    """One point in each of as many slices of every axis as there are points.

    Reference: McKay, Beckman and Conover, Technometrics 21, 239 (1979).
    """

    def points(self, key, count, size):
        order, place = jax.random.split(key)
        slices = jnp.tile(jnp.arange(count)[:, None], (1, size))
        slices = jax.random.permutation(order, slices, axis=0, independent=True)
        return (slices + jax.random.uniform(place, (count, size))) / count


class AdditiveRecurrence(AbstractSampling):
    r"""A sequence of low discrepancy, shifted at random.

    Point k is $(u + k \alpha) \bmod 1$, with $\alpha_j = g^{-j}$ and g the positive
    root of $g^{d+1} = g + 1$ in d dimensions, the golden ratio in one. Any number of
    its points fills the cube evenly, in few dimensions more so than a Latin hypercube.

    Reference: Roberts, *The unreasonable effectiveness of quasirandom sequences*
    (2018).
    """

    def points(self, key, count, size):
        root = 2.0
        for _ in range(60):
            root = (1 + root) ** (1 / (size + 1))
        # Powers on the host, in double precision: k times a rounding error adds up.
        steps = jnp.asarray([root**-j for j in range(1, size + 1)])
        shift = jax.random.uniform(key, (size,))
        return (shift + jnp.arange(count)[:, None] * steps) % 1


def check_finite_bounds(parameters: Parameters) -> None:
    """Raises if a bound is infinite: starts cannot be spread over it.

    Raises:
        ArgumentError: With the name of the parameter.
    """
    for name, low, high in zip(
        parameters.names, parameters.low, parameters.high, strict=True
    ):
        if not (jnp.isfinite(low) and jnp.isfinite(high)):
            raise ArgumentError(
                f"`bounds` of {name} must be finite for starts to be spread over them, "
                f"but are {float(low):g} and {float(high):g}."
            )


# Wider positive bounds are sampled evenly in the logarithm.
_DECADES = 100.0


def within_bounds(
    unit: Float[Array, "*count free"],
    low: Float[Array, " free"],
    high: Float[Array, " free"],
) -> Float[Array, "*count free"]:
    """Maps the unit cube to the bounds, by the logarithm where they span decades."""
    wide = (low > 0) & (high >= _DECADES * low)
    below = jnp.where(wide, low, 1)
    ratio = jnp.where(wide, high, 1) / below
    even = low + unit * (high - low)
    return jnp.clip(jnp.where(wide, below * ratio**unit, even), low, high)
