"""How flows deform: gradients of flow maps, finite-time Lyapunov exponents."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from .._checks import ArgumentError, real
from .._products import einsum, matmul
from ._boundaries import AbstractBoundary
from ._box import Box
from ._faces import Inlet, Periodic
from ._fields import Look
from ._motions import AbstractMotion, Entry, as_motion
from ._seed_checks import check_seeds
from ._sphere import near_pole, sphere_of, unit_lengths
from ._track import track


class Tangent(AbstractMotion):
    r"""A motion, and how neighbours of the particle move relative to it.

    What is integrated is the position $x$ and the gradient $F$ of the flow map, row by
    row, with $\dot F = (\nabla u) F$: by a Runge-Kutta method, exactly the derivative
    of its own steps. A seed in two dimensions is `[x, y, 1, 0, 0, 1]`.

    Attributes:
        motion: A motion of first order.
        ndim: Coordinates of a position.
    """

    second_order: ClassVar[bool] = False
    # The motion within is checked on its own.
    on_sphere: ClassVar[bool] = True
    motion: AbstractMotion
    ndim: int = eqx.field(static=True)

    def enter(self, t, x):
        return Entry(x, self.motion.enter(t, x[: self.ndim]).memory)

    def rate(self, t, y, memory):
        x, columns = y[: self.ndim], y[self.ndim :].reshape(self.ndim, self.ndim).T

        def flow(x):
            seen = self.motion.rate(t, x, memory)
            return seen.value, (seen.memory, seen.status)

        def along(column):
            return jax.jvp(flow, (x,), (column,), has_aux=True)

        rate, slopes, (memory, status) = jax.vmap(along, out_axes=(None, 1, None))(
            columns
        )
        return Look(jnp.concatenate([rate, slopes.ravel()]), memory, status)

    def span(self):
        return self.motion.span()


class _Around(AbstractBoundary):
    """A wall that uses only the first coordinates.

    Attributes:
        wall: The wall.
    """

    wall: AbstractBoundary

    def faces(self):
        return self.wall.faces()

    def is_random(self):
        return self.wall.is_random()

    def meet(self, before, after, passage):
        return self.wall.meet(before, after, passage)

    def turn(self, before, after, passage):
        return self.wall.turn(before, after, passage)

    def settle(self, particle, passage):
        return self.wall.settle(particle, passage)

    def check(self, positions):
        return positions


class FlowMap(eqx.Module):
    r"""Where a flow carries particles, and how it deforms what is around them.

    Attributes:
        times: The recorded times, in seconds.
        positions: Where the particles were then.
        gradient: $F_{ij} = \partial x_i(t) / \partial x_j(0)$; NaN for particles that
            ended. On a sphere coordinates count in metres eastward and northward here,
            and in the unit of the height; NaN for seeds within `OnSphere.pole` of a
            pole, and from the first recorded time on at which a particle is so close:
            the cosine is held constant there. Passages in between are not noticed.
        status: `ParticleStatus` codes at the last time.
    """

    times: Float[Array, " times"]
    positions: Float[Array, "times particles ndim"]
    gradient: Float[Array, "times particles ndim ndim"]
    status: Int[Array, " particles"]


def flow_map(
    velocity: Any,
    seeds: Float[ArrayLike, "particles ndim"],
    times: Float[ArrayLike, " times"],
    *,
    boundary: AbstractBoundary | None = None,
    **options: Any,
) -> FlowMap:
    """Follows particles together with the gradient of the flow map.

    Args:
        velocity: A field, a callable `u(t, x)`, or a motion of first order. Of samples
            on a grid the gradient is that of the interpolation; `CubicHermite()` keeps
            it continuous. On a sphere the gradient is in metres for each metre, as the
            stretching of neighbours needs it, not in degrees.
        seeds: Where the particles begin.
        times: The recorded times; the first is the start. Decreasing times go backward.
        boundary: A box whose faces are periodic or end particles.
        **options: As for `track`: `dt`, `steps`, `solver`, `mesh`, ...

    Returns:
        Positions and gradients at each of `times`.

    Raises:
        ArgumentError: If an argument cannot be used, here or by `track`.
    """
    seeds, motion = check_seeds(seeds), as_motion(velocity)
    count, ndim = seeds.shape
    if motion.second_order:
        raise ArgumentError(
            "`velocity` must be a field or a motion of first order, but is "
            f"{type(motion).__name__}, whose particles have velocities of their own."
        )
    for name in ("diffusivity", "variables"):
        if options.get(name) is not None:
            raise ArgumentError(f"`{name}` cannot be given for the gradient of a flow.")
    walls = () if boundary is None else (_Around(_checked(boundary, seeds)),)
    unit = jnp.broadcast_to(jnp.eye(ndim, dtype=seeds.dtype).ravel(), (count, ndim**2))
    wide = jnp.concatenate([seeds, unit], axis=1)
    tracks = track(Tangent(motion, ndim), wide, times, boundary=walls, **options)
    positions, gradient = jnp.split(tracks.positions, [ndim], axis=-1)
    good = tracks.alive[:, None, None]
    gradient = gradient.reshape(*gradient.shape[:2], ndim, ndim)
    sphere = sphere_of(motion)
    if sphere is not None:
        after = unit_lengths(sphere, positions)[..., :, None]
        gradient = gradient * (after / unit_lengths(sphere, seeds)[:, None, :])
        met = jnp.cumsum(near_pole(sphere, positions), axis=0) > 0
        good = good & ~met[..., None, None]
    return FlowMap(
        tracks.times, positions, jnp.where(good, gradient, jnp.nan), tracks.status
    )


def _checked(box: Any, seeds: Array) -> Box:
    if not isinstance(box, Box):
        raise ArgumentError(
            f"`boundary` must be a `Box` for the gradient of a flow, but is {box!r}."
        )
    for face in (face for pair in box.sides for face in pair):
        ends = face.ends is not None and not isinstance(face, Inlet)
        if not (ends or isinstance(face, Periodic)):
            raise ArgumentError(
                "`boundary` must have faces that are periodic or end particles, for "
                f"the gradient of a flow, but has {type(face).__name__}(). Derivatives "
                "through such walls are those of `track`, by `jax.jacfwd`."
            )
    if not isinstance(seeds, jax.core.Tracer):
        box.check(seeds)
    return box


def flow_map_gradient(
    velocity: Any,
    seeds: Float[ArrayLike, "particles ndim"],
    times: Float[ArrayLike, " times"],
    **options: Any,
) -> Float[Array, "particles ndim ndim"]:
    r"""Returns $F_{ij} = \partial x_i(T) / \partial x_j(0)$ for each seed.

    On a sphere in metres eastward and northward, as in `FlowMap`.

    Args:
        velocity: As for `flow_map`.
        seeds: Where the particles begin.
        times: The first is the start, the last the end.
        **options: As for `flow_map`.

    Returns:
        The gradient at the last time, NaN for particles that ended and, as in
        `FlowMap`, close to a pole.
    """
    return flow_map(velocity, seeds, times, **options).gradient[-1]


def cauchy_green(
    gradient: Float[ArrayLike, "*places ndim ndim"],
) -> Float[Array, "*places ndim ndim"]:
    """Returns the right Cauchy-Green tensor, the transpose of F times F.

    Its eigenvalues are the squares of how far neighbours move apart.

    Args:
        gradient: F, gradients of a flow map.
    """
    gradient = real(gradient, "gradient")
    if gradient.ndim < 2 or gradient.shape[-1] != gradient.shape[-2]:
        raise ArgumentError(
            "`gradient` must have square matrices along its last two axes, but has "
            f"shape {gradient.shape}."
        )
    return matmul(jnp.swapaxes(gradient, -1, -2), gradient)


def ftle(
    gradient: Float[ArrayLike, "*places ndim ndim"],
    duration: Float[ArrayLike, "*#places"],
) -> Float[Array, "*places"]:
    r"""Returns finite-time Lyapunov exponents, in 1/s.

    $\ln \sigma_{max}(F) / |T|$: the rate at which the neighbour that is carried away
    fastest departs. Where two singular values are the same, as of a flow that does not
    deform, the derivative is one of those in between.

    Reference: Shadden, Lekien and Marsden, *Definition and properties of Lagrangian
    coherent structures from finite-time Lyapunov exponents*, Physica D 212, 271 (2005).

    Args:
        gradient: F, gradients of a flow map.
        duration: T, in seconds, of either sign.
    """
    squares = _largest(cauchy_green(gradient))
    return jnp.log(squares) / (2 * jnp.abs(real(duration, "duration")))


@jax.custom_jvp
def _largest(c: Float[Array, "*places ndim ndim"]) -> Float[Array, "*places"]:
    """Returns the largest eigenvalue of symmetric matrices."""
    return jnp.linalg.eigvalsh(c)[..., -1]


@_largest.defjvp
def _largest_jvp(primals, tangents):
    # Without derivatives of the vector, which are infinite where two values coincide.
    values, vectors = jnp.linalg.eigh(primals[0])
    vector = vectors[..., -1]
    slope = einsum("...i,...ij,...j->...", vector, tangents[0], vector)
    return values[..., -1], slope
