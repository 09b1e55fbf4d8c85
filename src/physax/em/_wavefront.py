"""Several steps in one sweep over the rows of a block that no cache holds."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, Num

from .._loop import NEVER, Leap, least
from ..grid import Block, Box
from ._clock import Clock
from ._injection import drives
from ._layers import Axis
from ._monitors import AbstractSpectralMonitor
from ._program import Program
from ._row_step import (
    Both,
    add_in_row,
    alone,
    as_one_function,
    half_row,
    hidden_zero,
    last_row,
    only_if,
    reached_rows,
)
from ._state import State, may_sweep, step
from ._stepper import Arrays, Stepper, psi_name, slabs_of


# Bytes of fields and medium in a block: a smaller one stays in the cache anyway.
_LEAST = 1 << 22
# Bytes of the rows between the first and the last step, which do.
_CACHED = 3 << 17
# Most steps in a sweep, and fewest that are faster than as many sweeps.
_MOST, _FEWEST = 8, 3
# Rows of a block for each step: for each, four rows are computed twice.
_ROWS = 40
# Cells of a block for each that a current drives: what is added there in all steps of a
# sweep is computed before.
_DRIVEN = 8


class _Part(NamedTuple):
    """Rows that one sweep goes over.

    Attributes:
        stepper: Their coefficients, as if nothing were beyond them.
        start: The number of the first in the whole grid; below 0 for rows before it,
            which in a periodic one are its last.
        total: Rows of the whole grid.
        phase: The Bloch factor of a period, or `None` for 1.
    """

    stepper: Stepper
    start: Int[Array, ""] | int
    total: int
    phase: Num[Array, ""] | None

    def local(self, row: Int[Array, "*rows"]) -> Int[Array, "*rows"]:
        """Returns the number here of a row of the whole grid; too high if elsewhere."""
        return (row - self.start) % self.total


def leaps(program: Program) -> Leap | None:
    """Returns what makes several steps in one sweep, or `None` if that is no faster.

    A sweep reads each field from memory once, however many steps it makes: each is a
    row behind the one before, and the rows in between stay in the cache. What the
    blocks beside do meanwhile is felt by as many rows as there are steps; they are
    stepped once more, with as many of the block before, by the block that has them.
    Known as time skewing: Wonnacott, *Using time skewing to eliminate idle time due to
    memory bandwidth and network limitations*, IPDPS (2000).

    Args:
        program: The program, ready to step, on the block of a device.
    """
    depth = _depth(program)
    if depth is None:
        return None
    return partial(_leap, program, _border(program.stepper, 2 * depth), depth)


def _depth(program: Program) -> int | None:
    """Returns the most steps in a sweep, `None` where several are not faster."""
    stepper, monitors = program.stepper, program.monitors.values()
    block, axis = stepper.block, stepper.axes[0]
    if (
        len(block.shape) != 2
        or not may_sweep(program)
        or program.lines
        or program.responses
        or not all(isinstance(one, AbstractSpectralMonitor) for one in monitors)
    ):
        return None
    rows, size = block.shape
    entries = sum(x.size for x in jax.tree.leaves(stepper.rows) if x.ndim)
    held = size * len(stepper.components.names) + entries // rows
    row = held * jnp.dtype(program.dtype).itemsize
    layers = [slab.cells for slab in (axis.low, axis.high) if slab is not None]
    inside = rows - max(layers, default=0)
    depth = min(_MOST, _CACHED // row, rows // _ROWS, inside // 2)
    currents = (*program.electric, *program.magnetic)
    driven = sum(math.prod(high - low for low, high in one.box) for one in currents)
    if row * rows < _LEAST or depth < _FEWEST or _DRIVEN * driven * depth > size * rows:
        return None
    return depth


def _border(stepper: Stepper, rows: int) -> Stepper:
    """Returns the coefficients of the last rows of the block before and our first."""
    block = stepper.block
    plain = dataclasses.replace(block, phase=(None,) * len(block.shape))

    def joined(x: Array) -> Array:
        return _joined(plain, x, rows) if x.ndim else x

    axis = stepper.axes[0]
    axes = Axis(joined(axis.electric), joined(axis.magnetic), None, None)
    material = jax.tree.map(joined, stepper.rows)
    own = alone(block, 2 * rows)
    return Stepper(stepper.components, own, (axes, *stepper.axes[1:]), material)


def _joined(block: Block, values: Array, rows: int) -> Array:
    """Returns the last rows of the block before and the first of this one."""
    last = lax.slice_in_dim(values, block.shape[0] - rows, block.shape[0])
    first = lax.slice_in_dim(values, 0, rows)
    return jnp.concatenate([_beside(block, last, after=False), first])


def _beside(block: Block, rows: Array, *, after: bool) -> Array:
    """Returns these rows of the block beside, zeros at the ends of the grid."""
    found = block.beyond(rows, 0, after=after)
    return jnp.zeros_like(rows) if found is None else found


def _leap(
    program: Program,
    border: Stepper,
    depth: int,
    state: State,
    n: Int[Array, ""],
    stop: Int[Array, ""],
) -> tuple[State, Int[Array, ""]]:
    """Makes the steps before the next that a monitor reads, or this one."""
    gap = least(jnp.where(n < stop, stop - n, NEVER))
    for sampling in program.sampling.values():
        gap = jnp.minimum(gap, least((-n) % sampling.every))
    count = -(-gap // jnp.maximum(-(-gap // depth), 1))
    many = count >= _FEWEST
    # Loops of one turn or none: a condition of XLA would copy the fields.
    fields, psi = lax.fori_loop(
        n,
        n + many.astype(jnp.int32),
        lambda n, both: _several(program, border, depth, both, n, count),
        (state.fields, state.psi),
    )
    end = n + jnp.where(many, count, 1)
    done = jnp.asarray(jnp.where(many, end, n), jnp.int32)
    changed = lambda s: (s.fields, s.psi, s.done)  # noqa: E731
    state = eqx.tree_at(changed, state, (fields, psi, done))
    body = lambda n, s: step(program, s, n, swept=True)  # noqa: E731
    return lax.fori_loop(done, end, body, state), end


def _several(
    program: Program,
    border: Stepper,
    depth: int,
    both: Both,
    n: Int[Array, ""],
    count: Int[Array, ""],
) -> Both:
    """Makes `count` steps, at most `depth`."""
    fields, psi = both
    stepper = program.stepper
    block, rows = stepper.block.within(n), 2 * depth
    own = dataclasses.replace(stepper, block=alone(block, block.shape[0]))
    around = dataclasses.replace(border, block=alone(block, 2 * rows))
    start, total = block.start(0), block.shape[0] * block.parts[0]
    place = total, block.phase[0]
    ends = _at_ends(stepper)
    joined = {k: _joined(block, x, rows) for k, x in fields.items()}
    memory = {k: _joined(block, x, rows) for k, x in psi.items() if k not in ends}
    part = _Part(around, start - rows, *place)
    found = as_one_function(_sweep(program, part, (joined, memory), depth, n, count))
    # What the blocks beside have for our last rows, and we for the first.
    rims = [
        {
            name: (x[rows : rows + depth], _beside(block, x[depth:rows], after=True))
            for name, x in values.items()
        }
        for values in found
    ]
    before = after = jnp.asarray(True)
    if not block.periodic[0]:
        here = lax.axis_index(block.names[0])
        before, after = here > 0, here < block.parts[0] - 1
    zero = hidden_zero(block)
    corners = (before, zero), (after, block.shape[0] - depth + zero)
    sweep = _sweep(program, _Part(own, start, *place), (fields, psi), depth, n, count)

    # All in one: were anything done to the fields beside it, XLA would copy them.
    def finished() -> Both:
        both = sweep()
        for whole, rim in zip(both, rims, strict=True):
            for name, parts in rim.items():
                for (there, at), new in zip(corners, parts, strict=True):
                    values = whole[name]
                    old = lax.dynamic_slice_in_dim(values, at, depth, 0)
                    new = jnp.where(there, new, old)
                    whole[name] = lax.dynamic_update_slice_in_dim(values, new, at, 0)
        return both

    return as_one_function(finished)


def _sweep(
    program: Program,
    part: _Part,
    both: Both,
    depth: int,
    n: Int[Array, ""],
    count: Int[Array, ""],
) -> Callable[[], Both]:
    """Returns what makes `count` steps of some rows, each a row behind the last."""
    stepper, zero = part.stepper, hidden_zero(part.stepper.block)
    end = last_row(stepper.block)
    layers = reached_rows(stepper)
    added = {
        electric: _added(program, part, both[0], depth, n, electric=electric)
        for electric in (False, True)
    }

    def half(i: Array, k: Array, both: Both, *, electric: bool) -> Both:
        both = half_row(stepper, layers, i, both, electric=electric)
        for one in added[electric]:
            both = _driven(part, i, k, both, one)
        return both

    def steps(i: Array, both: Both) -> Both:
        def one(k: Array, both: Both) -> Both:
            both = half(i - k, k, both, electric=False)
            return half(i - k, k, both, electric=True)

        low, high = jnp.maximum(i - end, 0), jnp.minimum(count, i + 1)
        return lax.fori_loop(low, high, one, both)

    return lambda: lax.fori_loop(zero, end + count, steps, both)


def _added(
    program: Program,
    part: _Part,
    fields: Arrays,
    depth: int,
    n: Int[Array, ""],
    *,
    electric: bool,
) -> list[tuple[str, Box, Array]]:
    """Returns what currents add in each step: component, box, and (step, *box)."""
    currents = program.electric if electric else program.magnetic

    def rows(box: Box) -> Array:
        return part.local(jnp.arange(*box[0]))

    def read(values: Array, box: Box, fill: float) -> Array:
        values = values[:, *(slice(*span) for span in box[1:])]
        return jnp.take(values, rows(box), 0, mode="fill", fill_value=fill)

    def one(n: Array) -> list[Array]:
        clock = Clock(2 * n + electric, program.setup.dt)
        return drives(currents, fields, part.stepper.rows, read, clock)

    added = []
    values = jax.vmap(one)(n + jnp.arange(depth, dtype=jnp.int32))
    for current, value in zip(currents, values, strict=True):
        size = [high - low for low, high in current.box]
        value = value.astype(fields[current.component].dtype)
        value = jnp.broadcast_to(value, [depth, *size])
        if part.phase is not None:
            # Rows before the first one are those of a period before.
            before = rows(current.box) + part.start < 0
            before = before.reshape(-1, *(1 for _ in size[1:]))
            value = jnp.where(before, jnp.conj(part.phase), 1) * value
        added.append((current.component, current.box, value))
    return added


def _driven(
    part: _Part, i: Array, k: Array, both: Both, added: tuple[str, Box, Array]
) -> Both:
    """Adds what a current adds in row `i` in step `k`, if it does."""
    name, ((low, high), *others), values = added
    block, at = part.stepper.block, (i + part.start - low) % part.total

    def add(i: Array, both: Both) -> Both:
        fields, psi = dict(both[0]), both[1]
        corner = k, at, *(hidden_zero(block) for _ in others)
        more = lax.dynamic_slice(values, corner, (1, 1, *values.shape[2:]))[0]
        fields[name] = add_in_row(block, fields[name], i, others, more)
        return fields, psi

    return only_if(at < high - low, i, add, both)


def _at_ends(stepper: Stepper) -> set[str]:
    """Returns the names of the memory of layers along the rows."""
    return {
        psi_name(term, side)
        for electric in (False, True)
        for term in stepper.components.terms(electric=electric)
        if not term.axis
        for side, _, _ in slabs_of(stepper.axes[0], electric=electric)
    }
