"""Several walls: a particle meets them in the order in which they are on its way."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from ._boundaries import AbstractBoundary, Passage
from ._state import Particles, code, select
from ._status import ParticleStatus
from ._variables import coordinates


# How many walls a particle may meet in one step.
_TURNS = 8


class _Way(NamedTuple):
    """What is left of a step.

    Attributes:
        place: Where the particle is.
        particle: The particle at the end of the straight way from there.
        t: The time, in seconds.
        h: How long the rest of the step takes.
        open: Whether walls must be asked.
        kick: What the forces add to the velocity in what is left of the step, `None`
            for particles that have none of their own.
        gain: What the rest of the step adds to the variables.
    """

    place: Float[Array, "*particles ndim"]
    particle: Particles
    t: Float[Array, "*particles"]
    h: Float[Array, "*particles"]
    open: Bool[Array, "*particles"]
    kick: Float[Array, "*particles ndim"] | None
    gain: Float[Array, "*particles variables"]


def meet_several(
    walls: Sequence[AbstractBoundary],
    before: Particles,
    after: Particles,
    passage: Passage,
) -> Particles:
    """Answers a step of all particles.

    Args:
        walls: The walls.
        before: The particles before the step.
        after: The particles after it.
        passage: The step, whose time and length may be those of each particle.

    Returns:
        The particles after the step and all walls.
    """
    (count, width), motion = after.y.shape, passage.motion
    ndim = coordinates(motion, width)
    carried = ndim * (1 + motion.second_order)
    firsts = [sum(wall.faces() for wall in walls[:n]) for n in range(len(walls))]
    t, h = (
        jnp.broadcast_to(x, (count,)).astype(after.y.dtype)
        for x in (passage.t, passage.h)
    )

    def ask(way: _Way) -> _Way:
        y = _moved(way.particle, way.place)
        if way.kick is not None:
            y = y.at[ndim : 2 * ndim].add(-way.kick)
        y = y.at[carried:].add(-way.gain)
        at = eqx.tree_at(lambda p: p.y, way.particle, y)
        best, found = jnp.asarray(jnp.inf, way.h.dtype), jnp.asarray(False)
        place, particle, kick = way.particle.y[:ndim], way.particle, way.kick
        for wall, face in zip(walls, firsts, strict=True):
            own = passage._replace(t=way.t, h=way.h, face=face)
            turn = wall.turn(at, way.particle, own)
            first = way.open & turn.found & (turn.part < best)
            best, found = jnp.where(first, turn.part, best), found | first
            place = jnp.where(first, turn.place, place)
            particle = select(first, turn.particle, particle)
            if way.kick is not None and kick is not None:
                left = (1 - turn.part) * way.kick if turn.kick is None else turn.kick
                kick = jnp.where(first, left, kick)
        part = jnp.where(found, best, 1)
        # Who came in again waits on the face for the end of the step.
        same = particle.entries == way.particle.entries
        going = found & same & (particle.status == code(ParticleStatus.ALIVE))
        later, rest = way.t + part * way.h, (1 - part) * way.h
        # Who met nothing has come to the end of the way.
        place = jnp.where(way.open, place, way.place)
        return _Way(place, particle, later, rest, going, kick, (1 - part) * way.gain)

    def on(way, _):
        # Few particles meet a wall, and hardly any a second one, in the same step.
        go = jnp.any(way.open)
        return lax.cond(go, jax.vmap(ask), lambda way: way, way), None

    alive = after.status == code(ParticleStatus.ALIVE)
    kick = None
    if motion.second_order:
        kick = (after.y - before.y)[:, ndim : 2 * ndim]
    gain = (after.y - before.y)[:, carried:]
    begin = _Way(before.y[:, :ndim], after, t, h, alive, kick, gain)
    way = lax.scan(on, begin, length=_TURNS)[0]

    def settled(way: _Way, t, h) -> Particles:
        y = jnp.where(way.open, _moved(way.particle, way.place), way.particle.y)
        particle = eqx.tree_at(lambda p: p.y, way.particle, y)
        for wall, face in zip(walls, firsts, strict=True):
            own = passage._replace(t=t, h=h, face=face)
            beside = wall.settle(particle, own)
            alive = particle.status == code(ParticleStatus.ALIVE)
            particle = select(alive, beside, particle)
        return particle

    return jax.vmap(settled)(way, t, h)


def _moved(particle: Particles, place: Array) -> Array:
    """Returns what is integrated, at another place."""
    return particle.y.at[: place.size].set(place)
