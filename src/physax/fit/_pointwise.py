"""Whether a model may be evaluated piece by piece: each point from its own data."""

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._checks import ArgumentError, traced
from ._passes import points_in, without_data
from ._problems import AS_ONE, AbstractProblem, LeastSquares, takes_all_points
from ._separable import Separable


# Enough to meet a peak of a thousandth of the width; far less than a pass takes.
_HALF = 512


def check_pointwise(
    problem: AbstractProblem, data: PyTree, count: int, at_once: int
) -> None:
    """Raises if values of points depend on which others are evaluated with them.

    Compares values and derivatives of some points with those of parts of them, near the
    start. Nothing is compared where all points are evaluated at once, where something
    is traced, or where data are on other processes.

    Args:
        problem: The problem.
        data: Its data, or a block of them.
        count: Number of points in all.
        at_once: Points that are evaluated at once.

    Raises:
        ArgumentError: If they do.
    """
    half = min(_HALF, max(at_once // 2, 1), points_in(data) // 2)
    whole = count <= at_once or not half
    if whole or not isinstance(problem, LeastSquares | Separable) or _afar(data):
        return
    # Neither evenly, as rows of an image are, nor at random.
    number = np.arange(2 * half)
    places = (number + number * 0.618034 % 1) * points_in(data) / number.size
    some = jax.tree.map(lambda x: x[places.astype(int)], data)
    bare = without_data(problem)
    try:
        found = _deviation(bare, some)
    except ArgumentError:
        raise
    except (IndexError, TypeError, ValueError) as error:
        # One point alone has passed.
        raise takes_all_points(error) from error
    if isinstance(found, jax.core.Tracer) or float(found) <= _limit((bare, some)):
        return
    name = "`residual`, or `f` of `curve_fit`,"
    if isinstance(problem, Separable):
        name = "`basis`"
    raise ArgumentError(
        f"{name} must give each point from its own data alone where there are more "
        f"points, {count}, than are evaluated at once, {at_once}, but values or "
        f"derivatives change by {float(found):.2g} of the largest with the other "
        f"points. Compute `x[0]`, `x.max()` and the like before. {AS_ONE}"
    )


def _afar(data: PyTree) -> bool:
    leaves = jax.tree.leaves(data)
    return traced(data) or any(
        isinstance(x, jax.Array) and not x.is_fully_addressable for x in leaves
    )


def _limit(tree: PyTree) -> float:
    """Returns a deviation far above rounding, in the least precise type there is."""
    leaves = [x for x in jax.tree.leaves(tree) if eqx.is_inexact_array(x)]
    return max([1e-4, *(float(jnp.finfo(x.dtype).eps) ** 0.375 for x in leaves)])


@eqx.filter_jit
def _deviation(problem: AbstractProblem, data: PyTree) -> Float[Array, ""]:
    """Returns the largest change of a column, in units of its largest entry."""
    number = jnp.arange(points_in(data))
    half = number.size // 2
    vector = problem.vector()
    low, high = problem.bounds()
    # At a start of zeros, other derivatives vanish.
    nudge = 0.01 * (1 + jnp.arange(vector.size) * 0.618034 % 1)
    vector = vector * (1 + nudge) + jnp.where(vector == 0, nudge, 0)
    vector = jnp.clip(vector, low, high)

    def columns(places):
        part = jax.tree.map(lambda x: jnp.asarray(x)[places], data)
        rows = problem.columns(vector, part, jnp.ones(places.size, bool)).rows
        return rows.reshape(*rows.shape[:-1], places.size, -1)

    every = columns(number)
    largest = jnp.max(jnp.where(jnp.isfinite(every), jnp.abs(every), 0), axis=(-2, -1))

    def change(places):
        # What is not finite, the fit reports.
        change = jnp.abs(columns(places) - every[..., places, :])
        change = jnp.max(jnp.where(jnp.isfinite(change), change, 0), axis=(-2, -1))
        return jnp.max(change / jnp.where(largest > 0, largest, 1))

    # One program for all: neighbours count, too, and the ends.
    parts = jnp.stack([number[:half], number[half:], number[::2]])
    return jnp.max(jax.lax.map(change, parts))
