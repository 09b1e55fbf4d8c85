"""The Yee step: one function for every dimension, boundary, medium and layout."""

from collections.abc import Callable, Mapping
from functools import partial

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..grid import Block, Box
from ..runtime import default_platform
from ._components import CurlTerm
from ._dispersion import Responses
from ._layers import Slab
from ._row import entries_in
from ._stepper import (
    Arrays,
    Bend,
    Stepper,
    along,
    bends_of,
    in_whole,
    psi_name,
    slabs_of,
    turns_of,
)


Sources = dict[CurlTerm, tuple[Array, Array | None]]
"""A field for each term of a curl, and its plane next to the block."""

Drives = dict[str, tuple[Array, ...]]
"""What each response adds to the curl of a component, over the fraction."""


# Bytes of all fields of a block, up to which pads in a kernel do not slow it down.
_CACHED = 1 << 24


def joins_last(fields: Arrays) -> bool:
    """Whether slabs along the last axis are fused into the update on a CPU, too."""
    size = sum(field.size * field.dtype.itemsize for field in fields.values())
    return next(iter(fields.values())).ndim == 3 and size < _CACHED


def _in_slab(
    stepper: Stepper,
    bend: Bend,
    read: Sources,
    fields: Arrays,
    later: list,
    *,
    electric: bool,
) -> tuple[Array, list[tuple[Box, Array]]]:
    """Returns a curl in the slab around the axis, and what to add in its corners.

    Were it cut from the curl of all cells, XLA would write that to memory first. What
    layers along z add would, padded, keep XLA from vectorising the whole.
    """
    block, ((start, stop), (_, other)) = stepper.block, bend.where
    total = jnp.zeros((), bend.b.dtype)
    for term, (source, plane) in read.items():
        if term.target != bend.target:
            continue
        metric = stepper.axes[term.axis].metric(term, electric=electric)
        if term.axis:
            edge = None if plane is None else plane[start:]
            part = (source[start:], 1, edge, 0, other)
        else:
            part, metric = (source, 0, plane, start, stop), metric[start:]
        d = block.difference(*part, forward=not electric)
        total = total + term.sign * along(metric, term.axis, 2) * d
    for turn, row in turns_of(stepper, electric=electric):
        if turn.target == bend.target:
            total = total + row[start:] * fields[turn.source][start:]
    corners = []
    for name, ((low, _), span), extra in later:
        if name != bend.target:
            continue
        inside = extra[start - low :]
        if span == (0, other):
            total = total + inside
        else:
            corners.append((((0, stop - start), span), inside))
    return total, corners


def _added(
    block: Block,
    values: Array,
    factor: Array,
    total: Array,
    corners: list[tuple[Box, Array]],
) -> Array:
    """Returns values in a slab with a row times what `_in_slab` gives added."""
    values = values + factor * total
    for where, more in corners:
        values = block.add_here(values, where, factor * more)
    return values


def half_step(
    stepper: Stepper,
    fields: Arrays,
    psi: Arrays,
    *,
    electric: bool,
) -> tuple[Arrays, Arrays]:
    """Advances the electric or the magnetic fields by one step.

    The whole grid gets the plain update. What the layers add is computed in the slabs
    alone. On a GPU it is padded and fused into the update, as to launch a kernel for
    each slab takes longer. On a CPU this is done along the last axis of three in blocks
    that a cache may hold; along the others, whose slabs are contiguous in memory, and
    in larger blocks it is added in place afterwards. Each of these choices was the
    fastest measured.

    Args:
        stepper: The coefficients.
        fields: All components on this block.
        psi: Memory of the layers.
        electric: Which half.

    Returns:
        The fields and the memory, with the updated entries replaced.
    """
    read = sources_of(stepper, fields, electric=electric)
    # Without the barrier XLA computes a recursion again in each of its users.
    psi = psi | {
        name: lax.optimization_barrier(grown(psi[name]))
        for name, grown in recursions(stepper, read, electric=electric).items()
    }
    new, bent, later = advanced(
        stepper, fields, psi, read, electric=electric, alone=False
    )
    fields = fields | new
    for name, where, gain in later:
        fields[name] = stepper.block.add_here(fields[name], where, gain)
    return fields, psi | bent


def sources_of(
    stepper: Stepper,
    fields: Arrays,
    *,
    electric: bool,
    beside: Mapping[str, Array | None] | None = None,
) -> Sources:
    """Returns what the terms of a curl are differences of.

    Args:
        stepper: The coefficients.
        fields: All components on this block.
        electric: Which half.
        beside: For a block of one row, the rows of the sources next to it along the
            first axis.
    """
    parts, block = stepper.components, stepper.block
    beyond, found = block.before if electric else block.after, {}
    for term in parts.terms(electric=electric):
        source = fields[term.source]
        radius = stepper.axes[term.axis].radius(term)
        if radius is not None:
            source = along(radius, term.axis, parts.ndim) * source
        if beside is None or term.axis:
            plane = beyond(source, term.axis)
        else:
            plane = beside[term.source]
        found[term] = source, plane
    return found


def recursions(
    stepper: Stepper, read: Sources, *, electric: bool
) -> dict[str, Callable[[Array], Array]]:
    """Returns what makes the memory of each slab that of the next step.

    Args:
        stepper: The coefficients.
        read: From `sources_of`.
        electric: Which half.
    """
    found = {}
    for term in read:
        for side, slab, rows in slabs_of(stepper.axes[term.axis], electric=electric):
            d = _difference(stepper, read, term, side, slab, electric=electric)
            b, c = (
                along(v, term.axis, stepper.components.ndim) for v in (rows.b, rows.c)
            )
            found[psi_name(term, side)] = lambda old, b=b, c=c, d=d: b * old + c * d()
    return found


def _start(stepper: Stepper, axis: int, side: str, slab: Slab) -> int:
    """Returns the first cell of a slab."""
    return 0 if side == "low" else stepper.block.shape[axis] - slab.cells


def _difference(
    stepper: Stepper,
    read: Sources,
    term: CurlTerm,
    side: str,
    slab: Slab,
    *,
    electric: bool,
) -> Callable[[], Array]:
    """Returns what computes the plain difference of a curl term in a slab."""
    (source, plane), axis = read[term], term.axis
    start = _start(stepper, axis, side, slab)
    return partial(
        stepper.block.difference,
        *(source, axis, plane, start, start + slab.cells),
        forward=not electric,
    )


def advanced(
    stepper: Stepper,
    fields: Arrays,
    psi: Arrays,
    read: Sources,
    *,
    electric: bool,
    alone: bool,
) -> tuple[Arrays, Arrays, list[tuple[str, Box, Array]]]:
    """Computes half a step.

    Args:
        stepper: The coefficients.
        fields: All components on this block.
        psi: Memory of the slabs, already of this step; around an axis, of the last.
        read: From `sources_of`.
        electric: Which half.
        alone: Whether the block is a row of a larger one, whose slabs are added in
            place afterwards, too.

    Returns:
        The updated fields without what is to be added in slabs, the memory of the layer
        around an axis, and these additions, each with its component and box.
    """
    parts, block = stepper.components, stepper.block
    ndim, last = parts.ndim, parts.ndim - 1
    # Around an axis, what is added later takes part in the curls of slabs.
    launches = default_platform() != "cpu" and stepper.axes[0].radial is None
    joins = joins_last(fields)
    curls, later, bent = {}, [], {}
    for term, (source, plane) in read.items():
        axis, cells = stepper.axes[term.axis], block.shape[term.axis]
        metric = along(axis.metric(term, electric=electric), term.axis, ndim)
        curl = block.difference(
            source, term.axis, plane, 0, cells, forward=not electric
        )
        fused = not alone and (launches or (joins and term.axis == last))
        inside = None
        for side, slab, rows in slabs_of(axis, electric=electric):
            start = _start(stepper, term.axis, side, slab)
            extra = psi[psi_name(term, side)]
            if rows.g is not None:
                d = _difference(stepper, read, term, side, slab, electric=electric)
                extra = extra + along(rows.g, term.axis, ndim) * d()
            if fused:
                extra = in_whole(extra, term.axis, start, cells)
                inside = extra if inside is None else inside + extra
            else:
                where = tuple(
                    (start, start + slab.cells) if a == term.axis else (0, n)
                    for a, n in enumerate(block.shape)
                )
                scaled = entries_in(metric, where) * extra
                later.append((term.target, where, term.sign * scaled))
        curl = metric * (curl if inside is None else curl + inside)
        curl = curl if term.sign > 0 else -curl
        curls[term.target] = curls[term.target] + curl if term.target in curls else curl
    for turn, row in turns_of(stepper, electric=electric):
        curls[turn.target] = curls[turn.target] + row * fields[turn.source]
    for bend in bends_of(stepper, electric=electric):
        curl = _in_slab(stepper, bend, read, fields, later, electric=electric)
        old = psi[bend.memory]
        extra = lax.optimization_barrier(_added(block, bend.b * old, bend.c, *curl))
        bent[bend.memory] = extra
        extra = extra if bend.g is None else _added(block, extra, bend.g, *curl)
        later.append((bend.target, bend.where, extra))
    rows = stepper.rows
    new = {name: rows[name].update(fields[name], curl) for name, curl in curls.items()}
    more = [(name, at, rows[name].drive(extra, at)) for name, at, extra in later]
    return new, bent, more


def add_polarisation(
    stepper: Stepper, responses: Responses, fields: Arrays, drives: Drives
) -> Arrays:
    """Adds what poles drive to the electric fields of a step."""
    fields = dict(fields)
    for name, many in responses.items():
        for one, drive in zip(many, drives[name], strict=True):
            box = one.here(stepper.block)
            # A row is linear; XLA takes this part out of the loop of the steps.
            share = stepper.rows[name].drive(one.fraction, box)
            more = share * drive
            fields[name] = stepper.block.add_here(fields[name], box, more)
    return fields
