"""Evaluates objective and constraints of a design, with gradients."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from .._checks import ArgumentError, kind_of
from .._written_for_jax import written_for_jax


class Evaluation(NamedTuple):
    """What is known of a design.

    Attributes:
        objectives: What is minimised, or of which the largest is.
        constraints: What must not be positive.
        gradients: One row for each of both.
        aux: What the objective returned in addition.
    """

    objectives: Float[Array, " k"]
    constraints: Float[Array, " m"]
    gradients: Float[Array, "rows n"]
    aux: PyTree

    @property
    def values(self) -> Array:
        return jnp.concatenate([self.objectives, self.constraints])


class Problem(eqx.Module):
    """Objective and constraints as functions of one vector.

    Attributes:
        objective: Takes parameters and strength to what is minimised.
        constraints: Takes them to what must not be positive; None for nothing.
        fixed: The parameters without their floating point arrays.
        unravel: Takes a vector to those arrays.
        has_aux: Whether the objective returns a pair.
        sign: -1 where the objective is maximised.
    """

    objective: Callable
    constraints: Callable | None
    fixed: PyTree
    unravel: Callable = eqx.field(static=True)
    has_aux: bool = eqx.field(static=True)
    sign: float = eqx.field(static=True)

    def tree(self, vector: Float[Array, " n"]) -> PyTree:
        """Returns the parameters that a vector stands for."""
        return eqx.combine(self.unravel(vector), self.fixed)

    def aims(self, vector: Float[Array, " n"], strength: Float[Array, ""]):
        """Returns the objectives as a vector, and what came with them."""
        with written_for_jax("objective"):
            out = self.objective(self.tree(vector), strength)
        value, aux = _as_pair(out) if self.has_aux else (out, None)
        return self.sign * _as_vector(value, "objective", vector), aux

    def limits(self, vector: Float[Array, " n"], strength: Float[Array, ""]) -> Array:
        """Returns the constraints as a vector."""
        if self.constraints is None:
            return jnp.zeros((0,), vector.dtype)
        with written_for_jax("constraints"):
            value = self.constraints(self.tree(vector), strength)
        return _as_vector(value, "constraints", vector)


def _as_pair(out) -> tuple:
    if not isinstance(out, list | tuple) or len(out) != 2:
        raise ArgumentError(
            "`objective` must return a pair with `has_aux=True`, but returned "
            f"{kind_of(out)}"
        )
    return tuple(out)


def _as_vector(value, name: str, vector: Array) -> Array:
    if isinstance(value, tuple):
        raise ArgumentError(
            f"`{name}` must return a real number or a vector of them, but returned a "
            f"tuple of {len(value)}. Pass `has_aux=True` where an objective returns a "
            "pair, or stack the numbers."
        )
    if not (eqx.is_array_like(value) or isinstance(value, list)):
        raise ArgumentError(
            f"`{name}` must return a real number or a vector of them, but returned "
            f"{kind_of(value)}"
        )
    value = jnp.asarray(value)
    if value.ndim > 1 or not jnp.issubdtype(value.dtype, jnp.floating):
        raise ArgumentError(
            f"`{name}` must return a real number or a vector of them, but returned "
            f"{value.dtype}{list(value.shape)}."
        )
    return jnp.atleast_1d(value).astype(vector.dtype)


def split(parameters: PyTree) -> tuple[Array, Callable, PyTree]:
    """Takes parameters apart.

    Args:
        parameters: Any tree.

    Returns:
        Its floating-point arrays as one vector, the inverse of that, and the rest.

    Raises:
        ArgumentError: If there are no floating-point arrays.
    """
    trained, fixed = eqx.partition(parameters, eqx.is_inexact_array)
    vector, unravel = ravel_pytree(trained)
    if vector.size == 0:
        raise ArgumentError(
            "`parameters` must hold floating point JAX arrays to change, such as "
            "`jnp.asarray(0.5)`, but hold none."
        )
    return vector, unravel, fixed


def _rows(count: int, pullback: Callable, dtype) -> list[Array]:
    # One after the other, not by `vmap`: some backward runs cannot be batched, and
    # one at a time takes the least memory.
    return [pullback(unit)[0] for unit in jnp.eye(count, dtype=dtype)]


@eqx.filter_jit
def evaluate(
    problem: Problem, vector: Float[Array, " n"], strength: Float[Array, ""]
) -> Evaluation:
    """Evaluates a design with gradients.

    Args:
        problem: Objective and constraints.
        vector: The parameters.
        strength: Strength of the projection.

    Returns:
        Values and gradients.
    """
    aims, back, aux = jax.vjp(lambda x: problem.aims(x, strength), vector, has_aux=True)
    limits, back_limits = jax.vjp(lambda x: problem.limits(x, strength), vector)
    rows = [
        *_rows(aims.size, back, vector.dtype),
        *_rows(limits.size, back_limits, vector.dtype),
    ]
    return Evaluation(aims, limits, jnp.stack(rows), aux)


@eqx.filter_jit
def values_at(
    problem: Problem, vector: Float[Array, " n"], strength: Float[Array, ""]
) -> Float[Array, " rows"]:
    """Evaluates a design without gradients.

    Args:
        problem: Objective and constraints.
        vector: The parameters.
        strength: Strength of the projection.

    Returns:
        Objectives, then constraints.
    """
    aims, _ = problem.aims(vector, strength)
    return jnp.concatenate([aims, problem.limits(vector, strength)])
