"""How particles respond to fields and forces: equations of motion."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._checks import ArgumentError, forgotten, optional, positive, real, single
from .._written_for_jax import check_takes
from ._callables import called_as, returned
from ._fields import AbstractField, Look, as_field, check_components
from ._forces import as_forces, span_of_forces, total_force


class Entry(NamedTuple):
    """How a particle begins.

    Attributes:
        y: What is integrated.
        memory: What the fields remember.
    """

    y: Float[Array, " width"]
    memory: PyTree


class AbstractMotion(eqx.Module):
    """An equation of motion for one particle, of first or second order in time.

    Attributes:
        second_order: Whether the particle has a velocity of its own, which then follows
            the position in what is integrated.
        on_sphere: Whether the equation also holds where positions are degrees, as on an
            `OnSphere`, whose velocity is in degrees per second; if not, `track` refuses
            the motion there. `False` unless a motion says otherwise.
    """

    second_order: eqx.AbstractClassVar[bool]
    on_sphere: ClassVar[bool] = False

    @abstractmethod
    def enter(self, t: Float[Array, ""], x: Float[Array, " ndim"]) -> Entry:
        """Returns what is integrated, for a particle that enters at a place.

        Args:
            t: The time, in seconds.
            x: The position.
        """

    @abstractmethod
    def rate(
        self, t: Float[Array, ""], y: Float[Array, " width"], memory: PyTree
    ) -> Look:
        """Returns the derivative by time of what is integrated.

        Args:
            t: The time, in seconds.
            y: What is integrated.
            memory: What the fields remember.
        """

    @abstractmethod
    def span(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Returns the first and the last time that may be asked for, in seconds."""


class Carried(AbstractMotion):
    r"""A particle that follows the flow: $\dot x = u(t, x)$.

    Attributes:
        velocity: The flow, a field or a callable `u(t, x)`.
    """

    second_order: ClassVar[bool] = False
    on_sphere: ClassVar[bool] = True
    velocity: AbstractField = eqx.field(converter=as_field)

    def enter(self, t, x):
        del t
        return Entry(x, self.velocity.start(x))

    def rate(self, t, y, memory):
        return self.velocity.look(t, y, memory)

    def span(self):
        return self.velocity.span()


Force = Callable[[Any, Any, Any], Any]


class Overdamped(AbstractMotion):
    r"""A small particle pulled by forces through a viscous fluid.

    $\dot x = u(t, x) + \mu \sum F(t, x, u)$ with the mobility $\mu$ in m/(N s), for a
    sphere $1 / (6 \pi \eta a)$. Noise of temperature $T$ needs the diffusivity
    $\mu k_B T$, given to `track`.

    Attributes:
        velocity: The flow $u$, a field or a callable `u(t, x)`.
        forces: `AbstractForce`s or callables `F(t, x, v)`, in newtons.
        mobility: $\mu$, positive.
    """

    second_order: ClassVar[bool] = False
    velocity: AbstractField = eqx.field(converter=as_field)
    forces: tuple[Force, ...] = eqx.field(converter=as_forces)
    mobility: Float[Array, ""] = eqx.field(
        converter=lambda x: single(positive(x, "mobility"), "mobility")
    )

    def enter(self, t, x):
        del t
        return Entry(x, self.velocity.start(x))

    def rate(self, t, y, memory):
        seen = self.velocity.look(t, y, memory)
        check_components(seen.value, y, "What `velocity` returns")
        pull, status = total_force(self.forces, t, y, seen.value)
        status = jnp.maximum(seen.status, status)
        return Look(seen.value + self.mobility * pull, seen.memory, status)

    def span(self):
        return span_of_forces(self.forces, self.velocity)


class Newtonian(AbstractMotion):
    r"""A particle of some mass under forces: $m \dot v = \sum F(t, x, v)$.

    Attributes:
        forces: `AbstractForce`s or callables `F(t, x, v)`, in newtons.
        mass: $m$, in kg, positive.
        velocity: Callable `v(t, x)` with which particles begin; at rest by default.
    """

    second_order: ClassVar[bool] = True
    forces: tuple[Force, ...] = eqx.field(converter=as_forces)
    mass: Float[Array, ""] = eqx.field(
        converter=lambda x: single(positive(x, "mass"), "mass")
    )
    velocity: Any = None

    def __check_init__(self):
        made = callable(self.velocity) and not isinstance(self.velocity, type)
        if self.velocity is not None and not made:
            raise ArgumentError(
                "`velocity` must be a function of time and place, `v(t, x)`, but is "
                f"{self.velocity!r}.{forgotten(self.velocity)}"
            )
        if callable(self.velocity):
            check_takes(self.velocity, "velocity", "v(t, x)")

    def enter(self, t, x):
        v = jnp.zeros_like(x)
        if self.velocity is not None:
            with called_as("velocity", "v(t, x)", x):
                v = returned(self.velocity(t, x), "velocity", x.dtype)
        check_components(v, x, "What `velocity` returns")
        return Entry(jnp.concatenate([x, v]), ())

    def rate(self, t, y, memory):
        x, v = jnp.split(y, 2)
        pull, status = total_force(self.forces, t, x, v)
        push = (pull / self.mass).astype(v.dtype)
        return Look(jnp.concatenate([v, push]), memory, status)

    def span(self):
        return span_of_forces(self.forces)


class MaxeyRiley(AbstractMotion):
    r"""A small sphere in a flow: drag, added mass, pressure gradient and buoyancy.

    $$\Bigl(1 + \frac{1}{2 \beta}\Bigr) \dot v = \frac{3}{2 \beta} \frac{D u}{D t}
    - \frac{v - u}{\tau} + \Bigl(1 - \frac{1}{\beta}\Bigr) g$$

    with $\beta = \rho_p / \rho_f$ and Stokes' response time $\tau = 2 a^2 \rho_p / (9
    \mu)$. Without the history force, the Faxen corrections and lift; valid for particle
    Reynolds numbers below 1. Where $\tau$ is far shorter than the times of interest the
    equation is stiff: use an implicit solver of diffrax.

    Reference: Maxey and Riley, *Equation of motion for a small rigid sphere in a
    nonuniform flow*, Physics of Fluids 26, 883 (1983), with the material derivative of
    Auton, Hunt and Prud'homme, Journal of Fluid Mechanics 197, 241 (1988).

    Attributes:
        velocity: The flow $u$, a field or a callable `u(t, x)`.
        response_time: $\tau$, in seconds, positive.
        density_ratio: $\beta$, positive; infinite for drag and weight alone.
        gravity: $g$, in m/s^2, along each axis; none by default.
        relative_velocity: The velocity of particles over that of the flow when they
            begin; 0 by default.
    """

    second_order: ClassVar[bool] = True
    velocity: AbstractField = eqx.field(converter=as_field)
    response_time: Float[Array, ""] = eqx.field(
        converter=lambda x: single(positive(x, "response_time"), "response_time")
    )
    density_ratio: Float[Array, ""] = eqx.field(
        converter=lambda x: single(positive(x, "density_ratio"), "density_ratio"),
        default=jnp.inf,
    )
    gravity: Float[Array, " ndim"] | None = eqx.field(
        converter=optional(lambda x: real(x, "gravity")), default=None
    )
    relative_velocity: Float[Array, "..."] = eqx.field(
        converter=lambda x: real(x, "relative_velocity"), default=0.0
    )

    def enter(self, t, x):
        seen = self.velocity.look(t, x, self.velocity.start(x))
        check_components(seen.value, x, "What `velocity` returns")
        more = self.relative_velocity
        check_components(more, x, "`relative_velocity`", scalar=True)
        return Entry(jnp.concatenate([x, seen.value + more]), seen.memory)

    def rate(self, t, y, memory):
        x, v = jnp.split(y, 2)
        seen = self.velocity.look(t, x, memory)
        u, lightness = seen.value, 1 / self.density_ratio

        def flow(t, x):
            return self.velocity.look(t, x, memory).value

        t = jnp.asarray(t, x.dtype)
        material = jax.jvp(flow, (t, x), (jnp.ones_like(t), u))[1]
        push = 1.5 * lightness * material - (v - u) / self.response_time
        if self.gravity is not None:
            check_components(self.gravity, x, "`gravity`")
            push = push + (1 - lightness) * self.gravity
        push = push / (1 + lightness / 2)
        return Look(jnp.concatenate([v, push]), seen.memory, seen.status)

    def span(self):
        return self.velocity.span()


def as_motion(velocity: Any) -> AbstractMotion:
    """Returns a velocity as a motion.

    Args:
        velocity: A motion, a field, or a callable `u(t, x)`.

    Raises:
        ArgumentError: If it is not one of them.
    """
    return velocity if isinstance(velocity, AbstractMotion) else Carried(velocity)


def check_width(motion: AbstractMotion, t: Array, x: Array) -> None:
    """Raises unless the derivative of a motion matches what it integrates.

    Args:
        motion: The motion.
        t: A time.
        x: Positions of particles.

    Raises:
        ArgumentError: If it is of another shape, or complex.
    """

    def once(t, x):
        entry = motion.enter(t, x)
        return entry.y, motion.rate(t, entry.y, entry.memory).value

    one = jax.ShapeDtypeStruct(x.shape[1:], x.dtype)
    y, slope = eqx.filter_eval_shape(once, jnp.asarray(t, x.dtype), one)
    if jnp.issubdtype(slope.dtype, jnp.complexfloating):
        raise ArgumentError(
            f"`velocity` must return real numbers, but returns {slope.dtype}. Take "
            "the part you need, such as `.real`."
        )
    if y.shape != slope.shape:
        raise ArgumentError(
            f"`velocity` must return {y.size} components for positions of "
            f"{x.shape[1]} coordinates, but returns an array of shape {slope.shape}."
        )
