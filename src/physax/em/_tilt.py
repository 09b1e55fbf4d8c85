"""How a run steps media whose principal axes do not lie along the grid."""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from ..grid import AXES, Block, Box
from ..runtime import default_platform
from ._boundaries import PMC, Bloch, Boundaries, Periodic
from ._boxes import cells_of, in_block, over_cuts, size_of, to_wall
from ._off_diagonal import PAIRS, OffDiagonal
from ._row import Row, entries_in
from ._stepper import Arrays, Stepper


class Tilt(eqx.Module):
    """The off-diagonal entries of a box, made ready to step.

    Attributes:
        box: Cells of the whole grid; all of them along the axes that devices cut.
        cells: Those of them that may have entries.
        spans: For each axis whether the box spans all its cells.
        bounded: For each axis whether its first nodes have no entries at all.
        entries: By pair of axes, at the nodes of the box.
        weights: Permittivity of each electric component in the box, or one number.
        plain: Whether there are neither losses nor poles.
    """

    box: Box = eqx.field(static=True)
    cells: Box = eqx.field(static=True)
    spans: tuple[bool, ...] = eqx.field(static=True)
    bounded: tuple[bool, ...] = eqx.field(static=True)
    entries: dict[str, Array]
    weights: Arrays | None = None
    plain: bool = eqx.field(static=True, default=False)

    def here(self, block: Block) -> Box:
        """Returns the box in cells of a block."""
        return in_block(self.box, block)

    @property
    def names(self) -> tuple[str, ...]:
        """The components that it couples."""
        return tuple(
            f"E{axis}" for axis in AXES if any(axis in p for p in self.entries)
        )


def build_tilt(
    one: OffDiagonal,
    grid: tuple[int, ...],
    stored: tuple[int, ...],
    boundaries: Boundaries,
    block: Block,
) -> Tilt:
    """Makes the entries of a box ready to step.

    Args:
        one: The entries.
        grid: Cells of the grid.
        stored: The same with the nodes on magnetic walls.
        boundaries: Faces of the grid.
        block: How devices cut it.

    Returns:
        The tilt, still without weights. On a wall only pairs of components along a
        magnetic one are coupled.
    """
    cells, more = to_wall(one.box, grid, stored)
    whole = tuple(n * p for n, p in zip(block.shape, block.parts, strict=True))
    box, pad = over_cuts(cells, block)
    alone = missing_neighbours(one, grid, boundaries)
    coupled = partial(_coupled, cells, grid, boundaries)
    entries = {}
    for pair, given in one.inverse.items():
        # The simulation has refused concrete ones.
        given = jnp.where(alone[pair] & (given != 0), jnp.nan, given) * ~alone[pair]
        # All, as a step may leave out the nodes on a wall.
        given = jnp.where(jnp.isnan(given).any(), jnp.nan, given)
        entry = jnp.pad(given, more, mode="edge")
        for axis in range(len(grid)):
            keep = coupled(axis, along=AXES[axis] not in pair)
            entry = entry * keep.reshape(
                [-1 if a == axis else 1 for a in range(len(grid))]
            )
        entries[pair] = jnp.pad(entry, pad)
    spans = tuple(span == (0, n) for span, n in zip(box, whole, strict=True))
    bounded = tuple(not coupled(a, along=True)[0] for a in range(len(grid)))
    return Tilt(box, cells, spans, bounded, entries)


def _coupled(
    cells: Box,
    grid: tuple[int, ...],
    boundaries: Boundaries,
    axis: int,
    *,
    along: bool,
) -> np.ndarray:
    """Returns which nodes of a box may have entries, as far as the walls allow.

    Args:
        cells: The box.
        grid: Cells of the grid.
        boundaries: Faces of the grid.
        axis: Along which the nodes are.
        along: Whether both components lie along the walls of that axis.
    """
    faces, nodes = boundaries.axis(axis), np.arange(*cells[axis])
    keep = np.full(nodes.shape, True)
    if not isinstance(faces[0], Periodic | Bloch):
        for node, face in zip((0, grid[axis]), faces, strict=True):
            keep &= (nodes != node) | (along and isinstance(face, PMC))
    return keep


def missing_neighbours(
    one: OffDiagonal, grid: tuple[int, ...], boundaries: Boundaries
) -> dict[str, np.ndarray]:
    """Returns for each pair which nodes of a box lack a neighbour, except at walls.

    Args:
        one: The entries.
        grid: Cells of the grid.
        boundaries: Faces of the grid.
    """
    found = {}
    for pair in one.inverse:
        found[pair] = np.zeros(size_of(one.box), bool)
        for axis, (low, high) in enumerate(one.box):
            wraps = isinstance(boundaries.axis(axis)[0], Periodic | Bloch)
            joined = (low, high) == (0, grid[axis]) if wraps else low == 0
            if AXES[axis] in pair and not joined:
                np.moveaxis(found[pair], axis, 0)[0] = True
    return found


def with_weights(tilt: Tilt, inertias: Arrays, *, plain: bool) -> Tilt:
    """Returns a tilt with the permittivities of the whole grid cut to its box."""
    weights = {name: entries_in(inertias[name], tilt.box) for name in tilt.names}
    return replace(tilt, weights=weights, plain=plain)


def zero_changes(tilts: tuple[Tilt, ...], block: Block, fields: Arrays) -> list[Arrays]:
    """Returns changes of zero, like those that `coupled_half_step` returns."""
    return [
        {
            name: jnp.zeros_like(fields[name][cells_of(one.here(block))])
            for name in one.names
        }
        for one in tilts
    ]


def curl_only(stepper: Stepper, fields: Arrays) -> tuple[Stepper, Arrays]:
    """Returns coefficients and fields for an electric half step of the curls alone."""
    names = stepper.components.electric
    zeros = {name: jnp.zeros_like(fields[name]) for name in names}
    unit = Row(jnp.ones((), stepper.axes[0].electric.dtype), None).quotients()
    rows = {**stepper.rows, **dict.fromkeys(names, unit)}
    return eqx.tree_at(lambda s: s.rows, stepper, rows), {**fields, **zeros}


def coupled_half_step(
    tilts: tuple[Tilt, ...], stepper: Stepper, fields: Arrays, curls: Arrays
) -> tuple[Arrays, list[Arrays]]:
    r"""Makes an electric half step with off-diagonal coupling, given the curls.

    With $r = C - 2 s E$ it is $E \gets E + (m + s)^{-1} r + w A^T \Xi A w r$, where
    $A$ averages to the nodes and $w = m / (m + s)$: with losses, too, the energy
    cannot grow.

    Args:
        tilts: The off-diagonal entries.
        stepper: The coefficients.
        fields: Before the step.
        curls: What drives the electric fields, sources and layers included.

    Returns:
        The fields, and for each tilt the changes by the diagonal alone.
    """
    curls = lax.optimization_barrier(curls)
    new, changes = dict(fields), []
    for name, curl in curls.items():
        new[name] = stepper.rows[name].update(fields[name], curl)
    for one in tilts:
        where, push, change = one.here(stepper.block), {}, {}
        for name in one.names:
            row, rest = stepper.rows[name], curls[name][cells_of(where)]
            if row.loss is not None:
                old = fields[name][cells_of(where)]
                rest = rest - 2 * entries_in(row.loss, where) * old
            change[name] = row.drive(rest, where)
            push[name] = rest if one.plain else _weight(one, name) * change[name]
        # XLA's CPU backend vectorises a kernel with the pads of one pair, not of two.
        whole, begun = size_of(where) == stepper.block.shape, set()
        for name, pieces in coupling_terms(one, stepper.block, push):
            fused = default_platform() != "cpu" or (whole and name not in begun)
            for cells, curl in pieces:
                value = finished(one, stepper, name, cells, curl)
                new[name] = _plus(stepper.block, new[name], cells, value, fused=fused)
            begun.add(name)
        changes.append(change)
    return new, changes


def _plus(
    block: Block, field: Array, where: Box, value: Array, *, fused: bool
) -> Array:
    """Adds in some cells: in the kernel of what was added before, or in place."""
    if not fused:
        return block.add_here(field, where, value)
    spans = zip(where, field.shape, strict=True)
    return field + jnp.pad(value, [(low, cells - high) for (low, high), cells in spans])


def finished(tilt: Tilt, stepper: Stepper, name: str, where: Box, curl: Array) -> Array:
    """Returns what an averaged curl drives in some cells of the block."""
    if tilt.plain:
        return curl
    weight = entries_in(_weight(tilt, name), where, tilt.here(stepper.block))
    return weight * stepper.rows[name].drive(curl, where)


def _weight(tilt: Tilt, name: str) -> Array:
    assert tilt.weights is not None
    return tilt.weights[name]


def coupling_terms(
    tilt: Tilt, block: Block, pushes: Arrays
) -> list[tuple[str, list[tuple[Box, Array]]]]:
    """Returns what off-diagonal entries add, by a faster formula without neighbours.

    Args:
        tilt: The entries.
        block: How the box meets those of other blocks.
        pushes: What is averaged, in the box.

    Returns:
        For each kernel the name of its component, and cells of the block with values:
        of one pair, or of both where these have the same cells.
    """
    axes, here = [AXES.index(name[1]) for name in tilt.names], tilt.here(block)
    if any((block.periodic[a] and tilt.spans[a]) or block.parts[a] > 1 for a in axes):
        whole = scatter_from_nodes(tilt, block, average_to_nodes(tilt, block, pushes))
        return [(name, [(here, value)]) for name, value in whole.items()]
    # Nodes on the wall, or at the low end of the box, have no entries. Where they are
    # left out along all axes, the pairs of a component have the same cells.
    walls = [a for a, n in enumerate(block.parts) if n == 1 and tilt.bounded[a]]
    found: dict[tuple[str, Box], dict[Box, Array]] = {}
    for pair, entry in tilt.entries.items():
        for to, of in (pair, pair[::-1]):
            axis, other, push = AXES.index(to), AXES.index(of), pushes["E" + of]
            spared = [a for a in walls if a not in (axis, other)]
            area = tuple((n + (a in spared), m) for a, (n, m) in enumerate(here))
            inner = (entries_in(value, area, here) for value in (entry, push))
            sums = partial(_sums, *inner, axis, other)
            first, last = here[axis][0], entry.shape[axis] - 1
            both, end = sums(0, last) + sums(1, last + 1), sums(last, last + 1)
            cells = [(n + (a == other), m) for a, (n, m) in enumerate(area)]
            pieces = found.setdefault(("E" + to, tuple(cells)), {})
            for low, high, value in ((0, last, both), (last, last + 1, end)):
                cells[axis] = first + low, first + high
                if value.size:
                    where = tuple(cells)
                    pieces[where] = pieces.get(where, 0) + value / 4
    return [(name, list(pieces.items())) for (name, _), pieces in found.items()]


def _sums(
    entry: Array, push: Array, axis: int, other: int, low: int, high: int
) -> Array:
    """Returns entries times sums of neighbours along `other`, for some cells."""
    entry, push = (
        lax.slice_in_dim(value, low, high, axis=axis) for value in (entry, push)
    )
    near = partial(lax.slice_in_dim, axis=other)
    cells = push.shape[other]
    both = near(push, 1, cells) + near(push, 0, cells - 1)
    return near(entry, 1, cells) * both


def times_permittivity(tilt: Tilt, changes: Arrays) -> Arrays:
    """Multiplies changes by the permittivity of their component."""
    return {name: _weight(tilt, name) * change for name, change in changes.items()}


def average_to_nodes(tilt: Tilt, block: Block, pushes: Arrays) -> Arrays:
    """Averages components to the nodes, each along its own axis."""
    return {
        name: neighbour_mean(tilt.spans, block, push, name, after=False)
        for name, push in pushes.items()
    }


def scatter_from_nodes(tilt: Tilt, block: Block, nodal: Arrays) -> Arrays:
    """Multiplies by the entries and averages back to the components."""
    total: Arrays = {}
    for pair, entry in tilt.entries.items():
        for to, of in (pair, pair[::-1]):
            more = entry * nodal["E" + of]
            name = "E" + to
            total[name] = total[name] + more if name in total else more
    return {
        name: neighbour_mean(tilt.spans, block, value, name, after=True)
        for name, value in total.items()
    }


def neighbour_mean(
    spans: tuple[bool, ...], block: Block, values: Array, name: str, *, after: bool
) -> Array:
    """Returns the means of neighbours in a box along the axis of a component.

    Args:
        spans: For each axis whether the box has all its cells.
        block: How they meet those of other blocks.
        values: In the box.
        name: The component.
        after: Whether the neighbour is the next one.
    """
    axis = AXES.index(name[1])
    cells = values.shape[axis]
    low, high = (1, cells) if after else (0, cells - 1)
    pad = [(0, 0)] * values.ndim
    pad[axis] = (0, 1) if after else (1, 0)
    other = jnp.pad(lax.slice_in_dim(values, low, high, axis=axis), pad)
    if spans[axis]:
        plane = (block.after if after else block.before)(values, axis)
        if plane is not None:
            pad[axis] = (cells - 1, 0) if after else (0, cells - 1)
            other = other + jnp.pad(plane, pad)
    return (values + other) / 2


def mean_before(name: str, values: Array) -> Array:
    """Returns means at the nodes of a whole box, of samples of a component in it.

    The first node has no entries, unless the box spans a period. Along an axis that the
    grid lacks all neighbours are alike.
    """
    axis = AXES.index(name[1])
    return (values + jnp.roll(values, 1, axis)) / 2 if axis < values.ndim else values


def mean_after(name: str, values: Array) -> Array:
    """Returns means where a component is sampled, of values at the nodes."""
    axis = AXES.index(name[1])
    return (values + jnp.roll(values, -1, axis)) / 2 if axis < values.ndim else values


def stiffest(one: OffDiagonal, permittivities: Arrays) -> Arrays:
    """Returns bounds of the inverse permittivity in the rows of a box, by component.

    Args:
        one: The entries.
        permittivities: Of each electric component, of the whole grid or one number.
    """
    found = {}
    for name, value in permittivities.items():
        near = [jnp.abs(v) for pair, v in one.inverse.items() if name[1] in pair]
        if near:
            coupling = mean_after(name, jnp.asarray(sum(near)))
            found[name] = 1 / entries_in(value, one.box) + coupling
    return found


def allowed(one: OffDiagonal, permittivities: Arrays) -> Array:
    """Returns the largest factor of the entries that keeps the tensor positive.

    On the diagonal the harmonic mean of both neighbours of a node counts: with it the
    energy of any field is positive.

    Args:
        one: The entries.
        permittivities: Of each electric component, of the whole grid or one number.

    Returns:
        For each node of the box, 1 where the tensor is positive, else less.
    """
    means = {}
    for name, value in permittivities.items():
        here = jnp.broadcast_to(entries_in(value, one.box), size_of(one.box))
        means[name[1]] = mean_before(name, here)
    scaled = {
        pair: entry * jnp.sqrt(means[pair[0]] * means[pair[1]])
        for pair, entry in one.inverse.items()
    }
    nothing = jnp.zeros(size_of(one.box))
    a, b, c = (scaled.get(pair, nothing) for pair in PAIRS)
    largest = jnp.maximum(jnp.maximum(abs(a), abs(b)), abs(c))
    positive = (1 - a * a - b * b - c * c + 2 * a * b * c > 0) & (largest < 1)
    rows = jnp.maximum(jnp.maximum(abs(a) + abs(b), abs(a) + abs(c)), abs(b) + abs(c))
    return jnp.where(positive, 1, 0.99 / jnp.where(positive, 1, rows))
