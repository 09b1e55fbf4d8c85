"""What a search has come to: what the data determine, and how it ended."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._checks import traced
from .._status import Status
from ._passes import points_in
from ._problems import AbstractProblem, LeastSquares
from ._search import Search, finite, noise
from ._sources import in_memory
from ._sums import column_norms, norms_of, rank_limit
from ._trust_region import TrustRegion


def determining(
    search: Search, held: Bool[Array, " m"], start: Float[Array, " m"]
) -> Float[Array, "all all"]:
    """Returns the joint factor, without what only rounding tells.

    Args:
        search: One that has ended.
        held: Which parameters are at a bound.
        start: The parameters where it began.
    """
    normal = search.normal
    # A column that has faded to rounding, of its own former length and of what the
    # other parameters change, tells nothing.
    eps = jnp.finfo(normal.joint.dtype).eps
    own = column_norms(normal)
    effects = own * jnp.maximum(jnp.abs(search.vector), jnp.abs(start))
    small = effects <= eps * norms_of(effects)
    faded = small & (own <= eps * search.largest) & ~held
    # Linear coefficients that were eliminated come first.
    gone = jnp.zeros(normal.joint.shape[-1] - held.size, bool)
    return jnp.where(jnp.concatenate([gone, faded]), 0, normal.joint)


def conclude(
    method: TrustRegion,
    search: Search,
    held: Bool[Array, " all"],
    joint: Float[Array, "all all"],
) -> Int[Array, ""]:
    """Says how a search ended: `CONVERGED` only if the cost has a minimum there.

    Args:
        method: Tolerances.
        search: One that has ended.
        held: Which linear coefficients and parameters are at a bound.
        joint: What `determining` returns.
    """
    normal = search.normal
    norms = norms_of(joint)
    equal = joint / jnp.where(norms > 0, norms, 1)
    sigma = jnp.linalg.svd(jnp.where(held, 0, equal), compute_uv=False)
    eps = jnp.finfo(norms.dtype).eps
    rank = jnp.sum(sigma > rank_limit(sigma.size, sigma.dtype) * sigma[0])
    tolerance = jnp.maximum(jnp.maximum(method.ftol, method.gtol), 100 * eps)
    level = search.predicted <= tolerance * normal.cost + noise(search)
    out = jnp.where(level, Status.CONVERGED, Status.STALLED)
    out = jnp.where(
        ~level & (search.evaluations >= method.max_evaluations), Status.MAX_STEPS, out
    )
    out = jnp.where(rank >= jnp.sum(~held), out, Status.UNDETERMINED)
    out = jnp.where(finite(normal) & (search.evaluations > 0), out, Status.INVALID)
    return out.astype(jnp.int32)


def first_bad_point(problem: AbstractProblem) -> str:
    """Says which point has residuals that are not finite at the start."""
    unknown = "Residuals or their derivatives are not finite at the start."
    if not in_memory(problem.data) or not isinstance(problem, LeastSquares):
        return unknown
    data, _, mask = problem.data
    values = problem.residual(problem.parameters.tree(problem.vector()), data)
    if traced((values, mask)):
        return unknown
    bad = ~np.isfinite(np.asarray(values).reshape(points_in(data), -1)).all(axis=1)
    if mask is not None:
        bad &= np.asarray(mask)
    if not bad.any():
        return "The derivatives of the residuals are not finite at the start."
    return (
        f"The residual of point {int(np.argmax(bad))} is not finite at the start "
        f"({int(bad.sum())} of {bad.size} are not): look for NaN in the data, or mask "
        "these points."
    )
