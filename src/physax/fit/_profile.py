"""Profile likelihood: the cost along one parameter, with the others refitted."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float
from scipy.special import ndtri, stdtrit

from .._checks import ArgumentError, real, refuse_traced, whole
from ._batched_search import chunk_for, costs_of, search_all
from ._fit_result import FitResult, cost_of, fit_of
from ._given import method_or_default, probability
from ._problems import AbstractProblem
from ._robust import Parts
from ._separable import AbstractSeparable
from ._trust_region import TrustRegion


class Profile(eqx.Module):
    """The cost along one parameter, with the others refitted at each of its values.

    Attributes:
        name: The parameter.
        values: Where it was held.
        chi2: The cost there.
        others: The other free parameters there, in their order.
        low: The lower end of the interval: where the cost has increased by `rise`, or
            the bound if that comes first, minus infinity without one.
        high: The upper end.
        open_low: Whether the cost does not increase by `rise` on the lower side: the
            data, or values of your own that end before, do not determine that end.
        open_high: Whether it does not on the upper side.
        rise: The increase of the cost that ends the interval.
        level: The probability of the interval.
        lower_minimum: Whether the cost is below that of the fit somewhere: then the fit
            is not the best one.
    """

    name: str = eqx.field(static=True)
    values: Float[np.ndarray, " points"]
    chi2: Float[np.ndarray, " points"]
    others: Float[np.ndarray, "points others"]
    low: float
    high: float
    open_low: bool = eqx.field(static=True)
    open_high: bool = eqx.field(static=True)
    rise: float
    level: float = eqx.field(static=True)
    lower_minimum: bool = eqx.field(static=True)

    @property
    def identified(self) -> bool:
        """Whether both ends of the interval are determined by the data."""
        return not (self.open_low or self.open_high)

    def __str__(self) -> str:
        """Says what the interval is."""
        ends = [
            f"{end:.6g}" + (" (open)" if is_open else "")
            for end, is_open in (
                (self.low, self.open_low),
                (self.high, self.open_high),
            )
        ]
        return f"{self.name}: {ends[0]} to {ends[1]} at {self.level:g}"


_WIDENINGS = 4
# How far the first grid reaches, in half widths of the interval from the covariance.
_REACH = 1.6


def profile_likelihood(
    problem: AbstractProblem,
    result: FitResult,
    name: str,
    values: Float[ArrayLike, " points"] | None = None,
    *,
    points: int = 21,
    level: float = 0.95,
    method: TrustRegion | None = None,
) -> Profile:
    r"""Finds the interval of a parameter from the cost itself.

    The parameter is held at each value of a grid and all others are fitted; the
    interval ends where the cost has increased by $q^2 s^2$, with q the quantile of the
    normal distribution and s = 1 for known standard deviations, or of Student's and
    the reduced chi-square; with a loss other than squares $s^2$ is the variance over
    the one that the curvature of the cost has (`FitResult.covariance`). It is valid
    where the covariance is not: near bounds, and where the model is strongly nonlinear.

    Args:
        problem: What was fitted, with its data in memory.
        result: Its fit.
        name: The parameter, one of `result.names`.
        values: Where to hold it. By default a grid around the fit, which is widened
            until the cost has increased enough on both sides, or a bound comes first.
        points: How many values.
        level: Probability of the interval, in (0, 1).
        method: How to fit the others; by default `TrustRegion()`.

    Returns:
        The curve and the interval.

    Raises:
        ArgumentError: If there is no such parameter, a number is out of range, or
            `result` is a batch, of another problem or, with a loss other than squares,
            not at a minimum of the cost.
    """
    method = method_or_default(method)
    fit_of(problem, result)
    refuse_traced((problem, result), "result", "A profile has no derivatives.")
    if name not in result.names:
        raise ArgumentError(
            f"`name` must be one of {', '.join(result.names)}, but is {name}."
        )
    level, points = probability(level), whole(points, "points", 5)
    if isinstance(problem, AbstractSeparable) and bool(
        jnp.any(result.held[: result.linear.size])
    ):
        problem = problem.jointly(result.values, result.linear)
    place = result.names.index(name)
    best = float(result.values[place])
    bounds = tuple(
        float(b[place]) for b in (problem.parameters.low, problem.parameters.high)
    )
    rise = _rise(result, place, level)
    grid = _Grid(problem, result, place, method)
    if values is not None:
        held = np.sort(np.ravel(np.asarray(real(values, "values"), float)))
        if not held.size or not np.isfinite(held).all():
            raise ArgumentError(
                f"`values` must be finite numbers, at least one, but are {held!s:.80}."
            )
        chi2, others = grid.fitted(held)
    else:
        half = _first_reach(result, place, level, bounds)
        for _ in range(_WIDENINGS + 1):
            ends = np.clip([best - half[0], best + half[1]], bounds[0], bounds[1])
            held = _grid_through(ends, best, points)
            chi2, others = grid.fitted(held)
            short = _too_short(held, chi2, best, cost_of(result), rise, bounds)
            if not any(short):
                break
            half = [h * (4 if s else 1) for h, s in zip(half, short, strict=True)]
    return _with_interval(result, name, best, held, chi2, others, rise, level, bounds)


def _rise(result: FitResult, place: int, level: float) -> float:
    if result.absolute_sigma and result.parts is None:
        return float(ndtri(0.5 + level / 2)) ** 2
    freedom = int(result.degrees_of_freedom)
    if freedom < 1:
        return math.inf
    square = cost_of(result) / freedom
    if result.parts is not None:
        square = _excess_variance(result, result.parts, place)
        square *= int(result.count) / freedom
    return float(stdtrit(freedom, 0.5 + level / 2)) ** 2 * square


def _excess_variance(result: FitResult, parts: Parts, place: int) -> float:
    """Returns the variance of a parameter over that of the curvature of the cost."""
    free = ~np.asarray(result.held)
    free[place] = True
    unit = float(parts.unit)
    factor = unit * np.asarray(result.factor, float)
    pair = _bread_and_meat(factor, parts)[:, free][:, :, free]
    scale = np.sqrt(np.abs(np.diagonal(pair[0])))
    scale = np.where(scale > 0, scale, 1)
    bread, meat = pair / scale[:, None] / scale
    row = int(free[:place].sum())
    way = np.linalg.pinv(bread)[row]
    if not way[row] > 0 or np.isnan(float(result.standard_errors[place])):
        raise ArgumentError(
            "`result` must be at a minimum of the cost, but is not, with "
            f"{result.names[place]} = {float(result.values[place]):g}. Fit again from "
            "another start."
        )
    return float(way @ meat @ way / way[row]) * float(parts.scale) ** 2


def _first_reach(result, place: int, level: float, bounds) -> list[float]:
    value, error = float(result.values[place]), float(result.standard_errors[place])
    if math.isfinite(error) and error > 0:
        return [_REACH * float(ndtri(0.5 + level / 2)) * error] * 2
    # Not determined, or at a bound: what the bounds allow, or the size of the value.
    size = abs(value) if value else 1.0
    return [
        abs(bound - value) if math.isfinite(bound) and bound != value else size
        for bound in bounds
    ]


def _grid_through(ends, best: float, points: int) -> np.ndarray:
    """Returns a grid with the best value in it, on either side as far as it goes."""
    below = round((points - 1) * (best - ends[0]) / (ends[1] - ends[0]))
    below = min(max(below, int(best > ends[0])), points - 1 - int(best < ends[1]))
    low = np.linspace(ends[0], best, below + 1)
    return np.concatenate([low, np.linspace(best, ends[1], points - below)[1:]])


def _too_short(held, chi2, best, lowest, rise, bounds) -> tuple[bool, bool]:
    """Returns for each side whether the grid ends before the cost has increased."""
    risen = chi2 - lowest >= rise
    return (
        bool(held[0] > bounds[0] and not risen[held < best].any()),
        bool(held[-1] < bounds[1] and not risen[held > best].any()),
    )


def _bread_and_meat(factor: np.ndarray, parts: Parts) -> np.ndarray:
    """Returns A and B of `Parts`, in double precision."""
    less, meat = matrix = np.asarray(parts.matrix, float)
    if parts.factored:
        less, meat = np.swapaxes(matrix, -1, -2) @ matrix
    return np.stack([factor.T @ factor - less, meat])


class _Grid:
    """Fits all but one parameter, at many values of that one."""

    def __init__(self, problem, result: FitResult, place: int, method: TrustRegion):
        self._problem, self._place, self._method = problem, place, method
        self._best = np.asarray(result.values)
        # Not the covariances, which may be out of the range of their dtype.
        errors = np.asarray(result.standard_errors, float)
        ratios = errors / errors[place] if errors[place] > 0 else 0 * errors
        slope = np.asarray(result.correlation)[:, place] * ratios
        # Along this line the others answer, to first order.
        self._slope = np.where(np.isfinite(slope), slope, 0)

    def fitted(self, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the costs, infinite where a fit failed, and the other parameters."""
        parameters, place = self._problem.parameters, self._place
        low, high = (np.asarray(b) for b in (parameters.low, parameters.high))
        starts = self._best + np.outer(held - self._best[place], self._slope)
        starts = np.clip(starts, low, high)
        lows, highs = (np.tile(b, (held.size, 1)) for b in (low, high))
        for each in (starts, lows, highs):
            each[:, place] = held
        search = search_all(
            self._problem,
            self._method,
            *(jnp.asarray(x) for x in (starts, lows, highs)),
            chunk=chunk_for(self._problem, held.size),
        )
        ends = np.asarray(search.vector)[:, -low.size :]
        return costs_of(search), np.delete(ends, place, axis=1)


def _with_interval(
    result, name, best, held, chi2, others, rise, level, bounds
) -> Profile:
    lowest = cost_of(result)
    ends, is_open = [], []
    for side, bound in zip((-1, 1), bounds, strict=True):
        on_side = side * (held - best) > 0
        order = np.argsort(np.abs(held[on_side] - best))
        away, cost = held[on_side][order], chi2[on_side][order]
        # Signed roots are close to straight lines, so few points are enough.
        root = np.sqrt(np.maximum(np.concatenate([[0], cost - lowest]), 0))
        end = _crossing(np.concatenate([[best], away]), root, math.sqrt(rise))
        is_open.append(end is None)
        ends.append(bound if end is None else end)
    return Profile(
        name=name,
        values=held,
        chi2=chi2,
        others=others,
        low=ends[0],
        high=ends[1],
        open_low=is_open[0],
        open_high=is_open[1],
        rise=rise,
        level=level,
        lower_minimum=bool(np.min(chi2) < lowest - 1e-6 * min(rise, lowest + rise)),
    )


def _crossing(values, root, height: float) -> float | None:
    """Returns where the root of the rise first passes a height, or None."""
    above = np.flatnonzero(root >= height)
    if not above.size:
        return None
    i = int(above[0])
    if not math.isfinite(root[i]):
        return float(values[i - 1])
    part = (height - root[i - 1]) / (root[i] - root[i - 1])
    return float(values[i - 1] + part * (values[i] - values[i - 1]))
