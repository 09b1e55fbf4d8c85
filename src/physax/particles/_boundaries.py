"""What happens to particles at walls: the protocol that walls share."""

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ._motions import AbstractMotion
from ._state import Particles, code
from ._status import ParticleStatus


class Passage(NamedTuple):
    """The step in which a particle may meet a wall.

    Attributes:
        t: The time at its beginning, in seconds.
        h: Its length.
        motion: The motion of the particle.
        face: Number of the first face of the wall that is asked.
    """

    t: Float[Array, ""]
    h: Float[Array, ""]
    motion: AbstractMotion
    face: int


class AbstractBoundary(eqx.Module):
    """Something that particles cannot simply cross."""

    @abstractmethod
    def faces(self) -> int:
        """Returns how many faces it has, which are numbered one after the other."""

    @abstractmethod
    def is_random(self) -> bool:
        """Whether it needs a key."""

    @abstractmethod
    def meet(self, before: Particles, after: Particles, passage: Passage) -> Particles:
        """Answers a step of one particle.

        Args:
            before: The particle before the step.
            after: The particle after it, as walls asked earlier left it.
            passage: The step.

        Returns:
            The particle after the step and this wall.
        """

    @abstractmethod
    def check(self, positions: Float[Array, "particles ndim"]) -> None:
        """Refuses positions where no particle may begin.

        Args:
            positions: Seeds whose values are known.
        """


def end(
    particle: Particles,
    position: Float[Array, " ndim"],
    status: ParticleStatus | Int[Array, ""],
    time: Float[Array, ""],
    face: int | Int[Array, ""],
) -> Particles:
    """Returns a particle that ends at a place and a time.

    Args:
        particle: The particle.
        position: Where it ends.
        status: Its last status.
        time: When it ends, in seconds.
        face: The face where it ends.
    """
    status = code(status) if isinstance(status, ParticleStatus) else status
    return eqx.tree_at(
        lambda p: (p.y, p.status, p.ended, p.face),
        particle,
        (
            particle.y.at[: position.size].set(position),
            status,
            time.astype(particle.ended.dtype),
            jnp.asarray(face, jnp.int32),
        ),
    )
