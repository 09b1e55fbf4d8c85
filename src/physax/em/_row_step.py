"""One row of a block in half a step, in place: what sweeps are made of."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import or_
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jax.experimental.xla_metadata import set_xla_metadata
from jaxtyping import Array, Bool, Int, Num

from ..grid import Block
from ._components import CurlTerm
from ._layers import Axis, Rows, Slab
from ._step import Sources, advanced, recursions, sources_of
from ._stepper import Arrays, Stepper, psi_name, slabs_of


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
        memory: For each memory of the row the arrays that hold it, each with its first
            row in the block: two where layers are at both ends of the rows.
        low: Whether the first of two holds it; else not read.
        electric: Which half.
    """

    own: Stepper
    i: Int[Array, ""]
    memory: dict[str, list[tuple[str, int]]]
    low: Bool[Array, ""]
    electric: bool

    def recall(self, psi: Arrays, name: str) -> Array:
        """Returns the memory of the row, from that of all."""
        found = [cut_row(psi[own], self.i - start) for own, start in self.memory[name]]
        return found[0] if len(found) == 1 else jnp.where(self.low, *found)

    def remember(
        self, psi: Arrays, name: str, change: Callable[[Array], Array]
    ) -> Arrays:
        """Returns the memory, of all rows, with that of this row changed."""
        places, changed = self.memory[name], {}
        for own, start in places:
            # Each is read on its own: were one read to change the other, XLA would copy
            # it. Where the row is not, what is read is put back.
            old = cut_row(psi[own], self.i - start)
            new = change(old)
            if len(places) > 1:
                both = (new, old) if own == places[0][0] else (old, new)
                new = jnp.where(self.low, *both)
            changed[own] = put_row(psi[own], new, self.i - start)
        return changed


def alone(block: Block, rows: int) -> Block:
    """Returns a block of some rows of another with nothing beyond them."""
    shape = rows, *block.shape[1:]
    wraps = False, *block.periodic[1:]
    return Block(shape, block.names, (1,) * len(shape), wraps, block.phase, block.zero)


def of_row(
    stepper: Stepper,
    sides: Sequence[str],
    i: Int[Array, ""],
    *,
    electric: bool,
    only: Callable[[CurlTerm], bool] | None = None,
) -> OfRow:
    """Returns a row of a block.

    Args:
        stepper: The coefficients.
        sides: The ends in whose layers the row may lie, `"low"`, `"high"` or both;
            those without a layer are skipped.
        i: The number of the row.
        electric: Which half.
        only: Which terms of the curls there are, by default all.
    """
    axis, parts = stepper.axes[0], stepper.components
    parts = parts if only is None else parts.with_terms(only)
    ends = {
        side: 0 if side == "low" else stepper.block.shape[0] - slab.cells
        for side in sides
        if (slab := getattr(axis, side)) is not None
    }
    low = i < (axis.low.cells if axis.low is not None else 0)
    cut = partial(_cut_if_array, i=i)
    first = Axis(cut(axis.electric), cut(axis.magnetic), None, None)
    if ends:
        layer = _layer_of_row(axis, ends, i, low)
        first = Axis(first.electric, first.magnetic, layer, None)
    axes = (first, *stepper.axes[1:])
    terms = parts.terms(electric=electric)
    # Whole arrays of entries have a row here; numbers, and their quotients, do not.
    targets = dict.fromkeys(term.target for term in terms)
    material = jax.tree.map(cut, {name: stepper.rows[name] for name in targets})
    memory = {}
    for term in terms:
        for end, _, _ in slabs_of(axes[term.axis], electric=electric):
            name = psi_name(term, end)
            own = [(psi_name(term, side), start) for side, start in ends.items()]
            memory[name] = [(name, 0)] if term.axis else own
    row = Stepper(parts, alone(stepper.block, 1), axes, material)
    return OfRow(row, i, memory, low, electric)


def _cut_if_array(x: Array, i: Array) -> Array:
    return cut_row(x, i) if x.ndim else x


def _layer_of_row(
    axis: Axis, ends: dict[str, int], i: Array, low: Bool[Array, ""]
) -> Slab:
    """Returns one layer for those at some ends, with the factors of row `i`."""
    slabs = {side: getattr(axis, side) for side in ends}
    found = [
        jax.tree.map(
            partial(_cut_if_array, i=i - ends[side]), (slab.electric, slab.magnetic)
        )
        for side, slab in slabs.items()
    ]
    halves = [_either(low, *rows) for rows in zip(*found, strict=True)]
    return Slab(1, next(iter(slabs.values())).layer, *halves)


def _either(low: Bool[Array, ""], *found: Rows) -> Rows:
    """Returns the rows of the one layer, or of the first of two if `low`, else second.

    The factors of a kappa that only one of them has are 0 in the other.
    """
    if len(found) == 1:
        return found[0]
    if any(rows.g is not None for rows in found):
        none = jnp.zeros_like(found[0].b)
        found = tuple(Rows(r.b, r.c, none if r.g is None else r.g) for r in found)
    return jax.tree.map(partial(jnp.where, low), *found)


def half_row(
    stepper: Stepper,
    layers: dict[str, Range],
    i: Int[Array, ""],
    carry: Both,
    *,
    electric: bool,
) -> Both:
    """Advances a row in place, and then adds what layers along the rows add.

    There is nothing beyond the block.

    Args:
        stepper: The coefficients.
        layers: From `reached_rows`.
        i: The number of the row.
        carry: Fields, and memory of the layers.
        electric: Which half.
    """
    move = partial(_moved, stepper, electric=electric)
    carry = move((), i, carry)
    if not layers:
        return carry
    inside = [(i >= first) & (i < stop) for first, stop in layers.values()]
    return only_if(reduce(or_, inside), i, partial(move, tuple(layers)), carry)


def _moved(
    stepper: Stepper,
    sides: Sequence[str],
    i: Int[Array, ""],
    carry: Both,
    *,
    electric: bool,
) -> Both:
    """Advances a row, or only adds what layers at some ends of the rows add."""
    block, (fields, psi) = stepper.block, carry
    layers_only = bool(sides)
    only = is_across if layers_only else None

    def read(i: Array) -> tuple[OfRow, Arrays, Sources]:
        row = of_row(stepper, sides, i, electric=electric, only=only)
        here = {name: cut_row(values, i) for name, values in fields.items()}
        near = _rows_beside(stepper, i, fields, electric=electric)
        return row, here, sources_of(row.own, here, electric=electric, beside=near)

    def remembered(i: Array, psi: Arrays) -> Arrays:
        row, _, sources = read(i)
        found = recursions(row.own, sources, electric=electric)
        changed = [row.remember(psi, name, grown) for name, grown in found.items()]
        return reduce(or_, changed, {})

    row, here, sources = read(i)
    kept = {name: psi[name] for places in row.memory.values() for name, _ in places}
    psi = psi | _once(block, remembered, i, kept)
    memory = {name: row.recall(psi, name) for name in row.memory}
    new, _, later = advanced(
        row.own, here, memory, sources, electric=electric, alone=True
    )
    fields = dict(fields)
    for name, values in ({} if layers_only else new).items():
        fields[name] = put_row(fields[name], values, i)
    for name, (_, *where), gain in later:
        fields[name] = add_in_row(block, fields[name], i, where, gain)
    return fields, psi


def _rows_beside(
    stepper: Stepper, i: Array, fields: Arrays, *, electric: bool
) -> Arrays:
    """Returns the rows of the sources next to a row, zeros beyond the block."""
    # No choice between rows, which would be made in every cell.
    end = last_row(stepper.block)
    at, inside = (i - 1, i > 0) if electric else (i + 1, i < end)
    at, names = jnp.clip(at, 0, end), sources_beside(stepper, electric=electric)
    return {name: cut_row(fields[name], at) * inside for name in names}


def _once(
    block: Block, change: Callable[[Array, Arrays], Arrays], i: Array, psi: Arrays
) -> Arrays:
    """Changes memory for row `i`, not to be computed again in each of its users."""
    if block.keeps_barriers:
        return lax.optimization_barrier(change(i, psi))
    # A loop of one turn, as far as the compiler knows of any number, and with all in
    # it: what does not depend on the row is computed, and stored, before the loop. It
    # counts rows: with the row in the carry of `Block.once` 3-D is a tenth slower.
    return lax.fori_loop(i, i + 1 + hidden_zero(block), change, psi)


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
    plain = dict(allow_negative_indices=False)
    old = lax.dynamic_slice(values, corner, more.shape, **plain)
    return lax.dynamic_update_slice(values, old + more, corner, **plain)


def from_beside(row: OfRow, beside: Arrays) -> Arrays:
    """Returns what the row beside a block adds to the fields of one at its end.

    As a step is linear, it may be added to one that was made without.

    Args:
        row: The row, in no layer along the rows, with the terms across them.
        beside: The sources next to it.
    """
    own, electric = row.own, row.electric
    nothing = jnp.zeros_like(next(iter(beside.values())))
    fields = dict.fromkeys(own.components.names, nothing)
    read = sources_of(own, fields, electric=electric, beside=beside)
    return advanced(own, fields, {}, read, electric=electric, alone=True)[0]


def add_to_row(fields: Arrays, i: Int[Array, ""], more: Arrays) -> Arrays:
    """Adds to fields in row `i`, in place."""
    changed = {
        name: put_row(fields[name], cut_row(fields[name], i) + values, i)
        for name, values in more.items()
    }
    return fields | changed


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


def is_across(term: CurlTerm) -> bool:
    """Whether a term is a difference of two rows."""
    return not term.axis


def sources_beside(stepper: Stepper, *, electric: bool) -> list[str]:
    """Lists the components that a half step reads from the row beside."""
    parts = stepper.components
    terms = parts.terms(electric=electric)
    return sorted({term.source for term in terms if not term.axis})


def hidden_zero(block: Block) -> Array:
    return jnp.asarray(0 if block.zero is None else block.zero, jnp.int32)


def last_row(block: Block) -> Array:
    """Returns the number of the last row, which the compiler does not know.

    It would compute a known row again where it is read, from copies of the fields.
    """
    return block.shape[0] - 1 + hidden_zero(block)


def cut_row(values: Num[Array, "*cells"], i: Int[Array, ""]) -> Num[Array, "1 *rest"]:
    # Clamped, not wrapped: a row in the layer at one end reads the outermost of the
    # other. To wrap costs a fifth of a step, and of the time to compile it.
    return lax.dynamic_slice_in_dim(values, i, 1, 0, allow_negative_indices=False)


def put_row(values: Num[Array, "*cells"], row: Num[Array, "1 *rest"], i) -> Array:
    return lax.dynamic_update_slice_in_dim(
        values, row, i, 0, allow_negative_indices=False
    )
