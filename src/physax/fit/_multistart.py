"""Fits from many starts: which minima there are, and how often each is reached."""

from math import inf
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from .._checks import ArgumentError, instance, one_key, refuse_traced, whole
from .._known_number import known_number
from ._batched_search import chunk_for, costs_of, search_all, starting_at
from ._fit_result import FitResult, cost_of
from ._given import method_or_default
from ._least_squares import least_squares
from ._problems import AbstractProblem, check_problem
from ._sampling import (
    AbstractSampling,
    LatinHypercube,
    check_finite_bounds,
    within_bounds,
)
from ._trust_region import TrustRegion


class MultistartResult(eqx.Module):
    """The minima that fits from many starts have found.

    Attributes:
        minima: The distinct minima, the lowest first.
        counts: How many starts reached each of them.
        starts: How many starts there were.
        not_finite: How many had residuals that are not finite.
        costs: Costs that the short searches reached, the lowest first; infinite where
            not finite.
    """

    minima: tuple[FitResult, ...]
    counts: tuple[int, ...] = eqx.field(static=True)
    starts: int = eqx.field(static=True)
    not_finite: int = eqx.field(static=True)
    costs: Float[Array, " starts"]

    @property
    def best(self) -> FitResult:
        """The fit with the lowest cost."""
        return self.minima[0]

    @property
    def reached_best(self) -> int:
        """How many starts reached it."""
        return self.counts[0]

    @property
    def elsewhere(self) -> int:
        """How many ended at none of the minima."""
        return self.starts - self.not_finite - sum(self.counts)

    def __str__(self) -> str:
        """Lists the minima, and how many starts ended elsewhere."""
        lines = [
            f"{self.reached_best} of {self.starts} starts reached the lowest of "
            f"{len(self.minima)} minima; {self.not_finite} were not finite."
        ]
        if self.elsewhere:
            lines.append(
                f"  {self.elsewhere} ended elsewhere: of what they found the best "
                "was fitted, at most as many as `refine`. Raise it, or `budget`."
            )
        for result, count in zip(self.minima, self.counts, strict=True):
            values = ", ".join(
                f"{name} {float(value):.6g}"
                for name, value in zip(result.names, result.values, strict=True)
            )
            lines.append(f"  chi-square {cost_of(result):.6g} ({count}): {values}")
        return "\n".join(lines)


def multistart(
    problem: AbstractProblem,
    method: TrustRegion | None = None,
    *,
    key: PRNGKeyArray,
    starts: int = 64,
    sampling: AbstractSampling | None = None,
    budget: int = 30,
    refine: int = 4,
    distance: float = 1.0,
    **options: Any,
) -> MultistartResult:
    """Fits from many starts within the bounds.

    A short search begins at each start, in one compiled program; the best distinct ones
    are then fitted to convergence. The start of the problem is one of them. Bounds that
    are positive and span two decades are sampled logarithmically.

    Args:
        problem: What to fit, with finite bounds and its data in memory.
        method: How to fit the best; by default `TrustRegion()`.
        key: Key of the random numbers.
        starts: How many starts there are.
        sampling: How they are spread; by default `LatinHypercube()`.
        budget: Passes over the data in each short search.
        refine: How many at most are fitted to convergence.
        distance: Minima closer than this, in standard deviations, count as one; at
            least 0.
        **options: Options of `least_squares`, for those fits.

    Returns:
        The minima.

    Raises:
        ArgumentError: If a bound is infinite, a number is out of range, the data are
            not in memory, or no start has finite residuals.
    """
    check_problem(problem)
    method = method_or_default(method)
    key = one_key(key)
    starts, budget = whole(starts, "starts"), whole(budget, "budget")
    refine, distance = whole(refine, "refine"), known_number(distance, "distance")
    if not 0 <= distance < inf:
        raise ArgumentError(
            f"`distance` must be finite and at least 0, but is {distance:g}."
        )
    sampling = LatinHypercube() if sampling is None else sampling
    instance(sampling, "sampling", AbstractSampling, "Write `LatinHypercube()`.")
    check_finite_bounds(problem.parameters)
    low, high = problem.parameters.low, problem.parameters.high
    unit = sampling.points(key, starts, low.size)
    first = within_bounds(unit, low, high).at[0].set(problem.parameters.vector)
    search = search_all(
        problem,
        TrustRegion(max_evaluations=budget, polish=False),
        first,
        jnp.broadcast_to(low, first.shape),
        jnp.broadcast_to(high, first.shape),
        chunk=chunk_for(problem, starts),
    )
    refuse_traced(
        search.vector,
        "problem",
        "For derivatives fit from its best with `least_squares`.",
    )
    ends = np.asarray(search.vector)[:, -low.size :]
    costs = costs_of(search)
    order = np.argsort(costs, kind="stable")
    if not np.isfinite(costs[order[0]]):
        raise ArgumentError(
            f"`bounds` must contain a start with finite residuals, but none of "
            f"{starts} has them. Narrow the bounds."
        )
    found = []
    for place in order:
        known = any(_near(result, ends[place], distance) for result in found)
        if known or len(found) == refine or not np.isfinite(costs[place]):
            continue
        made = starting_at(problem, jnp.asarray(ends[place]), low, high)
        result = least_squares(made, method, **options)
        values = np.asarray(result.values)
        if not any(_near(other, values, distance) for other in found):
            found.append(result)
    found.sort(key=cost_of)
    counts = [0] * len(found)
    for place in order[np.isfinite(costs[order])]:
        close = [i for i, r in enumerate(found) if _near(r, ends[place], distance)]
        if close:
            counts[close[0]] += 1
    return MultistartResult(
        tuple(found),
        tuple(counts),
        starts,
        int(np.sum(~np.isfinite(costs))),
        jax.device_put(costs[order].astype(search.normal.cost.dtype)),
    )


# Where the residuals vanish a standard deviation is nothing.
_SAME = 1e-5


def _near(result: FitResult, values: np.ndarray, distance: float) -> bool:
    """Returns whether values belong to a minimum, in its standard deviations."""
    change = values - np.asarray(result.values)
    size = change.size
    lone = np.asarray(result.factor, float)
    # The triangular factor of the parameters alone, with the linear ones at their best.
    lone = lone[-size:, -size:]
    freedom = max(int(result.degrees_of_freedom), 1)
    variance = 1.0 if result.absolute_sigma else cost_of(result) / freedom
    far = np.linalg.norm(lone @ change) > distance * np.sqrt(variance)
    scale = np.abs(values) + np.abs(np.asarray(result.values))
    return bool(not far or np.all(np.abs(change) <= _SAME * scale))
