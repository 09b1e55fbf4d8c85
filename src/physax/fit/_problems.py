"""Least-squares problems: what is minimised, over which parameters, on which data."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Number
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from .._checks import ArgumentError, instance, kind_of, true_or_false
from .._products import matmul
from .._written_for_jax import check_function, floating, written_for_jax
from ._given import check_mask, refuse_complex
from ._jacobian import jacobian_of
from ._losses import AbstractLoss, Squared
from ._parameters import Parameters
from ._robust import Parts, robust_rows
from ._sums import Columns, Factored, Normal, Sums, Unit, add, triangle
from ._ties import Tie
from ._used import safe_points


as_absolute_sigma = partial(true_or_false, name="absolute_sigma")


class AbstractProblem(eqx.Module):
    """What `least_squares` minimises.

    Attributes:
        parameters: The parameters, and which of them are free.
        data: A tree of arrays whose first axis is the points; arrays on disk
            (memory-mapped, HDF5, zarr) stay there. Or a `Stream`.
        absolute_sigma: Whether the residuals are in units of known standard deviations.
            If not, the covariance is scaled by the reduced chi-square.
        linear_names: Names of linear coefficients that are eliminated.
    """

    parameters: eqx.AbstractVar[Parameters]
    data: eqx.AbstractVar[PyTree]
    absolute_sigma: eqx.AbstractVar[bool]
    linear_names: eqx.AbstractVar[tuple[str, ...]]

    @abstractmethod
    def vector(self) -> Float[Array, " m"]:
        """Returns the start of what the solver moves."""

    @abstractmethod
    def bounds(self) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """Returns the lower and upper bounds of that."""

    @abstractmethod
    def residuals_each(self) -> int:
        """Returns the number of residuals of one entry of the data's first axis."""

    @abstractmethod
    def sums_shape(self, batch: PyTree) -> tuple[int, ...]:
        """Returns the shape of the sums over points like those in `batch`."""

    @abstractmethod
    def columns(
        self,
        vector: Float[Array, " m"],
        batch: PyTree,
        used: Bool[Array, " points"],
        unit: Unit = 1.0,
    ) -> Columns:
        """Evaluates the columns of one chunk of points.

        Args:
            vector: The values of what the solver moves.
            batch: A chunk of `data`.
            used: Which points of the chunk count.
            unit: What to multiply residuals by.
        """

    @abstractmethod
    def normal(
        self,
        vector: Float[Array, " m"],
        sums: Sums,
        factored: Factored,
        unit: Unit = 1.0,
    ) -> Normal:
        """Makes the quadratic model from the sums over all points."""

    @abstractmethod
    def cost(self, vector: Float[Array, " m"], unit: Unit = 1.0) -> Float[Array, ""]:
        """Returns the cost, of data in memory, as one differentiable function.

        Args:
            vector: The values of what the solver moves.
            unit: What to multiply residuals by.
        """


def check_problem(problem: Any) -> None:
    """Raises if `problem` is not one, but a residual alone, say."""
    remedy = "Make one by `LeastSquares` or `Separable`."
    instance(problem, "problem", AbstractProblem, remedy)


class _Points(NamedTuple):
    """What a problem reads point by point, under the names of its arguments."""

    data: PyTree
    weights: Any
    mask: Any


class LeastSquares(AbstractProblem):
    r"""Any least-squares problem: minimises $\sum_i w_i s^2 \rho(r_i(p)^2 / s^2)$.

    Attributes:
        parameters: The parameters, and which of them are free.
        data: Arrays whose first axis is the points.
        residual: Takes parameters and a chunk of the data to residuals. Their first
            axis is the points; further axes and complex numbers are several residuals
            of a point.
        loss: What a residual costs.
        weights: Weight of each point's squared residuals, or None.
        mask: Which points count, or None for all.
        penalty: Takes the parameters to further residuals that are not data (a prior,
            for instance) and count as degrees of freedom, or None.
        absolute_sigma: Whether the residuals are in units of known standard deviations.
            With a loss other than squares errors follow from the residuals alone
            (`FitResult.covariance`).
    """

    parameters: Parameters
    data: PyTree
    residual: Callable
    loss: AbstractLoss
    penalty: Callable | None
    absolute_sigma: bool = eqx.field(static=True, converter=as_absolute_sigma)
    linear_names: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        residual: Callable,
        start: PyTree,
        data: PyTree,
        *,
        bounds: tuple[Any, Any] = (None, None),
        fixed: Callable | None = None,
        ties: Tie | Sequence[Tie] = (),
        loss: AbstractLoss | None = None,
        weights: Any = None,
        mask: Any = None,
        penalty: Callable | None = None,
        absolute_sigma: bool = False,
    ):
        """Sets up a problem.

        Args:
            residual: Takes parameters and a chunk of the data to residuals, each point
                from its own data. To give all data at once, make them one point:
                `data=x[None]`.
            start: Where to start: numbers, arrays, dicts, lists, modules.
            data: A tree of arrays whose first axis is the points.
            bounds: Lower and upper bounds, each a number or a tree like `start` (or
                its upper part); None for no bound. Equal ones fix a parameter.
            fixed: Picks parameters that stay fixed: `lambda p: (p.alpha, p.offset[0])`.
            ties: Parameters that follow from others.
            loss: What a residual costs; by default its square.
            weights: Weight of each point's squared residuals, at least 0; a point of
                weight 0 does not count.
            mask: Which points count.
            penalty: Takes the parameters to further residuals that are not data.
            absolute_sigma: Whether the residuals are in units of known standard
                deviations. Of no effect on errors with a loss other than squares.

        Raises:
            ArgumentError: If a start value is outside its bounds, bounds are crossed or
                traced, a tied parameter is bounded, fixed or follows from itself, a
                weight is negative or not finite, there is nothing to fit, or an
                argument is of another kind.
        """
        check_function(residual, "residual", "lambda p, data: p * data[0] - data[1]")
        if penalty is not None:
            check_function(penalty, "penalty", "lambda p: (p - 1) / 0.1")
        self.absolute_sigma = as_absolute_sigma(absolute_sigma)
        check_mask(mask)
        _check_one_each(mask, "mask")
        self.parameters = Parameters(start, bounds, fixed, ties).with_free()
        self.residual = residual
        self.data = _Points(data, _checked_weights(weights), mask)
        self.loss = Squared() if loss is None else loss
        instance(self.loss, "loss", AbstractLoss, "Write `Huber(scale)`.")
        self.linear_names = ()
        self.penalty = penalty

    def vector(self):
        return self.parameters.vector

    def bounds(self):
        return self.parameters.low, self.parameters.high

    def residuals_each(self):
        try:
            found = self._of_one_point(self.data[0])
        except ArgumentError:
            raise
        except (IndexError, TypeError, ValueError) as error:
            # If it fails with all points, too, that is what to tell.
            whole = jax.tree.map(
                lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), self.data[0]
            )
            eqx.filter_eval_shape(self.residual, self.parameters.start, whole)
            raise takes_all_points(error) from error
        # With data of its own a residual has more points than it is asked for.
        each = math.prod(found.shape[1:])
        return each * (2 if jnp.issubdtype(found.dtype, jnp.complexfloating) else 1)

    def _of_one_point(self, data) -> jax.ShapeDtypeStruct:
        """Returns the shape of the residuals of one point."""
        one = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype), data
        )
        with written_for_jax("residual"):
            found = eqx.filter_eval_shape(self.residual, self.parameters.start, one)
        return floating(found, "residual")

    def _rows(self, parameters, data, points: int) -> Float[Array, " rows"]:
        """Returns the residuals of a chunk as one vector, point after point."""
        with written_for_jax("residual"):
            values = floating(self.residual(parameters, data), "residual")
        rows = _as_rows(values, points)
        if points > 1 and values.ndim > 1:
            one = self._of_one_point(data).shape
            if one[:1] == (1,) and one[1:] != values.shape[1:]:
                raise ArgumentError(
                    "`residual` must return as many values for each point of a chunk "
                    f"as for one alone, {math.prod(one)}, but returns an array of "
                    f"shape {values.shape} for {points} points. A column of shape "
                    f"({points}, 1) and a vector broadcast to a matrix: pass the "
                    "column as `y[:, 0]`."
                )
        return rows

    def sums_shape(self, batch):
        del batch
        size = len(self.parameters.names) + 1
        return size, size

    def columns(self, vector, batch, used, unit=1.0):
        data, weights, mask = batch
        used = used if mask is None else used & mask
        used = used if weights is None else used & (weights != 0)
        if mask is not None or weights is not None:
            data = safe_points(data, used)

        def residuals(vector):
            return self._rows(self.parameters.tree(vector), data, used.size)

        values, jacobian = jacobian_of(residuals, vector, unit)
        # What a point that does not count gives, even NaN, is gone here.
        keep = jnp.repeat(used, values.size // used.size)
        values = jnp.where(keep, values, 0).astype(vector.dtype)
        jacobian = jnp.where(keep, jacobian, 0).astype(vector.dtype)
        if weights is None:
            root = jnp.ones((), values.dtype)
        else:
            root = jnp.repeat(weights, values.size // used.size).astype(values.dtype)
            # The root of 0 has no derivative.
            root = jnp.where(keep, jnp.sqrt(jnp.where(keep, root, 1)), 0)
        if not is_robust(self):
            rows = jnp.concatenate([jacobian, values[None]]) * root
            return Columns(rows, matmul(rows[-1], rows[-1]), jnp.sum(keep))
        rows, cost, parts = robust_rows(self.loss, values, jacobian, root, unit)
        return Columns(rows, cost, jnp.sum(keep), parts)

    def normal(self, vector, sums, factored, unit=1.0):
        if self.penalty is not None:

            def residuals(vector):
                return self._penalties(self.parameters.tree(vector))

            values, jacobian = jacobian_of(residuals, vector, unit)
            rows = jnp.concatenate([jacobian, values[None]])
            more = None
            if is_robust(self):
                more = jnp.stack([0 * jacobian, jacobian / self.loss.scale])
            cost, count = matmul(values, values), jnp.full_like(sums.count, values.size)
            sums = add(sums, Columns(rows, cost, count, more), factored)
        matrix, cost = sums.matrix + sums.rest, sums.cost[0] + sums.cost[1]
        factor, target, conditioned = triangle(matrix, factored)
        gradient = jnp.where(factored, matmul(factor.T, target), matrix[:-1, -1])
        none = jnp.zeros(0, cost.dtype)
        parts = sums.parts
        if parts is not None:
            one = jnp.ones_like(cost)
            scale = self.loss.scale * one
            parts = Parts(parts, jnp.asarray(factored), unit * one, scale)
        return Normal(
            factor, target, gradient, cost, sums.count, conditioned, none, factor, parts
        )

    def cost(self, vector, unit=1.0):
        data, weights, mask = self.data
        parameters = self.parameters.tree(vector)
        points = jax.tree.leaves(data)[0].shape[0]
        used = jnp.ones(points, bool)
        if weights is not None:
            # Where a point has a loss, this is the derivative by its weight, also of 0.
            sound = jax.lax.stop_gradient(self._losses(parameters, data, used, unit))
            used = jnp.isfinite(sound) | (weights != 0)
        used = used if mask is None else used & mask
        if mask is not None or weights is not None:
            data = safe_points(data, used)
        losses = self._losses(parameters, data, used, unit)
        total = jnp.sum(losses if weights is None else losses * weights)
        if self.penalty is not None:
            total = total + jnp.sum((unit * self._penalties(parameters)) ** 2)
        return total

    def _penalties(self, parameters) -> Float[Array, " rows"]:
        """Returns the residuals that are not data."""
        if self.penalty is None:
            return jnp.zeros(0)
        with written_for_jax("penalty"):
            values = self.penalty(parameters)
        return jnp.ravel(floating(values, "penalty"))

    def _losses(self, parameters, data, used, unit):
        """Returns the loss of each point that is used."""
        values = self._rows(parameters, data, used.size)
        values = jnp.where(used[:, None], values.reshape(used.size, -1), 0) * unit
        scale = self.loss.scale * unit
        return scale**2 * jnp.sum(self.loss.rho((values / scale) ** 2), axis=1)


def is_robust(problem: AbstractProblem) -> bool:
    """Tells whether the loss of a problem is another one than the square."""
    return isinstance(problem, LeastSquares) and not isinstance(problem.loss, Squared)


def _check_one_each(x: Any, name: str) -> None:
    """Raises if what goes with points is not one number for each."""
    shape = getattr(x, "shape", None)
    if shape is None and isinstance(x, Sequence | Number):
        raise ArgumentError(
            f"`{name}` must be an array of one number for each point, but is "
            f"{kind_of(x)}"
        )
    if shape is not None and len(shape) != 1:
        raise ArgumentError(
            f"`{name}` must have one number for each point, but has shape {shape}. "
            "For several residuals of a point scale these in `residual`."
        )


def _checked_weights(weights):
    _check_one_each(weights, "weights")
    if isinstance(weights, np.ndarray | jax.Array) and not isinstance(
        weights, jax.core.Tracer | np.memmap
    ):
        refuse_complex(weights, "weights", "Take their real part.")
        host = np.asarray(weights)
        bad = ~((host >= 0) & (host < np.inf))
        if bad.any():
            raise ArgumentError(
                "`weights` must be finite and not negative, but one is "
                f"{host[bad].flat[0]:g}. Leave points out with weight 0 or `mask`."
            )
    return weights


AS_ONE = (
    "Make a whole record one point: data `x[None]`, read as `x[0]` and returned as "
    "`values[None]`."
)


def takes_all_points(error: Exception) -> ArgumentError:
    """Explains the error of a residual that works for all points only."""
    return ArgumentError(
        "`residual`, or `f` of `curve_fit`, must take any number of points, as it is "
        "called with pieces of the data, but fails with a few: "
        f"{str(error).rstrip('.')}. {AS_ONE}"
    )


def _as_rows(values: Array, points: int) -> Float[Array, " rows"]:
    """Returns residuals as one vector of real numbers, point after point."""
    if values.ndim == 0 or values.shape[0] != points:
        raise ArgumentError(
            "`residual` must return an array whose first axis is the points of the "
            f"chunk, {points}, but its shape is {values.shape}. {AS_ONE}"
        )
    if jnp.iscomplexobj(values):
        values = jnp.stack([values.real, values.imag], axis=-1)
    return jnp.ravel(values)
