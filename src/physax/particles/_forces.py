"""Forces on particles: weight, drag, and light."""

from abc import abstractmethod
from collections.abc import Sequence
from math import pi
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Complex, Float, Int, Num

from .._checks import (
    ArgumentError,
    as_array,
    at_once,
    forgotten,
    positive,
    real,
    single,
)
from .._products import matmul
from .._written_for_jax import check_takes
from ..grid import CubicHermite
from ..units import EPSILON_0
from ._callables import called_as, returned
from ._fields import AbstractField, Look, always, as_field, check_components
from ._gridded import GriddedField
from ._state import code
from ._status import ParticleStatus


class AbstractForce(eqx.Module):
    """A force that knows where it has data.

    Any function `F(t, x, v)` may be a force; a subclass of this tells in addition where
    the fields behind it end, and so does the particle there.
    """

    @abstractmethod
    def look(
        self, t: Float[Array, ""], x: Float[Array, " ndim"], v: Float[Array, " ndim"]
    ) -> Look:
        """Evaluates the force, in newtons; the memory is empty.

        Args:
            t: The time, in seconds.
            x: The position.
            v: The velocity of the particle.
        """

    @abstractmethod
    def span(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Returns the first and the last time that may be asked for, in seconds."""

    def __call__(
        self, t: Float[Array, ""], x: Float[Array, " ndim"], v: Float[Array, " ndim"]
    ) -> Float[Array, " ndim"]:
        """Returns the force, NaN where there are no data."""
        seen = self.look(t, x, v)
        return jnp.where(seen.status == code(ParticleStatus.ALIVE), seen.value, jnp.nan)


def as_forces(forces: Any) -> tuple[Any, ...]:
    """Returns several forces.

    Args:
        forces: Forces, or callables `F(t, x, v)`.

    Raises:
        ArgumentError: If they are not a sequence, or one is neither.
    """
    if not isinstance(forces, Sequence):
        raise ArgumentError(
            "`forces` must be a list of forces or functions, as `[force]`, but is a "
            f"{type(forces).__name__}."
        )
    for number, force in enumerate(forces):
        if not callable(force) or isinstance(force, type):
            raise ArgumentError(
                f"`forces[{number}]` must be a force or a function `F(t, x, v)`, but "
                f"is {force!r}.{forgotten(force)}"
            )
        if not isinstance(force, AbstractForce):
            check_takes(force, f"forces[{number}]", "F(t, x, v)")
    return tuple(forces)


def total_force(
    forces: Sequence[Any],
    t: Float[Array, ""],
    x: Float[Array, " ndim"],
    v: Float[Array, " ndim"],
) -> tuple[Float[Array, " ndim"], Int[Array, ""]]:
    """Returns the sum of forces, and the status where their data end.

    Args:
        forces: Forces, or callables `F(t, x, v)`.
        t: The time, in seconds.
        x: The position.
        v: The velocity of the particle.
    """
    total, status = jnp.zeros_like(x), code(ParticleStatus.ALIVE)
    for number, force in enumerate(forces):
        if isinstance(force, AbstractForce):
            seen = force.look(t, x, v)
            pull, status = seen.value, jnp.maximum(status, seen.status)
        else:
            with called_as(f"forces[{number}]", "F(t, x, v)", x):
                pull = returned(force(t, x, v), f"forces[{number}]", x.dtype)
        name = f"What `forces[{number}]` returns"
        check_components(pull, x, name, scalar=True)
        total = total + pull
    return total.astype(x.dtype), status


def span_of_forces(
    forces: Sequence[Any], *others: AbstractField
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Returns the times that may be asked of all forces and of other fields.

    Args:
        forces: Forces, or callables `F(t, x, v)`.
        *others: Fields.
    """
    known = [force for force in forces if isinstance(force, AbstractForce)]
    spans = [always(), *(part.span() for part in (*known, *others))]
    first = jnp.stack([low for low, _ in spans]).max()
    return first, jnp.stack([high for _, high in spans]).min()


class Gravity(AbstractForce):
    r"""Weight, $F = m g$.

    Attributes:
        mass: $m$, in kg; for a body in a fluid its mass less that of the
            fluid in its place, negative where it rises.
        acceleration: $g$ along each axis, in m/s^2.
    """

    mass: Float[Array, ""] = eqx.field(
        converter=lambda x: single(real(x, "mass"), "mass")
    )
    acceleration: Float[Array, " ndim"] = eqx.field(
        converter=lambda x: real(x, "acceleration")
    )

    def look(self, t, x, v):
        del t, v
        check_components(self.acceleration, x, "`acceleration`")
        weight = (self.mass * self.acceleration).astype(x.dtype)
        return Look(weight, (), code(ParticleStatus.ALIVE))

    def span(self):
        return always()


class StokesDrag(AbstractForce):
    r"""The drag of a viscous fluid, $F = \gamma (u(t, x) - v)$.

    A mesh is searched anew at each place: forces have no memory.

    Attributes:
        velocity: The flow $u$, a field or a callable `u(t, x)`.
        coefficient: $\gamma$, in N s/m, positive; $6 \pi \eta a$ for a sphere of radius
            $a$ in a fluid of viscosity $\eta$.
    """

    velocity: AbstractField = eqx.field(converter=as_field)
    coefficient: Float[Array, ""] = eqx.field(
        converter=lambda x: single(positive(x, "coefficient"), "coefficient")
    )

    def look(self, t, x, v):
        seen = self.velocity.look(t, x, self.velocity.start(x))
        check_components(seen.value, x, "What the `velocity` of a drag returns")
        return Look(self.coefficient * (seen.value - v), (), seen.status)

    def span(self):
        return self.velocity.span()


def _as_complex(x: Any, name: str) -> Complex[Array, ""]:
    x = single(as_array(x, name), name)
    with at_once(x):
        return x.astype(jnp.result_type(x, jnp.complex64))


class OpticalForce(AbstractForce):
    r"""The force of light on a particle far smaller than the wavelength.

    With the amplitude $E$ of the field $\mathrm{Re}(E e^{-i \omega t})$ and the induced
    dipole $\alpha E$, the average over a period is

    $$F_i = \frac{1}{2} \mathrm{Re} \Bigl( \alpha \sum_j E_j \, \partial_i E_j^*
    \Bigr).$$

    The real part of $\alpha$ pulls to where light is strong, with the potential
    $-\mathrm{Re}(\alpha) |E|^2 / 4$; the imaginary part, of absorption and of light
    that the particle scatters (`sphere_polarizability`), pushes along with the wave. In
    a plane wave that is $n \sigma I / c$ with the cross-section of extinction, $\sigma
    = k\, \mathrm{Im}(\alpha) / \epsilon_m$.

    Reference: Chaumet and Nieto-Vesperinas, *Time-averaged total force on a dipolar
    sphere in an electromagnetic field*, Optics Letters 25, 1065 (2000).

    Attributes:
        field: $E$ in V/m: a field or a callable `E(t, x)` of complex components, where
            the time is for slow changes. The force has jumps where its slope has: take
            `CubicHermite()` for samples, as `of` does.
        polarizability: $\alpha / \epsilon_0$, in m^3: the numbers of SI would vanish in
            single precision.
    """

    field: AbstractField = eqx.field(converter=lambda field: as_field(field, "field"))
    polarizability: Complex[Array, ""] = eqx.field(
        converter=lambda x: _as_complex(x, "polarizability")
    )

    @classmethod
    def of(
        cls,
        values: Num[ArrayLike, "..."],
        axes: Sequence[Float[ArrayLike, " _"]],
        polarizability: Num[ArrayLike, ""],
        **options: Any,
    ) -> "OpticalForce":
        """Makes the force of samples of the field on a grid.

        Args:
            values: Complex amplitudes in V/m, of shape `[*nodes, components]`; a single
                component may go without its axis. All components lie on the nodes.
            axes: For each axis of space the positions of the nodes, in metres.
            polarizability: As of the force.
            **options: As for `GriddedField`, for example `outside=Fill(0.0)`; by
                default particles that leave the grid end.
        """
        options = {"method": CubicHermite(), **options}
        return cls(GriddedField(values, axes, **options), polarizability)

    def look(self, t, x, v):
        del v

        def amplitude(x):
            seen = self.field.look(t, x, self.field.start(x))
            value = jnp.atleast_1d(seen.value)
            return value, (value, seen.status)

        slopes, (value, status) = jax.jacfwd(amplitude, has_aux=True)(x)
        # This order keeps all numbers within the range of single precision.
        work = jnp.real(self.polarizability * (matmul(value, jnp.conj(slopes))))
        return Look((0.5 * EPSILON_0 * work).astype(x.dtype), (), status)

    def span(self):
        return self.field.span()


def sphere_polarizability(
    radius: Float[ArrayLike, ""],
    permittivity: Num[ArrayLike, ""],
    wavelength: Float[ArrayLike, ""],
    medium: Float[ArrayLike, ""] = 1.0,
) -> Complex[Array, ""]:
    r"""Returns the polarizability $\alpha / \epsilon_0$ of a small sphere, in m^3.

    With that of Clausius and Mossotti, $\alpha_0 = 4 \pi a^3 \epsilon_m (\epsilon_p -
    \epsilon_m) / (\epsilon_p + 2 \epsilon_m)$, and the light that the sphere scatters,

    $$\alpha = \frac{\alpha_0}{1 - i k^3 \alpha_0 / (6 \pi \epsilon_m)},$$

    for fields $\propto e^{-i \omega t}$: absorption is a positive imaginary part.

    Reference: Draine, Astrophysical Journal 333, 848 (1988).

    Args:
        radius: $a$, in metres, far below the wavelength in the medium.
        permittivity: $\epsilon_p / \epsilon_0$ of the sphere.
        wavelength: In vacuum, in metres.
        medium: $\epsilon_m / \epsilon_0$ around it.
    """
    radius = positive(radius, "radius")
    medium = positive(medium, "medium")
    permittivity = as_array(permittivity, "permittivity")
    size = 2 * pi * jnp.sqrt(medium) * radius / positive(wavelength, "wavelength")
    contrast = (permittivity - medium) / (permittivity + 2 * medium)
    corrected = contrast / (1 - (2j / 3) * size**3 * contrast)
    return 4 * pi * radius**3 * medium * corrected
