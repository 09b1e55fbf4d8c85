"""Polygons along curves: tapers, bends, and paths of a given width."""

import math
from collections.abc import Sequence
from typing import TypedDict, Unpack

import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, check, whole
from .._products import matmul
from ._outlines import check_outlines
from ._shape_fields import as_floats, as_number, one_length
from ._shapes import Polygon


# Least sum of one and the cosine of the angle by which a path bends at a point.
_SPIKE = 1e-3


class Extrusion(TypedDict, total=False):
    """What a strip has from `Polygon`: axis and ends."""

    axis: str
    low: ArrayLike
    high: ArrayLike


def Path(
    points: ArrayLike | Sequence,
    width: ArrayLike | Sequence,
    **prism: Unpack[Extrusion],
) -> Polygon:
    """Makes a strip along a polyline, with mitred corners.

    Args:
        points: At least two points of the middle line in metres, on the two axes across
            `axis`.
        width: Width in metres: one number, or one per point. At a corner it is that of
            the strips that meet there.
        **prism: `axis`, `low` and `high` of the `Polygon`.

    Returns:
        A polygon with two corners per point.

    Raises:
        ArgumentError: If `points` has fewer than two or a repeated one, or turns back,
            `width` is not positive, or the outline crosses itself: where the path bends
            more sharply than its width allows.
    """
    points = _points(points, 2)
    steps = points[1:] - points[:-1]
    _refuse_short(points, jnp.hypot(*steps.T))
    normal = jnp.stack([-steps[:, 1], steps[:, 0]], 1)
    normal = normal / jnp.hypot(*steps.T)[:, None]
    both = jnp.concatenate([normal[:1], normal[:-1] + normal[1:], normal[-1:]])
    # |both|^2 / 2 is one plus the cosine of the bend, at the ends a half.
    square = jnp.sum(both**2, axis=1)
    opening = jnp.concatenate([square[:1], square[1:-1] / 2, square[-1:]])
    opening = check(
        opening,
        opening > _SPIKE,
        "`points` must not turn back on themselves: one plus the cosine of a bend must "
        f"exceed {_SPIKE:g}",
    )
    return _strip(points, both / opening[:, None], width, prism)


def Taper(
    start: ArrayLike | Sequence,
    stop: ArrayLike | Sequence,
    widths: ArrayLike | Sequence,
    **prism: Unpack[Extrusion],
) -> Polygon:
    """Makes a straight strip whose width changes along it.

    Args:
        start: Middle of its first end in metres, on the two axes across `axis`.
        stop: Middle of its last end.
        widths: At least two widths in metres, at equal steps from start to stop. The
            width is linear between them.
        **prism: `axis`, `low` and `high` of the `Polygon`.

    Returns:
        A polygon with two corners per width.

    Raises:
        ArgumentError: If the ends are equal, or a width is not positive.
    """
    ends = [as_floats(start, "start"), as_floats(stop, "stop")]
    ends = _points(ends, 2, "start and stop")
    widths = as_floats(widths, "widths")
    if widths.ndim != 1 or widths.size < 2:
        raise ArgumentError(
            f"`widths` must have at least 2 entries, but has shape {widths.shape}."
        )
    part = jnp.linspace(0, 1, widths.size, dtype=ends.dtype)[:, None]
    return Path(ends[0] + part * (ends[1] - ends[0]), widths, **prism)


def Bend(
    centre: ArrayLike | Sequence,
    radius: ArrayLike,
    width: ArrayLike,
    start: ArrayLike,
    stop: ArrayLike,
    *,
    segments: int = 64,
    **prism: Unpack[Extrusion],
) -> Polygon:
    r"""Makes a part of a ring: a circular bend of constant width.

    Its corners lie on the two arcs. With $\Delta$ the angle of a segment the sides are
    up to $r \Delta^2 / 8$ inside the arcs: 0.4 nm for a right angle of 5 um radius.

    Args:
        centre: Centre of the arcs in metres, on the two axes across `axis`.
        radius: Radius of the middle line, in metres.
        width: Width in metres, less than twice the radius.
        start: Angle of the first end in radians, from the first axis to the second.
        stop: Angle of the last end; at most a full turn away.
        segments: Number of straight sides of each arc.
        **prism: `axis`, `low` and `high` of the `Polygon`.

    Returns:
        A polygon. For a whole ring use `Ring`.

    Raises:
        ArgumentError: If a number is out of its range.
    """
    segments = whole(segments, "segments")
    centre = _points([as_floats(centre, "centre")], 1, "centre")[0]
    radius, width = one_length("radius")(radius), one_length("width")(width)
    width = check(width, width < 2 * radius, "`width` must be less than twice `radius`")
    start, stop = as_number(start, "start"), as_number(stop, "stop")
    turn = jnp.abs(stop - start)
    stop = check(
        stop,
        (turn > 0) & (turn < 2 * math.pi * (1 - 1e-6)),
        "`stop` must differ from `start` by less than a full turn",
    )
    angle = start + (stop - start) * jnp.linspace(0, 1, segments + 1)
    outward = jnp.stack([jnp.cos(angle), jnp.sin(angle)], 1)
    return _strip(centre + radius * outward, outward, width, prism)


def Bezier(
    points: ArrayLike | Sequence,
    width: ArrayLike | Sequence,
    *,
    segments: int = 64,
    **prism: Unpack[Extrusion],
) -> Polygon:
    r"""Makes a strip along a Bezier curve.

    Four points make an S-bend: the second and third set the directions of the ends. The
    sides are chords of the exact offset curves; with $R$ the least radius of curvature
    and $s$ the length of a chord they are up to $s^2 / 8 R$ off.

    Args:
        points: Control points in metres, at least two, on the two axes across `axis`.
        width: Width in metres, one number, or one at each end, linear in the parameter
            between.
        segments: Number of straight sides of each border.
        **prism: `axis`, `low` and `high` of the `Polygon`.

    Returns:
        A polygon with `2 * segments + 2` corners.

    Raises:
        ArgumentError: If a number is out of its range, the curve has a cusp, or the
            outline crosses itself: where the curve bends more sharply than its width
            allows.
    """
    segments = whole(segments, "segments")
    points = _points(points, 2)
    ends = np.array([0, -2])
    _refuse_short(points[ends], jnp.hypot(*(points[ends + 1] - points[ends]).T))
    order = points.shape[0] - 1
    t = np.linspace(0, 1, segments + 1)[:, None]
    curve = matmul(_bernstein(order, t), points)
    tangent = matmul(_bernstein(order - 1, t), points[1:] - points[:-1])
    return _along(curve, tangent, width, prism)


def Spline(
    points: ArrayLike | Sequence,
    width: ArrayLike | Sequence,
    *,
    segments: int = 16,
    **prism: Unpack[Extrusion],
) -> Polygon:
    """Makes a strip along a smooth curve through points.

    The curve is a cubic (Catmull-Rom) spline, at whose points the direction is that
    from the point before to the one after.

    Args:
        points: At least three points in metres, on the two axes across `axis`.
        width: Width in metres, one number, or one at each end, linear in the parameter
            between.
        segments: Number of straight sides of each border between two points.
        **prism: `axis`, `low` and `high` of the `Polygon`.

    Returns:
        A polygon.

    Raises:
        ArgumentError: If a number is out of its range, the curve has a cusp, or the
            outline crosses itself: where the curve bends more sharply than its width
            allows.
    """
    segments = whole(segments, "segments")
    points = _points(points, 3)
    inner = (points[2:] - points[:-2]) / 2
    # At the ends the parabola through three points.
    first = 2 * (points[1] - points[0]) - inner[0]
    last = 2 * (points[-1] - points[-2]) - inner[-1]
    slope = jnp.concatenate([first[None], inner, last[None]])
    t = np.arange(segments)[:, None] / segments

    def pieces(values, t):
        a, b, c, d = values
        cubic = (2 * t**3 - 3 * t**2 + 1, t**3 - 2 * t**2 + t)
        rate = (6 * t**2 - 6 * t, 3 * t**2 - 4 * t + 1)
        curve = cubic[0] * a + cubic[1] * b + (1 - cubic[0]) * c + (t**3 - t**2) * d
        return curve, rate[0] * a + rate[1] * b - rate[0] * c + (3 * t**2 - 2 * t) * d

    spans = (points[:-1, None], slope[:-1, None], points[1:, None], slope[1:, None])
    curve, tangent = (x.reshape(-1, 2) for x in pieces(spans, t))
    return _along(
        jnp.concatenate([curve, points[-1:]]),
        jnp.concatenate([tangent, slope[-1:]]),
        width,
        prism,
    )


def _along(curve, tangent, width, prism: Extrusion) -> Polygon:
    """Returns a strip along a curve with known directions."""
    length = jnp.hypot(*tangent.T)
    _refuse_cusps(curve, length)
    normal = jnp.stack([-tangent[:, 1], tangent[:, 0]], 1) / length[:, None]
    width = as_floats(width, "width")
    if width.ndim and width.shape != (2,):
        raise ArgumentError(
            f"`width` must be one number or two, but has shape {width.shape}."
        )
    if width.ndim:
        width = jnp.linspace(width[0], width[1], curve.shape[0])
    return _strip(curve, normal, width, prism)


def _strip(middle, normal, width, prism: Extrusion) -> Polygon:
    """Returns the polygon half a width on both sides of a line."""
    width = as_floats(width, "width")
    if width.shape not in ((), middle.shape[:1]):
        raise ArgumentError(
            f"`width` must be one number or one per point ({middle.shape[0]}), but has "
            f"shape {width.shape}."
        )
    good = (width > 0) & jnp.isfinite(width)
    width = check(width, good, "`width` must be positive and finite")
    side = jnp.broadcast_to(width / 2, middle.shape[:1])[:, None] * normal
    corners = jnp.concatenate([middle - side, (middle + side)[::-1]])
    if not isinstance(corners, jax.core.Tracer):
        check_outlines(
            np.asarray(corners),
            corners.shape[:1],
            "points` and `width",
            "Choose a smaller `width`, or `points` that bend less and do not cross; "
            "make a closed path of two.",
        )
    return Polygon(corners, **prism)


def _bernstein(order: int, t: np.ndarray) -> np.ndarray:
    k = np.arange(order + 1)
    binomial = np.array([math.comb(order, int(n)) for n in k])
    return binomial * t**k * (1 - t) ** (order - k)


def _points(
    x: ArrayLike | Sequence, least: int, name: str = "points"
) -> Float[Array, "points 2"]:
    x = as_floats(x, name)
    if x.ndim != 2 or x.shape[1] != 2 or x.shape[0] < least:
        raise ArgumentError(
            f"`{name}` must be at least {least} points of 2 numbers, but has shape "
            f"{x.shape}."
        )
    return check(x, jnp.isfinite(x), f"`{name}` must be finite")


def _refuse_cusps(curve: Array, lengths: Array):
    """Refuses a curve that has no direction somewhere, if that is known."""
    if isinstance(lengths, jax.core.Tracer):
        return
    # At a cusp, where it is 0, rounding leaves a little.
    least = 8 * jnp.finfo(lengths.dtype).eps * np.max(lengths)
    still = np.flatnonzero(np.asarray(lengths) <= least)
    if still.size:
        x, y = np.asarray(curve[still[0]])
        raise ArgumentError(
            "The curve of `points` must have a direction everywhere, but has a cusp at "
            f"({x:g}, {y:g}) m. Move one of the points next to it."
        )


def _refuse_short(points: Array, lengths: Array):
    """Refuses a line that stands still, if that is known."""
    if isinstance(lengths, jax.core.Tracer):
        return
    still = np.flatnonzero(np.asarray(lengths) == 0)
    if still.size:
        x, y = np.asarray(points[still[0]])
        raise ArgumentError(
            f"Each of `points` must differ from the next, but one at ({x:g}, {y:g}) m "
            "does not."
        )
