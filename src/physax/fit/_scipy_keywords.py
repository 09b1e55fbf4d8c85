"""Keywords of SciPy's `curve_fit` that this one does not take, and what to write."""

import difflib
from collections.abc import Iterable

from .._checks import ArgumentError


_LIMIT = "Write `method=fit.TrustRegion(max_evaluations=...)`."
_INSTEAD = {
    "maxfev": _LIMIT,
    "max_nfev": _LIMIT,
    **{
        name: f"Write `method=fit.TrustRegion({name}=...)`."
        for name in ("ftol", "xtol", "gtol", "factor")
    },
    "jac": "Derivatives are exact: leave it out.",
    "f_scale": "Write `loss=fit.SoftL1(f_scale)`.",
    "full_output": "Its report is in the attribute `result` of what is returned.",
    "nan_policy": "Leave points out, or use the `mask` of `fit.LeastSquares`.",
}


def refuse_keywords(given: Iterable[str], known: Iterable[str]) -> None:
    """Raises if a keyword is given, with what stands for it.

    Args:
        given: Names of keywords that are no arguments of `curve_fit`.
        known: Those that are.
    """
    for name in given:
        near = difflib.get_close_matches(name, known, 1)
        usual = f"Did you mean `{near[0]}`?" if near else "There is no such setting."
        remedy = _INSTEAD.get(name, usual)
        raise ArgumentError(f"`curve_fit` must be called without `{name}`. {remedy}")
