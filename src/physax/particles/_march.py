"""The fixed-step engine: advances all particles, walls and all, in one traced loop."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from ._boundaries import AbstractBoundary, Passage
from ._diffusivity import status_of
from ._fields import Look
from ._motions import AbstractMotion
from ._schedule import Schedule
from ._several_walls import meet_several
from ._solvers import AbstractRungeKutta, Trial, runge_kutta_step
from ._state import Particles, code, select
from ._status import ParticleStatus
from ._variables import begin


class Problem(eqx.Module):
    """All that decides where particles go.

    Attributes:
        motion: How they answer to fields.
        walls: What they meet.
        diffusivity: A `Diffusivity` or a callable `K(t, x)`, with a stochastic solver.
        key: What random numbers come from.
        schedule: The steps.
        solver: How a step is made.
        ndim: Coordinates of a position.
        waits: Whether particles are released at times of their own.
    """

    motion: AbstractMotion
    walls: tuple[AbstractBoundary, ...]
    diffusivity: Any
    key: Any
    schedule: Schedule
    solver: Any
    ndim: int = eqx.field(static=True)
    waits: bool = eqx.field(static=True)


def enter(
    problem: Problem,
    seeds: Float[Array, "particles ndim"],
    release: Float[Array, " particles"] | None,
    numbers: Int[Array, " particles"],
) -> Particles:
    """Returns the state of particles before the first step.

    Args:
        problem: The problem.
        seeds: Where they begin.
        release: When each begins, `None` for all at the first time.
        numbers: Their numbers.
    """
    t0 = problem.schedule.times[0].astype(seeds.dtype)
    since = jnp.full(seeds.shape[0], t0) if release is None else release
    since = since.astype(seeds.dtype)
    entry = jax.vmap(partial(begin, problem.motion))(since, seeds, numbers)
    zeros = jnp.zeros(seeds.shape[0], jnp.int32)
    seen = jax.vmap(lambda *of_one: _look(problem, *of_one))(since, *entry)
    status = seen.status.astype(jnp.int32)
    # Seeds that under `jit` turned out to be none, which fields take for outside.
    known = jnp.all(jnp.isfinite(seeds), axis=1)
    status = jnp.where(known, status, code(ParticleStatus.NOT_FINITE))
    ended = jnp.where(status == code(ParticleStatus.ALIVE), jnp.nan, since)
    if problem.waits:
        ahead = (since - t0) * jnp.sign(problem.schedule.widths[0])
        # There may be data when its time has come.
        waiting = (ahead > 0) & known & (status != code(ParticleStatus.LEFT_DATA))
        # Also who begins at once: its first step depends on the time of release.
        at_once = (ahead <= 0) & (ahead >= -problem.schedule.slack(t0.dtype))
        waiting = waiting | (at_once & (status == code(ParticleStatus.ALIVE)))
        status = jnp.where(waiting, code(ParticleStatus.WAITING), status)
        ended = jnp.where(waiting, jnp.nan, ended)
    return Particles(
        y=entry.y,
        memory=entry.memory,
        status=status,
        ended=ended,
        since=since,
        face=zeros - 1,
        entries=zeros,
        number=numbers,
        stream=_streams(problem, numbers),
    )


def _look(problem: Problem, t, y, memory) -> Look:
    """Looks at all fields that a particle needs where it is."""
    seen = problem.motion.rate(t, y, memory)
    known = status_of(problem.diffusivity, t, y[: problem.ndim])
    return seen._replace(status=jnp.maximum(seen.status, known))


def _streams(problem: Problem, numbers):
    if not any(wall.is_random() for wall in problem.walls):
        return None

    # The number of a particle, not its place in memory: then a run does not depend on
    # how particles are spread over devices and batches.
    def stream(number):
        key = jax.random.fold_in(problem.key, number)
        return jax.random.bits(key, (problem.ndim,), jnp.uint32)

    return jax.vmap(stream)(numbers)


def advance(
    problem: Problem,
    particles: Particles,
    n: Int[Array, ""],
    nudges: Float[Array, "stages particles width"] | None = None,
) -> tuple[Particles, PyTree]:
    """Makes step `n` of all particles.

    Args:
        problem: The problem.
        particles: Their states before it.
        n: Number of the step.
        nudges: As for `runge_kutta_step`.

    Returns:
        Their states after it, and where the stages asked if there are nudges.
    """
    t, h = problem.schedule.step(n)
    t, h = t.astype(particles.y.dtype), h.astype(particles.y.dtype)
    until = problem.schedule.end(n).astype(particles.y.dtype)
    going = particles.status == code(ParticleStatus.ALIVE)
    if problem.waits:
        t, h, going = _released(problem, particles, t, h, n, going)
    trial = _trial(problem, particles, t, h, n, nudges)
    sound = jnp.all(jnp.isfinite(trial.y), axis=-1)
    after = eqx.tree_at(
        lambda p: (p.y, p.memory, p.status),
        particles,
        (
            # No wall is asked about a way that is infinite.
            jnp.where(sound[:, None], trial.y, particles.y),
            trial.memory,
            jnp.zeros_like(particles.status),
        ),
    )
    if problem.walls:
        after = _meet(problem, particles, after, t, h, until)
    after = _failed(problem, particles, after, t, h, sound)
    return select(going, after, particles), trial.stages


def _released(problem: Problem, particles: Particles, t, h, n, going):
    """Returns when each particle's step begins, how long it is, and if it makes one."""
    until = problem.schedule.end(n).astype(t.dtype)
    waiting = particles.status == code(ParticleStatus.WAITING)
    # The first step of a particle is what is left of the step of all. Released when
    # that ends, it begins with the next, or stays where it is if there is none.
    late = (particles.since - t) / h
    least = jnp.zeros_like(h)
    if problem.diffusivity is not None:
        # Of a remainder that is rounding the root would have a derivative without end.
        far = jnp.maximum(jnp.abs(t), jnp.abs(until))
        least = 4 * jnp.finfo(t.dtype).eps * far / jnp.abs(h)
    begins = makes = late < 1 - least
    if problem.diffusivity is None:
        # At the last time, for the derivative. That of noise has no limit there.
        due = (particles.since - until) * jnp.sign(h) <= 0
        makes = begins | (due & (n + 1 == problem.schedule.steps))
    going = going | (waiting & makes)
    # Rounding must not take the derivative by the release from who begins on a step.
    known = jax.lax.stop_gradient(late)
    late = jnp.where(begins, jnp.maximum(known, 0), 1) + (late - known)
    late = jnp.where(waiting, late, 0)
    return t + late * h, (1 - late) * h, going


def _trial(problem: Problem, particles: Particles, t, h, n, nudges) -> Trial:
    solver, motion = problem.solver, problem.motion
    each = 0 if problem.waits else None
    if isinstance(solver, AbstractRungeKutta):

        def rate(t, y, memory):
            seen = jax.vmap(motion.rate, in_axes=(each, 0, 0))(t, y, memory)
            return seen.value, seen.memory

        return runge_kutta_step(
            solver, rate, t, h, particles.y, particles.memory, nudges
        )

    def one(number, t, h, y, memory):
        key = jax.random.fold_in(jax.random.fold_in(problem.key, number), n)
        noise = jax.random.normal(key, (problem.ndim,), y.dtype)
        return solver.step(motion, problem.diffusivity, t, h, y, memory, noise)

    mapped = jax.vmap(one, in_axes=(0, each, each, 0, 0))
    return mapped(particles.number, t, h, particles.y, particles.memory)


def _meet(problem: Problem, before, after, t, h, until) -> Particles:
    """Asks the walls about a step."""
    passage = Passage(t, h, problem.motion, 0, until, problem.diffusivity)
    if len(problem.walls) != 1:
        return meet_several(problem.walls, before, after, passage)
    each, wall = 0 if problem.waits else None, problem.walls[0]

    def one(before, after, t, h):
        return wall.meet(before, after, passage._replace(t=t, h=h))

    return jax.vmap(one, in_axes=(0, 0, each, each))(before, after, t, h)


def _failed(
    problem: Problem, before: Particles, after: Particles, t, h, sound
) -> Particles:
    """Stops particles where there are no data, or what is integrated is not finite."""
    # Asked once for a step, where it ends, and not at each stage: on CPUs that would
    # cost a quarter of the whole step.
    each = 0 if problem.waits else None
    look = jax.vmap(lambda *of_one: _look(problem, *of_one), in_axes=(each, 0, 0))
    seen = look(t + h, after.y, after.memory)
    going = after.status == code(ParticleStatus.ALIVE)
    lost = jnp.where(going, seen.status, after.status)
    finite = sound & jnp.all(jnp.isfinite(after.y), axis=-1)
    lost = jnp.where(finite, lost, code(ParticleStatus.NOT_FINITE))
    ended = jnp.broadcast_to(t, before.ended.shape).astype(before.ended.dtype)
    stopped = eqx.tree_at(lambda p: (p.status, p.ended), before, (lost, ended))
    after = eqx.tree_at(lambda p: p.memory, after, seen.memory)
    return select(lost == after.status, after, stopped)
