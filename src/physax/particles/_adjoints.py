"""How derivatives of tracks run backward."""

from abc import abstractmethod
from math import isqrt
from types import FunctionType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from .._checks import ArgumentError, optional, traced, whole
from .._loop import divisor_near, iterate
from ._fields import AbstractField
from ._gridded import GriddedField
from ._march import Problem, advance, enter
from ._motions import AbstractMotion
from ._schedule import Schedule
from ._solvers import AbstractRungeKutta
from ._state import Particles
from ._variables import WithVariables


class AbstractAdjoint(eqx.Module):
    """How derivatives of tracks are taken in reverse."""

    @abstractmethod
    def check(self, problem: Problem) -> None:
        """Raises if it cannot handle a problem.

        Args:
            problem: The problem.
        """

    @abstractmethod
    def run(
        self,
        problem: Problem,
        seeds: Float[Array, "particles ndim"],
        release: Float[Array, " particles"] | None,
        numbers: Int[Array, " particles"],
    ) -> tuple[Particles, Float[Array, "times particles width"]]:
        """Runs one batch of particles.

        Args:
            problem: The problem.
            seeds: Where they begin.
            release: When, `None` for all at the first time.
            numbers: Their numbers.

        Returns:
            The last states, and what is integrated at each recorded time.
        """


class Checkpointed(AbstractAdjoint):
    """JAX's own derivatives, forward and reverse, of everything there is.

    Steps are recomputed from states kept at intervals. Cheapest for seeds, walls and
    fields of few parameters; for the samples of a large `GriddedField` see
    `FieldAdjoint`.

    Attributes:
        every: Steps between kept states; by default about the root of all steps. There
            is one at each recorded time.
    """

    every: int | None = eqx.field(
        static=True, default=None, converter=optional(lambda x: whole(x, "every"))
    )

    def check(self, problem):
        del problem

    def run(self, problem, seeds, release, numbers):
        return _run(problem, seeds, release, numbers, self.every)


def _run(problem: Problem, seeds, release, numbers, checkpoint: int | None = None):
    schedule = problem.schedule
    begin = enter(problem, seeds, release, numbers)
    particles, rows = iterate(
        lambda particles, n: advance(problem, particles, n)[0],
        begin,
        0,
        schedule.steps,
        every=schedule.every,
        checkpoint=checkpoint or _replayed(schedule),
        save=lambda particles, n: particles.y,
    )
    if schedule.rows is not None:
        rows = rows[np.append(0, np.asarray(schedule.rows) + 1)]
    return particles, rows


def _replayed(schedule: Schedule) -> int:
    """Returns a number of steps for which few states are kept and few made again."""
    return divisor_near(schedule.every, min(isqrt(schedule.steps), schedule.every))


class FieldAdjoint(AbstractAdjoint):
    """Reverse derivatives with respect to all samples of a field, at little cost.

    In reverse, a loop adds an array as large as the field at every read. Here the loop
    only finds the cotangent of each stage and the place where the field was read; the
    samples get their share block by block. For fixed steps without diffusion; it has no
    forward mode. Derivatives are with respect to the arrays of the velocity itself, not
    those that a function in it encloses.

    Attributes:
        points: Places at which the field is read, stages of steps times particles,
            whose shares are added at once: more take more memory, about 500 bytes each.
    """

    points: int = eqx.field(
        static=True, default=200_000, converter=lambda x: whole(x, "points")
    )

    def check(self, problem):
        if not isinstance(problem.solver, AbstractRungeKutta):
            raise ArgumentError(
                "`adjoint` must be `Checkpointed()` with diffusion, but is "
                "`FieldAdjoint()`, which is for solvers such as `RK4()`."
            )
        if _encloses_traced_field(problem.motion):
            raise ArgumentError(
                "`velocity` must be the field itself, or fields in `Sum`, `Masked` and "
                "the like, with `FieldAdjoint()`, but is a function that encloses one "
                "whose derivative is wanted. Pass the field, or take `Checkpointed()`."
            )
        plain = not isinstance(problem.motion, WithVariables)
        if problem.walls and (problem.motion.second_order or not plain):
            raise ArgumentError(
                "`adjoint` must be `Checkpointed()` for particles with variables, or a "
                "velocity of their own, that meet walls, but is `FieldAdjoint()`."
            )

    def run(self, problem, seeds, release, numbers):
        return _shared((problem, seeds, release), numbers, self.points)


@eqx.filter_custom_vjp
def _shared(given, numbers, points: int):
    del points
    problem, seeds, release = given
    return _run(problem, seeds, release, numbers)


@_shared.def_fwd
def _forward(perturbed, given, numbers, points: int):
    del perturbed
    return _shared(given, numbers, points), None


@_shared.def_bwd
def _backward(kept, wanted, perturbed, given, numbers, points: int):
    """Goes back block by block; every block is made again from the state before it."""
    del kept, perturbed
    problem, seeds, release = given
    schedule, bare = problem.schedule, eqx.tree_at(lambda p: p.motion, problem, None)
    begin, enter_back = eqx.filter_vjp(
        lambda given: enter(given[0], given[1], given[2], numbers),
        (problem, seeds, release),
    )
    stages = len(problem.solver.b)
    size = _block_size(schedule.every, points // (stages * seeds.shape[0]))
    starts, share_of = _starts(problem, begin, size), _rows_at_ends(schedule, size)
    last_bar, rows_bar = wanted
    rows_bar = _zeros_for(rows_bar, jnp.zeros((schedule.times.size, *begin.y.shape)))

    def block(start, bare, nudges, first):
        whole = eqx.tree_at(lambda p: p.motion, bare, problem.motion, is_leaf=_is_none)
        turns = (first + jnp.arange(size, dtype=jnp.int32), nudges)
        step = lambda state, x: advance(whole, state, *x)  # noqa: E731
        return jax.lax.scan(jax.checkpoint(step), start, turns)  # pyright: ignore[reportPrivateImportUsage]

    def back(carry, turn):
        state_bar, bare_bar, motion_bar = carry
        start, first, row = turn
        share = jnp.where(row >= 0, rows_bar[row], 0)
        state_bar = eqx.tree_at(lambda s: s.y, state_bar, state_bar.y + share)
        nudges = jnp.zeros((size, stages, *begin.y.shape), begin.y.dtype)
        _, pull, asked = eqx.filter_vjp(
            lambda given: block(given[0], given[1], given[2], first),
            (start, bare, nudges),
            has_aux=True,
        )
        state_bar, more, shares = pull(state_bar)[0]
        motion_bar = _add(motion_bar, _shares(problem.motion, asked, shares))
        return (state_bar, _add(bare_bar, more), motion_bar), None

    carry = (
        _zeros_for(last_bar, begin),
        _zeros_for(None, bare),
        _zeros_for(None, problem.motion),
    )
    firsts = size * jnp.arange(share_of.size, dtype=jnp.int32)
    turns = (starts, firsts, share_of)
    carry, _ = jax.lax.scan(back, carry, turns, reverse=True)
    state_bar, bare_bar, motion_bar = carry
    state_bar = eqx.tree_at(lambda s: s.y, state_bar, state_bar.y + rows_bar[0])
    ((problem_bar, seeds_bar, release_bar),) = enter_back(state_bar)
    whole_bar = eqx.tree_at(lambda p: p.motion, bare_bar, motion_bar, is_leaf=_is_none)
    return _add(whole_bar, problem_bar), seeds_bar, release_bar


def _encloses_traced_field(motion: AbstractMotion) -> bool:
    """Whether there is a function with a field in its closure that is traced."""
    functions = [x for x in jax.tree.leaves(motion) if isinstance(x, FunctionType)]
    cells = [cell.cell_contents for f in functions for cell in f.__closure__ or ()]
    fields = [x for x in cells if isinstance(x, AbstractField)]
    return traced(fields)


def _is_none(x: Any) -> bool:
    return x is None


def _block_size(every: int, fitting: int) -> int:
    """Returns the largest divisor of `every` that fits."""
    return max(
        d for d in range(1, every + 1) if every % d == 0 and d <= max(fitting, 1)
    )


def _starts(problem: Problem, begin: Particles, size: int) -> Particles:
    """Returns the states before each block."""

    def block(state, first):
        numbers = first + jnp.arange(size, dtype=jnp.int32)
        step = lambda state, n: advance(problem, state, n)  # noqa: E731
        return jax.lax.scan(step, state, numbers)[0], state

    firsts = jnp.arange(0, problem.schedule.steps, size, dtype=jnp.int32)
    return jax.lax.scan(block, begin, firsts)[1]


def _rows_at_ends(schedule, size: int) -> Int[Array, " blocks"]:
    """Returns which recorded time each block ends at, -1 for none."""
    done = np.arange(size, schedule.steps + 1, size)
    records = done // schedule.every - 1
    wanted = np.arange(schedule.steps // schedule.every)
    wanted = wanted if schedule.rows is None else np.asarray(schedule.rows)
    place = {int(record): row + 1 for row, record in enumerate(wanted)}
    whole = done % schedule.every == 0
    rows = [
        place.get(int(r), -1) if w else -1 for r, w in zip(records, whole, strict=True)
    ]
    return jnp.asarray(rows, jnp.int32)


def _shares(motion: AbstractMotion, asked: PyTree, shares: Array) -> PyTree:
    """Returns what the derivatives at many places are worth to what makes them."""
    gridded = lambda x: isinstance(x, GriddedField)  # noqa: E731
    # One scatter for all samples of a place: each scatter goes through the whole array.
    at_once = jax.tree.map(
        lambda x: _reading_at_once(x) if gridded(x) else x, motion, is_leaf=gridded
    )
    dynamic, static = eqx.partition(at_once, eqx.is_inexact_array)

    def rates(dynamic):
        motion = eqx.combine(dynamic, static)
        rate = lambda t, y, memory: motion.rate(t, y, memory).value  # noqa: E731
        each = 0 if asked[0].ndim == 3 else None
        many = jax.vmap(rate, in_axes=(each, 0, 0))
        return jax.vmap(jax.vmap(many))(*asked)

    bar = jax.vjp(rates, dynamic)[1](shares)[0]
    like = eqx.filter(motion, eqx.is_inexact_array)
    return jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(bar))


def _reading_at_once(field: GriddedField) -> GriddedField:
    instants = field.instants
    return GriddedField(
        field.values,
        field.axes,
        instants.axis,
        method=field.method,
        time_method=instants.method,
        outside=field.outside,
        time_outside=instants.outside,
        at_once=True,
    )


def _zeros_for(bar: PyTree, like: PyTree) -> PyTree:
    """Returns cotangents, zeros where there are none."""
    zeros = jax.tree.map(jnp.zeros_like, eqx.filter(like, eqx.is_inexact_array))
    if bar is None:
        return zeros
    return jax.tree.map(
        lambda z, b: z if b is None else b, zeros, bar, is_leaf=_is_none
    )


def _add(total: PyTree, more: PyTree) -> PyTree:
    return jax.tree.map(
        lambda a, b: a if b is None else b if a is None else a + b,
        total,
        more,
        is_leaf=_is_none,
    )
