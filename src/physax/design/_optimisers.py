"""One step of each kind of optimiser, on a vector of parameters."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from .._checks import ArgumentError
from ._evaluation import Evaluation
from ._moving_asymptotes import (
    Asymptotes,
    MovingAsymptotes,
    Rows,
    first_asymptotes,
    first_rho,
    propose,
    raise_rho,
    too_low,
)


Optimiser = optax.GradientTransformation | MovingAsymptotes
Bounds = tuple[Array, Array]


def as_optimiser(x: Any) -> Optimiser:
    """Returns an optimiser, refusing other kinds.

    Args:
        x: What was given.

    Raises:
        ArgumentError: If it is not an optimiser.
    """
    if isinstance(x, optax.GradientTransformation | MovingAsymptotes):
        return x
    call = " Did you forget to call it?" if callable(x) else ""
    raise ArgumentError(
        "`optimiser` must be a transformation of optax, such as `optax.adam(0.02)`, or "
        f"`MovingAsymptotes()`, but is {x!r}.{call}"
    )


def begin(optimiser: Optimiser, vector: Float[Array, " n"], unravel: Callable):
    """Returns what an optimiser remembers before its first step.

    Raises:
        ArgumentError: If its steps take more than a gradient and parameters.
    """
    if isinstance(optimiser, MovingAsymptotes):
        return first_asymptotes(vector)
    tree = unravel(vector)
    memory = optimiser.init(tree)
    try:
        jax.eval_shape(optimiser.update, tree, memory, tree)
    except TypeError as error:
        raise ArgumentError(
            "`optimiser` must step by a gradient and parameters alone, as "
            f"`optax.adam(0.02)` does, but: {error} Line searches evaluate the "
            "objective as well: take `MovingAsymptotes()`."
        ) from error
    return memory


def check_optimiser(
    optimiser: Optimiser, bounds: Bounds | None, objectives: int, constraints: int
) -> None:
    """Raises if an optimiser cannot do what is asked.

    Args:
        optimiser: The optimiser.
        bounds: Bounds of the parameters.
        objectives: How many values the objective returns.
        constraints: How many constraints there are.

    Raises:
        ArgumentError: If it cannot.
    """
    if isinstance(optimiser, MovingAsymptotes):
        if bounds is None:
            raise ArgumentError(
                "`bounds` must be given with `MovingAsymptotes`, but is None: the "
                "asymptotes are placed by the range of each parameter."
            )
        return
    if constraints:
        raise ArgumentError(
            f"`constraints` must be None with optimisers of optax, but there are "
            f"{constraints}. Use `MovingAsymptotes()`, or add penalties to the "
            "objective."
        )
    if objectives > 1:
        raise ArgumentError(
            "`objective` must return one number with optimisers of optax, but returns "
            f"{objectives}. Use `soft_max`, or `MovingAsymptotes()` for the largest."
        )


def advance_vector(
    optimiser: Optimiser,
    memory: PyTree,
    vector: Float[Array, " n"],
    found: Evaluation,
    bounds: Bounds | None,
    unravel: Callable,
    values_at: Callable[[Array], Array],
) -> tuple[Array, PyTree]:
    """Makes one step.

    Args:
        optimiser: The optimiser.
        memory: What it remembers.
        vector: The parameters.
        found: Values and gradients there.
        bounds: Bounds of the parameters.
        unravel: Takes a vector to the tree that optax works on.
        values_at: Takes other parameters to objectives and constraints.

    Returns:
        The next parameters, and what to remember.
    """
    if isinstance(optimiser, MovingAsymptotes):
        assert bounds is not None
        return _moving(optimiser, memory, vector, found, bounds, values_at)
    return _descend(optimiser, unravel, memory, vector, found.gradients[0], bounds)


@eqx.filter_jit
def _descend(optimiser, unravel, memory, vector, gradient, bounds):
    tree = unravel(vector)
    change, memory = optimiser.update(unravel(gradient), memory, tree)
    leaves = jax.tree.leaves(optax.apply_updates(tree, change))
    new = jnp.concatenate([jnp.ravel(leaf) for leaf in leaves]).astype(vector.dtype)
    return (new if bounds is None else jnp.clip(new, *bounds)), memory


_propose = eqx.filter_jit(propose)


def _moving(method: MovingAsymptotes, memory, vector, found, bounds, values_at):
    dtype = vector.dtype
    rho = None
    for turn in range(method.conservative + 1):
        # Where interior points meet their walls, float32 is too coarse. Only here, and
        # whatever the session's precision is.
        with jax.enable_x64(True):
            wide = partial(jax.tree.map, _wide)
            rows = Rows(
                wide(found.values), wide(found.gradients), found.objectives.size
            )
            box = (wide(bounds[0]), wide(bounds[1]))
            if rho is None:
                rho = first_rho(rows, box[1] - box[0])
            plan = _propose(method, wide(memory), wide(vector), rows, box, rho)
            new = np.asarray(plan.x)
        trial = jnp.clip(jnp.asarray(new.astype(dtype)), *bounds)
        if turn == method.conservative:
            break
        truth = np.asarray(values_at(trial))
        with jax.enable_x64(True):
            low, needed = too_low(wide(truth), plan)
            if not bool(jnp.any(low)):
                break
            rho = raise_rho(rho, low, needed)
    narrow = jax.tree.map(
        lambda new, old: jnp.asarray(np.asarray(new).astype(old.dtype)),
        plan.asymptotes,
        memory,
    )
    return trial, Asymptotes(*jax.tree.leaves(narrow))


def _wide(x) -> Array:
    """Returns floating point numbers in double precision, others as they are."""
    host = np.asarray(x)
    return jnp.asarray(host.astype(float) if host.dtype.kind == "f" else host)
