"""Corrections that keep full tensors with losses or poles of second order."""

from dataclasses import replace

import jax.numpy as jnp
from jaxtyping import Array

from ..grid import AXES
from ._boxes import cells_of, size_of
from ._dispersion import Response
from ._row import Row, entries_in
from ._stepper import Arrays
from ._tilt import Tilt, mean_after, mean_before


def corrected_for_losses(
    tilts: tuple[Tilt, ...],
    rows: dict[str, Row],
    responses: dict[str, tuple[Response, ...]],
    size: tuple[int, ...],
) -> list[tuple[Tilt, Arrays]]:
    r"""Corrects the entries and the inertia that are stepped for losses in tensors.

    A step needs $K = (Y^{-1} + t)^{-1}$ with the inverse permittivity
    $Y = 1 / m + \Xi$ and what losses and poles add, $t$. Made of the diagonal and of
    $\Xi$ one after the other it is $1 / (m + t) + w \Xi w$ with $w = m / (m + t)$,
    which lacks $\Xi t \Xi$: an error of first order in the time step. Other $m$ and
    $\Xi$ make both equal at each node. With $T = m t / (m + t)$, $q = m^2 / (m + t)$,
    $X = \Xi (1 + T \Xi)^{-1}$ and $p_i = 1 + q_i X_{ii}$ they are
    $m'_i = m_i - m_i^2 X_{ii} / p_i$, which is never less than before, and
    $\Xi'_{ij} = X_{ij} \sqrt{q_i q_j / (q'_i q'_j p_i p_j)}$, with $q'$ of the new $m$.
    Nothing cancels, whatever $t$ is.

    Args:
        tilts: The off-diagonal entries; the permittivity is positive with them.
        rows: The rows of the whole grid.
        responses: The poles of each component.
        size: Samples of the whole grid along each axis.

    Returns:
        For each tilt the one to step, and the inertia in its cells by component (empty
        where there are neither losses nor poles).
    """
    return [_corrected(one, rows, responses, size) for one in tilts]


def _corrected(
    tilt: Tilt,
    rows: dict[str, Row],
    responses: dict[str, tuple[Response, ...]],
    size: tuple[int, ...],
) -> tuple[Tilt, Arrays]:
    drags = {n: _drag(rows[n], responses.get(n, ()), size) for n in tilt.names}
    if all(drag is None for drag in drags.values()):
        return tilt, {}
    m = {n: _in_box(tilt, rows[n].inertia) for n in tilt.names}
    t = {
        n: jnp.zeros_like(m[n]) if drag is None else _in_box(tilt, drag)
        for n, drag in drags.items()
    }
    mean = {n: mean_before(n, m[n]) for n in tilt.names}
    q, bound = {}, {}
    for n in tilt.names:
        whole = mean[n] + mean_before(n, t[n])
        q[n], bound[n] = mean[n] ** 2 / whole, mean[n] * (mean_before(n, t[n]) / whole)
    x = _within_losses(tilt, bound)
    parts = {n: 1 + q[n] * x[2 * n[1]] for n in tilt.names}
    for n in tilt.names:
        m[n] = m[n] + mean_after(n, -(mean[n] ** 2) * x[2 * n[1]] / parts[n])
    # Of the means over both neighbours: the matrix of the step stays positive.
    new = {n: mean_before(n, m[n] * (m[n] / (m[n] + t[n]))) for n in tilt.names}
    scale = {n[1]: jnp.sqrt(q[n] / new[n] / parts[n]) for n in tilt.names}
    entries = {pair: x[pair] * scale[pair[0]] * scale[pair[1]] for pair in tilt.entries}
    own = cells_of(tilt.cells, tilt.box)
    return replace(tilt, entries=entries), {n: value[own] for n, value in m.items()}


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


def _in_box(tilt: Tilt, value: Array) -> Array:
    return jnp.broadcast_to(entries_in(value, tilt.box), size_of(tilt.box))


def _within_losses(tilt: Tilt, bound: Arrays) -> dict[str, Array]:
    """Returns the entries of X by pair of axes, `"xx"` included, from those of T."""
    nothing = jnp.zeros_like(next(iter(tilt.entries.values())))
    x, y, z = (bound.get("E" + axis, nothing) for axis in AXES)
    c, b, a = (tilt.entries.get(pair, nothing) for pair in ("xy", "xz", "yz"))
    whole = (
        1 - x * y * c * c - x * z * b * b - y * z * a * a + 2 * x * y * z * a * b * c
    )
    found = {
        "xx": 2 * y * z * a * b * c - y * c * c - z * b * b,
        "yy": 2 * x * z * a * b * c - x * c * c - z * a * a,
        "zz": 2 * x * y * a * b * c - x * b * b - y * a * a,
        "xy": c - z * a * b,
        "xz": b - y * a * c,
        "yz": a - x * b * c,
    }
    return {pair: value / whole for pair, value in found.items()}
