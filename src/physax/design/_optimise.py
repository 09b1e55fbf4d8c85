"""Optimises a design: the loop from a grey start to a binary device."""

from collections.abc import Callable
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, PyTree

from .._checks import (
    ArgumentError,
    instance,
    kind_of,
    real,
    refuse_traced,
    true_or_false,
    whole,
)
from .._known_number import known_number
from .._status import Status
from .._written_for_jax import check_function, check_takes
from ..runtime import (
    Checkpointing,
    DriveResult,
    Progress,
    all_finite,
    drive,
    fingerprint,
)
from ..runtime._checkpointing import check_checkpoint
from ..runtime._progress import check_progress
from ._densities import AbstractDensity
from ._design_result import DesignError, DesignResult, StepInfo
from ._design_state import (
    DesignState,
    History,
    first_state,
    pack_design,
    record,
    unpack_design,
)
from ._early_stop import EarlyStop
from ._evaluation import Evaluation, Problem, evaluate, split, values_at
from ._live_progress import live_progress
from ._optimisers import (
    Bounds,
    Optimiser,
    advance_vector,
    as_optimiser,
    begin,
    check_optimiser,
)
from ._schedules import AbstractSchedule, as_schedule


_LAST_STEP = 2**31 - 1


class _Run(eqx.Module):
    """All that stays the same from step to step."""

    problem: Problem
    optimiser: Optimiser
    schedule: AbstractSchedule
    bounds: Bounds | None
    tolerance: float
    feasible_start: bool
    on_step: Callable | None

    def strength(self, step: int, like: Array) -> Array:
        return jnp.asarray(self.schedule.at(step), like.dtype)

    def advance(self, state: DesignState, start: Array, stop: Array) -> DesignState:
        for step in range(int(start), int(stop)):
            if int(state.failed) < 0:
                state = self.one_step(state, step)
        return state

    def one_step(self, state: DesignState, step: int) -> DesignState:
        strength = self.strength(step, state.vector)
        found = evaluate(self.problem, state.vector, strength)
        if not bool(all_finite((found.values, found.gradients))):
            return eqx.tree_at(lambda s: s.failed, state, jnp.int32(step))
        if step == 0 and self.feasible_start:
            _check_start(found, self.tolerance)
        worst = jnp.max(found.objectives)
        noted = record(
            state, step, worst, found.constraints, strength, float(self.tolerance)
        )
        self.report(noted, step, found)
        vector, memory = advance_vector(
            self.optimiser,
            state.memory,
            state.vector,
            found,
            self.bounds,
            self.problem.unravel,
            lambda x: values_at(self.problem, x, strength),
        )
        return eqx.tree_at(lambda s: (s.vector, s.memory), noted, (vector, memory))

    def report(self, state: DesignState, step: int, found: Evaluation) -> None:
        if self.on_step is None:
            return
        self.on_step(
            StepInfo(
                step,
                self.problem.tree(state.last_finite),
                self.problem.sign * float(jnp.max(found.objectives)),
                found.constraints,
                float(state.strength),
                found.aux,
            )
        )

    def describe(self, state: DesignState) -> str:
        """Says what the last finite step has reached."""
        step = int(state.count)
        if step == 0:
            return "nothing finite yet"
        sign = self.problem.sign
        value = sign * float(state.history.objective[step - 1])
        text = f"objective {value:.5g}"
        if np.isfinite(float(state.best_objective)):
            text += f" (best {sign * float(state.best_objective):.5g})"
        if state.history.constraints.shape[1]:
            worst = float(jnp.max(state.history.constraints[step - 1]))
            text += f", worst constraint {worst:.3g}"
        return f"{text}, strength {float(state.strength):g}"


@cache
def _adam() -> optax.GradientTransformation:
    """Returns the default optimiser: another one each time would compile again."""
    return optax.adam(0.02)


def _check_kinds(objective, constraints, on_step, stop, checkpoint, progress) -> None:
    """Raises if an argument of `optimise` is of the wrong kind."""
    check_function(objective, "objective")
    check_function(constraints, "constraints", optional=True)
    check_function(on_step, "on_step", optional=True)
    check_takes(objective, "objective", "f(parameters, strength)")
    if constraints is not None:
        check_takes(constraints, "constraints", "g(parameters, strength)")
    if on_step is not None:
        check_takes(on_step, "on_step", "on_step(info)")
    if stop is not None:
        instance(stop, "stop", EarlyStop, "Write `EarlyStop(patience)`.")
    check_checkpoint(checkpoint)
    check_progress(progress)


def _finite(tolerance) -> float:
    value = known_number(tolerance, "tolerance")
    if not np.isfinite(value):
        raise ArgumentError(f"`tolerance` must be finite, but is {value:g}.")
    return value


def _check_start(found: Evaluation, tolerance: float) -> None:
    values = np.asarray(found.constraints)
    broken = np.flatnonzero(values > tolerance)
    if broken.size:
        first = int(broken[0])
        raise ArgumentError(
            f"`constraints` must be at most 0 at the start, but number {first} is "
            f"{values[first]:g} ({broken.size} of {values.size} are positive). Start "
            "from a design that meets them, loosen them, or pass "
            "`feasible_start=False`."
        )


def _limits(bounds, parameters: PyTree, vector: Array) -> Bounds | None:
    """Returns bounds as two vectors."""
    if bounds is None and isinstance(parameters, AbstractDensity):
        bounds = parameters.bounds
    if bounds is None:
        return None
    if not isinstance(bounds, list | tuple):
        raise ArgumentError(
            f"`bounds` must be a pair, such as `(0.0, 1.0)`, but is {kind_of(bounds)}"
        )
    bounds = [real(b, "bounds") for b in bounds]
    shapes = [b.shape for b in bounds]
    if len(shapes) != 2 or any(one not in ((), vector.shape) for one in shapes):
        raise ArgumentError(
            "`bounds` must be a lower and a higher one, each a number or of the shape "
            f"{vector.shape} of all parameters, but have the shapes {shapes}."
        )
    low, high = (jnp.broadcast_to(b.astype(vector.dtype), vector.shape) for b in bounds)
    if not bool(jnp.all(low < high)):
        raise ArgumentError(
            "`bounds` must be a lower and a higher one, but the lower is not below the "
            "higher."
        )
    outside = (vector < low) | (vector > high)
    if bool(jnp.any(outside)):
        worst = float(vector[jnp.argmax(outside)])
        raise ArgumentError(
            f"`parameters` must lie between their bounds, but one is {worst:g}."
        )
    return low, high


def _stop_rule(run: _Run, stop: EarlyStop | None) -> Callable | None:
    if stop is None:
        return None
    final = run.schedule.at(_LAST_STEP)

    def rule(state: DesignState) -> bool:
        # In NumPy: JAX would compile a program for each length of the history.
        count = int(state.count)
        history = jax.tree.map(lambda part: np.asarray(part)[:count], state.history)
        # On the way to what is allowed the objective may well get worse.
        broken = np.any(history.constraints > run.tolerance, axis=1)
        values = np.where(broken, np.inf, history.objective)
        return stop.reached(values, history.strength, final)

    return rule


def optimise(
    objective: Callable,
    parameters: PyTree,
    *,
    steps: int,
    optimiser: Optimiser | None = None,
    schedule: AbstractSchedule | float = 1.0,
    constraints: Callable | None = None,
    bounds: tuple | None = None,
    maximise: bool = False,
    has_aux: bool = False,
    stop: EarlyStop | None = None,
    tolerance: float = 1e-4,
    feasible_start: bool = True,
    checkpoint: Checkpointing | None = None,
    progress: Progress | bool | None = True,
    on_step: Callable | None = None,
    throw: bool = True,
) -> DesignResult:
    """Optimises the parameters of a design, step by step, from the host.

    Each step evaluates objective and constraints with their gradients in one compiled
    program and lets the optimiser choose the next parameters. Progress shows the
    objective as it goes. Checkpoints, resumption to the same bits, and SIGTERM are as
    in `runtime.drive`.

    Args:
        objective: Takes parameters and strength to the number that is minimised. With
            `MovingAsymptotes` it may be a vector, whose largest entry is minimised.
        parameters: Where to start: a density such as `PixelDensity`, or any tree. Its
            floating point arrays change.
        steps: How many steps.
        optimiser: A transformation of optax or `MovingAsymptotes()`; by default Adam
            with a rate of 0.02.
        schedule: Strength of the projection at each step, such as `Stages`.
        constraints: Takes parameters and strength to a vector that must not be
            positive.
        bounds: Least and largest value of the parameters; by default those of the
            density.
        maximise: Whether the objective is maximised instead.
        has_aux: Whether the objective returns a pair whose second entry goes to
            `on_step`.
        stop: When to end early.
        tolerance: Up to where a constraint counts as met.
        feasible_start: Whether the start must meet the constraints.
        checkpoint: Where and how often to write checkpoints. The fingerprint is filled
            in.
        progress: Whether and how to show progress.
        on_step: Called with a `StepInfo` after each step.
        throw: Whether to raise if the run did not finish.

    Returns:
        The design and how it was reached.

    Raises:
        ArgumentError: If an argument is out of range, the optimiser cannot do what is
            asked, or a constraint is not met at the start.
        DesignError: With `throw`, if objective, constraint or gradient is not finite,
            or a signal ended the run. Its `result` holds the last good design.
        CheckpointError: If a checkpoint cannot be written, or is of another problem.
    """
    steps = whole(steps, "steps")
    _check_kinds(objective, constraints, on_step, stop, checkpoint, progress)
    refuse_traced(parameters, "parameters", "`optimise` works from the host.")
    throw = true_or_false(throw, "throw")
    sign = -1.0 if true_or_false(maximise, "maximise") else 1.0
    has_aux = true_or_false(has_aux, "has_aux")
    vector, unravel, fixed = split(parameters)
    run = _Run(
        problem=Problem(objective, constraints, fixed, unravel, has_aux, sign),
        optimiser=_adam() if optimiser is None else as_optimiser(optimiser),
        schedule=as_schedule(schedule),
        bounds=_limits(bounds, parameters, vector),
        tolerance=_finite(tolerance),
        feasible_start=true_or_false(feasible_start, "feasible_start"),
        on_step=on_step,
    )
    shapes = eqx.filter_eval_shape(
        evaluate, run.problem, vector, run.strength(0, vector)
    )
    count = shapes.constraints.size
    check_optimiser(run.optimiser, run.bounds, shapes.objectives.size, count)
    state = first_state(vector, begin(run.optimiser, vector, unravel), steps, count)
    if checkpoint is not None:
        checkpoint = _complete(checkpoint, run, state, vector)
    rule = _stop_rule(run, stop)
    with live_progress(progress, steps) as report:
        outcome = drive(
            run.advance,
            state,
            stop=steps,
            chunk=1,
            checkpoint=checkpoint,
            progress=False,
            watch=lambda s: int(s.failed) < 0,
            converged=rule,
            check_every=1,
            on_chunk=lambda step, s, info: report(
                step, info.steps_per_second, run.describe(s)
            ),
        )
    return _finish(run, outcome, throw)


def _complete(checkpoint: Checkpointing, run: _Run, state: DesignState, vector: Array):
    """Fills in the fingerprint, and how the state is stored."""
    problem = run.problem
    mark = checkpoint.fingerprint or fingerprint(
        (problem.objective, problem.constraints, run.optimiser, run.schedule),
        parameters=(vector, problem.fixed),
        bounds=run.bounds,
        sign=problem.sign,
        tolerance=run.tolerance,
    )
    return Checkpointing(
        checkpoint.folder,
        checkpoint.every,
        keep=checkpoint.keep,
        fingerprint=mark,
        resume=checkpoint.resume,
        pack=pack_design,
        unpack=lambda arrays: unpack_design(arrays, state),
    )


def _finish(run: _Run, outcome: DriveResult, throw: bool) -> DesignResult:
    state: DesignState = outcome.state
    failed = int(state.failed)
    done = outcome.step if failed < 0 else failed
    status, detail = outcome.status, outcome.detail
    if failed >= 0:
        kept = (
            f"the design of step {failed - 1} is kept" if failed else "nothing is kept"
        )
        detail = (
            f"Objective, constraints or gradient were not finite at step {failed}: "
            f"{kept}."
        )
    found = bool(jnp.isfinite(state.best_objective))
    sign = run.problem.sign
    result = DesignResult(
        parameters=run.problem.tree(state.last_finite),
        best=run.problem.tree(state.best) if found else None,
        best_objective=sign * float(state.best_objective) if found else float("nan"),
        history=History(
            sign * state.history.objective[:done],
            state.history.strength[:done],
            state.history.constraints[:done],
        ),
        status=status,
        step=done,
        detail=detail,
        drive=outcome,
    )
    if throw and status in (Status.DIVERGED, Status.INTERRUPTED):
        raise DesignError(f"{status.sentence} {detail}", result)
    return result
