"""How fast particles spread: one number, a function of place, or that on a sphere."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._checks import ArgumentError, at_least
from .._written_for_jax import check_takes
from ._callables import called_as, returned
from ._fields import AbstractField, check_components
from ._numbers import check_numbers
from ._sphere import OnSphere, great_circle, unfolded
from ._state import code
from ._status import ParticleStatus


class Diffusivity(eqx.Module):
    r"""A constant diffusivity $K$: the variance of a coordinate grows as $2 K t$.

    Attributes:
        value: In m^2/s, one number or one for each axis, at least 0.
    """

    value: Float[Array, "..."] = eqx.field(converter=at_least("diffusivity", 0.0))


class DiffusivityOnSphere(eqx.Module):
    r"""A diffusivity in m^2/s of particles whose positions are in degrees.

    A step goes along the great circle whose beginning is, eastward and northward, in
    radians of arc on a sphere of radius $a$ at longitude $\lambda$ and latitude $\phi$,

    $$\frac{\partial_\lambda K_1}{a^2 \cos\phi}\,dt + \frac{\sqrt{2 K_1}}{a}\,dW_1,
      \qquad \frac{\partial_\phi K_2 + (K_1 - K_2) \tan\phi}{a^2}\,dt
      + \frac{\sqrt{2 K_2}}{a}\,dW_2.$$

    The second derivative of a function along a great circle that begins eastward is
    $\partial_\lambda^2 / \cos^2\phi - \tan\phi\,\partial_\phi$ (meridians come closer
    to each other toward a pole), so the generator is that of the diffusion $\nabla
    \cdot (K \nabla)$, and where $K$ is one number poles are places as all others. The
    same equation in longitude and latitude has a drift without bound at the poles,
    which throws particles that a step has put next to one far away. Closer to a pole
    than `pole`, $1 / \cos\phi$ is that at this distance.

    Reference: Ikeda and Watanabe, *Stochastic Differential Equations and Diffusion
    Processes* (1989), chapter V.

    Attributes:
        diffusivity: A `Diffusivity`, eastward, northward and along $z$, or a callable
            `K(t, x)` of places in degrees.
        radius: Of the sphere, in metres.
        pole: In degrees, as of `OnSphere`.
    """

    diffusivity: Any
    radius: Float[Array, ""]
    pole: Float[Array, ""]

    def scale(self, x: Float[Array, " ndim"]) -> Float[Array, " ndim"]:
        """Returns what one m^2/s is worth along each axis, in square degrees of arc.

        Args:
            x: The place.
        """
        square = (jnp.degrees(1 / self.radius) ** 2).astype(x.dtype)
        return jnp.ones_like(x).at[:2].set(square)

    def degrees_in_one_of_arc(self, x: Float[Array, " ndim"]) -> Float[Array, " ndim"]:
        """Returns how much each coordinate changes with a degree of arc along it.

        Args:
            x: The place, whose latitude may be beyond a pole.
        """
        return jnp.ones_like(x).at[0].set(jax.lax.rsqrt(self._cosine_squared(x)))

    def drift(self, x: Float[Array, " ndim"], value: Array) -> Float[Array, " ndim"]:
        """Returns the part of the drift that the meridians make, in degrees of arc.

        Args:
            x: The place.
            value: The diffusivity there along each axis, in square degrees per second.
        """
        latitude = jnp.radians(x[1])
        tangent = jnp.sin(latitude) * jnp.cos(latitude) / self._cosine_squared(x)
        north = (value[0] - value[1]) * jnp.radians(tangent)
        return jnp.zeros_like(x).at[1].set(north)

    def _cosine_squared(self, x: Array) -> Array:
        nearest = jnp.sin(jnp.radians(self.pole)).astype(x.dtype)
        return jnp.maximum(jnp.cos(jnp.radians(x[1])) ** 2, nearest**2)


def as_diffusivity(diffusivity: Any, ndim: int, sphere: OnSphere | None = None) -> Any:
    """Returns what was given if it is a function of place, else a `Diffusivity`.

    Args:
        diffusivity: A number, one for each axis, or a callable `K(t, x)`.
        ndim: Number of axes.
        sphere: On which particles move, if they do.

    Returns:
        The diffusivity, as a `DiffusivityOnSphere` if there is a sphere.

    Raises:
        ArgumentError: If it is not one of them.
    """
    if isinstance(diffusivity, type):
        raise ArgumentError(
            "`diffusivity` must be a number, one for each axis, or a function "
            f"`K(t, x)`, but is {diffusivity!r}."
        )
    if callable(diffusivity):
        check_takes(diffusivity, "diffusivity", "K(t, x)")
    else:
        diffusivity = _constant(diffusivity, ndim)
    if sphere is None:
        return diffusivity
    return DiffusivityOnSphere(diffusivity, sphere.radius, sphere.pole)


def _constant(diffusivity: Any, ndim: int) -> Diffusivity:
    if not isinstance(diffusivity, Diffusivity):
        check_numbers(diffusivity, "diffusivity")
        diffusivity = Diffusivity(diffusivity)
    if diffusivity.value.shape not in ((), (ndim,)):
        raise ArgumentError(
            f"`diffusivity` must be one number, or one for each of {ndim} coordinates, "
            f"but has shape {diffusivity.value.shape}."
        )
    return diffusivity


class Local(NamedTuple):
    """What diffusion is at one place; on a sphere along its arcs, in degrees of those.

    Attributes:
        value: K along each axis; NaN where it is negative.
        slope: The derivative of each along its axis.
        drift: What is added to the drift beyond `slope`.
    """

    value: Float[Array, " ndim"]
    slope: Float[Array, " ndim"]
    drift: Float[Array, " ndim"]


def status_of(
    diffusivity: Any, t: Float[Array, ""], x: Float[Array, " ndim"]
) -> Int[Array, ""]:
    """Returns the status of a particle where the data of a diffusivity end.

    Args:
        diffusivity: As `as_diffusivity` returns it, or `None`.
        t: The time, in seconds.
        x: The place.
    """
    if isinstance(diffusivity, DiffusivityOnSphere):
        diffusivity, x = diffusivity.diffusivity, unfolded(x)[0]
    if not isinstance(diffusivity, AbstractField):
        return code(ParticleStatus.ALIVE)
    return diffusivity.look(t, x, diffusivity.start(x)).status


def local(diffusivity: Any, t: Float[Array, ""], x: Float[Array, " ndim"]) -> Local:
    """Looks at a diffusivity at one place.

    Args:
        diffusivity: As `as_diffusivity` returns it.
        t: The time, in seconds.
        x: The place.

    Raises:
        ArgumentError: If a callable returns neither one number nor one for each axis.
    """
    on_sphere = isinstance(diffusivity, DiffusivityOnSphere)

    def along(x):
        value = jnp.broadcast_to(_given(diffusivity, t, x), x.shape)
        return value * diffusivity.scale(x) if on_sphere else value

    value, none = along(x), jnp.zeros_like(x)
    constant = isinstance(_what_is_given(diffusivity), Diffusivity)
    slope = none if constant else jnp.diagonal(jax.jacfwd(along)(x))
    if not on_sphere:
        return Local(value, slope, none)
    slope = slope * diffusivity.degrees_in_one_of_arc(x)
    return Local(value, slope, diffusivity.drift(x, value))


def displaced(
    diffusivity: Any, x: Float[Array, " ndim"], way: Float[Array, " ndim"]
) -> Float[Array, " ndim"]:
    """Returns where diffusion leads to: straight on, on a sphere on a great circle.

    NaN, without a derivative, where a number is not finite.

    Args:
        diffusivity: As `as_diffusivity` returns it.
        x: The place.
        way: How far along each axis, as of `Local`.
    """
    sound = jnp.all(jnp.isfinite(x) & jnp.isfinite(way))
    x, way = jnp.where(sound, x, 0), jnp.where(sound, way, 0)
    if isinstance(diffusivity, DiffusivityOnSphere):
        way = jnp.concatenate([great_circle(x[1], way[:2]), way[2:]])
    return jnp.where(sound, x + way, jnp.nan)


def by_axis(
    diffusivity: Any, t: Float[Array, ""], x: Float[Array, " ndim"]
) -> Float[Array, " ndim"] | None:
    """Returns K in m^2/s along each axis, `None` where it is one number.

    Args:
        diffusivity: As `as_diffusivity` returns it.
        t: The time, in seconds.
        x: The place.
    """
    shape = jax.eval_shape(lambda t, x: _given(diffusivity, t, x), t, x)
    return _given(diffusivity, t, x) if shape.ndim else None


def _what_is_given(diffusivity: Any) -> Any:
    on_sphere = isinstance(diffusivity, DiffusivityOnSphere)
    return diffusivity.diffusivity if on_sphere else diffusivity


def _given(diffusivity: Any, t: Float[Array, ""], x: Float[Array, " ndim"]) -> Array:
    """Returns K in m^2/s, one number or one for each axis; NaN where it is negative."""
    given = _what_is_given(diffusivity)
    if isinstance(given, Diffusivity):
        return given.value.astype(x.dtype)
    place = x if given is diffusivity else unfolded(x)[0]
    if isinstance(given, AbstractField):
        value = given.look(t, place, given.start(place)).value
    else:
        with called_as("diffusivity", "K(t, x)", x):
            value = returned(given(t, place), "diffusivity", x.dtype)
    check_components(value, x, "What `diffusivity` returns", scalar=True)
    value = value.astype(x.dtype)
    return jnp.where(value >= 0, value, jnp.nan)
