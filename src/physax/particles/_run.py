"""Follows particles from the host: long runs, written as they proceed."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, ArrayLike, Float, Int

from .._auto_mesh import auto_mesh
from .._checks import ArgumentError, optional, refuse_traced, true_or_false, whole
from .._loop import iterate
from .._status import Status, raise_for
from ..runtime import (
    Checkpointing,
    DriveResult,
    Progress,
    array_places,
    check_memory,
    drive,
    fingerprint,
    pack_state,
    unpack_state,
)
from ._fields import AbstractField
from ._march import Problem, advance, enter
from ._motions import Carried
from ._outside_data import refuse_outside
from ._recorder import Recorder, RunState, Sink, check_rows
from ._run_checks import check_kinds, check_rates, check_run
from ._schedule import Schedule
from ._track import longer, prepare, to_tracks, width_of
from ._tracks import Tracks
from ._variables import Variable, WithVariables
from ._windows import Span, Windows


# Rows that wait in memory to be written: bytes of one buffer, about.
_BUFFER = 64 * 2**20
_HOST = "`run` works from the host: transform and differentiate `track`."


class RunResult(eqx.Module):
    """The result of a driven run.

    Attributes:
        tracks: The tracks; with a `sink` of the first time and the last one reached
            only. Rows that an interrupted run did not reach are NaN.
        drive: Step reached, status, time and rate.
    """

    tracks: Tracks
    drive: DriveResult


def run(
    velocity: Any,
    seeds: ArrayLike | Sequence,
    times: ArrayLike | Sequence,
    *,
    sink: Sink | None = None,
    checkpoint: Checkpointing | None = None,
    progress: Progress | bool | None = True,
    chunk: int | None = None,
    on_chunk: Callable | None = None,
    mesh: Mesh | None = None,
    throw: bool = True,
    variables: Mapping[str, Variable] | None = None,
    **options: Any,
) -> RunResult:
    """Follows particles as `track` does, chunk by chunk from the host.

    Shows progress with rate and time left, hands recorded rows to a sink while the run
    goes on, writes checkpoints and resumes from them bit for bit, and ends with one on
    SIGTERM or SIGINT. Of a field that is given as `Windows` only a few snapshots are in
    memory. Other fields, seeds and numbers of steps compile nothing new.

    Args:
        velocity: As for `track`, or `Windows`.
        seeds: Where the particles begin, `[particles, ndim]`.
        times: The recorded times, in seconds, `[times]`; the first is the start.
        sink: Gets the number of the first of some rows, that of the first particle, and
            the rows: positions, then the particles' own velocities, if they have any,
            then the variables. Rows may come again after a restart, as they were. By
            default rows are kept in memory. An `io.TrackFile` must have the shape of
            the run; it rounds to its own dtype, float32 by default.
        checkpoint: Where and how often to write checkpoints. Without a sink the rows
            recorded before a restart are lost to the tracks, so one is needed; a file
            that does not hold them any more is refused. A checkpoint of another problem
            is refused, too: all numbers, static values and the code of functions and of
            methods of your classes with what they enclose count, but not module globals
            that they read, nor snapshots of `Windows` after the first ones while their
            times, and their files if the series has `paths`, are the same.
        progress: Whether and how to show progress; False or `None` for not at all.
        chunk: Steps between two looks at the clock and the sink; by default as many as
            fill a buffer of rows, and about half a second.
        on_chunk: Called with step, state and `ChunkInfo` after each chunk.
        mesh: Devices over which to divide the particles.
        throw: Whether to raise if a signal ended the run.
        variables: What to integrate along the tracks.
        **options: `dt`, `steps`, `solver`, `boundary`, `diffusivity`, `key` and
            `release`, as for `track`.

    Returns:
        The tracks and how the run went.

    Raises:
        ArgumentError: As for `track`; or if there is a checkpoint without a sink, the
            sink is a file that does not fit the run or the checkpoint, or an argument,
            or a number that a function encloses, is traced.
        MemoryLimitError: If recorded rows are to be kept and do not fit into memory.
        RunError: With `throw`, if a signal ended the run. Its `result` is the
            `RunResult` up to there.
        CheckpointError: If a checkpoint cannot be written, or is of another problem.
    """
    given = _given(options)
    known = {"velocity": velocity, "seeds": seeds, "times": times, **given}
    for name, x in (known | {"variables": variables}).items():
        refuse_traced(x, name, _HOST)
    mesh = optional(auto_mesh)(mesh)
    throw = true_or_false(throw, "throw")
    windows = velocity if isinstance(velocity, Windows) else None
    field = velocity if windows is None else windows.field(0)
    span = None if windows is None else (windows.times[0], windows.times[-1])
    problem, seeds, release = prepare(
        field, seeds, times, variables=variables, span=span, **given
    )
    chunk = None if chunk is None else whole(chunk, "chunk")
    check_kinds(sink, checkpoint, on_chunk, progress)
    check_run(problem, sink, checkpoint)
    spans = _plan(windows, problem)
    if windows is not None:
        problem = _with_window(problem, windows.field(spans[0].start))
    width, count = width_of(problem, seeds, variables), seeds.shape[0]
    rows, sink = _sink(sink, (problem.schedule.times.size, count, width), seeds.dtype)
    depth = _depth(problem, count, width, chunk)
    state = _known(_begin(problem, seeds, release, mesh, depth))
    if not mesh or jax.process_count() == 1:
        refuse_outside(problem, state.particles, seeds, release)
    # Steps reuse the memory of the state, which may be that of the user's arrays.
    first, since = state.particles.y, state.particles.since
    own = jnp.copy(first), jnp.copy(since)
    state = eqx.tree_at(lambda s: (s.particles.y, s.particles.since), state, own)
    folder = None if checkpoint is None else checkpoint.folder
    recorder = Recorder(problem.schedule.every, sink, depth, count, first, folder)
    if checkpoint is not None:
        series = None if windows is None else windows.identity()
        packed = None if mesh is None else _packing(state, count)
        checkpoint = _complete(checkpoint, (problem, seeds, release), series, packed)
    if progress is True:
        progress = Progress("tracks", "Mparticle-steps", count / 1e6)
    outcome = drive(
        _advance_and_record(recorder, problem, windows, spans, mesh),
        state,
        stop=problem.schedule.steps,
        chunk=chunk,
        checkpoint=checkpoint,
        progress=progress,
        watch=None,
        check_every=max((depth - 1) * problem.schedule.every, 1),
        on_chunk=partial(_on_chunk, recorder, on_chunk),
    )
    recorder.begin(outcome.step, outcome.state)
    particles = jax.tree.map(lambda x: x[:count], outcome.state.particles)
    recorded, at = rows, None
    if rows is None:
        recorded = jnp.stack([first[:count], particles.y])
        at = _ends(problem.schedule, outcome.step)
    tracks = to_tracks(problem, particles, jnp.asarray(recorded), variables, at)
    result = RunResult(tracks, outcome)
    if throw and outcome.status == Status.INTERRUPTED:
        raise_for(outcome.status, outcome.detail, result)
    return result


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Completes what `prepare` takes; raises `ArgumentError` for other names."""
    given: dict[str, Any] = dict.fromkeys(
        ("dt", "steps", "solver", "boundary", "diffusivity", "key", "release")
    )
    unknown = sorted(set(options) - set(given))
    if unknown:
        raise ArgumentError(f"`run` takes {sorted(given)}, but was given {unknown}.")
    return given | dict(options)


def _known(state: RunState) -> RunState:
    """Returns a state, refusing one traced by what a function of the user encloses."""
    refuse_traced(state, "tracks", _HOST)
    return state


def _sink(
    sink: Sink | None, shape: tuple[int, int, int], dtype: Any
) -> tuple[np.ndarray | None, Sink]:
    """Returns an array for all rows where there is no sink, and what gets the rows."""
    if sink is not None:
        check_rows(sink, shape)
        return None, sink
    size = math.prod(shape) * np.dtype(dtype).itemsize
    check_memory(size, "keeping all recorded rows; give a `sink`, or the tracks")
    rows = np.full(shape, np.nan, dtype)
    return rows, partial(_keep, rows)


def _complete(
    checkpoint: Checkpointing, parts: tuple, series: Any, own: dict[str, Any] | None
) -> Checkpointing:
    """Fills in the fingerprint of the problem, and how its state is stored."""
    more = {} if series is None else {"series": series}
    mark = checkpoint.fingerprint or fingerprint(parts, **more)
    return checkpoint.completed(mark, own)


def _ends(schedule: Schedule, step: int) -> Float[Array, "2"]:
    """Returns the first time, and the time before a step."""
    last = schedule.times[-1]
    if step < schedule.steps:
        last = schedule.step(jnp.int32(step))[0]
    return jnp.stack([schedule.times[0], last])


def _keep(kept: np.ndarray, row: int, particle: int, values: np.ndarray) -> None:
    more = slice(particle, particle + values.shape[1])
    kept[row : row + values.shape[0], more] = values


def _depth(problem: Problem, count: int, width: int, chunk: int | None) -> int:
    """Returns how many rows wait in memory."""
    row = count * width * problem.schedule.times.dtype.itemsize
    fitting = max(_BUFFER // row, 2)
    if chunk is not None:
        fitting = max(fitting, -(-chunk // problem.schedule.every) + 1)
    return int(min(fitting, problem.schedule.times.size))


@eqx.filter_jit
def _begin(problem: Problem, seeds, release, mesh: Mesh | None, depth: int) -> RunState:
    check_rates(problem, seeds)
    numbers = jnp.arange(seeds.shape[0], dtype=jnp.int32)
    if mesh is not None:
        more = -seeds.shape[0] % mesh.size
        seeds, numbers = longer(seeds, more), longer(numbers, more)
        release = None if release is None else longer(release, more)
    particles = enter(problem, seeds, release, numbers)
    state = RunState(particles, jnp.zeros((depth, *particles.y.shape), seeds.dtype))
    if mesh is None:
        return state
    place = jax.tree.map(lambda spec: NamedSharding(mesh, spec), _specs(state, mesh))
    return jax.tree.map(jax.lax.with_sharding_constraint, state, place)


def _specs(state: RunState, mesh: Mesh) -> RunState:
    """Returns how a state is divided over devices."""
    names = mesh.axis_names
    each = jax.tree.map(lambda x: PartitionSpec(names), state)
    return eqx.tree_at(lambda s: s.rows, each, PartitionSpec(None, names))


@eqx.filter_jit(donate="all-except-first")
def _advance(
    given: tuple[Problem, Mesh | None, Int[Array, ""], Int[Array, ""]], state: RunState
) -> RunState:
    """Makes the steps between two and records what is due, in place."""
    problem, mesh, start, stop = given
    every = problem.schedule.every

    def step(problem, state, n):
        particles = advance(problem, state.particles, n)[0]
        # Written at each step of a row, of which the last stays: a condition would
        # copy the rows.
        row = (n // every) % state.rows.shape[0]
        return RunState(particles, state.rows.at[row].set(particles.y))

    def loop(arrays, state, start, stop):
        full = eqx.combine(arrays, static)
        return iterate(partial(step, full), state, start, stop)[0]

    arrays, static = eqx.partition(problem, eqx.is_array)
    if mesh is None:
        return loop(arrays, state, start, stop)
    specs, rest = _specs(state, mesh), PartitionSpec()
    return jax.shard_map(
        loop,
        mesh=mesh,
        in_specs=(rest, specs, rest, rest),
        out_specs=specs,
        check_vma=False,
    )(arrays, state, start, stop)


def _advance_and_record(
    recorder: Recorder,
    problem: Problem,
    windows: Windows | None,
    spans: list[Span],
    mesh: Mesh | None,
) -> Callable[[RunState, Array, Array], RunState]:
    """Returns what advances a state and first sees to the rows before a restart."""
    further = _advance_windows(problem, windows, spans, mesh)

    def advance_and_record(state, start, stop):
        # After a restart, the rows that may not have been written come first.
        recorder.begin(int(start), state)
        return _known(further(state, start, stop))

    return advance_and_record


def _advance_windows(
    problem: Problem, windows: Windows | None, spans: list[Span], mesh: Mesh | None
) -> Callable[[RunState, Array, Array], RunState]:
    """Returns what advances a state, through as many windows as it takes."""

    def advance_to(state, start, stop):
        if windows is None:
            return _advance((problem, mesh, start, stop), state)
        first, last = int(start), int(stop)
        for number, span in enumerate(spans):
            low, high = max(span.first, first), min(span.stop, last)
            if low >= high:
                continue
            here = _with_window(problem, windows.field(span.start))
            if number + 1 < len(spans) and high == span.stop:
                windows.prefetch(spans[number + 1].start)
            bounds = jax.device_put((np.int32(low), np.int32(high)))
            state = _advance((here, mesh, *bounds), state)
        return state

    return advance_to


def _with_window(problem: Problem, field: AbstractField) -> Problem:
    if isinstance(problem.motion, WithVariables):
        return eqx.tree_at(lambda p: p.motion.motion, problem, Carried(field))
    return eqx.tree_at(lambda p: p.motion, problem, Carried(field))


def _plan(windows: Windows | None, problem: Problem) -> list[Span]:
    if windows is None:
        return []
    schedule = problem.schedule
    steps = np.arange(schedule.steps)
    starts, widths = (np.asarray(x, float) for x in (schedule.starts, schedule.widths))
    span, k = np.divmod(steps, schedule.stride)
    begin = starts[span] + k * widths[span]
    return windows.spans(begin, begin + widths[span])


def _on_chunk(recorder: Recorder, then: Callable | None, step, state, info) -> None:
    recorder(step, state)
    if then is not None:
        then(step, state, info)


def _packing(state: RunState, count: int) -> dict[str, Any]:
    """Returns how a state is stored without the particles that only pad it."""
    place = jax.tree.map(lambda x: x.sharding, state)
    more = state.rows.shape[1] - count

    def cropped(state):
        particles = jax.tree.map(lambda x: x[:count], state.particles)
        return RunState(particles, state.rows[:, :count])

    def repeated(state):
        particles = jax.tree.map(lambda x: longer(x[:count], more), state.particles)
        return eqx.tree_at(lambda s: s.particles, state, particles)

    like = jax.tree.map(
        lambda x, where: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where),
        state,
        place,
    )
    shapes = jax.eval_shape(cropped, state)
    complete = jax.jit(repeated, out_shardings=place)
    return {
        "pack": lambda state: pack_state(state, shapes),
        "unpack": lambda arrays: complete(unpack_state(arrays, like, shapes)),
        "places": array_places(like, shapes),
    }
