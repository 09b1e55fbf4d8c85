"""Emission of a dipole: power, local density of states and Purcell factor."""

from collections.abc import Mapping
from functools import partial, reduce

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Complex, Float, Num

from .._checks import ArgumentError, check, instance, same, traced, warn
from ..units import EPSILON_0, ETA_0, FEMTO, MU_0, SPEED_OF_LIGHT
from ._clock import Clock
from ._monitors import (
    AbstractMonitor,
    AbstractSpectralMonitor,
    Read,
    as_frequencies,
)
from ._port_medium import PortMedium
from ._pulses import AbstractPulse, GaussianPulse
from ._setup import Setup
from ._sources import AbstractSource, Dipole


# Part of the largest spectrum of a pulse below which rounding is all that is left.
_DARK = 1e-5


class Emission(eqx.Module):
    r"""What a dipole emits, from the field that acts back on it.

    With the spectra of the field and of the current moment, the radiation resistance is
    $R = -\mathrm{Re}(E / p)$, the power $P = \frac12 R\, |p|^2$ and the local density
    of states along the dipole $\rho = (4 / \pi)\, \epsilon P / |p|^2$: states per
    angular frequency and volume, $n^3 \omega^2 / 3 \pi^2 c^3$ in a homogeneous medium.
    In poles $\epsilon + \frac{\omega}{2} \partial_\omega \epsilon$ takes the place of
    $\epsilon$, and the group index that of one n. For magnetic dipoles H and the
    permeability stand for E and the permittivity.

    Reference: Oskooi and Johnson, chapter 4 of Taflove, Oskooi and Johnson (editors),
    *Advances in FDTD Computational Electrodynamics* (2013).

    Attributes:
        frequencies: In Hz.
        resistance: $R$ in ohm/m^2 (3-D), ohm/m (2-D) or ohm (1-D); of a magnetic dipole
            the conductance in S/m^2, S/m or S.
        homogeneous: The same in a homogeneous isotropic medium of the permittivity (or
            permeability) that its component has at the dipole, exactly.
        power: Spectral energy in W fs^2 (3-D), W fs^2/m (2-D), W fs^2/m^2 (1-D): equal
            to the flux through a surface around the dipole, if nothing absorbs in it.
        ldos: $\rho$ in s/m^3 (3-D), s/m^2 (2-D) or s/m (1-D).
        dipole: What decides how the dipole emits in a homogeneous medium, as `"electric
            dipole in 3-D"` or `"magnetic dipole along z in 2-D"`; `""` if not known.
    """

    frequencies: Float[Array, " freqs"]
    resistance: Float[Array, " freqs"]
    homogeneous: Float[Array, " freqs"]
    power: Float[Array, " freqs"]
    ldos: Float[Array, " freqs"]
    dipole: str = eqx.field(static=True, default="")


class EmissionMonitor(AbstractSpectralMonitor):
    """What a dipole of the simulation emits, at the very samples that it drives.

    The fields must have decayed when the run ends. All fields at the dipole count as
    its own: it must be the only source. Next to a mirror face it emits with its image;
    on a mirror the figures are those of the whole scene. In a medium that absorbs, by a
    conductivity or by poles, the power that its near field loses is counted, which
    grows without limit as cells shrink. In cylindrical coordinates the figures are the
    part of one m in those of the point at phi = 0: all of it on the axis, else to be
    summed over m from 0 to where the parts vanish, some k r.

    Attributes:
        dipole: The source, as given to the simulation, which compares both when it is
            built, if they are concrete.
        frequencies: In Hz; the result is NaN where the spectrum of the pulse is below
            1e-5 of its peak.

    Raises:
        ArgumentError: If `dipole` is not one, or a frequency is not positive.
    """

    dipole: Dipole = eqx.field(
        converter=lambda dipole: instance(
            dipole, "dipole", Dipole, "Give one of the sources."
        )
    )
    frequencies: Float[Array, " freqs"] = eqx.field(converter=as_frequencies)

    def locate(self, frame, what):
        places = self.dipole.locate(frame, what)
        name = self.dipole.component
        return tuple(
            Read(f"{name} {number}", name, place.box, place.weights, place.turns)
            for number, place in enumerate(places)
        )

    def finish(self, total, reads, setup):
        component = self.dipole.component
        electric = component[0] == "E"
        fields, media = [], []
        for read, share in zip(reads, _shares(reads), strict=True):
            field = total[read.key] if electric else total[read.key] / ETA_0
            weights = jnp.asarray(share, jnp.finfo(field.dtype).dtype)
            own = jnp.sum(field * weights, axis=range(1, field.ndim))
            fields.append(_onward(read, setup) * own)
            media.append(_medium(read, weights, self.frequencies, setup))
        seen = jnp.sum(jnp.stack(fields), axis=0)
        epsilon, mu, stored = (
            jnp.sum(jnp.stack(part), axis=0) for part in zip(*media, strict=True)
        )
        # Around an axis it is one part of a point.
        ndim = setup.grid.ndim if setup.components.m is None else 3
        moment, largest = _moment(self.dipole, self.frequencies, setup)
        # The quotient comes first: squares of spectra underflow in float32.
        resistance = -jnp.real(seen / moment)
        resistance = jnp.where(jnp.abs(moment) > _DARK * largest, resistance, jnp.nan)
        density = EPSILON_0 * stored if electric else MU_0 * mu
        return Emission(
            frequencies=self.frequencies,
            resistance=resistance,
            homogeneous=_homogeneous(component, ndim, self.frequencies, epsilon, mu),
            power=resistance * jnp.abs(moment / FEMTO) ** 2 / 2,
            ldos=2 / np.pi * density * resistance,
            dipole=_kind(component, ndim),
        )


def _shares(reads: tuple[Read, ...]) -> list[Float[np.ndarray, "..."]]:
    """Returns the share of each sample in the dipole, of all together one.

    On a mirror the image has the other half.
    """
    shares = [reduce(np.multiply.outer, read.weights, np.ones(())) for read in reads]
    whole = sum(np.sum(share) for share in shares)
    return [share / whole for share in shares]


def _onward(read: Read, setup: Setup) -> Num[ArrayLike, ""]:
    """Returns the phase from samples to the period of the dipole."""
    factor = 1.0
    for turns, phase in zip(read.turns, setup.phases, strict=True):
        if turns and phase is not None:
            factor = factor * (phase if turns > 0 else jnp.conj(phase))
    return factor


def _medium(
    read: Read,
    weights: Float[Array, "..."],
    frequencies: Float[Array, " freqs"],
    setup: Setup,
) -> tuple[Float[Array, "..."], Float[Array, "..."], Float[Array, "..."]]:
    r"""Returns the part of some samples in what fills the place of the dipole.

    Permittivity and permeability of its component, or the mean of the others, and
    $\epsilon + \frac{\omega}{2} \partial_\omega \epsilon$, all real parts.
    """
    shape, names = setup.grid.shape, setup.components.names
    found = PortMedium(setup.medium.near(read.box, shape), read.box, shape, setup.dt)

    def mean(value, kind):
        own = [n for n in names if n[0] == kind]
        own = [read.component] if read.component in own else own
        parts = [jnp.sum(jnp.real(value(name)) * weights) for name in own]
        return jnp.mean(jnp.stack(parts))

    def epsilon(frequency):
        return mean(partial(found.permittivity, frequency=frequency), "E")

    def stored(frequency):
        value, slope = jax.jvp(epsilon, (frequency,), (jnp.ones_like(frequency),))
        return value, value + frequency / 2 * slope

    values, energies = jax.vmap(stored)(frequencies)
    return values, mean(found.permeability, "H"), energies


def _moment(
    dipole: Dipole, frequencies: Float[Array, " freqs"], setup: Setup
) -> tuple[Complex[Array, " freqs"], Float[Array, ""]]:
    """Returns the spectrum of the moment as the run drives it, and a bound of it."""
    # An electric current acts between two values of E, a magnetic one of H.
    half_steps = 2 * jnp.arange(setup.steps) + (dipole.component[0] == "E")
    delay = jnp.zeros_like(setup.dt)
    pulse = jax.vmap(lambda h: dipole.pulse(Clock(h, setup.dt), delay))(half_steps)

    def transform(frequency):
        cycles = jax.vmap(lambda h: Clock(h, setup.dt).cycles(frequency))(half_steps)
        angle = 2 * jnp.pi * cycles
        parts = jnp.sum(pulse * jnp.cos(angle)), jnp.sum(pulse * jnp.sin(angle))
        return lax.complex(*parts)

    scale = dipole.moment * setup.dt
    bound = jnp.abs(scale) * jnp.sum(jnp.abs(pulse))
    return scale * lax.map(transform, frequencies), bound


def _homogeneous(
    component: str,
    ndim: int,
    frequencies: Float[Array, " freqs"],
    epsilon: Float[Array, " freqs"],
    mu: Float[Array, ""],
) -> Float[Array, " freqs"]:
    """Returns the resistance in an isotropic medium without boundaries."""
    impedance = ETA_0 * jnp.sqrt(mu / epsilon)
    scale = impedance if component[0] == "E" else 1 / impedance
    k = 2 * jnp.pi * frequencies / SPEED_OF_LIGHT * jnp.sqrt(mu * epsilon)
    if ndim == 1:
        return scale / 2 * jnp.ones_like(k)
    if ndim == 2:
        return scale * k / (4 if component[1] == "z" else 8)
    return scale * k**2 / (6 * jnp.pi)


def purcell(
    emission: Emission, reference: Emission | None = None
) -> Float[Array, " freqs"]:
    """Returns the Purcell factor: emission over that in a homogeneous medium.

    Args:
        emission: Of a dipole in a structure.
        reference: Of the same dipole on the same grid in a homogeneous medium, which
            has the errors of the cells in common. Without it the exact value of an
            isotropic medium like that at the dipole is used: give one in others. The
            index may be another, and in 1-D and 3-D the orientation.

    Returns:
        The factor at each frequency.

    Raises:
        ArgumentError: If the frequencies differ, one is not an `Emission`, or the
            reference is of another kind of dipole or number of dimensions.
    """
    remedy = "Give what an `EmissionMonitor` recorded."
    instance(emission, "emission", Emission, remedy)
    if reference is None:
        return emission.resistance / emission.homogeneous
    instance(reference, "reference", Emission, remedy)
    kinds = emission.dipole, reference.dipole
    if "" not in kinds and kinds[0] != kinds[1]:
        raise ArgumentError(
            f"`reference` must be of the same dipole as `emission` ({kinds[0]}), but "
            f"is of another ({kinds[1]}), which emits otherwise in any medium. Take "
            "out the structure and leave the dipole."
        )
    one, other = emission.frequencies, reference.frequencies
    if one.shape != other.shape:
        raise ArgumentError(
            f"`reference` must have the {one.size} frequencies of `emission`, but has "
            f"{other.size}."
        )
    same = jnp.abs(one / other - 1) < 1e-5
    ratio = emission.resistance / reference.resistance
    return check(ratio, same, "`reference` must have the frequencies of `emission`")


def _kind(component: str, ndim: int) -> str:
    """Returns what decides how a dipole emits in a homogeneous isotropic medium."""
    kind = "electric dipole" if component[0] == "E" else "magnetic dipole"
    along = " along z" if component[1] == "z" else " in the plane"
    return f"{kind}{along if ndim == 2 else ''} in {ndim}-D"


def check_excitation(
    sources: Mapping[str, AbstractSource],
    monitors: Mapping[str, AbstractMonitor],
    *,
    linear: bool,
) -> None:
    """Refuses or warns of monitors whose results the sources make meaningless.

    Args:
        sources: By name.
        monitors: By name.
        linear: Whether the medium is, so that it makes no frequencies of its own.

    Raises:
        ArgumentError: If the dipole of an `EmissionMonitor` is not the only source.
    """
    for name, monitor in monitors.items():
        if isinstance(monitor, EmissionMonitor):
            # Where its dipole is dark it is NaN, as it says.
            _check_dipole(monitor.dipole, sources, name)
        elif isinstance(monitor, AbstractSpectralMonitor) and linear:
            _check_band(monitor.frequencies, sources, name)


def _check_dipole(
    dipole: Dipole, sources: Mapping[str, AbstractSource], name: str
) -> None:
    """Refuses a dipole that is not the only source."""
    others = [key for key, source in sources.items() if not same(dipole, source)]
    if len(others) == len(sources):
        raise ArgumentError(
            f"`dipole` of monitor {name!r} must be a source of the simulation, with "
            "the same component, position, moment and pulse, but is none of the "
            f"sources {others}. Use the same `Dipole` for both."
        )
    if len(sources) > 1:
        raise ArgumentError(
            f"`dipole` of monitor {name!r} must be the only source, but the sources "
            f"are {list(sources)}: their fields would count as its own. Run once for "
            "each."
        )


def _check_band(
    frequencies: Float[Array, " freqs"],
    sources: Mapping[str, AbstractSource],
    name: str,
) -> None:
    """Warns of frequencies that no source emits."""
    pulses = [source.pulse for source in sources.values()]
    if not pulses or traced((pulses, frequencies)):
        return
    bands = [_band(pulse) for pulse in pulses]
    f = np.asarray(frequencies)
    dark = np.all([(f < low) | (f > high) for low, high in bands], axis=0)
    if np.any(dark):
        told = " and ".join(f"{low:.4g} to {high:.4g}" for low, high in bands)
        warn(
            f"`frequencies` of monitor {name!r} should lie where the sources emit, "
            f"from {told} Hz, but one is {f[dark][0]:.4g} Hz: what it records there "
            "is rounding error. Give the pulse a larger bandwidth.",
        )


def _band(pulse: AbstractPulse) -> tuple[float, float]:
    """Returns the lowest and highest frequency of a pulse in Hz."""
    if isinstance(pulse, GaussianPulse):
        reach = np.sqrt(-2 * np.log(_DARK)) * np.asarray(pulse.bandwidth)
        middle = np.asarray(pulse.frequency)
        return float(np.min(middle - reach)), float(np.max(middle + reach))
    with jax.ensure_compile_time_eval():
        return 0.0, float(np.max(np.asarray(pulse.highest_frequency())))
