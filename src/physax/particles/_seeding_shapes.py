"""Where particles start: circles, spheres, polygons and surfaces."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, Key, Num

from .._checks import (
    ArgumentError,
    at_once,
    check,
    one_key,
    positive,
    refuse_traced,
    single,
    whole,
)
from ._numbers import host_numbers
from ._seed_checks import (
    Place,
    as_place,
    in_default_precision,
)
from ._trapezoids import trapezoids
from ._weighted_choice import pick


def seed_circle(
    centre: Place,
    radius: Num[ArrayLike, ""],
    count: int,
    normal: Place | None = None,
) -> Float[Array, "particles ndim"]:
    """Places particles evenly on a circle.

    Differentiable in the centre and in the radius.

    Args:
        centre: The centre, two numbers or three.
        radius: The radius.
        count: Number of particles.
        normal: Direction of the circle's axis, of any length; z by default. Leave it
            out in two dimensions.

    Returns:
        The positions, anticlockwise as seen against the normal.

    Raises:
        ArgumentError: If the radius is not positive, the centre does not have two or
            three coordinates, the normal is zero, or `count` is below 1.
    """
    count = whole(count, "count")
    centre, radius = as_place(centre, "centre"), _radius(radius)
    angle = 2 * jnp.pi * jnp.arange(count) / count
    plane = jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1).astype(centre.dtype)
    return centre + radius * _span(plane, _frame(centre, normal))


def seed_disk(
    key: Key[Array, ""],
    centre: Place,
    radius: Num[ArrayLike, ""],
    count: int,
    normal: Place | None = None,
) -> Float[Array, "particles ndim"]:
    """Draws positions uniformly in a disk.

    Differentiable in the centre and in the radius.

    Args:
        key: The same key draws the same positions.
        centre: The centre, two numbers or three.
        radius: The radius.
        count: Number of particles.
        normal: Direction of the disk's axis, of any length; z by default. Leave it
            out in two dimensions.

    Returns:
        The positions.

    Raises:
        ArgumentError: If the radius is not positive, the centre does not have two or
            three coordinates, the normal is zero, or `count` is below 1.
    """
    count = whole(count, "count")
    key = one_key(key)
    centre, radius = as_place(centre, "centre"), _radius(radius)
    frame = _frame(centre, normal)
    return centre + radius * _span(_unit_ball(key, count, 2, centre.dtype), frame)


def seed_sphere(
    key: Key[Array, ""], centre: Place, radius: Num[ArrayLike, ""], count: int
) -> Float[Array, "particles ndim"]:
    """Draws positions uniformly on a sphere, in two dimensions on a circle.

    Differentiable in the centre and in the radius.

    Args:
        key: The same key draws the same positions.
        centre: The centre, one number for each axis.
        radius: The radius.
        count: Number of particles.

    Returns:
        The positions.

    Raises:
        ArgumentError: If the radius is not positive, or `count` is below 1.
    """
    count = whole(count, "count")
    key = one_key(key)
    centre, radius = as_place(centre, "centre"), _radius(radius)
    return centre + radius * _directions(key, count, centre.shape[0], centre.dtype)


def seed_ball(
    key: Key[Array, ""], centre: Place, radius: Num[ArrayLike, ""], count: int
) -> Float[Array, "particles ndim"]:
    """Draws positions uniformly in a ball, in two dimensions in a disk.

    Differentiable in the centre and in the radius.

    Args:
        key: The same key draws the same positions.
        centre: The centre, one number for each axis.
        radius: The radius.
        count: Number of particles.

    Returns:
        The positions.

    Raises:
        ArgumentError: If the radius is not positive, or `count` is below 1.
    """
    count = whole(count, "count")
    key = one_key(key)
    centre, radius = as_place(centre, "centre"), _radius(radius)
    return centre + radius * _unit_ball(key, count, centre.shape[0], centre.dtype)


def seed_polygon(
    key: Key[Array, ""],
    vertices: Num[ArrayLike, "..."] | Sequence[Sequence[ArrayLike]],
    count: int,
) -> Float[Array, "particles 2"]:
    """Draws positions uniformly in a polygon, convex or not.

    Args:
        key: The same key draws the same positions.
        vertices: The corners in either sense, known when compiled. Sides must not
            cross.
        count: Number of particles.

    Returns:
        The positions.

    Raises:
        ArgumentError: If there are fewer than three corners, one is not finite, sides
            cross, the area is 0, or `count` is below 1.
    """
    count = whole(count, "count")
    key = one_key(key)
    refuse_traced(vertices, "vertices", "Close over an array.")
    corners = host_numbers(vertices, "vertices")
    low, high, bottom, top = trapezoids(corners)
    # Each trapezoid is two triangles.
    y_low, y_high = low[:, None], high[:, None]
    at_bottom = np.stack([bottom, np.broadcast_to(y_low, bottom.shape)], -1)
    at_top = np.stack([top, np.broadcast_to(y_high, top.shape)], -1)
    first = np.stack([at_bottom[:, 0], at_bottom[:, 1], at_top[:, 0]], 1)
    second = np.stack([at_top[:, 0], at_top[:, 1], at_bottom[:, 1]], 1)
    triangles = np.concatenate([first, second])
    area = np.concatenate([np.ptp(bottom, axis=1), np.ptp(top, axis=1)])
    area = area * np.tile(high - low, 2)
    return _in_triangles(
        key,
        in_default_precision(triangles),
        in_default_precision(area / area.max()),
        count,
    )


def seed_surface(
    key: Key[Array, ""],
    points: Num[ArrayLike, "points ndim"],
    triangles: Int[ArrayLike, "triangles 3"],
    count: int,
) -> Float[Array, "particles ndim"]:
    """Draws positions uniformly on a surface made of triangles.

    Differentiable in the points, at fixed shares of the triangles.

    Args:
        key: The same key draws the same positions.
        points: The corners of the triangles, in two dimensions or three.
        triangles: Three indices of points for each triangle. Triangles of area 0 get no
            particles.
        count: Number of particles.

    Returns:
        The positions.

    Raises:
        ArgumentError: If there are no triangles, an index is out of range, all areas
            are 0, or `count` is below 1.
    """
    count = whole(count, "count")
    key = one_key(key)
    points = in_default_precision(points, "points")
    if points.ndim != 2 or points.shape[1] not in (2, 3):
        raise ArgumentError(
            f"`points` must have 2 or 3 coordinates, but has shape {points.shape}."
        )
    if not np.size(triangles):
        raise ArgumentError("`triangles` must have at least one row, but is empty.")
    if not isinstance(triangles, jax.core.Tracer):
        host = np.asarray(triangles)
        if host.dtype.kind not in "iu" or host.ndim != 2 or host.shape[1] != 3:
            raise ArgumentError(
                "`triangles` must be three integers for each triangle, but is "
                f"{host.dtype}{list(host.shape)}."
            )
        bad = (host < 0) | (host >= points.shape[0])
        if bad.any():
            raise ArgumentError(
                f"`triangles` must be indices from 0 to {points.shape[0] - 1}, but "
                f"triangle {np.argwhere(bad)[0, 0]} has {host[bad][0]}."
            )
    corners = points[jnp.asarray(triangles)]
    with at_once(corners):
        area = _areas(jax.lax.stop_gradient(corners))
        largest = jnp.max(area)
        good = (largest > 0) & jnp.isfinite(largest)
        largest = check(largest, good, "The area of `triangles` must be positive")
        area = area / largest
    return _in_triangles(key, corners, area, count)


def _areas(corners: Float[Array, "triangles 3 ndim"]) -> Float[Array, " triangles"]:
    first, second = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    # Relative to the longest side, whose square may be below the smallest float32.
    scale = jnp.max(jnp.abs(jnp.stack([first, second])))
    scale = jnp.where(scale > 0, scale, 1)
    first, second = first / scale, second / scale
    if corners.shape[2] == 2:
        return jnp.abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])
    return jnp.linalg.norm(jnp.cross(first, second), axis=-1)


def _in_triangles(
    key: Key[Array, ""],
    corners: Float[Array, "triangles 3 ndim"],
    area: Float[Array, " triangles"],
    count: int,
) -> Float[Array, "particles ndim"]:
    """Draws a triangle for each particle, and where in it the particle is."""
    which, where = jax.random.split(key)
    chosen = corners[pick(which, area, count)]
    u = jax.random.uniform(where, (count, 2), corners.dtype)
    # The other half of the parallelogram is folded back onto the triangle.
    u = jnp.where(jnp.sum(u, 1, keepdims=True) > 1, 1 - u, u)
    a, b, c = chosen[:, 0], chosen[:, 1], chosen[:, 2]
    return a + u[:, :1] * (b - a) + u[:, 1:] * (c - a)


def _radius(radius: Any) -> Float[Array, ""]:
    radius = in_default_precision(single(positive(radius, "radius"), "radius"))
    with at_once(radius):
        return check(radius, jnp.isfinite(radius), "`radius` must be finite")


def _directions(key: Key[Array, ""], count: int, ndim: int, dtype) -> Array:
    normal = jax.random.normal(key, (count, ndim), dtype)
    return normal / jnp.linalg.norm(normal, axis=1, keepdims=True)


def _unit_ball(key: Key[Array, ""], count: int, ndim: int, dtype) -> Array:
    way, far = jax.random.split(key)
    # The share of the volume within r grows as r^ndim.
    r = jax.random.uniform(far, (count, 1), dtype) ** (1 / ndim)
    return r * _directions(way, count, ndim, dtype)


def _frame(centre: Array, normal: Place | None) -> Float[Array, "2 ndim"]:
    """Returns two unit vectors that span the plane of a circle."""
    if centre.shape[0] not in (2, 3):
        raise ArgumentError(
            f"`centre` must have 2 or 3 coordinates, but has {centre.shape[0]}."
        )
    if normal is None:
        return jnp.eye(2, centre.shape[0], dtype=centre.dtype)
    if centre.shape[0] == 2:
        raise ArgumentError(
            "`normal` must be left out in two dimensions, but is given."
        )
    normal = as_place(normal, "normal", 3)
    with at_once(normal):
        length = jnp.linalg.norm(normal)
        length = check(length, length > 0, "The length of `normal` must be positive")
    n = normal / length
    # Duff et al., Building an orthonormal basis, revisited (2017).
    sign = jnp.where(n[2] >= 0, 1, -1).astype(n.dtype)
    a = -1 / (sign + n[2])
    b = n[0] * n[1] * a
    first = jnp.stack([1 + sign * n[0] ** 2 * a, sign * b, -sign * n[0]])
    return jnp.stack([first, jnp.stack([b, sign + n[1] ** 2 * a, -n[1]])])


def _span(
    plane: Float[Array, "count 2"], frame: Float[Array, "2 ndim"]
) -> Float[Array, "count ndim"]:
    return plane[:, :1] * frame[0] + plane[:, 1:] * frame[1]
