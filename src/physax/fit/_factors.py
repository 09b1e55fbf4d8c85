"""Triangular factors of the rows of a fit, with derivatives."""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float

from .._products import matmul


# Of a batch with more floating-point operations LAPACK's calls divide the work over the
# threads of XLA's CPU client, and each keeps one of them waiting: with as many calls as
# threads, of several devices for instance, all wait for ever (jax 0.10).
_MOST = 100_000


def _in_parts(factor: Callable) -> Callable:
    """Returns a factorisation that divides a batch so that no thread waits."""

    @custom_vmap
    def parted(rows):
        *batch, count, columns = rows.shape
        each = max(1, _MOST // (2 * count * columns**2 + 1))
        if math.prod(batch) <= each:
            return factor(rows)
        found = jax.lax.map(factor, rows.reshape(-1, count, columns), batch_size=each)
        return jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), found)

    @parted.def_vmap
    def _(size, batched, rows):
        del size
        found = parted(rows)
        return found, jax.tree.map(lambda _: batched[0], found)

    return parted


def _basis_and_factor(rows):
    return tuple(jnp.linalg.qr(rows))


_factor = _in_parts(partial(jnp.linalg.qr, mode="r"))
_both = jax.custom_jvp(_in_parts(_basis_and_factor))


@_both.defjvp
def _both_jvp(primals, tangents):
    basis, factor = _both(*primals)
    ratio = _ratio(factor, tangents[0])
    inner = matmul(_turned(basis), ratio)
    lower = jnp.tril(inner, -1)
    turn = lower - _turned(lower)
    moved = matmul(basis, turn - inner) + ratio, matmul(inner - turn, factor)
    return (basis, factor), moved


@jax.custom_jvp
def triangular(rows: Float[Array, "*groups n k"]) -> Float[Array, "*groups m k"]:
    """Returns R of rows, with a derivative in full precision."""
    return _factor(rows)


@triangular.defjvp
def _triangular_jvp(primals, tangents):
    basis, factor = _both(primals[0])
    return factor, _moved(factor, matmul(_turned(basis), tangents[0]))


def factors(
    rows: Float[Array, "*groups n k"], parts: Float[Array, "2 p m"] | None
) -> tuple[Float[Array, "*groups k k"], Float[Array, "2 m m"] | None]:
    """Returns R of rows, and factors F with F^T F = Y^T Y of those of `Parts`.

    Those may vanish, as where there are no outliers.

    Args:
        rows: The rows, not fewer than those of parts; without groups if there are such.
        parts: The rows of E and B, one column less than the others.
    """
    return (triangular(rows), None) if parts is None else _factors(rows, parts)


@jax.custom_jvp
def _factors(rows, parts):
    return _apart(_factor(_stacked(rows, parts)))


@_factors.defjvp
def _factors_jvp(primals, tangents):
    basis, factor = _both(_stacked(*primals))
    first, more = _apart(matmul(_turned(basis), _stacked(*tangents)))
    # Of the parts it is not triangular, but gives the right derivative of the product
    # without an inverse.
    return _apart(factor), (_moved(factor[0], first), more)


def _stacked(rows, parts):
    missing = rows.shape[0] - parts.shape[1]
    return jnp.concatenate([rows[None], jnp.pad(parts, ((0, 0), (0, missing), (0, 1)))])


def _apart(stacked):
    return stacked[0], stacked[1:, :-1, :-1]


def _turned(x):
    return jnp.swapaxes(x, -1, -2)


def _moved(factor, turned):
    """Returns the derivative of R from Q^T times that of the rows."""
    lower = jnp.tril(_ratio(factor, turned), -1)
    return turned - matmul(lower - _turned(lower), factor)


def _ratio(factor, rows):
    """Returns rows times the inverse of R."""
    return _turned(jax.scipy.linalg.solve_triangular(factor, _turned(rows), trans=1))
