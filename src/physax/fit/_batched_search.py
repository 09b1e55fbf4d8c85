"""Searches from many starts at once, in one compiled program."""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError
from ._passes import resident_normal, start_search
from ._plan import plan
from ._pointwise import check_pointwise
from ._problems import AbstractProblem
from ._search import Search
from ._sources import count_points, in_memory
from ._trust_region import TrustRegion, search_to_end


def starting_at(
    problem: AbstractProblem,
    values: Float[Array, " free"],
    low: Float[Array, " free"],
    high: Float[Array, " free"],
) -> AbstractProblem:
    """Returns the problem with other start values and bounds."""
    flat = problem.parameters.filled(values)
    return eqx.tree_at(
        lambda p: (p.parameters.flat, p.parameters.low, p.parameters.high),
        problem,
        (flat, low, high),
    )


@eqx.filter_jit
def search_all(
    problem: AbstractProblem,
    method: TrustRegion,
    values: Float[Array, "starts free"],
    low: Float[Array, "starts free"],
    high: Float[Array, "starts free"],
    *,
    chunk: int,
) -> Search:
    """Searches from each start, within the bounds of each.

    Args:
        problem: With its data in memory.
        method: How to search.
        values: The starts.
        low: Lower bounds; equal to the upper one, they fix a parameter.
        high: Upper bounds.
        chunk: Points that are evaluated at once, for each start.
    """

    def one(values, low, high) -> Search:
        made = starting_at(problem, values, low, high)

        def normal_at(point, factored, unit):
            return resident_normal(made, point, factored, unit, chunk=chunk)

        return search_to_end(method, made.bounds(), start_search(made), normal_at)

    # All wait for the slowest.
    return jax.vmap(one)(values, low, high)


def costs_of(search: Search) -> Float[np.ndarray, " starts"]:
    """Returns the costs of searches in double precision, infinite if not finite."""
    costs, units = (np.asarray(x, float) for x in (search.normal.cost, search.unit))
    return np.where(np.isfinite(costs), costs / units / units, np.inf)


def chunk_for(problem: AbstractProblem, starts: int) -> int:
    """Returns how many points to evaluate at once for each of several starts.

    Raises:
        ArgumentError: If the data are not in memory, or points depend on each other.
    """
    if not in_memory(problem.data):
        raise ArgumentError(
            "`problem` must have its data in memory here, but they are on disk or come "
            "from a stream. Give it a part of them."
        )
    count, size = count_points(problem.data), problem.vector().size
    chunk = min(count, max(256, plan(count, size).chunk // starts))
    check_pointwise(problem, problem.data, count, chunk)
    return chunk
