"""Eliminates linear coefficients from sums over points, group by group."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, refuse_text, refuse_traced, whole
from .._products import einsum, matmul
from ._factors import triangular
from ._given import check_names
from ._sums import LEAST_CONDITION, Factored, Normal, Sums, either, triangle


class Mixing(eqx.Module):
    r"""How groups share linear coefficients: $\beta_g = \sum_c f_{gc} \gamma_c$.

    Attributes:
        rows: The weights f, one row for each group.
        ones: Coefficients that give each group the value 1; None if there are none.
        names: Names of the coefficients; by default their numbers.

    Raises:
        ArgumentError: If `rows` is not a matrix of real numbers, or there is not one
            name for each of its columns.
    """

    rows: Float[Array, "groups shared"]
    ones: Float[Array, " shared"] | None
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, rows, names: Sequence[str] = ()):
        check_names(names, "names")
        host = _numbers(rows)
        if host.ndim != 2 or not host.size:
            raise ArgumentError(
                "`rows` must have shape (groups, coefficients) and not be empty, but "
                f"has shape {host.shape}."
            )
        found = np.linalg.lstsq(host, np.ones(len(host)), rcond=None)[0]
        constant = np.allclose(host @ found, 1, atol=1e-12)
        self.rows = jnp.asarray(host)
        self.ones = jnp.asarray(found) if constant else None
        self.names = tuple(names or map(str, range(host.shape[1])))
        if len(self.names) != host.shape[1]:
            raise ArgumentError(
                "`names` must have one entry for each of "
                f"{host.shape[1]} coefficients, but has {len(self.names)}."
            )

    def coefficients(self, functions: Iterable[str]) -> tuple[str, ...]:
        """Returns the names of all coefficients, those of one function together."""
        if len(self.names) == 1:
            return tuple(functions)
        return tuple(f"{one}[{name}]" for one in functions for name in self.names)


def _numbers(rows) -> np.ndarray:
    refuse_text(rows, "rows")
    refuse_traced(rows, "rows", "Make the problem outside.")
    host = np.asarray(rows)
    if host.dtype.kind not in "iuf":
        raise ArgumentError(f"`rows` must be real numbers, but has dtype {host.dtype}.")
    return host.astype(float)


def separate(groups: int) -> Mixing:
    """Gives each group coefficients of its own."""
    return Mixing(np.eye(whole(groups, "groups")))


def shared(groups: int) -> Mixing:
    """Gives all groups the same coefficients."""
    return Mixing(np.ones((whole(groups, "groups"), 1)))


class Parts(NamedTuple):
    """How the columns of a group are divided, in this order; the data come last.

    Attributes:
        varying: Functions that depend on the parameters.
        offset: 1 if there is a constant function, else 0.
        free: Parameters; `varying * free` derivatives follow the functions.
    """

    varying: int
    offset: int
    free: int

    @property
    def functions(self) -> int:
        return self.varying + self.offset

    @property
    def size(self) -> int:
        return self.functions + self.varying * self.free + 1


def best_coefficients(
    matrix: Float[Array, "groups k k"],
    parts: Parts,
    mixing: Mixing,
    factored: Factored,
) -> Float[Array, "functions shared"]:
    """Returns the coefficients that fit best, from X^T X or R of each group."""
    count, rows = parts.functions, mixing.rows
    a, y = slice(0, count), -1
    unknowns = count * rows.shape[1]

    def from_products(matrix):
        products = einsum("gab,gc,gd->acbd", matrix[:, a, a], rows, rows)
        sides = einsum("ga,gc->ac", matrix[:, a, y], rows)
        products = products.reshape(unknowns, unknowns)
        norms = jnp.sqrt(jnp.diagonal(products))
        norms = jnp.where(norms > 0, norms, 1)
        equal = products / norms[:, None] / norms[None, :]
        # Functions that depend on each other get the shortest coefficients, and the
        # rank of the whole tells that they are not determined.
        wanted = sides.reshape(-1) / norms
        inverse = _inverse(jax.lax.stop_gradient(equal))

        def solve(product, sides):
            solved = matmul(inverse, sides)
            # A step that rounding alone leaves to do.
            return solved + matmul(inverse, sides - product(solved))

        # With the derivatives of the solution: those of the directions have no value
        # where two sizes are equal.
        solved = jax.lax.custom_linear_solve(
            partial(matmul, equal), wanted, solve, symmetric=True
        )
        return (solved / norms).reshape(count, -1)

    def from_factor(matrix):
        columns = einsum("gka,gc->gkac", matrix[:, :, a], rows)
        columns = columns.reshape(-1, unknowns)
        sides = matrix[:, :, y].reshape(-1)
        return jnp.linalg.lstsq(columns, sides)[0].reshape(count, -1)

    return either(factored, from_factor, from_products, matrix)


def _inverse(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Inverts a symmetric matrix where it can be."""
    sizes, directions = jnp.linalg.eigh(matrix)
    sound = sizes > len(sizes) * jnp.finfo(matrix.dtype).eps * sizes[-1]
    inverse = jnp.where(sound, 1 / jnp.where(sound, sizes, 1), 0)
    return matmul(directions * inverse, directions.T)


def joint_model(
    sums: Sums,
    coefficients: Float[Array, "functions shared"],
    parts: Parts,
    mixing: Mixing,
    factored: Factored,
) -> tuple[Float[Array, "q q"], Float[Array, ""]]:
    """Makes X^T X or R of X = [J, r] over linear coefficients and parameters.

    Both follow from the columns [functions, derivatives of the functions, data] by a
    linear map that depends on the coefficients alone, so one pass gives them.

    Returns:
        The matrix, and the sum of squared residuals.
    """
    matrix = sums.matrix + sums.rest
    turn = residual_map(coefficients, parts, mixing)

    def from_products(matrix):
        return einsum("gkq,gkl,glp->qp", turn, matrix, turn)

    def from_factor(matrix):
        rows = einsum("gkl,glq->gkq", matrix, turn)
        rows = rows.reshape(-1, turn.shape[-1])
        # Enough rows for a square factor, also of one small group.
        missing = max(turn.shape[-1] - rows.shape[0], 0)
        return triangular(jnp.pad(rows, ((0, missing), (0, 0))))

    joint = either(factored, from_factor, from_products, matrix)
    cost = jnp.where(factored, matmul(joint[:, -1], joint[:, -1]), joint[-1, -1])
    return joint, cost


def residual_map(coefficients, parts: Parts, mixing: Mixing):
    """Returns what maps the columns of each group to those of [J, r].

    Args:
        coefficients: The linear ones, functions by shared.
        parts: What the columns are.
        mixing: How groups share coefficients.

    Returns:
        Matrices of shape (groups, columns, unknowns + 1).
    """
    rows = mixing.rows.astype(coefficients.dtype)
    groups, shared = rows.shape
    count, varying, free = parts.functions, parts.varying, parts.free
    each = einsum("gc,ac->ga", rows, coefficients)
    linear = einsum("gc,ab->gabc", -rows, jnp.eye(count, dtype=rows.dtype))
    linear = linear.reshape(groups, count, count * shared)
    moved = einsum("gl,ij->glij", -each[:, :varying], jnp.eye(free))
    moved = moved.reshape(groups, varying * free, free)
    turn = jnp.zeros((groups, parts.size, count * shared + free + 1), rows.dtype)
    turn = turn.at[:, :count, : count * shared].set(linear)
    turn = turn.at[:, count:-1, count * shared : -1].set(moved)
    turn = turn.at[:, :count, -1].set(-each)
    return turn.at[:, -1, -1].set(1)


def eliminated(
    sums: Sums,
    coefficients: Float[Array, "functions shared"],
    parts: Parts,
    mixing: Mixing,
    factored: Factored,
    *,
    keep: bool,
) -> Normal:
    """Makes the quadratic model with the linear coefficients solved for.

    The step is that of the full problem with the coefficients at their best (Kaufman's
    variant), and so is the covariance.

    Reference: Golub and Pereyra, SIAM Journal on Numerical Analysis 10, 413 (1973);
    Kaufman, BIT 15, 49 (1975).

    Args:
        sums: Over all points.
        coefficients: The linear ones.
        parts: What the columns are.
        mixing: How groups share coefficients.
        factored: Whether sums are triangular factors.
        keep: Whether the coefficients stay among what is solved for.
    """
    joint, cost = joint_model(sums, coefficients, parts, mixing, factored)
    factor, target, conditioned = triangle(joint, factored)
    gradient = jnp.where(factored, matmul(factor.T, target), joint[:-1, -1])
    # Sums of squares give the cost as a difference; of a near perfect fit too few
    # digits are left.
    conditioned &= factored | (cost > LEAST_CONDITION * jnp.sum(sums.matrix[:, -1, -1]))
    first = 0 if keep else coefficients.size
    return Normal(
        factor[first:, first:],
        target[first:],
        gradient[first:],
        cost,
        sums.count,
        conditioned,
        jnp.zeros(0, cost.dtype) if keep else coefficients.reshape(-1),
        factor,
    )
