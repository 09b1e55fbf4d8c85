"""Sums over all points, from which a step follows: added chunk by chunk."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._products import matmul
from ._factors import factors
from ._robust import Parts


Factored = bool | Bool[Array, ""]
"""Whether sums are triangular factors; a `bool` where that is known when compiling."""


Unit = float | Float[Array, ""]
"""What residuals and their derivatives are multiplied by, a power of two."""


class Sums(eqx.Module):
    """What one pass over the points has added up so far.

    With the columns X = [J, r] of all points this is either X^T X, kept as a sum and
    the rounding errors of that sum, or the triangular factor R of X = QR.

    Attributes:
        matrix: X^T X or R.
        rest: What rounding has cut off X^T X.
        cost: The cost and what rounding has cut off it.
        count: Number of residuals.
        parts: The matrix of `Parts`, with a loss other than the square.
    """

    matrix: Float[Array, "*groups k k"]
    rest: Float[Array, "*groups k k"]
    cost: Float[Array, "2"]
    count: Int[Array, ""]
    parts: Float[Array, "2 m m"] | None = None


class Columns(eqx.Module):
    """What one chunk of points adds.

    Attributes:
        rows: The columns X, transposed.
        cost: Their cost.
        count: Number of residuals.
        parts: Rows of `robust_rows`, with a loss other than the square.
    """

    rows: Float[Array, "*groups k points"]
    cost: Float[Array, ""]
    count: Int[Array, ""]
    parts: Float[Array, "2 m points"] | None = None


class Normal(eqx.Module):
    r"""The quadratic model of the cost, in factored form.

    The residuals after a step s have the norm $|R s + c|^2$ but for a constant.

    Attributes:
        factor: The triangular factor R of the Jacobian.
        target: The residuals in its basis, $c = Q^T r$.
        gradient: $J^T r$.
        cost: What is minimised: the sum of the loss over all residuals.
        count: Number of residuals.
        conditioned: Whether sums of squares were good enough.
        linear: Linear coefficients that were eliminated; empty without.
        joint: The triangular factor for those and the parameters together.
        parts: For errors, with a loss other than the square.
    """

    factor: Float[Array, "m m"]
    target: Float[Array, " m"]
    gradient: Float[Array, " m"]
    cost: Float[Array, ""]
    count: Int[Array, ""]
    conditioned: Array
    linear: Float[Array, " linear"]
    joint: Float[Array, "all all"]
    parts: Parts | None = None


# Below this the sums of squares have lost half of their digits.
LEAST_CONDITION = 1e-8


def no_sums(shape: tuple[int, ...], dtype, robust: bool) -> Sums:
    """Returns the sums of no points, with a loss other than the square if `robust`."""
    matrix, size = jnp.zeros(shape, dtype), shape[-1] - 1
    parts = jnp.zeros((2, size, size), dtype) if robust else None
    return Sums(matrix, matrix, jnp.zeros(2, dtype), jnp.zeros((), int), parts)


def add(sums: Sums, columns: Columns, factored: Factored) -> Sums:
    """Adds the points of a chunk.

    Args:
        sums: Of the points before.
        columns: Of the chunk.
        factored: Whether `sums` hold R and not X^T X.
    """
    old, new = (sums.matrix, sums.parts), (columns.rows, columns.parts)

    def extend_factors(_):
        joined = jax.tree.map(
            lambda x, y: jnp.concatenate([x, jnp.swapaxes(y, -1, -2)], axis=-2),
            old,
            new,
        )
        return *factors(*joined), sums.rest

    def extend_products(_):
        product, more = jax.tree.map(lambda y: matmul(y, jnp.swapaxes(y, -1, -2)), new)
        total, lost = _two_sum(sums.matrix, product)
        parts = None if sums.parts is None else sums.parts + more
        return total, parts, sums.rest + lost

    matrix, parts, rest = either(factored, extend_factors, extend_products, None)
    cost, lost = _two_sum(sums.cost[0], columns.cost)
    return Sums(
        matrix,
        rest,
        jnp.stack([cost, sums.cost[1] + lost]),
        sums.count + columns.count,
        parts,
    )


def either(factored: Factored, yes: Callable, no: Callable, operand: Any) -> Any:
    """Returns what one of two functions makes of an operand.

    Where it is known which, the other one is not compiled: that is much of a short fit.
    """
    if isinstance(factored, bool):
        return (yes if factored else no)(operand)
    return jax.lax.cond(factored, yes, no, operand)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Returns a + b and what rounding cut off (Knuth's algorithm)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def triangle(
    matrix: Float[Array, "k k"], factored: Factored
) -> tuple[Float[Array, "m m"], Float[Array, " m"], Array]:
    """Factors X^T X, or takes R as it is; X = [J, r].

    Returns:
        R of J, Q^T r, and whether X^T X was conditioned well enough for that.
    """
    columns = matrix[:-1, :-1]

    def from_products(_):
        squares = jnp.diagonal(columns)
        norms = jnp.sqrt(squares)
        norms = jnp.where(norms > 0, norms, 1)
        # Column norms of 1 are what makes sums of squares usable: of the parameters'
        # units nothing is left.
        equal = columns / norms[:, None] / norms[None, :]
        lower = jnp.linalg.cholesky(equal)
        one = jnp.eye(norms.size, dtype=norms.dtype)
        sides = jnp.column_stack([matrix[:-1, -1] / norms, one])
        found = jax.scipy.linalg.solve_triangular(lower, sides, lower=True)
        # The trace of the inverse is at least one over the lowest eigenvalue, and at
        # most that times the number of columns; NaN where there is no factor.
        trace = jnp.sum(found[:, 1:] ** 2)
        limits = jnp.finfo(matrix.dtype)
        limit = max(LEAST_CONDITION, float(10 * limits.eps))
        sound = trace * (limit * norms.size) < 1
        # Of smaller squares digits are lost below the range.
        sound &= jnp.min(squares, initial=jnp.inf) > float(limits.tiny / limits.eps)
        return lower.T * norms[None, :], found[:, 0], sound

    def from_factor(_):
        return columns, matrix[:-1, -1], jnp.ones((), bool)

    return either(factored, from_factor, from_products, None)


def column_norms(normal: Normal) -> Float[Array, " m"]:
    """Returns the norm of each column of the Jacobian."""
    return norms_of(normal.factor)


def norms_of(matrix: Float[Array, "n *m"]) -> Float[Array, "*m"]:
    """Returns the norms of columns, whose squares may be out of range."""
    unit = power_of_two(jnp.max(jnp.abs(matrix), axis=0))
    unit = jnp.where((unit > 0) & jnp.isfinite(unit), unit, 1)
    return unit * jnp.linalg.norm(matrix / unit, axis=0)


def power_of_two(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Returns the power of two next to a number; products with it are exact."""
    limits = jnp.finfo(x.dtype)
    return jax.lax.reduce_precision(jax.lax.stop_gradient(x), int(limits.nexp), 0)


def rank_limit(columns: int, dtype) -> float:
    """Returns the singular value, in units of the largest, below which there is none.

    Of columns of length 1: their entries have the rounding of a model's arithmetic,
    some dozens of times that of a number.
    """
    return 64 * columns * float(jnp.finfo(dtype).eps)
