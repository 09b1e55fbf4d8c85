"""How much of a cell an interval, a ball or a polygon covers, in closed form.

Every formula is differentiable in the shape and in the cells, and gives exactly 0
outside and 1 inside, also in float32.
"""

from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from ..grid import Grid


class Intervals(eqx.Module):
    """Neighbouring cells along one axis, each around a sample that it belongs to.

    The extents are kept beside the position rather than as edges: the difference of two
    float32 edges a thousand cells away from the origin is good to 1e-4 of a cell only.

    Attributes:
        position: Where the samples lie, in metres.
        below: How far each cell reaches below its sample, in metres.
        above: How far each cell reaches above its sample, in metres.
    """

    position: Float[Array, "..."]
    below: Float[Array, "..."]
    above: Float[Array, "..."]


@partial(jax.jit, static_argnames="stagger", inline=True)
def control_volumes(grid: Grid, stagger: tuple[float, ...]) -> list[Intervals | None]:
    """Returns the cells around samples; None for an axis that the grid lacks."""
    cells: list[Intervals | None] = [None] * 3
    for axis in range(grid.ndim):
        half = grid.cell_widths(axis) / 2
        # The cell of a node reaches from the centre before it to the centre after it.
        before = half if stagger[axis] else jnp.concatenate([half[:1], half[:-1]])
        shape = [1] * grid.ndim
        shape[axis] = grid.shape[axis]
        parts = (grid.coordinates(axis, stagger[axis]), before, half)
        cells[axis] = Intervals(*(part.reshape(shape) for part in parts))
    return cells


def limited(fraction: Float[Array, "*cells"]) -> Float[Array, "*cells"]:
    """Removes the rounding below 0 and above 1 and keeps the gradient as it is."""
    # A plain clip would halve the gradient wherever the fraction is exactly 0 or 1.
    excess = jnp.clip(fraction, 0, 1) - fraction
    return fraction + jax.lax.stop_gradient(excess)


def safe_sqrt(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Returns the root, 0 for negative numbers, with gradient 0 where it is 0."""
    # Not `where(x > 0, x, 1)`: a compiled program may compute x twice and round it
    # differently, and would then take the root of a negative number.
    tiny = jnp.finfo(x.dtype).tiny
    return jnp.where(x > tiny, jnp.sqrt(jnp.maximum(x, tiny)), 0)


def on_border(place: Float[Array, "..."], tiny: ArrayLike) -> Float[Array, "..."]:
    """Moves cell coordinates that are nearly whole there and keeps the gradient.

    Rounding must not decide on which side of a border a point is.
    """
    off = jnp.round(place) - place
    return place + jax.lax.stop_gradient(jnp.where(jnp.abs(off) < tiny, off, 0))


@jax.custom_jvp
def clipped(
    x: Float[Array, "..."], low: ArrayLike, high: ArrayLike, near: ArrayLike
) -> Float[Array, "..."]:
    """Clips `x`; next to a limit the derivative is the mean of those on both sides.

    Of an end on the border of two cells rounding would choose the side in each, and
    both would count its derivative, or none.

    Args:
        x: What to clip.
        low: The lower limit.
        high: The upper one.
        near: What counts as next to a limit, the same for both cells.
    """
    return jnp.clip(x, low, high)


@clipped.defjvp
def _clipped_jvp(primals, tangents):
    x, low, high, near = primals

    def beyond(distance):
        return ((distance > near).astype(x.dtype) + (distance > -near)) / 2

    under, over = beyond(low - x), beyond(x - high)
    dx, dlow, dhigh, _ = tangents
    moved = (1 - under - over) * dx + under * dlow + over * dhigh
    return clipped(x, low, high, near), moved


def ends_inside(
    cells: Intervals, low: Float[Array, "..."], high: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Ends of the part of each cell between two bounds, as seen from its sample."""
    near = _rounding(cells)
    start, stop = (
        clipped(end - cells.position, -cells.below, cells.above, near)
        for end in (low, high)
    )
    return start, stop


def _rounding(cells: Intervals) -> Float[Array, ""]:
    """Returns a length above the rounding of a place in the cells."""
    largest = jnp.max(jnp.abs(cells.position) + cells.below + cells.above)
    return 8 * jnp.finfo(largest.dtype).eps * largest


def interval_fraction(
    cells: Intervals, low: Float[Array, "..."], high: Float[Array, "..."]
) -> Float[Array, "..."]:
    """Fraction of each cell between `low` and `high`, which may be infinite."""
    start, stop = ends_inside(cells, low, high)
    return (stop - start) / (cells.below + cells.above)


def ball_fraction(
    cells: Sequence[Intervals],
    centre: Sequence[Float[Array, ""]],
    radius_squared: Float[Array, "..."],
) -> Float[Array, "..."]:
    """Fraction of each cell inside a ball of as many dimensions as there are axes.

    Args:
        cells: The cells along each of at most two axes, in arrays that broadcast
            against each other.
        centre: Centre of the ball along each axis, in metres.
        radius_squared: Square of the radius, which may differ from cell to cell; not
            positive: an empty ball.

    Returns:
        The fraction of length (one axis) or area (two). Without an axis, 1 if the ball
        exists and 0 if not.
    """
    if not cells:
        return jnp.where(radius_squared >= 0, 1.0, 0.0).astype(radius_squared.dtype)
    radius = safe_sqrt(radius_squared)
    if len(cells) == 1:
        return interval_fraction(cells[0], centre[0] - radius, centre[0] + radius)
    return _disc_fraction(cells[0], cells[1], centre[0], centre[1], radius)


def _disc_fraction(x: Intervals, y: Intervals, centre_x, centre_y, radius):
    """Fraction of each rectangular cell inside a disc."""
    x_low, x_high = (x.position - centre_x) - x.below, (x.position - centre_x) + x.above
    y_low, y_high = (y.position - centre_y) - y.below, (y.position - centre_y) + y.above
    # The part in each quadrant, folded onto the first; an empty part counts 0.
    columns = [(x_low, x_high), (-x_high, -x_low)]
    rows = [(y_low, y_high), (-y_high, -y_low)]
    near = jnp.maximum(_rounding(x), _rounding(y))
    area = sum(
        _quarter_disc_area(
            *(
                clipped(edge, jnp.zeros_like(radius), radius, near)
                for edge in (*column, *row)
            ),
            radius,
            near,
        )
        for column in columns
        for row in rows
    )
    reach_x = jnp.maximum(jnp.abs(x_low), jnp.abs(x_high))
    reach_y = jnp.maximum(jnp.abs(y_low), jnp.abs(y_high))
    inside = reach_x**2 + reach_y**2 <= radius**2
    fraction = area / _width(x, x_low, x_high) / _width(y, y_low, y_high)
    return jnp.where(inside, 1, limited(fraction))


def _width(cells: Intervals, low, high):
    """Widths, with the rounding of the edges and without derivatives by their place.

    These cancel, and float32 holds no third power of the area of a cell, by which they
    would divide.
    """
    width = cells.below + cells.above
    return width + jax.lax.stop_gradient((high - low) - width)


@jax.custom_jvp
def _quarter_disc_area(left, right, bottom, top, radius, near):
    """Area of a rectangle in the first quadrant inside a disc around the origin."""
    start, stop, first, last = _arc_ends(left, right, bottom, top, radius, near)
    full = (top - bottom) * (start - left)
    trapezoid = (stop - start) * ((first + last) / 2 - bottom)
    angle, excess = _angle(stop - start, first - last, radius)
    del angle
    return full + trapezoid + radius**2 / 2 * excess


@_quarter_disc_area.defjvp
def _quarter_disc_area_jvp(primals, tangents):
    # A border that moves sweeps its length (Leibniz). Differentiating the formula gives
    # the same as a sum of terms that cancel and grow without bound where a border of
    # the cell touches the disc.
    left, _, bottom, _, radius, _ = primals
    start, stop, first, last = _arc_ends(*primals)
    angle, _ = _angle(stop - start, first - last, radius)
    swept = (bottom - first, last - bottom, left - stop, start - left, radius * angle)
    moved = sum(length * t for length, t in zip(swept, tangents[:5], strict=True))
    return _quarter_disc_area(*primals), moved


def _arc_ends(left, right, bottom, top, radius, near):
    """Where the arc enters and leaves a rectangle: start, stop and the heights there.

    Left of the start the rectangle is full, right of the stop empty, and between them
    the arc, falling from the first height to the last, is the upper border.
    """

    def arc(distance):
        # Half the chord that an edge cuts off; of one that touches the disc the
        # derivative has no limit, and rounding would decide on its size.
        inside = radius - distance
        inside = jnp.where(inside < near, jax.lax.stop_gradient(inside), inside)
        return safe_sqrt(inside * (radius + distance))

    start, stop = (clipped(arc(edge), left, right, near) for edge in (top, bottom))
    first, last = (clipped(arc(edge), bottom, top, near) for edge in (left, right))
    return start, stop, first, last


def _angle(run, fall, radius):
    r"""Angle $\theta$ of an arc over a chord, and $\theta - \sin\theta$."""
    # An empty disc has no arc, and any other radius gives it the angle 0.
    chord = safe_sqrt(run**2 + fall**2) / jnp.where(radius > 0, radius, 1)
    half_sine = jnp.clip(chord / 2, 0, 0.75)
    angle = 2 * jnp.arcsin(half_sine)
    # Where the angle and its sine cancel, by the series in w = sin^2(angle / 2).
    w = half_sine**2
    series = half_sine * w * 4 / 3 * (1 + w * (3 / 10 + w * (9 / 56 + w * (5 / 48))))
    exact = angle - 2 * half_sine * jnp.sqrt(1 - w)
    return angle, jnp.where(w < 0.005, series, exact)


_EDGES_AT_ONCE = 64


def polygon_fraction(
    x: Intervals, y: Intervals, edges: Float[Array, "edges 4"]
) -> Float[Array, "nx ny"]:
    """Fraction of each rectangular cell inside closed outlines, exactly.

    Each edge is cut where it crosses a cell border. A piece then lies in one cell and
    covers what is below it: a part of that cell and all cells further down. Summed
    with the sign of its direction around the outline, what is outside cancels. The
    work grows as edges x (nx + ny) + nx x ny.

    Args:
        x: The cells along the first axis, which must touch each other.
        y: The cells along the second axis, likewise.
        edges: Start (x, y) and end (x, y) of each edge of the outlines. Those that run
            against the direction of most of the area are holes.

    Returns:
        The fractions.
    """
    u, v = _CellCoordinate(x), _CellCoordinate(y)
    # Scaled to cells, so that no square of a length leaves float32's range.
    start_u, start_v, stop_u, stop_v = edges.T
    edges = jnp.stack(
        [u.scaled(start_u), v.scaled(start_v), u.scaled(stop_u), v.scaled(stop_v)], 1
    )
    # Clockwise, the upper border runs towards +x and counts positive.
    twice_area = jnp.sum((edges[:, 2] - edges[:, 0]) * (edges[:, 3] + edges[:, 1]))
    # Edges without length, which cover nothing, fill the last block.
    edges = jnp.pad(edges, ((0, -edges.shape[0] % _EDGES_AT_ONCE), (0, 0)))

    @jax.checkpoint
    def cut(block):
        return jax.vmap(lambda edge: _pieces(u, v, edge))(block)

    def add(carry, block):
        inside, above = carry
        column, row, width, height = cut(block)
        inside = inside.at[column, row].add(width * height)
        return (inside, above.at[column, row].add(width)), None

    empty = jnp.zeros((u.cells, v.cells), edges.dtype)
    blocks = edges.reshape(-1, _EDGES_AT_ONCE, 4)
    (inside, above), _ = jax.lax.scan(add, (empty, empty), blocks)
    # A piece covers the cells below its own, hence the sum over all rows above.
    covered = jnp.cumsum(above[:, ::-1], axis=1)[:, ::-1] - above
    return limited((inside + covered) * jnp.sign(twice_area))


class _CellCoordinate:
    """Maps a scaled position to a cell coordinate, whole at the borders of cells."""

    def __init__(self, cells: Intervals):
        position, below = cells.position.ravel(), cells.below.ravel()
        last = position[-1:] + cells.above.ravel()[-1:]
        borders = jnp.concatenate([position - below, last])
        self.cells = position.size
        self._origin = borders[0]
        self._unit = (borders[-1] - borders[0]) / self.cells
        self.borders = self.scaled(borders)

    def scaled(self, position):
        return (position - self._origin) / self._unit

    def __call__(self, scaled):
        cell = jnp.searchsorted(jax.lax.stop_gradient(self.borders), scaled) - 1
        cell = jnp.clip(cell, 0, self.cells - 1)
        low, high = self.borders[cell], self.borders[cell + 1]
        # What is beyond the grid is moved to its border: it covers the same cells.
        place = jnp.clip(cell + (scaled - low) / (high - low), 0, self.cells)
        return on_border(place, 4 * jnp.finfo(place.dtype).eps * self.cells)

    def passed(self, scaled):
        """Returns for each border whether a position is not below it."""
        whole = jnp.arange(self.cells + 1, dtype=scaled.dtype)
        tiny = 4 * jnp.finfo(scaled.dtype).eps * self.cells
        # The first one, too, on which lies whatever is moved in from beyond.
        return (self(scaled) >= whole) & (scaled > self.borders[0] - tiny)


def _pieces(u: _CellCoordinate, v: _CellCoordinate, edge: Float[Array, "4"]):
    """Cuts an edge at the cell borders: cell, signed width and mean height of each."""
    start, stop = edge[:2], edge[2:]
    step = stop - start
    tiny = jnp.finfo(edge.dtype).eps * max(u.cells, v.cells)
    crosses = jnp.abs(step) > tiny

    # A corner on a border belongs to the cell after it, for both of its edges: they
    # move it by opposite amounts, which cancel in the same cell only.
    whole_u = jnp.arange(u.cells + 1, dtype=edge.dtype)
    whole_v = jnp.arange(v.cells + 1, dtype=edge.dtype)
    before_u, after_u = u.passed(start[0]), u.passed(stop[0])
    before_v, after_v = v.passed(start[1]), v.passed(stop[1])
    cut_u, cut_v = before_u != after_u, before_v != after_v

    def crossings(axis, coordinate, cut):
        along = jnp.where(crosses[axis], step[axis], 1)
        t = (coordinate.borders - start[axis]) / along
        return jnp.where(cut, limited(t), 0)

    t_u, t_v = crossings(0, u, cut_u), crossings(1, v, cut_v)
    t = jnp.concatenate([t_u, t_v, jnp.array([0, 1], edge.dtype)])
    point = start + t[:, None] * step
    at_u, at_v = u(point[:, 0]), v(point[:, 1])
    # On a border the coordinate is known exactly, and the stop must be the very start
    # of the next edge. Where there is no crossing, the start of the edge stands in.
    on_u, on_v = slice(0, t_u.size), slice(t_u.size, t_u.size + t_v.size)
    at_u = at_u.at[on_u].set(jnp.where(cut_u, whole_u, at_u[on_u]))
    at_v = at_v.at[on_v].set(jnp.where(cut_v, whole_v, at_v[on_v]))
    at_u, at_v = at_u.at[-1].set(u(stop[0])), at_v.at[-1].set(v(stop[1]))
    # The start comes before a crossing at it.
    cut = jnp.concatenate([cut_u, cut_v, jnp.array([False, True])])
    order = jnp.argsort(jnp.where(cut, jax.lax.stop_gradient(t), -1))
    at_u, at_v = at_u[order], at_v[order]
    # Counted, because rounding must not decide in which cell a piece without length is:
    # it may have a derivative, which another piece of that cell cancels.
    column = _cells_passed(before_u, after_u, order, 0)
    row = _cells_passed(before_v, after_v, order, t_u.size)
    height = (at_v[:-1] + at_v[1:]) / 2 - row
    return column, row, at_u[1:] - at_u[:-1], height


def _cells_passed(before, after, order, first: int):
    """The cell of each piece of an edge along one axis.

    Args:
        before: For each border, whether the start of the edge is not below it.
        after: The same of its stop.
        order: The points along the edge, of which this axis' crossings come one after
            the other.
        first: Which of them is the first.
    """
    crossing = jnp.zeros(order.shape, int)
    crossing = crossing.at[first : first + before.size].set(
        after.astype(int) - before.astype(int)
    )
    cell = jnp.sum(before) - 1 + jnp.cumsum(crossing[order])[:-1]
    return jnp.clip(cell, 0, before.size - 2)
