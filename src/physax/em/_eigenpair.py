"""One eigenpair of a symmetric tridiagonal matrix with corners, without LAPACK.

A slab's modes need one or two eigenpairs of a line of a few hundred points. Dense
eigensolvers find all of them, and on the CPU two batched ones that run at the same time
wait for each other for ever on a small thread pool (seen with jaxlib 0.10.2).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from .._products import vdot


class Factors(NamedTuple):
    """The matrix as `L D L^T`, its last row and column kept as a border."""

    pivots: Float[Array, " rows"]
    lower: Float[Array, " rows"]
    border: Float[Array, " rows"]
    last: Float[Array, ""]


def _factor(
    diagonal: Float[Array, " n"], coupling: Float[Array, " n"], shift: Float[Array, ""]
) -> Factors:
    """Factors the matrix less a multiple of the identity; linear in its size."""
    size = diagonal.shape[0]
    tiny = jnp.finfo(diagonal.dtype).tiny ** 0.5

    def row(carry, inputs):
        pivot_correction, border = carry
        value, off, extra = inputs
        border = border + extra
        pivot = value - shift - pivot_correction
        pivot = jnp.where(jnp.abs(pivot) < tiny, -tiny, pivot)
        carry = off**2 / pivot, -border * off / pivot
        return carry, (pivot, off / pivot, border)

    # The last of the eliminated rows couples to the border alone, and the first one
    # through the corner.
    off = coupling[: size - 1].at[size - 2].set(0)
    extra = jnp.zeros_like(off).at[0].set(coupling[size - 1])
    extra = extra.at[size - 2].add(coupling[size - 2])
    zero = jnp.zeros_like(shift + diagonal[0])
    inputs = diagonal[: size - 1], off, extra
    _, (pivots, lower, border) = lax.scan(row, (zero, zero), inputs)
    last = diagonal[size - 1] - shift - jnp.sum(border**2 / pivots)
    return Factors(pivots, lower, border, jnp.where(last == 0, -tiny, last))


def _solve(factors: Factors, right: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solves with the factored matrix."""
    pivots, lower, border, last = factors

    def down(previous, inputs):
        value, factor = inputs
        value = value - previous
        return factor * value, value

    zero = jnp.zeros_like(right[0] * last)
    _, y = lax.scan(down, zero, (right[:-1], lower))
    end = (right[-1] - jnp.sum(border / pivots * y)) / last

    def up(following, inputs):
        value, factor = inputs
        value = value - factor * following
        return value, value

    _, x = lax.scan(up, zero, ((y - border * end) / pivots, lower), reverse=True)
    return jnp.concatenate([x, end[None]])


def _apply(diagonal, coupling, vector):
    """Multiplies the matrix and a vector."""
    after = coupling * jnp.roll(vector, -1)
    before = jnp.roll(coupling * vector, 1)
    return diagonal * vector + after + before


def _count_above(diagonal, coupling, shift) -> Int[Array, ""]:
    """Counts the eigenvalues above a shift, by Sylvester's law of inertia."""
    factors = _factor(diagonal, coupling, shift)
    return jnp.sum(factors.pivots > 0) + (factors.last > 0)


# Shifts tried at once in each pass: a pass makes the interval so many times smaller.
_SECTIONS = 16


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def eigenpair(
    diagonal: Float[Array, " n"], coupling: Float[Array, " n"], order: int
) -> tuple[Float[Array, ""], Float[Array, " n"]]:
    """Returns the eigenpair with the `order`-th largest eigenvalue.

    The eigenvalue is found by multisection with the inertia of shifted matrices, the
    vector by inverse iteration. Differentiable, both ways and twice, if the eigenvalue
    is simple; others may be degenerate. Reference: Parlett, *The Symmetric Eigenvalue
    Problem* (1998), chapters 3 and 4.

    Args:
        diagonal: The diagonal; at least 4 rows.
        coupling: Entry `i` couples rows `i` and `i + 1`, the last one the last row and
            the first.
        order: 1 for the largest.

    Returns:
        The eigenvalue, and the vector of unit length (its sign is arbitrary).
    """
    reach = jnp.abs(coupling) + jnp.abs(jnp.roll(coupling, 1))
    low, high = jnp.min(diagonal - reach), jnp.max(diagonal + reach)
    eps = float(jnp.finfo(diagonal.dtype).eps)
    passes, width = 1, 1.0
    while width > eps:
        width /= _SECTIONS + 1
        passes += 1

    def section(interval, _):
        low, high = interval
        steps = jnp.arange(1, _SECTIONS + 1, dtype=diagonal.dtype) / (_SECTIONS + 1)
        shifts = low + (high - low) * steps
        counts = jax.vmap(partial(_count_above, diagonal, coupling))(shifts)
        below = counts >= order
        low = jnp.max(jnp.where(below, shifts, low))
        high = jnp.min(jnp.where(below, high, shifts))
        return (low, high), None

    (low, high), _ = lax.scan(section, (low, high), None, length=passes)
    factors = _factor(diagonal, coupling, (low + high) / 2)
    # Not symmetric, so that no mode of a symmetric slab is orthogonal to it.
    index = jnp.arange(diagonal.shape[0], dtype=diagonal.dtype)
    vector = jnp.sin(1 + 2.399963 * index) + 0.5
    for _ in range(3):
        vector = _solve(factors, vector)
        vector = vector / jnp.max(jnp.abs(vector))
        vector = vector / jnp.linalg.norm(vector)
    return vdot(vector, _apply(diagonal, coupling, vector)), vector


@eigenpair.defjvp
def _(order, primals, tangents):
    diagonal, coupling = primals
    value, vector = eigenpair(diagonal, coupling, order)
    change = _apply(tangents[0], tangents[1], vector)
    slope = vdot(vector, change)

    def project(x):
        return x - vector * vdot(vector, x)

    # (A - value) x = -change on the complement of the vector, where it is regular. The
    # factors are of a matrix shifted a little further; two corrections make up for it.
    scale = jnp.max(jnp.abs(diagonal) + 2 * jnp.abs(coupling))
    offset = 64 * jnp.finfo(diagonal.dtype).eps * scale
    factors = _factor(diagonal, coupling, lax.stop_gradient(value + offset))
    right = project(-change)
    x = jnp.zeros_like(right)
    for _ in range(3):
        rest = right - (_apply(diagonal, coupling, x) - value * x)
        x = project(x + _solve(factors, project(rest)))
    return (value, vector), (slope, x)
