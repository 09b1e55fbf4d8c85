"""The result of a fit: parameters, how well they are known, and what is not."""

import math
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from .._checks import ArgumentError, instance
from .._products import matmul
from .._status import Status
from ._plan import Plan
from ._problems import check_problem
from ._robust import Parts, sandwich
from ._sums import rank_limit


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
        parts: With a loss other than squares what `covariance` is made of, besides the
            factor.
        chi2: The cost: the sum of squared residuals, or of the loss.
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
    parts: Parts | None
    chi2: Float[Array, "*fits"]
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
    def _statistics(self) -> "_Statistics":
        return _statistics(
            self.factor,
            self.held,
            self.parts,
            self.chi2,
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
    variances = np.diagonal(_unscaled(result.factor, result.held, None))
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
        residuals = f"chi-square {float(result.chi2):.6g}"
        left += f", reduced {float(result.reduced_chi2):.6g}" * (freedom > 0)
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


def _weakest(result: FitResult) -> float:
    columns = np.asarray(_equal_columns(jnp.asarray(result.factor))[0])
    return float(np.linalg.svd(columns, compute_uv=False)[-1])


def listed(result: FitResult) -> list[tuple[str, str]]:
    """Returns names of free and linear parameters of one fit, with values in words."""
    linear = len(result.linear_names)
    numbers = zip(
        (*result.names, *result.linear_names),
        (*result.values, *result.linear),
        (*result.standard_errors, *result.linear_errors),
        (*result.held[linear:], *result.held[:linear]),
        strict=True,
    )
    return [
        (name, with_error(float(value), float(error)) + " (at a bound)" * bool(held))
        for name, value, error, held in numbers
    ]


def with_error(value: float, error: float) -> str:
    """Returns a value with its standard error, which has two digits."""
    if not math.isfinite(error) or error <= 0:
        return f"{value:.8g} ± {error:.3g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    if digits > 9 or abs(value) >= 1e7:
        return f"{value:.10g} ± {error:.2g}"
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def _equal_columns(factor: Array) -> tuple[Array, Array]:
    norms = jnp.linalg.norm(factor, axis=0)
    norms = jnp.where(norms > 0, norms, 1)
    return factor / norms, norms


class _Statistics(NamedTuple):
    """What follows from the factor of a fit, as the properties of `FitResult` say."""

    active: Array
    degrees_of_freedom: Array
    reduced_chi2: Array
    full_covariance: Array
    covariance: Array
    linear_errors: Array
    standard_errors: Array
    correlation: Array
    condition: Array


@partial(jax.jit, static_argnames=("linear", "absolute"))
def _statistics(factor, held, parts, chi2, count, *, linear: int, absolute: bool):
    """Computes all at once, for each fit: one small program instead of dozens."""
    each = partial(_of_one, linear=linear, absolute=absolute)
    for _ in chi2.shape:
        each = jax.vmap(each)
    return each(factor, held, parts, chi2, count)


def _of_one(
    factor, held, parts, chi2, count, *, linear: int, absolute: bool
) -> _Statistics:
    freedom = count - (factor.shape[-1] - jnp.sum(held))
    reduced = chi2 / jnp.maximum(freedom, 1)
    unscaled = _inverse_products(factor, held, parts)
    full = unscaled
    scale = reduced if parts is None else count / jnp.maximum(freedom, 1)
    if parts is not None or not absolute:
        # Without degrees of freedom nothing is known of the scale, nor of a sign.
        nothing = jnp.where(held[:, None] | held[None, :], 0, jnp.inf)
        # What is infinite stays so where the residuals vanish, and with them the scale.
        loose = jnp.isinf(unscaled)
        scaled = jnp.where(loose, jnp.inf, jnp.where(loose, 0, unscaled) * scale)
        full = jnp.where(freedom > 0, scaled, nothing)
    variances = jnp.diagonal(full)
    # The root has no derivative at the zeros of what a bound holds.
    some = variances > 0
    errors = jnp.where(some, jnp.sqrt(jnp.where(some, variances, 1)), variances)
    covariance = full[linear:, linear:]
    own = errors[linear:]
    sigma = jnp.linalg.svd(_equal_columns(factor)[0], compute_uv=False)
    return _Statistics(
        active=held[linear:],
        degrees_of_freedom=freedom,
        reduced_chi2=jnp.where(freedom > 0, reduced, jnp.nan),
        full_covariance=full,
        covariance=covariance,
        linear_errors=errors[:linear],
        standard_errors=own,
        correlation=correlation_of(covariance, own),
        condition=sigma[0] / sigma[-1],
    )


def _inverse_products(
    factor: Float[Array, "n n"], held: Array, parts: Parts | None
) -> Float[Array, "n n"]:
    """Returns the inverse of R^T R in what is not held, infinite where it has none.

    With `parts` it is that of A, times B, times that of A.
    """
    equal, norms = _equal_columns(factor)
    equal = jnp.where(held, 0, equal)
    _, sigma, right = jnp.linalg.svd(equal)
    sound = sigma > rank_limit(sigma.size, sigma.dtype) * sigma[0]
    inverse = jnp.where(sound, 1 / jnp.where(sound, sigma, 1), 0)
    half = right.T * inverse
    # A parameter with a part in the null space has no variance, whatever the rest is.
    null = jnp.where(sound, 0, right.T**2)
    loose = (jnp.sum(null, axis=1) > 1e-8) & ~held
    still = held[:, None] | held[None, :]
    if parts is None:
        covariance = matmul(half, half.T) / norms[:, None] / norms[None, :]
    else:
        covariance = sandwich(factor, half / norms[:, None], sound, parts)
    covariance = jnp.where(still, 0, covariance)
    infinite = jnp.diag(jnp.where(loose, jnp.inf, 0))
    return jnp.where(
        loose[:, None] | loose[None, :],
        jnp.where(jnp.eye(len(norms), dtype=bool), infinite, jnp.nan),
        covariance,
    )


_unscaled = jax.jit(_inverse_products)


def correlation_of(
    covariance: Float[Array, "free free"], errors: Float[Array, " free"]
) -> Float[Array, "free free"]:
    """Returns the correlation of parameters; NaN where an error is 0 or infinite."""
    known = jnp.isfinite(errors) & (errors > 0)
    safe = jnp.where(known, errors, 1)
    both = known[:, None] & known[None, :]
    return jnp.where(both, covariance / safe[:, None] / safe, jnp.nan)
