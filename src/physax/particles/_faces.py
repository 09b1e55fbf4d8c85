"""What the faces of a box do with particles."""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from .._checks import ArgumentError, instance
from ._inlets import AbstractPlacement, Uniform
from ._numbers import fraction
from ._status import ParticleStatus


class AbstractFace(eqx.Module):
    """What a face of a box does with particles.

    Attributes:
        ends: The status of a particle that crosses it, `None` if it goes on.
    """

    ends: eqx.AbstractClassVar[ParticleStatus | None]


class Periodic(AbstractFace):
    """A particle that leaves comes in at the opposite face; both must be periodic."""

    ends: ClassVar[ParticleStatus | None] = None


class Reflect(AbstractFace):
    """A mirror.

    Of particles that a flow carries any number of bounces in one step is right. Those
    that have a velocity of their own are thrown back with that at the hit, on a way
    that forces bend, which is exact under an even force. Forces that depend on the
    velocity act behind a bounce as the new one has them: in a box behind the first of a
    step along each axis, at an obstacle behind the first, at several walls behind all.
    In a box the first four bounces of a step along each axis are followed so; what is
    left after them is reflected as a whole. A particle that would be back at the wall
    within the same step rests on it: it keeps its velocity along the wall, and none
    across. Backward in time a bounce takes the same fraction.

    Attributes:
        restitution: Fraction of the normal velocity that particles with a velocity of
            their own keep at each bounce, in (0, 1].
    """

    ends: ClassVar[ParticleStatus | None] = None
    restitution: Float[Array, ""] = eqx.field(
        converter=fraction("restitution"), default=1.0
    )


class Hold(AbstractFace):
    """A wall along which particles slide: the coordinate is clamped to the face.

    The derivative of the clamped coordinate is zero.
    """

    ends: ClassVar[ParticleStatus | None] = None


class Absorb(AbstractFace):
    """Particles end here with the status `ABSORBED`."""

    ends: ClassVar[ParticleStatus | None] = ParticleStatus.ABSORBED


class Stick(AbstractFace):
    """Particles end here with the status `STUCK`."""

    ends: ClassVar[ParticleStatus | None] = ParticleStatus.STUCK


class Outlet(AbstractFace):
    """Particles leave here: to an inlet, or for good with the status `EXITED`."""

    ends: ClassVar[ParticleStatus | None] = ParticleStatus.EXITED


class Inlet(AbstractFace):
    """Where particles that left through an outlet, or back through here, come in again.

    They start again: age and variables are reset, and `entries` counts. They wait on
    the face for the end of the step in which they left; their age counts from there.
    The derivative of a track with respect to anything before ends here.

    Attributes:
        placement: Where on the face: `Uniform()`, `FluxWeighted(...)`, `Pattern(...)`.
    """

    ends: ClassVar[ParticleStatus | None] = ParticleStatus.EXITED
    placement: AbstractPlacement = eqx.field(
        converter=lambda x: instance(x, "placement", AbstractPlacement),
        default=Uniform(),
    )


FACES = (Periodic, Reflect, Hold, Absorb, Stick, Outlet, Inlet)


def pairs_of(
    faces: Any,
) -> tuple[tuple[AbstractFace, AbstractFace], ...] | AbstractFace:
    """Returns a pair of faces for each axis, or the one face that all are.

    Args:
        faces: One face for all, or for each axis one face or a pair.

    Raises:
        ArgumentError: If it is not that.
    """
    if not isinstance(faces, Sequence) or isinstance(faces, str):
        return _as_face(faces)
    pairs = []
    for entry in faces:
        pair = tuple(entry) if isinstance(entry, Sequence) else (entry, entry)
        if len(pair) != 2:
            raise ArgumentError(
                "`faces` must give one face or a pair for each axis, but has an entry "
                f"of {len(pair)}."
            )
        pairs.append((_as_face(pair[0]), _as_face(pair[1])))
    return tuple(pairs)


def _as_face(face: Any) -> AbstractFace:
    if not isinstance(face, AbstractFace):
        names = ", ".join(f"{kind.__name__}()" for kind in FACES)
        raise ArgumentError(f"`faces` must be made of {names}, but has {face!r}.")
    return face
