"""Where particles start: regular and random patterns in boxes, and densities."""

from collections.abc import Sequence
from importlib import import_module

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Key, Num

from .._checks import ArgumentError, at_once, check, one_key, real, whole
from .._products import matmul
from ._bins import as_edges, shape_of, volumes
from ._numbers import check_mask
from ._seed_checks import (
    Place,
    as_box,
    as_place,
    in_default_precision,
)
from ._weighted_choice import pick


_SOBOL_BITS = 30


def seed_grid(
    low: Place, high: Place, shape: Sequence[int]
) -> Float[Array, "particles ndim"]:
    """Places particles on the nodes of a regular grid that includes its faces.

    Differentiable in the corners.

    Args:
        low: The low corner, one number for each axis.
        high: The high corner.
        shape: Number of particles along each axis. A single one lies in the middle,
            and there the box may have no extent.

    Returns:
        The positions; the last axis varies fastest.

    Raises:
        ArgumentError: If `high` is not above `low`, or a number of particles is below
            1.
    """
    low = as_place(low, "low")
    if not np.iterable(shape) or isinstance(shape, str):
        raise ArgumentError(
            "`shape` must be a list with a number of particles for each axis, as "
            f"`{(shape,) * low.shape[0]}`, but is {shape!r}."
        )
    if low.shape[0] != len(shape):
        raise ArgumentError(
            "`shape` must have one entry for each axis, as `low` has, but is "
            f"{tuple(shape)}."
        )
    shape = [whole(count, "shape") for count in shape]
    low, high = as_box(low, high, [count == 1 for count in shape])
    axes = [
        _evenly(low[axis], high[axis], count)[:, 0] for axis, count in enumerate(shape)
    ]
    nodes = jnp.meshgrid(*axes, indexing="ij")
    return jnp.stack([node.reshape(-1) for node in nodes], -1)


def seed_line(start: Place, stop: Place, count: int) -> Float[Array, "particles ndim"]:
    """Places particles evenly on a line, both ends included.

    Differentiable in the ends.

    Args:
        start: Where the line begins.
        stop: Where it ends.
        count: Number of particles. A single one lies in the middle.

    Returns:
        The positions.

    Raises:
        ArgumentError: If the ends do not agree in the number of axes, or `count` is
            below 1.
    """
    count = whole(count, "count")
    start = as_place(start, "start")
    return _evenly(start, as_place(stop, "stop", start.shape[0]), count)


def _evenly(start: Array, stop: Array, count: int) -> Array:
    if count == 1:
        return ((start + stop) / 2).reshape(1, -1)
    return jnp.linspace(start, stop, count).reshape(count, -1)


def seed_random(
    key: Key[Array, ""], low: Place, high: Place, count: int
) -> Float[Array, "particles ndim"]:
    """Draws positions uniformly in a box.

    Args:
        key: The same key draws the same positions.
        low: The low corner, one number for each axis.
        high: The high corner.
        count: Number of particles.

    Returns:
        The positions.

    Raises:
        ArgumentError: If `high` is not above `low`, or `count` is below 1.
    """
    count = whole(count, "count")
    key = one_key(key)
    low, high = as_box(low, high)
    u = jax.random.uniform(key, (count, low.shape[0]), low.dtype)
    # Rounding could lift a position above the box.
    return jnp.minimum(low + u * (high - low), high)


def seed_sobol(
    low: Place, high: Place, count: int, key: Key[Array, ""] | None = None
) -> Float[Array, "particles ndim"]:
    """Fills a box evenly with the points of a Sobol sequence.

    Means over such seeds converge nearly as fast as their number; a power of two is
    best. With a key the points are shifted digit by digit: each is then uniform in the
    box, so means have no bias, and together they stay as even.

    The sequence is made on the host by SciPy, with the directions of Joe and Kuo,
    *Constructing Sobol sequences with better two-dimensional projections*, SIAM Journal
    on Scientific Computing 30, 2635 (2008).

    Args:
        low: The low corner, one number for each axis.
        high: The high corner.
        count: Number of particles.
        key: Of the shift. Without it the first particle is in the low corner.

    Returns:
        The positions.

    Raises:
        ArgumentError: If `high` is not above `low`, or `count` is below 1.
    """
    count = whole(count, "count")
    if key is not None:
        key = one_key(key)
    low, high = as_box(low, high)
    ndim = low.shape[0]
    # Loaded when it is needed: that takes longer than to load the rest of physax.
    qmc = import_module("scipy.stats.qmc")
    sequence = qmc.Sobol(ndim, scramble=False, bits=_SOBOL_BITS)
    host = sequence.random_base2((count - 1).bit_length())[:count]
    digits = jnp.asarray((host * 2.0**32).astype(np.uint32))
    if key is not None:
        digits ^= jax.random.bits(key, (ndim,), jnp.uint32)
    # As many digits as the precision holds: rounding up would reach the high face.
    kept = min(32, jnp.finfo(low.dtype).nmant + 1)
    u = (digits >> (32 - kept)).astype(low.dtype) * 2.0**-kept
    return jnp.minimum(low + u * (high - low), high)


def seed_gaussian(
    key: Key[Array, ""],
    centre: Place,
    spread: ArrayLike | Sequence[ArrayLike],
    count: int,
) -> Float[Array, "particles ndim"]:
    r"""Draws positions from a normal distribution.

    Differentiable in the centre and in the spread.

    Args:
        key: The same key draws the same positions.
        centre: The mean, one number for each axis.
        spread: The standard deviation, one number or one for each axis; or a matrix $L$
            for the covariance $L L^T$, such as its Cholesky factor.
        count: Number of particles.

    Returns:
        The positions.

    Raises:
        ArgumentError: If a standard deviation is not positive, the shapes do not agree,
            or `count` is below 1.
    """
    count = whole(count, "count")
    key = one_key(key)
    centre = as_place(centre, "centre")
    ndim = centre.shape[0]
    spread = in_default_precision(spread, "spread")
    if spread.shape not in ((), (ndim,), (ndim, ndim)):
        raise ArgumentError(
            f"`spread` must be one number, {ndim} or a matrix of {ndim} x {ndim}, but "
            f"has shape {spread.shape}."
        )
    normal = jax.random.normal(key, (count, ndim), centre.dtype)
    if spread.ndim == 2:
        return centre + matmul(normal, spread.T)
    with at_once(spread):
        spread = check(spread, spread > 0, "`spread` must be positive")
    return centre + spread * normal


def seed_density(
    key: Key[Array, ""],
    values: Num[ArrayLike, "..."],
    edges: Sequence[Num[ArrayLike, " _"]],
    count: int,
) -> Float[Array, "particles ndim"]:
    """Draws positions from a density that is constant in each cell of a grid.

    The result of `histogram_density` is such a density. No gradient reaches `values`.

    Args:
        key: The same key draws the same positions.
        values: The density of each cell, at least 0; its integral need not be 1.
        edges: Positions of the edges of the cells, for each axis one more than cells.
        count: Number of particles.

    Returns:
        The positions.

    Raises:
        ArgumentError: If a value is negative or not finite, all are 0, the shapes do
            not agree, edges do not increase, or `count` is below 1.
    """
    count = whole(count, "count")
    key = one_key(key)
    values = jax.lax.stop_gradient(real(values, "values"))
    axes = tuple(map(in_default_precision, as_edges(edges, values.ndim)))
    if values.shape != shape_of(axes):
        raise ArgumentError(
            "`values` must have one entry for each cell between `edges`, "
            f"{shape_of(axes)}, but has shape {values.shape}."
        )
    with at_once(values):
        values = check(values, values >= 0, "`values` must be at least 0")
        values = check(values, jnp.isfinite(values), "`values` must be finite")
        peak = jnp.max(values)
        peak = check(peak, peak > 0, "`values` must be positive in at least one cell")
    # Relative to the largest, so that volumes of 1e-27 m^3 do not end the range.
    weights = values / peak * (volumes(axes) / jnp.max(volumes(axes)))
    return _in_cells(key, weights, axes, count)


def seed_mask(
    key: Key[Array, ""],
    mask: Bool[ArrayLike, "..."],
    edges: Sequence[Num[ArrayLike, " _"]],
    count: int,
) -> Float[Array, "particles ndim"]:
    """Draws positions uniformly in the cells of a grid that are marked.

    Args:
        key: The same key draws the same positions.
        mask: Whether a cell may hold particles.
        edges: Positions of the edges of the cells, for each axis one more than cells.
        count: Number of particles.

    Returns:
        The positions.

    Raises:
        ArgumentError: If no cell is marked, the shapes do not agree, edges do not
            increase, or `count` is below 1.
    """
    check_mask(mask, "mask")
    if not isinstance(mask, jax.core.Tracer) and not np.any(np.asarray(mask)):
        raise ArgumentError("`mask` must mark at least one cell, but marks none.")
    return seed_density(key, jnp.asarray(mask).astype(float), edges, count)


def _in_cells(
    key: Key[Array, ""], weights: Array, edges: Sequence[Array], count: int
) -> Float[Array, "particles ndim"]:
    """Draws a cell for each particle, and where in the cell it is."""
    which, where = jax.random.split(key)
    dtype = edges[0].dtype
    cells = pick(which, weights.reshape(-1).astype(dtype), count)
    u = jax.random.uniform(where, (len(edges), count), dtype)
    indices = jnp.unravel_index(cells, shape_of(edges))
    columns = []
    for axis, (array, i) in enumerate(zip(edges, indices, strict=True)):
        x = array[i] + u[axis] * jnp.diff(array)[i]
        columns.append(jnp.minimum(x, array[i + 1]))
    return jnp.stack(columns, -1)
