"""Errors of fits to maps whose noise is that of the speckles themselves."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._checks import instance
from .._products import einsum, matmul
from ..fit import FitResult
from ._frame_covariance import known_part, unscaled_covariance
from ._two_time_problem import TwoTimeProblem


def speckle_covariance(
    problem: TwoTimeProblem, result: FitResult
) -> Float[Array, "all all"]:
    r"""Estimates the covariance of a fit to maps of a limited number of speckles.

    Pairs (i, j) and (k, l) of frames of one map are means of products of the same
    intensities. As long as speckles live, they fluctuate together, and the covariance
    of independent pairs is too small. With fluctuations of intensities that are nearly
    normal, of the correlation $P$, the covariance of two values is

    $$s^2 (P_{ik} P_{jl} + P_{il} P_{jk}).$$

    $P$ is 1 on its diagonal and $u f(t_i, t_k)$ elsewhere, with the factor $f$ of the
    fitted contrast and the part $u$ of the variance of an intensity that is not the
    shot noise of its frame. Both $s$ and $u$ follow from the residuals of each map:
    from their size, and from the correlation of neighbours; $u = 0$ gives the errors of
    independent pairs. With the rows $J$ of all pairs and the covariance $\Sigma$ this
    is $A^{-1} J^T \Sigma J A^{-1}$, $A = J^T J$, made larger by what the fit has taken
    from the residuals.

    Speckles of maps are taken as independent of each other. What moves all intensities
    of a frame at once is not part of this noise: `frame_covariance` is for that. Time
    goes with the cube of the frames, memory with their square times the parameters.

    References: Isserlis, Biometrika 12, 134 (1918), for products of normal numbers;
    Bartlett, Supplement to the Journal of the Royal Statistical Society 8, 27 (1946),
    for correlations of time series; Schätzel, Quantum Optics 2, 287 (1990), for those
    of photons.

    Args:
        problem: What was fitted, from `two_time_problem`.
        result: Its fit.

    Returns:
        Covariance of linear coefficients and free parameters, in this order, as in
        `result.full_covariance`; infinite where that is, or where there are too few
        independent pairs.

    Raises:
        ArgumentError: If `problem` or `result` is of another kind, or `result` is a
            batch.
    """
    instance(problem, "problem", TwoTimeProblem, "Make one by `two_time_problem`.")
    unscaled = unscaled_covariance(result)
    inverse = known_part(unscaled)
    meat = jnp.zeros_like(inverse)
    for k in range(problem.q.size):
        meat = meat + _of_map(problem, result.values, result.linear, jnp.asarray(k))
    # The fit lowers the sum of squares by this, as by one a parameter in white noise.
    taken = jnp.sum(inverse * meat)
    left = result.chi2 - taken
    grown = jnp.where(left > 0, result.chi2 / jnp.where(left > 0, left, 1), jnp.inf)
    grown = jnp.where(result.chi2 > 0, grown, 1)
    covariance = matmul(matmul(inverse, meat), inverse)
    covariance = jnp.where(covariance == 0, 0, covariance * grown)
    return jnp.where(jnp.isfinite(unscaled), covariance, unscaled)


@eqx.filter_jit
def _of_map(
    problem: TwoTimeProblem, values: Array, linear: Array, k: Int[Array, ""]
) -> Float[Array, "all all"]:
    r"""Returns $J^T \Sigma J$ of one map."""
    shares = problem.mixing.rows[k]
    contrast, offset = matmul(linear.reshape(2, -1), shares)
    rows = _matrices(problem, values, k)
    weight = rows[1]
    used = weight > 0
    left = rows[-1] - contrast * rows[0] - (offset - problem.centre) * weight
    left = jnp.where(used, left / jnp.where(used, weight, 1), 0)

    model = problem.parameters.tree(values)
    second = model.prepare(problem.times)
    first = jax.tree.map(lambda x: x[:, None], second)
    factor = model.factor(first, second, problem.q[k], problem.phi[k])
    correlation = jnp.where(
        jnp.eye(len(used), dtype=bool), 1, _lasting(left, used, factor) * factor
    )
    size = jnp.sum(left**2) / jnp.sum(jnp.where(used, 1 + correlation**2, 0))

    columns = rows[:-1] * weight
    spread = matmul(matmul(correlation, columns), correlation)
    # Each pair is above the diagonal and below it.
    products = size / 2 * einsum("aij,bij->ab", columns, spread)
    moved = contrast * jnp.eye(values.size, dtype=values.dtype)
    turn = jax.scipy.linalg.block_diag(shares[None], shares[None], moved)
    return matmul(matmul(turn.T, products), turn)


def _matrices(
    problem: TwoTimeProblem, values: Array, k: Int[Array, ""]
) -> Float[Array, "columns frames frames"]:
    """Returns the columns of one map, weighted: factor, one, derivatives, data.

    As symmetric matrices that are 0 where a pair does not count.
    """
    starts, c2, weight, mask = problem.data
    each = (problem.q, problem.phi, problem.weight, problem.mixing.rows)
    one = eqx.tree_at(
        lambda p: (p.q, p.phi, p.weight, p.mixing.rows),
        problem,
        tuple(x[k][None] for x in each),
    )
    tiles = (starts, *(x if x is None else x[:, k, None] for x in (c2, weight)), mask)
    frames, size = problem.times.size, problem.size
    side = -(-frames // size) * size

    def put(whole, tile):
        batch = jax.tree.map(lambda x: x[None], tile)
        rows = one.columns(values, batch, jnp.ones(1, bool)).rows
        rows = rows.reshape(-1, size, size)
        return jax.lax.dynamic_update_slice(whole, rows, (0, *tile[0])), None

    whole = jnp.zeros((problem.parts.size, side, side), values.dtype)
    whole = jax.lax.scan(put, whole, tiles)[0][:, :frames, :frames]
    return whole + jnp.swapaxes(whole, 1, 2)


def _lasting(
    left: Float[Array, "frames frames"],
    used: Bool[Array, "frames frames"],
    factor: Float[Array, "frames frames"],
) -> Float[Array, ""]:
    """Returns the part u of the variance of an intensity that lasts beyond a frame.

    Neighbours (i, j) and (i, j + 1) have the expected products u f(j, j + 1) + u^2 f(i,
    j) f(i, j + 1) and squares 1 + u^2 f(i, j)^2: u is where their quotient is that of
    the residuals.
    """
    both = used[:, :-1] & used[:, 1:]

    def total(x):
        return jnp.sum(jnp.where(both, x, 0))

    def products(x):
        return total(x[:, :-1] * x[:, 1:]), total(x[:, :-1] ** 2 + x[:, 1:] ** 2) / 2

    seen, squares = products(left)
    share = seen / jnp.where(squares > 0, squares, 1)
    near, (far, size) = total(jnp.diagonal(factor, 1)), products(factor)
    count = total(1.0)
    root = near**2 + 4 * (far - share * size) * share * count
    below = near + jnp.sqrt(jnp.maximum(root, 0))
    lasting = 2 * share * count / jnp.where(below > 0, below, 1)
    # Without neighbours nothing is known: the larger errors.
    most = share * (count + size) >= near + far
    return jnp.where(most, 1, jnp.clip(lasting, 0, 1))
