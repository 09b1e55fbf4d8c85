"""Reverse mode by a tape of the cells that are differentiated."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.sharding import PartitionSpec

from .._checks import ArgumentError
from .._loop import Tape, parts_of
from ..grid import Layout
from ._adjoints import AbstractAdjoint
from ._cotangents import back_march, start_back
from ._march import Decay, each_device, march, on_devices, own_all, summed
from ._program import Program, ready
from ._scattered import scattered
from ._state import State, rest
from ._tape import tape_cuts, taped_march
from ._tape_plan import Plan, build_plan


TYPES = ("float64", "float32", "bfloat16")


class LinearTape(AbstractAdjoint):
    r"""Keeps the changes of the differentiated cells, and steps the transpose back.

    A run is linear in its fields, $u_{n+1} = A(\theta) u_n + s_n$, so that cotangents
    go back by $A^T$ alone; $u_n$ is needed only where $\theta$ enters, and there only
    the change of the field over a step. Exact to rounding, with layers, losses, Bloch
    faces and every linear monitor, for derivatives by media and sources; first
    derivatives in either mode, and forward over reverse.

    Attributes:
        dtype: Type of the tape, `"float64"`, `"float32"` or `"bfloat16"`; that of the
            fields if `None`. bfloat16 halves the memory and changes a gradient by some
            1e-3.
        every: Keep the whole state every so many steps instead of a tape of all, and
            make the tape of each chunk again on the way back: less memory for one more
            forward run. `None` keeps it all.

    Raises:
        ArgumentError: If the type is unknown or `every` not positive.
    """

    dtype: str | None = eqx.field(static=True, default=None)
    every: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.dtype not in (None, *TYPES):
            raise ArgumentError(
                f"`dtype` of a tape must be one of {TYPES}, but is {self.dtype!r}."
            )
        if self.every is not None and self.every < 1:
            raise ArgumentError(f"`every` must be at least 1, but is {self.every}.")

    def march(self, program: Program, steps: int, until: Decay | None) -> State:
        arrays, static = eqx.partition(program, eqx.is_array)
        dtype = None if self.dtype is None else jnp.dtype(self.dtype)
        course = _Course(static, steps, until, dtype, self.every)
        marched = jax.custom_jvp(course.plain)
        marched.defjvp(course.tangents, symbolic_zeros=True)
        return marched(arrays)


def _inexact(x) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


class _Course(eqx.Module):
    """One run: the program without its arrays, and the ways to make its steps."""

    static: Program
    steps: int = eqx.field(static=True)
    until: Decay | None = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)
    every: int | None = eqx.field(static=True)

    @property
    def replay(self) -> bool:
        return self.every is not None

    @property
    def chunk(self) -> int:
        """Steps between looks at the energy, or at most those kept at a time."""
        if self.until is not None:
            return self.until.check_every
        return self.every or self.static.watch or self.steps

    @property
    def rest(self) -> int:
        """Steps after the last whole chunk."""
        looks = self.until is not None or self.static.watch is not None
        return parts_of(self.steps, self.chunk, plain=not looks)[1]

    def whole(self, arrays) -> Program:
        """Returns the program, ready to step."""
        return ready(eqx.combine(arrays, self.static))

    def plain(self, arrays, *, taped: bool = False) -> State:
        """Makes the run."""
        program = self.whole(arrays)
        run = partial(march, self.steps, self.until, taped=taped)
        return on_devices(run, program, rest(program))

    def tangents(self, primals, tangents):
        """The rule: what changes solves a linear recurrence."""
        (arrays,), (dots,) = primals, tangents
        moved = jax.tree.map(
            lambda x, dot: _inexact(x) and not isinstance(dot, SymbolicZero),
            arrays,
            dots,
        )
        draft = eqx.combine(arrays, self.static)
        plan = build_plan(draft, moved)
        chosen = _of_plan(moved)
        theta, fixed = eqx.partition(arrays, chosen)
        dot = eqx.filter(dots, chosen)
        state, tape = self.recorded(plan, arrays)

        # Compiled apart so that it is traced once: the solver asks for it three times.
        @jax.jit
        def pushed(theta, fixed, dot):
            def outputs(theta):
                last = self.plain(eqx.combine(theta, fixed), taped=True)
                return last.fields, last.monitors

            return jax.jvp(outputs, (theta,), (dot,))[1]

        forward = partial(pushed, theta, fixed)

        # The tangents m of the outputs are T applied to those of theta: one block row
        # of a triangular system, whose transpose we know how to solve from the tape.
        def matrix(x):
            m, dot = x
            return jax.tree.map(jnp.subtract, m, forward(dot)), dot

        def solve(matrix, x):
            # By the matrix itself: T, which takes long to trace, is traced once.
            m, dot = matrix((jax.tree.map(jnp.negative, x[0]), x[1]))
            return jax.tree.map(jnp.negative, m), dot

        def solve_transposed(_, x):
            m, ct = x
            return m, jax.tree.map(
                jnp.add, ct, self.pulled(plan, draft, theta, tape, m)
            )

        last = state.fields, state.monitors
        # The rule of the solver wants all of its right side to be linear in the dots.
        nil = 0 * jnp.ravel(jax.tree.leaves(dot)[0])[0]
        right = jax.tree.map(lambda x: jnp.full(x.shape, nil, x.dtype), last), dot
        (fields, monitors), _ = lax.custom_linear_solve(
            matrix, right, solve, solve_transposed
        )
        blank = jax.tree.map(_no_tangent, state)
        return state, eqx.tree_at(
            lambda s: (s.fields, s.monitors), blank, (fields, monitors)
        )

    def _cuts(self, layout: Layout):
        narrow = self.dtype is not None and self.dtype != jnp.dtype(self.static.dtype)
        packed = narrow and jnp.issubdtype(self.static.dtype, jnp.complexfloating)
        ndim = self.static.stepper.components.ndim
        return tape_cuts(
            layout,
            ndim,
            extra=int(packed),
            replay=self.replay,
            rest=self.rest > 0,
            rule=self.until is not None,
        )

    def recorded(self, plan: Plan, arrays) -> tuple[State, Tape]:
        """Makes the run and keeps a tape."""
        program = self.whole(arrays)
        run = partial(
            taped_march,
            self.steps,
            self.until,
            self.chunk,
            plan,
            self.dtype,
            replay=self.replay,
        )
        return on_devices(run, program, rest(program), self._cuts)

    def pulled(self, plan: Plan, draft: Program, theta: Program, tape: Tape, ct):
        """Returns the cotangents of what is differentiated."""
        program = ready(draft)
        fields, monitors = ct
        psi = jax.tree.map(jnp.zeros_like, rest(program).psi)
        ndim = program.stepper.components.ndim

        def run(program, tape, fields, psi, monitors):
            carry = start_back(plan, program, fields, psi, monitors)
            carry = own_all(carry, program.layout)
            carry = back_march(
                self.steps,
                self.chunk,
                plan,
                self.dtype,
                program,
                tape,
                carry,
                replay=self.replay,
            )
            currents = carry.electric, carry.magnetic, carry.waves
            return carry.rows, summed(currents, program.layout)

        def cells(layout):
            return layout.spec(ndim)

        def everywhere(_):
            return PartitionSpec()

        sums = each_device(
            run,
            program,
            (tape, fields, psi, monitors),
            (self._cuts, cells, cells, everywhere),
            lambda layout: (cells(layout), everywhere(layout)),
        )
        rows, currents = sums
        return scattered(plan, draft, theta, rows, currents)


def _no_tangent(x):
    return jnp.zeros_like(x) if _inexact(x) else np.zeros(x.shape, jax.dtypes.float0)


def _of_plan(moved: Program) -> Program:
    """Keeps the marks of what a tape differentiates."""
    nothing = jax.tree.map(lambda _: False, moved)

    def where(p):
        return p.stepper.rows, p.patches, p.electric, p.magnetic, p.lines

    return eqx.tree_at(where, nothing, where(moved))
