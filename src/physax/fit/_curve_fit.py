"""Curve fitting with the call signature of SciPy."""

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Num

from .._checks import ArgumentError, refuse_traced, true_or_false, warn
from .._written_for_jax import check_function, floating, written_for_jax
from ._curve_data import INSIDE, finite_numbers, reals
from ._fit_result import FitResult
from ._given import refuse_complex
from ._least_squares import FitError, least_squares
from ._losses import AbstractLoss
from ._problems import LeastSquares
from ._scipy_keywords import refuse_keywords
from ._trust_region import TrustRegion


class CurveFit(tuple):
    """What `curve_fit` returns: unpacks as `popt, pcov`, and holds the full result.

    Attributes:
        popt: The parameters.
        pcov: Their covariance.
        result: The whole result, a `FitResult`.
    """

    result: FitResult

    def __new__(cls, popt: np.ndarray, pcov: np.ndarray, result: FitResult):
        pair = super().__new__(cls, (popt, pcov))
        pair.result = result
        return pair

    @property
    def popt(self) -> np.ndarray:
        return self[0]

    @property
    def pcov(self) -> np.ndarray:
        return self[1]

    def __str__(self) -> str:
        return str(self.result)


def _residual(parameters, data, *, f: Callable):
    xdata, ydata, sigma = data
    found = f(xdata, *parameters) - ydata
    return found if sigma is None else found / sigma


def _whitened(parameters, data, *, f: Callable):
    # The points are correlated: all of them are one entry of the data.
    xdata, ydata, factor = jax.tree.map(lambda x: x[0], data)
    found = jnp.ravel(f(xdata, *parameters) - ydata)
    return jax.scipy.linalg.solve_triangular(factor, found, lower=True)[None]


def curve_fit(
    f: Callable,
    xdata: Any,
    ydata: Sequence[float | int] | Num[ArrayLike, "points *values"],
    p0: Sequence[float | int] | Num[ArrayLike, " free"] | None = None,
    sigma: Sequence[float | int] | Num[ArrayLike, "..."] | None = None,
    absolute_sigma: bool = False,
    check_finite: bool = True,
    bounds: Any = (-np.inf, np.inf),
    *,
    loss: AbstractLoss | str | None = None,
    method: TrustRegion | str | None = None,
    **others: Any,
) -> CurveFit:
    """Fits a function to points, as `scipy.optimize.curve_fit` does.

    The function is written with `jax.numpy`; its derivatives are exact. Pass the same
    function object again and nothing is recompiled: what it reads from outside keeps
    the value of the first fit.

    Args:
        f: Takes `xdata` and the parameters, `f(x, a, b)`, to values like `ydata`, each
            point from its own entry of `xdata`: large data are evaluated in pieces.
        xdata: Where the function is evaluated: an array whose *first* axis is the
            points, or a tree of such.
        ydata: What was observed there: one value for each point, or an array of them.
        p0: Start values; by default ones, or the middle of finite bounds.
        sigma: Standard deviation of each value, or the covariance matrix of all, in
            the order of `ydata.ravel()`.
        absolute_sigma: Whether `sigma` is known. If not, only its ratios count, and
            the covariance is scaled by the reduced chi-square.
        check_finite: Whether to refuse data that are not finite.
        bounds: Lower and upper bounds, each a number or one for each parameter; or a
            `scipy.optimize.Bounds`.
        loss: What a residual costs; by default its square.
        method: How to search.
        **others: Further keywords of SciPy's function: refused, with what to write.

    Returns:
        `popt, pcov`, with everything else in the attribute `result`.

    Raises:
        ArgumentError: If `f` is not written with `jax.numpy` or its values do not have
            the shape of `ydata`, data are traced, not finite or of different lengths,
            `sigma` is not positive, or as a matrix not symmetric and positive definite,
            the start is outside its bounds, bounds are crossed, there are fewer
            points than parameters, or data in pieces meet an `f` that needs all points.
        PrecisionError: If JAX's 64-bit types are off while data are float64.
        FitError: If the fit did not converge, or the data do not determine every
            parameter.
    """
    # Names that SciPy knows.
    refuse_keywords(others, inspect.signature(curve_fit).parameters)
    if isinstance(loss, str):
        raise ArgumentError(
            f"`loss` must be a loss such as `fit.SoftL1(scale)`, but is {loss!r}."
        )
    if isinstance(method, str):
        raise ArgumentError(
            f"`method` must be a `fit.TrustRegion`, but is {method!r}. There is one "
            "method, with and without bounds: leave it out."
        )
    check_function(f, "f", "lambda x, a, b: a * x + b")
    check_finite = true_or_false(check_finite, "check_finite")
    ydata = finite_numbers(ydata, "ydata", check_finite)
    if isinstance(xdata, Sequence) and all(np.ndim(x) == 0 for x in xdata):
        xdata = np.asarray(xdata)
    xdata = jax.tree.map(lambda x: finite_numbers(x, "xdata", check_finite), xdata)
    pair = _checked_bounds(bounds)
    start = _start(f, p0, pair)
    extra, residual = _errors(sigma, ydata)
    if residual is not _whitened:
        _check_points(xdata, ydata)
    _check_model(f, xdata, start, ydata)
    data = (xdata, ydata, extra)
    if residual is _whitened:
        data = jax.tree.map(lambda x: x[None], data)
    problem = LeastSquares(
        jax.tree_util.Partial(residual, f=f),
        start,
        data,
        bounds=pair,
        loss=loss,
        absolute_sigma=absolute_sigma,
    )
    found = least_squares(problem, method)
    refuse_traced(found.values, "f", INSIDE)
    names = _names(f, len(start))
    if names is not None:
        free = tuple(names[i] for i in problem.parameters.free)
        found = dataclasses.replace(found, names=free)
    if not found.success:
        raise FitError(found.message, found)
    if not absolute_sigma and int(found.degrees_of_freedom) < 1:
        warn(
            "`pcov` is infinite: with as many parameters as points, nothing tells the "
            "size of the errors. Add points, or give `sigma` with "
            "`absolute_sigma=True`."
        )
    return CurveFit(np.asarray(found.parameters), np.asarray(found.covariance), found)


def _check_points(xdata, ydata) -> None:
    """Raises if first axes differ from that of `ydata`, as in the rows of SciPy."""
    if not ydata.ndim:
        raise ArgumentError(
            "`ydata` must have an axis of points, but is a single number. For one "
            "point, pass a list."
        )
    rows = isinstance(xdata, np.ndarray | jax.Array)
    if rows and xdata.shape[1:] == ydata.shape != xdata.shape[:1]:
        raise ArgumentError(
            f"`xdata` must have a first axis of {len(ydata)} points, as `ydata` has, "
            f"but has shape {xdata.shape}. For several independent variables, pass "
            "a tuple: `tuple(xdata)`."
        )
    for path, x in jax.tree_util.tree_leaves_with_path(xdata):
        if x.shape[:1] != ydata.shape[:1]:
            raise ArgumentError(
                f"`xdata{jax.tree_util.keystr(path)}` must have a first axis of "
                f"{len(ydata)} points, as `ydata` has, but has shape {x.shape}. Pass "
                "arrays with one entry for each point; constants belong in `f`."
            )


_AS_PAIR = "Write `([low, ...], [high, ...])`."


def _checked_bounds(bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    # `scipy.optimize.Bounds`, which takes long to import.
    if type(bounds).__name__ == "Bounds":
        bounds = bounds.lb, bounds.ub
    if not isinstance(bounds, Sequence | np.ndarray | jax.Array) or len(bounds) != 2:
        raise ArgumentError(
            "`bounds` must be a pair, the lower and the upper bounds, but is "
            f"{type(bounds).__name__} {bounds!s:.80}. {_AS_PAIR}"
        )
    low, high = (reals(bound, "bounds") for bound in bounds)
    return low, high


def _positional(f: Callable) -> list[str]:
    """Returns the names of the positional parameters of a function."""
    return [
        p.name
        for p in inspect.signature(f).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]


def _names(f: Callable, count: int) -> list[str] | None:
    """Returns the names of the parameters of a fit, where the signature has them."""
    try:
        names = _positional(f)[1:]
    except (TypeError, ValueError):
        return None
    return names[:count] if len(names) >= count else None


def _start(f: Callable, p0, bounds) -> np.ndarray:
    if p0 is not None:
        start = np.atleast_1d(reals(p0, "p0"))
        if start.ndim > 1:
            raise ArgumentError(
                f"`p0` must be a list of numbers, but has shape {start.shape}."
            )
        _check_bounds(f, bounds, start.size)
        _check_start(f, start, bounds)
        return start
    names = _positional(f)
    if len(names) < 2:
        raise ArgumentError(
            "`p0` must be given for a function whose signature does not name its "
            f"parameters, but is None: {inspect.signature(f)}."
        )
    _check_bounds(f, bounds, len(names) - 1)
    low, high = (np.broadcast_to(b, (len(names) - 1,)) for b in bounds)
    below = np.where(np.isfinite(high), high - 1, 1)
    inside = np.where(np.isfinite(low), low + 1, below)
    both = np.isfinite(low) & np.isfinite(high)
    middle = 0.5 * (np.where(both, low, 0) + np.where(both, high, 0))
    return np.where(both, middle, inside)


def _check_start(f: Callable, start: np.ndarray, bounds) -> None:
    # In the precision of the parameters: a start on a bound lies within it.
    dtype = jnp.result_type(float)
    low, high = (np.broadcast_to(b.astype(dtype), start.shape) for b in bounds)
    names = _names(f, start.size) or [f"p0[{i}]" for i in range(start.size)]
    every = zip(names, start.astype(dtype), low, high, strict=True)
    for name, value, least, most in every:
        if not np.isfinite(value):
            raise ArgumentError(f"`p0` must be finite, but {name} is {value:g}.")
        if least <= most and not least <= value <= most:
            raise ArgumentError(
                f"`p0` must lie within `bounds`, but {name} is {value:g}, outside "
                f"[{least:g}, {most:g}]. Move it or widen the bounds."
            )


def _check_bounds(f: Callable, bounds, count: int) -> None:
    for bound in bounds:
        if bound.shape not in ((), (count,)):
            raise ArgumentError(
                f"`bounds` must be numbers, or one for each of {count} parameters, but "
                f"one has shape {bound.shape}. {_AS_PAIR}"
            )
    low, high = (np.broadcast_to(bound, (count,)) for bound in bounds)
    names = _names(f, count) or [f"p0[{i}]" for i in range(count)]
    if np.any(low > high):
        i = np.argmax(low > high)
        raise ArgumentError(
            f"`bounds` must be a lower and an upper one, but of {names[i]} the lower "
            f"is {low[i]:g} and the upper {high[i]:g}. {_AS_PAIR}"
        )
    if np.all(low == high):
        raise ArgumentError(
            "`bounds` must leave a parameter free, but the lower and the upper ones "
            f"are {low.tolist()}. {_AS_PAIR}"
        )


def _check_model(f: Callable, xdata, start, ydata) -> None:
    _check_count(f, xdata, start)
    with written_for_jax("f"):
        found = eqx.filter_eval_shape(f, xdata, *start)
    found = floating(found, "f")
    complex_model = jnp.issubdtype(found.dtype, jnp.complexfloating)
    if jnp.iscomplexobj(ydata) and not complex_model:
        raise ArgumentError(
            f"`ydata` must be real, as the values of `f` are, but has dtype "
            f"{ydata.dtype}: imaginary parts would count as data. Give `ydata.real`."
        )
    if found.shape not in ((), ydata.shape):
        raise ArgumentError(
            f"`f` must return an array of the shape of `ydata`, {ydata.shape}, but "
            f"returns one of shape {found.shape}."
        )


def _check_count(f: Callable, xdata, start) -> None:
    """Raises if there are too few or too many start values, where `f` says so."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(xdata, *start)
    except TypeError as error:
        raise ArgumentError(
            f"`p0` must have one number for each parameter of `f`, {signature}, but "
            f"has {len(start)}: {error}."
        ) from error


def _errors(sigma, ydata) -> tuple[Any, Callable]:
    """Returns what goes with the data, and the residual that reads it."""
    if sigma is None:
        return None, _residual
    if isinstance(sigma, Real | Sequence):
        # Numbers of Python have the precision of the data, which may be complex.
        sigma = reals(sigma, "sigma").astype(jnp.finfo(ydata.dtype).dtype)
    sigma = np.asarray(finite_numbers(sigma, "sigma", True))
    refuse_complex(
        sigma, "sigma", "Real and imaginary parts of a value have one deviation."
    )
    sigma = sigma.reshape(()) if sigma.size == 1 else sigma
    if sigma.shape in ((), ydata.shape):
        if not np.all(sigma > 0):
            raise ArgumentError(f"`sigma` must be positive, but is {np.min(sigma):g}.")
        return jnp.broadcast_to(sigma, ydata.shape), _residual
    if sigma.shape != (ydata.size, ydata.size):
        raise ArgumentError(
            "`sigma` must be one number, one for each of the values, of shape "
            f"{ydata.shape}, or the covariance matrix of all {ydata.size}, but has "
            f"shape {sigma.shape}."
        )
    _check_symmetric(sigma)
    try:
        factor = np.linalg.cholesky(sigma)
    except np.linalg.LinAlgError as error:
        raise ArgumentError(
            "`sigma` must be a positive definite covariance matrix, but is not: its "
            f"smallest eigenvalue is {np.linalg.eigvalsh(sigma)[0]:g}."
        ) from error
    return jnp.asarray(factor), _whitened


def _check_symmetric(sigma: np.ndarray) -> None:
    # What rounding of a product or of an inverse leaves is far below.
    limit = float(np.finfo(sigma.dtype).eps ** 0.375)
    deviations = np.sqrt(np.abs(np.diagonal(sigma)))
    unequal = np.abs(sigma - sigma.T) > limit * np.outer(deviations, deviations)
    if unequal.any():
        i, j = np.argwhere(unequal)[0]
        raise ArgumentError(
            "`sigma` must be a symmetric covariance matrix, up to "
            f"{limit:.2g} of the product of two deviations, but sigma[{i}, {j}] is "
            f"{sigma[i, j]:g} and sigma[{j}, {i}] is {sigma[j, i]:g}. Fill both "
            "triangles, or take the mean `(sigma + sigma.T) / 2`."
        )
