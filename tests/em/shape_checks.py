"""What every shape must keep: fractions as by counting points, right derivatives."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from physax.em._overlap import Intervals


SPACING = 0.4
SHAPE = (7, 6, 6)
MIDDLE = (0.013, -0.021, 0.017)


def cells(ndim=3):
    """Cells along x, y and z, around a point a little off the origin."""
    axes = []
    for axis in range(3):
        if axis >= ndim:
            axes.append(None)
            continue
        count = SHAPE[axis]
        position = MIDDLE[axis] + (jnp.arange(count) - (count - 1) / 2) * SPACING
        form = [1] * ndim
        form[axis] = count
        half = jnp.full(form, SPACING / 2)
        axes.append(Intervals(position.reshape(form), half, half))
    return axes


def covered(shape, shift=(0.0, 0.0, 0.0), ndim=3):
    """Fractions of cells that have moved."""
    moved = [
        axis and Intervals(axis.position + shift[k], axis.below, axis.above)
        for k, axis in enumerate(cells(ndim))
    ]
    full = SHAPE[:ndim]
    return jnp.broadcast_to(shape.covered(moved), full)


def counted(inside, ndim=3, points=16):
    """Fractions by counting points in NumPy, and how sure they are.

    Args:
        inside: Whether points (x, y, z) are in the shape.
        ndim: Dimension of the grid.
        points: How many along each axis of a cell.
    """
    places = []
    for axis in range(3):
        if axis >= ndim:
            places.append(np.zeros(1))
            continue
        count = SHAPE[axis]
        low = MIDDLE[axis] - count * SPACING / 2
        places.append(low + (np.arange(count * points) + 0.5) * SPACING / points)
    hit = inside(*np.meshgrid(*places, indexing="ij")).astype(float)
    split = [n for k in range(ndim) for n in (SHAPE[k], points)]
    return hit.reshape(split).mean(axis=tuple(range(1, 2 * ndim, 2)))


def check_derivatives(make, point, ndim=3, *, normals=True):
    """Compares derivatives by numbers of the shape and by the place of the cells.

    The first derivative of a smooth function of the fractions agrees with central
    differences to 1e-6 and leaves a remainder of second order; the derivative of one of
    the normals that the fractions give agrees with them in one direction.

    Args:
        make: Makes the shape from an array of numbers.
        point: Where; the numbers of the shape.
        ndim: Dimension of the grid.
        normals: Whether to look at a normal, too.
    """
    count = len(point)
    weight = jax.random.normal(jax.random.key(3), SHAPE[:ndim])
    q = jnp.concatenate([jnp.asarray(point, float), jnp.zeros(ndim)])
    direction = jax.random.normal(jax.random.key(5), q.shape)
    towards = jnp.concatenate([jnp.zeros(count), jnp.array([0.6, -0.48, 0.64])[:ndim]])

    def fractions(q):
        shift = jnp.concatenate([q[count:], jnp.zeros(3 - ndim)])
        return covered(make(q[:count]), shift, ndim)

    def run(q):
        return jnp.sum(weight * jnp.sin(1 + fractions(q)))

    def normal(q):
        return jnp.sum(weight * jnp.sin(jax.jvp(fractions, (q,), (towards,))[1]))

    # One program gives the gradient and what it is compared with, on the host.
    program = jax.jit(jax.value_and_grad(run))
    value = lambda q: float(program(q)[0])  # noqa: E731
    start, gradient = jax.device_get(program(q))
    q, direction = np.asarray(q), np.asarray(direction)
    assert np.all(np.isfinite(gradient))
    # Where a curved surface barely reaches into a cell the third derivative is large.
    step, size = 2e-6, float(np.max(np.abs(gradient)))
    for k, e in enumerate(step * np.eye(q.size)):
        slope = (value(q + e) - value(q - e)) / (2 * step)
        assert abs(gradient[k] - slope) < 1e-6 * size, (k, gradient[k], slope)
    errors = [
        abs(value(q + e * direction) - start - e * (gradient @ direction))
        for e in (2 * step, step)
    ]
    if max(errors) > 1e-12:
        assert abs(math.log2(errors[0] / errors[1]) - 2) < 0.05, errors

    if not normals:
        return
    normal = jax.jit(jax.value_and_grad(normal))
    gradient = np.asarray(normal(q)[1])
    assert np.all(np.isfinite(gradient))
    ends = [float(normal(q + e * direction)[0]) for e in (step, -step)]
    slope = (ends[0] - ends[1]) / (2 * step)
    size = float(np.max(np.abs(gradient)))
    assert abs(gradient @ direction - slope) < 1e-4 * size, (gradient, slope)
