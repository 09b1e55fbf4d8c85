"""The backward pass: cotangents step by step."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

from .._recorded import Tape, rewind
from ._clock import Clock
from ._cotangents import (
    Before,
    Cotangents,
    currents_back,
    lines_back,
    poles_back,
)
from ._injection import read_row
from ._program import Program
from ._stepper import Arrays, Stepper
from ._tape import TILTS, again, kept_cells, unpacked
from ._tape_plan import Plan
from ._tilt_back import tilts_back
from ._transpose import transposed_half_step


Gather = Callable[[dict, dict, Int[Array, ""]], dict]
"""Takes sums, the cotangents of kept cells, and the number of a step to new sums."""


def _none_asked(name: str, at: int) -> Array:
    raise AssertionError(f"the field of {name} in box {at} is not kept")


def step_back(
    program: Program,
    plan: Plan,
    gather: Gather,
    carry: Cotangents,
    lines: dict[str, Any],
    n: Int[Array, ""],
    window: Callable[[Array], Array] | None = None,
    before: Before = _none_asked,
    diagonal_changes: list[Arrays] | None = None,
) -> Cotangents:
    """Carries cotangents back through one step, and through the reading of E before.

    At the start the cotangents of E are complete, those of H lack what the monitors
    read after this step.

    Args:
        program: The program.
        plan: What is differentiated.
        gather: Adds what the kept cells of some components give to the sums.
        carry: The cotangents after the step.
        lines: The incident waves before it.
        n: Number of the step.
        window: A factor of the monitors' cotangents, by number of the step.
        before: The kept fields before the step; for poles that are differentiated.
        diagonal_changes: The changes that tilts read, where the plan needs them.

    Returns:
        The cotangents before it.
    """

    def move(k, carry):
        return _move_back(
            program, plan, gather, before, diagonal_changes or [], lines, carry, k
        )

    # A loop of one turn, for the reason that `step` gives.
    carry = lax.fori_loop(n, n + 1, move, carry)
    # After step 0 nothing reads the fields any more: the step before it does no harm.
    return enter_back(program, plan, carry, n - 1, window)


def _move_back(
    program: Program,
    plan: Plan,
    gather: Gather,
    before: Before,
    diagonal_changes: list[Arrays],
    lines: dict,
    carry: Cotangents,
    n,
) -> Cotangents:
    """Carries cotangents back through the fields, layers and waves of one step."""
    stepper = eqx.tree_at(
        lambda s: s.block, program.stepper, program.stepper.block.within(n).mirrored()
    )
    dt = program.setup.dt
    middle = _middle_lines(program, plan, lines, n)
    for electric, clock, waves in (
        (True, Clock(2 * n + 1, dt), middle),
        (False, Clock(2 * n, dt), lines),
    ):
        parts = stepper.components
        names = parts.electric if electric else parts.magnetic
        if not electric:
            carry = _read_back(program, stepper, carry, carry.samples)
        taken = []
        if electric and program.tilts:
            carry, taken = tilts_back(program, stepper, plan, carry, diagonal_changes)
        sums = gather(carry.rows, _kept_cells(plan, carry, names), n)
        carry = eqx.tree_at(lambda c: c.rows, carry, sums)
        carry = currents_back(program, plan, carry, clock, electric=electric)
        carry = lines_back(program, plan, carry, waves, clock, electric=electric)
        given = {}
        if electric:
            carry, given = poles_back(program, plan, carry, before)
        fields, psi = transposed_half_step(
            stepper, carry.fields, carry.psi, electric=electric
        )
        for name in names:
            fields[name] = stepper.rows[name].kept(fields[name])
            for box, more in given.get(name, ()):
                more = stepper.rows[name].drive(more, box)
                fields[name] = stepper.block.add_here(fields[name], box, more)
        for box, found in taken:
            for name, less in found.items():
                fields[name] = stepper.block.add_here(fields[name], box, -less)
        fields, psi = lax.optimization_barrier((fields, psi))
        carry = eqx.tree_at(lambda c: (c.fields, c.psi), carry, (fields, psi))
    return carry


def enter_back(
    program: Program, plan: Plan, carry: Cotangents, n, window=None
) -> Cotangents:
    """Carries cotangents back through the monitors after a step, as far as E goes."""
    totals, samples = {}, {}
    block = program.stepper.block
    for name, monitor in program.monitors.items():

        def update(total, values, monitor=monitor, name=name):
            return monitor.update(total, lambda: values, n, program.sampling[name])

        # A linear function: where its derivative is taken does not matter.
        anywhere = {
            read.key: block.read(carry.fields[read.component], read.box)
            for read in program.reads[name]
        }
        total = carry.monitors[name]
        totals[name], found = jax.vjp(update, total, anywhere)[1](total)
        factor = 1 if window is None else window(n)
        samples[name] = {key: factor * value for key, value in found.items()}
    later = {
        name: {key: samples[name][key] for key in found}
        for name, found in carry.samples.items()
    }
    carry = eqx.tree_at(lambda c: (c.monitors, c.samples), carry, (totals, later))
    now = {
        name: {key: v for key, v in found.items() if key not in later[name]}
        for name, found in samples.items()
    }
    stepper = eqx.tree_at(
        lambda s: s.block, program.stepper, program.stepper.block.within(n + 1)
    )

    def read(fields):
        here = eqx.tree_at(lambda c: c.fields, carry, fields)
        return _read_back(program, stepper, here, now).fields

    # Otherwise the kept cells would be read from the old fields, and these copied.
    fields = stepper.block.once(read, carry.fields)
    carry = eqx.tree_at(lambda c: c.fields, carry, fields)
    seen = kept_cells(plan, {name: carry.fields[name] for name in carry.seen})
    return eqx.tree_at(lambda c: c.seen, carry, seen)


def _read_back(
    program: Program, stepper: Stepper, carry: Cotangents, samples: dict
) -> Cotangents:
    """Adds the cotangents of samples to those of the fields."""
    fields = dict(carry.fields)
    for name, reads in program.reads.items():
        for key, component, box, *_ in reads:
            if key not in samples[name]:
                continue
            field, block = fields[component], stepper.block
            row = read_row(stepper.rows[component], block.read, box)
            more = row.drive(samples[name][key].astype(field.dtype))
            fields[component] = block.add(field, box, more)
    return eqx.tree_at(lambda c: c.fields, carry, fields)


def _kept_cells(plan: Plan, carry: Cotangents, names) -> dict[str, tuple[Array, ...]]:
    """Returns the cotangents of the kept cells of some components."""
    found = {**kept_cells(plan, {n: carry.fields[n] for n in names}), **carry.seen}
    return {name: found[name] for name in names if name in plan.rows}


def multiplied(records: dict, dtype, sums: dict, found: dict, n) -> dict:
    """Adds to the sums for the rows: the larger an entry, the less a curl drives."""
    del n
    sums = dict(sums)
    for name, parts in found.items():
        groups = zip(sums[name], parts, records[name], strict=True)
        sums[name] = tuple(
            tuple(
                total - jnp.real(cells * unpacked(value, dtype, cells.dtype))
                for total, value in zip(totals, values, strict=True)
            )
            for totals, cells, values in groups
        )
    return sums


def _middle_lines(program: Program, plan: Plan, lines: dict, n) -> dict:
    """Returns the incident waves between the two halves of a step."""
    now = Clock(2 * n, program.setup.dt)
    return {
        name: program.lines[name].advance(lines[name], now, electric=False)
        for name in plan.lines
    }


def back_march(
    steps: int,
    every: int,
    plan: Plan,
    dtype,
    program: Program,
    tape: Tape,
    carry: Cotangents,
    *,
    parts: tuple[int, int],
    replay: bool,
) -> Cotangents:
    """Carries cotangents back through all steps on the block of one device."""

    def back(carry, kept, n):
        records, lines = kept
        gather = partial(multiplied, records, dtype)

        def before(name, at):
            change, total = (
                unpacked(value, dtype, jnp.dtype(program.dtype))
                for value in records[name][at]
            )
            return (total - change) / 2

        kind = jnp.dtype(program.dtype)
        diagonal_changes = jax.tree.map(
            lambda x: unpacked(x, dtype, kind), records[TILTS]
        )
        return step_back(
            program,
            plan,
            gather,
            carry,
            lines,
            n,
            before=before,
            diagonal_changes=diagonal_changes,
        )

    remake = partial(again, program, plan, dtype) if replay else None
    enter = partial(enter_back, program, plan)
    return rewind(
        back, carry, tape, steps, every, parts=parts, enter=enter, step=remake
    )
