"""Carries cotangents backward through the off-diagonal entries of a medium."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from ..grid import Box
from ._boxes import cells_of, common, meet
from ._cotangents import Cotangents
from ._program import Program
from ._stepper import Arrays, Stepper
from ._tape import kept_cells
from ._tape_plan import Kept, Plan
from ._tilt import (
    Tilt,
    average_to_nodes,
    finished,
    scatter_from_nodes,
    times_permittivity,
)


def tilts_back(
    program: Program,
    stepper: Stepper,
    plan: Plan,
    carry: Cotangents,
    diagonal_changes: list[Arrays],
) -> tuple[Cotangents, list[tuple[Box, Arrays]]]:
    r"""Carries cotangents backward through what tilts drive.

    A step by the diagonal alone changes the field by $\delta$; then follows
    $E \gets E + O \delta$. In the scale of the cotangents $O$ is its own transpose.

    Args:
        program: The program.
        stepper: Its coefficients, on the block that is mirrored.
        plan: What is differentiated.
        carry: The cotangents after the step.
        diagonal_changes: The changes by the diagonal alone, if the plan needs them.

    Returns:
        The cotangents of what the diagonal gave; and boxes with what is to be taken
        from those of the fields before the step.
    """
    fields, rows = dict(carry.fields), dict(carry.rows)
    sums, taken = [], []
    for i, one in enumerate(program.tilts):
        where = one.here(stepper.block)
        own = {name: fields[name][cells_of(where)] for name in one.names}
        nodal = average_to_nodes(one, stepper.block, times_permittivity(one, own))
        back = scatter_from_nodes(one, stepper.block, nodal)
        more = _finished(one, stepper, back)
        if plan.tilts:
            block = program.stepper.block
            averaged = average_to_nodes(
                one, block, times_permittivity(one, diagonal_changes[i])
            )
            curls = scatter_from_nodes(one, block, averaged)
            ahead = _finished(one, program.stepper, curls)
            sums.append(
                _added(
                    carry.tilts[i],
                    one,
                    nodal,
                    averaged,
                    (own, diagonal_changes[i]),
                    (back, curls),
                )
            )
            for name in one.names:
                if name in rows:
                    product = jnp.real(more[name] * ahead[name])
                    rows[name] = _corrected(plan.rows[name], rows[name], where, product)
        for name, value in more.items():
            fields[name] = stepper.block.add_here(fields[name], where, value)
        taken.append((where, more))
    carry = eqx.tree_at(
        lambda c: (c.fields, c.rows, c.tilts), carry, (fields, rows, tuple(sums))
    )
    seen = kept_cells(plan, {name: fields[name] for name in carry.seen})
    return eqx.tree_at(lambda c: c.seen, carry, seen), taken


def _finished(tilt: Tilt, stepper: Stepper, curls: Arrays) -> Arrays:
    """Returns what averaged curls in the whole box drive."""
    where = tilt.here(stepper.block)
    return {
        name: finished(tilt, stepper, name, where, curl) for name, curl in curls.items()
    }


def _added(
    sums: dict[str, Arrays],
    tilt: Tilt,
    nodal: Arrays,
    averaged: Arrays,
    fields: tuple[Arrays, Arrays],
    curls: tuple[Arrays, Arrays],
) -> dict[str, Arrays]:
    """Adds what a step gives for the entries and the weights of a tilt."""
    (own, change), (back, ahead) = fields, curls
    entries, weights = {}, {}
    for pair, total in sums["entries"].items():
        one, other = ("E" + axis for axis in pair)
        product = nodal[one] * averaged[other] + nodal[other] * averaged[one]
        entries[pair] = total + jnp.real(product)
    for name, total in sums["weights"].items():
        product = own[name] * ahead[name] + change[name] * back[name]
        weights[name] = total + jnp.real(product)
    return {"entries": entries, "weights": weights}


def _corrected(
    kept: tuple[Kept, ...], sums: tuple, where: Box, product: Array
) -> tuple[tuple[Array, ...], ...]:
    """Adds to the sums for a row what a tilt has changed the field by.

    The tape holds the change of the field, of which a part is not the diagonal's.
    """
    out = []
    for one, totals in zip(kept, sums, strict=True):
        both = common(one.box, where)
        if not meet(one.box, where):
            out.append(totals)
            continue
        inner, outer = cells_of(both, one.box), cells_of(both, where)
        out.append(tuple(total.at[inner].add(product[outer]) for total in totals))
    return tuple(out)
