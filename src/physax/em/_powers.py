"""How a run steps media that answer with powers of the field."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..grid import Block, Box
from ._boxes import cells_of, in_block, over_cuts, to_wall
from ._nonlinear import Nonlinearity
from ._stepper import Arrays, Stepper
from ._tilt import neighbour_mean


# Of Newton's method from the field that a linear step gives: each doubles the digits.
_TURNS = 3
# The largest last correction, over the largest field.
_LAST = 1e-3


class Powers(eqx.Module):
    """Nonlinear cells, made ready to step.

    Attributes:
        box: Cells of the whole grid; all of them along the axes that devices cut.
        reach: The same and their neighbours, whose fields enter averages.
        spans: For each axis whether the reach has all its cells.
        chi2: By component, in the cells of the box.
        chi3: Likewise.
    """

    box: Box = eqx.field(static=True)
    reach: Box = eqx.field(static=True)
    spans: tuple[bool, ...] = eqx.field(static=True)
    chi2: Arrays
    chi3: Arrays

    def inner(self) -> tuple[slice, ...]:
        """Returns the cells of the box as an index of those of its reach."""
        return cells_of(self.box, self.reach)


def build_powers(
    one: Nonlinearity,
    names: tuple[str, ...],
    grid: tuple[int, ...],
    stored: tuple[int, ...],
    block: Block,
) -> Powers:
    """Makes the cells of a box ready to step."""
    cells, more = to_wall(one.box, grid, stored)
    whole = tuple(n * p for n, p in zip(block.shape, block.parts, strict=True))
    box, pad = over_cuts(cells, block)

    def padded(prop):
        return {
            name: jnp.pad(jnp.pad(one.at(prop, name), more, mode="edge"), pad)
            for name in names
        }

    reach = []
    for (low, high), n, wraps in zip(box, whole, block.periodic, strict=True):
        near = (max(low - 1, 0), min(high + 1, n))
        # The neighbour of a cell at the border may be at the other one.
        reach.append((0, n) if wraps and (low == 0 or high == n) else near)
    spans = tuple(span == (0, n) for span, n in zip(reach, whole, strict=True))
    return Powers(box, tuple(reach), spans, padded("chi2"), padded("chi3"))


def held(
    many: tuple[Powers, ...], block: Block, fields: Arrays
) -> tuple[Arrays, list[Arrays]]:
    """Returns the fields, and copies of those in nonlinear cells, before a step."""
    old = [
        {name: fields[name][cells_of(in_block(one.reach, block))] for name in one.chi2}
        for one in many
    ]
    return lax.optimization_barrier((fields, old))


def bent(
    many: tuple[Powers, ...], stepper: Stepper, fields: Arrays, old: list[Arrays]
) -> Arrays:
    r"""Corrects fields that a linear half step has given.

    With $a = m + s$ and $N(E) = \chi_2 E^2 + \chi_3 |E|^2 E$ the field solves
    $a E + N(E) = a E' + N(E_0)$, with $E'$ of the linear step and $E_0$ from before it.
    The squares of the other components are those of $E'$ and $E_0$, averaged.

    Args:
        many: The nonlinear cells.
        stepper: The coefficients.
        fields: After the linear half step.
        old: What `held` has kept.

    Returns:
        The fields.
    """
    fields, block = dict(fields), stepper.block
    for one, before in zip(many, old, strict=True):
        where, reach = (in_block(box, block) for box in (one.box, one.reach))
        linear = {name: fields[name][cells_of(reach)] for name in before}
        linear = lax.optimization_barrier(linear)
        inner = one.inner()
        for name in linear:
            start = linear[name][inner]
            chi2, chi3 = one.chi2[name], one.chi3[name]

            def power(e, others, chi2=chi2, chi3=chi3):
                return (chi2 + chi3 * e) * e * e + chi3 * others * e

            others, earlier = (
                jnp.broadcast_to(_others(one, block, own, name), own[name].shape)[inner]
                for own in (linear, before)
            )
            target = power(before[name][inner], earlier)
            drive = stepper.rows[name].drive
            e = start
            for _ in range(_TURNS):
                gap = e - start + drive(power(e, others) - target, where)
                slope = (2 * chi2 + 3 * chi3 * e) * e + chi3 * others
                change = gap / (1 + drive(slope, where))
                e = e - change
            # Where the answer of the medium outgrows its linear one by far.
            e = jnp.where(jnp.abs(change) <= _LAST * jnp.max(jnp.abs(e)), e, jnp.nan)
            place = tuple(
                span if parts == 1 else None
                for span, parts in zip(where, block.parts, strict=True)
            )
            fields[name] = block.put(fields[name], place, e)
    return fields


def _others(one: Powers, block: Block, fields: Arrays, name: str) -> Array | float:
    """Returns the sum of squares of the other components where one is sampled."""
    total = 0.0
    for other, field in fields.items():
        if other == name:
            continue
        square = field * field
        for component, after in ((other, False), (name, True)):
            square = neighbour_mean(one.spans, block, square, component, after=after)
        total = total + square
    return total
