"""Problems in which some parameters are linear: variable projection."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from .._checks import ArgumentError, instance, traced, true_or_false
from .._products import einsum, matmul
from .._written_for_jax import check_function, written_for_jax
from ._eliminate import (
    Mixing,
    Parts,
    best_coefficients,
    eliminated,
    residual_map,
    separate,
)
from ._given import (
    as_columns,
    as_deviations,
    check_groups,
    check_mask,
    check_names,
    check_pair,
)
from ._linear_limits import linear_limits
from ._parameters import Parameters
from ._problems import AbstractProblem, as_absolute_sigma
from ._sums import Columns, Unit
from ._ties import Tie
from ._used import first_used, safe_points


class AbstractSeparable(AbstractProblem):
    r"""A problem $y \approx \sum_a \beta_a \phi_a(p)$, with $\beta$ eliminated.

    Attributes:
        parts: What the columns of a group are.
        mixing: How groups of points share coefficients.
        low: Lower bounds of the coefficients.
        high: Their upper bounds.
        coefficients: Values to keep among what is solved for; None to eliminate them.
        centre: A constant that is subtracted from the data: sums of squares keep more
            digits.
    """

    parts: eqx.AbstractVar[Parts]
    mixing: eqx.AbstractVar[Mixing]
    low: eqx.AbstractVar[Float[Array, " linear"]]
    high: eqx.AbstractVar[Float[Array, " linear"]]
    coefficients: eqx.AbstractVar[Float[Array, " linear"] | None]
    centre: eqx.AbstractVar[Float[Array, ""]]

    def vector(self):
        vector = self.parameters.vector
        if self.coefficients is None:
            return vector
        return jnp.concatenate([self.coefficients.astype(vector.dtype), vector])

    def bounds(self):
        low, high = self.parameters.low, self.parameters.high
        if self.coefficients is None:
            return low, high
        return jnp.concatenate([self.low, low]), jnp.concatenate([self.high, high])

    def sums_shape(self, batch):
        del batch
        return len(self.mixing.rows), self.parts.size, self.parts.size

    def normal(self, vector, sums, factored, unit=1.0):
        del unit
        parts, mixing = self.parts, self.mixing
        if self.coefficients is None:
            matrix = sums.matrix + sums.rest
            found = best_coefficients(matrix, parts, mixing, factored)
            model = eliminated(sums, found, parts, mixing, factored, keep=False)
            return eqx.tree_at(
                lambda n: n.linear, model, self._shifted(found, 1).reshape(-1)
            )
        given = vector[: self.coefficients.size].reshape(parts.functions, -1)
        given = self._shifted(given, -1)
        return eliminated(sums, given, parts, mixing, factored, keep=True)

    def divided(
        self, vector: Float[Array, " m"]
    ) -> tuple[Float[Array, " linear"] | None, Float[Array, " free"]]:
        """Returns linear coefficients, None if they are eliminated, and parameters."""
        if self.coefficients is None:
            return None, vector
        return vector[: self.coefficients.size], vector[self.coefficients.size :]

    def _shifted(self, coefficients, sign: int):
        """Adds the centre to the offset, or takes it off."""
        if self.mixing.ones is None or not self.parts.offset:
            return coefficients
        shift = sign * self.centre * self.mixing.ones
        return coefficients.at[-1].add(shift.astype(coefficients.dtype))

    def scores(
        self,
        vector: Float[Array, " m"],
        linear: Float[Array, " linear"],
        batch: PyTree,
        used: Bool[Array, " points"],
    ) -> Float[Array, "groups all residuals"]:
        """Returns what each residual adds to the gradient: its row of J, times it.

        Covariances of correlated data are made of their sums over clusters.

        Args:
            vector: The parameters, without linear coefficients.
            linear: The linear coefficients.
            batch: A chunk of the data.
            used: Which of its points count.
        """
        columns = self.columns(vector, batch, used).rows
        given = self._shifted(linear.reshape(self.parts.functions, -1), -1)
        turn = residual_map(given, self.parts, self.mixing)
        rows = einsum("gkp,gkq->gqp", columns, turn)
        return rows[:, :-1] * rows[:, -1:]

    @property
    def may_violate_bounds(self) -> bool:
        """Whether coefficients are eliminated that have bounds."""
        if self.coefficients is not None:
            return False
        limits = (self.low, self.high)
        if traced(limits):
            return True
        return any(np.isfinite(np.asarray(limit)).any() for limit in limits)

    def needs_joint_fit(self, linear: Float[Array, " linear"]) -> Bool[Array, ""]:
        """Returns whether eliminated coefficients are outside their bounds, or fixed.

        Those between equal bounds are no longer eliminated, whatever their value.
        """
        return _outside(linear, self.low, self.high)

    def jointly(
        self, vector: Float[Array, " m"], linear: Float[Array, " linear"]
    ) -> "AbstractSeparable":
        """Returns the problem with the coefficients among what is solved for.

        Args:
            vector: Where to start.
            linear: Coefficients to start with, which are moved into their bounds.
        """
        flat = self.parameters.filled(vector)
        return eqx.tree_at(
            lambda p: (p.parameters.flat, p.coefficients),
            self,
            (flat, jnp.clip(linear, self.low, self.high)),
            is_leaf=lambda x: x is None,
        )


class _Observed(NamedTuple):
    """What is read and what was observed, under the names of the arguments."""

    data: PyTree
    observed: Any
    sigma: Any
    mask: Any


class Separable(AbstractSeparable):
    """A least-squares problem with linear coefficients, which need no start.

    The fit moves the other parameters alone; errors and correlations are those of the
    full problem.

    Attributes:
        parameters: Those that are not linear.
        data: Data, what was observed, standard deviations and mask.
        basis: Takes parameters and a chunk of the data to the functions.
        parts: What the columns of a group are.
        mixing: How groups of points share coefficients.
        low: Lower bounds of the coefficients.
        high: Their upper bounds.
        coefficients: Values to keep among what is solved for, or None.
        centre: A constant that is subtracted from the data.
        linear_names: Names of the coefficients.
        absolute_sigma: Whether standard deviations are known.
    """

    parameters: Parameters
    data: PyTree
    basis: Callable
    mixing: Mixing
    low: Float[Array, " linear"]
    high: Float[Array, " linear"]
    coefficients: Float[Array, " linear"] | None
    centre: Float[Array, ""]
    parts: Parts = eqx.field(static=True)
    linear_names: tuple[str, ...] = eqx.field(static=True)
    absolute_sigma: bool = eqx.field(static=True, converter=as_absolute_sigma)

    def __init__(
        self,
        basis: Callable,
        start: PyTree,
        data: PyTree,
        observed: Any,
        *,
        functions: Sequence[str] = ("amplitude",),
        offset: bool = False,
        groups: int | None = None,
        mixing: Mixing | None = None,
        linear_bounds: tuple[Any, Any] = (None, None),
        sigma: Any = None,
        mask: Any = None,
        bounds: tuple[Any, Any] = (None, None),
        fixed: Callable | None = None,
        ties: Tie | Sequence[Tie] = (),
        absolute_sigma: bool = False,
    ):
        """Sets up a problem.

        Args:
            basis: Takes parameters and a chunk of the data to the functions, an array
                like the chunk of `observed` with one more axis, the functions; without
                it if there is one. Each point from its own data.
            start: Where to start.
            data: A tree of arrays whose first axis is the points.
            observed: What was observed; the first axis is the points.
            functions: Names of the coefficients of the functions.
            offset: Whether a constant is fitted as well.
            groups: Length of the second axis of `observed`, if each entry there has
                coefficients of its own; None for the same everywhere.
            mixing: How groups share coefficients, if not one for each.
            linear_bounds: Lower and upper bounds of the coefficients, each a number or
                one for each name (the offset last).
            sigma: Standard deviation of each observed value, or of all.
            mask: Which observed values count.
            bounds: Lower and upper bounds of the parameters.
            fixed: Picks parameters that stay fixed.
            ties: Parameters that follow from others.
            absolute_sigma: Whether `sigma` are known standard deviations, and not only
                relative ones.

        Raises:
            ArgumentError: If bounds are crossed, a tied parameter is bounded, fixed or
                follows from itself, `observed` or `sigma` are complex, `sigma` is not
                positive or, where values count, not finite, shapes or `groups` do not
                fit, or an argument is of another kind.
        """
        check_function(basis, "basis", "lambda p, x: jnp.exp(-p * x)")
        check_mask(mask)
        check_pair(linear_bounds, "linear_bounds")
        self.absolute_sigma = as_absolute_sigma(absolute_sigma)
        offset = true_or_false(offset, "offset")
        check_names(functions, "functions")
        names = (*functions, "offset") if offset else tuple(functions)
        check_names(names, "functions")
        self.parameters = Parameters(start, bounds, fixed, ties).with_free()
        self.basis = basis
        sigma = as_deviations(sigma, mask, observed)
        self.data = _Observed(data, observed, sigma, mask)
        count = check_groups(groups, observed.shape)
        if mixing is not None:
            instance(mixing, "mixing", Mixing, "Write `Mixing(rows)` or `shared(2)`.")
        self.mixing = separate(count) if mixing is None else mixing
        if len(self.mixing.rows) != count:
            raise ArgumentError(
                f"`mixing` must have a row for each of {count} groups, but has "
                f"{len(self.mixing.rows)}."
            )
        self.parts = Parts(len(functions), int(offset), len(self.parameters.names))
        width = self.mixing.rows.shape[1]
        self.linear_names = self.mixing.coefficients(names)
        self.low, self.high = linear_limits(linear_bounds, len(names), width)
        self.coefficients = None
        self.centre = jnp.asarray(first_used(observed, mask) if offset else 0.0)
        if self.mixing.ones is None:
            self.centre = jnp.zeros_like(self.centre)

    def columns(
        self,
        vector: Float[Array, " m"],
        batch: PyTree,
        used: Bool[Array, " points"],
        unit: Unit = 1.0,
    ) -> Columns:
        _, observed, _, _ = batch
        moving = vector[-self.parts.free :]
        functions, keep, weight = self._counting(batch, used)
        values, push = jax.linearize(functions, moving)
        slopes = jax.vmap(push, out_axes=-1)(jnp.eye(moving.size, dtype=moving.dtype))
        columns = [values]
        if self.parts.offset:
            columns.append(jnp.ones((*observed.shape, 1)))
        columns.append(slopes.reshape(*observed.shape, -1))
        columns.append((observed - self.centre)[..., None])
        joined = jnp.concatenate(columns, axis=-1).astype(vector.dtype)
        joined = jnp.where(keep[..., None], joined, 0) * (weight[..., None] * unit)
        if len(self.mixing.rows) > 1:
            joined = jnp.moveaxis(joined, 1, 0)
        rows = joined.reshape(len(self.mixing.rows), -1, self.parts.size)
        return Columns(
            jnp.swapaxes(rows, 1, 2), jnp.zeros((), vector.dtype), jnp.sum(keep)
        )

    def _counting(self, batch, used):
        """Returns the functions of the parameters, which values count, and weights."""
        data, observed, sigma, mask = batch
        keep = used.reshape(-1, *[1] * (observed.ndim - 1))
        keep = keep & (jnp.ones_like(observed, bool) if mask is None else mask)
        if mask is not None:
            data = safe_points(data, keep.reshape(used.size, -1).any(axis=1))
        weight = jnp.where(keep, 1.0 if sigma is None else 1 / sigma, 0)

        def functions(moving):
            with written_for_jax("basis"):
                values = self.basis(self.parameters.tree(moving), data)
            return as_columns(values, observed.shape, self.parts.varying)

        return functions, keep, weight

    def residuals_each(self):
        return math.prod(self.data[1].shape[1:])

    def cost(self, vector, unit=1.0):
        _, observed, _, _ = self.data
        given, moving = self.divided(vector)
        used = jnp.ones(len(observed), bool)
        functions, _, weight = self._counting(self.data, used)
        parts, mixing = self.parts, self.mixing
        values, weight = functions(moving), weight * unit
        return projected_cost(values, observed, weight, parts, mixing, given)


def projected_cost(
    functions, observed, weight, parts: Parts, mixing: Mixing, given=None
):
    """Returns the sum of squares at given linear coefficients, or at the best ones.

    Args:
        functions: Values of the functions, which are the last axis.
        observed: What was observed.
        weight: One over the standard deviations; what has 0 does not count.
        parts: What the columns are.
        mixing: How groups share coefficients.
        given: The linear coefficients; None for the best ones.
    """
    if parts.offset:
        one = jnp.ones((*observed.shape, 1), functions.dtype)
        functions = jnp.concatenate([functions, one], axis=-1)
    groups = len(mixing.rows)
    if groups > 1:
        functions = jnp.moveaxis(functions, 1, 0)
        observed, weight = jnp.moveaxis(observed, 1, 0), jnp.moveaxis(weight, 1, 0)
    weight = jnp.where(jnp.isfinite(weight), weight, 0).reshape(groups, -1)
    values = jnp.where(weight > 0, observed.reshape(groups, -1), 0) * weight
    functions = functions.reshape(groups, values.shape[1], -1)
    functions = jnp.where(weight[..., None] > 0, functions, 0) * weight[..., None]
    columns = einsum("gpa,gc->gpac", functions, mixing.rows)
    columns = columns.reshape(values.size, -1)
    values = values.reshape(-1)
    if given is not None:
        return jnp.sum((values - matmul(columns, given)) ** 2)
    norms = jax.lax.stop_gradient(jnp.linalg.norm(columns, axis=0))
    columns = columns / jnp.where(norms > 0, norms, 1)
    product = matmul(columns.T, columns)
    factors = jax.scipy.linalg.lu_factor(jax.lax.stop_gradient(product))

    def left(values):
        found = jax.lax.custom_linear_solve(
            partial(matmul, product),
            matmul(columns.T, values),
            lambda _, sides: jax.scipy.linalg.lu_solve(factors, sides),
            symmetric=True,
        )
        return values - matmul(columns, found)

    # Twice: products lose digits to the square of the condition.
    return jnp.sum(left(left(values)) ** 2)


@jax.jit
def _outside(values, low, high):
    return jnp.any((values < low) | (values > high) | (low == high))
