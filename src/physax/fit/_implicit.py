"""Derivatives of fitted parameters with respect to the data."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from .._products import matmul
from ._factors import triangular
from ._problems import AbstractProblem
from ._sums import Normal, column_norms, power_of_two
from ._trial_step import held_at_bounds


def attach_derivative(
    problem: AbstractProblem,
    vector: Float[Array, " m"],
    normal: Normal,
    unit: Float[Array, ""],
) -> Float[Array, " m"]:
    r"""Gives a minimum its derivatives, of all orders, by everything in the problem.

    At the minimum $\nabla F(p, \theta) = 0$, so $H\, dp = -\partial_\theta \nabla F\,
    d\theta$ with the full Hessian H, whose second derivatives of the residuals
    Gauss-Newton's leaves out. Parameters that a bound holds do not move.

    It is solved in the basis of the columns of $W = R^{-1}$, in which $W^T H W$ is
    twice the identity but for what Gauss-Newton leaves out, and corrected once by what
    the step leaves of the change of the gradient. So no digits are lost to the square
    of the condition of the Jacobian, as a factor of H would lose them.

    Reference: Björck, *Stability analysis of the method of seminormal equations for
    linear least squares problems*, Linear Algebra and its Applications 88, 31 (1987).

    Args:
        problem: The problem, with the tangents of its data.
        vector: The minimum.
        normal: The quadratic model there.
        unit: What residuals were multiplied by for that.

    Returns:
        The same values.
    """
    # With all that the residuals read from outside: it may have tangents, too.
    # The Hessian has squares of the factor, whose inverse is in range, too.
    most = float(jnp.finfo(vector.dtype).max) ** 0.4
    largest = jax.lax.stop_gradient(jnp.max(column_norms(normal), initial=1))
    ratio = jnp.minimum(power_of_two(most / largest), 1)
    unit = unit * ratio
    gradient = eqx.filter_closure_convert(
        lambda at: jax.grad(problem.cost)(at, unit), vector
    )
    vector, normal = jax.lax.stop_gradient((vector, normal))
    held = held_at_bounds(vector, normal.gradient, *problem.bounds())
    return _minimum(vector, _basis(normal.factor * ratio, held), held, gradient)


def _basis(factor: Float[Array, "m m"], held: Bool[Array, " m"]) -> Array:
    """Returns the inverse of R in the parameters that are not held, 0 in others."""
    rows = jnp.where(held, 0, factor)
    rows = jnp.concatenate([rows, jnp.diag(held.astype(factor.dtype))])
    one = jnp.eye(held.size, dtype=factor.dtype)
    basis = jax.scipy.linalg.solve_triangular(triangular(rows), one)
    return jnp.where(held[:, None] | held[None, :], 0, basis)


@eqx.filter_custom_jvp
def _minimum(vector, basis, held, gradient):
    """Returns the vector where the gradient vanishes, with the derivative of that.

    Where the Hessian is singular the derivative has no value, but the vector has one.
    """
    del basis, held, gradient
    return vector


@_minimum.def_jvp
def _minimum_jvp(primals, tangents):
    _, basis, held, gradient = primals
    *_, moved = tangents
    # With tangents of its own: this rule is differentiated for higher orders.
    vector = _minimum(*primals)

    def bent(step):
        return jax.jvp(gradient, (vector,), (step,))[1]

    def change(step):
        """Returns that of the gradient, the data and the parameters moving at once."""
        both = (gradient, vector), (moved, step)
        return eqx.filter_jvp(lambda gradient, at: gradient(at), *both)[1]

    curvature = matmul(basis.T, jax.vmap(bent, 1, 1)(basis))
    inverse = jnp.linalg.inv(curvature + jnp.diag(held.astype(basis.dtype)))

    def newton(slope):
        return -matmul(basis, matmul(inverse, matmul(basis.T, slope)))

    step = newton(change(jnp.zeros_like(vector)))
    return vector, step + newton(change(step))


def with_derivative_of(values: PyTree, others: PyTree) -> PyTree:
    """Returns values with the derivatives of others, needed for these alone.

    Args:
        values: A tree of arrays.
        others: Another one of the same shapes, equal but for rounding.
    """

    def one(value, other):
        return _following(value, other) if eqx.is_inexact_array(value) else value

    return jax.tree.map(one, values, others)


@jax.custom_jvp
def _following(value, other):
    del other
    return value


@_following.defjvp
def _following_jvp(primals, tangents):
    return _following(*primals), tangents[1]
