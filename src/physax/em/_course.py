"""A linear run and the rule of its derivatives, whatever the way back keeps of it."""

from abc import abstractmethod
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from ._march import Decay, march, on_devices
from ._program import Program, ready
from ._state import State, rest
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
        """Makes the run, and keeps what `pulled` needs.

        Args:
            plan: What is differentiated.
            draft: The program, its design regions apart.

        Returns:
            The last state, and what is kept.
        """

    @abstractmethod
    def pulled(
        self, plan: Plan, draft: Program, theta: Program, kept: Any, cotangent: Any
    ) -> Program:
        """Returns the cotangents of what is differentiated.

        Args:
            plan: What is differentiated.
            draft: The program, its design regions apart.
            theta: Its differentiated arrays.
            kept: What `recorded` has kept.
            cotangent: Cotangents of the last fields and of the accumulators.

        Returns:
            The cotangents, arranged as `theta`.
        """

    def differentiable(self, program: Program) -> State:
        """Makes the run from rest, with a rule for its derivatives."""
        marched = jax.custom_jvp(self.plain)
        marched.defjvp(self.tangents, symbolic_zeros=True)
        return marched(eqx.filter(program, eqx.is_array))

    def plain(self, arrays: Program, *, taped: bool = False) -> State:
        """Makes the run."""
        program = ready(eqx.combine(arrays, self.static))
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
        plan = build_plan(draft, moved, self.adjoint)
        chosen = _of_plan(moved)
        theta, fixed = eqx.partition(arrays, chosen)
        dot = eqx.filter(dots, chosen)
        state, kept = self.recorded(plan, draft)

        # Compiled apart so that it is traced once: the solver asks for it three times.
        @jax.jit
        def pushed(theta, fixed, dot):
            def outputs(theta):
                last = self.plain(eqx.combine(theta, fixed), taped=True)
                return last.fields, last.monitors

            return jax.jvp(outputs, (theta,), (dot,))[1]

        # The tangents m of the outputs are T applied to those of theta: one block row
        # of a triangular system, whose transpose we know how to solve.
        def matrix(x):
            m, dot = x
            return jax.tree.map(jnp.subtract, m, pushed(theta, fixed, dot)), dot

        def solve(matrix, x):
            # By the matrix itself, with the sign of m turned before and after.
            m, dot = matrix((jax.tree.map(jnp.negative, x[0]), x[1]))
            return jax.tree.map(jnp.negative, m), dot

        def solve_transposed(_, x):
            m, ct = x
            more = self.pulled(plan, draft, theta, kept, m)
            return m, jax.tree.map(jnp.add, ct, more)

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


def _inexact(x) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def _no_tangent(x):
    return jnp.zeros_like(x) if _inexact(x) else np.zeros(x.shape, jax.dtypes.float0)


def _of_plan(moved: Program) -> Program:
    """Keeps the marks of what the way back differentiates."""
    nothing = jax.tree.map(lambda _: False, moved)

    def where(p):
        return p.stepper.rows, p.patches, p.electric, p.magnetic, p.lines

    return eqx.tree_at(where, nothing, where(moved))
