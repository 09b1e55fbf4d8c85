"""What a fit says about its parameters: intervals, and what is not determined."""

import math
from importlib import import_module

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from .._checks import instance, refuse_traced
from ._fit_result import HARDLY, FitResult, one_fit
from ._given import probability
from ._sums import rank_limit


class Interval(eqx.Module):
    """Bounds within which parameters lie.

    Attributes:
        low: The lower ends, in the order of the free parameters.
        high: The upper ends.
        level: The probability.
        names: The free parameters.
    """

    low: Float[Array, "*fits free"]
    high: Float[Array, "*fits free"]
    level: float = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def __str__(self) -> str:
        """Lists the intervals, for each fit of a batch."""
        lines = []
        for *fit, i in np.ndindex(self.low.shape):
            head = f"fit {','.join(map(str, fit))}: " if fit else ""
            ends = f"{self.low[*fit, i]:.6g} to {self.high[*fit, i]:.6g}"
            lines.append(f"{head}{self.names[i]}: {ends} at {self.level:g}")
        return "\n".join(lines)


def confidence_intervals(result: FitResult, level: float = 0.95) -> Interval:
    """Returns intervals from the covariance.

    Where errors follow from the residuals, Student's distribution is used.

    Args:
        result: The result of a fit, or of a batch.
        level: Their probability, in (0, 1).

    Returns:
        One interval for each free parameter.

    Raises:
        ArgumentError: If `level` is out of range, or if the degrees of freedom are
            needed, but traced.
    """
    instance(result, "result", FitResult, "Make one by `least_squares`.")
    level = probability(level)
    reach = jax.scipy.stats.norm.ppf(0.5 + level / 2)
    if result.parts is not None or not result.absolute_sigma:
        refuse_traced(
            result.degrees_of_freedom,
            "result",
            "Call `confidence_intervals` outside, of the whole batch, or fit with "
            "`absolute_sigma=True`.",
        )
        freedom = np.asarray(result.degrees_of_freedom)
        reach = _student(0.5 + level / 2, freedom)[..., None]
    half = reach * result.standard_errors
    low, high = result.values - half, result.values + half
    return Interval(low, high, level, result.names)


def _student(probability: float, freedom: np.ndarray) -> np.ndarray:
    # Loaded when it is needed: that takes longer than to load the rest of physax.
    special = import_module("scipy.special")
    return np.where(freedom > 0, special.stdtrit(freedom, probability), math.inf)


class Identifiability(eqx.Module):
    """Which combinations of parameters the data do and do not determine.

    Attributes:
        names: The parameters.
        singular_values: Of the Jacobian with columns of length 1, from the largest.
        directions: One row for each: the combination of parameters, in units in which
            each alone changes the residuals equally.
        undetermined: Number of combinations that the data do not determine.
        relative_errors: Standard error of each parameter over its value.
    """

    singular_values: Float[np.ndarray, " all"]
    directions: Float[np.ndarray, "all all"]
    undetermined: int
    relative_errors: Float[np.ndarray, " all"]
    names: tuple[str, ...] = eqx.field(static=True)

    @property
    def condition(self) -> float:
        """Largest over smallest singular value."""
        low = self.singular_values[-1]
        return float(self.singular_values[0] / low) if low > 0 else math.inf

    def __str__(self) -> str:
        lines = [f"condition number {self.condition:.3g}"]
        weak = [i for i, s in enumerate(self.singular_values) if s < HARDLY]
        if not weak:
            lines.append("every combination of parameters is determined")
        for i in weak:
            lost = i >= len(self.names) - self.undetermined
            word = "not determined" if lost else "hardly determined"
            terms = [
                f"{weight:+.2f} {name}"
                for name, weight in zip(self.names, self.directions[i], strict=True)
                if abs(weight) > 0.05
            ]
            lines.append(f"{word}: {' '.join(terms)}")
        return "\n".join(lines)


def identifiability(result: FitResult) -> Identifiability:
    """Finds which combinations of parameters the data do not determine.

    Args:
        result: The result of a fit.

    Returns:
        Singular values and directions; print it to read which are weak.

    Raises:
        ArgumentError: If there are several fits in it.
    """
    factor = np.asarray(one_fit(result).factor)
    norms = np.linalg.norm(factor, axis=0)
    equal = factor / np.where(norms > 0, norms, 1)
    _, sigma, right = np.linalg.svd(equal)
    lost = sigma <= rank_limit(sigma.size, sigma.dtype) * sigma[0]
    values = np.concatenate([np.asarray(result.linear), np.asarray(result.values)])
    errors = np.sqrt(np.diagonal(np.asarray(result.full_covariance)))
    relative = errors / np.where(values != 0, np.abs(values), np.nan)
    return Identifiability(
        sigma, right, int(lost.sum()), relative, (*result.linear_names, *result.names)
    )
