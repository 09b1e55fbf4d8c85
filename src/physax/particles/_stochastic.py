"""Steps of stochastic differential equations: diffusion along the way."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._checks import ArgumentError, at_least
from ._fields import check_components
from ._motions import AbstractMotion
from ._numbers import check_numbers
from ._solvers import Trial, finite, moved


class Diffusivity(eqx.Module):
    r"""A constant diffusivity $K$: the variance of a coordinate grows as $2 K t$.

    Attributes:
        value: In m^2/s, one number or one for each axis, at least 0.
    """

    value: Float[Array, "..."] = eqx.field(converter=at_least("diffusivity", 0.0))


def as_diffusivity(diffusivity: Any, ndim: int) -> Any:
    """Returns what was given if it is a function of place, else a `Diffusivity`.

    Args:
        diffusivity: A number, one for each axis, or a callable `K(t, x)`.
        ndim: Number of axes.

    Raises:
        ArgumentError: If it is none of them.
    """
    if isinstance(diffusivity, type):
        raise ArgumentError(
            "`diffusivity` must be a number, one for each axis, or a function "
            f"`K(t, x)`, but is {diffusivity!r}."
        )
    if callable(diffusivity):
        return diffusivity
    if not isinstance(diffusivity, Diffusivity):
        check_numbers(diffusivity, "diffusivity")
        diffusivity = Diffusivity(diffusivity)
    if diffusivity.value.shape not in ((), (ndim,)):
        raise ArgumentError(
            f"`diffusivity` must be one number, or one for each of {ndim} coordinates, "
            f"but has shape {diffusivity.value.shape}."
        )
    return diffusivity


class AbstractStochastic(eqx.Module):
    r"""A method of fixed step for $dX = (u + \nabla K)\, dt + \sqrt{2 K}\, dW$ (Ito).

    The gradient of $K$ in the drift keeps what is well mixed well mixed. $K$ may be one
    function for all axes or one for each axis, $\partial_i K_i$ then being the drift.
    Backward in time only $u$ turns around: particles spread, and stay well mixed,
    as they do forward.
    """

    @abstractmethod
    def step(
        self,
        motion: AbstractMotion,
        diffusivity: Any,
        t: Float[Array, ""],
        h: Float[Array, ""],
        y: Float[Array, " width"],
        memory: PyTree,
        noise: Float[Array, " ndim"],
    ) -> Trial:
        r"""Makes one step of one particle.

        Args:
            motion: The motion without diffusion.
            diffusivity: A `Diffusivity` or a callable `K(t, x)`.
            t: The time.
            h: Length of the step.
            y: What is integrated.
            memory: What the fields remember.
            noise: Independent normal numbers of variance 1.
        """


def _local(diffusivity: Any, t, x) -> tuple[Array, Array]:
    """Returns K along each axis and the derivative of each along its axis."""
    if isinstance(diffusivity, Diffusivity):
        value = jnp.broadcast_to(diffusivity.value.astype(x.dtype), x.shape)
        return value, jnp.zeros_like(x)

    def along(x):
        value = jnp.asarray(diffusivity(t, x), x.dtype)
        check_components(value, x, "What `diffusivity` returns", scalar=True)
        return jnp.broadcast_to(value, x.shape)

    return along(x), jnp.diagonal(jax.jacfwd(along)(x))


def _spread(value: Array, h: Array) -> Array:
    """Returns the standard deviation of a step."""
    # The square root has no derivative at 0, which a vanishing K may reach.
    safe = jnp.where(value > 0, value, 1)
    return jnp.where(value > 0, jnp.sqrt(2 * safe * jnp.abs(h)), 0)


class EulerMaruyama(AbstractStochastic):
    """Strong order 1/2, and 1 where K is constant; weak order 1.

    Reference: Kloeden and Platen, *Numerical Solution of Stochastic Differential
    Equations* (1992).
    """

    def step(self, motion, diffusivity, t, h, y, memory, noise):
        seen = motion.rate(t, y, memory)
        value, slope = _local(diffusivity, t, y[: noise.size])
        move = slope * jnp.abs(h) + _spread(value, h) * noise
        after = moved(y, h, seen.value).at[: noise.size].add(move)
        return Trial(after, seen.memory)


class Milstein(AbstractStochastic):
    """Strong order 1 where the K of an axis depends on that coordinate; weak order 1.

    Reference: Milstein, Theory of Probability and its Applications 19, 557 (1974).
    """

    def step(self, motion, diffusivity, t, h, y, memory, noise):
        seen = motion.rate(t, y, memory)
        value, slope = _local(diffusivity, t, y[: noise.size])
        # Half of sigma times its slope is half the slope of K.
        move = slope * jnp.abs(h) + _spread(value, h) * noise
        move = move + 0.5 * slope * jnp.abs(h) * (noise**2 - 1)
        after = moved(y, h, seen.value).at[: noise.size].add(move)
        return Trial(after, seen.memory)


class StochasticHeun(AbstractStochastic):
    """Heun's method on the equation of Stratonovich: order 2 where nothing diffuses.

    Strong order 1 as `Milstein`, with a smaller error of the drift.

    Reference: Ruemelin, SIAM Journal on Numerical Analysis 19, 604 (1982).
    """

    def step(self, motion, diffusivity, t, h, y, memory, noise):
        ndim, zeros = noise.size, jnp.zeros_like(y)

        def slopes(t, y, memory):
            seen = motion.rate(t, y, memory)
            value, slope = _local(diffusivity, t, y[:ndim])
            # Of the drift grad K, Stratonovich's calculus brings one half by itself.
            move = slope * jnp.abs(h) / 2 + _spread(value, h) * noise
            return seen, moved(zeros, h, seen.value).at[:ndim].add(move)

        seen, move = slopes(t, y, memory)
        later, move_then = slopes(t + h, y + finite(move), seen.memory)
        after = y + (move + move_then) / 2
        return Trial(after, later.memory)
