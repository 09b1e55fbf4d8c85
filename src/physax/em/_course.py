"""A linear run and the rule of its derivatives, whatever it keeps for reverse mode."""

from abc import abstractmethod
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.sharding import PartitionSpec

from .._recorded import Tape
from ..grid import Layout
from ._march import Decay, march, on_devices
from ._program import Program, one_by_one, ready
from ._state import State, rest, without_poles
from ._tape import chunk_of, parts_of_run, tape_cuts
from ._tape_plan import Plan, build_plan


class AbstractCourse(eqx.Module):
    """One run: the program without its arrays, and the ways to make its steps.

    Attributes:
        static: The program without its arrays.
        steps: How many steps.
        until: Stops early.
        adjoint: The constructor call of the adjoint, for messages.
    """

    static: eqx.AbstractVar[Program]
    steps: eqx.AbstractVar[int]
    until: eqx.AbstractVar[Decay | None]
    adjoint: eqx.AbstractVar[str]

    @abstractmethod
    def recorded(self, plan: Plan, draft: Program) -> tuple[State, Any]:
        """Makes the run, and keeps what `vjp` needs.

        Args:
            plan: What is differentiated.
            draft: The program, its design regions apart.

        Returns:
            The last state, and what is kept.
        """

    @abstractmethod
    def vjp(
        self, plan: Plan, draft: Program, theta: Program, kept: Any, cotangent: Any
    ) -> Program:
        """Returns the cotangents of what is differentiated: the backward pass.

        Args:
            plan: What is differentiated.
            draft: The program, its design regions apart.
            theta: Its differentiated arrays.
            kept: What `recorded` has kept.
            cotangent: Cotangents of the last fields and of the accumulators.

        Returns:
            The cotangents, arranged as `theta`.
        """

    def cells(self, layout: Layout) -> PartitionSpec:
        """Returns how a layout cuts what has a value for each cell."""
        return layout.spec(self.static.stepper.components.ndim)

    def differentiable(self, program: Program) -> State:
        """Makes the run from rest, with a rule for its derivatives."""
        marched = jax.custom_jvp(self.plain)
        marched.defjvp(self.tangents, symbolic_zeros=True)
        return marched(eqx.filter(program, eqx.is_array))

    def plain(self, arrays: Program, *, taped: bool = False) -> State:
        """Makes the run."""
        program = ready(eqx.combine(arrays, self.static))
        program = one_by_one(program) if taped else program
        run = partial(march, self.steps, self.until, taped=taped)
        return without_poles(on_devices(run, program, rest(program)))

    def tangents(self, primals, tangents):
        """The rule of `jax.custom_jvp`: tangents solve a linear recurrence.

        They are written as a linear solve whose transpose is known, so that JAX gets
        reverse mode from `vjp` and forward mode from `jax.jvp` of the run.
        """
        (arrays,), (dots,) = primals, tangents
        moved = jax.tree.map(
            lambda x, dot: _inexact(x) and not isinstance(dot, SymbolicZero),
            arrays,
            dots,
        )
        # Steps are made again with what is kept of them.
        draft = one_by_one(eqx.combine(arrays, self.static))
        plan = build_plan(draft, moved, self.adjoint)
        chosen = _of_plan(moved)
        theta, fixed = eqx.partition(arrays, chosen)
        dot = eqx.filter(dots, chosen)
        if not jax.tree.leaves(dot):
            # What is differentiated is not in the run, such as a missing component.
            state = self.plain(arrays)
            return state, jax.tree.map(_no_tangent, state)
        state, kept = self.recorded(plan, draft)
        state = without_poles(state)

        # Both are compiled apart so that they are traced once, however often the solver
        # asks for them.
        @jax.jit
        def jvp(theta, fixed, dot):
            def outputs(theta):
                last = self.plain(eqx.combine(theta, fixed), taped=True)
                return last.fields, last.monitors

            return jax.jvp(outputs, (theta,), (dot,))[1]

        vjp = jax.jit(partial(self.vjp, plan, draft))

        def apply_jvp(u, sign):
            m, dot = u
            more = jvp(theta, fixed, dot)
            return jax.tree.map(lambda m, more: m + sign * more, m, more), dot

        def apply_vjp(v, sign):
            m, ct = v
            more = vjp(theta, kept, m)
            return m, jax.tree.map(lambda ct, more: ct + sign * more, ct, more)

        # JAX would transpose the tangent map T itself, and keep all states for that; a
        # linear solve may state its transpose instead. With m = T dot, u = (m, dot)
        # solves a triangular system A u = b. The solver is given the symmetric map of
        # (u, v) to (A^T v, A u), so that its transpose takes A^T from `vjp`.
        def matrix(x):
            u, v = x
            return apply_vjp(v, -1), apply_jvp(u, -1)

        # The halves that are not needed are zero on the right-hand side.
        def solve(_, b):
            return apply_jvp(b[1], 1), b[0]

        def solve_transposed(_, b):
            return b[1], apply_vjp(b[0], 1)

        last = state.fields, state.monitors
        # The solver requires its whole right-hand side to be linear in the dots.
        nil = 0 * jnp.ravel(jax.tree.leaves(dot)[0])[0]
        zeros = jax.tree.map(lambda x: jnp.full(x.shape, nil, x.dtype), (last, dot))
        (((fields, monitors), _), _) = lax.custom_linear_solve(
            matrix, (zeros, (zeros[0], dot)), solve, solve_transposed, symmetric=True
        )
        blank = jax.tree.map(_no_tangent, state)
        return state, eqx.tree_at(
            lambda s: (s.fields, s.monitors), blank, (fields, monitors)
        )


class AbstractTapedCourse(AbstractCourse):
    """One run that keeps a tape, or states to make it again.

    Attributes:
        dtype: Type of the tape, `None` for that of the fields.
        every: Steps between the states that are kept in its place, `None` for none.
    """

    dtype: eqx.AbstractVar[Any]
    every: eqx.AbstractVar[int | None]

    @property
    def chunk(self) -> int:
        """Steps between two looks at the rule, or between two states that are kept."""
        return chunk_of(self.static, self.steps, self.until, self.every)

    @property
    def parts(self) -> tuple[int, int]:
        """Number of whole chunks, and of steps after them."""
        return parts_of_run(self.static, self.steps, self.until, self.chunk)

    def cuts(self, layout: Layout) -> Tape:
        """Returns how a layout cuts the tape."""
        return tape_cuts(
            layout,
            self.static,
            self.dtype,
            replay=self.every is not None,
            parts=self.parts,
            rule=self.until is not None,
        )


def everywhere(layout: Layout) -> PartitionSpec:
    """Returns how a layout cuts what each device has whole: not at all."""
    del layout
    return PartitionSpec()


def _inexact(x) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def _no_tangent(x):
    return jnp.zeros_like(x) if _inexact(x) else np.zeros(x.shape, jax.dtypes.float0)


def _of_plan(moved: Program) -> Program:
    """Keeps the marks of what the backward pass differentiates."""
    nothing = jax.tree.map(lambda _: False, moved)

    def where(p):
        parts = p.stepper.rows, p.patches, p.responses, p.tilts
        return *parts, p.electric, p.magnetic, p.lines

    return eqx.tree_at(where, nothing, where(moved))
