"""What an optimisation carries from step to step, and how it is kept on disk."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from ..runtime import pack_state, unpack_state


_FORMER = {".good": ".last_finite"}
"""Names of arrays in checkpoints of earlier versions, and what they are called now."""


class History(eqx.Module):
    """Objective and constraints of every step.

    Attributes:
        objective: The objective at the parameters of each step; the largest, if there
            are several.
        strength: The strength of the projection.
        constraints: All constraints; positive ones were not met.
    """

    objective: Float[Array, " steps"]
    strength: Float[Array, " steps"]
    constraints: Float[Array, "steps m"]


class DesignState(eqx.Module):
    """The state of an optimisation.

    Attributes:
        vector: Parameters that come next.
        last_finite: Parameters of the last step whose values were all finite.
        best: Parameters that were best at the present strength.
        best_objective: Their objective, as minimised; infinite if none was feasible.
        memory: What the optimiser remembers.
        history: What was found; of as many rows as the run has steps.
        strength: The present strength.
        count: How many steps are in the history.
        failed: The step at which something was not finite, or -1.
    """

    vector: Float[Array, " n"]
    last_finite: Float[Array, " n"]
    best: Float[Array, " n"]
    best_objective: Float[Array, ""]
    memory: PyTree
    history: History
    strength: Float[Array, ""]
    count: Int[Array, ""]
    failed: Int[Array, ""]


def first_state(
    vector: Float[Array, " n"], memory: PyTree, steps: int, constraints: int
) -> DesignState:
    """Returns the state before the first step.

    Args:
        vector: The parameters.
        memory: What the optimiser remembers.
        steps: How many steps there will be.
        constraints: How many constraints there are.

    Returns:
        The state.
    """
    empty = partial(jnp.zeros, dtype=vector.dtype)
    return DesignState(
        vector=vector,
        last_finite=vector,
        best=vector,
        best_objective=jnp.asarray(jnp.inf, vector.dtype),
        memory=memory,
        history=History(empty(steps), empty(steps), empty((steps, constraints))),
        strength=jnp.asarray(jnp.nan, vector.dtype),
        count=jnp.int32(0),
        failed=jnp.int32(-1),
    )


@jax.jit
def record(
    state: DesignState,
    step: Int[Array, ""] | int,
    objective: Float[Array, ""],
    constraints: Float[Array, " m"],
    strength: Float[Array, ""],
    tolerance: Float[Array, ""] | float,
) -> DesignState:
    """Takes note of a step whose values are finite.

    Args:
        state: The state.
        step: Which step.
        objective: What was minimised.
        constraints: The constraints.
        strength: The strength at that step.
        tolerance: Up to where a constraint counts as met.

    Returns:
        The state, with vector and memory as they were.
    """
    history = History(
        state.history.objective.at[step].set(objective),
        state.history.strength.at[step].set(strength),
        state.history.constraints.at[step].set(constraints),
    )
    # Objectives at different strengths cannot be compared.
    known = jnp.where(strength == state.strength, state.best_objective, jnp.inf)
    feasible = jnp.all(constraints <= tolerance)
    better = feasible & (objective < known)
    return DesignState(
        vector=state.vector,
        last_finite=state.vector,
        best=jnp.where(better, state.vector, state.best),
        best_objective=jnp.where(better, objective, known),
        memory=state.memory,
        history=history,
        strength=strength,
        count=state.count + 1,
        failed=state.failed,
    )


def _with_rows(history: History, rows: int) -> History:
    """Cuts a history, or continues it with zeros."""

    def fit(array):
        array = array[:rows]
        return jnp.pad(array, [(0, rows - len(array)), *[(0, 0)] * (array.ndim - 1)])

    return jax.tree.map(fit, history)


def pack_design(state: DesignState) -> dict[str, Any]:
    """Returns a state as arrays. A run may be resumed with another number of steps."""
    return pack_state(state)


def unpack_design(arrays: dict[str, np.ndarray], like: DesignState) -> DesignState:
    """Puts a state together from its arrays.

    Args:
        arrays: What `pack_design` returned.
        like: The first state of a run, whose number of steps the result has.

    Returns:
        The state.

    Raises:
        CheckpointError: If the arrays do not fit.
    """
    arrays = {_FORMER.get(name, name): array for name, array in arrays.items()}
    steps = len(like.history.objective)
    stored = len(arrays.get(".history.objective", np.zeros(steps)))
    at = lambda state: state.history  # noqa: E731
    found = unpack_state(
        arrays, eqx.tree_at(at, like, _with_rows(like.history, stored))
    )
    return eqx.tree_at(at, found, _with_rows(found.history, steps))
