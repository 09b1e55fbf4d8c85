"""Keywords of SciPy's `curve_fit` that this one does not take, and what to write."""

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


def refuse_keywords(given: Iterable[str]) -> None:
    """Raises if a keyword is given, with what stands for it.

    Args:
        given: Names of keywords that are no arguments of `curve_fit`.
    """
    for name in given:
        remedy = _INSTEAD.get(name, "There is no such setting: leave it out.")
        raise ArgumentError(f"`curve_fit` must be called without `{name}`. {remedy}")
