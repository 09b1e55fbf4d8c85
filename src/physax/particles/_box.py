"""A box whose faces keep particles, let them out, or bring them in again."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, numeric, real, traced
from ._between_mirrors import Bounced, between_mirrors, changed_between_mirrors
from ._bounces import (
    Hit,
    Leg,
    along_axis,
    changed_forces,
    dips,
    leg_of,
    moved_to,
    part_before,
    place_at,
    thrown_back,
)
from ._boundaries import AbstractBoundary, Passage, Turn, end
from ._faces import AbstractFace, Hold, Inlet, Periodic, Reflect, pairs_of
from ._state import Particles, bounded, code, select
from ._status import ParticleStatus
from ._variables import begin


class Box(AbstractBoundary):
    """A box with a rule for each face.

    Attributes:
        low: Low corner, in the unit of positions.
        high: High corner. Where the two are traced and out of order, all particles end
            with the status `NOT_FINITE`.
        faces: One face for all, or for each axis one face or a pair (low, high).

    Raises:
        ArgumentError: If `low` is not below `high`, there are not as many faces as
            axes, only one of two opposite faces is periodic, there are two inlets, or a
            placement does not fit its face.
    """

    low: Float[Array, " ndim"] = eqx.field(converter=numeric("low"))
    high: Float[Array, " ndim"] = eqx.field(converter=numeric("high"))
    sides: tuple[tuple[AbstractFace, AbstractFace], ...]

    def __init__(self, low: Any, high: Any, faces: Any):
        self.low, self.high = real(low, "low"), real(high, "high")
        sides = pairs_of(faces)
        if isinstance(sides, AbstractFace):
            sides = ((sides, sides),) * self.low.size
        self.sides = sides

    def __check_init__(self):
        if self.low.ndim != 1 or self.low.shape != self.high.shape:
            raise ArgumentError(
                "`low` and `high` must have one coordinate for each axis, but have the "
                f"shapes {self.low.shape} and {self.high.shape}."
            )
        if len(self.sides) != self.low.size:
            raise ArgumentError(
                f"`faces` must be one, or one for each of {self.low.size} axes, but "
                f"are {len(self.sides)}."
            )
        for axis, (low, high) in enumerate(self.sides):
            if isinstance(low, Periodic) != isinstance(high, Periodic):
                raise ArgumentError(
                    "`faces` must be `Periodic()` at both ends of an axis, but along "
                    f"axis {axis} only one is."
                )
        inlets = sum(isinstance(face, Inlet) for pair in self.sides for face in pair)
        if inlets > 1:
            raise ArgumentError(
                f"`faces` must hold at most one `Inlet`, but hold {inlets}."
            )
        if self.inlet is not None:
            number, inlet = self.inlet
            inlet.placement.check(number // 2, self.low.size)
        _check_corners(self.low, self.high)

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Whether each axis repeats."""
        return tuple(isinstance(low, Periodic) for low, _ in self.sides)

    @property
    def inlet(self) -> tuple[int, Inlet] | None:
        """The number of the face that is an inlet, and the inlet."""
        for number, face in enumerate(f for pair in self.sides for f in pair):
            if isinstance(face, Inlet):
                return number, face
        return None

    def faces(self):
        return 2 * len(self.sides)

    def is_random(self):
        return self.inlet is not None and self.inlet[1].placement.is_random()

    def check(self, positions):
        if positions.shape[1] != self.low.size:
            raise ArgumentError(
                f"`seeds` must have {self.low.size} coordinates, as the box has axes, "
                f"but have {positions.shape[1]}."
            )
        given = (self.low, self.high, positions)
        if traced(given):
            inside = (positions >= self.low) & (positions <= self.high)
            return jnp.where(jnp.all(inside, 1, keepdims=True), positions, jnp.nan)
        host = np.asarray(positions)
        low, high = np.asarray(self.low), np.asarray(self.high)
        outside = np.flatnonzero(np.any((host < low) | (host > high), axis=1))
        if outside.size:
            first = int(outside[0])
            raise ArgumentError(
                f"`seeds` must lie in the box from {low} to {high}, but "
                f"{outside.size} of {len(host)} do not; number {first} is at "
                f"{host[first]}."
            )
        return positions

    def meet(self, before, after, passage):
        leg = leg_of(before, after, passage, self.low.size)
        bounced = self._bounced(leg)
        ended = self._ended(leg, bounced, before, after, passage)
        crossed, part, particle = ended or (jnp.asarray(False), 1, after)
        going_on = after
        if bounced is not None and leg.velocity is not None:
            change = changed_between_mirrors(leg, bounced, part, after, passage)
            last = jax.tree.map(lambda x: x[:, -1], bounced.legs)
            going_on = moved_to(after, last.goal + change[0], last.velocity + change[1])
            # It ends on the face, wherever forces would have brought it by then.
            own = slice(self.low.size, 2 * self.low.size)
            y = particle.y.at[own].add(change[1])
            particle = eqx.tree_at(lambda p: p.y, particle, y)
        going_on = self.settle(going_on, passage)
        if ended is None:
            return going_on
        particle = self._anew(self.settle(particle, passage), passage)
        return select(crossed, particle, going_on)

    def settle(self, particle, passage):
        ndim = self.low.size
        kept, flips = self._kept(particle.y[:ndim])
        y = particle.y.at[:ndim].set(kept)
        if passage.motion.second_order:
            y = y.at[ndim : 2 * ndim].multiply(flips)
        return eqx.tree_at(lambda p: p.y, particle, y)

    def turn(self, before, after, passage):
        ndim = self.low.size
        leg = leg_of(before, after, passage, ndim)
        best, met = jnp.asarray(jnp.inf, leg.goal.dtype), jnp.asarray(-1, jnp.int32)
        for number in range(self.faces()):
            axis, side = divmod(number, 2)
            out, part = self._reaches(along_axis(leg, axis), axis, side)
            first = out & (part < best)
            best = jnp.where(first, part, best)
            met = jnp.where(first, number, met)
        found = met >= 0
        part = jnp.where(found, best, 1)
        place = bounded(
            place_at(leg.place, leg.move, leg.bend, part), self.low, self.high
        )
        status, ends = after.status, jnp.asarray(False)
        stop, own, kick = leg.goal, leg.velocity, None
        if leg.velocity is not None and leg.kick is not None:
            hit, kept = self._hit(met, part, place)
            forces = partial(changed_forces, leg, hit, after, passage)
            back = thrown_back(leg, hit, kept, forces)[0]
            stop = jnp.where(hit.found, back.goal, stop)
            own = jnp.where(hit.found, jnp.asarray(back.velocity), leg.velocity)
            kick = (1 - part) * leg.kick
            kick = jnp.where(hit.found, jnp.asarray(back.kick), kick)
        goal = stop
        for number, rule in enumerate(rule for pair in self.sides for rule in pair):
            axis, side = divmod(number, 2)
            here, wall = met == number, (self.low, self.high)[side][axis]
            at = stop[axis]
            if rule.ends is not None:
                status = jnp.where(here, code(rule.ends), status)
                ends = ends | here
            elif isinstance(rule, Periodic):
                wall = (self.high, self.low)[side][axis]
                at = bounded(
                    at + (1 - 2 * side) * (self.high - self.low)[axis],
                    (-jnp.inf, wall)[side],
                    (wall, jnp.inf)[side],
                )
            elif leg.velocity is None:
                at = _one_side(rule, at, here, wall, 1)[0]
            place = place.at[axis].set(jnp.where(here, wall, place[axis]))
            goal = goal.at[axis].set(jnp.where(here, at, goal[axis]))
        # Corners that were traced may be out of order.
        place = jnp.where(self.high > self.low, place, jnp.nan)
        particle = moved_to(after, goal, own)
        ended = end(
            before,
            after,
            passage,
            part=part,
            position=place,
            status=status,
            face=met,
        )
        particle = select(ends, self._anew(ended, passage), particle)
        place = jnp.where(ends, particle.y[:ndim], place)
        return Turn(found, part, place, particle, kick)

    def _hit(self, met, part, place) -> tuple[Hit, Float[Array, ""]]:
        """Returns the hit on a mirror or a held face, and what is kept of the speed."""
        normal, kept = jnp.zeros_like(place), jnp.zeros_like(part)
        for number, rule in enumerate(rule for pair in self.sides for rule in pair):
            axis, side = divmod(number, 2)
            here, wall = met == number, (self.low, self.high)[side][axis]
            if isinstance(rule, Reflect | Hold):
                facing = jnp.where(here, 1 - 2 * side, normal[axis])
                normal = normal.at[axis].set(facing)
                place = place.at[axis].set(jnp.where(here, wall, place[axis]))
            if isinstance(rule, Reflect):
                kept = jnp.where(here, rule.restitution, kept)
        return Hit(jnp.any(normal != 0), part, place, normal, normal), kept

    def _reaches(self, leg: Leg, axis: int, side: int):
        """Whether a way along an axis leads beyond a face, and the part before."""
        sign = 1 - 2 * side
        wall = (self.low, self.high)[side][axis]
        bend = None if leg.bend is None else leg.bend * sign
        way = (leg.place - wall) * sign, leg.move * sign, bend
        beyond = leg.goal * sign < wall * sign
        if not isinstance(self.sides[axis][side], Periodic):
            beyond = beyond | dips(*way)
        return beyond, part_before(*way)

    def _bounced(self, leg: Leg) -> Bounced | None:
        """Follows a way between mirrors, if folding it is not enough."""
        sides = [face for pair in self.sides for face in pair]
        # Who has a velocity of its own slides behind a hit, others may be clamped.
        kinds = Reflect if leg.velocity is None else Reflect | Hold
        found = np.array([isinstance(face, kinds) for face in sides])
        ends = np.array([face.ends is not None for face in sides])
        opposite = np.any(found & ends.reshape(-1, 2)[:, ::-1].ravel())
        if not (opposite or (leg.velocity is not None and found.any())):
            return None
        dtype = leg.place.dtype
        given = [x.restitution if isinstance(x, Reflect) else 0.0 for x in sides]
        kept = jnp.stack([jnp.asarray(x, dtype) for x in given])
        walls = jnp.stack([self.low, self.high], 1).astype(dtype)
        none = jnp.array([-jnp.inf, jnp.inf], dtype)
        walls = jnp.where(found.reshape(walls.shape), walls, none)
        return between_mirrors(leg, walls, kept.reshape(walls.shape))

    def _ended(
        self,
        leg: Leg,
        bounced: Bounced | None,
        before: Particles,
        after: Particles,
        passage: Passage,
    ):
        """Finds the first face on the way at which a particle ends."""
        best = jnp.asarray(jnp.inf, leg.place.dtype)
        status, met = after.status, jnp.asarray(0, jnp.int32)
        found = False
        for axis, pair in enumerate(self.sides):
            for side, rule in enumerate(pair):
                if rule.ends is None:
                    continue
                found = True
                if bounced is None or not isinstance(pair[1 - side], Reflect):
                    out, part = self._reaches(along_axis(leg, axis), axis, side)
                else:
                    out, part = self._behind_mirror(bounced, axis, side)
                first = out & (part < best)
                best = jnp.where(first, part, best)
                status = jnp.where(first, code(rule.ends), status)
                met = jnp.where(first, 2 * axis + side, met)
        if not found:
            return None
        crossed = (best <= 1) & (after.status == ParticleStatus.ALIVE)
        part = jnp.where(crossed, best, 1)
        direct = place_at(leg.place, leg.move, leg.bend, part), None
        at, velocity = direct if bounced is None else bounced.at(part)
        ended = end(
            before, after, passage, part=part, position=at, status=status, face=met
        )
        if velocity is not None:
            ended = moved_to(ended, at, velocity)
        return crossed, part, ended

    def _behind_mirror(self, bounced: Bounced, axis: int, side: int):
        """Answers as `_reaches`, for a face opposite a mirror."""
        legs, parts = jax.tree.map(lambda x: x[axis], (bounced.legs, bounced.parts))
        reaches = jax.vmap(lambda leg: self._reaches(leg, axis, side))
        out, part = reaches(legs)
        part = parts[:-1] + (1 - parts[:-1]) * part
        # Not behind the next bounce.
        out = out & (part <= parts[1:])
        return jnp.any(out), jnp.min(jnp.where(out, part, jnp.inf))

    def _kept(self, x: Float[Array, " ndim"]):
        """Folds, wraps and clamps a position; says which velocities turn around."""
        kept, flips = [], []
        for axis, (lower, upper) in enumerate(self.sides):
            low, high = self.low[axis], self.high[axis]
            size, at, flip = high - low, x[axis], jnp.ones_like(x[axis])
            if isinstance(lower, Periodic):
                at = at - size * jnp.floor((at - low) / size)
            elif isinstance(lower, Reflect) and isinstance(upper, Reflect):
                turns = jnp.floor((at - low) / size)
                odd = turns % 2 != 0
                rest = at - low - turns * size
                at = low + jnp.where(odd, size - rest, rest)
                # Of n bounces the first, third, ... are at the face that is met first.
                first, other = (jnp.abs(turns) + 1) // 2, jnp.abs(turns) // 2
                at_low = jnp.where(turns < 0, first, other)
                at_high = jnp.where(turns < 0, other, first)
                loss = lower.restitution**at_low * upper.restitution**at_high
                flip = jnp.where(odd, -loss, loss)
            else:
                # The mirror first: from there a way may lead to the other face.
                for side in (1, 0) if isinstance(upper, Reflect) else (0, 1):
                    beyond = at > high if side else at < low
                    rule, wall = ((lower, low), (upper, high))[side]
                    at, flip = _one_side(rule, at, beyond, wall, flip)
            # Rounding must not leave a particle outside by a digit. Corners that were
            # traced may be out of order.
            kept.append(jnp.where(size > 0, bounded(at, low, high), jnp.nan))
            flips.append(flip)
        return jnp.stack(kept), jnp.stack(flips)

    def _anew(self, particle: Particles, passage: Passage) -> Particles:
        """Lets particles that exited come in again, if there is an inlet."""
        if self.inlet is None:
            return particle
        number, inlet = self.inlet
        axis, side = divmod(number, 2)
        wall = (self.low, self.high)[side][axis]
        unit = jnp.zeros(self.low.shape, particle.y.dtype)
        if inlet.placement.is_random():
            unit = particle.draw()
        place = inlet.placement.place(unit, particle.number, self.low, self.high)
        place = place.astype(particle.y.dtype).at[axis].set(wall)
        # The sum of time and length of the step may be rounded beyond a recorded time.
        t = passage.until
        entry = begin(passage.motion, t, place, particle.number)
        again = Particles(
            y=entry.y,
            memory=entry.memory,
            status=code(ParticleStatus.ALIVE),
            ended=jnp.full_like(particle.ended, jnp.nan),
            since=t.astype(particle.since.dtype),
            face=jnp.asarray(passage.face + number, jnp.int32),
            entries=particle.entries + 1,
            number=particle.number,
            stream=particle.stream,
        )
        return select(particle.status == ParticleStatus.EXITED, again, particle)


def _one_side(rule: AbstractFace, at, beyond, wall, flip):
    """Answers one face."""
    if isinstance(rule, Reflect):
        at = jnp.where(beyond, 2 * wall - at, at)
        return at, jnp.where(beyond, -rule.restitution, flip)
    if isinstance(rule, Hold):
        return jnp.where(beyond, wall, at), jnp.where(beyond, 0, flip)
    return at, flip


def _check_corners(low: Array, high: Array) -> None:
    if traced((low, high)):
        return
    wrong = np.flatnonzero(~(np.asarray(high) > np.asarray(low)))
    if wrong.size:
        axis = int(wrong[0])
        raise ArgumentError(
            f"`high` must be above `low`, but along axis {axis} they are "
            f"{np.asarray(high)[axis]:g} and {np.asarray(low)[axis]:g}."
        )
