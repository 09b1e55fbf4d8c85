"""The tracks of particles."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._checks import instance
from ._status import ParticleStatus


class Tracks(eqx.Module):
    """Positions of particles at the recorded times, and what became of each particle.

    A particle that has ended stays where it ended: the later rows repeat that place.

    Attributes:
        times: The recorded times, in seconds.
        positions: Where the particles were then, in the unit of the seeds.
        velocities: The particles' own velocities, of motions that have one (inertial
            particles); else `None`. After the end that at the hit.
        variables: What was integrated along the tracks, by name.
        status: `ParticleStatus` codes at the last time.
        ended: When each particle ended, NaN before that: the time of the hit for those
            that met a wall.
        face: The boundary where it ended or last came in again, -1 for none: faces of a
            box are numbered low x, high x, low y, ...; obstacles follow.
        since: When the particle was released or last came in again; its age is the time
            since then.
        entries: How often it came in again through an inlet.
        wraps: The low and the high end of the axes along which a box was periodic,
            infinite along others; `None` where positions do not jump.
    """

    times: Float[Array, " times"]
    positions: Float[Array, "times particles ndim"]
    velocities: Float[Array, "times particles ndim"] | None
    variables: dict[str, Float[Array, "times particles"]]
    status: Int[Array, " particles"]
    ended: Float[Array, " particles"]
    face: Int[Array, " particles"]
    since: Float[Array, " particles"]
    entries: Int[Array, " particles"]
    wraps: Float[Array, "2 ndim"] | None = None

    @property
    def alive(self) -> Bool[Array, " particles"]:
        """Which particles still move at the last time."""
        return self.status == ParticleStatus.ALIVE

    def waiting(self) -> Bool[Array, "times particles"]:
        """Which particles had not been released at each time."""
        sign = self._sign()
        return (self.entries == 0) & (sign * self.times[:, None] < sign * self.since)

    def moving(self) -> Bool[Array, "times particles"]:
        """Which particles had been released and had not ended at each time."""
        sign = self._sign()
        past = sign * self.times[:, None] > sign * self.ended
        return ~self.waiting() & ~past

    def _sign(self) -> Int[Array, ""]:
        return jnp.where(self.times[-1] >= self.times[0], 1, -1)

    def counts(self) -> dict[str, int]:
        """Returns how many particles have each status, by its name."""
        return {
            status.name.lower(): int(jnp.sum(self.status == status))
            for status in ParticleStatus
        }


def check_tracks(tracks: Any) -> None:
    """Raises unless an argument is the tracks of particles.

    Args:
        tracks: What was given.

    Raises:
        ArgumentError: If it is something else, such as the result of `run`.
    """
    instance(tracks, "tracks", Tracks, "From a result of `run`, pass `result.tracks`.")
