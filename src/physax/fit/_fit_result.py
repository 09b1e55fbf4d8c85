"""The result of a fit: parameters, how well they are known, and what is not."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from .._checks import ArgumentError, instance
from .._status import Status
from ._plan import Plan
from ._problems import check_problem
from ._robust import Parts
from ._statistics import Statistics, equal_columns, statistics, unscaled


# A combination of this singular value, of columns of length 1, is hardly determined.
HARDLY = 1e-3


class FitResult(eqx.Module):
    r"""The outcome of a fit, or of a batch of fits that `vmap` made.

    Attributes:
        parameters: The fitted parameters, a tree like the start; fixed and tied ones
            included.
        values: Those that were free, as a vector.
        names: Their names.
        linear: Linear coefficients that were eliminated (`Separable`); may be empty.
        linear_names: Their names.
        factor: The triangular factor of the Jacobian of free and linear parameters, in
            the order linear, free.
        held: Which linear and free parameters are at a bound that the cost pushes them
            against.
        fixed: Which of those equal bounds fix.
        parts: With a loss other than squares what `covariance` is made of, besides the
            factor.
        chi2: The cost: the sum of squared residuals, or of the loss; 0 or infinite
            where it is out of the range of its dtype.
        norm: The root of the cost, which is not.
        count: Number of residuals, with those of a penalty; complex ones count twice.
        iterations: Steps that were accepted.
        evaluations: Passes over the data.
        gradient: $J^T r$, the gradient of half the cost.
        status: Why the fit ended, a `Status`.
        absolute_sigma: Whether the residuals were in units of known standard
            deviations.
        plan: How it was done.
        detail: Further remarks.
    """

    parameters: PyTree
    values: Float[Array, "*fits free"]
    linear: Float[Array, "*fits linear"]
    factor: Float[Array, "*fits all all"]
    held: Bool[Array, "*fits all"]
    fixed: Bool[Array, "*fits all"]
    parts: Parts | None
    chi2: Float[Array, "*fits"]
    norm: Float[Array, "*fits"]
    count: Int[Array, "*fits"]
    iterations: Int[Array, "*fits"]
    evaluations: Int[Array, "*fits"]
    gradient: Float[Array, "*fits free"]
    status: Int[Array, "*fits"]
    names: tuple[str, ...] = eqx.field(static=True)
    linear_names: tuple[str, ...] = eqx.field(static=True)
    absolute_sigma: bool = eqx.field(static=True)
    plan: Plan | None = eqx.field(static=True)
    detail: str = eqx.field(static=True)

    @property
    def success(self) -> bool:
        """Whether the fit has converged and the data determine every parameter.

        For a batch, whether all of them have.
        """
        return bool(np.all(np.asarray(self.status) == Status.CONVERGED))

    @property
    def message(self) -> str:
        """Why the fit ended, in words; a line for each fit of a batch."""
        return "\n".join(head + _ending(fit) for head, fit in each_fit(self, self))

    @property
    def _statistics(self) -> Statistics:
        return statistics(
            self.factor,
            self.held,
            self.parts,
            self.chi2,
            self.norm,
            self.count,
            linear=self.linear.shape[-1],
            absolute=self.absolute_sigma,
        )

    @property
    def active(self) -> Bool[Array, "*fits free"]:
        """Which free parameters are at a bound."""
        return self._statistics.active

    @property
    def degrees_of_freedom(self) -> Int[Array, "*fits"]:
        """Residuals less the parameters that were fitted."""
        return self._statistics.degrees_of_freedom

    @property
    def reduced_chi2(self) -> Float[Array, "*fits"]:
        """The cost over the degrees of freedom; NaN without any."""
        return self._statistics.reduced_chi2

    @property
    def full_covariance(self) -> Float[Array, "*fits all all"]:
        """Covariance of linear and free parameters, in this order."""
        return self._statistics.full_covariance

    @property
    def covariance(self) -> Float[Array, "*fits free free"]:
        r"""Covariance of the free parameters, in the order of `names`.

        Infinite for what the data do not determine; zero for parameters at a bound,
        whose error is one-sided.

        With a loss other than squares it is $A^{-1} B A^{-1} n / (n - m)$ of n
        residuals, independent of each other, and m parameters, with the curvature $A =
        \sum w (\rho' + 2 \rho'' z) J^T J$ and the scatter of the gradient $B = \sum
        (w \rho' r)^2 J^T J$. It follows from the residuals themselves, whether
        `absolute_sigma` or not, and holds for noise of any distribution. NaN where $A$
        is not positive definite. SciPy takes $A^{-1}$ times the reduced cost.

        References: Huber, Annals of Mathematical Statistics 35, 73 (1964); White,
        Econometrica 48, 817 (1980).
        """
        return self._statistics.covariance

    @property
    def linear_errors(self) -> Float[Array, "*fits linear"]:
        """Standard errors of the linear coefficients."""
        return self._statistics.linear_errors

    @property
    def standard_errors(self) -> Float[Array, "*fits free"]:
        """Standard errors of the free parameters, in the order of `names`."""
        return self._statistics.standard_errors

    @property
    def correlation(self) -> Float[Array, "*fits free free"]:
        """Correlation of the free parameters; NaN where an error is 0 or infinite."""
        return self._statistics.correlation

    @property
    def condition(self) -> Float[Array, "*fits"]:
        """Condition number of the Jacobian with columns of length 1.

        It does not depend on the units of the parameters; above about 1e6 a
        combination of them is hardly determined.
        """
        return self._statistics.condition

    def __str__(self) -> str:
        """Lists parameters with errors, and how the fit ended, for each of a batch."""
        return "\n".join(head + summary(fit) for head, fit in each_fit(self, self))


def each_fit(tree: Any, result: FitResult) -> list[tuple[str, Any]]:
    """Returns what belongs to each fit of a batch, under a heading; of one fit, all.

    Args:
        tree: What has the axes of the batch in front.
        result: Of the batch.
    """
    if not result.chi2.ndim:
        return [("", tree)]

    def at(place: tuple[int, ...]) -> Any:
        def part(x):
            return np.asarray(x)[place] if isinstance(x, np.ndarray | jax.Array) else x

        return jax.tree.map(part, tree)

    places = np.ndindex(result.chi2.shape)
    return [(f"fit {','.join(map(str, place))}: ", at(place)) for place in places]


def one_fit(result: Any) -> FitResult:
    """Returns a result, refusing a batch.

    Raises:
        ArgumentError: If there are several fits in it, or it is of another kind.
    """
    instance(result, "result", FitResult, "Make one by `least_squares`.")
    if result.chi2.ndim:
        raise ArgumentError(
            "`result` must be of one fit, but is of a batch of shape "
            f"{result.chi2.shape}. Take one: `jax.tree.map(lambda x: x[0], result)`."
        )
    return result


def fit_of(problem: Any, result: Any) -> FitResult:
    """Returns the result of a problem, refusing that of another one.

    Raises:
        ArgumentError: If one is of another kind, the result is a batch, or parameters
            have other names.
    """
    check_problem(problem)
    ours = (*problem.linear_names, *problem.parameters.names)
    given = one_fit(result)
    theirs = (*given.linear_names, *given.names)
    if theirs != ours:
        raise ArgumentError(
            f"`result` must be of `problem`, whose parameters are {', '.join(ours)}, "
            f"but has {', '.join(theirs)}."
        )
    return given


def _ending(result: FitResult) -> str:
    sentence = Status(int(result.status)).sentence
    if int(result.status) == Status.UNDETERMINED:
        sentence = f"{sentence.rstrip('.')}: {', '.join(_undetermined(result))}."
    if result.parts is not None and np.any(np.isnan(result.standard_errors)):
        sentence += " Errors are NaN as the cost has no minimum here: start elsewhere."
    return f"{sentence} {result.detail}".rstrip()


def _undetermined(result: FitResult) -> list[str]:
    """Returns the names of what the data do not determine."""
    # Not the errors: without degrees of freedom all of those may be infinite.
    variances = np.diagonal(unscaled(result.factor, result.held, None)[0])
    names = (*result.linear_names, *result.names)
    return [
        name for name, one in zip(names, variances, strict=True) if not one < np.inf
    ]


def summary(result: FitResult, residuals: str | None = None) -> str:
    """Lists the parameters of one fit with errors, and how it ended.

    Args:
        result: The fit.
        residuals: How large these are, by default their chi-square and the reduced one.
    """
    freedom = int(result.degrees_of_freedom)
    # Below 0 where no residual counts, as when all are NaN.
    left = f"{f'{freedom:,}' if freedom > 0 else 'no'} degrees of freedom"
    if residuals is None:
        square = cost_of(result)
        residuals = f"chi-square {square:.6g}"
        left += f", reduced {square / freedom:.6g}" if freedom > 0 else ""
    numbers = listed(result)
    width = max((len(name) for name, _ in numbers), default=0)
    rows = [f"  {name:{width}}  {shown}" for name, shown in numbers]
    head = (
        f"{_ending(result)}\n  {residuals}, {left}; "
        f"{int(result.iterations)} iterations, {int(result.evaluations)} passes"
    )
    if int(result.status) == Status.CONVERGED and _weakest(result) < HARDLY:
        rows.append(
            "  a combination is hardly determined: `fit.identifiability` shows which"
        )
    return "\n".join([head, *rows])


def cost_of(result: FitResult) -> float:
    """Returns the cost, also where it is out of the range of its dtype."""
    cost = float(result.chi2)
    inside = float(jnp.finfo(result.chi2.dtype).tiny) < cost < math.inf
    return cost if inside else float(result.norm) * float(result.norm)


def _weakest(result: FitResult) -> float:
    columns = np.asarray(equal_columns(jnp.asarray(result.factor))[0])
    return float(np.linalg.svd(columns, compute_uv=False)[-1])


def listed(result: FitResult) -> list[tuple[str, str]]:
    """Returns names of free and linear parameters of one fit, with values in words."""
    linear = len(result.linear_names)
    numbers = zip(
        (*result.names, *result.linear_names),
        (*result.values, *result.linear),
        (*result.standard_errors, *result.linear_errors),
        (*result.held[linear:], *result.held[:linear]),
        (*result.fixed[linear:], *result.fixed[:linear]),
        strict=True,
    )
    return [
        (
            name,
            f"{float(value):.8g} (fixed)"
            if fixed
            else with_error(float(value), float(error)) + " (at a bound)" * bool(held),
        )
        for name, value, error, held, fixed in numbers
    ]


def with_error(value: float, error: float) -> str:
    """Returns a value with its standard error, which has two digits."""
    if not math.isfinite(error + value) or error <= 0:
        return f"{value:.8g} ± {error:.3g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    if digits > 9 or abs(value) >= 1e7:
        size = max(abs(value), error)
        digits = 1 + math.floor(math.log10(size)) - math.floor(math.log10(error))
        return f"{value:.{min(digits, 16)}e} ± {error:.1e}"
    return f"{value:.{digits}f} ± {error:.{digits}f}"
