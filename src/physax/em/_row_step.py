"""One row of a block in half a step, in place: what sweeps are made of."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jax.experimental.xla_metadata import set_xla_metadata
from jaxtyping import Array, Bool, Int, Num

from ..grid import Block
from ._layers import Axis, Slab
from ._step import Arrays, Stepper, advanced, psi_name, slabs_of


Both = tuple[Arrays, Arrays]
"""Fields, and memory of the layers."""

Range = tuple[int | Int[Array, ""], int | Int[Array, ""]]
"""Rows: the first, and one past the last."""

# XLA's CPU backend compiles a call marked so into one function for one thread. Without
# it, starting the kernels of a row takes longer than running them.
_ONE_FUNCTION = {"inlineable": "false", "xla_cpu_small_call": "true"}


def as_one_function(compute: Callable[[], Both]) -> Both:
    """Returns what a closure computes, compiled into one function for one thread.

    A closure: XLA does not bear operands that nothing reads.
    """
    fields, psi = jax.jit(compute)()
    tag = partial(set_xla_metadata, **_ONE_FUNCTION)
    return jax.tree.map(tag, fields), jax.tree.map(tag, psi)


class OfRow(NamedTuple):
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


def alone(block: Block, rows: int) -> Block:
    """Returns a block of some rows of another with nothing beyond them."""
    shape = rows, *block.shape[1:]
    wraps = False, *block.periodic[1:]
    return Block(shape, block.names, (1,) * len(shape), wraps, block.phase, block.zero)


def of_row(
    stepper: Stepper,
    side: str | None,
    i: Int[Array, ""],
    *,
    electric: bool,
    others: bool = True,
) -> OfRow:
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
        return cut_row(x, i - start) if x.ndim else x

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
    own = alone(block, 1)
    parts = stepper.components
    memory = {
        psi_name(term, end): 0 if term.axis else start
        for term in parts.terms(electric=electric)
        for end, _, _ in slabs_of(axes[term.axis], electric=electric)
    }
    return OfRow(Stepper(parts, own, axes, material), i, memory, electric)


def half_row(
    stepper: Stepper,
    layers: dict[str, Range],
    i: Int[Array, ""],
    carry: Both,
    beside: Callable[[Arrays], Arrays],
    *,
    electric: bool,
    bent: bool | Bool[Array, ""] = True,
) -> Both:
    """Advances a row in place, and then adds what layers along the rows add.

    Args:
        stepper: The coefficients.
        layers: From `reached_rows`.
        i: The number of the row.
        carry: Fields, and memory of the layers.
        beside: Reads, from the fields, the rows of the sources next to this one.
        electric: Which half.
        bent: Whether layers may add to this row.
    """

    def move(side: str | None, i: Array, carry: Both) -> Both:
        row = of_row(stepper, side, i, electric=electric, others=side is None)
        return _moved(row, carry, beside(carry[0]), whole=side is None)

    carry = move(None, i, carry)
    for side, (first, stop) in layers.items():
        here = (i >= first) & (i < stop) & bent
        carry = only_if(here, i, partial(move, side), carry)
    return carry


def _moved(row: OfRow, carry: Both, beside: Arrays, *, whole: bool) -> Both:
    """Advances a row in place, or only adds what its layers add."""
    fields, psi, i = dict(carry[0]), dict(carry[1]), row.i

    def remember(name, recursion):
        at = i - row.memory[name]
        psi[name] = row.own.block.once(
            lambda old: put_row(old, recursion(cut_row(old, at)), at), psi[name]
        )
        return cut_row(psi[name], at)

    new, later = advanced(
        row.own,
        {name: cut_row(values, i) for name, values in fields.items()},
        remember,
        electric=row.electric,
        beside=beside,
    )
    if whole:
        fields, _ = written(row, (fields, psi), new, {})
    for name, (_, *where), gain in later:
        fields[name] = add_in_row(row.own.block, fields[name], i, where, gain)
    return fields, psi


def add_in_row(
    block: Block,
    values: Num[Array, "*cells"],
    i: Int[Array, ""],
    where: Sequence[tuple[int, int]],
    more: Num[Array, "1 *rest"],
) -> Num[Array, "*cells"]:
    """Returns values with more added in some cells of a row, in place.

    Args:
        block: The block, inside a loop.
        values: The values.
        i: The number of the row.
        where: The cells, along the other axes.
        more: What is added there.
    """
    corner = i, *(low + hidden_zero(block) for low, _ in where)
    old = lax.dynamic_slice(values, corner, more.shape)
    return lax.dynamic_update_slice(values, old + more, corner)


def written(row: OfRow, carry: Both, new: Arrays, kept: Arrays) -> Both:
    """Puts a row and its memory back."""
    fields, psi = dict(carry[0]), dict(carry[1])
    for name, values in new.items():
        fields[name] = put_row(fields[name], values, row.i)
    for name, values in kept.items():
        psi[name] = put_row(psi[name], values, row.i - row.memory[name])
    return fields, psi


def only_if(
    condition: Array, i: Array, change: Callable[[Array, Both], Both], carry: Both
) -> Both:
    """Changes in place if a condition holds, by a loop of one turn or none.

    A condition of XLA would copy what it changes. The loop counts from the row on: what
    only depends on numbers from outside is taken out of a loop, and computed anyway.
    """
    return lax.fori_loop(i, i + condition.astype(jnp.int32), change, carry)


def reached_rows(stepper: Stepper) -> dict[str, Range]:
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


def sources_beside(stepper: Stepper, *, electric: bool) -> list[str]:
    """Lists the components that a half step reads from the row beside."""
    parts = stepper.components
    terms = parts.terms(electric=electric)
    return sorted({term.source for term in terms if not term.axis})


def hidden_zero(block: Block) -> Array:
    return jnp.asarray(0 if block.zero is None else block.zero, jnp.int32)


def cut_row(values: Num[Array, "*cells"], i: Int[Array, ""]) -> Num[Array, "1 *rest"]:
    return lax.dynamic_slice_in_dim(values, i, 1, 0)


def put_row(values: Num[Array, "*cells"], row: Num[Array, "1 *rest"], i) -> Array:
    return lax.dynamic_update_slice_in_dim(values, row, i, 0)
