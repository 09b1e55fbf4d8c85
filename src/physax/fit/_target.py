"""What is sampled: the posterior in nearly standard normal coordinates."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._checks import ArgumentError, kind_of, positive
from ._batched_search import chunk_for
from ._fit_result import FitResult, fit_of
from ._log_density import Target, prior_of
from ._losses import Squared
from ._passes import without_data
from ._problems import AbstractProblem, LeastSquares
from ._separable import AbstractSeparable
from ._unconstrain import Unconstrain


class KnownSigma(eqx.Module):
    """Residuals have a known standard deviation.

    Attributes:
        deviation: Its value; 1 if the residuals are in units of it.
    """

    deviation: Float[Array, ""] = eqx.field(
        converter=lambda x: positive(x, "deviation"), default=1.0
    )


class UnknownSigma(eqx.Module):
    """Residuals have one unknown standard deviation, with a flat prior of its log."""


def target_of(
    problem: AbstractProblem,
    result: FitResult,
    priors: PyTree = None,
    sigma: KnownSigma | UnknownSigma | None = None,
) -> Target:
    """Makes the log-density that is sampled, in nearly standard coordinates.

    It is plain JAX: `target.potential` serves any other sampler as well.

    Args:
        problem: What was fitted.
        result: Its fit.
        priors: As for `sample_posterior`.
        sigma: As for `sample_posterior`.

    Raises:
        ArgumentError: As for `sample_posterior`.
    """
    fit_of(problem, result)
    if sigma is not None and not isinstance(sigma, KnownSigma | UnknownSigma):
        raise ArgumentError(
            "`sigma` must be a `KnownSigma` or an `UnknownSigma`, but is "
            f"{kind_of(sigma)} Write `KnownSigma(0.1)`."
        )
    if isinstance(problem, LeastSquares) and not isinstance(problem.loss, Squared):
        raise ArgumentError(
            f"`problem` must have the loss `Squared` to be a likelihood, but has "
            f"`{type(problem.loss).__name__}`."
        )
    if sigma is None:
        sigma = KnownSigma() if problem.absolute_sigma else UnknownSigma()
    known = isinstance(sigma, KnownSigma)
    if isinstance(problem, LeastSquares) and problem.penalty is not None and not known:
        raise ArgumentError(
            "`penalty` must be None where the standard deviation is unknown, but there "
            "is one. Give it as `priors`."
        )
    values, factor = result.values, result.factor
    if isinstance(problem, AbstractSeparable):
        bounded = jnp.isfinite(problem.low) | jnp.isfinite(problem.high)
        if bool(jnp.any(bounded)):
            # Their bounds cannot be integrated over in closed form.
            problem = problem.jointly(values, result.linear)
            values = jnp.concatenate([result.linear, values])
        else:
            factor = factor[-values.size :, -values.size :]
    freedom = max(int(result.degrees_of_freedom), 1)
    scale = sigma.deviation if known else jnp.sqrt(result.chi2 / freedom)
    if not float(scale) > 0:
        raise ArgumentError(
            "`problem` must have residuals where their deviation is unknown, but they "
            "vanish. Give `sigma=KnownSigma(...)`."
        )
    transform = Unconstrain(*problem.bounds())
    centre, slope, believed = _prepared(
        without_data(problem), priors, transform, values, factor / scale
    )
    names = (*result.linear_names, *result.names)[-values.size :]
    moving = transform.moving
    rows = np.asarray(factor / scale, float)[:, moving] * np.asarray(slope, float)
    spread = jnp.asarray(_spread(rows, believed, [names[i] for i in moving]))
    if not known:
        count = float(result.count)
        centre = jnp.append(centre, jnp.log(scale))
        spread = jnp.pad(spread, (0, 1)).at[-1, -1].set(1 / math.sqrt(2 * count))
    return Target(
        problem,
        priors,
        transform,
        centre,
        spread.astype(centre.dtype),
        sigma.deviation if known else None,
        jnp.asarray(result.count, centre.dtype),
        chunk_for(problem, 4),
    )


@eqx.filter_jit
def _prepared(problem, priors, transform: Unconstrain, values, factor):
    """Returns the fit without bounds, slopes there, and the priors' curvature."""
    centre = transform.inverse(_inside(values, transform, factor))

    def rest(u):
        values = transform.forward(u)
        return prior_of(problem, priors, values) + jnp.sum(transform.log_slope(u))

    return centre, jnp.exp(transform.log_slope(centre)), -jax.hessian(rest)(centre)


def _inside(values, transform: Unconstrain, factor):
    """Moves parameters at a bound into the interior."""
    norms = jnp.linalg.norm(factor, axis=0)
    step = 0.5 / jnp.where(norms > 0, norms, jnp.inf)
    width = transform.high - transform.low
    step = jnp.where(jnp.isfinite(width), jnp.minimum(step, 0.1 * width), step)
    step = jnp.maximum(step, 1e-6 * jnp.where(jnp.isfinite(width), width, 1))
    return jnp.clip(values, transform.low + step, transform.high - step)


def _spread(rows: np.ndarray, believed, names: Sequence[str]) -> np.ndarray:
    """Returns L^-T, with the precision L L^T of data and priors."""
    curved, axes = np.linalg.eigh(np.nan_to_num(np.asarray(believed, float)))
    precision = rows.T @ rows + (axes * np.maximum(curved, 0)) @ axes.T
    norms = np.sqrt(np.diagonal(precision))
    safe = np.where(norms > 0, norms, 1)
    equal = precision / safe / safe[:, None]
    lowest, axes = np.linalg.eigh(equal)
    if not lowest[0] > 1e-13:
        weak = names[int(np.argmax(np.abs(axes[:, 0])))]
        raise ArgumentError(
            f"`priors` or bounds must determine what the data do not, but nothing "
            f"determines {weak}: its posterior cannot be normalised."
        )
    return np.linalg.inv(np.linalg.cholesky(equal)).T / norms[:, None]
