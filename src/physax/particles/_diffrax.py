"""The engine of diffrax: adaptive, implicit and dense solvers behind `track`."""

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._checks import ArgumentError, forgotten, optional, true_or_false, whole
from .._known_number import known_number
from .._status import RunError, Status
from ._instants import Instants
from ._march import Problem, enter
from ._motions import AbstractMotion
from ._state import Particles, code
from ._status import ParticleStatus


@cache
def classical_runge_kutta() -> Any:
    """Returns the classical method of order 4 as a solver of diffrax, which has none.

    It has no estimate of its error, so it goes with steps of fixed length.
    """
    import diffrax

    class ClassicalRungeKutta(diffrax.AbstractERK):
        tableau: ClassVar[diffrax.ButcherTableau] = diffrax.ButcherTableau(
            a_lower=(np.array([0.5]), np.array([0.0, 0.5]), np.array([0.0, 0.0, 1.0])),
            b_sol=np.array([1, 2, 2, 1]) / 6,
            b_error=np.zeros(4),
            c=np.array([0.5, 0.5, 1.0]),
        )
        interpolation_cls: ClassVar[Callable[..., Any]] = (
            diffrax.ThirdOrderHermitePolynomialInterpolation.from_k
        )

        def order(self, terms):
            del terms
            return 4

    return ClassicalRungeKutta()


def largest_of_particles(y: Float[Array, "*particles width"]) -> Float[Array, ""]:
    """Returns the largest root mean square of one particle's entries.

    The mean over all particles would let one of a thousand be wrong 30 times as much.

    Args:
        y: Scaled errors.
    """
    # The root has no derivative at 0, where a step of no error ends.
    squares = jnp.mean(jnp.square(y), axis=-1)
    largest = jnp.max(squares)
    safe = jnp.where(largest > 0, largest, 1)
    return jnp.where(largest > 0, jnp.sqrt(safe), 0)


def _number(name: str) -> Callable[[Any], float]:
    return lambda x: known_number(x, name)


class Diffrax(eqx.Module):
    """A solver of diffrax, for smooth fields, tight tolerances and stiff equations.

    Without `dt` and `steps` in `track` the length of the steps follows from the
    tolerances, and steps end at the instants of fields on grids. A particle that leaves
    the data stays where it was last recorded before; `ended` is the first recorded time
    at which it had left. Walls need a fixed step.

    Attributes:
        solver: Such as `diffrax.Tsit5()`, `diffrax.Dopri8()` or `diffrax.Kvaerno5()`.
        rtol: Tolerance of the error of a step, relative to what is integrated.
        atol: The same, absolute, in the units of what is integrated.
        each: Whether every particle has steps of its own. `None` decides: yes for
            implicit solvers, which solve equations as large as what they integrate.
        event: A `diffrax.Event` that ends particles, with the status `ABSORBED`; its
            function gets `(t, y, args, **kwargs)` of one particle. Needs `each=True`.
        adjoint: An adjoint of diffrax, `RecursiveCheckpointAdjoint()` by default;
            `diffrax.ForwardMode()` for forward mode.
        max_steps: Largest number of steps.

    Raises:
        ArgumentError: If a tolerance is not positive, or an event has no `each`.
    """

    solver: Any
    rtol: float = eqx.field(static=True, default=1e-6, converter=_number("rtol"))
    atol: float = eqx.field(static=True, default=1e-9, converter=_number("atol"))
    each: bool | None = eqx.field(
        static=True,
        default=None,
        converter=optional(lambda x: true_or_false(x, "each")),
    )
    event: Any = None
    adjoint: Any = None
    max_steps: int = eqx.field(
        static=True, default=100_000, converter=lambda x: whole(x, "max_steps")
    )

    def __check_init__(self):
        import diffrax

        if not isinstance(self.solver, diffrax.AbstractSolver):
            raise ArgumentError(
                "`solver` must be a solver of diffrax, as `diffrax.Tsit5()`, but is "
                f"{self.solver!r}.{forgotten(self.solver)}"
            )
        adjoint = diffrax.AbstractAdjoint
        if not isinstance(self.adjoint, adjoint | None):
            raise ArgumentError(
                "`adjoint` must be an adjoint of diffrax, as `diffrax.ForwardMode()`, "
                f"but is {self.adjoint!r}.{forgotten(self.adjoint)}"
            )
        for name in ("rtol", "atol"):
            if not getattr(self, name) > 0:
                raise ArgumentError(
                    f"`{name}` must be positive, but is {getattr(self, name):g}."
                )
        if self.event is not None and not self.each:
            raise ArgumentError(
                "`each` must be True with an `event`, which ends particles one by one, "
                f"but is {self.each}."
            )

    @property
    def one_by_one(self) -> bool:
        """Whether every particle has steps of its own."""
        import diffrax

        implicit = isinstance(self.solver, diffrax.AbstractImplicitSolver)
        return implicit if self.each is None else self.each


def _instants(motion: AbstractMotion) -> Float[Array, " instants"] | None:
    """Returns the times at which fields that are linear in time have kinks."""
    known = lambda x: isinstance(x, Instants)  # noqa: E731
    found = jax.tree.leaves(motion, is_leaf=known)
    axes = [x.axis for x in found if known(x) and x.axis is not None]
    inner = [axis.positions() for axis in axes if axis.period is None]
    return jnp.sort(jnp.concatenate(inner)) if inner else None


def _steps(engine: Diffrax, problem: Problem, adaptive: bool):
    """Returns the controller of the step and the first step."""
    import diffrax

    if not adaptive:
        return diffrax.ConstantStepSize(), problem.schedule.widths[0]
    controller = diffrax.PIDController(
        rtol=engine.rtol,
        atol=engine.atol,
        norm=largest_of_particles,
        pcoeff=0.0 if engine.one_by_one else 0.2,
        icoeff=1.0 if engine.one_by_one else 0.4,
    )
    instants = _instants(problem.motion)
    if instants is not None:
        controller = diffrax.ClipStepSizeController(controller, jump_ts=instants)
    return controller, None


def solve(
    engine: Diffrax,
    problem: Problem,
    seeds: Float[Array, "particles ndim"],
    numbers: Int[Array, " particles"],
    adaptive: bool,
) -> tuple[Particles, Float[Array, "times particles width"], Bool[Array, ""]]:
    """Integrates a problem.

    Args:
        engine: The engine.
        problem: The problem.
        seeds: Where the particles begin.
        numbers: Their numbers.
        adaptive: Whether the tolerances decide the length of the steps.

    Returns:
        The last states, what is integrated at each recorded time, and whether diffrax
        got to the last.
    """
    import diffrax

    begin, motion = enter(problem, seeds, None, numbers), problem.motion
    times = problem.schedule.times.astype(seeds.dtype)
    controller, first = _steps(engine, problem, adaptive)
    adjoint = engine.adjoint or diffrax.RecursiveCheckpointAdjoint()

    def slope(t, y, motion):
        seen = motion.rate(t, y, motion.enter(t, y[: problem.ndim]).memory)
        # One particle without a velocity must not spoil the steps of all. Asking for
        # its status here would take the field twice as long on CPUs.
        return jnp.where(jnp.isfinite(seen.value), seen.value, 0)

    def many(t, y, motion):
        return jax.vmap(slope, in_axes=(None, 0, None))(t, y, motion)

    def run(y):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(slope if engine.one_by_one else many),
            engine.solver,
            times[0],
            times[-1],
            first,
            y,
            motion,
            saveat=diffrax.SaveAt(
                subs=(diffrax.SubSaveAt(ts=times), diffrax.SubSaveAt(t1=True))
            ),
            stepsize_controller=controller,
            adjoint=adjoint,
            event=engine.event,
            max_steps=engine.max_steps,
            throw=False,
        )

    solution: Any
    with jax.default_matmul_precision("highest"):
        solution = (jax.vmap(run) if engine.one_by_one else run)(begin.y)
    rows = solution.ys[0]
    if engine.one_by_one:
        rows = jnp.moveaxis(rows, 1, 0)
    rows, status, ended = _fates(problem, rows, times)
    good = jnp.all(diffrax.is_okay(solution.result))
    if engine.event is not None:
        stopped = jnp.asarray(diffrax.is_event(solution.result))
        at, place = solution.ts[1][:, -1], solution.ys[1][:, -1]
        # diffrax leaves the times after an event empty; the particle stays there.
        over = stopped & (jnp.abs(times[:, None] - times[0]) >= jnp.abs(at - times[0]))
        rows = jnp.where(over[..., None], place, rows)
        status = jnp.where(stopped, code(ParticleStatus.ABSORBED), status)
        ended = jnp.where(stopped, at, ended)
    last = eqx.tree_at(
        lambda p: (p.y, p.status, p.ended), begin, (rows[-1], status, ended)
    )
    return last, rows, good


def _fates(problem: Problem, rows, times):
    """Finds in what was recorded who left the data, and lets them stay before that."""

    def at(t, y):
        memory = problem.motion.enter(t, y[: problem.ndim]).memory
        seen = problem.motion.rate(t, y, memory)
        good = jnp.all(jnp.isfinite(y) & jnp.isfinite(seen.value))
        return jnp.where(good, seen.status, code(ParticleStatus.NOT_FINITE))

    status = jax.vmap(jax.vmap(at, in_axes=(None, 0)))(times, rows)
    lost = status != code(ParticleStatus.ALIVE)
    first = jnp.argmax(lost, axis=0)
    any_lost = jnp.any(lost, axis=0)
    ended = jnp.where(any_lost, times[first], jnp.nan).astype(rows.dtype)
    fate = jnp.take_along_axis(status, first[None], axis=0)[0]
    last = jnp.where(any_lost, jnp.maximum(first - 1, 0), times.size - 1)
    row = jnp.minimum(jnp.arange(times.size)[:, None], last)
    kept = jnp.take_along_axis(rows, row[..., None], axis=0)
    return kept, jnp.where(any_lost, fate, code(ParticleStatus.ALIVE)), ended


def check(engine: Diffrax, problem: Problem) -> None:
    """Raises if diffrax cannot solve a problem.

    Args:
        engine: The engine.
        problem: The problem.

    Raises:
        ArgumentError: If there are walls, diffusion or times of release.
    """
    for name, present in {
        "boundary": bool(problem.walls),
        "diffusivity": problem.diffusivity is not None,
        "release": problem.waits,
    }.items():
        if present:
            raise ArgumentError(
                f"`{name}` needs a solver of fixed step, as `RK4()`, but `solver` is "
                f"Diffrax({type(engine.solver).__name__}()). An `event` of diffrax can "
                "end particles."
            )


def raise_if_unfinished(good: Bool[Array, ""], engine: Diffrax) -> None:
    """Raises on the host if diffrax gave up.

    Args:
        good: Whether it got to the last time.
        engine: The engine.

    Raises:
        RunError: If it did not.
    """
    if isinstance(good, jax.core.Tracer) or bool(good):
        return
    raise RunError(
        f"diffrax did not reach the last time within `max_steps`, {engine.max_steps}. "
        "Increase it or the tolerances, or use an implicit solver.",
        Status.MAX_STEPS,
    )
