"""What became of a particle: codes that arrays can hold."""

import enum


class ParticleStatus(enum.IntEnum):
    """The fate of one particle. `ALIVE` and `WAITING` are not final.

    The members are integers, so that tracks hold them as an array.
    """

    ALIVE = 0
    WAITING = 1
    ABSORBED = 2
    EXITED = 3
    STUCK = 4
    LEFT_DATA = 5
    LEFT_TIME = 6
    NOT_FINITE = 7

    @property
    def sentence(self) -> str:
        """Says what the status means."""
        return _SENTENCES[self]


_SENTENCES = {
    ParticleStatus.ALIVE: "The particle moves on.",
    ParticleStatus.WAITING: "The particle has not been released yet.",
    ParticleStatus.ABSORBED: "The particle was absorbed by a wall or an obstacle.",
    ParticleStatus.EXITED: "The particle left through an outlet.",
    ParticleStatus.STUCK: "The particle sticks to a wall, an obstacle or the coast.",
    ParticleStatus.LEFT_DATA: "The particle came to a place without data.",
    ParticleStatus.LEFT_TIME: "The particle came to a time without data.",
    ParticleStatus.NOT_FINITE: "The velocity or the position is not finite.",
}
