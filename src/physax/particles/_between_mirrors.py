"""Bounces within a step between mirrors that face each other, axis by axis."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ._bounces import (
    Hit,
    Leg,
    changed_forces,
    dips,
    part_before,
    place_at,
    thrown_back,
)
from ._boundaries import Passage
from ._state import Particles


# How many bounces of a particle with a velocity of its own are followed along each axis
# of a box in one step.
_BOUNCES = 4


class Bounced(NamedTuple):
    """A way between mirrors, along each axis.

    Attributes:
        legs: What is left of the step at its beginning and behind each bounce that is
            followed, stacked.
        parts: The part of the step before each, and 1.
    """

    legs: Leg
    parts: Float[Array, "ndim legs+1"]

    def at(
        self, part: Float[Array, ""]
    ) -> tuple[Float[Array, " ndim"], Float[Array, " ndim"] | None]:
        """Returns place and velocity after a part of the step.

        Args:
            part: The part.
        """

        def one(legs, parts):
            number = jnp.sum(parts[1:-1] <= part)
            leg, done = jax.tree.map(lambda x: x[number], (legs, parts[:-1]))
            left = 1 - done
            own = (part - done) / jnp.where(left > 0, left, 1)
            place = place_at(leg.place, leg.move, leg.bend, own)
            return place, leg.velocity_after(own)

        return jax.vmap(one)(self.legs, self.parts)


def between_mirrors(
    leg: Leg, walls: Float[Array, "ndim 2"], restitution: Float[Array, "ndim 2"]
) -> Bounced:
    """Follows a way between mirrors, axis by axis.

    Args:
        leg: The way of the step.
        walls: Where the mirrors of each axis are, infinite where there is none.
        restitution: The fraction of the normal velocity that each keeps.
    """

    def times(sign, bend):
        return None if bend is None else sign * bend

    def one(leg, walls, restitution):
        low, high = walls

        def bounce(way, _):
            leg, done = way
            under = dips(leg.place - low, leg.move, leg.bend)
            over = dips(high - leg.place, -leg.move, times(-1, leg.bend))
            below = under | ((leg.goal < low) & ~over)
            above = over | ((leg.goal > high) & ~under)
            found = below | above
            wall = jnp.where(below, low, jnp.where(above, high, leg.goal))
            normal = jnp.where(below, 1, jnp.where(above, -1, 0)).astype(low.dtype)
            height = (leg.place - wall) * normal
            part = part_before(height, leg.move * normal, times(normal, leg.bend))
            hit = Hit(found, jnp.where(found, part, 1), wall, normal, normal)
            kept = jnp.where(below, restitution[0], restitution[1])
            after = done + (1 - done) * hit.part
            return (thrown_back(leg, hit, kept)[0], after), way

        last, ways = lax.scan(bounce, (leg, jnp.zeros_like(low)), length=_BOUNCES)
        legs, parts = jax.tree.map(lambda x, y: jnp.append(x, y), ways, last)
        return Bounced(legs, jnp.append(parts, 1))

    leg = leg._replace(time=jnp.broadcast_to(leg.time, leg.place.shape))
    return jax.vmap(one)(leg, walls, restitution)


def changed_between_mirrors(
    leg: Leg, bounced: Bounced, particle: Particles, passage: Passage
) -> tuple[Float[Array, " ndim"], Float[Array, " ndim"]]:
    """Returns what forces add to place and velocity because bounces have changed it.

    Counts the first bounce along each axis, in their order.

    Args:
        leg: The way of the step.
        bounced: The way between mirrors.
        particle: The particle.
        passage: The step.
    """
    firsts, legs = bounced.parts[:, 1], bounced.legs
    number, part = jnp.arange(firsts.size), jnp.min(firsts)
    # The order in time. To sort so few would take longer than all the rest.
    earlier = (firsts < firsts[:, None]) | (
        (firsts == firsts[:, None]) & (number < number[:, None])
    )
    rank = jnp.sum(earlier, axis=1)
    assert leg.velocity is not None
    assert leg.kick is not None
    assert legs.velocity is not None
    assert legs.kick is not None
    behind = (legs.velocity - legs.kick)[:, 1]
    before = leg.velocity - (1 - firsts) * leg.kick
    turned = (firsts < 1) & (before != 0)
    turns = jnp.where(turned, behind / jnp.where(turned, before, 1), 1)
    # All at the first hit: the rest of the step is short enough for the difference.
    velocity = leg.velocity - (1 - part) * leg.kick
    after = rank <= number[:, None]
    velocities = jnp.where(after, turns * velocity, velocity)
    place = place_at(leg.place, leg.move, leg.bend, part)
    hit = Hit(part < 1, part, place, 0 * place, 0 * place)
    forces = changed_forces(leg, hit, velocities, particle, passage)

    place = velocity = jnp.zeros_like(place)
    for count, force in enumerate(forces):
        here = rank == count
        start = jnp.sum(jnp.where(here, firsts, 0))
        stop = jnp.min(jnp.where(rank > count, firsts, 1))
        turn, span = jnp.where(here, turns, 1), stop - start
        place, velocity = turn * place, turn * velocity
        place = place + span * leg.time * (velocity + span / 2 * force)
        velocity = velocity + span * force
    return place, velocity
