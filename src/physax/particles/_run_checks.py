"""Whether the arguments of a run are of the right kind and fit each other."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.core
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, as_array, forgotten, kind_of, traced
from ..runtime._checkpointing import check_checkpoint
from ..runtime._progress import check_progress
from ._adjoints import AbstractAdjoint, Checkpointed
from ._boundaries import AbstractBoundary
from ._diffrax import Diffrax
from ._faces import AbstractFace
from ._march import Problem
from ._motions import check_width
from ._numbers import check_numbers
from ._schedule import Schedule
from ._solvers import RK4, AbstractRungeKutta
from ._sphere import check_sphere_is_seen
from ._stochastic import AbstractStochastic, Milstein
from ._variables import Variable, WithVariables


def as_walls(
    boundary: Any, seeds: Float[Array, "particles ndim"]
) -> tuple[tuple[AbstractBoundary, ...], Float[Array, "particles ndim"]]:
    """Returns the walls of a run, and the seeds, NaN where none may begin.

    Args:
        boundary: A wall, several, or `None`.
        seeds: Where the particles begin.

    Raises:
        ArgumentError: If one is not a wall, or no particle may begin at a seed.
    """
    walls: Any = () if boundary is None else (boundary,)
    if isinstance(boundary, Sequence) and not isinstance(boundary, str):
        walls = tuple(boundary)
    for wall in walls:
        if not isinstance(wall, AbstractBoundary):
            face = isinstance(wall, AbstractFace) or (
                isinstance(wall, type) and issubclass(wall, AbstractFace)
            )
            remedy = " It is a face: `Box(low, high, face)`." if face else ""
            if isinstance(wall, str):
                remedy = " For a periodic domain write `Box(low, high, Periodic())`."
            raise ArgumentError(
                f"`boundary` must be a wall such as `Box(...)`, but is {wall!r}."
                f"{remedy or forgotten(wall)}"
            )
        seeds = wall.check(seeds)
    return walls, seeds


def as_adjoint(adjoint: Any) -> AbstractAdjoint:
    """Returns how derivatives are taken.

    Args:
        adjoint: An adjoint, or `None`.

    Raises:
        ArgumentError: If it is neither.
    """
    if adjoint is None:
        return Checkpointed()
    if not isinstance(adjoint, AbstractAdjoint):
        raise ArgumentError(
            "`adjoint` must be `Checkpointed()` or `FieldAdjoint()`, but is "
            f"{adjoint!r}.{forgotten(adjoint)}"
        )
    return adjoint


def as_solver(solver: Any, diffusivity: Any) -> Any:
    """Returns how steps are made.

    Args:
        solver: A solver, or `None`.
        diffusivity: What was given, `None` for none.

    Raises:
        ArgumentError: If it is not a solver, or does not fit the diffusivity.
    """
    if solver is None:
        return RK4() if diffusivity is None else Milstein()
    if not isinstance(solver, (AbstractRungeKutta, AbstractStochastic, Diffrax)):
        raise ArgumentError(
            "`solver` must be `RK4()`, `Milstein()`, `Diffrax(...)` or another, but is "
            f"{solver!r}.{forgotten(solver)}"
        )
    if isinstance(solver, AbstractStochastic) and diffusivity is None:
        raise ArgumentError(
            f"`diffusivity` must be given with {type(solver).__name__}(), but is None."
        )
    if not isinstance(solver, AbstractStochastic) and diffusivity is not None:
        raise ArgumentError(
            "`solver` must be `EulerMaruyama()`, `Milstein()` or `StochasticHeun()` "
            f"with a `diffusivity`, but is {type(solver).__name__}."
        )
    return solver


def check_variables(variables: Any, count: int) -> None:
    """Raises unless an argument is variables by name.

    Args:
        variables: The variables, or `None`.
        count: Number of particles.

    Raises:
        ArgumentError: If one is not a `Variable`, or does not begin with one number, or
            one for each particle.
    """
    if variables is None:
        return
    if not isinstance(variables, Mapping):
        raise ArgumentError(
            "`variables` must be given by name, as `{'age': Variable(rate)}`, but are "
            f"a {type(variables).__name__}."
        )
    for name, variable in variables.items():
        if not isinstance(variable, Variable):
            raise ArgumentError(
                f"`variables[{name!r}]` must be a `Variable(rate)`, but is "
                f"{variable!r}."
            )
        initial = variable.initial
        if not callable(initial) and initial.shape not in ((), (count,)):
            raise ArgumentError(
                f"`variables[{name!r}].initial` must be one number, or one for each of "
                f"{count} seeds, but has shape {initial.shape}."
            )


def check_rates(problem: Problem, seeds: Float[Array, "particles ndim"]) -> None:
    """Raises unless what is integrated changes as the motion says, where it says.

    Args:
        problem: The problem.
        seeds: Where the particles begin.

    Raises:
        ArgumentError: If a rate is of another shape, or complex, or asks a field on
            a sphere that the motion does not hold.
    """
    motion, t = problem.motion, problem.schedule.times[0]
    check_width(motion, t, seeds)
    # Rates of variables may ask what they like.
    alone = motion.motion if isinstance(motion, WithVariables) else motion

    def rate(t, x):
        entry = alone.enter(t, x)
        return alone.rate(t, entry.y, entry.memory).value

    one = jax.ShapeDtypeStruct(seeds.shape[1:], seeds.dtype)
    check_sphere_is_seen(alone, rate, t.astype(seeds.dtype), one)


def check_span(span: tuple[Any, Any], schedule: Schedule) -> None:
    """Raises if times lie outside the data, where both are known.

    Args:
        span: The first and the last time of the data.
        schedule: The steps.

    Raises:
        ArgumentError: If the steps reach beyond the data.
    """
    if traced((*span, schedule.times)):
        return
    low, high = (float(x) for x in span)
    times = np.asarray(schedule.times)
    first, last = float(times.min()), float(times.max())
    slack = 4 * np.finfo(times.dtype).eps * max(abs(first), abs(last))
    if first < low - slack or last > high + slack:
        raise ArgumentError(
            f"`times` must lie within those of the data, {low:g} to {high:g} s, but "
            f"reach from {first:g} to {last:g} s. To go beyond, make the field with "
            "`time_outside=Clamp()` or a `time_period`."
        )


def as_release(
    release: Any, count: int, schedule: Schedule
) -> Float[Array, " particles"] | None:
    """Returns when particles begin.

    Args:
        release: The times, or `None`.
        count: Number of particles.
        schedule: The steps.

    Raises:
        ArgumentError: If they are not as many as particles, not finite, or before the
            first recorded time.
    """
    if release is None:
        return None
    check_numbers(release, "release")
    release = as_array(release, "release")
    if release.shape != (count,):
        raise ArgumentError(
            f"`release` must have one time for each of {count} seeds, but has shape "
            f"{release.shape}."
        )
    if isinstance(release, jax.core.Tracer):
        return release
    wrong = np.flatnonzero(~np.isfinite(np.asarray(release)))
    if wrong.size:
        raise ArgumentError(
            "`release` must be finite, but entry "
            f"{wrong[0]} is {float(release[wrong[0]]):g}."
        )
    _check_begin(np.asarray(release), schedule)
    return release


def _check_begin(release: np.ndarray, schedule: Schedule) -> None:
    """Raises if a release is before the first time, where that is known."""
    if isinstance(schedule.times, jax.core.Tracer):
        return
    times = np.asarray(schedule.times)
    early = (release - times[0]) * np.sign(times[-1] - times[0])
    wrong = np.flatnonzero(early < -float(schedule.slack(times.dtype)))
    if wrong.size:
        raise ArgumentError(
            f"`release` must not come before the first of `times`, {times[0]:g} s, but "
            f"entry {wrong[0]} is {release[wrong[0]]:g}. Start `times` there."
        )


def check_kinds(sink: Any, checkpoint: Any, on_chunk: Any, progress: Any) -> None:
    """Raises if an argument of `run` is of the wrong kind.

    Args:
        sink: A function or `None`.
        checkpoint: A `Checkpointing` or `None`.
        on_chunk: A function or `None`.
        progress: A boolean, a `Progress` or `None`.

    Raises:
        ArgumentError: If one is something else.
    """
    for given, name in ((sink, "sink"), (on_chunk, "on_chunk")):
        if given is not None and not callable(given):
            path = name == "sink" and isinstance(given, str | os.PathLike)
            remedy = " For a file make an `io.TrackFile(path, ...)`." if path else ""
            raise ArgumentError(
                f"`{name}` must be a function or None, but is {kind_of(given)}{remedy}"
            )
    check_progress(progress)
    check_checkpoint(checkpoint)


def check_run(problem: Problem, sink: Any, checkpoint: Any) -> None:
    """Raises if `run` cannot do what is asked.

    Args:
        problem: The problem.
        sink: The sink, `None` for none.
        checkpoint: The checkpoints, `None` for none.

    Raises:
        ArgumentError: If the solver has steps of its own, the recorded times are not
            evenly spaced, or there is a checkpoint without a sink.
    """
    if isinstance(problem.solver, Diffrax):
        raise ArgumentError(
            "`solver` must be of a fixed step in `run`, as `RK4()`, but is "
            "`Diffrax(...)`. Use `track`."
        )
    if problem.schedule.rows is not None:
        raise ArgumentError(
            "`times` must be evenly spaced in `run`, in steps of `dt`, but are not."
        )
    if checkpoint is not None and sink is None:
        raise ArgumentError(
            "`sink` must be given with `checkpoint`, as `io.TrackFile(...)`, but is "
            "None: rows in memory would be lost."
        )
