"""The transpose of a half step, written out: as cheap as the half step itself."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..grid import Box
from ._components import CurlTerm
from ._layers import Axis
from ._step import Arrays, Stepper, along, in_whole, psi_name, slabs_of


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
    $q = \bar\psi + t$, $\bar\psi \gets b\, q$, with $t$ the cotangent of the
    stretched difference, and $c\, q$ joins what is differenced.

    Args:
        stepper: The coefficients, on the block that is `mirrored`.
        fields: Scaled cotangents of all components.
        psi: Cotangents of the memory of the layers.
        electric: Which half step to transpose.

    Returns:
        The cotangents, those of the components that the half step reads driven.
    """
    parts, block = stepper.components, stepper.block
    terms = parts.electric_terms if electric else parts.magnetic_terms
    scales = {t: _scale(stepper.axes[t.axis], t, electric=electric) for t in terms}
    memories = {
        term: _memories(stepper, term, *scale, electric=electric)
        for term, scale in scales.items()
    }

    def recall(psi):
        return {
            one.name: one.b * (psi[one.name] + one.cut(fields[term.target]))
            for term, found in memories.items()
            for one in found
        }

    held = {one.name: psi[one.name] for found in memories.values() for one in found}
    psi, curls, later = {**psi, **block.once(recall, held)}, {}, []
    for term, found in memories.items():
        cells, (scale, metric) = block.shape[term.axis], scales[term]
        driven = fields[term.target]
        if metric is not None:
            driven = along(metric, term.axis, parts.ndim) * driven
        # The end of the block whose values the neighbour's cells read.
        end = block.end(driven, term.axis, last=not electric)
        fused = block.keeps_barriers and parts.ndim == 3 and term.axis == parts.ndim - 1
        inside = None
        for one in found:
            extra = one.c * psi[one.name]
            if one.g is not None:
                extra = extra + one.g * one.cut(fields[term.target])
            start, thick = one.start, one.cells
            end = _with_end(end, extra / scale, start, cells, term.axis, not electric)
            box = _reach(block.shape, term.axis, start, thick, electric)
            spread = _spread(extra, term.axis, box, electric)
            if fused:  # for the reason that `half_step` gives
                spread = in_whole(spread, term.axis, box[term.axis][0], cells)
                inside = spread if inside is None else inside + spread
            else:
                later.append((term.source, box, spread))
        plane = block.beyond(end, term.axis, after=electric)
        change = -scale * block.difference(
            driven, term.axis, plane, 0, cells, forward=electric
        )
        change = change if inside is None else change + inside
        name = term.source
        curls[name] = curls[name] + change if name in curls else change
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
        c: Those over `b`: with them the new memory alone is read again.
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


def _scale(axis: Axis, term: CurlTerm, *, electric: bool) -> tuple[Any, Array | None]:
    """Returns the factor of a difference, a number and a row or `None`."""
    metric = axis.electric if electric else axis.magnetic
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
        # Outside the layer both are zero. The denominator is made safe before dividing.
        c = jnp.where(b > 0, along(rows.c, term.axis, ndim) / jnp.where(b > 0, b, 1), 0)
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
    pad = [(0, 0)] * extra.ndim
    more = high - low - extra.shape[axis]
    # electric: z[i] - z[i + 1] from one cell before; magnetic: z[i - 1] - z[i].
    pad[axis] = (more, 0) if electric else (0, more)
    here = jnp.pad(extra, pad)
    pad[axis] = (0, 1) if electric else (1, 0)
    first = 1 if electric else 0
    moved = lax.slice_in_dim(jnp.pad(here, pad), first, first + high - low, axis=axis)
    return here - moved if electric else moved - here
