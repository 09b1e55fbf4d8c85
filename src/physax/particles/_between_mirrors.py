"""Bounces within a step between mirrors that face each other, axis by axis."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, ArrayLike, Float

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
        impulse: What the first bounce adds to the velocity, as from `thrown_back`.
        turns: What becomes of each unit of velocity at each bounce: 0 of a particle
            that slides from there on, 1 where there is none.
    """

    legs: Leg
    parts: Float[Array, "ndim legs+1"]
    impulse: Float[Array, " ndim"] | None
    turns: Float[Array, "ndim bounces"]

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
    leg: Leg, walls: Float[Array, "ndim 2"], kept: Float[Array, "ndim 2"]
) -> Bounced:
    """Follows a way between mirrors, axis by axis.

    Args:
        leg: The way of the step.
        walls: Where the mirrors of each axis are, infinite where there is none.
        kept: The fraction of the normal velocity that each keeps, as `thrown_back` has
            it.
    """

    def times(sign, bend):
        return None if bend is None else sign * bend

    def one(leg, walls, kept):
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
            share = jnp.where(below, kept[0], kept[1])
            after = done + (1 - done) * hit.part
            further, impulse, slides = thrown_back(leg, hit, share)
            turn = jnp.where(found, jnp.where(slides, 0, -share), 1)
            return (further, after), (way, impulse, turn)

        last, out = lax.scan(bounce, (leg, jnp.zeros_like(low)), length=_BOUNCES)
        ways, impulses, turns = out
        legs, parts = jax.tree.map(lambda x, y: jnp.append(x, y), ways, last)
        impulse = None if impulses is None else impulses[0]
        return Bounced(legs, jnp.append(parts, 1), impulse, turns)

    leg = leg._replace(time=jnp.broadcast_to(leg.time, leg.place.shape))
    return jax.vmap(one)(leg, walls, kept)


def changed_between_mirrors(
    leg: Leg,
    bounced: Bounced,
    until: ArrayLike,
    particle: Particles,
    passage: Passage,
) -> tuple[Float[Array, " ndim"], Float[Array, " ndim"]]:
    """Returns what forces add to place and velocity because bounces have changed it.

    Counts the first bounce along each axis, in their order.

    Args:
        leg: The way of the step.
        bounced: The way between mirrors.
        until: The part of the step after which they are asked for.
        particle: The particle.
        passage: The step.
    """
    assert bounced.impulse is not None
    bounces, turns = bounced.parts[:, 1:-1], bounced.turns
    turns = jnp.where(bounces <= until, turns, 1)
    firsts, ends = bounces[:, 0], jnp.minimum(bounces[:, 1], until)
    number, part = jnp.arange(firsts.size), jnp.min(firsts)
    # The order in time. To sort so few would take longer than all the rest.
    earlier = (firsts < firsts[:, None]) | (
        (firsts == firsts[:, None]) & (number < number[:, None])
    )
    rank = jnp.sum(earlier, axis=1)
    # All at the first hit: the rest of the step is short enough for the difference.
    place = place_at(leg.place, leg.move, leg.bend, part)
    hit = Hit(part < 1, part, place, 0 * place, 0 * place)
    impulses = jnp.where(rank <= number[:, None], bounced.impulse, 0)
    forces = changed_forces(leg, hit, particle, passage, impulses)

    shift = gain = jnp.zeros_like(place)
    for count, force in enumerate(forces):
        here = rank == count
        start = jnp.sum(jnp.where(here, firsts, 0))
        stop = jnp.min(jnp.where(rank > count, firsts, 1))
        turn = jnp.where(here, turns[:, 0], 1)
        span = jnp.minimum(stop, ends) - jnp.minimum(start, ends)
        shift, gain = turn * shift, turn * gain
        shift = shift + span * leg.time * (gain + span / 2 * force)
        gain = gain + span * force
    # The second bounce along an axis takes back the change there. Who slides along a
    # face goes on to do so.
    shift = shift + (until - ends) * leg.time * gain
    later = jnp.where(turns[:, 0] == 0, 0, jnp.prod(turns[:, 1:], axis=1))
    return later * shift, later * gain
