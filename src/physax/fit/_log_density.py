"""The logarithm of a posterior density, its gradient from one pass over the data."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Float, PyTree

from .._products import einsum, matmul
from ._passes import add_points, first_sums, points_in
from ._priors import log_prior
from ._problems import AbstractProblem
from ._separable import AbstractSeparable
from ._unconstrain import Unconstrain


class Target(eqx.Module):
    """A posterior, in coordinates in which it is close to standard normal.

    Attributes:
        problem: With its data in memory.
        priors: Of its parameters, a tree; None for none.
        transform: To parameters without bounds.
        centre: The fit, in those; last the logarithm of the deviation, if unknown.
        spread: A triangular matrix that takes standard normal numbers to deviations.
        deviation: The standard deviation of the residuals; None if it is unknown.
        count: Number of residuals.
        chunk: Points that are evaluated at once.
    """

    problem: AbstractProblem
    priors: PyTree
    transform: Unconstrain
    centre: Float[Array, " all"]
    spread: Float[Array, "all all"]
    deviation: Float[Array, ""] | None
    count: Float[Array, ""]
    chunk: int = eqx.field(static=True)

    def unwhitened(self, z: Float[Array, " all"]) -> Float[Array, " all"]:
        """Returns coordinates without bounds."""
        return self.centre + matmul(self.spread, z)

    def split(
        self, u: Float[Array, " all"]
    ) -> tuple[Float[Array, " m"], Float[Array, ""]]:
        """Returns parameters without bounds, and the logarithm of the deviation."""
        if self.deviation is None:
            return u[:-1], u[-1]
        return u, jnp.log(self.deviation)

    def log_density(self, u: Float[Array, " all"]) -> Float[Array, ""]:
        """Returns the logarithm of the density of coordinates without bounds."""
        free, log_deviation = self.split(u)
        values = self.transform.forward(free)
        cost, bent, lost = fit_terms(self.problem, values, chunk=self.chunk)
        # Eliminated coefficients were integrated over, so they are not data any more.
        left = self.count - lost
        log = -0.5 * cost * jnp.exp(-2 * log_deviation) - 0.5 * bent
        log = log - left * log_deviation + jnp.sum(self.transform.log_slope(free))
        return log + prior_of(self.problem, self.priors, values)

    def potential(self, z: Float[Array, " all"]) -> Float[Array, ""]:
        """Returns what a sampler of standard coordinates minimises."""
        return -self.log_density(self.unwhitened(z))


def prior_of(problem, priors, values: Float[Array, " m"]) -> Float[Array, ""]:
    """Returns the logarithm of the prior density of what is solved for."""
    if priors is None:
        return jnp.zeros((), values.dtype)
    size = len(problem.parameters.names)
    return log_prior(priors, problem.parameters.tree(values[-size:]))


def _sums(problem: AbstractProblem, values, chunk: int):
    none = jnp.zeros((), bool)
    begin, end = jnp.asarray(0), jnp.asarray(points_in(problem.data))
    sums = first_sums(problem, problem.data, values)
    sums = add_points(
        problem, problem.data, values, none, sums, begin, end, chunk=chunk
    )
    return sums, problem.normal(values, sums, none)


def fit_terms(
    problem: AbstractProblem, values: Float[Array, " m"], *, chunk: int
) -> tuple[Float[Array, ""], Float[Array, ""], int]:
    r"""Returns the cost, $\ln \det \Phi^T \Phi$, and the number of columns of $\Phi$.

    $\Phi$ holds the functions whose coefficients are eliminated; both numbers are
    differentiable. Their gradients come from the sums over points: the cost's is
    $2 J^T r$, the other's follows from products of functions and their derivatives. So
    no derivative of the pass is taken, and its memory does not grow with the data.
    """
    at = stop_gradient(values)
    sums, normal = jax.tree.map(stop_gradient, _sums(problem, at, chunk))
    step = values - at
    cost = normal.cost + 2 * matmul(normal.gradient, step)
    if not isinstance(problem, AbstractSeparable) or problem.coefficients is not None:
        return cost, jnp.zeros_like(cost), 0
    parts, rows = problem.parts, problem.mixing.rows
    matrix = sums.matrix + sums.rest
    count = parts.functions
    functions = slice(0, count)
    size = count * rows.shape[1]

    def mixed(products):
        spread = einsum("gab...,gc,gd->acbd...", products, rows, rows)
        return spread.reshape(size, size, *products.shape[3:])

    products = mixed(matrix[:, functions, functions])
    norms = jnp.sqrt(jnp.diagonal(products))
    equal = products / norms[:, None] / norms[None, :]
    lower = jnp.linalg.cholesky(equal)
    bent = 2 * jnp.sum(jnp.log(jnp.diagonal(lower)) + jnp.log(norms))
    moved = matrix[:, functions, count:-1]
    moved = moved.reshape(len(rows), count, parts.varying, parts.free)
    # The constant function does not depend on the parameters.
    fill = ((0, 0), (0, 0), (0, parts.offset), (0, 0))
    moved = mixed(jnp.pad(moved, fill))
    inverse = jnp.linalg.inv(equal) / norms[:, None] / norms[None, :]
    slope = 2 * einsum("ab,abj->j", inverse, moved)
    return cost, stop_gradient(bent) + matmul(stop_gradient(slope), step), size


def linear_given(
    problem: AbstractSeparable, values: Float[Array, " m"], *, chunk: int
) -> tuple[Float[Array, " linear"], Float[Array, "linear linear"]]:
    r"""Returns the best linear coefficients, and a root of their covariance.

    The root belongs to residuals of standard deviation 1.
    """
    sums, normal = _sums(problem, values, chunk)
    parts, rows = problem.parts, problem.mixing.rows
    matrix = sums.matrix + sums.rest
    functions = slice(0, parts.functions)
    products = einsum("gab,gc,gd->acbd", matrix[:, functions, functions], rows, rows)
    products = products.reshape(normal.linear.size, normal.linear.size)
    norms = jnp.sqrt(jnp.diagonal(products))
    lower = jnp.linalg.cholesky(products / norms[:, None] / norms[None, :])
    one = jnp.eye(len(norms), dtype=norms.dtype)
    root = jax.scipy.linalg.solve_triangular(lower.T, one, lower=False)
    return normal.linear, root / norms[:, None]
