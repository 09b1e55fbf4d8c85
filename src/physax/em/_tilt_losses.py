"""Tensors with losses or poles: what makes a run of both one of second order."""

from dataclasses import replace
from functools import partial

import jax.numpy as jnp
from jaxtyping import Array

from ..grid import AXES
from ._boxes import cells_of, size_of
from ._dispersion import Response
from ._off_diagonal import PAIRS
from ._row import Row, entries_in
from ._stepper import Arrays
from ._tilt import Tilt


Tensor = dict[str, Array]
"""Entries of a symmetric tensor by pair of axes, `"xx"` included."""


def eased(
    tilts: tuple[Tilt, ...],
    rows: dict[str, Row],
    responses: dict[str, tuple[Response, ...]],
    size: tuple[int, ...],
) -> tuple[tuple[Tilt, ...], dict[str, Row]]:
    r"""Changes what `lean` steps so that it meets losses within tensors.

    A step wants $K = (Y^{-1} + t)^{-1}$ with the inverse permittivity
    $Y = 1 / m + \Xi$ and what losses and poles add, $t$. Made of the diagonal and of
    $\Xi$ one after the other it is $1 / (m + t) + w \Xi w$ with $w = m / (m + t)$,
    which lacks $\Xi t \Xi$: an error of first order in the time step. The $m$ and
    $\Xi$ returned make the second expression equal to the first at each node:
    $m = 1 / K_{ii} - t$, which is never less than before, and
    $\Xi_{ij} = K_{ij} / (w_i w_j)$.

    Args:
        tilts: The entries beside the diagonal.
        rows: The rows of the whole grid.
        responses: The poles of each component.
        size: Samples of the whole grid along each axis.

    Returns:
        Both, changed where there are losses or poles.
    """
    rows, new = dict(rows), []
    for one in tilts:
        drags = {n: _drag(rows[n], responses.get(n, ()), size) for n in one.names}
        if all(drag is None for drag in drags.values()):
            new.append(one)
            continue
        cut = partial(_in_box, one)
        t = {n: cut(0.0 if drag is None else drag) for n, drag in drags.items()}
        m = {n: cut(rows[n].inertia) for n in one.names}
        k = _driven(
            one, *({n: _before(n, x) for n, x in own.items()} for own in (m, t))
        )
        for n in one.names:
            node = 1 / k[2 * n[1]] - _before(n, t[n])
            more = jnp.maximum(node - _before(n, m[n]), 0)
            m[n] = m[n] + _after(n, more)
            whole = jnp.broadcast_to(rows[n].inertia, size)
            inertia = whole.at[cells_of(one.box)].add(_after(n, more))
            rows[n] = Row(inertia, rows[n].loss)
        # Of the means over both neighbours the tensor stays as positive as K is.
        q = {n[1]: _before(n, m[n] ** 2 / (m[n] + t[n])) for n in one.names}
        entries = {
            pair: k[pair] / jnp.sqrt(k[2 * a] * k[2 * b] * q[a] * q[b])
            for pair in one.entries
            for a, b in [pair]
        }
        new.append(replace(one, entries=entries))
    return tuple(new), rows


def _drag(
    row: Row, responses: tuple[Response, ...], size: tuple[int, ...]
) -> Array | None:
    """Returns what losses and poles add to the inertia of a component."""
    total = row.loss
    for one in responses:
        base = jnp.zeros((), one.fraction.dtype) if total is None else total
        whole = jnp.broadcast_to(base, size)
        total = whole.at[cells_of(one.box)].add(one.inertia())
    return total


def _in_box(tilt: Tilt, value) -> Array:
    value = jnp.asarray(value, next(iter(tilt.entries.values())).dtype)
    return jnp.broadcast_to(entries_in(value, tilt.box), size_of(tilt.box))


def _before(name: str, values: Array) -> Array:
    """Returns means at the nodes of samples along the axis of their component."""
    axis = AXES.index(name[1])
    return (values + jnp.roll(values, 1, axis)) / 2 if axis < values.ndim else values


def _after(name: str, values: Array) -> Array:
    """Returns means where a component is sampled, of values at the nodes."""
    axis = AXES.index(name[1])
    return (values + jnp.roll(values, -1, axis)) / 2 if axis < values.ndim else values


def _driven(tilt: Tilt, m: Arrays, t: Arrays) -> Tensor:
    """Returns K at the nodes; components that are not coupled stand for themselves."""
    nothing = jnp.zeros(size_of(tilt.box))
    inverse = {2 * a: 1 / m["E" + a] if "E" + a in m else nothing + 1 for a in AXES}
    inverse |= {pair: tilt.entries.get(pair, nothing) for pair in PAIRS}
    whole = _inverted(inverse)
    return _inverted(whole | {2 * n[1]: whole[2 * n[1]] + x for n, x in t.items()})


def _inverted(tensor: Tensor) -> Tensor:
    """Returns the inverse of a symmetric tensor, by its adjugate."""
    x, y, z = (tensor[2 * a] for a in AXES)
    c, b, a = (tensor[pair] for pair in ("xy", "xz", "yz"))
    minors = {
        "xx": y * z - a * a,
        "yy": x * z - b * b,
        "zz": x * y - c * c,
        "xy": a * b - c * z,
        "xz": a * c - b * y,
        "yz": b * c - a * x,
    }
    whole = x * minors["xx"] + c * minors["xy"] + b * minors["xz"]
    return {pair: minor / whole for pair, minor in minors.items()}
