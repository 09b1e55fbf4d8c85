"""Differential evolution: a search of all within the bounds, without derivatives."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._checks import at_least, between, instance, one_key, whole
from ._batched_search import chunk_for, starting_at
from ._fit_result import FitResult
from ._given import method_or_default
from ._least_squares import least_squares
from ._problems import AbstractProblem, check_problem
from ._sampling import LatinHypercube, check_finite_bounds, within_bounds
from ._sources import count_points
from ._trust_region import TrustRegion


class DifferentialEvolution(eqx.Module):
    r"""A population that moves by the differences of its own members.

    A member is tried at $b + F (x_1 - x_2)$, with b the best and two others at random,
    in some of the parameters; it goes there if that is better. F is drawn anew for
    each generation.

    Reference: Storn and Price, *Differential evolution*, Journal of Global Optimization
    11, 341 (1997).

    Attributes:
        members: How many members the population has for each parameter.
        generations: How many generations there are at most.
        crossover: The fraction of the parameters that a trial changes, in (0, 1).
        smallest: The smallest factor F, in (0, 2).
        largest: The largest one.
        tolerance: The search ends when the costs of the population differ by less than
            this fraction of their mean.

    Raises:
        ArgumentError: If a number is out of its range.
    """

    members: int = eqx.field(
        static=True, converter=lambda x: whole(x, "members"), default=15
    )
    generations: int = eqx.field(
        static=True, converter=lambda x: whole(x, "generations"), default=1000
    )
    crossover: Float[Array, ""] = eqx.field(
        converter=between("crossover", 0.0, 1.0), default=0.7
    )
    smallest: Float[Array, ""] = eqx.field(
        converter=between("smallest", 0.0, 2.0), default=0.5
    )
    largest: Float[Array, ""] = eqx.field(
        converter=between("largest", 0.0, 2.0), default=1.0
    )
    tolerance: Float[Array, ""] = eqx.field(
        converter=at_least("tolerance", 0.0), default=1e-2
    )


class _Population(NamedTuple):
    key: PRNGKeyArray
    points: Float[Array, "members free"]
    costs: Float[Array, " members"]
    generation: Int[Array, ""]


# Parameters times points that are evaluated at once.
_AT_ONCE = 2**20


def global_search(
    problem: AbstractProblem,
    search: DifferentialEvolution | None = None,
    method: TrustRegion | None = None,
    *,
    key: PRNGKeyArray,
    **options: Any,
) -> FitResult:
    """Fits where starts do not lead to the minimum.

    The search needs many times the evaluations of `multistart`, but neither derivatives
    nor starts in the right basin. Its best point is then fitted to convergence.

    Args:
        problem: What to fit, with finite bounds and its data in memory.
        search: How to search; by default `DifferentialEvolution()`.
        method: How to fit; by default `TrustRegion()`.
        key: Key of the random numbers.
        **options: Options of `least_squares`.

    Returns:
        The fit.

    Raises:
        ArgumentError: If a bound is infinite, the data are not in memory, or an
            argument is of another kind.
    """
    check_problem(problem)
    method = method_or_default(method)
    key = one_key(key)
    search = DifferentialEvolution() if search is None else search
    instance(
        search, "search", DifferentialEvolution, "Write `DifferentialEvolution()`."
    )
    check_finite_bounds(problem.parameters)
    chunk_for(problem, 1)
    best = _evolve(problem, search, key)
    low, high = problem.parameters.low, problem.parameters.high
    return least_squares(starting_at(problem, best, low, high), method, **options)


@eqx.filter_jit
def _evolve(problem, search: DifferentialEvolution, key) -> Float[Array, " free"]:
    low, high = problem.parameters.low, problem.parameters.high
    count = max(search.members * low.size, 8)
    together = max(1, min(count, _AT_ONCE // count_points(problem.data)))

    def costs(points):
        def one(point):
            return problem.cost(within_bounds(point, low, high))

        found = jax.lax.map(one, points, batch_size=together)
        return jnp.where(jnp.isfinite(found), found, jnp.inf)

    def unfinished(state: _Population):
        mean = jnp.mean(state.costs)
        # Infinite costs have no spread.
        spread = jnp.std(jnp.where(jnp.isfinite(mean), state.costs, 0))
        level = jnp.isfinite(mean) & (spread <= search.tolerance * jnp.abs(mean))
        return ~level & (state.generation < search.generations)

    def generation(state: _Population) -> _Population:
        key, now = jax.random.split(state.key)
        trials = _trials(search, state.points, jnp.argmin(state.costs), now)
        new = costs(trials)
        better = new <= state.costs
        return _Population(
            key,
            jnp.where(better[:, None], trials, state.points),
            jnp.where(better, new, state.costs),
            state.generation + 1,
        )

    begin, later = jax.random.split(key)
    points = LatinHypercube().points(begin, count, low.size)
    points = points.astype(problem.parameters.vector.dtype)
    start = _Population(later, points, costs(points), jnp.asarray(0))
    # Inner iterations of an algorithm.
    end = jax.lax.while_loop(unfinished, generation, start)
    return within_bounds(end.points[jnp.argmin(end.costs)], low, high)


def _trials(search: DifferentialEvolution, points, best, key):
    """Returns where each member is tried next."""
    count, size = points.shape
    keys = jax.random.split(key, 6)
    # Two others, and not the same one twice.
    one = jax.random.randint(keys[0], (count,), 1, count)
    two = jax.random.randint(keys[1], (count,), 1, count - 1)
    two = 1 + (one - 1 + two) % (count - 1)
    own = jnp.arange(count)
    factor = jax.random.uniform(keys[2], (), points.dtype)
    factor = search.smallest + factor * (search.largest - search.smallest)
    gap = points[(own + one) % count] - points[(own + two) % count]
    mutants = points[best] + factor.astype(points.dtype) * gap
    changed = jax.random.uniform(keys[3], (count, size)) < search.crossover
    # At least one parameter changes.
    forced = jax.random.randint(keys[4], (count, 1), 0, size) == jnp.arange(size)
    trials = jnp.where(changed | forced, mutants, points)
    anew = jax.random.uniform(keys[5], (count, size), points.dtype)
    return jnp.where((trials < 0) | (trials > 1), anew, trials)
