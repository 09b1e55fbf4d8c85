"""Arranges the sums of a backward pass like what is differentiated."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..grid import Box
from ._boxes import cells_of
from ._dispersion import Response
from ._program import Patch, Program
from ._row import Row
from ._tape_plan import Kept, Plan
from ._tilt import Tilt


def scattered(
    plan: Plan,
    draft: Program,
    theta: Program,
    cells: tuple[dict, dict, tuple],
    currents: Any,
) -> Program:
    """Arranges the sums of all devices like what is differentiated.

    Args:
        plan: The plan.
        draft: The program, its design regions apart.
        theta: What is differentiated, `None` elsewhere.
        cells: The sums for the rows, for the poles and for the tilts.
        currents: Those for electric and magnetic currents and incident waves.

    Returns:
        The cotangents of `theta`.
    """
    rows, strengths, tilts = cells
    new_rows = dict(theta.stepper.rows)
    new_responses = dict(theta.responses)
    new_patches = dict(theta.patches)
    for name, kept in plan.rows.items():
        base, patches = theta.stepper.rows[name], theta.patches.get(name, ())
        sums = [_named(one, found) for one, found in zip(kept, rows[name], strict=True)]
        whole = base.inertia is not None or base.loss is not None
        if whole:
            new_rows[name] = _of_base(draft, name, base, sums[0])
        if name in new_patches:
            new_patches[name] = _of_patches(draft, patches, kept, sums, whole)
        if name in new_responses:
            new_responses[name] = tuple(
                asked
                if at is None
                else _of_response(one, asked, strengths[name][i], sums[at][0])
                for i, (at, one, asked) in enumerate(
                    zip(
                        plan.poles.get(name, ()),
                        draft.responses.get(name, ()),
                        theta.responses.get(name, ()),
                        strict=True,
                    )
                )
            )
    for one, found in zip(draft.tilts[: len(tilts)], tilts, strict=True):
        for name, more in found["weights"].items():
            patches = new_patches.get(name, ())
            if any(patch.box == one.cells for patch in patches):
                new_patches[name] = tuple(_plus_weights(p, one, more) for p in patches)
            else:
                new_rows[name] = _with_weights(new_rows[name], one.box, more)
    electric, magnetic, waves = currents
    pick = partial(jax.tree.map, _like, is_leaf=lambda x: x is None)
    new_tilts = (
        tuple(
            eqx.tree_at(lambda t: t.entries, own, pick(own.entries, found["entries"]))
            for own, found in zip(theta.tilts, tilts, strict=True)
        )
        if tilts
        else theta.tilts
    )
    return eqx.tree_at(
        lambda p: (
            p.stepper.rows,
            p.patches,
            p.responses,
            p.tilts,
            p.electric,
            p.magnetic,
            p.lines,
        ),
        theta,
        (
            new_rows,
            new_patches,
            new_responses,
            new_tilts,
            [pick(one, electric.get(i, one)) for i, one in enumerate(theta.electric)],
            [pick(one, magnetic.get(i, one)) for i, one in enumerate(theta.magnetic)],
            {n: pick(one, waves.get(n, one)) for n, one in theta.lines.items()},
        ),
    )


def _with_weights(row: Row, box: Box, more: Array) -> Row:
    """Adds what tilts give to the cotangents of the inertia of a row, if asked for."""
    if row.inertia is None:
        return row
    total = (
        row.inertia.at[cells_of(box)].add(more)
        if row.inertia.ndim
        else row.inertia + jnp.sum(more)
    )
    return eqx.tree_at(lambda r: r.inertia, row, total)


def _plus_weights(patch: Patch, tilt: Tilt, more: Array) -> Patch:
    """Adds what a tilt gives to the cotangents of its own patch, if asked for."""
    if patch.box != tilt.cells or patch.inertia is None:
        return patch
    total = patch.inertia + more[cells_of(tilt.cells, tilt.box)]
    return eqx.tree_at(lambda p: p.inertia, patch, total)


def _like(asked, found):
    return None if asked is None else found


def _named(one: Kept, sums: tuple) -> tuple:
    """Returns the sums for inertia and loss of one box, `None` where not asked for."""
    left = iter(sums)
    return next(left) if one.change else None, next(left) if one.sum else None


def _of_patches(
    draft: Program,
    patches: tuple[Patch, ...],
    kept: Sequence[Kept],
    sums: Sequence[tuple],
    whole: bool,
) -> tuple[Patch, ...]:
    """Returns the cotangents of patches: their own boxes' sums, or those of the row."""
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
    return tuple(made)


def _within(draft: Program, outer: Box, inner: Box, values: Array) -> Array:
    """Cuts the cells of a region out of the sums of a box."""
    parts = draft.stepper.block.parts
    index = [
        slice(low - start, high - start) if count == 1 else slice(low, high)
        for (low, high), (start, _), count in zip(inner, outer, parts, strict=True)
    ]
    return values[tuple(index)]


def _of_response(
    one: Response, asked: Response, given: tuple[Array, ...], inertia: Array
) -> Response:
    """Returns the cotangents of the fraction and the amplitudes of poles.

    Args:
        one: The poles.
        asked: What is differentiated, `None` elsewhere.
        given: For each pole the cotangent of what it drives, over amplitude.
        inertia: The cotangent of the inertia of the row.
    """
    each = [
        total + pole.inertia * inertia
        for pole, total in zip(one.poles, given, strict=True)
    ]
    poles = []
    for own, total in zip(asked.poles, each, strict=True):
        more = None if own.amplitude is None else jnp.sum(one.fraction * total)
        poles.append(
            eqx.tree_at(lambda p: p.amplitude, own, more, is_leaf=lambda x: x is None)
        )
    amplitudes = [pole.amplitude for pole in one.poles]
    total = sum(a * x for a, x in zip(amplitudes, each, strict=True))
    fraction = None if asked.fraction is None else total
    return eqx.tree_at(
        lambda r: (r.fraction, r.poles),
        asked,
        (fraction, tuple(poles)),
        is_leaf=lambda x: x is None,
    )


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
