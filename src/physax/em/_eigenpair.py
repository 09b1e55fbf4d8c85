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
    """A matrix as `Q R`: the rotations that make `Q`, and what is not zero in `R`.

    Attributes:
        turns: Cosine and sine that mix each row but the last two with the next one,
            and those that then mix it with the last one.
        upper: `R` in these rows: on the diagonal, one and two columns on, and in the
            last two columns.
        end: Cosine and sine that mix the last two rows, and `R` in them: on the
            diagonal of the first, beside it, and on that of the last.
    """

    turns: tuple[Float[Array, " rows"], ...]
    upper: tuple[Float[Array, " rows"], ...]
    end: tuple[Float[Array, ""], ...]


def _rotation(
    keep: Float[Array, ""], drop: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Returns the cosine and sine that turn a pair of numbers onto the first axis."""
    length = jnp.sqrt(keep**2 + drop**2)
    zero = length == 0
    safe = jnp.where(zero, 1, length)
    return jnp.where(zero, 1, keep / safe), drop / safe


def _turn(turn, row, other):
    """Mixes two rows, or two numbers, by a rotation."""
    cos, sin = turn
    mixed = jax.tree.map(lambda x, y: cos * x + sin * y, row, other)
    return mixed, jax.tree.map(lambda x, y: cos * y - sin * x, row, other)


def _factor(
    diagonal: Float[Array, " n"], coupling: Float[Array, " n"], shift: Float[Array, ""]
) -> Factors:
    """Factors the matrix less a multiple of the identity; linear in its size.

    By rotations, which need no pivots. `L D L^T` fails: where a mode vanishes at a row,
    the block of the rows before it is singular too, and the halves of the mode on both
    sides of the row come out as if nothing coupled them.
    """
    size = diagonal.shape[0]
    rest = diagonal - shift
    inner, end, corner = jnp.split(coupling, (size - 2, size - 1))
    zero = jnp.zeros_like(rest[0])

    def eliminate(carry, below):
        row, last = carry
        turn = _rotation(row[0], below[0])
        row, below = _turn(turn, row, below)
        turn_last = _rotation(row[0], last[0])
        row, last = _turn(turn_last, row, last)
        following = [(x[1], x[2], zero, x[3], x[4]) for x in (below, last)]
        return tuple(following), ((*turn, *turn_last), row)

    # Each row as in `Factors.upper`, from the column where the one before begins.
    none = jnp.zeros_like(rest)
    belows = (
        inner,
        jnp.concatenate([rest[1 : size - 2], none[:1]]),
        jnp.concatenate([inner[1 : size - 3], none[:2]]),
        jnp.concatenate([none[4:], inner[size - 3 :], rest[size - 2 : size - 1]]),
        jnp.concatenate([none[3:], end]),
    )
    first = rest[0], inner[0] + zero, zero, zero, corner[0] + zero
    last = corner[0] + zero, zero, zero, end[0] + zero, rest[size - 1]
    (row, last), (turns, upper) = lax.scan(eliminate, (first, last), belows)
    turn = _rotation(row[3], last[3])
    (pivot, beside), (_, last_pivot) = _turn(turn, row[3:], last[3:])
    scale = jnp.max(jnp.abs(diagonal) + 2 * jnp.abs(coupling))
    least = jnp.finfo(diagonal.dtype).eps * scale

    def safe(pivot):
        return jnp.where(jnp.abs(pivot) < least, least, pivot)

    end = *turn, safe(pivot), beside, safe(last_pivot)
    return Factors(turns, (safe(upper[0]), *upper[1:]), end)


def _solve(factors: Factors, right: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solves with the factored matrix."""

    def down(carry, inputs):
        (value, last), (below, turns) = carry, inputs
        value, below = _turn(turns[:2], value, below)
        value, last = _turn(turns[2:], value, last)
        return (below, last), value

    start = right[0], right[-1]
    (value, last), y = lax.scan(down, start, (right[1:-1], factors.turns))
    *turn, pivot, beside, last_pivot = factors.end
    value, last = _turn(turn, value, last)
    end = last / last_pivot
    before = (value - beside * end) / pivot

    def up(carry, inputs):
        (one, two), (value, row) = carry, inputs
        rest = row[1] * one + row[2] * two + row[3] * before + row[4] * end
        value = (value - rest) / row[0]
        return (value, one), value

    zero = jnp.zeros_like(end)
    _, x = lax.scan(up, (zero, zero), (y, factors.upper), reverse=True)
    return jnp.concatenate([x, jnp.stack([before, end])])


def _apply(diagonal, coupling, vector):
    """Multiplies the matrix and a vector."""
    after = coupling * jnp.roll(vector, -1)
    before = jnp.roll(coupling * vector, 1)
    return diagonal * vector + after + before


def _count_above(
    diagonal: Float[Array, " n"], coupling: Float[Array, " n"], shift: Float[Array, ""]
) -> Int[Array, ""]:
    """Counts the eigenvalues above a shift, by Sylvester's law of inertia.

    Small pivots, which spoil vectors, hardly do so to the signs of all pivots.
    """
    size = diagonal.shape[0]
    tiny = jnp.finfo(diagonal.dtype).tiny ** 0.5

    def row(carry, inputs):
        correction, border, count, last = carry
        value, off, extra = inputs
        border = border + extra
        pivot = value - shift - correction
        pivot = jnp.where(jnp.abs(pivot) < tiny, -tiny, pivot)
        last = last - border**2 / pivot
        carry = off**2 / pivot, -border * off / pivot, count + (pivot > 0), last
        return carry, None

    # The last of the eliminated rows couples to the border alone, and the first one
    # through the corner.
    off = coupling[: size - 1].at[size - 2].set(0)
    extra = jnp.zeros_like(off).at[0].set(coupling[size - 1])
    extra = extra.at[size - 2].add(coupling[size - 2])
    last = diagonal[size - 1] - shift
    zero = jnp.zeros_like(last)
    start = zero, zero, jnp.zeros_like(last, int), last
    (_, _, count, last), _ = lax.scan(row, start, (diagonal[: size - 1], off, extra))
    return count + (last > 0)


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

    def iterate(_, vector):
        vector = _solve(factors, vector)
        vector = vector / jnp.max(jnp.abs(vector))
        return vector / jnp.linalg.norm(vector)

    vector = lax.fori_loop(0, 3, iterate, vector)
    return vdot(vector, _apply(diagonal, coupling, vector)), vector


@eigenpair.defjvp
def _(order, primals, tangents):
    diagonal, coupling = primals
    value, vector = eigenpair(diagonal, coupling, order)
    change = _apply(tangents[0], tangents[1], vector)
    slope = vdot(vector, change)

    def project(x):
        return x - vector * vdot(vector, x)

    # (A - value) x = -change on the complement of the vector, where it is regular; the
    # vector itself is mapped to itself.
    factors = _factor(*map(lax.stop_gradient, (diagonal, coupling, value)))

    def matrix(x):
        along = vector * vdot(vector, x)
        x = x - along
        return project(_apply(diagonal, coupling, x) - value * x) + along

    def solve(_, right):
        along = vector * vdot(vector, right)
        right = right - along

        def correct(_, x):
            rest = right - (_apply(diagonal, coupling, x) - value * x)
            return project(x + _solve(factors, project(rest)))

        return lax.fori_loop(0, 2, correct, jnp.zeros_like(right)) + along

    x = lax.custom_linear_solve(matrix, project(-change), solve, symmetric=True)
    return (value, vector), (slope, x)
