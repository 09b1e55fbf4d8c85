"""Permittivity at interfaces, averaged by what is continuous across them."""

from collections.abc import Sequence
from functools import reduce
from operator import add, itemgetter, mul

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from .._checks import check, traced
from ..grid import AXES, Box, Grid
from ._boxes import as_box, cells_of, check_inside
from ._combinations import covered_by_each
from ._off_diagonal import PAIRS, OffDiagonal
from ._overlap import Intervals, control_volumes, safe_sqrt
from ._shapes import AbstractShape
from ._tilt import allowed
from ._visible import visible


# Entries below this part of the largest are rounding.
_NOISE = 1e-6
# Those below this part of the diagonal do no harm beside poles.
_OBLIQUE = 1e-2


Tensor = list[list[Array]]
"""Three rows of three entries, each a number or one value for each sample."""


def _times(one: Tensor, other: Tensor) -> Tensor:
    return [
        [sum(one[i][k] * other[k][j] for k in range(3)) for j in range(3)]  # pyright: ignore[reportReturnType]
        for i in range(3)
    ]


def _turned(frame: Tensor, tensor: Tensor) -> Tensor:
    """Returns a tensor in the axes that are the rows of a frame."""
    across = [list(column) for column in zip(*frame, strict=True)]
    return _times(_times(frame, tensor), across)


def _joint(tensor: Tensor) -> Tensor:
    r"""Relates what is continuous across an interface to what jumps, by a tensor.

    With the normal along the first axis $(-E_1, D_2, D_3) = \tau\, (D_1, E_2, E_3)$.
    """
    first = tensor[0][0]
    rows = [[-1 / first, tensor[0][1] / first, tensor[0][2] / first]]
    for i in (1, 2):
        ratio = tensor[i][0] / first
        rest = [tensor[i][j] - ratio * tensor[0][j] for j in (1, 2)]
        rows.append([ratio, *rest])
    return rows


def _inverse_of_joint(tau: Tensor) -> Tensor:
    """Returns the inverse of the tensor that has given a joint one."""
    # E2 and E3 follow from D2 and D3 at given D1.
    (a, b), (c, d) = tau[1][1:], tau[2][1:]
    det = a * d - b * c
    back = [[d / det, -b / det], [-c / det, a / det]]
    side = [tau[1][0], tau[2][0]]
    to = [-(back[i][0] * side[0] + back[i][1] * side[1]) for i in range(2)]
    first = -tau[0][0] - (tau[0][1] * to[0] + tau[0][2] * to[1])
    return [[first, to[0], to[1]], [to[0], *back[0]], [to[1], *back[1]]]


def _frame_of(normal: list[Array]) -> Tensor:
    """Completes unit vectors to axes (Duff and others, JCGT 6, 1, 2017)."""
    x, y, z = normal
    sign = jnp.where(z < 0, -1.0, 1.0).astype(x.dtype)
    a = -1 / (sign + z)
    b = x * y * a
    return [
        normal,
        [1 + sign * x * x * a, sign * b, -sign * x],
        [b, sign + y * y * a, -y],
    ]


def mean_of(parts: Sequence[Array], own: Sequence[Array]) -> Array:
    """Returns the mean of values over cells, by the part that each fills."""
    return reduce(add, map(mul, parts, own))


def _of_layers(
    parts: Sequence[Array], values: Sequence[Array], normal: list[Array], sharp: Array
) -> Tensor:
    """Returns the inverse permittivity of isotropic media by their parts of a cell."""
    along = 1 / mean_of(parts, values)
    across = mean_of(parts, [1 / value for value in values])
    # Between parallel faces in one cell no normal is known: the mean.
    gap = jnp.where(sharp, across - along, 0)
    return [
        [gap * x * y + (along if i == j else 0) for j, y in enumerate(normal)]
        for i, x in enumerate(normal)
    ]


def _of_crystals(
    parts: Sequence[Array], tensors: Sequence[Array], normal: list[Array]
) -> Tensor:
    """Returns the inverse permittivity of any media by their parts of a cell.

    A loop over the media: the formulas are long to compile.
    """
    frame = _frame_of(normal)

    @jax.checkpoint
    def add_one(tau: Tensor, medium):
        part, tensor = medium
        joint = _joint(_turned(frame, [list(row) for row in tensor]))
        return jax.tree.map(lambda x, y: x + part * y, tau, joint), None

    media = jnp.stack(parts), jnp.stack(tensors)
    shape = jnp.broadcast_shapes(media[0].shape[1:], normal[0].shape)
    none = jnp.zeros(shape, jnp.result_type(*media, *normal))
    tau, _ = lax.scan(add_one, [[none] * 3] * 3, media)
    across = [list(column) for column in zip(*frame, strict=True)]
    return _turned(across, _inverse_of_joint(tau))


@eqx.filter_jit
def _inverses(
    shapes: Sequence[AbstractShape],
    sets: Sequence[Sequence[Array]],
    samples: list[list[Intervals | None]],
    ndim: int,
) -> list[list[Tensor]]:
    """Returns inverse permittivities around samples, averaged over their cells.

    One loop over the kinds of samples: the formulas are long to compile. The normals
    are those of the first set of values; more than one are for isotropic media.
    """
    values = sets[0]
    tensors = [_as_tensor(value) for value in values]
    traces = [jnp.diagonal(tensor).mean() for tensor in tensors]

    def one(cells) -> list[Tensor]:
        def mean(offsets: Array):
            moved = [
                None if c is None else Intervals(c.position + x, c.below, c.above)
                for c, x in zip(cells, offsets, strict=True)
            ]
            found = covered_by_each(shapes, moved)
            ground, seen = visible(lax.optimization_barrier(found))
            parts = [ground, *seen]
            return mean_of(parts, traces), parts

        # Gradients of the order of 1 keep float32 from overflow.
        sizes = [c.below + c.above for c in cells if c is not None]
        width = jnp.min(jnp.stack([jnp.min(size) for size in sizes]))
        axes = jnp.eye(3, dtype=width.dtype)[:ndim] * width
        at = jnp.zeros(3, width.dtype)

        def slope(axis):
            _, change, parts = jax.jvp(mean, (at,), (axis,), has_aux=True)
            return change, parts

        slopes, parts = lax.map(slope, axes)
        parts = [part[0] for part in parts]
        square = jnp.sum(slopes * slopes, axis=0)
        length = safe_sqrt(square)
        # Below is rounding, as where an outline touches a corner of the cell.
        size = reduce(jnp.maximum, sizes)
        rounding = jnp.finfo(length.dtype).eps * mean_of(parts, traces)
        sharp = length > 64 * rounding * width / size
        normal = [x / jnp.where(sharp, length, 1) for x in slopes]
        normal += [jnp.zeros_like(length)] * (3 - ndim)
        normal[0] = jnp.where(sharp, normal[0], 1)
        if all(value.ndim == 0 for value in values):
            return [_of_layers(parts, own, normal, sharp) for own in sets]
        return [_of_crystals(parts, tensors, normal)]

    stacked = jax.tree.map(lambda *x: jnp.stack(x), *samples)
    found = lax.map(one, stacked)
    return [jax.tree.map(itemgetter(i), found) for i in range(len(samples))]


def _as_tensor(value: Array) -> Array:
    return value if value.ndim == 2 else jnp.where(jnp.eye(3, dtype=bool), value, 0)


def polarised(
    shapes: Sequence[AbstractShape],
    values: Sequence[Array],
    grid: Grid,
    names: Sequence[str],
    off_diagonal_box: Box | None = None,
    excess: Sequence[Array] | None = None,
) -> tuple[dict[str, Array], tuple[OffDiagonal, ...], dict[str, Array]]:
    r"""Averages permittivities by what is continuous across interfaces.

    The inverse permittivity of a cell between isotropic media is
    $n n^T \langle 1/\epsilon \rangle + (1 - n n^T) / \langle \epsilon \rangle$ with
    the normal $n$ of the interface in it: the gradient of the mean permittivity by
    where the cell lies. Between others the components of E along and of D across the
    interface are taken as the same on both sides. References: Farjadpour and others,
    Opt. Lett. 31, 2972 (2006); Kottke, Farjadpour and Johnson, Phys. Rev. E 77, 036611
    (2008).

    Args:
        shapes: What to paint, in order.
        values: Permittivity of the background and of each shape: a number, three along
            the axes, or a tensor.
        grid: The grid.
        names: Electric components.
        off_diagonal_box: Where there may be off-diagonal entries; found if `None`.
        excess: What poles add to each, where all of the permittivity is averaged.

    Returns:
        The permittivity of each component without poles, the off-diagonal entries, and
        with `excess` what poles add to each component: nothing next to off-diagonal
        entries, where their currents are not in the right cells.

    Raises:
        ArgumentError: If an entry outside `off_diagonal_box` is known.
    """
    staggers = [
        tuple(0.5 if axis == name[1] else 0.0 for axis in grid.axes) for name in names
    ]
    pairs = [pair for pair in PAIRS if all("E" + axis in names for axis in pair)]
    if pairs:
        staggers.append((0.0,) * grid.ndim)
    samples = [control_volumes(grid, stagger) for stagger in staggers]
    whole = values if excess is None else list(map(add, values, excess))
    sets = [whole] if excess is None else [whole, values]
    inverses = _inverses(shapes, sets, samples, grid.ndim)
    nodes = inverses[-1][0]
    entries = {
        pair: jnp.broadcast_to(
            nodes[AXES.index(pair[0])][AXES.index(pair[1])], grid.shape
        )
        for pair in pairs
    }
    found, shares = {}, {}
    for name, (tensor, *rest) in zip(names, inverses, strict=False):
        k = AXES.index(name[1])
        found[name] = jnp.broadcast_to(1 / tensor[k][k], grid.shape)
        for still in rest:
            near = _next_to(name, entries, found[name])
            apart = jnp.broadcast_to(1 / still[k][k], grid.shape)
            # With one normal for both no less than rounding below 0.
            shares[name] = jnp.where(near, 0, jnp.maximum(found[name] - apart, 0))
            found[name] = jnp.where(near, found[name], apart)
    if not pairs:
        return found, (), shares
    if off_diagonal_box is None:
        box, entries = _smallest(entries, grid.shape)
    else:
        check_inside(box := as_box(off_diagonal_box), grid.shape, "`off_diagonal_box`")
        entries = _confined(entries, box)
    if box is None:
        return found, (), shares
    cut = {pair: entry[cells_of(box)] for pair, entry in entries.items()}
    factor = allowed(OffDiagonal(box, cut), found)
    off_diagonal = OffDiagonal(box, {pair: x * factor for pair, x in cut.items()})
    return found, (off_diagonal,), shares


def _next_to(name: str, entries: dict[str, Array], permittivity: Array) -> Array:
    """Returns which samples of a component lie beside nodes with entries of it."""
    near = jnp.zeros(permittivity.shape, bool)
    for pair, entry in entries.items():
        if name[1] in pair:
            there = jnp.abs(entry)
            there = jnp.maximum(there, jnp.roll(there, -1, AXES.index(name[1])))
            near = near | (there * permittivity > _OBLIQUE)
    return near


def _confined(entries: dict[str, Array], box: Box) -> dict[str, Array]:
    """Refuses entries outside of a box or on its first nodes."""
    inner = tuple(slice(low + (low > 0), high) for low, high in box)
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(x)) for x in entries.values()]))
    out = {}
    for pair, entry in entries.items():
        inside = np.zeros(entry.shape, bool)
        inside[inner] = True
        entry = jnp.where(jnp.abs(entry) > _NOISE * largest, entry, 0)
        out[pair] = check(
            entry,
            jnp.asarray(inside) | (entry == 0),
            "`off_diagonal_box` must hold all off-diagonal entries of the inverse "
            "permittivity, and one more cell before them along each axis: an entry "
            "outside must be 0",
        )
        # Of what is cut off, too.
        out[pair] = out[pair] + 0 * jnp.sum(jnp.where(inside, 0, out[pair]))
    return out


def _smallest(
    entries: dict[str, Array], shape: tuple[int, ...]
) -> tuple[Box | None, dict[str, Array]]:
    """Returns the smallest box that holds entries and their neighbours, and both."""
    whole = tuple((0, cells) for cells in shape)
    if traced(entries):
        return whole, entries
    host = {pair: np.asarray(entry) for pair, entry in entries.items()}
    least = _NOISE * max(np.max(np.abs(one)) for one in host.values())
    here = {pair: np.abs(one) > least for pair, one in host.items()}
    where = np.argwhere(np.any(list(here.values()), axis=0))
    if not where.size:
        return None, entries
    box = tuple(
        # A node at the border of the grid may have its neighbour at the other end.
        (0, cells) if low == 0 else (int(low) - 1, int(high) + 1)
        for low, high, cells in zip(
            where.min(axis=0), where.max(axis=0), shape, strict=True
        )
    )
    return box, {pair: jnp.where(here[pair], x, 0) for pair, x in entries.items()}
