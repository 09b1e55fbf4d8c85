"""Obstacles to particles, given by the signed distance to their surface."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .._checks import ArgumentError, whole
from .._written_for_jax import check_takes
from ._bounces import (
    Hit,
    Leg,
    changed_forces,
    leg_of,
    moved_to,
    place_at,
    thrown_back,
)
from ._boundaries import AbstractBoundary, Passage, Turn, end
from ._faces import Absorb, AbstractFace, Hold, Outlet, Reflect, Stick
from ._state import Particles, select
from ._variables import coordinates


_RULES = (Reflect, Hold, Absorb, Stick, Outlet)

# Fraction of the way by which a search goes on at least where it leaves a surface, and
# at most where it comes near to one.
_PART = 1 / 64

# Far more than any search needs: each ends by itself.
_SEARCHES = 256
_HALVINGS = 64

# How often a particle that slides is put back onto a curved surface.
_RETURNS = 2

# Cosine of the angle between normals at both ends of a way above which a particle that
# rests on a surface follows it: beyond, the next side of a corner is hit.
_SMOOTH = 0.9


class Obstacle(AbstractBoundary):
    r"""A body that particles cannot enter, or a room that they cannot leave.

    Place and time of a hit are found on the way of a step, which is straight, or the
    parabola of an even acceleration for particles that have a velocity of their own:
    by steps as long as the distance, so that bodies thinner than the way are met too,
    and then by halving.
    A step of Newton's method through the distance itself makes them differentiable with
    respect to where the particle was and to the parameters of the body:
    $\partial s = -\partial \phi / (\nabla \phi \cdot \Delta x)$.

    Gaps and edges narrower than 1/64 of the way of one step may be missed. A step
    leaves the body at most `bounces` times; what is then left of the way of particles
    that bounce is lost.

    Bodies of one kind are faster as one obstacle than as several.

    Attributes:
        distance: Callable `phi(x)` of one position: the signed distance to the surface,
            negative inside the body. It may be less than the distance, not more; on the
            surface it must have a gradient that does not vanish. Elsewhere it may have
            none, as `norm(x) - r` at the centre. A Module with parameters, or a
            function; unions are `minimum`, rooms have the sign turned. Where the
            velocity is `OnSphere`, in degrees, and asked at latitudes within 90
            degrees: it must be the same after 360 degrees of longitude, and one number
            at a pole, as the degrees of arc to a place are.
        rule: `Reflect(...)` mirrors what is left of the way at the tangent plane, or
            turns the normal velocity around where it hits. With `Hold()` the rest of
            the way goes on along the surface, without its normal part. `Absorb()`,
            `Stick()` and `Outlet()` end the particle where it hits.
        bounces: How often a particle may hit in one step, at least 1. Each is looked
            for in every step, which takes half as long as a step of `RK4()` in a field
            of data, and ten times as long where velocity or forces are formulas.

    Raises:
        ArgumentError: If an attribute cannot be used.
    """

    distance: Any
    rule: AbstractFace
    bounces: int = eqx.field(
        static=True, default=4, converter=lambda x: whole(x, "bounces")
    )

    def __check_init__(self):
        if not callable(self.distance) or isinstance(self.distance, type):
            raise ArgumentError(
                "`distance` must be a function of a position, `phi(x)`, but is "
                f"{self.distance!r}."
            )
        check_takes(self.distance, "distance", "phi(x)")
        if not isinstance(self.rule, _RULES):
            names = ", ".join(f"{kind.__name__}()" for kind in _RULES)
            raise ArgumentError(
                f"`rule` of an obstacle must be one of {names}, but is {self.rule!r}."
            )

    def faces(self):
        return 1

    def is_random(self):
        return False

    def check(self, positions):
        depth = jax.vmap(self._distance())(positions)
        if isinstance(depth, jax.core.Tracer):
            return positions
        host, places = np.asarray(depth), np.asarray(positions)
        slack = 16 * np.finfo(host.dtype).eps * (1 + np.abs(places).max(axis=1))
        inside = np.flatnonzero(~(host >= -slack))
        if inside.size:
            first = int(inside[0])
            raise ArgumentError(
                f"`seeds` must lie outside of the obstacle, but {inside.size} of "
                f"{len(host)} do not; number {first} is at {places[first]}, where the "
                f"distance is {host[first]:g}."
            )
        return positions

    def meet(self, before, after, passage):
        phi = passage.seen(self._distance())
        leg = leg_of(before, after, passage, coordinates(passage.motion, after.y.size))
        hit = first_hit(phi, leg.place, leg.move, leg.bend)
        if self.rule.ends is not None:
            return select(hit.found, self._end(before, after, hit, passage), after)
        further = self._thrown_back(phi, hit, leg, passage, after)
        return _at_end(after, self._deflected(phi, further, passage, self.bounces - 1))

    def turn(self, before, after, passage):
        phi = passage.seen(self._distance())
        leg = leg_of(before, after, passage, coordinates(passage.motion, after.y.size))
        hit = first_hit(phi, leg.place, leg.move, leg.bend)
        if self.rule.ends is not None:
            met = self._end(before, after, hit, passage)
            return Turn(hit.found, hit.part, hit.position, met)
        further = self._thrown_back(phi, hit, leg, passage, after)
        # Along a hollow surface a particle hits it all the time.
        last = (
            self._deflected(phi, further, passage, self.bounces - 1)
            if isinstance(self.rule, Hold)
            else further
        )
        met = _at_end(after, last)
        return Turn(hit.found, hit.part, hit.position, met, further.kick)

    def settle(self, particle, passage):
        if self.rule.ends is not None:
            return particle
        ndim = coordinates(passage.motion, particle.y.size)
        phi = passage.seen(self._distance())
        place = _lifted(phi, particle.y[:ndim], passage)
        return eqx.tree_at(lambda p: p.y, particle, particle.y.at[:ndim].set(place))

    def _end(self, before: Particles, after: Particles, hit: Hit, passage: Passage):
        part, position, status = hit.part, hit.position, self.rule.ends
        assert status is not None
        return end(before, after, passage, part=part, position=position, status=status)

    def _distance(self) -> Callable[[Array], Array]:
        def phi(x):
            return jnp.asarray(self.distance(x), x.dtype).reshape(())

        return phi

    def _deflected(self, phi, leg: Leg, passage: Passage, times: int) -> Leg:
        """Follows what is left of a step behind a hit from one to the next."""

        def once(leg, _):
            hit = first_hit(phi, leg.place, leg.move, leg.bend)
            return self._thrown_back(phi, hit, leg, passage), None

        leg = lax.scan(once, leg, length=times)[0]
        if isinstance(self.rule, Hold):
            return leg._replace(goal=_lifted(phi, leg.goal, passage))
        velocity = leg.velocity
        if velocity is not None and leg.kick is not None:
            # What is left behind the last bounce is dropped, with what it would add.
            velocity = velocity - leg.kick
        return leg._replace(goal=_lifted(phi, leg.place, passage), velocity=velocity)

    def _thrown_back(
        self,
        phi,
        hit: Hit,
        leg: Leg,
        passage: Passage,
        particle: Particles | None = None,
    ) -> Leg:
        """Returns the way that is left behind a hit, the first one if of a particle."""
        hit = hit._replace(recoil=passage.recoil(hit.position, hit.normal))
        kept = self.rule.restitution if isinstance(self.rule, Reflect) else 0.0
        forces = None
        if particle is not None:
            forces = partial(changed_forces, leg, hit, particle, passage)
        further, _, slides = thrown_back(leg, hit, kept, forces)
        if isinstance(self.rule, Hold) or further.velocity is None:
            return further
        # Who rests on a hollow surface follows it, but not around a corner.
        goal = further.goal
        follows = slides & (jnp.sum(hit.normal * _normal(phi, goal)) > _SMOOTH)
        return further._replace(
            goal=jnp.where(follows, _lifted(phi, goal, passage), goal)
        )


def _at_end(particle: Particles, leg: Leg) -> Particles:
    return moved_to(particle, leg.goal, leg.velocity)


def first_hit(
    phi: Callable[[Array], Array],
    start: Float[Array, " ndim"],
    move: Float[Array, " ndim"],
    bend: Float[Array, " ndim"] | None = None,
) -> Hit:
    """Finds where a way first meets the surface of a body from outside.

    Args:
        phi: The signed distance to the surface.
        start: Where the way begins.
        move: The way from there to its end.
        bend: Its second derivative by the part of it, `None` where it is straight.
    """
    near, value, least = lax.stop_gradient(_search(phi, start, move, bend))
    found = near <= 1
    near = jnp.where(found, near, 0)
    # Who meets nothing may stand where the distance has no slope.
    begin = jnp.where(found, start, start + _beside(start, value))

    def along(s):
        return phi(place_at(begin, move, bend, s))

    value, slope = jax.jvp(along, (near,), (jnp.ones_like(near),))
    # Only the value needs to be differentiated: it is zero, but for rounding, which a
    # way along the surface would blow up.
    slope = lax.stop_gradient(slope)
    size = _longest(move, bend)
    steep = slope < -(jnp.finfo(move.dtype).eps ** 0.5) * size
    downhill = jnp.where(steep, slope, -1)
    part = near - jnp.where(steep, value / downhill, 0)
    # One more step with the same slope has the derivatives of second order, and those
    # alone are taken from it.
    more = jnp.where(steep, along(part) / downhill, 0)
    part = jnp.where(found, part - (more - lax.stop_gradient(more)), 1)
    at = place_at(begin, move, bend, jnp.where(found, part, 0))
    # As seen from within the body: in a corner that is the side which is met.
    inner = lax.stop_gradient(place_at(begin, move, bend, near + 4 * least) - at)
    inner = jnp.where(found, inner, 0)
    normal = _normal(phi, at + inner)
    # A way that hardly leads into the body must not go on from within it.
    at = at - lax.stop_gradient(jnp.where(found & ~steep, value * normal, 0))
    normal = jnp.where(found, normal, 0)
    return Hit(found, part, jnp.where(found, at, start + move), normal, normal)


def _normal(phi, place: Float[Array, " ndim"]) -> Float[Array, " ndim"]:
    """Returns the unit normal at a place, outward; zero where there is none."""
    normal = jax.grad(phi)(place)
    square = jnp.sum(normal**2)
    return normal / jnp.sqrt(jnp.where(square > 0, square, 1))


class _Search(NamedTuple):
    """How far a search for a hit has come.

    Attributes:
        count: Places looked at.
        part: The part of the way.
        value: The signed distance there.
        slope: Its derivative by the part of the way.
        low: A part before, at or outside of the surface.
        outside: Whether the way has been outside.
        entered: Whether it has come into the body.
    """

    count: Int[Array, ""]
    part: Float[Array, ""]
    value: Float[Array, ""]
    slope: Float[Array, ""]
    low: Float[Array, ""]
    outside: Bool[Array, ""]
    entered: Bool[Array, ""]


def _longest(move, bend) -> Float[Array, ""]:
    """Returns how long a way would be at its greatest speed, without a derivative."""
    ways = jnp.stack([move] if bend is None else [move, bend / 2])
    return jnp.sum(jnp.sqrt(jnp.sum(lax.stop_gradient(ways) ** 2, axis=1)))


def _search(phi, start, move, bend) -> tuple[Float[Array, ""], ...]:
    """Returns at which part of the way it first meets the surface, 2 for nowhere.

    And the distance where the way begins, and the least part that is not rounding.
    """
    # Whatever `phi` depends on: a loop of unknown length has no derivative.
    phi, constants = jax.closure_convert(phi, start)
    constants = [lax.stop_gradient(x) for x in constants]
    start, move, bend = lax.stop_gradient((start, move, bend))
    size = _longest(move, bend)
    safe = jnp.where(size > 0, size, 1)
    # What is added takes a search that came onto the surface into the body.
    eps = jnp.finfo(move.dtype).eps
    least = 8 * eps * (1 + jnp.max(jnp.abs(start)) / safe)
    # A way along the surface is not in the body, nor outside of it, by rounding.
    near = least * safe

    def along(part):
        return phi(place_at(start, move, bend, part), *constants)

    def look(count, part, low, outside):
        value, slope = jax.jvp(along, (part,), (jnp.ones_like(part),))
        outside = outside | (value > near)
        entered = (value <= 0) & ((slope < -near) | outside)
        return _Search(count, part, value, slope, low, outside, entered)

    def going(search):
        return (search.part < 1) & ~search.entered & (search.count < _SEARCHES)

    def on(search):
        free = jnp.abs(search.value) / safe
        nears = search.slope < 0
        newton = jnp.abs(search.value) / jnp.where(nears, -search.slope, 1)
        newton = jnp.clip(newton, free, jnp.maximum(free, _PART))
        step = jnp.where(nears, newton, jnp.maximum(free, _PART)) + least
        part = jnp.minimum(search.part + step, 1)
        return look(search.count + 1, part, search.part, search.outside)

    zero = jnp.zeros_like(size)
    # Nothing is met by who stays, as does a particle that has made its whole way.
    begin = look(
        jnp.zeros((), jnp.int32),
        jnp.where(size > 0, zero, 1),
        zero,
        jnp.zeros((), bool),
    )
    last = lax.while_loop(going, on, begin)

    def halving(bracket):
        count, low, high = bracket
        wide = high - low > eps
        return last.entered & (size > 0) & wide & (count < _HALVINGS)

    def halve(bracket):
        count, low, high = bracket
        middle = (low + high) / 2
        within = along(middle) <= -near
        low, high = jnp.where(within, low, middle), jnp.where(within, middle, high)
        return count + 1, low, high

    bracket = (jnp.zeros((), jnp.int32), last.low, last.part)
    _, low, high = lax.while_loop(halving, halve, bracket)
    # Back from within the body: its derivatives are asked for on the surface.
    steep = last.slope < -near
    inside = jnp.where(steep, near / jnp.where(steep, -last.slope, 1), 0)
    part = jnp.maximum((low + high) / 2 - inside, last.low)
    return jnp.where(last.entered & (size > 0), part, 2), begin.value, least


def _beside(place: Float[Array, " ndim"], depth: Float[Array, ""]) -> Float[Array, ""]:
    """Returns how far away a place is that rounding tells from this one."""
    size = jnp.maximum(jnp.max(jnp.abs(place)), jnp.abs(depth))
    return lax.stop_gradient(8 * jnp.finfo(place.dtype).eps * size)


def _lifted(
    phi, place: Float[Array, " ndim"], passage: Passage
) -> Float[Array, " ndim"]:
    """Returns the place, on the surface if it was inside the body."""
    depth, slope = jax.jvp(phi, (place,), (jnp.ones_like(place),))
    shift = jnp.where(jnp.isfinite(slope), 0, _beside(place, depth))
    for _ in range(_RETURNS):
        place = _outside(phi, place, shift, passage)
    return place


def _outside(phi, place: Float[Array, " ndim"], shift, passage: Passage) -> Array:
    """Returns the nearest place that is not in the body, as seen from beside."""
    depth, gradient = jax.value_and_grad(phi)(place + shift)
    lift = jnp.where(depth < 0, depth, 0)
    return place - lift * passage.recoil(place, gradient)
