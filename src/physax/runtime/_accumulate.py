"""Gradients of large batches in the memory of small ones."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_leaves_with_path
from jaxtyping import Array, Inexact, PyTree, Shaped

from .._checks import ArgumentError, whole
from ._leading import leading_size


def accumulate(
    value_and_grad: Callable[[Any], Any],
    batch: PyTree[Shaped[Array | np.ndarray, "..."]],
    microbatches: int,
) -> PyTree[Inexact[Array, "..."]]:
    """Averages values and gradients over a batch, a part of it at a time.

    Where the loss is a mean over rows, this is the result for the whole batch up to
    rounding, while only a part's intermediate values are in memory. Sums are kept in
    at least float32. Part `i` of `n` holds the rows `i`, `i + n`, `i + 2 n`, so that
    each part of a batch that is spread over devices is spread likewise.

    Args:
        value_and_grad: Takes a part of the batch to a pytree of floating point arrays,
            as `lambda part: jax.value_and_grad(loss)(parameters, part)` does.
        batch: Arrays with one leading axis, over which `value_and_grad` takes means.
        microbatches: How many parts, at least 1; a divisor of the number of rows.

    Returns:
        The mean over the parts of what `value_and_grad` returns, of its dtypes.

    Raises:
        ArgumentError: If `batch` has no rows or leaves of different numbers of rows, or
            `microbatches` does not divide that number, or something that
            `value_and_grad` returns is not floating point.
    """
    rows = leading_size(batch, "batch", "one and the same number of rows")
    microbatches = whole(microbatches, "microbatches")
    if rows % microbatches:
        raise ArgumentError(
            f"`microbatches` must divide the {rows} rows of `batch`, but is "
            f"{microbatches}. The divisors next to it are "
            f"{_next_divisors(rows, microbatches)}."
        )
    columns = jax.tree.map(
        lambda x: jnp.reshape(x, (rows // microbatches, microbatches, *x.shape[1:])),
        batch,
    )

    def evaluate(i):
        # Picked from the second axis: a copy of the batch in another order would take
        # as much memory again.
        part = jax.tree.map(
            lambda x: jax.lax.dynamic_index_in_dim(x, i, 1, keepdims=False), columns
        )
        return value_and_grad(part)

    like = eqx.filter_eval_shape(evaluate, jnp.asarray(0))
    for path, leaf in tree_leaves_with_path(like):
        array = isinstance(leaf, jax.ShapeDtypeStruct)
        if not array or not jnp.issubdtype(leaf.dtype, jnp.inexact):
            kind = leaf.dtype if array else type(leaf).__name__
            raise ArgumentError(
                "`value_and_grad` must return floating point arrays only, but "
                f"`result{keystr(path)}` is {kind}, which has no mean."
            )

    def add(total, i):
        found = evaluate(i)
        return jax.tree.map(lambda a, b: a + b.astype(a.dtype), total, found), None

    zero = jax.tree.map(lambda x: jnp.zeros(x.shape, _sum_dtype(x.dtype)), like)
    total, _ = jax.lax.scan(add, zero, jnp.arange(microbatches))
    return jax.tree.map(lambda a, b: (a / microbatches).astype(b.dtype), total, like)


def _sum_dtype(dtype):
    return jnp.promote_types(dtype, jnp.float32)


def _next_divisors(rows: int, near: int) -> str:
    below = max(n for n in range(1, min(near, rows) + 1) if rows % n == 0)
    above = min((n for n in range(near, rows + 1) if rows % n == 0), default=rows)
    return f"{below} and {above}" if below != above else f"{below}"
