"""Derivatives of fitted parameters with respect to the data."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ._problems import AbstractProblem
from ._trial_step import held_at_bounds


def attach_derivative(
    problem: AbstractProblem, vector: Float[Array, " m"]
) -> Float[Array, " m"]:
    r"""Gives a minimum the derivative with respect to everything in the problem.

    At the minimum $\nabla F(p, \theta) = 0$, so $H\, dp = -\partial_\theta \nabla F\,
    d\theta$ with the full Hessian H, whose second derivatives of the residuals
    Gauss-Newton's leaves out. Parameters that a bound holds do not move.

    Args:
        problem: The problem, with the tangents of its data.
        vector: The minimum, without any.

    Returns:
        The same values.
    """
    vector = jax.lax.stop_gradient(vector)
    still = jax.tree.map(
        lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, problem
    )
    slope = jax.grad(still.cost)(vector)
    hessian = jax.jacfwd(jax.grad(still.cost))(vector)
    held = held_at_bounds(vector, slope, *still.bounds())
    # Units of the parameters must not decide about the accuracy.
    scale = jnp.sqrt(jnp.abs(jnp.diagonal(hessian)))
    scale = jnp.where(held | (scale == 0), 1, scale)
    equal = hessian / scale[:, None] / scale[None, :]
    equal = jnp.where(held[:, None] | held[None, :], 0, equal)
    equal = equal + jnp.diag(jnp.where(held, 1, 0))
    gradient = jax.grad(problem.cost)(vector)
    change = jnp.where(held, 0, gradient - jax.lax.stop_gradient(gradient))
    return _moving(vector, jnp.linalg.solve(equal, change / scale) / scale)


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
    return primals[0], tangents[1]


@jax.custom_jvp
def _moving(vector, step):
    """Returns the vector, with the derivative of `vector - step`.

    Where the Hessian is singular the derivative has no value, but the vector has one.
    """
    del step
    return vector


@_moving.defjvp
def _moving_jvp(primals, tangents):
    return primals[0], tangents[0] - tangents[1]
