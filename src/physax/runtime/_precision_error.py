"""What a choice of floating point types costs in accuracy."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._checks import ArgumentError
from ._precision import Precision, cast_floating


class PrecisionDeviation(eqx.Module):
    """How far a precision leads from the reference.

    Attributes:
        precision: The precision.
        value: Relative error of the value.
        gradient: Relative error of the gradient, by the norm over all arguments.
    """

    precision: Precision
    value: float
    gradient: float


def precision_error(
    function: Callable[..., Any], *args: Any, policies: Sequence[Precision]
) -> tuple[PrecisionDeviation, ...]:
    """Measures the relative errors of a function and its gradient.

    For each policy the floating point arrays among the arguments are rounded to
    `storage` and handed over as `compute`. The reference computes in float64 where JAX
    has it on, otherwise in float32; then an error below some 1e-6 says nothing.
    `accumulate` is what the function makes of it: pass it as
    `preferred_element_type` of products and `dtype` of sums.

    Args:
        function: Takes the arguments to a real scalar, in the dtype in which they come.
        *args: Its arguments; the gradient is with respect to all floating point arrays
            in them.
        policies: What to compare.

    Returns:
        A row for each policy, in their order. Infinity is the error where the
        reference is 0.

    Raises:
        ArgumentError: If the function does not return a real scalar, or there is no
            floating point array to differentiate with respect to.
    """
    moving, rest = eqx.partition(args, eqx.is_inexact_array)
    if not jax.tree.leaves(moving):
        raise ArgumentError(
            "`args` must hold at least one floating point array, but hold none."
        )
    best = "float64" if jax.config.read("jax_enable_x64") else "float32"
    moving = cast_floating(moving, best)
    made = eqx.filter_eval_shape(function, *eqx.combine(moving, rest))
    scalar = isinstance(made, jax.ShapeDtypeStruct) and made.shape == ()
    if not scalar or not jnp.issubdtype(made.dtype, jnp.floating):
        raise ArgumentError(
            f"`function` must return a real scalar, but returns {made}. Take a norm "
            "or a sum of it."
        )

    def evaluate(*dtypes: str):
        @jax.jit
        @jax.value_and_grad
        def run(moving):
            for dtype in dtypes:
                moving = cast_floating(moving, dtype)
            return function(*eqx.combine(moving, rest))

        value, gradient = run(moving)
        return _on_host(value), _on_host(ravel_pytree(gradient)[0])

    reference = evaluate()
    rows = []
    for policy in policies:
        found = evaluate(policy.storage, policy.compute)
        errors = map(_relative, found, reference)
        rows.append(PrecisionDeviation(policy, *errors))
    return tuple(rows)


def _on_host(x) -> np.ndarray:
    # NumPy does not know how to take the norm of a bfloat16.
    wide = complex if jnp.iscomplexobj(x) else float
    return np.asarray(x).astype(wide)


def _relative(found: np.ndarray, reference: np.ndarray) -> float:
    error, size = np.linalg.norm(found - reference), np.linalg.norm(reference)
    if size == 0:
        return 0.0 if error == 0 else float("inf")
    return float(error / size)
