"""Follows particles: one pure, differentiable function over all engines."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, ArrayLike, Bool, Float, Key, Num

from .._auto_mesh import auto_mesh
from .._checks import ArgumentError, one_key, optional, traced, whole
from ..runtime import check_memory
from ._adjoints import AbstractAdjoint
from ._boundaries import AbstractBoundary
from ._box import Box
from ._diffrax import Diffrax, check, raise_if_unfinished, solve
from ._diffusivity import as_diffusivity
from ._fields import AbstractField
from ._march import Problem, enter
from ._motions import as_motion
from ._outside_data import refuse_outside
from ._run_checks import (
    as_adjoint,
    as_release,
    as_solver,
    as_walls,
    check_rates,
    check_span,
    check_variables,
)
from ._schedule import plan_steps
from ._seed_checks import check_seeds
from ._solvers import AbstractRungeKutta
from ._sphere import check_latitudes, check_motion_on_sphere, sphere_of
from ._state import Particles
from ._status import ParticleStatus
from ._stochastic import AbstractStochastic
from ._tracks import Tracks
from ._variables import Variable, WithVariables
from ._windows import Windows


# Particles that are advanced together: enough to fill the vector units, few enough for
# their states to stay in the cache from stage to stage.
_BATCH = 16384


def track(
    velocity: Any,
    seeds: ArrayLike | Sequence,
    times: ArrayLike | Sequence,
    *,
    dt: Num[ArrayLike, ""] | None = None,
    steps: Any = None,
    solver: AbstractRungeKutta | AbstractStochastic | Diffrax | None = None,
    boundary: AbstractBoundary | Sequence[AbstractBoundary] | None = None,
    diffusivity: Any = None,
    key: Key[Array, ""] | None = None,
    release: ArrayLike | Sequence | None = None,
    variables: Mapping[str, Variable] | None = None,
    adjoint: AbstractAdjoint | None = None,
    mesh: Mesh | None = None,
    batch: int | None = None,
) -> Tracks:
    r"""Follows particles through a field and records where they are.

    Works under `jit`, `vmap`, `grad` and `jvp`, and compiles itself: other fields of
    the same shape, other seeds and other times compile nothing. A run backward has
    decreasing times.

    Args:
        velocity: A field, a callable `u(t, x)` of one particle, or an `AbstractMotion`
            such as `MaxeyRiley(...)`.
        seeds: Where the particles begin, `[particles, ndim]`.
        times: The recorded times, in seconds, `[times]`; the first is the start.
        dt: Length of a step, which must divide the intervals between the times.
        steps: Number of steps in all, instead of `dt`. With neither, one step leads
            from each recorded time to the next, or under `Diffrax` as many as the
            tolerances ask for.
        solver: `RK4()` by default, `Milstein()` with `diffusivity`; or `Diffrax(...)`.
        boundary: A wall or several. They act on a particle in the order in which it
            meets them on the straight path of a step, at most 8 of several in one step;
            the rest of the path is then lost.
        diffusivity: A number, one for each axis, a field, or a callable `K(t, x)`, in
            m^2/s, also where the velocity is `OnSphere`; not negative.
        key: The source of random numbers, needed by diffusion and random inlets. The
            same key gives the same tracks, on any number of devices; a second call that
            continues the first needs another, or repeats its noise.
        release: When each particle begins, in seconds; at the first time by default.
        variables: What to integrate along the tracks.
        adjoint: How derivatives are taken in reverse: `Checkpointed()` by default,
            `FieldAdjoint()` for those by all samples of a large field.
        mesh: Devices over which to divide the particles.
        batch: Particles that are advanced together; about 16,000 by default. No result
            depends on it beyond rounding.

    Returns:
        The tracks, one row of positions for each of `times`.

    Raises:
        ArgumentError: If an argument is out of its range, does not fit to another, or
            reaches beyond the data.
        RunError: If diffrax needs more steps than it may make.
        MemoryLimitError: If the recorded positions do not fit into memory.
    """
    mesh = optional(auto_mesh)(mesh)
    problem, seeds, release = prepare(
        velocity,
        seeds,
        times,
        dt=dt,
        steps=steps,
        solver=solver,
        boundary=boundary,
        diffusivity=diffusivity,
        key=key,
        release=release,
        variables=variables,
    )
    count = 1 if mesh is None else mesh.size
    adjoint = as_adjoint(adjoint)
    adjoint.check(problem)
    rows = problem.schedule.times.size
    width = width_of(problem, seeds, variables)
    check_memory(
        rows * seeds.shape[0] * width * seeds.dtype.itemsize,
        f"recording {seeds.shape[0]} particles at {rows} times; record fewer times, or "
        "write them while running: the tracks",
        count=count,
    )
    if isinstance(problem.solver, Diffrax):
        adaptive = dt is None and steps is None
        particles, records, good = _solve(problem, seeds, mesh, adaptive)
        raise_if_unfinished(good, problem.solver)
    else:
        size = _BATCH if batch is None else whole(batch, "batch")
        particles, records = _march(problem, adjoint, seeds, release, mesh, size)
    _refuse_seeds_outside(problem, particles, seeds, release)
    return to_tracks(problem, particles, records, variables)


@jax.jit
def _left_at_once(particles: Particles) -> Bool[Array, ""]:
    left = particles.status == int(ParticleStatus.LEFT_DATA)
    return jnp.any(left & (particles.ended == particles.since))


def _refuse_seeds_outside(problem, particles: Particles, seeds, release) -> None:
    """Raises if seeds lay outside the data, after a run."""
    known = not traced((particles.status, seeds))
    # Particles that left in their first step ended when they began, too.
    if known and _left_at_once(particles):
        numbers = jnp.arange(seeds.shape[0], dtype=jnp.int32)
        begin = eqx.filter_jit(enter)(problem, seeds, release, numbers)
        refuse_outside(problem, begin, seeds, release)


@eqx.filter_jit
def _solve(problem: Problem, seeds, mesh: Mesh | None, adaptive: bool):
    engine: Any = problem.solver
    if mesh is not None:
        raise ArgumentError(
            "`mesh` needs a solver of fixed step, as `RK4()`: the steps of "
            f"{type(engine.solver).__name__}() would depend on the number of devices."
        )
    check_rates(problem, seeds)
    numbers = jnp.arange(seeds.shape[0], dtype=jnp.int32)
    return solve(engine, problem, seeds, numbers, adaptive)


def width_of(problem: Problem, seeds: Array, variables: Mapping | None) -> int:
    """Returns how many numbers are recorded of one particle.

    Args:
        problem: The problem.
        seeds: Where the particles begin.
        variables: What is integrated along.
    """
    return seeds.shape[1] * (1 + problem.motion.second_order) + len(variables or ())


def prepare(
    velocity: Any,
    seeds: ArrayLike | Sequence,
    times: ArrayLike | Sequence,
    *,
    dt: Num[ArrayLike, ""] | None,
    steps: Any,
    solver: Any,
    boundary: Any,
    diffusivity: Any,
    key: Any,
    release: ArrayLike | Sequence | None,
    variables: Any,
    span: tuple[Any, Any] | None = None,
) -> tuple[Problem, Float[Array, "particles ndim"], Float[Array, " particles"] | None]:
    """Checks the arguments of a run and gathers them.

    They are those of `track`, and `span`: the first and the last time of the data,
    where the velocity holds only a part of them.
    """
    seeds = check_seeds(seeds)
    schedule = plan_steps(times, dt, steps)
    walls, seeds = as_walls(boundary, seeds)
    if isinstance(velocity, Windows):
        raise ArgumentError(
            "`velocity` must be a field, a function or a motion, but is a `Windows`, "
            "which needs `run(velocity, seeds, times, ...)` to read it window by "
            "window. For `track` read all snapshots into one field."
        )
    motion = as_motion(velocity)
    sphere = sphere_of(motion)
    if sphere is not None:
        check_motion_on_sphere(motion)
        check_latitudes(seeds)
    check_variables(variables, seeds.shape[0])
    asked = [diffusivity, *(v.rate for v in (variables or {}).values())]
    more = [x.span() for x in asked if isinstance(x, AbstractField)]
    if variables:
        motion = WithVariables(
            motion=motion,
            variables=tuple(variables.values()),
            names=tuple(variables),
            second_order=motion.second_order,
        )
    solver = as_solver(solver, diffusivity)
    if diffusivity is not None:
        diffusivity = as_diffusivity(diffusivity, seeds.shape[1], sphere)
    if key is not None:
        key = one_key(key)
    elif diffusivity is not None or any(w.is_random() for w in walls):
        what = "a `diffusivity`" if diffusivity is not None else "a random inlet"
        raise ArgumentError(
            f"`key` must be given with {what}, as `jax.random.key(0)`, but is None."
        )
    for known in (motion.span() if span is None else span, *more):
        check_span(known, schedule)
    release = as_release(release, seeds.shape[0], schedule)
    problem = Problem(
        motion,
        walls,
        diffusivity,
        key,
        schedule,
        solver,
        ndim=seeds.shape[1],
        waits=release is not None,
    )
    if isinstance(solver, Diffrax):
        check(solver, problem)
    return problem, seeds, release


@eqx.filter_jit
def _march(problem, adjoint, seeds, release, mesh: Mesh | None, batch: int):
    """Divides the particles over devices and batches, and runs them."""
    check_rates(problem, seeds)
    numbers = jnp.arange(seeds.shape[0], dtype=jnp.int32)
    if mesh is None:
        return _in_batches(problem, adjoint, seeds, release, numbers, batch)
    more = -seeds.shape[0] % mesh.size
    names = PartitionSpec(mesh.axis_names)
    arrays, static = eqx.partition(problem, eqx.is_array)

    def local(arrays, seeds, release, numbers):
        problem = eqx.combine(arrays, static)
        return _in_batches(problem, adjoint, seeds, release, numbers, batch)

    everywhere = jax.shard_map(
        local,
        mesh=mesh,
        in_specs=(PartitionSpec(), names, names, names),
        out_specs=(names, PartitionSpec(None, mesh.axis_names)),
        check_vma=False,
    )
    padded = jax.tree.map(lambda x: longer(x, more), (seeds, release, numbers))
    particles, records = everywhere(arrays, *padded)
    if not more:
        return particles, records
    count = seeds.shape[0]
    return jax.tree.map(lambda x: x[:count], particles), records[:, :count]


def longer(x: Array, more: int) -> Array:
    """Appends copies of the last particle.

    Args:
        x: What is known of each particle.
        more: How many.
    """
    return jnp.concatenate([x, jnp.repeat(x[-1:], more, axis=0)]) if more else x


def _in_batches(problem, adjoint, seeds, release, numbers, batch: int):
    count = seeds.shape[0]
    blocks = -(-count // batch)
    if blocks == 1:
        return adjoint.run(problem, seeds, release, numbers)
    size = -(-count // blocks)
    more = blocks * size - count

    def split(x):
        return longer(x, more).reshape(blocks, size, *x.shape[1:])

    run = lambda given: adjoint.run(problem, *given)  # noqa: E731
    particles, records = jax.lax.map(
        run, jax.tree.map(split, (seeds, release, numbers))
    )
    join = lambda x: x.reshape(-1, *x.shape[2:])[:count]  # noqa: E731
    rows = jnp.moveaxis(records, 0, 1)
    return (
        jax.tree.map(join, particles),
        rows.reshape(rows.shape[0], -1, rows.shape[-1])[:, :count],
    )


def to_tracks(
    problem: Problem,
    particles: Particles,
    records: Float[Array, "times particles width"],
    variables: Mapping[str, Variable] | None,
    times: Float[Array, " times"] | None = None,
) -> Tracks:
    """Takes apart what was recorded.

    Args:
        problem: The problem.
        particles: The last states.
        records: What is integrated, at each recorded time.
        variables: The variables.
        times: When, if not at all recorded times.
    """
    ndim, names = problem.ndim, tuple(variables or ())
    own = records.shape[-1] - len(names)
    return Tracks(
        times=problem.schedule.times if times is None else times,
        positions=records[..., :ndim],
        velocities=records[..., ndim:own] if problem.motion.second_order else None,
        variables={name: records[..., own + i] for i, name in enumerate(names)},
        status=particles.status,
        ended=particles.ended,
        face=particles.face,
        since=particles.since,
        entries=particles.entries,
        wraps=_wraps(problem, records.dtype),
    )


def _wraps(problem: Problem, dtype: Any) -> Float[Array, "2 ndim"] | None:
    """Returns the ends of periodic axes, infinite along others; `None` for none."""
    for wall in problem.walls:
        if isinstance(wall, Box) and any(wall.periodic):
            ends = jnp.stack([wall.low, wall.high]).astype(dtype)
            never = jnp.asarray([[-jnp.inf], [jnp.inf]], dtype)
            return jnp.where(jnp.asarray(wall.periodic), ends, never)
    return None
