"""Poles: how the polarisation of a dispersive material follows the field."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Complex, Float, Num

from .._checks import ArgumentError, as_array, at_once, check, single, traced
from .._products import matmul


TAU = 2 * np.pi


class Rates(eqx.Module):
    r"""A pole as a linear system: $\dot x = A x + b E$, $\dot P = a (r x + \rho E)$.

    Attributes:
        amplitude: The factor $a$.
        matrix: $A$ in 1/s.
        inflow: $b$ in 1/s.
        outflow: $r$ in 1/s.
        direct: $\rho$ in 1/s.
    """

    amplitude: Float[Array, ""]
    matrix: Float[Array, "states states"]
    inflow: Float[Array, " states"]
    outflow: Float[Array, " states"]
    direct: Float[Array, ""]


class AbstractPole(eqx.Module):
    """A part of the susceptibility of a material."""

    @abstractmethod
    def susceptibility(
        self, frequency: Num[ArrayLike, "*shape"]
    ) -> Complex[Array, "*shape"]:
        """Returns what the pole adds to the relative permittivity.

        Args:
            frequency: In Hz; complex for fields that grow or decay.

        Returns:
            A complex number for each; losses are positive imaginary parts.
        """

    @abstractmethod
    def rates(self, dt: Float[Array, ""]) -> Rates:
        """Returns the pole as a linear system, in units that suit the time step.

        Args:
            dt: Time step in seconds.
        """

    @abstractmethod
    def scale(self) -> Float[Array, ""]:
        """Returns the frequency in Hz about which the pole acts."""


def _real(
    name: str, least: float | None = None, *, above: bool = False
) -> Callable[[ArrayLike], Array]:
    """Makes a converter to one real number, finite and not below a limit."""
    limit = "" if least is None else f" and {'above' if above else 'at least'} {least}"

    def convert(x):
        with at_once(x):
            x = as_array(x, name)
            if x.shape != () or jnp.iscomplexobj(x):
                raise ArgumentError(
                    f"`{name}` must be one real number, but has shape {x.shape} and "
                    f"dtype {x.dtype}."
                )
            good = jnp.isfinite(x)
            if least is not None:
                good &= (x > least) if above else (x >= least)
            return check(x, good, f"`{name}` must be finite{limit}")

    return convert


class Lorentz(AbstractPole):
    r"""A resonance: $\chi = \Delta\epsilon f_0^2 / (f_0^2 - f^2 - i f \gamma)$.

    Without damping it is a term of a Sellmeier formula.

    Attributes:
        strength: $\Delta\epsilon$, what it adds to the static permittivity.
        frequency: $f_0$ in Hz.
        damping: $\gamma$ in Hz, the width of the line.

    Raises:
        ArgumentError: If a number is not finite, or frequency or damping is negative.
    """

    strength: Float[Array, ""] = eqx.field(converter=_real("strength"))
    frequency: Float[Array, ""] = eqx.field(
        converter=_real("frequency", 0.0, above=True)
    )
    damping: Float[Array, ""] = eqx.field(converter=_real("damping", 0.0), default=0.0)

    def susceptibility(self, frequency):
        f, f0 = as_array(frequency, "frequency"), self.frequency
        # In units of the resonance: squares of frequencies overflow float32.
        x, loss = f / f0, self.damping / f0
        return self.strength / (1 - x**2 - 1j * x * loss)

    def rates(self, dt):
        del dt
        w, zero = TAU * self.frequency, jnp.zeros_like(self.frequency)
        return Rates(
            self.strength,
            jnp.stack([jnp.stack([zero, w]), jnp.stack([-w, -TAU * self.damping])]),
            jnp.stack([zero, w]),
            jnp.stack([zero, w]),
            zero,
        )

    def scale(self):
        return self.frequency


class Drude(AbstractPole):
    r"""Free charges: $\chi = -f_p^2 / (f^2 + i f \gamma)$.

    Attributes:
        frequency: The plasma frequency $f_p$ in Hz.
        damping: $\gamma$ in Hz.

    Raises:
        ArgumentError: If a number is not finite or negative.
    """

    frequency: Float[Array, ""] = eqx.field(
        converter=_real("frequency", 0.0, above=True)
    )
    damping: Float[Array, ""] = eqx.field(converter=_real("damping", 0.0), default=0.0)

    def susceptibility(self, frequency):
        x = as_array(frequency, "frequency") / self.frequency
        return -1 / (x * (x + 1j * self.damping / self.frequency))

    def rates(self, dt):
        # The state is the velocity of the charges; their place has no effect.
        one = 1 / dt
        return Rates(
            (TAU * self.frequency * dt) ** 2,
            -TAU * self.damping[None, None],
            one[None],
            one[None],
            jnp.zeros_like(dt),
        )

    def scale(self):
        return self.frequency


class Debye(AbstractPole):
    r"""Relaxation: $\chi = \Delta\epsilon / (1 - i \omega \tau)$.

    Attributes:
        strength: $\Delta\epsilon$, what it adds to the static permittivity.
        time: $\tau$ in seconds.

    Raises:
        ArgumentError: If a number is not finite or the time not positive.
    """

    strength: Float[Array, ""] = eqx.field(converter=_real("strength"))
    time: Float[Array, ""] = eqx.field(converter=_real("time", 0.0, above=True))

    def susceptibility(self, frequency):
        f = as_array(frequency, "frequency")
        return self.strength / (1 - 1j * TAU * f * self.time)

    def rates(self, dt):
        del dt
        rate = 1 / self.time
        return Rates(self.strength, -rate[None, None], rate[None], -rate[None], rate)

    def scale(self):
        return 1 / (TAU * self.time)


def _complex(name: str) -> Callable[[ArrayLike], Array]:
    def convert(x):
        with at_once(x):
            x = single(as_array(x, name), name)
            if not jnp.iscomplexobj(x):
                x = x.astype(jnp.result_type(x, jnp.complex64))
            return check(x, jnp.isfinite(x), f"`{name}` must be finite")

    return convert


class PoleResidue(AbstractPole):
    r"""A pair of poles: $\chi = -c / (i \omega + a) - c^* / (i \omega + a^*)$.

    Every passive material is a sum of such pairs. Reference: Han, Dutton and Fan,
    *Model dispersive media in finite-difference time-domain method with complex
    conjugate pole-residue pairs*, IEEE Microwave and Wireless Components Letters 16,
    119 (2006).

    Attributes:
        pole: $a$ in rad/s; its real part is the negative damping.
        residue: $c$ in rad/s.

    Raises:
        ArgumentError: If a number is not finite, or the pole grows (a real part above
            0).
    """

    pole: Complex[Array, ""] = eqx.field(converter=_complex("pole"))
    residue: Complex[Array, ""] = eqx.field(converter=_complex("residue"))

    def __check_init__(self):
        if isinstance(self.pole, jax.core.Tracer):
            return
        # By NumPy: inside `jit` the real part of what is known would be traced.
        pole = complex(np.asarray(self.pole))
        if pole.real > 0:
            raise ArgumentError(
                "`pole` must have a real part of at most 0, or the medium is unstable, "
                f"but is {pole:.6g} rad/s. Mirror it, and fit the residues again."
            )

    def susceptibility(self, frequency):
        iw = 1j * TAU * as_array(frequency, "frequency")
        pair = [(self.pole, self.residue), (self.pole.conj(), self.residue.conj())]
        return -sum(c / (iw + a) for a, c in pair)

    def rates(self, dt):
        # Known on the host it was refused; inside `jit` nothing can be raised.
        a = jnp.where(self.pole.real <= 0, self.pole, jnp.nan)
        size = jnp.abs(self.residue)
        # Not 0 where the residue is: the derivative is then that of `unit`.
        size = jnp.where(size > 0, size, 1)
        unit = self.residue / size
        # The states are those of a residue of 1 / dt, which suits poles at 0, too.
        return Rates(
            size * dt,
            jnp.stack([jnp.stack([a.real, -a.imag]), jnp.stack([a.imag, a.real])]),
            jnp.stack([unit.real, unit.imag]) / dt,
            2 * jnp.stack([a.real, -a.imag]),
            2 * unit.real / dt,
        )

    def scale(self):
        return jnp.abs(self.pole) / TAU


class Recursion(eqx.Module):
    r"""A pole stepped by the trapezoidal rule.

    $x^+ = M x + v (E^+ + E)$ and $P^+ - P = a (w x + B (E^+ + E))$.

    Attributes:
        amplitude: $a$.
        matrix: $M$.
        inflow: $v$.
        outflow: $w$.
        inertia: $B$, by which the row of the field is heavier.
    """

    amplitude: Float[Array, ""]
    matrix: Float[Array, "states states"]
    inflow: Float[Array, " states"]
    outflow: Float[Array, " states"]
    inertia: Float[Array, ""]


def recursion(pole: AbstractPole, dt: Float[Array, ""]) -> Recursion:
    """Steps a pole by the trapezoidal rule.

    The rule neither adds energy nor lowers the Courant limit.

    Args:
        pole: The pole.
        dt: Time step in seconds.

    Returns:
        The recursion.
    """
    one = pole.rates(dt)
    unit = jnp.eye(one.matrix.shape[0], dtype=one.matrix.dtype)
    half = dt / 2
    # The inverse written out: `solve` would bring a kernel of LAPACK into the program.
    inverse = _inverse(unit - half * one.matrix)
    matrix = matmul(inverse, unit + half * one.matrix)
    inflow = matmul(inverse, half * one.inflow)
    return Recursion(
        one.amplitude,
        matrix,
        inflow,
        half * matmul(one.outflow, matrix + unit),
        half * (matmul(one.outflow, inflow) + one.direct),
    )


def _inverse(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Inverts a matrix of one or two rows."""
    if matrix.shape[0] == 1:
        return 1 / matrix
    if matrix.shape[0] > 2:
        raise ArgumentError(
            f"`rates` of a pole must have 1 or 2 states, but have {matrix.shape[0]}. "
            "Write it as a sum of poles."
        )
    (a, b), (c, d) = matrix
    turned = jnp.stack([jnp.stack([d, -b]), jnp.stack([-c, a])])
    return turned / (a * d - b * c)


def susceptibility(
    poles: Sequence[AbstractPole], frequency: Num[ArrayLike, "*shape"]
) -> Num[Array, "*shape"]:
    """Returns the sum of what poles add to the relative permittivity.

    Args:
        poles: The poles, or none.
        frequency: In Hz.

    Returns:
        A complex number for each frequency.
    """
    f = as_array(frequency, "frequency")
    total = jnp.zeros(f.shape, jnp.result_type(f, jnp.complex64))
    for pole in poles:
        total = total + pole.susceptibility(f)
    return total


def as_poles(value: Any) -> tuple[AbstractPole, ...]:
    """Returns one pole or several as a tuple."""
    poles = (value,) if isinstance(value, AbstractPole) else value
    if not isinstance(poles, tuple | list) or not all(
        isinstance(one, AbstractPole) for one in poles
    ):
        raise ArgumentError(
            f"`poles` must be a pole or a tuple of them, but is a "
            f"{type(value).__name__}. Those of a `Material` are its `poles`."
        )
    return tuple(poles)


# How far the loss may be negative beside the largest susceptibility: fits and float32
# round.
_ROUNDING = 1e-5


def check_poles(poles: Sequence[AbstractPole], where: str = "") -> None:
    """Refuses poles that together amplify at some frequency.

    Args:
        poles: The poles.
        where: Of which axis they are, for the message.

    Raises:
        ArgumentError: Tells the frequency at which the loss is most negative.
    """
    if not poles or traced(poles):
        return
    with jax.ensure_compile_time_eval():
        scales = np.asarray([float(pole.scale()) for pole in poles])
        # A pole at 0 has none of its own; it is alike everywhere.
        scales = np.where(scales > 0, scales, 1e14)
        reach = np.geomspace(1e-3, 1e3, 601)
        near = 1 + np.linspace(-0.1, 0.1, 201)
        frequencies = np.unique(np.outer(scales, np.concatenate([reach, near])))
        # Fields that grow a little: on its frequency an undamped resonance is infinite,
        # and without loss beside it, whatever its sign. Passive is where f chi has a
        # positive imaginary part.
        growth = 1 + 1e-3j
        found = susceptibility(poles, frequencies * growth)
        chi = growth * np.asarray(found, np.complex128)
        real = np.asarray(susceptibility(poles, frequencies), np.complex128)
    real = np.where(np.isfinite(real), real, 0)
    frequencies, chi = np.tile(frequencies, 2), np.concatenate([real, chi])
    loss = np.imag(chi)
    worst = int(np.argmin(loss / (1 + np.abs(chi))))
    if loss[worst] < -_ROUNDING * (1 + np.abs(chi[worst])):
        raise ArgumentError(
            f"`poles`{where} must not amplify, but the imaginary part of their "
            f"susceptibility is {loss[worst]:.3g} at {frequencies[worst] / 1e12:.6g} "
            "THz. Give a positive strength, or fit again with passivity enforced."
        )
