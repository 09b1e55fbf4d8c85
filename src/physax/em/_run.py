"""Runs a simulation in chunks: with progress, checkpoints and a watch."""

import dataclasses
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from .._checks import ArgumentError, instance, refuse_traced, warn
from .._loop import iterate
from .._status import Status, raise_for
from ..grid import Layout
from ..runtime import (
    Checkpointing,
    DriveResult,
    Progress,
    all_finite,
    check_memory,
    drive,
    fingerprint,
)
from ..runtime._checkpointing import check_checkpoint
from ..runtime._watch import check_unused
from ._continued import check_entries, continued
from ._cut_off import check_ports
from ._emission import EmissionMonitor
from ._huygens import HuygensSource
from ._layouts import packing, place_state
from ._march import Decay, fallen, on_devices, watch_every
from ._memory import state_bytes
from ._monitors import AbstractSpectralMonitor
from ._program import build_program
from ._simulate import (
    Result,
    check_layout,
    check_rule,
    finish,
    warn_of,
    with_checked_pulses,
)
from ._simulation import Simulation, with_steps
from ._state import State, energy, look, rest, step
from ._time_monitors import EnergyMonitor, TimeMonitor, first_records
from ._wavefront import leaps


class RunResult(eqx.Module):
    """Outcome of a run driven from the host.

    Attributes:
        result: Monitors, fields and status, as from `simulate`, but that series of
            time and energy monitors end with the last step that was made.
        state: The last state; `run` goes on from it with `state=`.
        drive: Step reached, status, time and rate.
    """

    result: Result
    state: State
    drive: DriveResult


@partial(jax.jit, static_argnames=("layout", "watch"))
def initial_state(
    sim: Simulation, *, layout: Layout | None = None, watch: int | None = None
) -> State:
    """Returns the state of a simulation before its first step, all fields zero.

    Args:
        sim: The simulation.
        layout: How the grid is cut over devices.
        watch: As for `advance`.

    Returns:
        The state.
    """
    program = build_program(sim, layout, watch)
    state = rest(program)
    if layout is None:
        return state
    return place_state(program, state)


@partial(jax.jit, static_argnames=("layout", "watch"), donate_argnames="state")
def advance(
    sim: Simulation,
    state: State,
    start: Int[Array, ""],
    stop: Int[Array, ""],
    *,
    layout: Layout | None = None,
    watch: int | None = None,
) -> State:
    """Advances a state from one step to another; one program for any number of steps.

    The memory of the state passed in is reused. See `warm_up` for compiling all that
    `run` needs ahead of time.

    Args:
        sim: The simulation; its number of steps matters to time monitors only.
        state: The state before step `start`; gone afterwards.
        start: Number of the first step. In a dispersive medium the state must be of it,
            or a multiple of three steps from it.
        stop: One past the number of the last step.
        layout: How the grid is cut over devices.
        watch: Steps between looks at the energy, as a stop rule needs them.

    Returns:
        The state before step `stop`.

    Raises:
        ArgumentError: If `start` or `stop` is not an integer, or `state` is that of
            another simulation.
    """
    for name, bound in (("start", start), ("stop", stop)):
        if not jnp.issubdtype(jnp.result_type(bound), jnp.integer):
            raise ArgumentError(
                f"`{name}` must be an integer, the number of a step, but has the dtype "
                f"{jnp.result_type(bound)}. Round it."
            )
    program = build_program(sim, layout, watch)
    check_entries(state, jax.eval_shape(rest, program))

    def loop(program, state):
        options: dict = {"leap": leaps(program)}
        if watch is not None:
            options |= {"every": watch, "between": partial(look, program)}
        body = partial(step, program, swept=True)
        return iterate(body, state, start, stop, **options)[0]

    return on_devices(loop, program, state)


@partial(jax.jit, static_argnames=("layout", "until"))
def _has_decayed(sim: Simulation, state: State, layout, until: Decay) -> Array:
    # Outside `shard_map` this sums over whole arrays, whatever the layout.
    program = build_program(sim, layout, until.check_every)
    return fallen(program, state, energy(program, state.fields), until.threshold)


@partial(jax.jit, static_argnames=("layout", "watch"))
def _finish(sim: Simulation, state: State, layout, watch: int | None) -> Result:
    return finish(build_program(sim, layout, watch), state)


_SHARED_CHUNK = 200


def _lengthless(sim: Simulation) -> Simulation:
    """Returns the simulation without its length, if nothing in it depends on that."""
    # Time series have one place for each record: their size follows the length. Of
    # monitors that we do not know we take it to.
    spectral = (isinstance(m, AbstractSpectralMonitor) for m in sim.monitors.values())
    # They divide by the spectrum of a pulse, as far as the run goes.
    parts = (*sim.sources.values(), *sim.monitors.values())
    divided = any(isinstance(one, HuygensSource | EmissionMonitor) for one in parts)
    return with_steps(sim, 0) if all(spectral) and not divided else sim


def warm_up(
    sim: Simulation, *, until: Decay | None = None, layout: Layout | None = None
) -> None:
    """Compiles all that `run` needs, so that the run itself compiles nothing.

    Without time, energy and emission monitors and Huygens sources this holds for runs
    of any length.

    Args:
        sim: The simulation; other numbers in it compile nothing either.
        until: As for `run`.
        layout: As for `run`.

    Raises:
        ArgumentError: If an argument is of the wrong type.
        MemoryLimitError: If the run needs more memory than there is.
    """
    problem, options = _checked(sim, until, layout)
    state = initial_state(problem, **options)
    # Bounds as `drive` gives them: Python integers would be another program.
    bounds = jax.device_put((np.int32(0), np.int32(0)))
    state = advance(problem, state, *bounds, **options)
    all_finite(state)
    if until is not None:
        _rule(problem, layout, until)(state)
    jax.block_until_ready(_finish(problem, state, **options))


def check_run(sim: Simulation, *, until: Decay | None = None) -> None:
    """Refuses all that `run` would refuse, without running.

    Args:
        sim: The simulation.
        until: As for `run`.

    Raises:
        ArgumentError: If the mode of a source is cut off or cannot be solved, or a
            monitor cannot serve this medium.
        MemoryLimitError: If the run needs more memory than there is.
    """
    problem, options = _checked(sim, until, None)
    begin = jax.eval_shape(partial(initial_state, **options), problem)
    jax.eval_shape(partial(_finish, **options), problem, begin)


def _checked(sim: Any, until: Any, layout: Any) -> tuple[Simulation, dict[str, Any]]:
    """Returns what is compiled, and how, after all checks that need no state."""
    instance(sim, "sim", Simulation)
    check_rule(until)
    check_layout(layout)
    refuse_traced(sim, "sim", "Inside call `simulate`: `run` works from the host.")
    sim = with_checked_pulses(sim)
    check_ports(sim)
    count = 1 if layout is None else layout.mesh.size
    check_memory(state_bytes(sim), "the state of this simulation", count=count)
    return _lengthless(sim), {"layout": layout, "watch": watch_every(sim, until)}


def run(
    sim: Simulation,
    *,
    state: State | None = None,
    until: Decay | None = None,
    layout: Layout | None = None,
    checkpoint: Checkpointing | None = None,
    progress: Progress | bool | None = True,
    chunk: int | None = None,
    on_chunk: Callable | None = None,
    throw: bool = True,
) -> RunResult:
    """Runs a simulation from the host, chunk by chunk.

    Shows progress with rate and time left, writes checkpoints and resumes from them bit
    for bit, stops when the fields have decayed or are no longer finite, and ends with a
    checkpoint on SIGTERM or SIGINT. Compiles once for runs of any length.

    Args:
        sim: The simulation.
        state: The state to continue from, at rest by default, of a run with the same
            layout. Series of a `TimeMonitor` or `EnergyMonitor` grow with the steps;
            `every` must be the same. Its memory is reused: do not use it again. A
            checkpoint comes first.
        until: Stops early when the fields have decayed. Pass it from the first step
            on: a run that goes on from one without it does not know the peak before,
            and warns.
        layout: How the grid is cut over devices. A checkpoint may be resumed under
            another layout.
        checkpoint: Where and how often to write checkpoints. Its fingerprint and
            packing are filled in.
        progress: Whether and how to show progress; False or `None` for not at all.
        chunk: Steps between looks at the clock; chosen by the rate by default, but 200
            under a layout: there the devices' parts of a monitor are summed after each
            chunk, and where that happens decides the last bits.
        on_chunk: Called with step, state and `ChunkInfo` after each chunk.
        throw: Whether to raise if the run diverged.

    Returns:
        The result, the last state, and how the run went.

    Raises:
        ArgumentError: If an argument is of the wrong type, a number of a pulse is out
            of range, the mode of a source is cut off, `state` is that of another
            simulation or its memory was reused, or `sim` has fewer steps than it.
        MemoryLimitError: If the run needs more memory than there is.
        RunError: With `throw`, if the fields diverged or a signal ended the run. Its
            `result` is the `RunResult` up to there.
        CheckpointError: If a checkpoint cannot be written, or is of another problem.
    """
    if state is not None:
        instance(state, "state", State, "Pass the `state` of a `RunResult`.")
        check_unused(state)
    done = 0 if state is None else int(state.done)
    check_checkpoint(checkpoint)
    problem, options = _checked(sim, until, layout)
    if sim.steps < done:
        raise ArgumentError(
            f"`sim.steps` must be at least {done}, the step that `state` has reached, "
            f"but is {sim.steps}. `with_steps` makes a longer simulation."
        )
    if chunk is None and layout is not None:
        chunk = _SHARED_CHUNK
    begin: State
    if state is None:
        begin = initial_state(problem, **options)
    else:
        shapes = jax.eval_shape(partial(initial_state, **options), problem)
        begin = continued(state, shapes, sim.monitors)
    # What a monitor cannot make of this medium it says before the run, not after it.
    jax.eval_shape(partial(_finish, **options), problem, begin)
    if checkpoint is not None:
        checkpoint = _complete(checkpoint, problem, layout, options["watch"])
    if progress is True:
        cells = float(jnp.size(next(iter(begin.fields.values())))) / 1e6
        progress = Progress("FDTD", "Mcell-steps", cells)
    calls = itertools.count()

    def onward(state: State, first: Array, last: Array) -> State:
        # Here, as the state may be one of a checkpoint.
        if until is not None and next(calls) == 0:
            _warn_of_peak(state, until)
        return advance(problem, state, first, last, **options)

    outcome = drive(
        onward,
        begin,
        start=done,
        stop=sim.steps,
        chunk=chunk,
        checkpoint=checkpoint,
        progress=progress,
        converged=None if until is None else _rule(problem, layout, until),
        check_every=None if until is None else until.check_every,
        on_chunk=on_chunk,
    )
    result = _finish(problem, outcome.state, **options)
    if outcome.step < sim.steps:
        result = _ended(result, sim, outcome.step)
    if outcome.status == Status.DIVERGED:
        result = eqx.tree_at(
            lambda r: r.status, result, jnp.asarray(int(Status.DIVERGED))
        )
    reached = RunResult(result, outcome.state, outcome)
    if throw and outcome.status in (Status.DIVERGED, Status.INTERRUPTED):
        raise_for(outcome.status, outcome.detail, reached)
    # One that goes on later is not at its end.
    if outcome.status != Status.INTERRUPTED:
        warn_of(sim, result)
    return reached


def _ended(result: Result, sim: Simulation, done: int) -> Result:
    """Returns a result without records of steps that were not made."""
    seen = {
        name: first_records(result.monitors[name], -(-done // monitor.every))
        for name, monitor in sim.monitors.items()
        if isinstance(monitor, TimeMonitor | EnergyMonitor)
    }
    return dataclasses.replace(result, monitors=result.monitors | seen)


def _warn_of_peak(state: State, until: Decay) -> None:
    """Warns if a run goes on from one that did not look at its energy."""
    done = int(state.done)
    if float(state.peak) > 0 or done < until.check_every:
        return
    if any(bool(jnp.any(field != 0)) for field in state.fields.values()):
        warn(
            "`until` compares the energy with its peak, which is not known before step "
            f"{done}: the run up to there did not look. If it was larger then, this "
            "run stops late or not at all. Pass `until` from the first step on, or a "
            "larger `threshold`."
        )


def _rule(sim: Simulation, layout: Layout | None, until: Decay):
    def rule(state: State) -> Status:
        done = bool(_has_decayed(sim, state, layout, until))
        return Status.DECAYED if done else Status.SUCCESSFUL

    return rule


def _complete(
    checkpoint: Checkpointing, sim: Simulation, layout: Layout | None, watch: int | None
) -> Checkpointing:
    """Fills in the fingerprint of the problem and a packing that knows no mesh."""
    own = None
    if layout is not None:
        # Shapes only: the whole state may fit no single device.
        program = jax.eval_shape(
            partial(build_program, layout=layout, watch=watch), sim
        )
        own = packing(program, jax.eval_shape(partial(initial_state, watch=watch), sim))
    return checkpoint.completed(checkpoint.fingerprint or fingerprint(sim), own)
