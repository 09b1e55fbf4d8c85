"""Passes over data that are in memory."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from .._checks import ArgumentError, refuse_masked
from ._problems import AbstractProblem, is_robust
from ._search import Search, begin
from ._sums import Factored, Normal, Sums, Unit, add, no_sums


def points_in(data: PyTree) -> int:
    """Returns the number of points, the length of the first axis of all arrays.

    Raises:
        ArgumentError: If there is no array, or lengths differ.
    """
    leaves = jax.tree_util.tree_leaves_with_path(data)
    if not leaves:
        raise ArgumentError(
            "`data` must hold an array whose first axis is the points, but is empty. "
            "Where a function of the parameters gives all residuals, pass what it "
            "reads as one point: `LeastSquares(lambda p, y: fun(p, y[0])[None], start, "
            "y[None])`."
        )
    lengths = {}
    for path, leaf in leaves:
        name = _place(path)
        shape = getattr(leaf, "shape", None)
        if not shape:
            raise ArgumentError(
                f"`{name}` must be an array whose first axis "
                f"is the points, but is {leaf!r:.40}. Put constants into the residual "
                "or among the fixed parameters."
            )
        refuse_masked(leaf, name, "Say which points count with `mask`.")
        if isinstance(leaf, np.ndarray) and not leaf.dtype.isnative:
            raise ArgumentError(
                f"`{name}` must have the byte order of this machine, but has the dtype "
                f"{leaf.dtype.str}. Use `x.astype(x.dtype.newbyteorder('='))`."
            )
        lengths[name] = shape[0]
    if len(set(lengths.values())) > 1:
        raise ArgumentError(
            "`data` must have first axes of equal length, with `weights`, `mask` and "
            f"the like, but has {lengths}."
        )
    return next(iter(lengths.values()))


def _place(path: tuple) -> str:
    """Returns where an array is, as in the call that made the problem."""
    named = path and isinstance(path[0], jax.tree_util.GetAttrKey)
    place = jax.tree_util.keystr(path)
    return place.removeprefix(".") if named else f"data{place}"


def add_points(
    problem: AbstractProblem,
    data: PyTree,
    vector: Float[Array, " m"],
    factored: Factored,
    sums: Sums,
    first: Int[Array, ""],
    last: Int[Array, ""],
    *,
    chunk: int,
    unit: Unit = 1.0,
) -> Sums:
    """Adds the points from `first` to before `last`, chunk by chunk.

    Args:
        problem: The problem.
        data: Arrays in memory; all of them, or a block.
        vector: What the solver moves.
        factored: Whether to form triangular factors.
        sums: Of the points before.
        first: The first point of `data` that counts.
        last: One past the last.
        chunk: Points that are evaluated at once.
        unit: What residuals are multiplied by.
    """
    count = points_in(data)
    if count <= chunk:
        number = jnp.arange(count)
        used = (number >= first) & (number < last)
        return add(sums, problem.columns(vector, data, used, unit), factored)

    def body(turn, sums):
        begin = turn * chunk
        # The last chunk overlaps the one before: no copy of the data with padding.
        start = jnp.minimum(begin, count - chunk)
        batch = jax.tree.map(
            lambda x: jax.lax.dynamic_slice_in_dim(jnp.asarray(x), start, chunk), data
        )
        number = start + jnp.arange(chunk)
        used = (number >= jnp.maximum(begin, first)) & (number < last)
        return add(sums, problem.columns(vector, batch, used, unit), factored)

    return jax.lax.fori_loop(0, -(-count // chunk), body, sums)


def first_sums(
    problem: AbstractProblem, data: PyTree, vector: Float[Array, " m"]
) -> Sums:
    """Returns the sums of no points, for data like these."""
    return no_sums(problem.sums_shape(data), vector.dtype, is_robust(problem))


def resident_normal(
    problem: AbstractProblem,
    vector: Float[Array, " m"],
    factored: Factored,
    unit: Unit = 1.0,
    *,
    chunk: int,
) -> Normal:
    """Makes the quadratic model of all points in one pass."""
    sums = first_sums(problem, problem.data, vector)
    begin, end = jnp.asarray(0), jnp.asarray(points_in(problem.data))
    sums = add_points(
        *(problem, problem.data, vector, factored, sums, begin, end),
        chunk=chunk,
        unit=unit,
    )
    return problem.normal(vector, sums, factored, unit)


def start_search(problem: AbstractProblem) -> Search:
    """Returns a search at the start of a problem."""
    vector = problem.vector()
    kept = vector.size - len(problem.parameters.names)
    return begin(vector, len(problem.linear_names) - kept, is_robust(problem))


def without_data(problem: AbstractProblem) -> AbstractProblem:
    """Returns the problem with nothing in place of its data."""
    return eqx.tree_at(lambda p: p.data, problem, None, is_leaf=lambda x: x is None)
