"""Where to start a fit: models that fit coarsely, found from the data alone."""

from math import pi
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from .._checks import ArgumentError, positive, single, whole
from ._correlation import (
    CONVENTIONS,
    AbstractCorrelation,
    LaminarFlow,
    Static,
    check_convention,
)
from ._transport import Diffusion, Shear
from ._two_time import TwoTime, check_data


MODES = ("static_isotropic", "static_anisotropic", "laminar_flow")
"""Names of the models: without flow, the same with separate angles, with flow."""

# Pairs of frames that are compared: this many ages and logarithmically spaced lags.
_AGES, _LAGS = 40, 24
_MOST_MAPS = 24
# The grid. Neighbours differ by less than what a fit finds its way across.
_EXPONENTS = (-0.8, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0)
_SHEAR_EXPONENTS = (-0.4, 0.0, 0.4)
_DECAYS, _SHEARS, _DIRECTIONS = 16, 12, 12


class _Grid(NamedTuple):
    """Models to try.

    Attributes:
        transports: D0 and alpha, one row each.
        shears: Rate, beta and phi0; empty without flow.
    """

    transports: Float[np.ndarray, "transports 2"]
    shears: Float[np.ndarray, "shears 3"]


def initial_model(
    data: TwoTime,
    mode: str = "static_anisotropic",
    *,
    gap: float = 2e6,
    convention: str = "physical",
) -> AbstractCorrelation:
    """Finds a model from which a fit can start.

    Args:
        data: The maps.
        mode: `"static_isotropic"`, `"static_anisotropic"` or `"laminar_flow"`.
        gap: Distance between the plates in angstrom; used with flow only.
        convention: Convention of the shear factor; used with flow only.

    Returns:
        The first of `initial_models`.

    Raises:
        ArgumentError: As for `initial_models`.
    """
    return initial_models(data, mode, gap=gap, convention=convention)[0]


def initial_models(
    data: TwoTime,
    mode: str = "static_anisotropic",
    count: int = 1,
    *,
    gap: float = 2e6,
    convention: str = "physical",
) -> tuple[AbstractCorrelation, ...]:
    r"""Finds models from which fits can start, the best first.

    A grid of decay times, exponents, shear rates and directions is compared with about
    a thousand pairs of frames per map, contrast and offset eliminated. Constant parts
    of the rates, for what the powers of time do not explain, start at 0. Runs on the
    host in NumPy, in a fraction of a second, and compiles nothing.

    Args:
        data: The maps.
        mode: `"static_isotropic"`, `"static_anisotropic"` or `"laminar_flow"`.
        count: How many models to return, at least 1. They differ from each other by
            more than one step of the grid.
        gap: Distance between the plates in angstrom; used with flow only.
        convention: Convention of the shear factor; used with flow only.

    Returns:
        At most `count` models.

    Raises:
        ArgumentError: If the mode or the convention is unknown, `count` or `gap` is not
            positive, or the mask leaves no pair of frames.
    """
    if mode not in MODES:
        raise ArgumentError(f"`mode` must be one of {MODES}, but is {mode!r}.")
    check_data(data)
    count = whole(count, "count")
    gap = float(single(positive(gap, "gap"), "gap"))
    check_convention(convention, "convention")
    flow = mode == "laminar_flow"
    times = np.asarray(data.times, float)
    first, second = _pairs(data)
    grid = _grid(times, np.asarray(data.q, float), gap, convention, flow)
    cost = _costs(data, times, first, second, grid, gap, convention)
    found = []
    for k, s in _best(cost, count):
        d0, alpha = (float(x) for x in grid.transports[k])
        diffusion = Diffusion(d0, alpha, 0.0)
        if not flow:
            found.append(Static(diffusion))
            continue
        rate, beta, phi0 = (float(x) for x in grid.shears[s])
        shear = Shear(rate, beta, 0.0, phi0)
        found.append(LaminarFlow(diffusion, shear, gap, convention))
    return tuple(found)


def _pairs(data: TwoTime) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Chooses pairs of frames: all ages, and logarithmically spaced lags."""
    last = data.frames - 1
    if last < 1:
        raise ArgumentError(
            f"`data` must have at least 2 frames, but has {data.frames}."
        )
    ages = np.unique(np.linspace(0, last - 1, _AGES).astype(int))
    lags = np.unique(np.geomspace(1, last, _LAGS).round().astype(int))
    first, lag = (x.ravel() for x in np.meshgrid(ages, lags, indexing="ij"))
    inside = first + lag <= last
    first, second = first[inside], (first + lag)[inside]
    if data.mask is not None:
        used = np.asarray(data.mask)
        if not used[first, second].any():
            first, second = np.nonzero(np.triu(used, 1))
            step = max(first.size // (_AGES * _LAGS), 1)
            first, second = first[::step], second[::step]
        keep = used[first, second]
        first, second = first[keep], second[keep]
    if not first.size:
        raise ArgumentError("`data.mask` must leave a pair of frames, but leaves none.")
    return first, second


def _grid(times, q, gap: float, convention: str, flow: bool) -> _Grid:
    step, length = float(np.diff(times).min()), float(times[-1] - times[0])
    middle = float(times[0] + length / 2)
    # The decay of the fastest model ends within a frame, the slowest outlasts the run.
    decay = np.geomspace(0.5 * step, 10 * length, _DECAYS)
    size = float(np.median(q))
    transports = [
        (1 / (size**2 * tau) / middle**alpha, alpha)
        for tau in decay
        for alpha in _EXPONENTS
    ]
    shears = np.zeros((0, 3))
    if flow:
        rates = CONVENTIONS[convention][0] / (
            size * gap * np.geomspace(step, 5 * length, _SHEARS)
        )
        directions = np.linspace(-pi / 2, pi / 2, _DIRECTIONS, endpoint=False)
        shears = np.array(
            [
                (rate / middle**beta, beta, phi0)
                for rate in rates
                for beta in _SHEAR_EXPONENTS
                for phi0 in directions
            ]
        )
    return _Grid(np.array(transports), shears)


def _power(exponent, start, stop):
    """Integrates powers of time; every exponent is above -1."""
    n = np.asarray(exponent)[:, None] + 1
    return (stop**n - start**n) / n


def _costs(
    data, times, first, second, grid, gap, convention
) -> Float[np.ndarray, "transports shears"]:
    """Returns the cost of every model, contrast and offset of each map eliminated."""
    start, stop = times[first], times[second]
    spread = grid.transports[:, :1] * _power(grid.transports[:, 1], start, stop)
    strain = grid.shears[:, :1] * _power(grid.shears[:, 1], start, stop)
    chosen = np.unique(np.linspace(0, data.maps - 1, _MOST_MAPS).astype(int))
    sigma = np.asarray(data.sigma, float)
    total = np.zeros((len(grid.transports), max(len(grid.shears), 1)))
    for k in chosen:
        q, phi = float(data.q[k]), float(data.phi[k])
        error = sigma[k] if sigma.ndim else sigma
        error = error[first, second] if error.ndim else error
        weight = np.broadcast_to(1 / error**2, first.shape)
        # Off the gather: a map that JAX holds on the host is not copied here.
        c2 = np.asarray(data.c2[k])[first, second].astype(float)
        factor = np.exp(-(q**2) * spread)
        sheared = np.ones((1, first.size))
        if len(grid.shears):
            divisor, power = CONVENTIONS[convention]
            scale = q * gap * np.cos(phi - grid.shears[:, 2:]) / divisor
            # NumPy's sinc holds a factor pi.
            sheared = np.sinc(scale * strain / pi) ** power
        total += _projected(factor, sheared, c2, weight)
    return total


def _projected(factor, sheared, c2, weight):
    """Returns what the best contrast, not below 0, and offset leave of one map."""
    total = weight.sum()
    y = c2 - np.sum(weight * c2) / total
    mean = (factor * weight) @ sheared.T
    square = (factor**2 * weight) @ (sheared**2).T
    common = (factor * (weight * y)) @ sheared.T
    variance = square - mean**2 / total
    known = variance > 1e-9 * total
    gain = np.maximum(common, 0) ** 2 / np.where(known, variance, 1)
    return np.sum(weight * y**2) - np.where(known, gain, 0)


def _best(cost, count: int) -> list[tuple[int, int]]:
    """Picks the best places of a grid, no two of them neighbours."""
    apart = _apart_in_flow if cost.shape[1] > 1 else _apart_in_decay
    places: list[tuple[int, int]] = []
    for flat in np.argsort(cost, axis=None):
        k, s = (int(n) for n in np.unravel_index(int(flat), cost.shape))
        if all(apart((k, s), other) for other in places):
            places.append((k, s))
        if len(places) == count:
            break
    return places


def _apart_in_decay(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return abs(one[0] // len(_EXPONENTS) - other[0] // len(_EXPONENTS)) > 1


def _apart_in_flow(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Returns whether rates or directions are too different for a fit to bridge."""
    turn = abs(one[1] % _DIRECTIONS - other[1] % _DIRECTIONS)
    # Directions are on a circle.
    turn = min(turn, _DIRECTIONS - turn)
    each = _DIRECTIONS * len(_SHEAR_EXPONENTS)
    rate = abs(one[1] // each - other[1] // each)
    return max(turn, rate) > 1
