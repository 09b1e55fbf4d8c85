"""Cotangents in the backward pass, and how sources and poles add to their sums."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ._boxes import cells_of, size_of
from ._clock import Clock
from ._dispersion import recall, still
from ._injection import Injection
from ._program import Program
from ._stepper import Arrays
from ._tape import kept_cells
from ._tape_plan import Plan
from ._tilt import Tilt


Before = Callable[[str, int], Array]
"""Returns the field of a component before a step in one of its kept boxes."""


class Cotangents(eqx.Module):
    """The carry of the backward pass.

    Attributes:
        fields: Cotangents of the components, divided by `m + s` of their rows.
        psi: Those of the memory of the layers, times `c / b` of the layer.
        poles: Those of the states of poles, over amplitude and fraction.
        lines: Those of the incident waves that are differentiated.
        monitors: Those of the accumulators.
        samples: Those of what the monitors read of H at the end of the next step back.
        seen: Those of the kept electric cells.
        rows: Sums for the entries of the rows, arranged as the plan.
        electric: Sums for the electric currents, by number.
        magnetic: Sums for the magnetic ones.
        waves: Sums for the incident waves, by name.
        strengths: Sums for the poles that are differentiated.
        tilts: Sums for the tilts, where their changes are kept.
    """

    fields: Arrays
    psi: Arrays
    poles: dict[str, tuple]
    lines: dict[str, Any]
    monitors: dict[str, Any]
    samples: dict[str, dict[str, Array]]
    seen: dict[str, tuple[Array, ...]]
    rows: dict[str, tuple]
    electric: dict[int, Any]
    magnetic: dict[int, Any]
    waves: dict[str, Any]
    strengths: dict[str, tuple]
    tilts: tuple[dict[str, Arrays], ...]

    @property
    def cells(self) -> tuple:
        """All sums for what has a value in each cell."""
        return self.rows, self.strengths, self.tilts


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
    poles, strengths = {}, {}
    for name, many in program.responses.items():
        cells = [fields[name][cells_of(one.here(stepper.block))] for one in many]
        blank = list(map(jnp.zeros_like, cells))
        poles[name] = tuple(map(still, many, blank))
        strengths[name] = tuple(
            () if at is None else (jnp.real(zero),) * len(one.poles)
            for at, one, zero in zip(plan.poles[name], many, blank, strict=True)
        )
    return Cotangents(
        {name: stepper.rows[name].drive(ct) for name, ct in fields.items()},
        psi,
        poles,
        {
            name: _float_zeros(program.lines[name].rest(program.dtype))
            for name in plan.lines
        },
        monitors,
        {
            name: {
                read.key: jnp.zeros(size_of(read.box), program.dtype)
                for read in reads
                if read.component[0] == "H"
            }
            for name, reads in program.reads.items()
        },
        kept_cells(plan, {n: f for n, f in fields.items() if n[0] == "E"}),
        rows,
        {i: _float_zeros(program.electric[i]) for i in plan.electric},
        {i: _float_zeros(program.magnetic[i]) for i in plan.magnetic},
        {name: _float_zeros(program.lines[name]) for name in plan.lines},
        strengths,
        _start_sums(program.tilts) if plan.tilts else (),
    )


def _start_sums(tilts: tuple[Tilt, ...]) -> tuple[dict[str, Arrays], ...]:
    """Returns sums of zero for the entries and the weights of tilts."""
    return tuple(
        {
            "entries": {pair: jnp.zeros_like(x) for pair, x in one.entries.items()},
            "weights": {
                name: jnp.zeros_like(next(iter(one.entries.values())))
                for name in one.names
            },
        }
        for one in tilts
    )


def pull(function, primal, cotangent):
    """Pulls a cotangent back to the inexact arrays of a module."""
    arrays, rest = eqx.partition(primal, eqx.is_inexact_array)
    _, back = jax.vjp(lambda a: function(eqx.combine(a, rest)), arrays)
    return back(cotangent)[0]


def _plus(total, more):
    return jax.tree.map(jnp.add, total, more)


def currents_back(
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
    return jnp.broadcast_to(value, size_of(one.box)).astype(dtype)


def lines_back(
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


def poles_back(
    program: Program, plan: Plan, carry: Cotangents, before: Before
) -> tuple[Cotangents, dict[str, list]]:
    """Carries cotangents back through poles; returns also what they give to fields."""
    poles, strengths, more = {}, {}, {}
    for name, many in program.responses.items():
        states, sums, found = [], [], []
        old = zip(many, carry.poles[name], carry.strengths[name], strict=True)
        for at, (one, state, total) in zip(plan.poles[name], old, strict=True):
            box = one.here(program.stepper.block)
            drive = carry.fields[name][cells_of(box)]
            state, given = recall(one, state, drive)
            states.append(state)
            if at is not None:
                field = before(name, at).astype(drive.dtype)
                total = tuple(
                    old + jnp.real(part * field)
                    for old, part in zip(total, given, strict=True)
                )
            sums.append(total)
            parts = zip(one.poles, given, strict=True)
            whole = sum(pole.amplitude * part for pole, part in parts)
            found.append((box, one.fraction * whole))
        poles[name], strengths[name] = tuple(states), tuple(sums)
        more[name] = found
    carry = eqx.tree_at(
        lambda c: (c.poles, c.strengths),
        carry,
        (poles, strengths),
    )
    return carry, more
