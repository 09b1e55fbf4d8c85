"""The transpose of a half step, written out: as cheap as the half step itself."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..grid import Box
from ._layers import Rows
from ._step import Arrays, Stepper, along, psi_name, slabs_of


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
    psi, curls, later = dict(psi), {}, []
    for term in terms:
        axis, target = stepper.axes[term.axis], fields[term.target]
        cells = block.shape[term.axis]
        metric = axis.electric if electric else axis.magnetic
        # A number waits until after the difference, which then reads the field itself.
        scale = term.sign * (metric if metric.ndim == 0 else 1)
        driven = target
        if metric.ndim:
            driven = along(metric, term.axis, parts.ndim) * target
        # The end of the block whose values the neighbour's cells read.
        end = block.end(driven, term.axis, last=not electric)
        for side, slab, rows in slabs_of(axis, electric=electric):
            start = 0 if side == "low" else cells - slab.cells
            cut = lax.slice_in_dim(driven, start, start + slab.cells, axis=term.axis)
            name = psi_name(term, side)
            b, c, g = _factors(rows, term.axis, parts.ndim)
            # Without the barrier XLA computes the product again in each of its users.
            psi[name] = lax.optimization_barrier(b * (psi[name] + scale * cut))
            extra = c * psi[name]
            if g is not None:
                extra = extra + g * (scale * cut)
            end = _with_end(end, extra / scale, start, cells, term.axis, not electric)
            box = _reach(block.shape, term.axis, start, slab.cells, electric)
            later.append((term.source, box, _spread(extra, term.axis, box, electric)))
        plane = block.beyond(end, term.axis, after=electric)
        change = -scale * block.difference(
            driven, term.axis, plane, 0, cells, forward=electric
        )
        name = term.source
        curls[name] = curls[name] + change if name in curls else change
    fields = dict(fields)
    for name, curl in curls.items():
        fields[name] = fields[name] + stepper.rows[name].drive(curl)
    for name, box, extra in later:
        gain = stepper.rows[name].drive(extra, box)
        fields[name] = block.add_here(fields[name], box, gain)
    return fields, psi


def _factors(rows: Rows, axis: int, ndim: int):
    """Returns b, c / b and g: with them the new memory alone is read again."""
    b = along(rows.b, axis, ndim)
    # Outside the layer both are zero. The denominator is made safe before dividing.
    c = jnp.where(b > 0, along(rows.c, axis, ndim) / jnp.where(b > 0, b, 1), 0)
    return b, c, None if rows.g is None else along(rows.g, axis, ndim)


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
