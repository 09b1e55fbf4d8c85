"""One fit of the command line: settings and data in, a fit out."""

import math
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .._checks import ArgumentError
from .._status import Status
from ..fit import Plan, TrustRegion, least_squares, plan_for
from ..runtime import Checkpointing, Progress, check_memory
from ..xpcs import (
    AbstractCorrelation,
    LaminarFlow,
    PerAngle,
    QualityReport,
    Shared,
    TwoTime,
    TwoTimeFit,
    TwoTimeProblem,
    initial_models,
    speckle_covariance,
    two_time,
    two_time_fit,
    two_time_problem,
)
from ._xpcs_names import NAMES, names_of, with_values
from ._xpcs_settings import LaminarSettings, Settings, numbers


# Data of more values than this are fitted from one start: each takes minutes.
_MANY = 20_000_000
# Exponents where time 0 is among the times: the integral diverges at -1.
_LOWEST_EXPONENT = -0.99


class Outcome(NamedTuple):
    """What a fit has given.

    Attributes:
        data: What was fitted.
        problem: What the best fit solved.
        fit: The best fit.
        covariance: Of its linear coefficients and free parameters, in this order, for
            the noise that the settings name.
        quality: What was found in the data.
        factor: Factor of the contrast in each map.
        fitted: The fitted maps.
        neighbours: The correlation of residuals of (i, j) with (i, j + 1) and (i + 1,
            j), and its standard deviation where residuals are independent.
        fixed: Names of the parameters that stayed.
        starts: Cost reached from each start.
        seconds: It took.
    """

    data: TwoTime
    problem: TwoTimeProblem
    fit: TwoTimeFit
    covariance: np.ndarray
    quality: QualityReport
    factor: np.ndarray
    fitted: np.ndarray
    neighbours: tuple[float, float]
    fixed: tuple[str, ...]
    starts: tuple[float, ...]
    seconds: float


def fit_data(
    data: TwoTime,
    quality: QualityReport,
    settings: Settings,
    checkpoints: Path,
    progress: bool,
) -> Outcome:
    """Fits maps as the settings say.

    Args:
        data: The maps.
        quality: Of these.
        settings: How.
        checkpoints: The folder for those of a fit that goes block by block.
        progress: Whether such a fit shows how far it is.

    Raises:
        ArgumentError: If a start or the scaling does not go with the data.
        MemoryLimitError: If the fit does not fit into memory.
    """
    began = perf_counter()
    given = numbers(settings)
    fixed = tuple(name for name, number in given.items() if number.fixed)
    options = _options(settings, given)
    best, solved, costs, plan = None, None, [], None
    for start in starting_models(data, settings):
        problem = two_time_problem(
            data, start, bounds=_bounds(start, given, data), **options
        )
        # The same for all starts; to make it, the model is traced.
        if plan is None:
            plan = plan_for(problem)
            _check_memory(problem, plan, settings)
        fit = _search(problem, plan, settings, checkpoints, progress)
        cost = float(fit.result.chi2)
        # A failed fit may have the cost NaN, which nothing is less than.
        lowest = min(filter(math.isfinite, costs), default=math.inf)
        if best is None or cost < lowest:
            best, solved = fit, problem
        costs.append(cost)
    assert best is not None
    assert solved is not None
    factor, fitted = _curves(data, best)
    return Outcome(
        data,
        solved,
        best,
        _covariance(solved, best, settings),
        quality,
        factor,
        fitted,
        _neighbours(data, fitted),
        fixed,
        tuple(costs),
        perf_counter() - began,
    )


def starting_models(
    data: TwoTime, settings: Settings
) -> tuple[AbstractCorrelation, ...]:
    """Returns the models to start from: given numbers, the others from the data."""
    given = {
        name: float(number.start)
        for name, number in numbers(settings).items()
        if number.start is not None
    }
    flow = isinstance(settings, LaminarSettings)
    options: dict[str, Any] = (
        {"gap": settings.gap, "convention": settings.convention} if flow else {}
    )
    _check_angles(data, flow, given, settings)
    known = {"D0", "alpha", *(("shear_rate", "beta", "phi0") if flow else ())}
    count = 1 if known <= set(given) else settings.fit.starts
    if data.c2.size > _MANY:
        count = 1
    found = initial_models(data, settings.mode, count, **options)
    made = []
    for model in found:
        model = with_values(model, given)
        low, high = _bounds(model, numbers(settings), data)
        _check_starts(model, low, high, settings)
        made.append(_between(model, low, high, given))
    return tuple(made)


def _check_angles(data: TwoTime, flow: bool, given, settings: Settings) -> None:
    if not flow:
        return
    free = sum(not number.fixed for number in numbers(settings).values())
    angles = np.unique(np.round(np.asarray(data.phi) % math.pi, 6))
    if angles.size < 2 and "phi0" not in given and free:
        raise ArgumentError(
            "`mode` laminar_flow must have maps of at least 2 directions, but there is "
            f"{angles.size}: the direction of the flow is not determined. Fix `phi0`, "
            "or choose a static mode."
        )


def _check_starts(model, low, high, settings: Settings) -> None:
    """Refuses given starts beyond bounds that physics demands."""
    for name, number in numbers(settings).items():
        value, least, most = (float(NAMES[name].of(one)) for one in (model, low, high))
        if number.start is None or number.fixed or least <= value <= most:
            continue
        raise ArgumentError(
            f"`--set {name}` or `parameters.{name}.start` must lie within [{least:g}, "
            f"{most:g}], but is {value:g}. Where a fit may go further, give `bounds` "
            "in the YAML file."
        )


def _between(model, low, high, given) -> AbstractCorrelation:
    """Moves starts that were found from the data into their bounds."""
    inside = {}
    for name in names_of(model):
        if name in given:
            continue
        value, place = float(NAMES[name].of(model)), NAMES[name]
        inside[name] = float(
            np.clip(value, float(place.of(low)), float(place.of(high)))
        )
    return with_values(model, inside)


def _bounds(model: AbstractCorrelation, given, data: TwoTime) -> tuple[Any, Any]:
    """Returns lower and upper bounds: given ones, and what physics demands."""
    exponent = (_LOWEST_EXPONENT if float(data.times[0]) <= 0 else -3.0, 3.0)
    usual = {
        "D0": (0.0, math.inf),
        "alpha": exponent,
        "shear_rate": (0.0, math.inf),
        "beta": exponent,
    }
    ends = {
        name: given[name].bounds or usual.get(name, (-math.inf, math.inf))
        for name in names_of(model)
    }
    low = with_values(model, {name: end[0] for name, end in ends.items()})
    high = with_values(model, {name: end[1] for name, end in ends.items()})
    return low, high


def _options(settings: Settings, given) -> dict[str, Any]:
    scaling = settings.scaling
    if scaling is None:
        scaling = Shared() if settings.mode == "static_isotropic" else PerAngle()
    fixed = [NAMES[name] for name, number in given.items() if number.fixed]
    return {
        "scaling": scaling,
        "fixed": (lambda m: [name.of(m) for name in fixed]) if fixed else None,
        "contrast_bounds": settings.contrast_bounds or (None, None),
        "offset_bounds": settings.offset_bounds or (None, None),
        "absolute_sigma": settings.fit.absolute_sigma,
    }


def _check_memory(problem: TwoTimeProblem, plan: Plan, settings: Settings) -> None:
    """Refuses what would not fit into memory, before the first fit."""
    check_memory(plan.required, "The fit")
    if settings.fit.errors == "speckles":
        # Weighted columns of one map as matrices, and what products of them need.
        values = 5 * problem.parts.size * problem.times.size**2
        itemsize = problem.data[1].dtype.itemsize
        check_memory(values * itemsize, "The setting `errors: speckles`")


def _covariance(
    problem: TwoTimeProblem, fit: TwoTimeFit, settings: Settings
) -> np.ndarray:
    """Returns the covariance of a fit for the noise that the settings name."""
    ended = int(fit.result.status) != Status.INTERRUPTED
    if settings.fit.errors == "speckles" and ended:
        return np.asarray(speckle_covariance(problem, fit.result))
    return np.asarray(fit.result.full_covariance)


def _search(
    problem: TwoTimeProblem,
    plan: Plan,
    settings: Settings,
    checkpoints: Path,
    progress: bool,
) -> TwoTimeFit:
    checkpoint = None
    if plan.driven:
        saving = settings.checkpoint
        checkpoint = Checkpointing(checkpoints, saving.every, keep=saving.keep)
    search = settings.fit
    usual = TrustRegion()
    xtol = usual.xtol if search.xtol is None else search.xtol
    result = least_squares(
        problem,
        TrustRegion(xtol=xtol, max_evaluations=search.max_evaluations),
        plan=plan,
        checkpoint=checkpoint,
        progress=Progress("fit", "Mpoints", plan.block / 1e6) if progress else None,
    )
    return two_time_fit(problem, result)


def _curves(data: TwoTime, fit: TwoTimeFit) -> tuple[np.ndarray, np.ndarray]:
    """Returns the factor of the contrast, and the fitted maps."""
    factor = np.asarray(
        two_time(fit.model, data.times, data.q, data.phi, contrast=1.0, offset=0.0)
    )
    contrast, offset = (
        np.asarray(x)[:, None, None] for x in (fit.contrast, fit.offset)
    )
    return factor, offset + contrast * factor


def _neighbours(data: TwoTime, fitted: np.ndarray) -> tuple[float, float]:
    """Returns the correlation of neighbouring residuals, and its deviation."""
    used = np.triu(np.ones(data.c2.shape[1:], bool), 1)
    if data.mask is not None:
        used &= np.asarray(data.mask)
    sigma = np.asarray(data.sigma)
    sigma = sigma.reshape(sigma.shape + (1,) * (3 - sigma.ndim))
    left = np.where(used, np.asarray(data.c2) - fitted, 0) / sigma
    pairs = [(left[:, :, :-1], left[:, :, 1:]), (left[:, :-1], left[:, 1:])]
    count = np.sum(used[:, :-1] & used[:, 1:]) + np.sum(used[:-1] & used[1:])
    squares = np.sum(left**2) / np.sum(used)
    if not count or not squares > 0:
        return 0.0, math.inf
    products = sum(np.vdot(one, other) for one, other in pairs) / count
    return float(products / squares), float(1 / np.sqrt(count * data.maps))


def convention_of(model: AbstractCorrelation) -> str | None:
    """Returns the convention of the shear factor; `None` without flow."""
    return model.convention if isinstance(model, LaminarFlow) else None
