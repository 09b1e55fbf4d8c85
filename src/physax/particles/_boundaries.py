"""What happens to particles at walls: the protocol that walls share."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ._diffusivity import by_axis
from ._motions import AbstractMotion
from ._sphere import sphere_of, unfolded, unit_lengths
from ._state import Particles, code
from ._status import ParticleStatus


class Passage(NamedTuple):
    """The step in which a particle may meet a wall.

    Attributes:
        t: The time at its beginning, in seconds.
        h: Its length.
        motion: The motion of the particle.
        face: Number of the first face of the wall that is asked.
        until: The time at which the step of all particles ends, as it is recorded.
        diffusivity: As `as_diffusivity` returns it, `None` where nothing diffuses.
    """

    t: Float[Array, ""]
    h: Float[Array, ""]
    motion: AbstractMotion
    face: int
    until: Float[Array, ""]
    diffusivity: Any = None

    def seen(
        self, distance: Callable[[Float[Array, " ndim"]], Float[Array, ""]]
    ) -> Callable[[Float[Array, " ndim"]], Float[Array, ""]]:
        """Returns a function of places as the particle meets it along its way.

        On a sphere the way goes on beyond a pole, to latitudes above 90 degrees or
        below -90; the function is asked at the same place with a latitude within them.

        Args:
            distance: The function; periodic in longitude, where the motion is on a
                sphere, and at a pole one number.
        """
        if sphere_of(self.motion) is None:
            return distance
        return lambda x: distance(unfolded(x)[0])

    def recoil(
        self, place: Float[Array, " ndim"], gradient: Float[Array, " ndim"]
    ) -> Float[Array, " ndim"]:
        r"""Returns how far and where a particle moves off a wall per unit of distance.

        Along the normal, which on a sphere is not that of degrees. Particles that
        diffuse by another $K$ along each axis move along $K n$: only so no more of
        them drift along a wall one way than the other. Reference: Bossy, Gobet and
        Talay, *A symmetrized Euler scheme for an efficient approximation of reflected
        diffusions*, Journal of Applied Probability 41, 877 (2004).

        Args:
            place: A place on the wall.
            gradient: That of the signed distance there.
        """
        sphere, away = sphere_of(self.motion), gradient
        if sphere is not None:
            away = gradient / unit_lengths(sphere, place) ** 2
        # What has a velocity of its own is thrown back by the wall, not by the noise.
        if self.diffusivity is not None and not self.motion.second_order:
            spread = by_axis(self.diffusivity, self.t, place)
            if spread is not None:
                faster = spread * away
                away = jnp.where(jnp.sum(gradient * faster) > 0, faster, away)
        share = jnp.sum(gradient * away)
        return away / jnp.where(share > 0, share, 1)


class Turn(NamedTuple):
    """Where a way first meets a wall, and what becomes of it.

    Attributes:
        found: Whether it does.
        part: The part of the way before, from 0 to 1.
        place: The place from which the particle goes on.
        particle: The particle as it then is at the end of the step, if it meets nothing
            else; or as it ended.
        kick: What the forces add to its velocity behind the turn, if it has one of its
            own. `None` where the wall takes nothing of it.
    """

    found: Bool[Array, ""]
    part: Float[Array, ""]
    place: Float[Array, " ndim"]
    particle: Particles
    kick: Float[Array, " ndim"] | None = None


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
        """Answers a step of one particle that has no other wall.

        Args:
            before: The particle before the step.
            after: The particle after it.
            passage: The step.

        Returns:
            The particle after the step and this wall.
        """

    @abstractmethod
    def turn(self, before: Particles, after: Particles, passage: Passage) -> Turn:
        """Looks for the first place where a way meets the wall, one of several.

        Args:
            before: The particle where its way begins.
            after: The particle at the end of it.
            passage: What is left of the step.
        """

    @abstractmethod
    def settle(self, particle: Particles, passage: Passage) -> Particles:
        """Puts a particle that rounding brought into the wall beside it.

        Args:
            particle: The particle after the step.
            passage: The step.
        """

    @abstractmethod
    def check(
        self, positions: Float[Array, "particles ndim"]
    ) -> Float[Array, "particles ndim"]:
        """Raises if no particle may begin at a position.

        Args:
            positions: Seeds.

        Returns:
            The seeds, NaN where it turns out under `jit` that they are refused.
        """


def end(
    before: Particles,
    after: Particles,
    passage: Passage,
    *,
    part: Float[Array, ""],
    position: Float[Array, " ndim"],
    status: ParticleStatus | Int[Array, ""],
    face: int | Int[Array, ""] = 0,
) -> Particles:
    """Returns a particle that ends on its way, with what it has there.

    Its velocity, if it has one of its own, and its variables are taken to change evenly
    in a step, so that those at the end have an error of second order.

    Args:
        before: The particle where its way begins.
        after: The particle at the end of it, if it meets nothing.
        passage: The step, or what is left of it.
        part: The part of the way before it ends, from 0 to 1, where it meets nothing,
            too: derivatives are NaN if it is not finite there.
        position: Where it ends.
        status: Its last status.
        face: The face where it ends, counted from the first of the wall that is asked.
    """
    status = code(status) if isinstance(status, ParticleStatus) else status
    ndim = position.size
    carried = (before.y + part * (after.y - before.y))[ndim:]
    return eqx.tree_at(
        lambda p: (p.y, p.status, p.ended, p.face),
        after,
        (
            after.y.at[:ndim].set(position).at[ndim:].set(carried),
            status,
            (passage.t + part * passage.h).astype(after.ended.dtype),
            jnp.asarray(passage.face + face, jnp.int32),
        ),
    )
