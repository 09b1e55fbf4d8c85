"""Fits of one-time correlations: relaxation times over the wavevector."""

import math
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import (
    ArgumentError,
    check_picker,
    instance,
    refuse_text,
    refuse_traced,
)
from ..fit import FitResult, LeastSquares, Parameters, Separable, least_squares
from ..fit._fit_result import listed, with_error
from ._decays import AbstractDecay, Stretched
from ._one_time import OneTime
from ._scaling import Limits, bound_pair, linear_bounds


class G2Fit(eqx.Module):
    r"""Fitted one-time correlations.

    Attributes:
        q: Wavevector of each curve in 1/angstrom.
        decays: The fitted decay of each curve.
        contrast: Contrast of each curve.
        offset: Offset of each curve.
        values: The fitted curves at the lags of the data.
        results: Errors, correlations, how each fit ended.
    """

    q: Float[Array, " curves"]
    decays: tuple[AbstractDecay, ...]
    contrast: Float[Array, " curves"]
    offset: Float[Array, " curves"]
    values: Float[Array, "curves lags"]
    results: tuple[FitResult, ...]

    @property
    def tau(self) -> Float[np.ndarray, " curves"]:
        """Relaxation time of the field in seconds; the shorter one of two."""
        return np.array([float(r.values[_time_index(r)]) for r in self.results])

    @property
    def tau_error(self) -> Float[np.ndarray, " curves"]:
        """Standard error of that time."""
        places = [_time_index(r) for r in self.results]
        return np.array(
            [
                float(r.standard_errors[i])
                for r, i in zip(self.results, places, strict=True)
            ]
        )

    @property
    def rate(self) -> Float[np.ndarray, " curves"]:
        r"""Relaxation rate $\Gamma = 1 / \tau$ in 1/s."""
        return 1 / self.tau

    @property
    def rate_error(self) -> Float[np.ndarray, " curves"]:
        """Standard error of the rate."""
        return self.tau_error / self.tau**2

    def __str__(self) -> str:
        """Lists the numbers of each curve with their errors."""
        return "\n".join(
            _line(f"q {float(q):.5g}", listed(result), result)
            for q, result in zip(self.q, self.results, strict=True)
        )


def _line(head: str, numbers: list[tuple[str, str]], result: FitResult) -> str:
    """Says on one line what was found and how the fit ended."""
    shown = ", ".join(f"{name} {number}" for name, number in numbers)
    reduced = float(result.reduced_chi2)
    left = f"reduced chi-square {reduced:.4g}"
    if not result.absolute_sigma:
        left = f"noise {math.sqrt(reduced):.4g} times sigma, which is not known"
    ended = "" if result.success else f"; {result.message}"
    return f"{head}: {shown}, {left}{ended}"


def _time_index(result: FitResult) -> int:
    names = [name.split(".")[-1] for name in result.names]
    if not {"fast", "tau"} & set(names):
        raise ArgumentError(
            "`decay` must have a time named `tau` or `fast` that is fitted for "
            f"relaxation times, but its fitted numbers are {names}."
        )
    return names.index("fast" if "fast" in names else "tau")


def _squared(decay, lags):
    return decay(lags)[..., None] ** 2


def fit_g2(
    data: OneTime,
    decay: AbstractDecay | None = None,
    *,
    bounds: Mapping[str, Limits] | None = None,
    fixed: Callable | None = None,
    contrast_bounds: Limits = (None, None),
    offset_bounds: Limits = (None, None),
) -> G2Fit:
    r"""Fits $g_2(\tau) = o + b\,g_1(\tau)^2$ to each curve.

    Contrast and offset enter linearly and need no start; the time scale starts where a
    curve has decreased by a factor of $e^2$.

    Args:
        data: The curves.
        decay: The shape, whose other numbers are starts; by default `Stretched()`.
        bounds: Lower and upper bound of numbers of `decay` by name, as
            `{"gamma": (0.5, 1.5)}`; where none is given, that of `decay.bounds()`.
        fixed: Picks numbers of `decay` that stay fixed: `lambda d: d.gamma`.
        contrast_bounds: Lower and upper bound of the contrasts.
        offset_bounds: Lower and upper bound of the offsets; `(1.0, 1.0)` holds them.

    Returns:
        Relaxation times, contrasts and offsets with their errors.

    Raises:
        ArgumentError: If there are fewer lags than parameters, bounds are crossed, or
            a number is outside them.
        PrecisionError: If the data are float64 while JAX has it off.
    """
    instance(data, "data", OneTime, "Make one of arrays, or read it by `io.read_g2`.")
    decay = Stretched() if decay is None else decay
    instance(decay, "decay", AbstractDecay, "Take `Simple()`, `Stretched()`.")
    check_picker(fixed)
    bounds = {} if bounds is None else bounds
    if not isinstance(bounds, Mapping):
        raise ArgumentError(
            "`bounds` must name numbers of `decay`, such as `{'gamma': (0.5, 1.5)}`, "
            f"but is {bounds!r}."
        )
    linear = linear_bounds(contrast_bounds, offset_bounds)
    limits = _limits(decay, bounds)
    sigma = jnp.broadcast_to(data.sigma, data.g2.shape)
    results = []
    for curve, error in zip(data.g2, sigma, strict=True):
        time = _relaxation_time(data.lags, curve)
        problem = Separable(
            _squared,
            _start(decay, time, limits, fixed),
            data.lags,
            curve,
            functions=["contrast"],
            offset=True,
            linear_bounds=linear,
            sigma=error,
            bounds=limits,
            fixed=fixed,
            absolute_sigma=data.sigma_is_known,
        )
        results.append(least_squares(problem))
    decays = tuple(r.parameters for r in results)
    contrast, offset = (jnp.stack([r.linear[i] for r in results]) for i in (0, 1))
    shapes = jnp.stack([decay(data.lags) ** 2 for decay in decays])
    values = offset[:, None] + contrast[:, None] * shapes
    return G2Fit(data.q, decays, contrast, offset, values, tuple(results))


def _relaxation_time(lags: Float[Array, " lags"], curve: Float[Array, " lags"]):
    """Returns where a curve has decreased by e^2 from its first values."""
    values = np.asarray(curve)
    few = max(values.size // 10, 1)
    top, bottom = values[:few].mean(), values[-few:].mean()
    below = values - bottom < np.exp(-2) * (top - bottom)
    place = int(np.argmax(below)) if below.any() else values.size // 2
    return lags[place]


def _start(
    given: AbstractDecay,
    time: Float[Array, ""],
    limits: tuple[Any, Any],
    fixed: Callable | None,
) -> AbstractDecay:
    """Returns where to start: times that were not given are brought within bounds."""
    scaled = given.scaled(time)
    start, twice = map(_numbers, (scaled, given.scaled(2 * time)))

    def within(x, other, low, high):
        return jnp.where(x == other, x, jnp.clip(x, low, high))

    start = eqx.combine(jax.tree.map(within, start, twice, *limits), scaled)
    kept, moved = (Parameters(one, fixed=fixed) for one in (given, start))
    return kept.tree(moved.vector)


def _numbers(decay: AbstractDecay) -> AbstractDecay:
    return eqx.filter(decay, eqx.is_inexact_array)


def _limits(decay: AbstractDecay, bounds: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns lower and upper bounds: those given, else those of the decay itself."""
    low = jax.tree.map(lambda _: -jnp.inf, _numbers(decay))
    high = jax.tree.map(lambda _: jnp.inf, low)
    names = [name for name, x in vars(decay).items() if eqx.is_inexact_array(x)]
    for name, pair in (*decay.bounds().items(), *bounds.items()):
        if name not in names:
            raise ArgumentError(
                f"`bounds` must name numbers of `decay`, {', '.join(names)}, but has "
                f"{name!r}."
            )
        where = attrgetter(name)
        limits = bound_pair(pair, f"bounds[{name!r}]", (where(low), where(high)))
        low, high = (
            eqx.tree_at(where, side, limit)
            for side, limit in zip((low, high), limits, strict=True)
        )
    return low, high


class PowerLaw(eqx.Module):
    r"""A power of the wavevector, $\Gamma = D (q / q_0)^n$ with the mean $q_0$.

    Attributes:
        scale: $D$ in 1/s, the rate at $q_0$.
        exponent: $n$: 2 for diffusion, 1 for ballistic motion.
        q0: The geometric mean of the wavevectors in 1/angstrom.
        result: Errors, and how the fit ended.
    """

    scale: Float[Array, ""]
    exponent: Float[Array, ""]
    q0: Float[Array, ""]
    result: FitResult

    def __call__(self, q: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Returns the rate at wavevectors in 1/angstrom."""
        return self.scale * (q / self.q0) ** self.exponent

    @property
    def diffusion(self) -> Float[Array, ""]:
        r"""$\Gamma / q^2$ at the mean wavevector, in angstrom^2/s."""
        return self.scale / self.q0**2

    def __str__(self) -> str:
        """Lists scale and exponent with their errors."""
        errors = map(float, self.result.standard_errors)
        error = dict(zip(self.result.names, errors, strict=True))
        scale, exponent = float(self.scale), float(self.exponent)
        numbers = [
            ("scale", with_error(scale, scale * error["log_scale"])),
            ("exponent", with_error(exponent, error["exponent"])),
        ]
        return _line(f"q0 {float(self.q0):.5g}", numbers, self.result)


def _deviation(p, data):
    log_q, log_rate, error = data
    return (p["log_scale"] + p["exponent"] * log_q - log_rate) / error


def _positive(x: Any, name: str) -> np.ndarray:
    """Returns numbers of the host, whose logarithm is wanted."""
    refuse_traced(x, name, "Fit the powers outside.")
    refuse_text(x, name)
    values = np.asarray(x)
    if values.dtype.kind not in "iuf" or values.ndim != 1:
        raise ArgumentError(
            f"`{name}` must be real numbers of shape (curves,), but has dtype "
            f"{values.dtype} and shape {values.shape}."
        )
    values = values.astype(float)
    good = (values > 0) & (values < np.inf)
    if not good.all():
        raise ArgumentError(
            f"`{name}` must be positive and finite, but is {values[~good][0]:g}."
        )
    return values


def power_law(
    q: Float[ArrayLike, " curves"],
    rate: Float[ArrayLike, " curves"],
    error: Float[ArrayLike, " curves"],
) -> PowerLaw:
    """Fits a power of the wavevector to relaxation rates.

    A straight line is fitted to the logarithms.

    Args:
        q: Wavevectors in 1/angstrom.
        rate: Rates in 1/s, positive.
        error: Their standard errors, assumed to be known.

    Returns:
        The power law.

    Raises:
        ArgumentError: If a number is not positive, shapes differ, or there are fewer
            than three wavevectors.
    """
    given = {"q": q, "rate": rate, "error": error}
    known = {name: _positive(x, name) for name, x in given.items()}
    if len({values.shape for values in known.values()}) > 1:
        shapes = ", ".join(str(values.shape) for values in known.values())
        raise ArgumentError(
            f"`q`, `rate` and `error` must have one shape, but have {shapes}."
        )
    count = known["q"].size
    if count < 3:
        raise ArgumentError(
            f"`q` must have at least 3 wavevectors for a power law, but has {count}."
        )
    log_q, log_rate = np.log(known["q"]), np.log(known["rate"])
    relative = known["error"] / known["rate"]
    # In the type that JAX has on: three numbers a curve need no more.
    data = tuple(
        jnp.asarray(x, float) for x in (log_q - log_q.mean(), log_rate, relative)
    )
    start = {"log_scale": float(log_rate.mean()), "exponent": 2.0}
    found = least_squares(LeastSquares(_deviation, start, data, absolute_sigma=True))
    return PowerLaw(
        jnp.exp(found.parameters["log_scale"]),
        found.parameters["exponent"],
        jnp.exp(log_q.mean()),
        found,
    )
