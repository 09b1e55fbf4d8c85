"""The host loop: calls a compiled advance, and checks the state in between."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax.tree_util import keystr, tree_leaves_with_path
from jaxtyping import PyTree

from .._checks import ArgumentError, optional, refuse_traced, whole
from .._status import Status, raise_for
from .._written_for_jax import check_function, check_takes
from ._checkpointing import Checkpointing, check_checkpoint, restore, store
from ._initialize import ProcessesError
from ._pace import Pace
from ._progress import Progress, Report, check_progress, show_progress
from ._signals import Interruption, catch_signals
from ._together import agree
from ._watch import all_finite, check_unused, locate_fault
from ._writer_lock import writer_lock


_LARGEST_STEP = 2**31 - 1
_HOST = (
    "The loop runs on the host: call it outside. `simulate`, `track` and `advance` can "
    "be transformed."
)
# A checkpoint of such a state would stand in the way of the last good one.
_UNSOUND = (Status.DIVERGED, Status.INVALID)


class ChunkInfo(NamedTuple):
    """What is known after a chunk of steps.

    Attributes:
        start: The step at which the chunk began.
        stop: The step it has reached.
        seconds: The time it took, compilation included.
        steps_per_second: The rate so far, compilation left out; NaN after one chunk.
        status: Why the run ends here; None if it continues.
    """

    start: int
    stop: int
    seconds: float
    steps_per_second: float
    status: Status | None


class DriveResult(eqx.Module):
    """The outcome of a driven run.

    Attributes:
        state: The state at the end.
        step: The step it is of.
        status: Why the run ended.
        first_step: The step at which this call began: that of the checkpoint, if it
            resumed one.
        seconds: Time it took, checkpoints and compilation included.
        steps_per_second: The rate of the steps alone; without the first chunk, which
            may have compiled, if there were others. NaN if there were no steps.
        detail: The step in words and, if the run diverged, the first value that is not
            finite.
    """

    state: PyTree
    step: int
    status: Status
    first_step: int
    seconds: float
    steps_per_second: float
    detail: str


class _Plan(eqx.Module):
    """The arguments of `drive`, and what follows from them."""

    start: int = eqx.field(converter=lambda n: whole(n, "start", 0))
    stop: int = eqx.field(converter=lambda n: whole(n, "stop", 0))
    chunk: int | None = eqx.field(converter=optional(partial(whole, name="chunk")))
    checkpoint: Checkpointing | None
    watch: Callable | None
    converged: Callable | None
    check_every: int | None = eqx.field(
        converter=optional(partial(whole, name="check_every"))
    )
    on_chunk: Callable | None

    def __check_init__(self):
        if not self.start <= self.stop <= _LARGEST_STEP:
            raise ArgumentError(
                f"`stop` must lie between `start`, {self.start}, and {_LARGEST_STEP}, "
                f"but is {self.stop}."
            )
        if self.converged is not None and self.check_every is None:
            raise ArgumentError(
                "`check_every` must be given with `converged`, but is None: a rule "
                "that is asked at other steps after a restart stops elsewhere."
            )

    def saves(self, step: int) -> bool:
        return self.checkpoint is not None and step % self.checkpoint.every == 0

    def checks(self, step: int) -> bool:
        return self.check_every is not None and step % self.check_every == 0

    def boundary(self, step: int, length: int) -> int:
        """Where a chunk of about `length` steps ends."""
        every = None if self.checkpoint is None else self.checkpoint.every
        goals = [self.stop, step + length]
        for cadence in (every, self.check_every):
            if cadence is not None:
                goals.append((step // cadence + 1) * cadence)
        return min(goals)

    def judge(self, state, step: int, *, final: bool = False) -> Status | None:
        """Says why the run ends here, or None."""
        look = self.check_every is None or self.checks(step) or self.saves(step)
        if self.watch is not None and (look or final):
            answer = self.watch(state)
            found = _verdict(answer, "watch", true=None, false=Status.DIVERGED)
            if found is not None:
                return found
        if self.converged is not None and self.checks(step):
            answer = self.converged(state)
            return _verdict(answer, "converged", true=Status.CONVERGED, false=None)
        return None


def _verdict(
    answer, name: str, *, true: Status | None, false: Status | None
) -> Status | None:
    """Reads the answer of a rule: yes or no, or a status of which 0 means go on."""
    value = np.asarray(answer)
    if value.size != 1 or value.dtype.kind not in "biu":
        raise ArgumentError(
            f"`{name}` must return one truth value or a `Status`, but returned "
            f"{value.dtype}{list(value.shape)}. Take `jnp.all` of an array."
        )
    if value.dtype == bool:
        return true if bool(value) else false
    if int(value) not in set(Status):
        raise ArgumentError(
            f"`{name}` must return one truth value or a `Status`, but returned "
            f"{int(value)}. The last `Status` is {max(Status)}."
        )
    status = Status(int(value))
    return None if status == Status.SUCCESSFUL else status


def drive(
    advance: Callable,
    state: PyTree,
    *,
    stop: int,
    start: int = 0,
    chunk: int | None = None,
    checkpoint: Checkpointing | None = None,
    progress: Progress | bool | None = True,
    watch: Callable | None = all_finite,
    converged: Callable | None = None,
    check_every: int | None = None,
    on_chunk: Callable | None = None,
    throw: bool = False,
) -> DriveResult:
    """Advances a state step by step, in chunks, until a rule or a signal ends it.

    The result does not depend on where the chunks end, on interruptions or on the
    clock: rules are asked at multiples of `check_every`, counted from step 0. A run
    that was stopped and resumed from a checkpoint gives the same bits on the CPU.

    SIGTERM, SIGINT and SIGUSR1 let the chunk finish, write a checkpoint and end the run
    with the status `INTERRUPTED`; a second one does what it does elsewhere. Of several
    processes that compute together all must call it; a signal to one ends it in all.

    Args:
        advance: Takes a state, a step to begin and a step to end with (int32 arrays) to
            the state then. It should be compiled, with bounds that are not static, so
            that a run of another length compiles nothing, and donate the state.
        state: The state at `start`; gone afterwards if `advance` donates it. With a
            `checkpoint`, numbers and arrays of NumPy in it become JAX arrays first, as
            they are when it is resumed.
        stop: The last step.
        start: The first step.
        chunk: Steps between two looks at progress and signals; by default about half a
            second's worth.
        checkpoint: Where to keep checkpoints, and to resume from; None for neither.
        progress: Whether and how to show progress.
        watch: Takes the state to True (or `Status.SUCCESSFUL`) while it is valid. Asked
            before a checkpoint is written, at multiples of `check_every` (or after each
            chunk, if that is None), and at the end. None trusts the state.
        converged: Takes the state to True when the run may end, or to the `Status` to
            end with. Asked at multiples of `check_every`.
        check_every: Steps between two such checks.
        on_chunk: Called with step, state and `ChunkInfo` after each chunk. It must not
            keep the state, whose memory the next chunk takes.
        throw: Whether to raise unless the run ended as asked.

    Returns:
        The state and how it was reached.

    Raises:
        ArgumentError: If an argument is of the wrong kind or out of range, a function
            takes other arguments, `converged` has no `check_every`, the memory of
            `state` was reused, or it is traced by `jit`, `vmap` or `grad`, `advance`
            returns arrays of other shapes or dtypes, or `state` holds what is no array
            while checkpoints are written.
        CheckpointError: If checkpoints cannot be written at all, are all damaged, or
            belong to something else.
        ProcessesError: If another of several processes is lost on the way.
        RunError: With `throw`, if the run diverged, was interrupted, or did not
            converge.
    """
    refuse_traced(state, "state", _HOST)
    check_function(advance, "advance")
    check_takes(advance, "advance", "advance(state, start, stop)")
    for rule, name, taken in (
        (watch, "watch", "state"),
        (converged, "converged", "state"),
        (on_chunk, "on_chunk", "step, state, info"),
    ):
        check_function(rule, name, optional=True)
        if rule is not None:
            check_takes(rule, name, f"{name}({taken})")
    check_checkpoint(checkpoint)
    check_progress(progress)
    plan = _Plan(
        start=start,
        stop=stop,
        chunk=chunk,
        checkpoint=checkpoint,
        watch=watch,
        converged=converged,
        check_every=check_every,
        on_chunk=on_chunk,
    )
    start, stop = plan.start, plan.stop
    began = time.perf_counter()
    with ExitStack() as stack:
        if checkpoint is not None:
            # Also finds out now, not at the first checkpoint, whether one can write.
            stack.enter_context(writer_lock(checkpoint.folder))
        interruption = stack.enter_context(catch_signals())
        first = start
        if checkpoint is not None:
            first, state = restore(checkpoint, state, start, stop)
        check_unused(state)
        report = stack.enter_context(show_progress(progress, first, stop))
        pace = Pace(plan.chunk)
        state, step, status = _loop(
            advance, state, first, plan, interruption, report, pace
        )
    seconds = time.perf_counter() - began
    fault = locate_fault(state) if status in _UNSOUND else ""
    detail = f"This was at step {step} of {stop}. {fault}".rstrip()
    if throw:
        raise_for(status, detail)
    return DriveResult(state, step, status, first, seconds, pace.overall, detail)


def _check_kept(before, after) -> None:
    """Raises if `advance` returns something else than it takes."""
    if _kinds(before) == _kinds(after):
        return  # Quickly, as after nearly every chunk.
    for what, of in (("shape", np.shape), ("dtype", _dtype)):
        one, other = (
            {keystr(path): of(x) for path, x in tree_leaves_with_path(tree)}
            for tree in (before, after)
        )
        for place in one | other:
            was, now = (tree.get(place, "missing") for tree in (one, other))
            # By identity: NumPy holds that the dtype float64 equals `None`.
            if was is not None and now is not None and was != now:
                raise ArgumentError(
                    "`advance` must return a state like the one it takes, but "
                    f"`state{place}` has the {what} {was} before and {now} after it."
                )


def _kinds(state) -> tuple:
    leaves, structure = jax.tree.flatten(state)
    return structure, [(np.shape(x), _dtype(x)) for x in leaves]


def _dtype(x) -> Any:
    """Returns the dtype that an array has in JAX; a number of Python has any."""
    if isinstance(x, jax.Array):
        return x.dtype
    if isinstance(x, bool | int | float | complex):
        return None
    found = np.asarray(x).dtype
    return jax.dtypes.canonicalize_dtype(found) if found.kind in "biufc" else None


def _lost(plan: _Plan, step: int, saved: int, error: Exception) -> ProcessesError:
    again = f"It begins again at step {plan.start}."
    if plan.checkpoint is not None:
        again = f"It goes on from step {saved}."
    reason = str(error).splitlines()[0].rstrip(".")
    return ProcessesError(
        f"The {jax.process_count()} processes could not go on together from step "
        f"{step}: {reason}. If one has ended, what it printed says why. Start the job "
        f"again. {again}"
    )


def _loop(
    advance: Callable,
    state,
    first: int,
    plan: _Plan,
    interruption: Interruption,
    report: Report,
    pace: Pace,
) -> tuple[PyTree, int, Status]:
    step = saved = first
    # An uninterrupted run asked its rules here, after it had come to this step.
    status = plan.judge(state, step) if first > plan.start else None
    begin = step
    try:
        while status is None and step < plan.stop:
            begin = step
            finish, length = agree(bool(interruption), pace.length)
            if finish:
                break
            step = plan.boundary(begin, length)
            # Arrays of one dtype: Python integers would be weakly typed, and an
            # executable that was compiled ahead refuses those.
            bounds = jax.device_put((np.int32(begin), np.int32(step)))
            clock = time.perf_counter()
            after = advance(state, *bounds)
            # Of a traced number that `advance` encloses.
            refuse_traced(after, "state", _HOST)
            jax.block_until_ready(after)
            seconds = time.perf_counter() - clock
            _check_kept(state, after)
            state = after
            pace.add(step - begin, seconds)

            status = plan.judge(state, step, final=step == plan.stop)
            report(step, pace.rate)
            if plan.checkpoint is not None and plan.saves(step) and status is None:
                saved = step if store(plan.checkpoint, step, state) else saved
            if plan.on_chunk is not None:
                info = ChunkInfo(begin, step, seconds, pace.rate, status)
                plan.on_chunk(step, state, info)
    except (jax.errors.JaxRuntimeError, ProcessesError) as error:
        if jax.process_count() == 1:
            raise
        raise _lost(plan, begin, saved, error) from error

    if status is None and step < plan.stop:
        # A signal may come between any two lines, so this is the place to answer it.
        status = plan.judge(state, step, final=True) or Status.INTERRUPTED
    if status is None:
        waited = plan.converged is not None
        status = Status.MAX_STEPS if waited else Status.SUCCESSFUL
    if plan.checkpoint is not None and step > saved and status not in _UNSOUND:
        store(plan.checkpoint, step, state)
    return state, step, status
