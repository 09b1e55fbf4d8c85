"""What finer cells would give: observed order, limit and error bar of a study."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import ArrayLike, Float, Inexact, Num

from .._checks import ArgumentError, numeric, real, refuse_traced
from .._known_number import known_number
from .._written_for_jax import check_function
from ..runtime import Progress
from ..runtime._progress import show_progress


# Orders beyond this are no property of a scheme: the values differ by noise.
_STEEPEST = 20.0


class Convergence(eqx.Module):
    r"""Values at several resolutions $r$, and what $r \to \infty$ would give.

    The fit is $f(r) = f_\infty + C r^{-p}$ with $p$ observed. `values` keep their
    precision; `str` makes a table of a single number.

    Attributes:
        resolutions: Cells per length, ascending.
        values: What was computed, a row for each resolution.
        orders: $p$ of each three consecutive resolutions, coarse ones first. They agree
            where the cells are fine enough for the formula to hold. A given order is
            repeated for each two.
        limit: $f_\infty$, from the finest three, or two with a given order.
        error: Error bar of `limit`: Roache's index of the finest values, or how far the
            limit has moved from that of the previous resolutions, if that is more.
            Infinite where an order is given and the finest three do not come closer to
            each other.
    """

    resolutions: Float[np.ndarray, " runs"]
    values: Inexact[np.ndarray, "runs *shape"]
    orders: Float[np.ndarray, "groups *shape"]
    limit: Inexact[np.ndarray, "*shape"]
    error: Float[np.ndarray, "*shape"]

    @property
    def order(self) -> Float[np.ndarray, "*shape"]:
        """The order observed with the finest three resolutions, or the given one."""
        return np.asarray(self.orders[-1])

    def __str__(self) -> str:
        if self.values.ndim > 1:
            shape = self.values.shape[1:]
            return f"{len(self.values)} resolutions of an array of shape {shape}"
        orders = [f"{p:.2f}" for p in self.orders]
        orders = [""] * (len(self.values) - len(orders)) + orders
        lines = [f"{'resolution':>12} {'value':>24} {'order':>6}"]
        for r, value, order in zip(self.resolutions, self.values, orders, strict=True):
            lines.append(f"{r:12g} {value:24.10g} {order:>6}")
        lines.append(f"{'limit':>12} {self.limit:24.10g} ± {self.error:.1e}")
        return "\n".join(lines)


def extrapolate(
    resolutions: Num[ArrayLike, " runs"] | Sequence[float | int],
    values: Num[ArrayLike, "runs *shape"] | Sequence[Any],
    *,
    order: float | int | None = None,
    formal_order: float | int = 2,
    safety: float | int | None = None,
) -> Convergence:
    r"""Extrapolates values to infinite resolution (Richardson) with an error bar.

    The order is the $p$ with which $f(r) = f_\infty + C r^{-p}$ goes through three
    values. The error bar is the grid convergence index
    $s \lvert f_3 - f_2 \rvert / ((r_3 / r_2)^q - 1)$, where $q$ is the smaller one of
    $p$ and `formal_order`, so that a lucky order does not make the bar small. With
    `order` and three values or more $q$ is at most the order that the finest three
    show, too, so that the bar holds the limits of both. Entries of arrays are
    extrapolated independently, and complex ones as one number each, whose steps may
    turn by up to 45 degrees.

    Reference: Roache, Journal of Fluids Engineering 116, 405 (1994).

    Args:
        resolutions: At least three different ones, or two with an `order`: cells per
            length, or cells of an absorbing layer.
        values: What was computed with each.
        order: $p$ of the limit, where it is known and not to be observed: 2 where a
            compensated grid (`compensate_dispersion`) meets interfaces that are
            averaged well.
        formal_order: The order of the method: 2 for these equations on uniform grids,
            `inf` where none is known, as for layers.
        safety: The factor $s$, at least 1. As Roache advises it is 1.25 if not given,
            and 3 for two resolutions, which do not show whether the formula holds.

    Returns:
        The study.

    Raises:
        ArgumentError: If there are too few resolutions, `order` is not positive, or
            values are not finite, reverse, no longer change, or, where the order is to
            be observed, do not converge.
    """
    refuse_traced(resolutions, "resolutions", "Call `extrapolate` outside.")
    refuse_traced(values, "values", "Call `extrapolate` outside.")
    numeric("values")(values)
    r, f = _as_resolutions(resolutions, order), np.asarray(values)
    if f.shape[:1] != r.shape:
        raise ArgumentError(
            f"`values` must have one entry for each of the {len(r)} resolutions, but "
            f"has shape {f.shape}."
        )
    formal_order = known_number(formal_order, "formal_order")
    if safety is None:
        safety = 1.25 if len(r) > 2 else 3
    safety = known_number(safety, "safety")
    if not (formal_order > 0 and safety >= 1):
        raise ArgumentError(
            "`formal_order` must be positive and `safety` at least 1, but are "
            f"{formal_order:g} and {safety:g}."
        )
    places = np.argsort(r)
    r, f = r[places], f[places]
    f = f if np.issubdtype(f.dtype, np.inexact) else f.astype(float)
    steps = _steps(r, f)
    orders, limits = [], []
    # Each ends with the finest value of a group of three, or of two.
    for k in range(1 if order is not None else 2, len(r)):
        if order is None:
            p = _order(r[k - 2 : k + 1], steps[k - 2 : k])
            _refuse(
                ~((p > 0) & (p < _STEEPEST)),
                r[k - 2 : k + 1],
                f[k - 2 : k + 1],
                "must come closer to each other with finer cells, at an order between "
                f"0 and {_STEEPEST:g}",
                "Use finer cells, or longer runs if the fields still ring.",
            )
        else:
            p = np.full(f.shape[1:], float(order))
        orders.append(p)
        limits.append(f[k] + steps[k - 1] / ((r[k] / r[k - 1]) ** p - 1))
    q = np.minimum(orders[-1], formal_order)
    if len(r) > 2:
        q = np.minimum(q, _order(r[-3:], steps[-2:]))
    with np.errstate(divide="ignore"):
        error = safety * np.abs(steps[-1]) / ((r[-1] / r[-2]) ** q - 1)
    if len(limits) > 1:
        error = np.maximum(error, np.abs(limits[-1] - limits[-2]))
    orders, limit = np.stack(orders), np.asarray(limits[-1])
    return Convergence(r, f, orders, limit, np.asarray(error))


def _as_resolutions(given: Any, order: Any) -> np.ndarray:
    """Returns resolutions, refusing those that are too few, equal or not positive."""
    if order is not None and not 0 < known_number(order, "order") < np.inf:
        raise ArgumentError(f"`order` must be a positive number, but is {order!r}.")
    real(given, "resolutions")
    r, least = np.asarray(given, float), 3 if order is None else 2
    good = r.ndim == 1 and len(np.unique(r)) == len(r) >= least
    if not (good and np.all((r > 0) & (r < np.inf))):
        why = (
            ", as two do not determine the order (or give `order`)"
            if order is None
            else ""
        )
        raise ArgumentError(
            f"`resolutions` must be at least {least} different positive numbers{why}, "
            f"but is {r.tolist()}."
        )
    return r


def _steps(r: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Returns the changes between resolutions, which must not change direction."""
    _refuse(~np.isfinite(f).all(axis=0), r, f, "must be finite")
    steps = np.diff(f, axis=0)
    _refuse(
        np.any(steps == 0, axis=0),
        r,
        f,
        "must change from each resolution to the next",
        "They have converged to their last digit, or do not depend on the cells.",
    )
    along = np.real(steps[1:] * np.conj(steps[:-1]))
    turned = along < np.sqrt(0.5) * np.abs(steps[1:]) * np.abs(steps[:-1])
    _refuse(
        turned.any(axis=0),
        r,
        f,
        "must change in one direction only from coarse to fine",
        "Leave out the coarsest, add finer ones, or look for what else changes with "
        "the cells: positions that jump between samples, layers, lengths of runs.",
    )
    return steps


def _order(r: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Solves for the order with which three values approach their limit.

    At least 0, where they approach none, and at most the steepest.
    """
    ratio = np.asarray(np.abs(steps[0]) / np.abs(steps[1]))
    # (r2^p / r1^p - 1) / (1 - r2^p / r3^p) increases with p, from this at p = 0.
    coarse, fine = np.log(r[1] / r[0]), np.log(r[2] / r[1])
    quotient = lambda p: np.expm1(p * coarse) / -np.expm1(-p * fine)  # noqa: E731
    low, high = np.zeros(ratio.shape), np.full(ratio.shape, _STEEPEST)
    for _ in range(60):
        middle = (low + high) / 2
        below = quotient(middle) < ratio
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(ratio > coarse / fine, (low + high) / 2, 0.0)


def _refuse(
    bad: np.ndarray | np.bool_,
    r: np.ndarray,
    f: np.ndarray,
    what: str,
    advice: str = "",
) -> None:
    """Refuses values of which an entry does not allow an extrapolation."""
    if not np.any(bad):
        return
    entry = tuple(int(i) for i in np.argwhere(bad)[0])
    where = f" (entry {', '.join(map(str, entry))})" if entry else ""
    seen = ", ".join(f"{v:.8g}" for v in f[(slice(None), *entry)])
    raise ArgumentError(
        f"`values`{where} {what}, but at the resolutions "
        f"{', '.join(f'{x:g}' for x in r)} are {seen}. {advice}".rstrip()
    )


def converge(
    compute: Callable[[Any], Any],
    resolutions: Sequence[float | int],
    *,
    order: float | int | None = None,
    formal_order: float | int = 2,
    safety: float | int | None = None,
    progress: Progress | bool = True,
) -> Convergence:
    """Computes something at several resolutions and extrapolates it.

    Ratios of 1.3 and more between resolutions separate the order from noise; the
    geometry should not move with them, so use resolutions for which faces stay on cell
    borders.

    Args:
        compute: Maps one of `resolutions` as given, such as cells per length or cells
            of a layer, to a number or an array of one shape.
        resolutions: At least three, or two with an `order`, from coarse to fine.
        order: As for `extrapolate`.
        formal_order: As for `extrapolate`.
        safety: As for `extrapolate`.
        progress: Whether and how to show how many are done.

    Returns:
        The study.

    Raises:
        ArgumentError: As `extrapolate`; for too few resolutions before the first run.
    """
    check_function(compute, "compute", "lambda cells: ...")
    _as_resolutions(resolutions, order)
    returned = numeric("compute(resolution)")
    shown = Progress("resolutions") if progress is True else progress
    values = []
    with show_progress(shown, 0, len(resolutions)) as report:
        for number, resolution in enumerate(resolutions):
            value = compute(resolution)
            returned(value)
            values.append(np.asarray(value))
            report(number + 1, float("nan"))
    shapes = {value.shape for value in values}
    if len(shapes) > 1:
        raise ArgumentError(
            "`compute` must return arrays of one shape, but returned the shapes "
            f"{sorted(shapes)}."
        )
    return extrapolate(
        resolutions,
        np.stack(values),
        order=order,
        formal_order=formal_order,
        safety=safety,
    )
