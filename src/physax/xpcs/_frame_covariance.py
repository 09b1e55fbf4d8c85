"""Errors where the noise of pairs with a common frame correlates, and no other."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import instance, true_or_false
from .._products import einsum, matmul
from ..fit import FitResult
from ..fit._fit_result import one_fit
from ._tiles import frames_of
from ._two_time_problem import TwoTimeProblem


def frame_covariance(
    problem: TwoTimeProblem, result: FitResult, *, shared: bool = False
) -> Float[Array, "all all"]:
    r"""Estimates the covariance of a fit from its residuals, frame by frame.

    Each frame is in as many pairs as there are other frames, and what fluctuates from
    frame to frame moves all of them: the covariance of independent pairs is then too
    small. With the rows $J_p$ and the residuals $r_p$ of all pairs p this is
    $A^{-1} V A^{-1}$, $A = J^T J$, where $V$ sums $J_p^T r_p r_{p'} J_{p'}$ over the
    pairs that have a frame in common. It needs no model of their noise, but many
    frames, and that pairs without a common frame are independent: the noise of speckles
    that live for several frames is not, and needs `speckle_covariance`.

    As an estimate from few frames V may have negative eigenvalues, in units of the
    stated errors. They are set to 0: combinations in their directions have hardly any
    error then, which shows that there are too few frames to tell it.

    References: Cameron, Gelbach and Miller, *Robust inference with multiway
    clustering*, Journal of Business & Economic Statistics 29, 238 (2011), for these
    eigenvalues; Fafchamps and Gubert, *The formation of risk sharing networks*, Journal
    of Development Economics 83, 326 (2007), for observations of pairs.

    Args:
        problem: What was fitted, from `two_time_problem`.
        result: Its fit.
        shared: Whether a frame fluctuates in all maps at once, as it does where they
            come from one detector.

    Returns:
        Covariance of linear coefficients and free parameters, in this order, as in
        `result.full_covariance`, and infinite where that is.

    Raises:
        ArgumentError: If `problem` or `result` is of another kind, or `result` is a
            batch.
    """
    instance(problem, "problem", TwoTimeProblem, "Make one by `two_time_problem`.")
    shared = true_or_false(shared, "shared")
    inverse = unscaled_covariance(result)
    # Not the result itself: the memory that was free is a part of it, and each value
    # of that would compile anew.
    meat = _summed_scores(problem, result.values, result.linear, shared)
    covariance = _without_negative(meat, known_part(inverse))
    return jnp.where(jnp.isfinite(inverse), covariance, inverse)


@jax.jit
def _without_negative(
    meat: Float[Array, "all all"], inverse: Float[Array, "all all"]
) -> Float[Array, "all all"]:
    """Returns the covariance for what is positive in V, in units of stated errors.

    Those are the combinations of parameters that the fit takes for independent, so that
    the choice of parameters does not count.
    """
    unit = jnp.sqrt(jnp.diagonal(inverse))
    # Not those of what the data do not determine, or a bound holds.
    unit = jnp.where(unit > 0, unit, 1)
    spread, ways = jnp.linalg.eigh(inverse / unit[:, None] / unit)
    root = unit[:, None] * ways * jnp.sqrt(jnp.maximum(spread, 0))
    sizes, ways = jnp.linalg.eigh(matmul(matmul(root.T, meat), root))
    root = matmul(root, ways * jnp.sqrt(jnp.maximum(sizes, 0)))
    return matmul(root, root.T)


def unscaled_covariance(result: Any) -> Float[Array, "all all"]:
    """Returns the covariance of a fit for residuals of variance 1.

    It is 0 where that of the residuals is estimated, and they vanish: then the scores
    do, too.
    """
    inverse = one_fit(result).full_covariance
    if result.absolute_sigma:
        return inverse
    reduced = result.reduced_chi2
    return inverse / jnp.where(reduced == 0, 1, reduced)


def known_part(inverse: Float[Array, "all all"]) -> Float[Array, "all all"]:
    """Returns a covariance with 0 for what the data do not determine."""
    return jnp.where(jnp.isfinite(inverse), inverse, 0)


@eqx.filter_jit
def _summed_scores(
    problem: TwoTimeProblem, values: Array, linear: Array, shared: bool
) -> Float[Array, "all all"]:
    frames, maps = problem.times.size, problem.q.size
    size = values.size + linear.size
    used = jnp.ones(1, bool)

    def add_tile(carry, batch):
        sums, alone = carry
        batch = jax.tree.map(lambda x: x[None], batch)
        scores = problem.scores(values, linear, batch, used)
        grid = scores.reshape(maps, size, problem.size, problem.size)
        first, second = frames_of(batch[0], problem.size)
        for index, axis in ((first[0], -1), (second[0], -2)):
            # Frames beyond the last have no scores.
            sums = sums.at[:, :, index].add(grid.sum(axis), mode="drop")
        together = scores.sum(0, keepdims=True) if shared else scores
        alone = alone + einsum("gqp,grp->qr", together, together)
        return (sums, alone), None

    begin = (
        jnp.zeros((maps, size, frames)),
        jnp.zeros((size, size)),
    )
    (sums, alone), _ = jax.lax.scan(add_tile, begin, problem.data)
    sums = sums.sum(0, keepdims=True) if shared else sums
    # A pair shares both of its frames with itself: it was counted twice.
    meat = einsum("gqf,grf->qr", sums, sums) - alone
    return meat * frames / (frames - 1)
