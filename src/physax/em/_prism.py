"""Prisms with sloped sides, as etching leaves them."""

import math
from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float

from .._checks import ArgumentError, check, traced
from ..grid import AXES
from ._combinations import AbstractShape
from ._outlines import check_outlines, following, in_outlines
from ._sections import is_line, stacked
from ._shape_fields import (
    around_prism,
    as_number,
    as_vertices,
    check_axis,
    check_outline_counts,
    upper_end,
)


# Between the normals of two edges, one plus the cosine below which a corner is a spike.
_SPIKE = 1e-3


def as_sidewall(x: ArrayLike) -> Float[Array, ""]:
    """Returns the angle between sides and an axis in radians."""
    x = as_number(x, "sidewall")
    steep = jnp.abs(x) < math.pi / 2
    return check(x, steep, "`sidewall` must lie in (-pi / 2, pi / 2) radians")


class Prism(AbstractShape):
    r"""A prism with sloped sides over a polygon, as etching leaves it.

    At the height `drawn_at` its section is the polygon; a height $h$ above it, each
    edge has moved inward by $h \tan(\mathrm{sidewall})$ along its normal. No edge may
    vanish on the way, and no wall around a hole; where numbers are traced, only the
    edges are looked at.

    Attributes:
        vertices: Corners in metres, as in `Polygon`.
        low: Lower end of the prism along the axis, in metres.
        high: Upper end in metres.
        sidewall: Angle between the sides and the axis, in radians, in
            $(-\pi / 2, \pi / 2)$. Positive where the prism becomes narrower upward.
        drawn_at: Height of the section that is the polygon in metres, `low` if not
            given.
        axis: The axis of the prism, "x", "y" or "z".
        outlines: As in `Polygon`.

    Raises:
        ArgumentError: If the polygon is not sound, `low` and `high` are not finite and
            in order, `sidewall` is out of its range, an edge vanishes between the ends
            or the section there crosses itself, or `axis` is not an axis.
    """

    vertices: Float[Array, "vertices 2"]
    low: Float[Array, ""]
    high: Float[Array, ""]
    sidewall: Float[Array, ""]
    drawn_at: Float[Array, ""]
    axis: str = eqx.field(static=True, default="z")
    outlines: tuple[int, ...] | None = eqx.field(static=True, default=None)

    def __init__(
        self,
        vertices: ArrayLike | Sequence,
        low: ArrayLike,
        high: ArrayLike,
        *,
        sidewall: ArrayLike = 0.0,
        drawn_at: ArrayLike | None = None,
        axis: str = "z",
        outlines: tuple[int, ...] | None = None,
    ):
        self.vertices = as_vertices(vertices)
        drawn_at = low if drawn_at is None else drawn_at
        ends = {"low": low, "high": high, "drawn_at": drawn_at}
        self.low, self.high, self.drawn_at = (
            check(x, jnp.isfinite(x), f"`{name}` must be finite")
            for name, x in ((k, as_number(v, k)) for k, v in ends.items())
        )
        self.high = upper_end(self.low, self.high)
        self.sidewall = as_sidewall(sidewall)
        self.axis, self.outlines = axis, outlines
        check_outline_counts(outlines, self.vertices.shape[0])
        if traced(self._numbers()):
            kept = [self._kept(self._section(end)) for end in (self.low, self.high)]
            self.sidewall = check(
                self.sidewall,
                jnp.all(jnp.stack(kept)),
                "`sidewall` must keep all edges from `low` to `high`",
            )

    def __check_init__(self):
        check_axis(self.axis)
        if not traced(self._numbers()):
            self._check_sections()

    def _numbers(self):
        return self.vertices, self.low, self.high, self.sidewall, self.drawn_at

    def _kept(self, at: Float[Array, "n 2"]) -> Bool[Array, " n"]:
        """Whether edges run along those that are drawn, in a section."""
        after = following(self._counts())
        drawn = self.vertices[after] - self.vertices
        return jnp.sum((at[after] - at) * drawn, axis=1) > 0

    def _check_sections(self):
        counts, drawn = self._counts(), np.asarray(self.vertices)
        check_outlines(drawn, counts, "vertices")
        for name, end in (("low", self.low), ("high", self.high)):
            with jax.ensure_compile_time_eval():
                at = self._section(end)
                kept = np.asarray(self._kept(at))
            if not np.all(kept):
                edge = int(np.argmin(kept))
                raise ArgumentError(
                    "`sidewall` must keep the length of all edges positive from `low` "
                    f"to `high`, but the one from vertex {edge} vanishes before "
                    f"`{name}`. Choose a smaller angle, or draw at another height."
                )
            at = np.asarray(at)
            check_outlines(
                at,
                counts,
                f"vertices at {name}",
                "Sides meet before: choose a smaller `sidewall`, or draw at another "
                "height.",
            )
            if not np.array_equal(at, drawn):
                _check_holes(drawn, at, counts, name)

    def _counts(self):
        return self.outlines or (self.vertices.shape[0],)

    def _section(self, height: Float[Array, "*shape"]) -> Float[Array, "n 2 *shape"]:
        """Returns the corners at heights."""
        # As one program, where each operation would be one for each number of corners.
        return _corners(
            self.vertices, self._counts(), self.sidewall, self.drawn_at, height
        )

    def covered(self, cells):
        along = AXES.index(self.axis)
        after = following(self._counts())

        def section(heights):
            corners = self._section(heights)
            edges = jnp.concatenate([corners, corners[after]], 1)
            return in_outlines(cells, along, edges)

        def sections(heights):
            if heights.ndim == 0 or not is_line(cells[along], along):
                return section(heights)
            # One after the other: the work at each height grows as edges x cells.
            parts = jax.lax.map(jax.checkpoint(section), heights.ravel())
            return jnp.moveaxis(jnp.squeeze(parts, 1 + along), 0, along)

        return stacked(cells, along, self.low, self.high, sections)

    def bounds(self):
        ends = jnp.concatenate([self._section(self.low), self._section(self.high)])
        return around_prism(ends, self.axis, self.low, self.high)


def _check_holes(
    drawn: Float[np.ndarray, "n 2"],
    at: Float[np.ndarray, "n 2"],
    counts: tuple[int, ...],
    name: str,
):
    """Refuses a hole that is as wide as what it was in, or wider, at an end."""
    after, starts = following(counts), np.cumsum(counts) - np.asarray(counts)
    (x, y), (next_x, next_y) = (drawn - drawn[0]).T, (drawn - drawn[0])[after].T
    area = np.add.reduceat(x * next_y - next_x * y, starts)
    (x, y), (next_x, next_y) = at.T, at[after].T
    for k in np.flatnonzero(area * area.sum() < 0):
        start = starts[k]
        # How often a line from a corner towards +x crosses the other outlines.
        passed = (y > y[start]) != (next_y > y[start])
        passed[start : start + counts[k]] = False
        way = (y[start] - y[passed]) / (next_y - y)[passed]
        beyond = x[passed] + way * (next_x - x)[passed] > x[start]
        if np.count_nonzero(beyond) % 2 == 0:
            raise ArgumentError(
                "`sidewall` must leave a wall around all holes from `low` to `high`, "
                f"but that around the hole from vertex {start} vanishes before "
                f"`{name}`. Choose a smaller angle, or draw at another height."
            )


@partial(jax.jit, static_argnames="counts", inline=True)
def _corners(
    vertices: Float[Array, "n 2"],
    counts: tuple[int, ...],
    sidewall: Float[Array, ""],
    drawn_at: Float[Array, ""],
    height: Float[Array, "*shape"],
) -> Float[Array, "n 2 *shape"]:
    after = following(counts)
    before = np.argsort(after)
    step = vertices[after] - vertices
    (x, y), (dx, dy) = vertices.T, step.T
    # Positive for outlines that run counterclockwise: outside is on the right.
    way = jnp.sign(jnp.sum((x - x[0]) * dy - (y - y[0]) * dx))
    normal = way * jnp.stack([dy, -dx], 1) / jnp.hypot(dx, dy)[:, None]
    both = normal + normal[before]
    # |both|^2 / 2 is one plus the cosine of the angle between the two normals.
    opening = jnp.maximum(jnp.sum(both**2, axis=1) / 2, _SPIKE)
    inward = (height - drawn_at) * jnp.tan(sidewall)
    one = (...,) + (None,) * height.ndim
    return vertices[one] - inward * (both / opening[:, None])[one]
