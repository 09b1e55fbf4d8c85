"""Time dependence of sources."""

import dataclasses
import inspect
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import (
    ArgumentError,
    as_array,
    at_once,
    check,
    finite,
    optional,
    positive,
    real,
    single,
    traced,
)
from .._written_for_jax import written_for_jax
from ._clock import Clock


def _positive(name):
    return lambda x: single(positive(x, name), name)


class AbstractPulse(eqx.Module):
    """A real, dimensionless function of time."""

    frequency: eqx.AbstractVar[Float[Array, ""]]

    @abstractmethod
    def __call__(
        self, clock: Clock, delay: Float[Array, "*shape"]
    ) -> Float[Array, "*shape"]:
        """Returns the pulse `delay` seconds before the moment of the clock."""

    @abstractmethod
    def duration(self) -> Float[Array, ""]:
        """Returns the time in seconds after which the pulse is over (or steady)."""

    @abstractmethod
    def highest_frequency(self) -> Float[Array, ""]:
        """Returns the frequency in Hz above which the spectrum is below 1e-7."""


# Half width of a Gaussian envelope in standard deviations: exp(-6^2 / 2) = 1.5e-8.
_CUT = 6.0


class GaussianPulse(AbstractPulse):
    r"""A carrier under a Gaussian envelope.

    $w(t) = \exp(-(t - t_0)^2 / 2 \tau^2) \cos(2 \pi f (t - t_0) - \phi)$ with
    $\tau = 1 / (2 \pi\, \mathrm{bandwidth})$ and $t_0 = 6 \tau$. The spectrum falls to
    $\exp(-1/2)$ of its peak at one bandwidth from the carrier.

    Attributes:
        frequency: Carrier $f$ in Hz.
        bandwidth: Standard deviation of the spectrum in Hz.
        phase: $\phi$ in radians; the spectrum is multiplied by $e^{i \phi}$.
    """

    frequency: Float[Array, ""] = eqx.field(converter=_positive("frequency"))
    bandwidth: Float[Array, ""] = eqx.field(converter=_positive("bandwidth"))
    phase: Float[Array, ""] = eqx.field(converter=finite("phase"), default=0.0)

    def __call__(self, clock, delay):
        tau = 1 / (2 * jnp.pi * self.bandwidth)
        t0 = _CUT * tau
        t = (clock.time - t0 - delay) / tau
        cycles = clock.cycles(self.frequency) - self.frequency * (t0 + delay)
        return jnp.exp(-(t**2) / 2) * jnp.cos(2 * jnp.pi * cycles - self.phase)

    def duration(self):
        return 2 * _CUT / (2 * jnp.pi * self.bandwidth)

    def highest_frequency(self):
        return self.frequency + _CUT * self.bandwidth


class ContinuousWave(AbstractPulse):
    r"""A carrier that is switched on smoothly.

    $w(t) = r(t) \sin(2 \pi f t - \phi)$, with $r$ rising from 0 to 1 as
    $\sin^2(\pi t / 2 t_r)$ over the rise time $t_r$.

    Attributes:
        frequency: Carrier in Hz.
        rise: Rise time in periods of the carrier.
        phase: $\phi$ in radians.
    """

    frequency: Float[Array, ""] = eqx.field(converter=_positive("frequency"))
    rise: Float[Array, ""] = eqx.field(converter=_positive("rise"), default=10.0)
    phase: Float[Array, ""] = eqx.field(converter=finite("phase"), default=0.0)

    def __call__(self, clock, delay):
        periods = self.frequency * (clock.time - delay)
        ramp = jnp.sin(jnp.pi / 2 * jnp.clip(periods / self.rise, 0.0, 1.0)) ** 2
        cycles = clock.cycles(self.frequency) - self.frequency * delay
        return ramp * jnp.sin(2 * jnp.pi * cycles - self.phase)

    def duration(self):
        return self.rise / self.frequency

    def highest_frequency(self):
        # The ramp has a jump in its second derivative: its spectrum falls as f^-3.
        return self.frequency * (1 + 200 / self.rise)


class Ricker(AbstractPulse):
    r"""The second derivative of a Gaussian, free of a static component.

    $w(t) = (1 - 2 a) e^{-a}$ with $a = (\pi f (t - t_0))^2$ and $t_0 = 2 / f$.
    Reference: Ricker, Geophysics 18, 10 (1953).

    Attributes:
        frequency: Frequency of the spectral peak in Hz.
    """

    frequency: Float[Array, ""] = eqx.field(converter=_positive("frequency"))

    def __call__(self, clock, delay):
        a = (jnp.pi * (self.frequency * (clock.time - delay) - 2)) ** 2
        return (1 - 2 * a) * jnp.exp(-a)

    def duration(self):
        return 4 / self.frequency

    def highest_frequency(self):
        # x^2 exp(1 - x^2) = 1e-7 at x = 4.4.
        return 4.4 * self.frequency


def _as_function(function: Any) -> Callable:
    if not callable(function):
        raise ArgumentError(
            "`function` must be a function of the time in seconds, such as `lambda t: "
            f"jnp.sin(2e15 * t)`, but is {function!r}."
        )
    held: Any = ()
    if isinstance(function, partial):
        held = function.args, function.keywords
    elif inspect.isfunction(function):
        held = inspect.getclosurevars(function).nonlocals
    if traced(held):
        raise ArgumentError(
            "`function` must not hold traced numbers, whose derivatives would be lost, "
            "but does. Write a subclass of `AbstractPulse` with them as attributes."
        )
    return function


class CustomPulse(AbstractPulse):
    """A user-defined function of time.

    Attributes:
        function: Maps times in seconds to values, elementwise, by `jax.numpy`. To vary
            numbers in it under `jit` or `grad`, write a subclass of `AbstractPulse`.
        frequency: A typical frequency in Hz: it sets the phase delays of mode sources
            and the default grid.
        length: Time in seconds after which the function is negligible.
        band: Highest frequency in Hz that it contains; `None` for unknown, and then
            nothing is decimated.

    Raises:
        ArgumentError: If `function` is not one or, where it is called, not written with
            `jax.numpy`, or returns anything but one real value for each time, or if a
            number is not positive.
    """

    function: Callable[[Array], Array] = eqx.field(static=True, converter=_as_function)
    frequency: Float[Array, ""] = eqx.field(converter=_positive("frequency"))
    length: Float[Array, ""] = eqx.field(converter=_positive("length"))
    band: Float[Array, ""] | None = eqx.field(
        converter=optional(_positive("band")), default=None
    )

    def __call__(self, clock, delay):
        time = clock.time - delay
        with written_for_jax("function"):
            value = self.function(time)
        value = real(value, "function(times)")
        if value.shape != jnp.shape(time):
            raise ArgumentError(
                "`function` of a pulse must map times to one value each, of shape "
                f"{jnp.shape(time)}, but returns shape {value.shape}."
            )
        return value

    def duration(self):
        return self.length

    def highest_frequency(self):
        return as_array(float("inf")) if self.band is None else self.band


def rechecked(pulse: AbstractPulse) -> AbstractPulse:
    """Returns a pulse whose numbers have passed the checks of its attributes again.

    `eqx.tree_at` puts numbers in without them. Attributes that users add are left
    alone, as their converters may change the unit.
    """
    new = {
        field.name: field.metadata["converter"](getattr(pulse, field.name))
        for kind in (GaussianPulse, ContinuousWave, Ricker, CustomPulse)
        if isinstance(pulse, kind)
        for field in dataclasses.fields(kind)
        if not field.metadata.get("static")
    }
    return eqx.tree_at(
        lambda one: [getattr(one, name) for name in new],
        pulse,
        list(new.values()),
        is_leaf=lambda one: one is None,
    )


def band_pulse(low: Num[ArrayLike, ""], high: Num[ArrayLike, ""]) -> GaussianPulse:
    """Makes a Gaussian pulse that covers a band.

    Args:
        low: Lower end of the band in Hz.
        high: Upper end in Hz, not below `low`. For a single frequency the bandwidth is
            a tenth of it.

    Returns:
        A pulse whose spectrum at the ends is at least 0.6 of its peak.
    """
    first, last = positive(low, "low"), positive(high, "high")
    with at_once((first, last)):
        last = check(last, last >= first, "`high` must be at least `low`")
        centre = (first + last) / 2
        width = jnp.maximum((last - first) / 2, centre / 10)
    return GaussianPulse(frequency=centre, bandwidth=width)
