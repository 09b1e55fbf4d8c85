"""The transpose of a half step, written out: as cheap as the half step itself."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..grid import Box
from ._components import CurlTerm
from ._layers import Axis
from ._step import joins_last
from ._stepper import (
    Arrays,
    Stepper,
    along,
    bends_of,
    in_whole,
    psi_name,
    slabs_of,
    turns_of,
)


def transposed_half_step(
    stepper: Stepper, fields: Arrays, psi: Arrays, *, electric: bool
) -> tuple[Arrays, Arrays]:
    r"""Carries cotangents back through `half_step`, but for what a row keeps.

    A row does $f \gets (m - s) / (m + s) f + \mathrm{curl} / (m + s)$. Its cotangent
    $\bar f$ is stepped as $\bar f / (m + s)$: then the transpose of a half step has
    the form of the other half step. Where that drives H by differences of E, this adds
    to $\bar E / (m + s)$ the transposed differences of $\bar H / (m + s)$, driven
    through the same rows, and leaves the cotangents of H as they are.

    The layers' recursion $\psi \gets b \psi + c\, d$ turns into
    $\bar\psi \gets b (\bar\psi + t)$, with $t$ the cotangent of the stretched
    difference, and $c (\bar\psi + t)$ joins what is differenced. That alone is kept,
    $e = c \bar\psi / b$: by $e \gets b e + c t$ it is found and used as $\psi$ itself
    in `half_step`.

    Args:
        stepper: The coefficients, on the block that is `mirrored`.
        fields: Scaled cotangents of all components.
        psi: Cotangents of the memory of the layers, times `c / b` of the layer.
        electric: Which half step to transpose.

    Returns:
        The cotangents, those of the components that the half step reads driven.
    """
    parts, block = stepper.components, stepper.block
    terms = parts.terms(electric=electric)
    scales = {t: _scale(stepper.axes[t.axis], t, electric=electric) for t in terms}
    memories = {
        term: _memories(stepper, term, *scale, electric=electric)
        for term, scale in scales.items()
    }

    given, psi = _unbent(stepper, fields, psi, electric=electric)

    curls, later = {}, []
    for term, found in memories.items():
        cells, (scale, metric) = block.shape[term.axis], scales[term]
        driven = given[term.target]
        if metric is not None:
            driven = along(metric, term.axis, parts.ndim) * driven
        # The end of the block whose values the neighbour's cells read.
        end = block.end(driven, term.axis, last=not electric)
        fused = term.axis == parts.ndim - 1 and joins_last(fields)
        inside = None
        for one in found:
            entered = one.cut(given[term.target])
            # The barrier stands for the reason that `half_step` gives.
            psi[one.name] = lax.optimization_barrier(
                one.b * psi[one.name] + one.c * entered
            )
            extra = psi[one.name]
            if one.g is not None:
                extra = extra + one.g * entered
            start, thick = one.start, one.cells
            end = _with_end(end, extra / scale, start, cells, term.axis, not electric)
            box = _reach(block.shape, term.axis, start, thick, electric)
            spread = _spread(extra, term.axis, box, electric)
            if fused:
                spread = in_whole(spread, term.axis, box[term.axis][0], cells)
                inside = spread if inside is None else inside + spread
            else:
                radius = _radius(stepper, term)
                if radius is not None:
                    spread = radius[slice(*box[0])] * spread
                later.append((term.source, box, spread))
        plane = block.beyond(end, term.axis, after=electric)
        change = -scale * block.difference(
            driven, term.axis, plane, 0, cells, forward=electric
        )
        change = change if inside is None else change + inside
        name, radius = term.source, _radius(stepper, term)
        change = change if radius is None else radius * change
        curls[name] = curls[name] + change if name in curls else change
    for turn, row in turns_of(stepper, electric=electric):
        curls[turn.source] = curls[turn.source] + row * given[turn.target]
    fields = dict(fields)
    for name, curl in curls.items():
        fields[name] = fields[name] + stepper.rows[name].drive(curl)
    for name, box, extra in later:
        gain = stepper.rows[name].drive(extra, box)
        fields[name] = block.add_here(fields[name], box, gain)
    return fields, psi


class _Memory(NamedTuple):
    """What one slab remembers of one curl term.

    Attributes:
        name: Of its entry in psi.
        axis: Along which the slab lies at an end.
        start: Its first cell.
        cells: Its thickness.
        scale: The factor of its stretched difference.
        metric: The same along the slab, or `None`.
        b: Rows of the layer.
        c: What a difference adds to the memory.
        g: The part of the stretch without memory, or `None`.
    """

    name: str
    axis: int
    start: int
    cells: int
    scale: Any
    metric: Array | None
    b: Array
    c: Array
    g: Array | None

    def cut(self, field: Array) -> Array:
        """Returns the cotangents of the stretched difference, from those of a field."""
        stop = self.start + self.cells
        values = lax.slice_in_dim(field, self.start, stop, axis=self.axis)
        if self.metric is not None:
            values = along(self.metric, self.axis, field.ndim) * values
        return self.scale * values


def _unbent(
    stepper: Stepper, fields: Arrays, psi: Arrays, *, electric: bool
) -> tuple[Arrays, Arrays]:
    """Carries cotangents back through the stretch of whole curls."""
    fields, psi, block = dict(fields), dict(psi), stepper.block
    for bend in bends_of(stepper, electric=electric):
        start, field = bend.where[0][0], fields[bend.target]
        extra = psi[bend.memory] = lax.optimization_barrier(
            bend.b * psi[bend.memory] + bend.c * field[start:]
        )
        extra = extra if bend.g is None else extra + bend.g * field[start:]
        fields[bend.target] = field + in_whole(extra, 0, start, block.shape[0])
    return fields, psi


def _radius(stepper: Stepper, term: CurlTerm) -> Array | None:
    radius = stepper.axes[term.axis].radius(term)
    return None if radius is None else along(radius, term.axis, stepper.components.ndim)


def _scale(axis: Axis, term: CurlTerm, *, electric: bool) -> tuple[Any, Array | None]:
    """Returns the factor of a difference, a number and a row or `None`."""
    metric = axis.metric(term, electric=electric)
    # A number waits until after the difference, which then reads the field itself.
    return (term.sign * metric, None) if metric.ndim == 0 else (term.sign, metric)


def _memories(
    stepper: Stepper, term: CurlTerm, scale, metric: Array | None, *, electric: bool
) -> list[_Memory]:
    axis, ndim = stepper.axes[term.axis], stepper.components.ndim
    found = []
    for side, slab, rows in slabs_of(axis, electric=electric):
        start = 0 if side == "low" else stepper.block.shape[term.axis] - slab.cells
        row = None if metric is None else metric[start : start + slab.cells]
        b = along(rows.b, term.axis, ndim)
        c = along(rows.c, term.axis, ndim)
        g = None if rows.g is None else along(rows.g, term.axis, ndim)
        name = psi_name(term, side)
        one = _Memory(name, term.axis, start, slab.cells, scale, row, b, c, g)
        found.append(one)
    return found


def _with_end(
    end: Array, extra: Array, start: int, cells: int, axis: int, last: bool
) -> Array:
    """Adds what a slab has in the plane at the end of the block."""
    at = cells - 1 if last else 0
    if not start <= at < start + extra.shape[axis]:
        return end
    return end + lax.slice_in_dim(extra, at - start, at - start + 1, axis=axis)


def _reach(shape, axis: int, start: int, thick: int, electric: bool) -> Box:
    """Returns the cells whose differences read a slab."""
    low, high = start - electric, start + thick + (not electric)
    span = max(low, 0), min(high, shape[axis])
    return tuple(span if a == axis else (0, n) for a, n in enumerate(shape))


def _spread(extra: Array, axis: int, box: Box, electric: bool) -> Array:
    """Transposes the difference of a slab that is zero outside, on its reach."""
    low, high = box[axis]
    more = high - low - extra.shape[axis]
    # electric: z[i] - z[i + 1] from one cell before; magnetic: z[i - 1] - z[i]. Each is
    # padded from the slab itself: what two read would be made in a pass of its own.
    here, moved = ((more, 0), (more - 1, 1)) if electric else ((0, more), (1, more - 1))

    def padded(ends):
        edges = [(0, 0, 0)] * extra.ndim
        edges[axis] = (*ends, 0)
        return lax.pad(extra, jnp.zeros((), extra.dtype), edges)

    change = padded(here) - padded(moved)
    return change if electric else -change
