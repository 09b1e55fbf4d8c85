"""A wall of a user that tests share."""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from physax.particles import AbstractBoundary, ParticleStatus, Turn, end


class EndingWall(AbstractBoundary):
    """A wall as of the guide, that ends particles where a function says so.

    Attributes:
        reached: Takes a particle before and after a step, and the step, to whether it
            ends in it, and at which part of the way.
        ndim: Coordinates of a position.
    """

    reached: Callable
    ndim: int = eqx.field(static=True)

    def faces(self):
        return 1

    def is_random(self):
        return False

    def turn(self, before, after, passage):
        found, part = self.reached(before, after, passage)
        start, stop = before.y[: self.ndim], after.y[: self.ndim]
        place = start + part * (stop - start)
        how = {"part": part, "position": place, "status": ParticleStatus.ABSORBED}
        return Turn(found, part, place, end(before, after, passage, **how))

    def meet(self, before, after, passage):
        turn = self.turn(before, after, passage)
        return jax.tree.map(partial(jnp.where, turn.found), turn.particle, after)

    def settle(self, particle, passage):
        return particle

    def check(self, positions):
        return positions
