"""Shapes moved, turned, mirrored, stretched, repeated, and placed beside each other."""

import math
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import product
from typing import ParamSpec, TypeVar

import equinox as eqx
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, at_once, check, refuse_text, whole
from .._products import matmul
from ..grid import AXES
from ._combinations import AbstractShape, Difference, Intersection, Union, as_shape
from ._moved_shapes import Mirrored, Repeated, Scaled, Turned, turned
from ._outlines import across_of
from ._prism import Prism
from ._shape_fields import as_floats, as_number, as_point, check_axis
from ._shapes import Box, Cylinder, Polygon, Sphere
from ._solids import Cone, Ellipsoid, Ring


P = ParamSpec("P")
T = TypeVar("T")


def _known(place: Callable[P, T]) -> Callable[P, T]:
    """Makes what is known stay known under `jit`: then it has the smallest box."""

    @wraps(place)
    def placed(*args: P.args, **kwargs: P.kwargs) -> T:
        with at_once(eqx.filter((args, kwargs), eqx.is_array_like)):
            return place(*args, **kwargs)

    return placed


@_known
def translate(
    shape: AbstractShape, offset: ArrayLike | Sequence[ArrayLike]
) -> AbstractShape:
    """Moves a shape.

    Args:
        shape: The shape.
        offset: How far along x, y and z in metres; entries left out at the end are 0.

    Returns:
        The shape at its new place, with the accuracy that it had.

    Raises:
        ArgumentError: If `offset` is not finite.
    """
    offset = _finite(offset, "offset")
    if isinstance(shape, (Union, Intersection, Difference)):
        return _of_each(shape, lambda one: translate(one, offset))
    if isinstance(shape, Box):
        ends = (shape.low + offset, shape.high + offset)
        return eqx.tree_at(lambda one: (one.low, one.high), shape, ends)
    if isinstance(shape, (Cylinder, Sphere, Ellipsoid, Cone, Ring)):
        return eqx.tree_at(lambda one: one.centre, shape, shape.centre + offset)
    if isinstance(shape, (Polygon, Prism)):
        along = AXES.index(shape.axis)
        corners = shape.vertices + offset[jnp.array(across_of(along))]
        shape = eqx.tree_at(lambda one: one.vertices, shape, corners)
        ends = ("low", "high", *(["drawn_at"] if isinstance(shape, Prism) else []))
        return eqx.tree_at(
            lambda one: [getattr(one, name) for name in ends],
            shape,
            [getattr(shape, name) + offset[along] for name in ends],
        )
    return Repeated(shape, offset[None])


@_known
def rotate(
    shape: AbstractShape,
    angle: ArrayLike,
    axis: str = "z",
    *,
    about: ArrayLike | Sequence[ArrayLike] = 0.0,
    parts: int | np.integer = 3,
) -> AbstractShape:
    """Rotates a shape about an axis.

    Boxes, spheres, and cylinders, cones, rings, polygons and prisms along the axis,
    stay as exact as they are. Any other shape is averaged over parts of each cell,
    which are assumed to rotate with the shape: its fractions err by some 1e-2.

    Args:
        shape: The shape. A box must be finite across the axis.
        angle: The angle in radians, counterclockwise as seen from above the axis, at
            most a turn either way.
        axis: "x", "y" or "z".
        about: A point (x, y, z) on the axis in metres; entries left out are 0.
        parts: Into how many parts a cell is divided along each axis across, where the
            result is not exact. The work grows as its square.

    Returns:
        The rotated shape.

    Raises:
        ArgumentError: If an argument is out of its range.
    """
    check_axis(axis)
    angle, about = as_number(angle, "angle"), _finite(about, "about")
    angle = check(angle, jnp.isfinite(angle), "`angle` must be finite")
    _check_radians(angle)
    parts = whole(parts, "parts")

    def again(one):
        return rotate(one, angle, axis, about=about, parts=parts)

    if isinstance(shape, (Union, Intersection, Difference)):
        return _of_each(shape, again)
    if isinstance(shape, Repeated):
        offsets = turned(shape.offsets, angle, axis, jnp.zeros_like(about))
        return Repeated(again(shape.shape), offsets)
    if isinstance(shape, Box):
        return again(_as_polygon(shape, axis))
    if isinstance(shape, Sphere) or (
        isinstance(shape, (Cylinder, Cone, Ring)) and shape.axis == axis
    ):
        centre = turned(shape.centre, angle, axis, about)
        return eqx.tree_at(lambda one: one.centre, shape, centre)
    if isinstance(shape, (Polygon, Prism)) and shape.axis == axis:
        across = jnp.array(across_of(AXES.index(axis)))
        points = jnp.zeros((shape.vertices.shape[0], 3), shape.vertices.dtype)
        points = turned(points.at[:, across].set(shape.vertices), angle, axis, about)
        return eqx.tree_at(lambda one: one.vertices, shape, points[:, across])
    return Turned(shape, angle, axis, about, parts)


def _check_radians(angle: Float[Array, ""]) -> None:
    """Refuses more than a turn, as of an angle in degrees, if it is known."""
    # A turn that went through float32 is still one.
    if isinstance(angle, jax.core.Tracer) or abs(float(angle)) < 2 * math.pi + 1e-6:
        return
    raise ArgumentError(
        "`angle` must be in radians and at most one turn, 2 pi, either way, but is "
        f"{float(angle):g}. Convert degrees with `np.deg2rad`."
    )


def _as_polygon(box: Box, axis: str) -> Polygon:
    along = AXES.index(axis)
    j, k = across_of(along)
    corners = jnp.stack(
        [
            jnp.stack([box.low[j], box.low[k]]),
            jnp.stack([box.high[j], box.low[k]]),
            jnp.stack([box.high[j], box.high[k]]),
            jnp.stack([box.low[j], box.high[k]]),
        ]
    )
    corners = check(
        corners,
        jnp.isfinite(corners),
        f"The corners of a box rotated about {axis} must be finite across that axis",
    )
    polygon = Polygon(corners, axis)
    ends = (box.low[along], box.high[along])
    return eqx.tree_at(lambda one: (one.low, one.high), polygon, ends)


@_known
def mirror(shape: AbstractShape, axis: str, at: ArrayLike = 0.0) -> AbstractShape:
    """Mirrors a shape in a plane across an axis, exactly.

    Args:
        shape: The shape.
        axis: The axis across the plane, "x", "y" or "z".
        at: Where the plane is along the axis, in metres.

    Returns:
        The image. For both halves of something symmetric write `shape | mirror(...)`.

    Raises:
        ArgumentError: If an argument is out of its range.
    """
    check_axis(axis)
    at = as_number(at, "at")
    return Mirrored(shape, axis, check(at, jnp.isfinite(at), "`at` must be finite"))


@_known
def scale(
    shape: AbstractShape,
    factors: ArrayLike | Sequence[ArrayLike],
    *,
    about: ArrayLike | Sequence[ArrayLike] = 0.0,
) -> AbstractShape:
    """Stretches a shape from a point, exactly.

    Args:
        shape: The shape.
        factors: By what to multiply its lengths: one positive number, or one each for
            x, y and z.
        about: The point (x, y, z) that stays, in metres; entries left out are 0.

    Returns:
        The stretched shape.

    Raises:
        ArgumentError: If an argument is out of its range.
    """
    factors = as_floats(factors, "factors")
    if factors.shape not in ((), (3,)):
        raise ArgumentError(
            f"`factors` must be one number or three, but has shape {factors.shape}."
        )
    good = (factors > 0) & jnp.isfinite(factors)
    factors = check(factors, good, "`factors` must be positive and finite")
    return Scaled(shape, jnp.broadcast_to(factors, (3,)), _finite(about, "about"))


@_known
def repeat(
    shape: AbstractShape,
    counts: Sequence[int | np.integer],
    vectors: Sequence[ArrayLike | Sequence[ArrayLike]] | Array,
) -> AbstractShape:
    """Repeats a shape on a lattice.

    Args:
        shape: The shape, the first of the copies.
        counts: How many copies along each vector of the lattice.
        vectors: For each, the step (x, y, z) from one copy to the next in metres;
            entries left out at the end are 0.

    Returns:
        All copies as one shape.

    Raises:
        ArgumentError: If an argument is out of its range.
    """
    if not isinstance(counts, Sequence | np.ndarray) or not len(counts):
        raise ArgumentError(
            "`counts` must have one integer for each vector of the lattice, such as "
            f"(2,), but is {counts!r}."
        )
    counts = [whole(n, f"counts[{k}]") for k, n in enumerate(counts)]
    if len(vectors) != len(counts):
        raise ArgumentError(
            f"`vectors` must have one entry per entry of `counts` ({len(counts)}), but "
            f"has {len(vectors)}."
        )
    steps = jnp.stack([_finite(vector, "vectors") for vector in vectors])
    number = np.array(list(product(*map(range, counts))))
    return Repeated(shape, matmul(jnp.asarray(number, steps.dtype), steps))


def place(
    shape: AbstractShape,
    other: AbstractShape,
    axes: str = "z",
    *,
    own: float | int = -1,
    at: float | int = 1,
    gap: ArrayLike = 0.0,
) -> AbstractShape:
    """Moves a shape to a place relative to another, by the boxes around both.

    By default it is put on top of the other. The boxes are those of `bounds()`, which
    may be larger than the shape: that of `a - b` is the box around all of `a`.

    Args:
        shape: The shape to move.
        other: The shape that stays.
        axes: The axes along which to move, such as "z" or "xy".
        own: The point of the shape to put there, from -1 at its lower end to 1 at its
            upper end; 0 is its middle.
        at: The point of the other, likewise.
        gap: How much farther up to move it along each of the axes, in metres.

    Returns:
        The moved shape.

    Raises:
        ArgumentError: If an argument is out of its range, or a shape has no end where
            one is needed.
    """
    if not axes or any(name not in AXES for name in axes):
        raise ArgumentError(f"`axes` must be among {AXES}, but is {axes!r}.")
    shape, other = as_shape(shape), as_shape(other, "other")
    for name, part in (("own", own), ("at", at)):
        refuse_text(part, name)
        if not -1 <= part <= 1:
            raise ArgumentError(f"`{name}` must lie in [-1, 1], but is {part}.")
    gap = as_number(gap, "gap")
    offset = jnp.zeros(3, gap.dtype)
    for name in axes:
        k = AXES.index(name)
        target, start = (
            _point_between(ends[0][k], ends[1][k], part, which, name)
            for ends, part, which in (
                (other.bounds(), at, "other"),
                (shape.bounds(), own, "shape"),
            )
        )
        offset = offset.at[k].set(target - start + gap)
    return translate(shape, offset)


def _point_between(low, high, part: float | int, which: str, axis: str) -> Array:
    if part in (-1, 1):
        point = high if part == 1 else low
    else:
        point = (1 - part) / 2 * low + (1 + part) / 2 * high
    return check(
        point, jnp.isfinite(point), f"`{which}` must have an end there along {axis}"
    )


def _finite(x: ArrayLike | Sequence[ArrayLike], name: str) -> Float[Array, "3"]:
    x = as_point(x, name, 0.0)
    return check(x, jnp.isfinite(x), f"`{name}` must be finite")


def _of_each(shape, change):
    """Changes each part of a combination."""
    is_part = lambda one: isinstance(one, AbstractShape) and one is not shape  # noqa: E731
    return jax.tree.map(change, shape, is_leaf=is_part)
