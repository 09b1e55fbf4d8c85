"""The Yee step: one function for every dimension, boundary, medium and layout."""

from collections.abc import Callable, Mapping
from functools import partial
from operator import mul
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Num

from ..grid import Block, Box
from ..runtime import default_platform
from ._components import Components, CurlTerm, TurnTerm
from ._layers import Axis, Rows, Slab
from ._row import Row, entries_in


Arrays = dict[str, Num[Array, "..."]]

Sources = dict[CurlTerm, tuple[Array, Array | None]]
"""A field for each term of a curl, and its plane next to the block."""

# Bytes of all fields of a block, up to which pads in a kernel do not slow it down.
_CACHED = 1 << 24


def joins_last(fields: Arrays) -> bool:
    """Whether slabs along the last axis are fused into the update on a CPU, too."""
    size = sum(field.size * field.dtype.itemsize for field in fields.values())
    return next(iter(fields.values())).ndim == 3 and size < _CACHED


class Stepper(eqx.Module):
    r"""The coefficients of a step on one block of the grid.

    Fields are E in V/m and $\eta_0 H$, so that both are of one size. One step does

    $$\mu_r \partial_t (\eta_0 H) = -c \nabla \times E, \qquad
      \epsilon_r \partial_t E = c \nabla \times (\eta_0 H)$$

    with central differences; E is known at whole, H at half steps. Reference: Taflove
    and Hagness, *Computational Electrodynamics*, 3rd edition (2005), chapters 3 and 7.

    Attributes:
        components: Which components exist.
        block: How this block meets its neighbours.
        axes: Metrics and absorbing layers of each axis.
        rows: The material rows, by component.
    """

    components: Components = eqx.field(static=True)
    block: Block
    axes: tuple[Axis, ...]
    rows: dict[str, Row]


def along(row: Array, axis: int, ndim: int) -> Array:
    """Shapes a row to vary along one axis."""
    if row.ndim == 0:
        return row
    return row.reshape([-1 if a == axis else 1 for a in range(ndim)])


def in_whole(slab: Array, axis: int, start: int, cells: int) -> Array:
    """Returns a slab from cell `start` on among zeros, `cells` long along its axis."""
    pad = [(0, 0)] * slab.ndim
    pad[axis] = start, cells - start - slab.shape[axis]
    return jnp.pad(slab, pad)


def psi_name(term: CurlTerm, side: str) -> str:
    """Names the memory of one curl term in one slab."""
    return f"{term.target}_{'xyz'[term.axis]}_{side}"


def bend_name(component: str) -> str:
    """Names the memory of the whole curl of a component in the layer around an axis."""
    return f"{component}_bend"


def slabs_of(axis: Axis, *, electric: bool) -> list[tuple[str, Slab, Rows]]:
    """Lists the slabs of an axis with the rows of the fields that are updated."""
    slabs = (("low", axis.low), ("high", axis.high))
    return [
        (side, slab, slab.electric if electric else slab.magnetic)
        for side, slab in slabs
        if slab is not None
    ]


def turns_of(stepper: Stepper, *, electric: bool) -> list[tuple[TurnTerm, Array]]:
    """Lists the derivatives by the azimuth with their factors."""
    parts, radial = stepper.components, stepper.axes[0].radial
    if radial is None:
        return []
    return [
        (turn, turn.factor * along(radial.turns[turn.target], 0, parts.ndim))
        for turn in (parts.electric_turns if electric else parts.magnetic_turns)
    ]


class Bend(NamedTuple):
    """How the layer around the axis stretches the whole curl of one component.

    Attributes:
        target: The component.
        memory: Name of the memory.
        where: The cells of the slab in each block.
        b: Rows of the recursion.
        c: The same.
        g: The same, or `None`.
    """

    target: str
    memory: str
    where: Box
    b: Array
    c: Array
    g: Array | None


def bends_of(stepper: Stepper, *, electric: bool) -> list[Bend]:
    """Lists the whole curls that a layer around the axis stretches."""
    parts, axis, block = stepper.components, stepper.axes[0], stepper.block
    if axis.radial is None or axis.high is None:
        return []
    cells, other = block.shape
    where = ((cells - axis.high.cells, cells), (0, other))
    found = []
    for name in parts.electric if electric else parts.magnetic:
        rows = axis.radial.layer[name]
        b, c = (along(row, 0, 2) for row in (rows.b, rows.c))
        g = None if rows.g is None else along(rows.g, 0, 2)
        found.append(Bend(name, bend_name(name), where, b, c, g))
    return found


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


def zero_psi(stepper: Stepper, dtype) -> Arrays:
    """Returns the memory of all layers of the whole grid, at rest."""
    psi = {}
    block, parts = stepper.block, stepper.components
    shape = tuple(map(mul, block.shape, block.parts))
    for electric, terms in (
        (True, parts.electric_terms),
        (False, parts.magnetic_terms),
    ):
        for term in terms:
            for side, slab, _ in slabs_of(stepper.axes[term.axis], electric=electric):
                size = list(shape)
                size[term.axis] = slab.cells * block.parts[term.axis]
                psi[psi_name(term, side)] = jnp.zeros(size, dtype)
        for bend in bends_of(stepper, electric=electric):
            low, high = bend.where[0]
            cells = (high - low) * block.parts[0]
            psi[bend.memory] = jnp.zeros((cells, *shape[1:]), dtype)
    return psi


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
