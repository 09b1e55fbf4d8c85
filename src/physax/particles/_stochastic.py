"""Steps of stochastic differential equations: diffusion along the way."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ._diffusivity import displaced, local
from ._motions import AbstractMotion
from ._solvers import Trial, moved


class AbstractStochastic(eqx.Module):
    r"""A method of fixed step for $dX = (u + \nabla K)\, dt + \sqrt{2 K}\, dW$ (Ito).

    The gradient of $K$ in the drift keeps what is well mixed well mixed. $K$ may be one
    function for all axes or one for each axis, $\partial_i K_i$ then being the drift.
    Backward in time only $u$ turns around: particles spread, and stay well mixed,
    as they do forward. Where $K$ is
    negative or not finite no step is made: the particle ends with `NOT_FINITE`.
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
            diffusivity: As `as_diffusivity` returns it.
            t: The time.
            h: Length of the step.
            y: What is integrated.
            memory: What the fields remember.
            noise: Independent normal numbers of variance 1.
        """


def _spread(value: Array, h: Array) -> Array:
    """Returns the standard deviation of a step."""
    # The square root has no derivative at 0, which a vanishing K reaches, and the step
    # of a particle that waits for its release.
    variance = 2 * value * jnp.abs(h)
    some = variance > 0
    none = jnp.where(value >= 0, 0, jnp.nan)
    return jnp.where(some, jnp.sqrt(jnp.where(some, variance, 1)), none)


def _after(diffusivity: Any, y: Array, h: Array, rate: Array, move: Array) -> Array:
    """Returns where a step leads: with the flow, then by diffusion."""
    after, ndim = moved(y, h, rate), move.size
    return after.at[:ndim].set(displaced(diffusivity, after[:ndim], move))


class EulerMaruyama(AbstractStochastic):
    """Strong order 1/2, and 1 where K is constant; weak order 1.

    Reference: Kloeden and Platen, *Numerical Solution of Stochastic Differential
    Equations* (1992).
    """

    def step(self, motion, diffusivity, t, h, y, memory, noise):
        seen = motion.rate(t, y, memory)
        value, slope, drift = local(diffusivity, t, y[: noise.size])
        move = (slope + drift) * jnp.abs(h) + _spread(value, h) * noise
        return Trial(_after(diffusivity, y, h, seen.value, move), seen.memory)


class Milstein(AbstractStochastic):
    """Strong order 1 where the K of an axis depends on that coordinate; weak order 1.

    Reference: Milstein, Theory of Probability and its Applications 19, 557 (1974).
    """

    def step(self, motion, diffusivity, t, h, y, memory, noise):
        seen = motion.rate(t, y, memory)
        value, slope, drift = local(diffusivity, t, y[: noise.size])
        # Half of sigma times its slope is half the slope of K.
        move = (slope + drift) * jnp.abs(h) + _spread(value, h) * noise
        move = move + 0.5 * slope * jnp.abs(h) * (noise**2 - 1)
        return Trial(_after(diffusivity, y, h, seen.value, move), seen.memory)


class StochasticHeun(AbstractStochastic):
    """Heun's method on the equation of Stratonovich: order 2 where nothing diffuses.

    Strong order 1 as `Milstein`, with a smaller error of the drift. On a sphere of weak
    order 1. $K$ is asked at a guess of the end of a step, too, which may lie beyond a
    wall: where it vanishes at a wall, it must not be negative beyond.

    Reference: Ruemelin, SIAM Journal on Numerical Analysis 19, 604 (1982).
    """

    def step(self, motion, diffusivity, t, h, y, memory, noise):
        def slopes(t, y, memory):
            seen = motion.rate(t, y, memory)
            value, slope, drift = local(diffusivity, t, y[: noise.size])
            # Of the drift grad K, Stratonovich's calculus brings one half by itself.
            move = (slope / 2 + drift) * jnp.abs(h) + _spread(value, h) * noise
            return seen, move

        seen, move = slopes(t, y, memory)
        guess = _after(diffusivity, y, h, seen.value, move)
        guess = jnp.where(jnp.isfinite(guess), guess, y)
        later, move_then = slopes(t + h, guess, seen.memory)
        mean = (seen.value + later.value) / 2, (move + move_then) / 2
        return Trial(_after(diffusivity, y, h, *mean), later.memory)
