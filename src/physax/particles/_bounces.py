"""How a particle is thrown back within a step, and how forces bend its way there."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, ArrayLike, Bool, Float

from .._products import matmul
from ._boundaries import Passage
from ._state import Particles, bounded


class Hit(NamedTuple):
    """Where a way first meets a surface from outside.

    Attributes:
        found: Whether it does.
        part: The part of the way before; 1 where nothing is met.
        position: The place; the end of the way where nothing is met.
        normal: Unit normal, outward; zero where nothing is met.
        recoil: As of `Passage.recoil`, for this normal; the normal until it is asked.
    """

    found: Bool[Array, ""]
    part: Float[Array, ""]
    position: Float[Array, "*ndim"]
    normal: Float[Array, "*ndim"]
    recoil: Float[Array, "*ndim"]


class Leg(NamedTuple):
    r"""What is left of a step.

    A particle that has a velocity of its own is taken to be accelerated evenly in a
    step: its way is the parabola $x + s \Delta x - s (1 - s) h \Delta v / 2$ through
    the two ends, $0 \le s \le 1$. That of any other is straight.

    Attributes:
        place: Where it begins.
        goal: Where it ends.
        time: How long it takes, in seconds; negative backward in time.
        velocity: That at the end, `None` for a particle that has none of its own.
        kick: What the forces add to the velocity on the way, or `None`.
    """

    place: Float[Array, "*ndim"]
    goal: Float[Array, "*ndim"]
    time: Float[Array, "..."]
    velocity: Float[Array, "*ndim"] | None
    kick: Float[Array, "*ndim"] | None

    @property
    def move(self) -> Float[Array, "*ndim"]:
        """The way from its beginning to its end."""
        return self.goal - self.place

    @property
    def bend(self) -> Float[Array, "*ndim"] | None:
        """The second derivative of the way by the part of it."""
        return None if self.kick is None else self.time * self.kick

    def velocity_after(self, part: Float[Array, "..."]) -> Float[Array, "*ndim"] | None:
        """Returns the velocity after a part of the way, if it has one of its own."""
        if self.velocity is None or self.kick is None:
            return None
        return self.velocity - (1 - part) * self.kick


def leg_of(before: Particles, after: Particles, passage: Passage, ndim: int) -> Leg:
    """Returns the way of a step.

    Args:
        before: The particle before the step.
        after: The particle after it.
        passage: The step.
        ndim: How many coordinates a position has.
    """
    velocity = kick = None
    if passage.motion.second_order:
        velocity = after.y[ndim : 2 * ndim]
        kick = velocity - before.y[ndim : 2 * ndim]
    return Leg(before.y[:ndim], after.y[:ndim], passage.h, velocity, kick)


def along_axis(leg: Leg, axis: int) -> Leg:
    """Returns the way along one axis.

    Args:
        leg: The way.
        axis: The axis.
    """
    return jax.tree.map(lambda x: x[axis] if jnp.ndim(x) else x, leg)


def moved_to(
    particle: Particles,
    place: Float[Array, " ndim"],
    velocity: Float[Array, " ndim"] | None,
) -> Particles:
    """Returns a particle at another place, with another velocity if it has one.

    Args:
        particle: The particle.
        place: The place.
        velocity: The velocity, `None` for a particle that has none of its own.
    """
    ndim = place.size
    y = particle.y.at[:ndim].set(place)
    if velocity is not None:
        y = y.at[ndim : 2 * ndim].set(velocity)
    return eqx.tree_at(lambda p: p.y, particle, y)


def place_at(
    place: Float[Array, "*ndim"],
    move: Float[Array, "*ndim"],
    bend: Float[Array, "*ndim"] | None,
    part: Float[Array, ""],
) -> Float[Array, "*ndim"]:
    """Returns where a way is after a part of it.

    Args:
        place: Where it begins.
        move: The way from there to its end.
        bend: Its second derivative by the part, `None` where it is straight.
        part: The part.
    """
    straight = place + part * move
    return straight if bend is None else straight - part * (1 - part) / 2 * bend


def part_before(
    height: Float[Array, "..."],
    move: Float[Array, "..."],
    bend: Float[Array, "..."] | None,
) -> Float[Array, "..."]:
    """Returns the part of a way before it meets a plane, for one that ends behind it.

    Args:
        height: How far before the plane the way begins, at least 0.
        move: The change of the height along the way.
        bend: Its second derivative by the part, `None` where the way is straight.
    """
    # Dividing by what has no square would spoil the gradient of who hardly moves.
    least = jnp.finfo(move.dtype).tiny ** 0.5
    if bend is None:
        return bounded(-height / jnp.where(jnp.abs(move) > least, move, 1), 0, 1)
    slope = move - bend / 2
    square = slope**2 - 2 * bend * height
    root = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
    # Of the two forms of the root the one that is not a difference of equal numbers.
    rises = slope > 0
    over = jnp.where(rises, slope + root, 2 * height)
    under = jnp.where(rises, -bend, root - slope)
    moves = under > least
    return bounded(jnp.where(moves, over / jnp.where(moves, under, 1), 0), 0, 1)


def dips(
    height: Float[Array, "..."],
    move: Float[Array, "..."],
    bend: Float[Array, "..."] | None,
) -> Bool[Array, "..."]:
    """Whether a way crosses a plane and then comes back; as for `part_before`."""
    if bend is None:
        return jnp.zeros(jnp.shape(move), bool)
    slope = move - bend / 2
    return (slope < 0) & (bend > -slope) & (slope**2 > 2 * bend * height)


def changed_forces(
    leg: Leg,
    hit: Hit,
    particle: Particles,
    passage: Passage,
    impulses: Float[Array, "some ndim"],
) -> Float[Array, "some ndim"]:
    """Returns what forces would add in a whole step if a hit changed the velocity.

    It is zero for forces of place and time alone, and where nothing is hit.

    Args:
        leg: The way that is hit upon, of a particle that has a velocity of its own.
        hit: The hit.
        particle: The particle.
        passage: The step, or what is left of it.
        impulses: Changes of the velocity, as from `thrown_back`.
    """
    assert leg.velocity is not None
    assert leg.kick is not None
    ndim, left, begin = leg.place.size, 1 - hit.part, leg.velocity - leg.kick
    # That in the middle of what is left: who slides has none across before the hit.
    own, middle = slice(ndim, 2 * ndim), leg.velocity - left / 2 * leg.kick
    # Without a hit as it began: at the end of its way a force may have no value.
    y = particle.y.at[:ndim].set(jnp.where(hit.found, hit.position, leg.place))
    t = passage.t + passage.h - left * leg.time

    def push(velocity):
        there = y.at[own].set(jnp.where(hit.found, velocity, begin))
        return passage.motion.rate(t, there, particle.memory).value[own]

    # In a loop: XLA would compute all of it again for each use of the result.
    velocities = jnp.concatenate([middle[None], middle + impulses])
    pushes = lax.map(push, velocities)
    return leg.time * (pushes[1:] - pushes[0])


def thrown_back(
    leg: Leg,
    hit: Hit,
    kept: ArrayLike,
    forces: Callable[[Float[Array, "1 ndim"]], Float[Array, "1 ndim"]] | None = None,
) -> tuple[Leg, Float[Array, "*ndim"] | None, Bool[Array, ""]]:
    r"""Returns what is left of a step behind a hit, the impulse, and whether it slides.

    A velocity of its own is reflected as it is at the hit, and the forces of the rest
    of the step act as they did, but for what the new velocity changes in them: the
    impulse $J = -(1 + r) (v \cdot n) n$ changes the velocity at the end by $J$, and
    the place by $J$ times the time left. A particle that would be back at the wall
    within that time slides along it: $J$ then takes the normal velocity that it would
    have on average in that time.

    Args:
        leg: The way that is hit upon.
        hit: The hit.
        kept: The fraction of the normal velocity that is kept, 0 for a wall along which
            particles slide, and which they may leave.
        forces: Returns what they would add in a whole step because of an impulse, as
            `changed_forces`; `None` where they act as they did.
    """
    left, normal, recoil = 1 - hit.part, hit.normal, hit.recoil
    holds = jnp.asarray(kept == 0)
    if leg.velocity is None or leg.kick is None:
        rest = left * leg.move
        rest = rest - jnp.where(holds, 1, 2) * _inward(rest, normal) * recoil
        further = leg._replace(place=hit.position, goal=hit.position + rest)
        return further, None, hit.found & holds
    bend, kick, velocity = leg.time * leg.kick, left * leg.kick, leg.velocity
    loss, ahead = jnp.where(holds, 0, 1 + kept), jnp.sign(leg.time)
    speed = left * (leg.move + (hit.part - 0.5) * bend)
    rest = left * (leg.move + hit.part / 2 * bend)
    rest = rest - loss * _inward(speed, normal) * recoil
    slides = (hit.found & holds) | (_along(rest, normal) < 0)
    middle = ahead * _inward(ahead * (velocity - kick / 2), normal)
    # Also one that leads off the wall, which diffusion may bring a particle to: only so
    # the mirror image of an even density is even.
    across = jnp.where(slides, middle, loss * _along(velocity - kick, normal))
    impulse = -across * recoil
    if forces is not None:
        more = left * forces(impulse[None])[0]
        rest = rest + left * leg.time / 2 * more
        velocity, kick = velocity + more, kick + more
        slides = slides | (_along(rest, normal) < 0)

    def along(x, outward: ArrayLike):
        # Along an axis without a remainder: who is by a digit on the way into the wall
        # would meet it again, and again, until the turns of the step are used up.
        flat = jnp.where(jnp.abs(normal) == 1, 0, x - _along(x, normal) * recoil)
        return jnp.where(slides, flat + outward * recoil, x)

    out = jnp.maximum(_along(rest, normal), 0)
    off = ahead * jnp.maximum(ahead * _along(velocity, normal), 0)
    further = Leg(
        hit.position,
        hit.position + along(rest, out),
        left * leg.time,
        along(velocity + jnp.where(slides, 0, impulse), off),
        # Else who leaves would begin with the speed that it has lost at the wall.
        along(kick, 0),
    )
    return further, impulse, slides


def _along(x: Float[Array, "*ndim"], normal: Float[Array, "*ndim"]) -> Array:
    return matmul(x, normal) if x.ndim else x * normal


def _inward(x: Float[Array, "*ndim"], normal: Float[Array, "*ndim"]) -> Array:
    """Returns how far a vector leads into a wall, as a negative number."""
    return jnp.minimum(_along(x, normal), 0)
