"""A whole step in one sweep over the rows of a block, for blocks on CPU cores."""

import dataclasses
import math
import os
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jax.experimental.xla_metadata import set_xla_metadata
from jaxtyping import Array, Bool, Int, Num

from ..grid import Block, Layout
from ._layers import Axis, Slab
from ._step import Arrays, Stepper, advanced, half_step, psi_name, slabs_of


_Both = tuple[Arrays, Arrays]
"""Fields, and memory of the layers."""

_Range = tuple[int | Int[Array, ""], int | Int[Array, ""]]
"""Rows: the first, and one past the last."""

# XLA's CPU backend compiles a call marked so into one function for one thread. Without
# it, starting the kernels of a row takes longer than running them.
_ONE_FUNCTION = {"inlineable": "false", "xla_cpu_small_call": "true"}
# All fields of two rows, in bytes, should stay in the cache of a core.
_WIDEST = 1 << 20
# Cells of a row from which they take longer than what comes with each row.
_NARROWEST = 256
# Bytes of all fields of a block: those of a smaller one stay in the cache anyway.
_LEAST = 1 << 18


def suits_sweep(stepper: Stepper, layout: Layout | None, itemsize: int) -> bool:
    """Tells whether a block is one that `sweep` steps, and faster than half steps do.

    A sweep of a block takes one core, and reads each field from memory once in a step.
    Half steps take all cores that XLA finds, and read each field three or four times.

    Args:
        stepper: The coefficients.
        layout: The devices, or `None`.
        itemsize: Bytes of a sample of a field.
    """
    block, axis = stepper.block, stepper.axes[0]
    if layout is None or axis.radial is not None or block.parts[0] == 1:
        return False
    rows, *others = block.shape
    size = math.prod(others)
    row = size * itemsize * len(stepper.components.names)
    # A row for each face without a layer: the first and the last must be two.
    ends = [1 if slab is None else slab.cells for slab in (axis.low, axis.high)]
    devices = list(layout.mesh.devices.flat)
    return (
        all(device.platform == "cpu" for device in devices)
        # Half steps use the cores that have no device.
        and 2 * len(devices) >= (os.cpu_count() or 1)
        and math.prod(block.parts[1:]) == 1
        and sum(ends) <= rows
        and size >= _NARROWEST
        and row <= _WIDEST
        and row * rows >= _LEAST
    )


@eqx.filter_custom_jvp
def sweep(stepper: Stepper, fields: Arrays, psi: Arrays) -> _Both:
    """Advances the magnetic and the electric fields by one step, row by row.

    A row is what a block holds at one place of the first axis. Each row of H is
    followed by the row of E that it completes, while both are in the cache. Only the
    last row of H, which the next block waits for, comes first. Derivatives are those of
    two half steps.

    Args:
        stepper: The coefficients, inside a loop; only the first axis is cut.
        fields: All components on this block.
        psi: Memory of the layers.

    Returns:
        The fields and the memory, with all entries replaced.
    """
    block = stepper.block
    after = {k: block.after(fields[k], 0) for k in _beside(stepper, electric=False)}
    row = _of_row(stepper, "high", _end(stepper), electric=False)
    # Were this row written into the fields here, XLA would copy the fields.
    last = half_step(
        row.own,
        {name: _cut(values, row.i) for name, values in fields.items()},
        {name: _cut(psi[name], row.i - at) for name, at in row.memory.items()},
        electric=False,
        beside=after,
    )
    # Where the first axis is cut there is a plane, of zeros at the ends of the grid.
    before = {
        name: plane
        for name in _beside(stepper, electric=True)
        if (plane := block.beyond(last[0][name], 0, after=False)) is not None
    }

    # A closure: XLA does not bear operands that nothing reads.
    @jax.jit
    def rest() -> _Both:
        return _all_rows(stepper, (fields, psi), last, before)

    fields, psi = rest()
    tag = partial(set_xla_metadata, **_ONE_FUNCTION)
    return jax.tree.map(tag, fields), jax.tree.map(tag, psi)


@sweep.def_jvp
def _(primals, tangents):
    return eqx.filter_jvp(_halves, primals, tangents)


def _halves(stepper: Stepper, fields: Arrays, psi: Arrays) -> _Both:
    for electric in (False, True):
        fields, psi = half_step(stepper, fields, psi, electric=electric)
    return fields, psi


class _OfRow(NamedTuple):
    """One row in one half step.

    Attributes:
        own: The coefficients of the row.
        i: Its number in the block.
        memory: At which row of the block each memory begins.
        electric: Which half.
    """

    own: Stepper
    i: Int[Array, ""]
    memory: dict[str, int]
    electric: bool


def _all_rows(stepper: Stepper, carry: _Both, last: _Both, before: Arrays) -> _Both:
    """Advances all rows.

    In one loop: one more, for the rows in a layer say, doubles what is compiled.
    Without a choice between rows in its body: it would be made in every cell. So
    until the last row of H is reached, its place holds what the first row of E reads
    from the block before.
    """
    end, reached = _end(stepper), _reached(stepper)
    end_row = _of_row(stepper, "high", end, electric=False, others=False)

    def moved(side: str | None, electric: bool, i: Array, carry: _Both) -> _Both:
        other = jnp.where(i == 0, end, i - 1) if electric else jnp.minimum(i + 1, end)
        beside = {
            name: _cut(carry[0][name], other)
            for name in _beside(stepper, electric=electric)
        }
        row = _of_row(stepper, side, i, electric=electric, others=side is None)
        return _moved(row, carry, beside, whole=side is None)

    def half(i: Array, carry: _Both, *, electric: bool) -> _Both:
        carry = moved(None, electric, i, carry)
        for side, (first, stop) in reached.items():
            # What the last row of H reads is not here.
            here = (i >= first) & (i < stop) & (electric | (i < end))
            carry = _if(here, i, partial(moved, side, electric), carry)
        return carry

    def both(i: Array, carry: _Both) -> _Both:
        carry = half(i, carry, electric=False)
        carry = _if(i == end, i, lambda _, c: _written(end_row, c, *at_end), carry)
        return half(i, carry, electric=True)

    kept = {name: last[1][name] for name in end_row.memory}
    at_end = {name: last[0][name] for name in stepper.components.magnetic}, kept
    carry = _written(end_row, carry, before, {})
    return lax.fori_loop(jnp.int32(0), end + 1, both, carry)


def _if(
    condition: Array, i: Array, change: Callable[[Array, _Both], _Both], carry: _Both
) -> _Both:
    """Changes in place if a condition holds, by a loop of one turn or none.

    A condition of XLA would copy what it changes. The loop counts from the row on: what
    only depends on numbers from outside is taken out of a loop, and computed anyway.
    """
    return lax.fori_loop(i, i + condition.astype(jnp.int32), change, carry)


def _moved(row: _OfRow, carry: _Both, beside: Arrays, *, whole: bool) -> _Both:
    """Advances a row in place, or only adds what its layers add."""
    fields, psi, i = dict(carry[0]), dict(carry[1]), row.i

    def remember(name, recursion):
        at = i - row.memory[name]
        psi[name] = row.own.block.once(
            lambda old: _put(old, recursion(_cut(old, at)), at), psi[name]
        )
        return _cut(psi[name], at)

    new, later = advanced(
        row.own,
        {name: _cut(values, i) for name, values in fields.items()},
        remember,
        electric=row.electric,
        beside=beside,
    )
    if whole:
        fields, _ = _written(row, (fields, psi), new, {})
    for name, (_, *where), gain in later:
        corner = i, *(low + _zero(row.own.block) for low, _ in where)
        old = lax.dynamic_slice(fields[name], corner, gain.shape)
        fields[name] = lax.dynamic_update_slice(fields[name], old + gain, corner)
    return fields, psi


def _written(row: _OfRow, carry: _Both, new: Arrays, kept: Arrays) -> _Both:
    """Puts a row and its memory back."""
    fields, psi = dict(carry[0]), dict(carry[1])
    for name, values in new.items():
        fields[name] = _put(fields[name], values, row.i)
    for name, values in kept.items():
        psi[name] = _put(psi[name], values, row.i - row.memory[name])
    return fields, psi


def _of_row(
    stepper: Stepper,
    side: str | None,
    i: Int[Array, ""],
    *,
    electric: bool,
    others: bool = True,
) -> _OfRow:
    """Returns a row that lies in the layer on one side of the block, or in none.

    Args:
        stepper: The coefficients.
        side: `"low"`, `"high"`, which stands for the last row without a layer, too,
            or `None`.
        i: The number of the row.
        electric: Which half.
        others: Whether it lies in the layers along the other axes, too.
    """
    block, axis = stepper.block, stepper.axes[0]

    def cut(x: Array, start: int = 0) -> Array:
        return _cut(x, i - start) if x.ndim else x

    ends: dict[str, Slab | None] = {"low": None, "high": None}
    slab, start = (axis.low if side == "low" else axis.high), 0
    if side is not None and slab is not None:
        start = 0 if side == "low" else block.shape[0] - slab.cells
        rows = jax.tree.map(partial(cut, start=start), (slab.electric, slab.magnetic))
        ends[side] = Slab(1, slab.layer, *rows)
    first = Axis(cut(axis.electric), cut(axis.magnetic), ends["low"], ends["high"])
    rest = stepper.axes[1:]
    if not others:
        rest = [dataclasses.replace(axis, low=None, high=None) for axis in rest]
    axes = (first, *rest)
    # Whole arrays of entries have a row here; numbers, and their quotients, do not.
    material = jax.tree.map(cut, stepper.rows)
    shape = (1, *block.shape[1:])
    uncut = (1,) * len(shape)
    wraps = (False, *block.periodic[1:])
    own = Block(shape, block.names, uncut, wraps, block.phase, block.zero)
    parts = stepper.components
    memory = {
        psi_name(term, end): 0 if term.axis else start
        for term in parts.terms(electric=electric)
        for end, _, _ in slabs_of(axes[term.axis], electric=electric)
    }
    return _OfRow(Stepper(parts, own, axes, material), i, memory, electric)


def _end(stepper: Stepper) -> Array:
    """Returns the number of the last row, which the compiler does not know.

    It would compute a known row again where it is read, from copies of the fields.
    """
    return stepper.block.shape[0] - 1 + _zero(stepper.block)


def _zero(block: Block) -> Array:
    return jnp.asarray(0 if block.zero is None else block.zero, jnp.int32)


def _reached(stepper: Stepper) -> dict[str, _Range]:
    """Returns the rows that a layer at each end reaches: the first, and one past them.

    Not all of its slab: most blocks lie inside the grid, where no layer is.
    """
    axis, rows = stepper.axes[0], stepper.block.shape[0]
    reached = {}
    for side, slab in (("low", axis.low), ("high", axis.high)):
        if slab is None:
            continue
        inside = jnp.zeros(slab.cells, bool)
        for factors in jax.tree.leaves((slab.electric, slab.magnetic)):
            inside = inside | (factors != 0)
        depth = _depth(inside if side == "low" else inside[::-1])
        reached[side] = (0, depth) if side == "low" else (rows - depth, rows)
    return reached


@custom_vmap
def _depth(inside: Bool[Array, " cells"]) -> Int[Array, ""]:
    """Returns the number of cells up to the last one inside."""
    number = jnp.arange(1, inside.size + 1, dtype=jnp.int32)
    return jnp.max(jnp.where(inside, number, 0))


@_depth.def_vmap
def _(size: int, batched: list[bool], inside: Bool[Array, "batch cells"]):
    # One for the batch: a layer adds nothing where it is not.
    return _depth(jnp.any(inside, axis=0)), False


def _beside(stepper: Stepper, *, electric: bool) -> list[str]:
    """Lists the components that a half step reads from the row beside."""
    parts = stepper.components
    terms = parts.terms(electric=electric)
    return sorted({term.source for term in terms if not term.axis})


def _cut(values: Num[Array, "*cells"], i: Int[Array, ""]) -> Num[Array, "1 *rest"]:
    return lax.dynamic_slice_in_dim(values, i, 1, 0)


def _put(values: Num[Array, "*cells"], row: Num[Array, "1 *rest"], i) -> Array:
    return lax.dynamic_update_slice_in_dim(values, row, i, 0)
