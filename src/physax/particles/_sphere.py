"""Velocities in metres per second where positions are longitude and latitude."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr
from jaxtyping import Array, ArrayLike, Bool, Float, Num

from .._checks import ArgumentError, between, positive, real, single
from ._c_grid import CGridField
from ._fields import AbstractField, Look, as_field
from ._motions import AbstractMotion


EARTH_RADIUS = 6_371_000.0
"""Mean radius of the Earth, in metres."""

# By which a program shows that it asks a field on a sphere.
_SCOPE = "physax.OnSphere"
_TWICE = (
    "`velocity` of an `OnSphere` must be in m/s, but is on a sphere already, in "
    "degrees per second, as a field of `io.read_velocity` over longitude and latitude "
    "is. Use it as it is; its velocity in m/s is `field.velocity`, or "
    "`field.field.velocity` of one that was read."
)


class OnSphere(AbstractField):
    r"""A velocity on a sphere, of particles whose positions are in degrees.

    Positions are $(\lambda, \phi)$, longitude and latitude in degrees, or $(\lambda,
    \phi, z)$; the velocity is eastward, northward, and along $z$:

    $$\dot\lambda = \frac{180}{\pi} \frac{u}{a \cos\phi}, \qquad
      \dot\phi = \frac{180}{\pi} \frac{v}{a}, \qquad \dot z = w.$$

    A particle that crosses a pole goes on, on the meridian opposite: its latitude then
    is above 90 degrees, or below -90, and denotes the same place as (longitude +
    180, 180 - latitude), which `wrap_globe` returns. At that place velocity,
    diffusivity, rates of variables, coasts and obstacles are asked; the faces of a
    `Box` are at coordinates as the particle has them. Longitudes are not wrapped while
    particles move. Closer to a pole than `pole`, the cosine is that at this distance:
    nothing is divided by 0. Near a pole a longitude changes much in one step. Particles
    that pass a pole at some distance need steps much shorter than that distance: one
    that passes closer than by a step, or begins on a pole, is off by some steps.

    A `diffusivity` given to `track` is in m^2/s then too, eastward, northward, and
    along $z$: noise and drift are those of diffusion on the sphere, so particles that
    are spread evenly over its area stay so. Its steps follow great circles, also across
    a pole. One that differs eastward and northward has no value at a pole: within about
    one step's length of it tracks depend on the size of the steps then.

    Equations of motion with forces or inertia, such as `MaxeyRiley`, hold in a plane
    and raise an error here.

    Attributes:
        velocity: The velocity in m/s, a field over positions in degrees or a callable
            `u(t, x)`. Longitudes that leave it must be periodic there. A `CGridField`
            in it conserves volume, if no function hides it.
        radius: Of the sphere, in metres.
        pole: Distance from a pole, in degrees, within which the cosine is constant.

    Raises:
        ArgumentError: If the velocity is on a sphere already, or a number is out of its
            range.
    """

    velocity: AbstractField
    radius: Float[Array, ""]
    pole: Float[Array, ""]

    def __init__(
        self,
        velocity: Any,
        radius: Any = EARTH_RADIUS,
        pole: Any = 0.01,
    ):
        """Puts a velocity on a sphere; arguments as the attributes."""
        self.radius = single(positive(radius, "radius"), "radius")
        self.pole = single(between("pole", 0.0, 90.0)(pole), "pole")
        on_faces = lambda x: isinstance(x, CGridField)  # noqa: E731
        self.velocity = jax.tree.map(
            lambda x: x.between_parallels(self.pole) if on_faces(x) else x,
            as_field(velocity),
            is_leaf=on_faces,
        )

    def __check_init__(self):
        if sphere_of(self.velocity) is not None:
            raise ArgumentError(_TWICE)

    def start(self, x):
        return self.velocity.start(unfolded(x)[0])

    @jax.named_scope(_SCOPE)
    def look(self, t, x, memory):
        place, turned = unfolded(x)
        seen = self.velocity.look(t, place, memory)
        if seen.value.shape != x.shape:
            raise ArgumentError(
                f"`velocity` must have {x.size} components, as positions have "
                f"coordinates, but has shape {seen.value.shape}."
            )
        cosine = jnp.cos(jnp.radians(place[1]))
        cosine = jnp.maximum(cosine, jnp.sin(jnp.radians(self.pole)))
        scale = jnp.stack([1 / cosine, jnp.where(turned, -1.0, 1.0)])
        degrees = scale * jnp.degrees(seen.value[:2] / self.radius)
        rate = jnp.concatenate([degrees.astype(seen.value.dtype), seen.value[2:]])
        return Look(rate, seen.memory, seen.status)

    def span(self):
        return self.velocity.span()


def unit_lengths(
    sphere: OnSphere, x: Float[Array, "*places ndim"]
) -> Float[Array, "*places ndim"]:
    """Returns the metres in a unit of each coordinate: degrees, and height as it is.

    Those of a latitude beyond a pole are negative, as it increases southward there.

    Args:
        sphere: The sphere.
        x: The places.
    """
    place, turned = unfolded(x)
    cosine = jnp.cos(jnp.radians(place[..., 1]))
    cosine = jnp.maximum(cosine, jnp.sin(jnp.radians(sphere.pole)).astype(x.dtype))
    pair = jnp.stack([cosine, jnp.where(turned, -1.0, 1.0).astype(x.dtype)], -1)
    pair = jnp.radians(sphere.radius).astype(x.dtype) * pair
    return jnp.concatenate([pair, jnp.ones_like(x[..., 2:])], -1)


def near_pole(
    sphere: OnSphere, x: Float[Array, "*places ndim"]
) -> Bool[Array, "*places"]:
    """Tells which places are so close to a pole that the cosine is constant there.

    Args:
        sphere: The sphere.
        x: The places.
    """
    cosine = jnp.cos(jnp.radians(unfolded(x)[0][..., 1]))
    return cosine <= jnp.sin(jnp.radians(sphere.pole)).astype(x.dtype)


def sphere_of(motion: Any) -> OnSphere | None:
    """Returns the sphere on which a motion goes, `None` if it goes on none.

    Args:
        motion: A motion. One in the closure of a function is not seen; where there
            may be such, call `check_sphere_is_seen`.
    """
    on_sphere = lambda x: isinstance(x, OnSphere)  # noqa: E731
    found = [x for x in jax.tree.leaves(motion, is_leaf=on_sphere) if on_sphere(x)]
    return found[0] if found else None


def check_sphere_is_seen(
    motion: Any, rate: Callable[..., Any], *arguments: Any
) -> None:
    """Raises if a function calls a field on a sphere that `sphere_of` does not see.

    Args:
        motion: A motion, or a velocity.
        rate: Its rate of change, which is not evaluated.
        *arguments: Of the rate.

    Raises:
        ArgumentError: If it does, or if an `OnSphere` is of a velocity on a sphere.
    """
    depth = _depth(eqx.filter_make_jaxpr(rate)(*arguments)[0].jaxpr)
    if depth > 1:
        raise ArgumentError(_TWICE)
    if depth and sphere_of(motion) is None:
        raise ArgumentError(
            "`velocity` must hold the field on a sphere that it asks, but is a "
            "function that calls one: its degrees would be taken for metres. Give "
            "`Masked(field, factor)` or `Sum((field, other))`, an `eqx.Module` with "
            "the field as an attribute, or `OnSphere(function)` of a function in m/s, "
            "which may call `field.velocity`, or `field.field.velocity` of a field of "
            "`io.read_velocity`."
        )


def _depth(program: Jaxpr) -> int:
    """Returns how many fields on a sphere a program asks within each other."""
    deepest = 0
    for equation in program.eqns:
        within = [
            _depth(part.jaxpr if isinstance(part, ClosedJaxpr) else part)
            for part in jax.tree.leaves(equation.params)
            if isinstance(part, Jaxpr | ClosedJaxpr)
        ]
        # Reverse mode names a scope once more, as the transpose of itself.
        names = str(equation.source_info.name_stack)
        own = max(names.split("/").count(_SCOPE), int(_SCOPE in names))
        deepest = max(deepest, own + max(within, default=0))
    return deepest


def check_motion_on_sphere(motion: AbstractMotion) -> None:
    """Raises if an equation of motion does not hold on a sphere.

    Args:
        motion: A motion on a sphere; those that it holds are checked, too.

    Raises:
        ArgumentError: If one does not.
    """
    if not motion.on_sphere:
        name = type(motion).__name__
        raise ArgumentError(
            "`velocity` on a sphere must be a field, with or without `diffusivity` and "
            f"`variables`, but is {name}: its equation holds in a plane, and an "
            "`OnSphere` has positions in degrees and velocities in degrees per second. "
            "Project the region to a plane, with positions in metres. A motion of your "
            "own that works in degrees says so by `on_sphere = True`."
        )
    within = lambda x: isinstance(x, AbstractMotion) and x is not motion  # noqa: E731
    for part in jax.tree.leaves(motion, is_leaf=within):
        if within(part):
            check_motion_on_sphere(part)


def check_latitudes(seeds: Float[Array, "particles ndim"]) -> None:
    """Raises if seeds on a sphere are beyond a pole, where they are known.

    Args:
        seeds: Longitude and latitude, in degrees.

    Raises:
        ArgumentError: If one is.
    """
    if isinstance(seeds, jax.core.Tracer):
        return
    host = np.asarray(seeds)
    beyond = np.flatnonzero(np.any(np.abs(host[:, 1:2]) > 90, axis=1))
    if beyond.size:
        first = int(beyond[0])
        raise ArgumentError(
            "`seeds` on a sphere must have latitudes from -90 to 90 degrees, but "
            f"{beyond.size} of {len(host)} do not; number {first} is at {host[first]}. "
            "The order is longitude, latitude; `wrap_globe` brings places back that "
            "have crossed a pole."
        )


def great_circle(
    latitude: Float[Array, ""], way: Float[Array, "2"]
) -> Float[Array, "2"]:
    """Returns how longitude and latitude change on a great circle, in degrees.

    Beyond a pole latitudes go on, so that longitudes change by at most 90 degrees.

    Args:
        latitude: Where it begins, in degrees; maybe beyond a pole.
        way: Its length in degrees of arc toward larger longitudes and latitudes.
    """
    phi, (east, north) = jnp.radians(latitude), jnp.radians(way)
    sine, cosine = jnp.sin(phi), jnp.cos(phi)
    # Sine over angle has a derivative at 0 that its quotient does not.
    square = east**2 + north**2
    small = square < 1e-4
    angle = jnp.sqrt(jnp.where(small, 1, square))
    onward = jnp.where(small, 1 - square / 2 + square**2 / 24, jnp.cos(angle))
    ratio = jnp.where(small, 1 - square / 6 + square**2 / 120, jnp.sin(angle) / angle)
    north, east = ratio * north, ratio * east * jnp.where(cosine < 0, -1, 1)
    # Seen from above the pole: along the first meridian, and the distance from the
    # axis, negative where the latitude is beyond the pole.
    ahead = cosine * onward - sine * north
    sign = jnp.where(ahead < 0, -1, 1)
    off_axis = ahead**2 + east**2 > 0
    distance = sign * jnp.sqrt(jnp.where(off_axis, ahead**2 + east**2, 1))
    more = jnp.where(off_axis, east**2 / (distance + ahead + ~off_axis), 0)
    turn = jnp.arctan2(sign * east, jnp.where(off_axis, sign * ahead, 1))
    rise = jnp.arctan2(north - sine * more, onward + cosine * more)
    return jnp.degrees(jnp.stack([turn, rise]))


def unfolded(x: Float[Array, "..."]) -> tuple[Array, Array]:
    """Returns the place with a latitude within 90 degrees, and if it was beyond.

    Args:
        x: Longitude and latitude in degrees along the last axis, and maybe a height.

    Raises:
        ArgumentError: If there are not 2 or 3 coordinates.
    """
    if x.shape[-1:] not in ((2,), (3,)):
        raise ArgumentError(
            "Positions must be longitude and latitude, or these and a height, but have "
            f"{x.shape[-1] if x.ndim else 0} coordinates."
        )
    longitude, latitude = x[..., 0], x[..., 1]
    beyond = jnp.abs(latitude) > 90
    # Only where it is needed: the sum with 90 costs digits. Not `mod`, which is slow.
    round_trip = latitude + 90
    round_trip = round_trip - 360 * jnp.floor(round_trip / 360)
    turned = beyond & (round_trip > 180)
    folded = jnp.where(turned, 270 - round_trip, round_trip - 90)
    latitude = jnp.where(beyond, folded, latitude)
    longitude = jnp.where(turned, longitude + 180, longitude)
    pair = jnp.stack([longitude, latitude], -1)
    return jnp.concatenate([pair, x[..., 2:]], -1), turned


def wrap_globe(
    positions: Num[ArrayLike, "*places ndim"],
    west: float | int | Num[ArrayLike, ""] = -180.0,
) -> Float[Array, "*places ndim"]:
    """Returns places with latitudes within 90 degrees and longitudes of one turn.

    Args:
        positions: Longitude and latitude in degrees along the last axis, and a height
            if there is one; such as the positions of tracks.
        west: The smallest longitude; 0 for those from 0 to 360.

    Returns:
        The same places.

    Raises:
        ArgumentError: If there are not 2 or 3 coordinates.
    """
    x = real(positions, "positions")
    place, _ = unfolded(x)
    offset = place[..., 0] - single(real(west, "west"), "west").astype(x.dtype)
    # Places that need no wrap keep their digits.
    turns = jnp.floor(offset / 360)
    longitude = place[..., 0] - 360 * turns
    return jnp.concatenate([longitude[..., None], place[..., 1:]], -1)
