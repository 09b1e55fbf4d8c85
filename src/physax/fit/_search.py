"""The state of a search between two passes over the data."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._products import matmul
from ._robust import Parts
from ._sums import Normal, column_norms, power_of_two


# `AGAIN` evaluates where the search is, after undamped steps have failed.
START, AGAIN, SEARCH, POLISH, DONE = range(5)


class Search(eqx.Module):
    """The state of a search between two passes over the data.

    Attributes:
        vector: The best parameters so far.
        trial: Those that are evaluated next.
        normal: The model at `vector`.
        scale: The diagonal of D.
        largest: The largest norm that each column of the Jacobian has had.
        radius: Of the trust region.
        length: Scaled length of the step to `trial`.
        predicted: Its promised reduction of the cost.
        slope: The derivative of the cost along it.
        full: Whether the region did not shorten it.
        calm: How often in a row the cost has hardly changed.
        evaluations: Passes over the data.
        iterations: Steps that were accepted.
        phase: Of the search.
        strict: Whether the search went on after undamped steps had failed.
        factored: Whether passes form a triangular factor instead of sums of squares.
        unit: What residuals are multiplied by, a power of two: 1 unless their squares
            are out of the range of the dtype.
    """

    vector: Float[Array, " m"]
    trial: Float[Array, " m"]
    normal: Normal
    scale: Float[Array, " m"]
    largest: Float[Array, " m"]
    radius: Float[Array, ""]
    length: Float[Array, ""]
    predicted: Float[Array, ""]
    slope: Float[Array, ""]
    full: Bool[Array, ""]
    calm: Int[Array, ""]
    evaluations: Int[Array, ""]
    iterations: Int[Array, ""]
    phase: Int[Array, ""]
    strict: Bool[Array, ""]
    factored: Bool[Array, ""]
    unit: Float[Array, ""]

    @property
    def done(self) -> Bool[Array, ""]:
        """Whether the search has ended."""
        return self.phase == DONE


def begin(vector: Float[Array, " m"], linear: int = 0, robust: bool = False) -> Search:
    """Returns a search that has evaluated nothing.

    Args:
        vector: Where it starts.
        linear: Number of linear coefficients that are eliminated.
        robust: Whether the loss is another one than the square.
    """
    dtype, size = vector.dtype, vector.size
    no = jnp.zeros((), bool)
    zero, number = jnp.zeros((), dtype), jnp.zeros((), jnp.int32)
    normal = Normal(
        factor=jnp.zeros((size, size), dtype),
        target=jnp.zeros(size, dtype),
        gradient=jnp.zeros(size, dtype),
        cost=zero,
        count=jnp.zeros((), int),
        conditioned=jnp.ones((), bool),
        linear=jnp.zeros(linear, dtype),
        joint=jnp.zeros((linear + size, linear + size), dtype),
        parts=Parts(jnp.zeros((2, size, size), dtype), no, zero, zero)
        if robust
        else None,
    )
    return Search(
        vector=vector,
        trial=vector + 0,
        normal=normal,
        scale=jnp.ones(size, dtype),
        largest=jnp.ones(size, dtype),
        radius=zero,
        length=zero,
        predicted=zero,
        slope=zero,
        full=jnp.zeros((), bool),
        calm=number,
        evaluations=number,
        iterations=number,
        phase=number,
        strict=jnp.zeros((), bool),
        factored=jnp.zeros((), bool),
        unit=jnp.ones((), dtype),
    )


def finite(normal: Normal) -> Bool[Array, ""]:
    """Returns whether a model is a number throughout."""
    return (
        jnp.isfinite(normal.cost)
        & jnp.all(jnp.isfinite(normal.gradient))
        & jnp.all(jnp.isfinite(normal.factor))
    )


def noise(search: Search) -> Float[Array, ""]:
    """Returns the change of the cost that rounding of the parameters alone makes."""
    eps = jnp.finfo(search.vector.dtype).eps
    # The squares of the whole moves may be out of range.
    moves = 16 * eps * column_norms(search.normal) * search.vector
    return matmul(moves, moves)


def tiny(normal: Normal) -> Bool[Array, ""]:
    """Returns whether squares of residuals have lost digits below the range."""
    limits = jnp.finfo(normal.cost.dtype)
    return normal.cost <= normal.count * float(limits.tiny / limits.eps)


def better_unit(
    search: Search, normal: Normal, vector: Float[Array, " m"]
) -> Float[Array, ""]:
    """Returns the unit of residuals in which their squares are numbers of the dtype.

    Smaller ones are multiplied as far as what the parameters contribute allows, and
    before the first step larger ones are divided.

    Args:
        search: With the present unit.
        normal: The model at some point.
        vector: This point.
    """
    limits = jnp.finfo(vector.dtype)
    largest, least = float(limits.max), float(limits.tiny)
    step = 2.0 ** (60 if limits.nexp == 8 else 500)
    norms = column_norms(normal)
    moves = jnp.abs(norms * vector)
    # Sums and their derivatives stay in range where nothing tells that residuals are
    # not exactly 0.
    some = (normal.cost > 0) | jnp.any(normal.target != 0)
    most = jnp.where(some, 2.0**-40 * largest, largest**0.25)
    room = jnp.minimum(
        most / jnp.max(norms, initial=least),
        2.0**-20 * largest**0.5 / jnp.max(moves, initial=least),
    )
    room = power_of_two(jnp.minimum(room, step))
    raised = tiny(normal) & (room > 1) & (search.unit >= 1) & (search.unit < step**2)
    large = ~finite(normal) | (normal.cost > 2.0**-8 * largest)
    lowered = (search.phase == START) & large
    lowered &= (search.unit <= 1) & (search.unit > step**-2)
    unit = jnp.where(raised, search.unit * room, search.unit)
    return jnp.where(lowered & ~raised, search.unit / step, unit)
