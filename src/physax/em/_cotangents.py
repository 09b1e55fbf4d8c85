"""The way back: cotangents step by step."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

from .._loop import Tape, rewind
from ..grid import Box
from ._clock import Clock
from ._injection import Injection, read_row
from ._medium import cells_of
from ._program import Program
from ._step import Arrays, Stepper
from ._tape import again, noted, unpacked
from ._tape_plan import Plan
from ._transpose import transposed_half_step


Gather = Callable[[dict, dict, Int[Array, ""]], dict]
"""Takes sums, the cotangents of kept cells, and the number of a step to new sums."""


class Cotangents(eqx.Module):
    """The carry of the way back.

    Attributes:
        fields: Cotangents of the components, divided by `m + s` of their rows.
        psi: Those of the memory of the layers.
        lines: Those of the incident waves that are differentiated.
        monitors: Those of the accumulators.
        samples: Those of what the monitors read of H at the end of the next step back.
        seen: Those of the kept electric cells.
        rows: Sums for the entries of the rows, arranged as the plan.
        electric: Sums for the electric currents, by number.
        magnetic: Sums for the magnetic ones.
        waves: Sums for the incident waves, by name.
    """

    fields: Arrays
    psi: Arrays
    lines: dict[str, Any]
    monitors: dict[str, Any]
    samples: dict[str, dict[str, Array]]
    seen: dict[str, tuple[Array, ...]]
    rows: dict[str, tuple]
    electric: dict[int, Any]
    magnetic: dict[int, Any]
    waves: dict[str, Any]


def _float_zeros(tree):
    return jax.tree.map(jnp.zeros_like, eqx.filter(tree, eqx.is_inexact_array))


def start_back(
    plan: Plan, program: Program, fields: Arrays, psi: Arrays, monitors: dict
) -> Cotangents:
    """Returns the carry after the last step, given the cotangents of the last state."""
    rows = {}
    for name, kept in plan.rows.items():
        field = fields[name]
        blank = [jnp.zeros_like(jnp.real(field[cells_of(k.box)])) for k in kept]
        rows[name] = tuple(
            tuple(z for asked in (k.change, k.sum) if asked)
            for k, z in zip(kept, blank, strict=True)
        )
    stepper = program.stepper
    return Cotangents(
        {name: stepper.rows[name].drive(ct) for name, ct in fields.items()},
        psi,
        {
            name: _float_zeros(program.lines[name].rest(program.dtype))
            for name in plan.lines
        },
        monitors,
        {
            name: {
                read.key: jnp.zeros(_size(read.box), program.dtype)
                for read in reads
                if read.component[0] == "H"
            }
            for name, reads in program.reads.items()
        },
        noted(plan, {n: f for n, f in fields.items() if n[0] == "E"}),
        rows,
        {i: _float_zeros(program.electric[i]) for i in plan.electric},
        {i: _float_zeros(program.magnetic[i]) for i in plan.magnetic},
        {name: _float_zeros(program.lines[name]) for name in plan.lines},
    )


def _size(box: Box) -> tuple[int, ...]:
    return tuple(high - low for low, high in box)


def step_back(
    program: Program,
    plan: Plan,
    gather: Gather,
    carry: Cotangents,
    lines: dict[str, Any],
    n: Int[Array, ""],
    window: Callable[[Array], Array] | None = None,
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

    Returns:
        The cotangents before it.
    """

    def move(k, carry):
        return _move_back(program, plan, gather, lines, carry, k)

    # A loop of one turn, for the reason that `step` gives.
    carry = lax.fori_loop(n, n + 1, move, carry)
    # After step 0 nobody reads the fields any more: the step before it does no harm.
    return enter_back(program, plan, carry, n - 1, window)


def _move_back(
    program: Program, plan: Plan, gather: Gather, lines: dict, carry: Cotangents, n
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
        sums = gather(carry.rows, _kept_cells(plan, carry, names), n)
        carry = eqx.tree_at(lambda c: c.rows, carry, sums)
        carry = _currents_back(program, plan, carry, clock, electric=electric)
        carry = _lines_back(program, plan, carry, waves, clock, electric=electric)
        fields, psi = transposed_half_step(
            stepper, carry.fields, carry.psi, electric=electric
        )
        for name in names:
            fields[name] = stepper.rows[name].kept(fields[name])
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

    # Else the kept cells would be read from the fields before, and these copied.
    fields = stepper.block.once(read, carry.fields)
    carry = eqx.tree_at(lambda c: c.fields, carry, fields)
    seen = noted(plan, {name: carry.fields[name] for name in carry.seen})
    return eqx.tree_at(lambda c: c.seen, carry, seen)


def _read_back(
    program: Program, stepper: Stepper, carry: Cotangents, samples: dict
) -> Cotangents:
    """Adds the cotangents of samples to those of the fields."""
    fields = dict(carry.fields)
    for name, reads in program.reads.items():
        for key, component, box in reads:
            if key not in samples[name]:
                continue
            field, block = fields[component], stepper.block
            row = read_row(stepper.rows[component], block, box)
            more = row.drive(samples[name][key].astype(field.dtype))
            fields[component] = block.add(field, box, more)
    return eqx.tree_at(lambda c: c.fields, carry, fields)


def _kept_cells(plan: Plan, carry: Cotangents, names) -> dict[str, tuple[Array, ...]]:
    """Returns the cotangents of the kept cells of some components."""
    found = {**noted(plan, {n: carry.fields[n] for n in names}), **carry.seen}
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


def pull(function, primal, cotangent):
    """Pulls a cotangent back to the inexact arrays of a module."""
    arrays, rest = eqx.partition(primal, eqx.is_inexact_array)
    _, back = jax.vjp(lambda a: function(eqx.combine(a, rest)), arrays)
    return back(cotangent)[0]


def _plus(total, more):
    return jax.tree.map(jnp.add, total, more)


def _currents_back(
    program: Program, plan: Plan, carry: Cotangents, clock: Clock, *, electric: bool
) -> Cotangents:
    """Adds to the sums for the currents of one half step."""
    sums = dict(carry.electric if electric else carry.magnetic)
    currents = program.electric if electric else program.magnetic
    for i, total in sums.items():
        one, block = currents[i], program.stepper.block
        field = carry.fields[one.component]
        value = partial(current_value, clock, dtype=field.dtype)
        sums[i] = _plus(total, pull(value, one, block.read(field, one.box)))
    where = (lambda c: c.electric) if electric else (lambda c: c.magnetic)
    return eqx.tree_at(where, carry, sums)


def current_value(clock: Clock, one: Injection, *, dtype) -> Array:
    """Returns what a current adds to the curl in its box."""
    value = one.amplitude * one.pulse(clock, one.delay)
    shape = tuple(high - low for low, high in one.box)
    return jnp.broadcast_to(value, shape).astype(dtype)


def _middle_lines(program: Program, plan: Plan, lines: dict, n) -> dict:
    """Returns the incident waves between the two halves of a step."""
    now = Clock(2 * n, program.setup.dt)
    return {
        name: program.lines[name].advance(lines[name], now, electric=False)
        for name in plan.lines
    }


def _lines_back(
    program: Program, plan: Plan, carry: Cotangents, lines: dict, clock, *, electric
) -> Cotangents:
    """Carries cotangents back through one half step of the incident waves."""
    states, waves = dict(carry.lines), dict(carry.waves)
    axes, block = program.setup.axes, program.stepper.block
    for name in plan.lines:
        line, state = program.lines[name], lines[name]
        arrays, rest = eqx.partition(line, eqx.is_inexact_array)

        def advance(arrays, state, rest=rest):
            return eqx.combine(arrays, rest).advance(state, clock, electric=electric)

        _, back = jax.vjp(advance, arrays, state)
        more, state_ct = back(states[name])
        waves[name] = _plus(waves[name], more)
        values = partial(_corrections, line, axes, carry.fields, electric)
        found, back = jax.vjp(values, state)
        terms = line.place.corrections[0 if electric else 1]
        cts = [
            block.read(carry.fields[term.target], term.box).astype(value.dtype)
            for term, value in zip(terms, found, strict=True)
        ]
        states[name] = _plus(state_ct, back(cts)[0])
    return eqx.tree_at(lambda c: (c.lines, c.waves), carry, (states, waves))


def _corrections(line, axes, fields: Arrays, electric: bool, state) -> list[Array]:
    return [
        value.astype(fields[term.target].dtype)
        for term, value in line.corrections(state, axes, electric=electric)
    ]


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
        return step_back(program, plan, gather, carry, lines, n)

    remake = partial(again, program, plan, dtype) if replay else None
    enter = partial(enter_back, program, plan)
    return rewind(
        back, carry, tape, steps, every, parts=parts, enter=enter, step=remake
    )
