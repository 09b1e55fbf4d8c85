"""A whole step in one sweep over the rows of a block, for blocks on CPU cores."""

import math
import os
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from jaxtyping import Array, Int, Num

from ..grid import Block, Layout
from ._layers import Axis, Slab
from ._step import Arrays, Stepper, advanced, half_step, psi_name, slabs_of


_Both = tuple[Arrays, Arrays]
"""Fields, and memory of the layers."""

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
    block, parts = stepper.block, stepper.components
    after = {k: block.after(fields[k], 0) for k in _beside(stepper, electric=False)}
    row = _last(stepper, electric=False)
    # Were these rows written into the fields here, XLA would copy the fields.
    new, kept = half_step(
        row.own,
        {name: _cut(values, row.i) for name, values in fields.items()},
        {name: _cut(psi[name], row.i - at) for name, at in row.memory.items()},
        electric=False,
        beside=after,
    )
    new = {name: new[name] for name in parts.magnetic}
    before = {
        k: block.beyond(new[k], 0, after=False) for k in _beside(stepper, electric=True)
    }

    # A closure: XLA does not bear operands that nothing reads.
    @jax.jit
    def rest() -> _Both:
        return _all_rows(stepper, (fields, psi), (new, kept), before)

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


def _all_rows(
    stepper: Stepper, carry: _Both, last: _Both, before: Mapping[str, Array | None]
) -> _Both:
    """Advances all rows but the last one of H, which is given."""
    axis, cells = stepper.axes[0], stepper.block.shape[0]

    def both(side: str | None, given, i: Array, carry: _Both) -> _Both:
        after = _rows_of(stepper, carry[0], i + 1, electric=False)
        carry = _moved(_of_row(stepper, side, i, electric=False), carry, after)
        lower = i - 1 if given is None else jnp.maximum(i - 1, 0)
        below = _rows_of(stepper, carry[0], lower, electric=True)
        if given is not None:
            below = {k: jnp.where(i == 0, given[k], row) for k, row in below.items()}
        return _moved(_of_row(stepper, side, i, electric=True), carry, below)

    row = _last(stepper, electric=False)
    carry = _written(row, carry, *last)
    # Not where a slab ends: most blocks lie inside the grid, and no layer reaches them.
    first, stop = _reach(axis.low, 1), cells - _reach(axis.high, -1)
    low, high = _sides(stepper)
    carry = lax.fori_loop(jnp.int32(0), first, partial(both, low, before), carry)
    carry = lax.fori_loop(first, stop, partial(both, None, None), carry)
    carry = lax.fori_loop(stop, row.i, partial(both, high, None), carry)
    below = _rows_of(stepper, carry[0], row.i - 1, electric=True)
    return _moved(_last(stepper, electric=True), carry, below)


def _moved(row: _OfRow, carry: _Both, beside: Arrays) -> _Both:
    """Advances a row in place."""
    fields, psi, i = dict(carry[0]), dict(carry[1]), row.i

    def remember(name, recursion):
        at = i - row.memory[name]
        psi[name] = row.own.block.once(
            lambda whole: _put(whole, recursion(_cut(whole, at)), at), psi[name]
        )
        return _cut(psi[name], at)

    new, later = advanced(
        row.own,
        {name: _cut(values, i) for name, values in fields.items()},
        remember,
        electric=row.electric,
        beside=beside,
    )
    fields, _ = _written(row, (fields, psi), new, {})
    for name, (_, *where), gain in later:
        corner = i, *(low + _zero(row.own.block) for low, _ in where)
        old = lax.dynamic_slice(fields[name], corner, gain.shape)
        fields[name] = lax.dynamic_update_slice(fields[name], old + gain, corner)
    return fields, psi


def _written(row: _OfRow, carry: _Both, new: Arrays, kept: Arrays):
    """Puts a row and its memory back."""
    fields, psi = dict(carry[0]), dict(carry[1])
    for name, values in new.items():
        fields[name] = _put(fields[name], values, row.i)
    for name, values in kept.items():
        psi[name] = _put(psi[name], values, row.i - row.memory[name])
    return fields, psi


def _of_row(stepper: Stepper, side: str | None, i, *, electric: bool) -> _OfRow:
    """Returns a row that lies in the layer on one side of the block, or in none."""
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
    axes = (first, *stepper.axes[1:])
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


def _last(stepper: Stepper, *, electric: bool) -> _OfRow:
    """Returns the last row, whose number the compiler does not know.

    It would compute known rows again where they are read, from copies of the fields.
    """
    last = stepper.block.shape[0] - 1 + _zero(stepper.block)
    return _of_row(stepper, _sides(stepper)[1], last, electric=electric)


def _zero(block: Block) -> Array:
    return jnp.asarray(0 if block.zero is None else block.zero, jnp.int32)


def _sides(stepper: Stepper) -> tuple[str | None, str | None]:
    axis = stepper.axes[0]
    return "low" if axis.low else None, "high" if axis.high else None


def _reach(slab: Slab | None, way: int) -> Array:
    """Counts the rows that a layer reaches from an end of the block, 1 at least."""
    if slab is None:
        return jnp.ones((), jnp.int32)
    inside = jnp.zeros(slab.cells, bool)
    for factors in jax.tree.leaves((slab.electric, slab.magnetic)):
        inside = inside | (factors != 0)
    number = jnp.arange(1, slab.cells + 1, dtype=jnp.int32)
    return jnp.max(jnp.where(inside[::way], number, 1))


def _beside(stepper: Stepper, *, electric: bool) -> list[str]:
    """Lists the components that a half step reads from the row beside."""
    parts = stepper.components
    terms = parts.terms(electric=electric)
    return sorted({term.source for term in terms if not term.axis})


def _rows_of(stepper: Stepper, fields: Arrays, i, *, electric: bool) -> Arrays:
    return {k: _cut(fields[k], i) for k in _beside(stepper, electric=electric)}


def _cut(values: Num[Array, "*cells"], i: Int[Array, ""]) -> Num[Array, "1 *rest"]:
    return lax.dynamic_slice_in_dim(values, i, 1, 0)


def _put(values: Num[Array, "*cells"], row: Num[Array, "1 *rest"], i) -> Array:
    return lax.dynamic_update_slice_in_dim(values, row, i, 0)
