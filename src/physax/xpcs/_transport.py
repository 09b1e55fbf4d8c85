r"""Transport coefficients: how fast particles spread and how fast layers slide."""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import ArgumentError, real
from ._known import known, on_host, require
from ._measured import wide
from ._quotients import sinhc


class AbstractTransport(eqx.Module):
    """A rate that depends on time, and its integral.

    To make your own, derive from `AbstractNumericalTransport`, which needs `__call__`
    only, or from this class if the integral is known in closed form.
    """

    @abstractmethod
    def __call__(self, t: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Returns the rate at times in seconds."""

    @abstractmethod
    def integral(
        self, start: Float[Array, "*shape"], stop: Float[Array, "*shape"]
    ) -> Float[Array, "*shape"]:
        """Returns the integral of the rate from `start` to `stop`, elementwise.

        Args:
            start: Lower ends in seconds, at least 0.
            stop: Upper ends in seconds, not below the lower ones.
        """

    def cumulative(self, times: Num[ArrayLike, " frames"]) -> Float[Array, " frames"]:
        """Returns the integral from the first time to each.

        The integrals of the intervals are summed up, at a cost of order `frames`; that
        between any two frames is a difference of two entries.

        Args:
            times: Times in seconds, at least 0, in increasing order.

        Returns:
            The integrals; the first is 0.

        Raises:
            ArgumentError: If the times are negative or decrease, or the integral
                diverges.
        """
        times = wide(real(times, "times"))
        if times.ndim != 1:
            raise ArgumentError(
                f"`times` must have shape (frames,), but has shape {times.shape}."
            )
        if not times.size:
            return times
        (known,) = on_host(times)
        times = require(times, known >= 0, "`times` must not be negative")
        # The first one has none before it.
        before = known[np.maximum(np.arange(len(known)) - 1, 0)]
        message = "`times` must increase from frame to frame"
        times = require(times, known >= before, message)
        return _running_sum(self.integral(times[:-1], times[1:]))


@jax.jit
def _running_sum(steps):
    return jnp.append(jnp.zeros((), steps.dtype), jnp.cumsum(steps))


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


class AbstractNumericalTransport(AbstractTransport):
    """A rate of your own: define `__call__`, and the integral follows.

    It is called with one time in seconds and returns one rate, also under `vmap`.
    Each interval between two frames is integrated with the 8 points of Gauss and
    Legendre, exact for polynomials up to degree 15. A rate that is singular at a frame,
    or changes much faster than the frames follow each other, needs more care: give its
    integral in closed form, as a subclass of `AbstractTransport`.
    """

    def integral(self, start, stop):
        half = (stop - start) / 2
        middle = start + half
        nodes = middle[..., None] + half[..., None] * _NODES.astype(half.dtype)
        # One time for each call: a rate that reads its neighbours fails.
        rates = jnp.vectorize(self)(nodes)
        return half * jnp.sum(rates * _WEIGHTS.astype(half.dtype), axis=-1)


def _number(name: str) -> Callable[[ArrayLike], Array]:
    """Makes a converter that refuses NaN; infinite ones may be bounds of a fit."""

    def convert(x):
        x = wide(real(x, name))
        (now,) = on_host(x)
        good = not known(now) or ~np.isnan(now)
        return require(x, good, f"`{name}` must be a number")

    return convert


def _check_quadrature(quadrature: str) -> None:
    if quadrature not in ("exact", "trapezoid"):
        raise ArgumentError(
            '`quadrature` must be "exact" or "trapezoid", but is '
            f"{quadrature!r}. Exact integrals are the default; the trapezoid is there "
            "to compare with programs that use it."
        )


class Diffusion(AbstractTransport):
    r"""The rate at which particles spread.

    $J(t) = D_0 t^\alpha + D_\mathrm{offset}$ with $t$ in units of one second. $J$ is
    the growth of the variance of a coordinate, $J = d\,\mathrm{Var}(x) / dt$. Brownian
    motion with the diffusion coefficient $D$ of Stokes and Einstein therefore has
    $\alpha = 0$ and $D_0 = 2 D$. Differentiable in every attribute but `quadrature`,
    also through $\alpha = -1$.

    Reference: He et al., PNAS 121, e2401162121 (2024).

    Attributes:
        D0: Prefactor in angstrom^2 s^-(1 + alpha).
        alpha: Exponent. Above -1, unless the first time is later than 0.
        D_offset: Constant part in angstrom^2/s.
        quadrature: `"exact"` takes integrals in closed form; `"trapezoid"` the mean of
            the rates at both ends of an interval, with half its length in place of time
            0, as the program homodyne does.

    Raises:
        ArgumentError: If `quadrature` is unknown or a number is NaN.
    """

    D0: Float[Array, ""] = eqx.field(converter=_number("D0"))
    alpha: Float[Array, ""] = eqx.field(converter=_number("alpha"), default=0.0)
    D_offset: Float[Array, ""] = eqx.field(converter=_number("D_offset"), default=0.0)
    quadrature: str = eqx.field(static=True, default="exact")

    def __check_init__(self):
        _check_quadrature(self.quadrature)

    def __call__(self, t):
        return self.D0 * t**self.alpha + self.D_offset

    def integral(self, start, stop):
        if self.quadrature == "trapezoid":
            return _trapezoid(self, start, stop)
        power = _power_integral(self.D0, self.alpha, start, stop, "alpha")
        return power + self.D_offset * (stop - start)


class Shear(AbstractTransport):
    r"""The rate at which the layers of a sheared liquid slide over each other.

    $\dot\gamma(t) = \dot\gamma_0 t^\beta + \dot\gamma_\mathrm{offset}$ with $t$ in
    units of one second. Only the modulus of the rate and $\cos^2(\phi - \phi_0)$ can be
    seen, so that `phi0` and `phi0` + pi are the same. Differentiable in every attribute
    but `quadrature`.

    Attributes:
        rate: Prefactor in s^-(1 + beta).
        beta: Exponent. Above -1, unless the first time is later than 0.
        offset: Constant part in 1/s.
        phi0: Direction of the flow in the plane of the detector, in radians.
        quadrature: As for `Diffusion`.

    Raises:
        ArgumentError: If `quadrature` is unknown or a number is NaN.
    """

    rate: Float[Array, ""] = eqx.field(converter=_number("rate"))
    beta: Float[Array, ""] = eqx.field(converter=_number("beta"), default=0.0)
    offset: Float[Array, ""] = eqx.field(converter=_number("offset"), default=0.0)
    phi0: Float[Array, ""] = eqx.field(converter=_number("phi0"), default=0.0)
    quadrature: str = eqx.field(static=True, default="exact")

    def __check_init__(self):
        _check_quadrature(self.quadrature)

    def __call__(self, t):
        return self.rate * t**self.beta + self.offset

    def integral(self, start, stop):
        if self.quadrature == "trapezoid":
            return _trapezoid(self, start, stop)
        power = _power_integral(self.rate, self.beta, start, stop, "beta")
        return power + self.offset * (stop - start)


def _trapezoid(transport, start, stop):
    """Integrates by the mean of the rates at both ends, each interval in one step."""
    width = stop - start
    # Time 0, where a power may be infinite, becomes half an interval; an interval of no
    # length there becomes 1 s, and its width takes care of the rest.
    early = jnp.where(start > 0, start, jnp.where(width > 0, width / 2, 1))
    late = jnp.where(stop > 0, stop, 1)
    return width * (transport(early) + transport(late)) / 2


def _power_integral(amplitude, exponent, start, stop, name: str):
    """Integrates `amplitude` times a power of time, which may diverge at time 0."""
    begin, power, height = on_host(start, exponent, amplitude)
    exponent = require(
        jnp.broadcast_to(exponent, start.shape),
        (begin > 0) | (power > -1) | (height == 0),
        f"`{name}` must be above -1 when time 0 is included, where the integral of "
        f"t^{name} diverges (leave out the first frame, or set "
        'quadrature="trapezoid" for a value that depends on the frame time)',
    )
    return amplitude * _powers(exponent, start, stop)


@jax.jit
def _powers(exponent, start, stop):
    r"""Integrates powers of time.

    With $n$ one more than the exponent and $l = \ln(b / a)$ the integral from $a > 0$
    to $b$ is $(a b)^{n/2}\, l\, \sinh(n l / 2) / (n l / 2)$: no difference of nearly
    equal numbers, and smooth at $n = 0$, where $(b^n - a^n) / n$ is 0 / 0.
    """
    n = exponent + 1
    at_zero = start <= 0
    # Each branch gets harmless numbers where the other one holds: a `where` on the
    # results alone would still have gradients that are NaN.
    a, b = jnp.where(at_zero, 1, start), jnp.where(at_zero, 1, stop)
    ratio = jnp.log1p((b - a) / a)
    between = jnp.exp(n * (jnp.log(a) + ratio / 2)) * ratio * sinhc(n * ratio / 2)

    rises = at_zero & (stop > 0)
    top = jnp.where(rises, stop, 1)
    # A NaN stays one: it says that the integral diverges.
    power = jnp.where(rises & ~(n <= 0), n, 1)
    from_zero = jnp.where(rises, jnp.exp(power * jnp.log(top)) / power, 0)
    return jnp.where(at_zero, from_zero, between)
