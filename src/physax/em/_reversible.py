"""Reverse mode by letting time run backward."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from .._checks import ArgumentError, check
from .._recorded import rewind
from ..grid import AXES
from ..units import SPEED_OF_LIGHT
from ._adjoints import AbstractAdjoint, refuse_powers
from ._backward_pass import enter_back, multiplied, step_back
from ._boundaries import absorbing_axes
from ._cotangents import start_back
from ._course import AbstractTapedCourse, everywhere
from ._march import Decay, each_device, on_devices, own_all, summed
from ._program import Program, ready
from ._row import Row, build_row
from ._scattered import scattered
from ._simulation import Simulation
from ._state import State, rest, step
from ._tape import (
    changes,
    check_type,
    kept_cells,
    packed,
    taped_march,
    unpacked,
)
from ._tape_plan import Plan
from ._unstep import interior, planes_of, reversed_program, seen_planes, unstep


# The backward pass may amplify rounding by so much.
LARGEST = 1e5


class Reversible(AbstractAdjoint):
    r"""Runs time backward, and records only what the layers absorb in each step.

    Outside the absorbing layers a step can be undone. The fields of the differentiated
    cells come from there instead of from a tape, so that memory grows with the faces of
    the interior and not with the design. Exact to rounding, which losses amplify by
    $\exp(\sigma t / \epsilon)$ in the backward pass. Derivatives by media outside the
    layers and by sources. Reference: Tang and others, *Time reversal differentiation of
    FDTD for photonic inverse design*, ACS Photonics 10, 4140 (2023).

    Attributes:
        record: Type in which the faces are kept, `"float64"`, `"float32"` or
            `"bfloat16"`; that of the fields if `None`. bfloat16 changes a gradient by
            some 1e-2: its rounding adds up in the backward pass.

    Raises:
        ArgumentError: If the type is unknown.
    """

    record: str | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_type(self.record, "record")

    def prepared(self, sim: Simulation) -> "Reversible":
        refuse_powers(sim, "Reversible()")
        if sim.medium.dispersions:
            raise ArgumentError(
                "`adjoint=Reversible()` cannot undo the poles of a dispersive medium, "
                "but the simulation has one. Take `adjoint=LinearTape()`."
            )
        for axis in absorbing_axes(sim.boundaries, sim.grid.ndim):
            raise ArgumentError(
                "`adjoint=Reversible()` cannot undo what an `Absorber` absorbs, but "
                f"`boundaries` have one along {sim.components.axes[axis]}. Take "
                "`adjoint=LinearTape()`, or a `CPML`."
            )
        if sim.medium.off_diagonals:
            raise ArgumentError(
                "`adjoint=Reversible()` cannot undo the coupling by a full "
                "permittivity tensor, but the medium has off-diagonal entries. Take "
                "`adjoint=LinearTape()`."
            )
        factor = lax.stop_gradient(amplification(sim))
        check(
            factor,
            factor <= LARGEST,
            "`adjoint=Reversible()` needs losses that amplify rounding at most "
            f"{LARGEST:g} times in the backward pass (take `LinearTape()` instead): "
            "the factor must be below it",
        )
        return self

    def review(self, residual) -> None:
        del residual

    def march(self, program: Program, steps: int, until: Decay | None) -> State:
        static = eqx.filter(program, eqx.is_array, inverse=True)
        dtype = None if self.record is None else jnp.dtype(self.record)
        return _Course(static, steps, until, "Reversible()", dtype).differentiable(
            program
        )


def amplification(sim: Simulation) -> Array:
    """Returns by how much undoing all steps may amplify rounding, in the worst cell."""
    medium = sim.medium.merged(sim.grid.shape)
    names = sim.components.names
    length = SPEED_OF_LIGHT * sim.dt
    return _growth([build_row(medium, name, length) for name in names], sim.steps)


def _growth(rows: Iterable[Row], steps: int) -> Array:
    most = jnp.zeros(())
    for row in rows:
        if row.loss is None:
            continue
        m, s = row.inertia, row.loss
        # A cell that forgets its field in one step cannot be undone at all.
        ratio = jnp.where(m > s, (m + s) / jnp.where(m > s, m - s, 1), jnp.inf)
        most = jnp.maximum(most, jnp.max(jnp.log(ratio)).astype(most.dtype))
    return jnp.exp(steps * most)


class _Course(AbstractTapedCourse):
    static: Program
    steps: int = eqx.field(static=True)
    until: Decay | None = eqx.field(static=True)
    adjoint: str = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)
    # It keeps no states.
    every: None = eqx.field(static=True, default=None)

    def recorded(self, plan: Plan, draft: Program) -> tuple[State, Any]:
        _check_cells(draft, plan, self.adjoint)
        program = ready(draft)

        def run(program, state):
            planes = planes_of(program)
            see = partial(seen_planes, program, planes)

            def one(carry, n):
                state, before = carry
                lines = state.lines
                state = step(program, state, n)
                seen = before, see(state.fields, electric=False)
                seen = jax.tree.map(lambda x: packed(x, self.dtype), seen)
                return (state, see(state.fields, electric=True)), (seen, lines)

            start = state, see(state.fields, electric=True)
            return taped_march(self.steps, self.until, self.chunk, program, one, start)

        state, tape = on_devices(run, program, rest(program), self.cuts)
        return state, (tape, state.fields)

    def vjp(self, plan, draft, theta, kept, cotangent) -> Program:
        program = ready(draft)
        tape, last = kept
        fields, monitors = cotangent
        psi = jax.tree.map(jnp.zeros_like, rest(program).psi)

        def run(program, tape, last, fields, psi, monitors):
            back = partial(self.back, program, plan)
            start = start_back(plan, program, fields, psi, monitors), last
            carry, _ = rewind(
                back,
                own_all(start, program.layout),
                tape,
                self.steps,
                self.chunk,
                parts=self.parts,
                enter=lambda c, n: (enter_back(program, plan, c[0], n), c[1]),
            )
            currents = carry.electric, carry.magnetic, carry.waves
            cells = carry.cells
            return cells, summed(currents, program.layout)

        sums = each_device(
            run,
            program,
            (tape, last, fields, psi, monitors),
            (self.cuts, self.cells, self.cells, self.cells, everywhere),
            lambda layout: (self.cells(layout), everywhere(layout)),
        )
        # Under `jit` nothing could be raised before the run.
        growth = _growth(program.stepper.rows.values(), self.steps)
        sound = jnp.where(growth <= LARGEST, 1, jnp.nan)
        sums = jax.tree.map(lambda x: x * sound.astype(x.dtype), sums)
        return scattered(plan, draft, theta, *sums)

    def back(self, program: Program, plan: Plan, carry, kept, n):
        """Goes back by one step with fields and cotangents."""
        cotangents, after = carry
        seen, lines = kept
        kind = jnp.dtype(program.dtype)
        seen = jax.tree.map(lambda x: unpacked(x, self.dtype, kind), seen)
        undo = reversed_program(program)
        before = unstep(undo, planes_of(program), after, seen, lines, n)
        made = changes(plan, kept_cells(plan, before), kept_cells(plan, after))
        gather = partial(multiplied, made, None)
        lines = {name: lines[name] for name in plan.lines}
        cotangents = step_back(program, plan, gather, cotangents, lines, n)
        return cotangents, before


def _check_cells(draft: Program, plan: Plan, adjoint: str) -> None:
    """Refuses cells in a layer, where time cannot run backward."""
    if all(a.low is None and a.high is None for a in draft.stepper.axes):
        return
    inner = interior(draft)
    for name, kept in plan.rows.items():
        for box in (one.cells for one in kept):
            if box is None:
                raise ArgumentError(
                    f"`adjoint={adjoint}` cannot differentiate cells inside an "
                    "absorbing layer, where time cannot run backward, but the row of "
                    f"{name} is differentiated everywhere. Make what changes a "
                    "`DesignRegion` outside the layers, or take "
                    "`adjoint=LinearTape()`."
                )
            for axis, (low, high), (first, last) in zip(AXES, box, inner, strict=False):
                if low < first or high > last:
                    raise ArgumentError(
                        f"`adjoint={adjoint}` cannot differentiate cells inside an "
                        "absorbing layer, where time cannot run backward, but a region "
                        f"spans the cells {low} to {high} along {axis}, and the layers "
                        f"end at {first} and {last}. Move it, or take "
                        "`adjoint=LinearTape()`."
                    )
