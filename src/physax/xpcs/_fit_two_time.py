"""Fits models of the two-time correlation to measured maps."""

from collections.abc import Callable, Sequence
from math import pi
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import instance, warn
from .._products import matmul
from .._status import Status
from ..fit import (
    FitResult,
    Plan,
    Tie,
    TrustRegion,
    least_squares,
)
from ..fit._fit_result import each_fit, summary
from ..runtime import Checkpointing, Progress
from ._correlation import AbstractCorrelation, LaminarFlow, Static
from ._evaluate import two_time
from ._known import known
from ._scaling import AbstractScaling, Limits
from ._tiles import is_pair
from ._two_time import TwoTime, check_data
from ._two_time_problem import TwoTimeProblem, two_time_problem


class TwoTimeFit(eqx.Module):
    """A fitted model of two-time maps.

    Attributes:
        model: The model with the fitted numbers.
        contrast: Contrast of each map.
        offset: Offset of each map.
        result: Errors, correlations, how the fit ended. The linear coefficients are
            those of the scaling. Without a known sigma of the data, its `chi2` and
            `reduced_chi2` are in units of what stands in for it, 0.01 if none was
            given, and tell nothing.
        noise: Standard deviation of one value of each map, estimated from the
            residuals; where values have a sigma each, its root mean square.
    """

    model: AbstractCorrelation
    contrast: Float[Array, " maps"]
    offset: Float[Array, " maps"]
    result: FitResult
    noise: Float[Array, " maps"]

    @property
    def convention(self) -> str | None:
        """Convention of the shear factor; None without shear."""
        model = self.model
        return model.convention if isinstance(model, LaminarFlow) else None

    def __str__(self) -> str:
        """Lists parameters with errors, contrasts and offsets, for each of a batch."""
        fits = each_fit(self, self.result)
        return "\n".join(head + _summary(fit) for head, fit in fits)


def _summary(fit: TwoTimeFit) -> str:
    noise = None
    if not fit.result.absolute_sigma:
        # A chi-square would be in units of a sigma that nobody knows.
        numbers = [f"{v:.3g}" for v in fit.noise]
        numbers = numbers[:1] if len(set(numbers)) == 1 else numbers
        noise = f"noise of one value {', '.join(numbers)} (sigma not known)"
    lines = [summary(fit.result, noise)]
    if fit.convention is not None:
        lines.append(f"  shear factor: {fit.convention} convention")
        if _poor(fit.result):
            lines.append(
                "  The reduced chi-square is far above 1. If sigma is right, the model "
                "does not fit, or this is a local minimum: start from "
                "`initial_models`, or use `fit.multistart`."
            )
    for name, values in (("contrast", fit.contrast), ("offset", fit.offset)):
        lines.append(f"  {name}: {', '.join(f'{v:.5g}' for v in values)}")
    return "\n".join(lines)


# More than wrong errors of the data usually make of it.
_POOR = 2.0


def _poor(result: FitResult) -> bool:
    """Returns whether a fit has converged to something that does not fit."""
    good = int(result.status) == Status.CONVERGED and result.absolute_sigma
    return good and float(result.reduced_chi2) > _POOR


def fit_two_time(
    data: TwoTime,
    model: AbstractCorrelation,
    *,
    scaling: AbstractScaling | None = None,
    bounds: tuple[Any, Any] = (None, None),
    fixed: Callable | None = None,
    ties: Tie | Sequence[Tie] = (),
    contrast_bounds: Limits = (None, None),
    offset_bounds: Limits = (None, None),
    absolute_sigma: bool | None = None,
    method: TrustRegion | None = None,
    plan: Plan | None = None,
    checkpoint: Checkpointing | None = None,
    progress: Progress | bool | None = True,
    throw: bool = False,
) -> TwoTimeFit:
    """Fits a model to two-time maps, contrasts and offsets included.

    Each pair of frames counts once and the diagonal, which holds the shot noise, not at
    all. Contrasts and offsets enter linearly: they need no start and are eliminated
    exactly, with errors and correlations of the full problem.

    Errors assume that the noise of pairs is independent. That of real maps lasts as
    long as the speckles, and errors are then several times too small:
    `speckle_covariance` is for this noise, `frame_covariance` for that of frames.

    Args:
        data: The maps.
        model: Where to start. Its numbers are the parameters, but for the gap.
        scaling: How maps share contrast and offset; by default `PerAngle()`.
        bounds: Lower and upper bounds, each a model like `model` or None. By default
            only a free `D0` or shear rate that starts at 0 or above, with its offset
            fixed at 0, is bounded, by 0 from below: maps do not determine its sign; and
            a free exponent that starts above -0.99, by this from below, where the first
            time is 0 and its integral exact: that diverges at -1. What is tied has no
            bounds.
        fixed: Picks parameters that stay fixed, in addition to the gap:
            `lambda m: m.diffusion.alpha`.
        ties: Parameters that follow from others.
        contrast_bounds: Lower and upper bound of the contrasts, with `PerAngle` or
            `Shared`.
        offset_bounds: Lower and upper bound of the offsets, likewise.
        absolute_sigma: Whether `data.sigma` is known, and not only relative: if not,
            errors are scaled by the reduced chi-square. By default it is if the data
            were made with one.
        method: How to search.
        plan: How the data are processed.
        checkpoint: Where a fit block by block keeps checkpoints.
        progress: Whether and how such a fit shows progress.
        throw: Whether to raise unless the fit converged.

    Returns:
        The fitted model, contrasts and offsets.

    Raises:
        ArgumentError: If a start is outside its bounds, a tied parameter is bounded,
            fixed or follows from itself, the scaling does not suit the angles or the
            bounds, or an argument is of another kind.
        PrecisionError: If the data are float64 while JAX has it off.
        FitError: With `throw`, if the fit did not converge.
    """
    problem = two_time_problem(
        data,
        model,
        scaling=scaling,
        bounds=bounds,
        fixed=fixed,
        ties=ties,
        contrast_bounds=contrast_bounds,
        offset_bounds=offset_bounds,
        absolute_sigma=absolute_sigma,
    )
    result = least_squares(
        problem,
        method,
        plan=plan,
        checkpoint=checkpoint,
        progress=progress,
        throw=throw,
    )
    return two_time_fit(problem, result)


def two_time_fit(problem: TwoTimeProblem, result: FitResult) -> TwoTimeFit:
    """Reads a fit of a `two_time_problem` as model, contrasts and offsets.

    Args:
        problem: What was fitted.
        result: Its fit.

    Raises:
        ArgumentError: If one is of another kind, or an integral diverges.
    """
    instance(problem, "problem", TwoTimeProblem, "Make one by `two_time_problem`.")
    instance(result, "result", FitResult, "Make one by `least_squares`.")
    if known(result.status) and np.any(np.asarray(result.status) == Status.INVALID):
        # Raises if the reason is that an integral diverges, or a time is negative.
        start = problem.parameters.tree(problem.parameters.vector)
        start.prepare(problem.times)
    contrast, offset = _scales(result.linear, problem.mixing.rows)
    noise = jnp.sqrt(result.reduced_chi2) * _scale_of_noise(problem)
    model = _folded(result, problem)
    _review_sign(model, problem.times)
    return TwoTimeFit(model, contrast, offset, result, noise)


def _review_sign(model: AbstractCorrelation, times: Float[Array, " frames"]) -> None:
    """Warns of a diffusion that is negative, which fits as well as its opposite."""
    if isinstance(model, LaminarFlow):
        passed = model.prepare(times).diffusion
    elif isinstance(model, Static):
        passed = model.prepare(times)
    else:
        return
    whole = passed[-1] - passed[0]
    if known(whole) and np.asarray(whole) < 0:
        warn(
            "The fitted diffusion should be positive, but its integral over the frames "
            f"is {float(whole):.4g}: maps depend on its size alone, so that its "
            "opposite fits as well. Begin closer to it, with `initial_models`, or give "
            "`bounds` that exclude this sign, such as a positive `D_offset`."
        )


@jax.jit
def _scales(linear, rows):
    """Returns contrasts and offsets."""
    contrast, offset = matmul(linear.reshape(2, -1), rows.T)
    return contrast, offset


@eqx.filter_jit
def _scale_of_noise(problem: TwoTimeProblem) -> Float[Array, " maps"]:
    """Returns the root mean square of sigma over the pairs that count, for each map."""
    starts, _, weight, mask = problem.data
    if weight is None:
        return 1 / problem.weight
    keep = is_pair(starts, problem.size, problem.times.size)
    keep = (keep if mask is None else keep & mask)[:, None]
    squares = jnp.where(keep, 1 / jnp.where(keep, weight, 1) ** 2, 0)
    return jnp.sqrt(jnp.sum(squares, axis=(0, 2, 3)) / jnp.sum(keep))


def _folded(result: FitResult, problem: TwoTimeProblem) -> AbstractCorrelation:
    """Names one of the equal directions of the flow: the one within 90 degrees.

    What was fixed stays, and so does what its bounds keep elsewhere.
    """
    model, names = result.parameters, problem.parameters.names
    if not isinstance(model, LaminarFlow) or "shear.phi0" not in names:
        return model
    at = names.index("shear.phi0")
    low, high = problem.parameters.low[at], problem.parameters.high[at]
    return eqx.tree_at(
        lambda m: m.shear.phi0, model, _turned(model.shear.phi0, low, high)
    )


@jax.jit
def _turned(phi0, low, high):
    turned = phi0 - pi * jnp.round(phi0 / pi)
    return jnp.where((low <= turned) & (turned <= high), turned, phi0)


def fitted_two_time(
    fit: TwoTimeFit, data: TwoTime
) -> Float[Array, "maps frames frames"]:
    """Returns the fitted maps.

    Args:
        fit: The fit of these data.
        data: The data, for their times, wavevectors and angles.

    Raises:
        ArgumentError: If one is of another kind.
    """
    instance(fit, "fit", TwoTimeFit, "Make one by `fit_two_time`.")
    check_data(data)
    return two_time(
        fit.model,
        data.times,
        data.q,
        data.phi,
        contrast=fit.contrast,
        offset=fit.offset,
    )
