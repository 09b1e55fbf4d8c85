"""What is known of each particle from step to step."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree, UInt32

from ._status import ParticleStatus


class Particles(eqx.Module):
    """The state of particles; of one particle where a function is written for one.

    Attributes:
        y: What is integrated: the position, then the particle's own velocity, if its
            motion has one, then the variables.
        memory: What the fields remember of it.
        status: `ParticleStatus` codes.
        ended: When it ended, NaN before that.
        since: When it was released or last came in.
        face: The boundary where it ended or last came in, -1 for none.
        entries: How often it came in again.
        number: Its number among all particles, which names its random numbers.
        stream: Where its sequences of random numbers for inlets begin, one for each
            axis; `None` without random inlets.
    """

    y: Float[Array, "*particles width"]
    memory: PyTree
    status: Int[Array, "*particles"]
    ended: Float[Array, "*particles"]
    since: Float[Array, "*particles"]
    face: Int[Array, "*particles"]
    entries: Int[Array, "*particles"]
    number: Int[Array, "*particles"]
    stream: UInt32[Array, "*particles ndim"] | None

    def draw(self) -> Float[Array, "*particles ndim"]:
        """Returns random numbers from [0, 1) that belong to this entry of this one.

        Reference: Steele, Lea and Flood, *Fast splittable pseudorandom number
        generators*, OOPSLA (2014), in 32 bits with the mixing function of MurmurHash3.
        """
        assert self.stream is not None
        # JAX's own generator, asked in every step, takes as long as the step.
        count = self.entries.astype(jnp.uint32)[..., None]
        bits = self.stream + count * jnp.uint32(0x9E3779B9)
        bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
        bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
        bits = bits ^ (bits >> 16)
        return (bits >> 8).astype(self.y.dtype) * 2.0**-24


def code(status: ParticleStatus) -> Int[Array, ""]:
    """Returns a status as an array."""
    return jnp.asarray(int(status), jnp.int32)


def bounded(x: Array, low: Any, high: Any) -> Array:
    """Returns `x` between two bounds; on a bound its derivative is 1.

    That of `jnp.clip` is one half there, and seeds often lie on walls and nodes.

    Args:
        x: Numbers.
        low: The least.
        high: The largest.
    """
    return jnp.where(x < low, low, jnp.where(x > high, high, x))


def select(condition: Array, yes: Any, no: Any) -> Any:
    """Selects states particle by particle.

    Args:
        condition: For each particle, whether to take the first.
        yes: States.
        no: States.
    """

    def pick(a, b):
        if a is b:
            return a
        more = (1,) * (jnp.ndim(a) - jnp.ndim(condition))
        return jnp.where(condition.reshape(condition.shape + more), a, b)

    return jax.tree.map(pick, yes, no)
