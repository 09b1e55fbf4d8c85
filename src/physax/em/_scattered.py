"""Arranges the sums of a way back like what is differentiated."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..grid import Box
from ._medium import cells_of
from ._program import Patch, Program
from ._step import Row
from ._tape_plan import Kept, Plan


def scattered(
    plan: Plan, draft: Program, theta: Program, rows: dict, currents: Any
) -> Program:
    """Arranges the sums of all devices like what is differentiated.

    Args:
        plan: The plan.
        draft: The program, its design regions apart.
        theta: What is differentiated, `None` elsewhere.
        rows: The sums for the rows.
        currents: Those for electric and magnetic currents and incident waves.

    Returns:
        The cotangents of `theta`.
    """
    new_rows = dict(theta.stepper.rows)
    new_patches = dict(theta.patches)
    for name, kept in plan.rows.items():
        base, patches = theta.stepper.rows[name], theta.patches.get(name, ())
        sums = [_named(one, found) for one, found in zip(kept, rows[name], strict=True)]
        whole = base.inertia is not None or base.loss is not None
        if whole:
            new_rows[name] = _of_base(draft, name, base, sums[0])
        order, made = iter(zip(kept, sums, strict=True)), []
        for patch in patches:
            if patch.inertia is None and patch.loss is None:
                made.append(patch)
                continue
            one, found = (kept[0], sums[0]) if whole else next(order)
            cut = partial(_within, draft, one.box, patch.box)
            made.append(
                Patch(
                    patch.box,
                    None if patch.inertia is None else cut(found[0]),
                    None if patch.loss is None else cut(found[1]),
                )
            )
        if name in new_patches:
            new_patches[name] = tuple(made)
    electric, magnetic, waves = currents
    pick = partial(jax.tree.map, _like, is_leaf=lambda x: x is None)
    return eqx.tree_at(
        lambda p: (p.stepper.rows, p.patches, p.electric, p.magnetic, p.lines),
        theta,
        (
            new_rows,
            new_patches,
            [pick(one, electric.get(i, one)) for i, one in enumerate(theta.electric)],
            [pick(one, magnetic.get(i, one)) for i, one in enumerate(theta.magnetic)],
            {n: pick(one, waves.get(n, one)) for n, one in theta.lines.items()},
        ),
    )


def _like(asked, found):
    return None if asked is None else found


def _named(one: Kept, sums: tuple) -> tuple:
    """Returns the sums for inertia and loss of one box, `None` where not asked for."""
    left = iter(sums)
    return next(left) if one.change else None, next(left) if one.sum else None


def _within(draft: Program, outer: Box, inner: Box, values: Array) -> Array:
    """Cuts the cells of a region out of the sums of a box."""
    parts = draft.stepper.block.parts
    index = [
        slice(low - start, high - start) if count == 1 else slice(low, high)
        for (low, high), (start, _), count in zip(inner, outer, parts, strict=True)
    ]
    return values[tuple(index)]


def _of_base(draft: Program, name: str, base: Row, sums: tuple) -> Row:
    """Returns the cotangents of a row; regions hide what lies under them."""
    found = []
    for key, total in zip(("inertia", "loss"), sums, strict=True):
        asked = getattr(base, key)
        if asked is None:
            found.append(None)
            continue
        for patch in draft.patches.get(name, ()):
            if getattr(patch, key) is not None:
                total = total.at[cells_of(patch.box)].set(0)
        found.append(total if asked.ndim else jnp.sum(total))
    # Not a new row: its entries are checked, and here one may be missing.
    return eqx.tree_at(
        lambda r: (r.inertia, r.loss), base, tuple(found), is_leaf=lambda x: x is None
    )
