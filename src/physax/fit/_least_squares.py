"""Solves least-squares problems of any size, with one algorithm."""

import dataclasses
from functools import partial

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from .._auto_mesh import auto_mesh
from .._checks import (
    ArgumentError,
    instance,
    optional,
    traced,
    true_or_false,
)
from .._status import RunError, Status
from ..runtime import Checkpointing, Progress, require_x64
from ..runtime._checkpointing import check_checkpoint
from ..runtime._progress import check_progress
from ._conclusion import conclude, determining, first_bad_point
from ._driven import check_plan, fit_blocks
from ._fit_result import FitResult
from ._given import method_or_default
from ._implicit import attach_derivative, with_derivative_of
from ._passes import points_in, resident_normal, start_search, without_data
from ._plan import Plan, plan as make_plan
from ._pointwise import check_pointwise
from ._problems import AbstractProblem, LeastSquares, check_problem
from ._search import Search
from ._separable import AbstractSeparable, Separable
from ._sharded import placed, sharded_normal, spread
from ._sources import Skip, count_points, in_memory, stream_of
from ._statistics import root
from ._trial_step import held_at_bounds
from ._trust_region import (
    TrustRegion,
    search_to_end,
)


class FitError(RunError):
    """A fit ended without converging.

    Attributes:
        result: What the fit has reached.
    """

    def __init__(self, message: str, result: FitResult):
        super().__init__(message, Status(int(result.status)))
        self.result = result


def least_squares(
    problem: AbstractProblem,
    method: TrustRegion | None = None,
    *,
    plan: Plan | None = None,
    mesh: Mesh | None = None,
    checkpoint: Checkpointing | None = None,
    progress: Progress | bool | None = True,
    on_bad_chunk: Skip | None = None,
    checks: bool = True,
    throw: bool = False,
) -> FitResult:
    """Fits parameters to data.

    Data in memory are fitted in one compiled loop, larger ones block by block from the
    host; the sums over all points, and so the answer, are the same. In memory it works
    under `jit` and `vmap`, and is differentiable with respect to data, weights and
    fixed parameters: the derivative is that of the minimum, by the implicit function
    theorem with the full Hessian. So it is by what functions read from outside.

    Args:
        problem: What to fit: `LeastSquares` or `Separable`.
        method: How to search; by default `TrustRegion()`.
        plan: How the data are processed; by default `fit.plan` decides.
        mesh: Devices over which data, or each block, are spread, of this process
            or of all; None for one. The points are divided over all axes of the mesh.
            Each process reads its part of arrays on disk.
        checkpoint: Where to keep checkpoints, and to resume from, for fits block by
            block; `every` counts blocks.
        progress: Whether and how such fits show progress.
        on_bad_chunk: Whether such fits may leave out blocks that cannot be read or are
            not finite; None if not.
        checks: Whether each block of the first pass is checked.
        throw: Whether to raise unless the fit converged.

    Returns:
        Parameters, their uncertainty, and how the fit ended.

    Raises:
        ArgumentError: If the data do not fit together, there are fewer residuals than
            parameters, the model of a point needs other points while they are
            evaluated in pieces, an option does not suit the plan, something is traced
            in a fit block by block, or an argument is of another kind.
        PrecisionError: If data or start are float64 while JAX has it off.
        DataError: If a block cannot be read or is not finite.
        FitError: With `throw`, if the fit did not converge.
    """
    check_problem(problem)
    method = method_or_default(method)
    _check_options(plan, checkpoint, progress, on_bad_chunk)
    mesh = optional(auto_mesh)(mesh)
    checks, throw = true_or_false(checks, "checks"), true_or_false(throw, "throw")
    _check_precision(problem)
    _check_count(problem)
    problem = placed(problem, mesh)
    chosen = plan_for(problem) if plan is None else plan
    check_plan(chosen, problem, checkpoint, on_bad_chunk)
    if not (chosen.driven or traced(problem)):
        count = points_in(problem.data)
        each = count if mesh is None else -(-count // mesh.size)
        check_pointwise(problem, problem.data, count, min(chosen.chunk, each))

    def fit(problem: AbstractProblem) -> FitResult:
        if chosen.driven:
            return _fit_block_by_block(
                problem,
                method,
                chosen,
                mesh,
                checkpoint,
                progress,
                on_bad_chunk,
                checks,
            )
        result = _in_memory(problem, method, chosen.chunk, mesh)
        return dataclasses.replace(result, plan=chosen)

    result = fit(problem)
    unknown = traced(result.status)
    if isinstance(problem, AbstractSeparable) and problem.may_violate_bounds:
        # Elimination knows no bounds: beyond them the coefficients are parameters.
        outside = problem.needs_joint_fit(result.linear)

        def jointly():
            return fit(problem.jointly(result.values, result.linear))

        if unknown:
            result = jax.lax.cond(outside, jointly, lambda: result)
        elif bool(outside):
            result = jointly()
    return result if unknown else _finish(problem, result, throw)


def plan_for(problem: AbstractProblem) -> Plan:
    """Returns the plan that `least_squares` chooses.

    It counts residuals: an entry of the data's first axis may hold many.

    Args:
        problem: What to fit.

    Raises:
        ArgumentError: If it is not a problem.
    """
    check_problem(problem)
    count = count_points(problem.data)
    resident = in_memory(problem.data)
    each = 1 if stream_of(problem.data) else problem.residuals_each()
    leaves = [x for x in jax.tree.leaves(problem.data) if eqx.is_array(x)]
    numbers = sum(x.size * x.dtype.itemsize for x in leaves) / 8
    size = len(problem.parameters.names) + len(problem.linear_names)
    found = make_plan(
        count * each,
        size,
        columns=max(numbers / (count * each), 1.0),
        resident=resident,
    )
    return dataclasses.replace(
        found,
        n_points=count,
        chunk=max(found.chunk // each, 1),
        block=max(found.block // each, 1),
    )


def _check_options(plan, checkpoint, progress, on_bad_chunk) -> None:
    check_progress(progress)
    check_checkpoint(checkpoint)
    for value, name, kind, remedy in (
        (plan, "plan", Plan, "Write `fit.plan(n_points, n_params)`."),
        (on_bad_chunk, "on_bad_chunk", Skip, "Write `Skip(0.01)`."),
    ):
        if value is not None:
            instance(value, name, kind, remedy)


def _check_precision(problem: AbstractProblem) -> None:
    named = {"data": problem.data, "start": problem.parameters.start}
    for name, tree in named.items():
        for leaf in jax.tree.leaves(tree):
            if getattr(leaf, "dtype", None) == np.float64:
                require_x64(f"`{name}`")


def _in_memory(
    problem: AbstractProblem, method: TrustRegion, chunk: int, mesh: Mesh | None
) -> FitResult:
    count = points_in(problem.data)
    known = not traced(problem)
    if mesh is not None and known:
        data, count = spread(problem.data, mesh)
        problem = eqx.tree_at(lambda p: p.data, problem, data)
    options = {"mesh": mesh, "count": count}
    begun = None
    if known:
        # First the program that adds up squares, which is nearly always enough.
        search, result = _fit_in_memory(problem, method, chunk, None, False, **options)
        if not isinstance(search.factored, jax.core.Tracer):
            if bool(search.factored) and not bool(search.done):
                search, result = _fit_in_memory(
                    problem, method, chunk, search, True, **options
                )
            if not traced(result):
                return result
            # Functions read what is traced outside: only derivatives are left to do.
            begun = jax.lax.stop_gradient(search)
    return _fit_in_memory(problem, method, chunk, begun, None, **options)[1]


@eqx.filter_jit
def _fit_in_memory(
    problem: AbstractProblem,
    method: TrustRegion,
    chunk: int,
    search: Search | None,
    factored: bool | None,
    *,
    mesh: Mesh | None,
    count: int,
) -> tuple[Search, FitResult]:
    """Searches on from `search`, or from the start, `factored` as `search_to_end`."""
    # Of the plan only what matters: how much memory is free changes from call to call.
    fixed = jax.lax.stop_gradient
    still = jax.tree.map(lambda x: fixed(x) if eqx.is_array(x) else x, problem)

    def normal_at(problem, point, factored, unit):
        if mesh is None:
            return resident_normal(problem, point, factored, unit, chunk=chunk)
        return sharded_normal(
            problem, point, factored, unit, chunk=chunk, mesh=mesh, count=count
        )

    begun = start_search(still) if search is None else search
    found = search_to_end(
        method, still.bounds(), begun, partial(normal_at, still), factored=factored
    )
    if factored is None:
        # Some transformation follows the data.
        unit = fixed(found.unit)
        vector = attach_derivative(problem, found.vector, found.normal, unit)
        # One more pass, along which derivatives reach errors, cost and coefficients.
        normal = with_derivative_of(
            found.normal, normal_at(problem, vector, fixed(found.factored), unit)
        )
        if isinstance(problem, LeastSquares) and count == points_in(problem.data):
            # The sums do not know what a point of weight 0 would cost.
            cost = with_derivative_of(found.normal.cost, problem.cost(vector, unit))
            normal = eqx.tree_at(lambda n: n.cost, normal, cost)
        found = eqx.tree_at(lambda s: (s.vector, s.normal), found, (vector, normal))
    return found, report(without_data(problem), method, found)


def report(problem: AbstractProblem, method: TrustRegion, search: Search) -> FitResult:
    """Makes the result of a search that has ended, but for the plan."""
    low, high = problem.bounds()
    normal = search.normal
    held = held_at_bounds(search.vector, normal.gradient, low, high)
    size = len(problem.parameters.names)
    # What is solved for holds either the linear coefficients first, or none of them.
    kept, values = search.vector[:-size], search.vector[-size:]
    gone = jnp.zeros(normal.linear.size, bool)
    joint = determining(search, held, problem.vector())
    fixed = jnp.concatenate([gone, low == high])
    held = jnp.concatenate([gone, held])
    return FitResult(
        parameters=problem.parameters.tree(values),
        values=values,
        linear=jnp.concatenate([normal.linear, kept]),
        factor=joint / search.unit,
        held=held,
        fixed=fixed,
        parts=normal.parts,
        chi2=normal.cost / search.unit / search.unit,
        norm=root(normal.cost) / search.unit,
        count=normal.count,
        iterations=search.iterations,
        evaluations=search.evaluations,
        gradient=normal.gradient[-size:] / search.unit / search.unit,
        status=conclude(method, search, held, joint),
        names=problem.parameters.names,
        linear_names=problem.linear_names,
        absolute_sigma=problem.absolute_sigma,
        plan=None,
        detail="",
    )


_compiled_report = eqx.filter_jit(report)


def _fit_block_by_block(
    problem, method, plan, mesh, checkpoint, progress, on_bad_chunk, checks
) -> FitResult:
    bare = without_data(problem)
    search, outcome, skipped = fit_blocks(
        bare,
        problem.data,
        method,
        plan,
        mesh=mesh,
        checkpoint=checkpoint,
        progress=progress,
        on_bad_chunk=on_bad_chunk,
        checks=checks,
    )
    result = _compiled_report(bare, method, search)
    said = []
    if outcome.status is Status.INTERRUPTED:
        result = eqx.tree_at(
            lambda r: r.status, result, jnp.asarray(Status.INTERRUPTED, jnp.int32)
        )
        said.append(
            "Nothing was saved: pass `checkpoint` to be able to resume."
            if checkpoint is None
            else "Run it again with the same checkpoint folder to resume."
        )
    if skipped.any():
        places = ", ".join(map(str, np.flatnonzero(skipped)[:8]))
        said.append(
            f"{skipped.sum()} of {skipped.size} chunks were left out ({places})."
        )
    return dataclasses.replace(result, plan=plan, detail=" ".join(said))


def _check_count(problem: AbstractProblem) -> None:
    """Raises if there are too few residuals, before anything is compiled."""
    if stream_of(problem.data) is not None:
        return
    if isinstance(problem, LeastSquares) and problem.penalty is not None:
        return  # What is known before may be enough.
    size = len(problem.parameters.names) + len(problem.linear_names)
    count = points_in(problem.data) * problem.residuals_each()
    if count < size:
        raise ArgumentError(
            "`data` must give at least as many residuals as there are parameters, "
            f"{size}, but give {count}. Fix parameters, or add data."
        )
    mask = problem.data[-1] if isinstance(problem, LeastSquares | Separable) else None
    # One on a device or on disk would have to be fetched: the result tells of those.
    if isinstance(mask, np.ndarray) and not isinstance(mask, np.memmap):
        left = count * np.count_nonzero(mask) // mask.size
        if left < size:
            raise ArgumentError(
                "`mask` must leave at least as many residuals as there are "
                f"parameters, {size}, but leaves {left}. Fix parameters, or let more "
                "points count."
            )


def _finish(problem, result: FitResult, throw: bool) -> FitResult:
    if np.any(np.asarray(result.status) == Status.INVALID):
        result = dataclasses.replace(result, detail=first_bad_point(problem))
    if throw and not result.success:
        raise FitError(result.message, result)
    return result
