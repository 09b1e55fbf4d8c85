"""Reverse mode by a tape of the cells that are differentiated."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._recorded import Tape
from ._adjoints import AbstractAdjoint, refuse_powers
from ._backward_pass import back_march
from ._cotangents import start_back
from ._course import AbstractTapedCourse, everywhere
from ._march import Decay, each_device, on_devices, own_all, summed
from ._program import Program, ready
from ._scattered import scattered
from ._simulation import Simulation
from ._state import State, rest
from ._tape import (
    check_every,
    check_type,
    kept_cells,
    recorded_step,
    restart,
    taped_march,
)
from ._tape_plan import Plan


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
            make the tape of each chunk again in the backward pass: less memory for one
            more forward run. `None` keeps it all. The energy is looked at as often, so
            take a few dozen looks at least where `residual` matters. With a stop rule
            its `check_every` takes the place of this number.

    Raises:
        ArgumentError: If the type is unknown or `every` not positive.
    """

    dtype: str | None = eqx.field(static=True, default=None)
    every: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_type(self.dtype, "dtype")
        check_every(self.every)

    def prepared(self, sim: Simulation) -> "LinearTape":
        refuse_powers(sim, "LinearTape()")
        return self

    def review(self, residual) -> None:
        del residual

    def march(self, program: Program, steps: int, until: Decay | None) -> State:
        static = eqx.filter(program, eqx.is_array, inverse=True)
        dtype = None if self.dtype is None else jnp.dtype(self.dtype)
        course = _Course(static, steps, until, "LinearTape()", dtype, self.every)
        return course.differentiable(program)


class _Course(AbstractTapedCourse):
    static: Program
    steps: int = eqx.field(static=True)
    until: Decay | None = eqx.field(static=True)
    adjoint: str = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)
    every: int | None = eqx.field(static=True)

    def recorded(self, plan: Plan, draft: Program) -> tuple[State, Tape]:
        program = ready(draft)

        def run(program, state):
            return taped_march(
                self.steps,
                self.until,
                self.chunk,
                program,
                partial(recorded_step, program, plan, self.dtype),
                (state, kept_cells(plan, state.fields)),
                keep=restart if self.every is not None else None,
            )

        return on_devices(run, program, rest(program), self.cuts)

    def vjp(self, plan, draft, theta, kept, cotangent) -> Program:
        program = ready(draft)
        fields, monitors = cotangent
        psi = jax.tree.map(jnp.zeros_like, rest(program).psi)

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
                parts=self.parts,
                replay=self.every is not None,
            )
            currents = carry.electric, carry.magnetic, carry.waves
            cells = carry.cells
            return cells, summed(currents, program.layout)

        sums = each_device(
            run,
            program,
            (kept, fields, psi, monitors),
            (self.cuts, self.cells, self.cells, everywhere),
            lambda layout: (self.cells(layout), everywhere(layout)),
        )
        return scattered(plan, draft, theta, *sums)
