"""How many fits of NIST's regression sets succeed from perturbed starts.

`python -m benchmarks.nist [--json FILE] [--starts N]` perturbs the second start of each
of the 27 sets by up to 20 % in each parameter, several times, and fits from there with
the default options of every tool: physax, SciPy's `curve_fit` (with derivatives from
JAX, and with differences) and nlsq's, where it is installed. A fit counts if each
parameter agrees with its certified value to 4, or to 8, digits. Double precision.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version

import jax
import numpy as np
from scipy.optimize import curve_fit

from physax.fit import LeastSquares, least_squares
from tests.validation import nist_strd

from ._rows import MISSING, OURS, Row, console, ours_version, ranked, report


DIGITS = (4, 8)
PERTURBATION = 0.2
SCIPY, DIFFERENCES, NLSQ = "scipy", "scipy, differences", "nlsq"

# Takes a start to parameters, or raises one of these.
Fit = Callable[[np.ndarray], np.ndarray]
FAILURES = (RuntimeError, ValueError, np.linalg.LinAlgError, FloatingPointError)


def perturbed(case: nist_strd.Problem, count: int) -> np.ndarray:
    """Returns starts about the second of a set, the same ones in each run."""
    generator = np.random.default_rng(sum(map(ord, case.name)))
    factors = generator.uniform(
        1 - PERTURBATION, 1 + PERTURBATION, (count, case.values.size)
    )
    return case.starts[1] * factors


def ours(case: nist_strd.Problem) -> Fit:
    """Makes our fit of a set; one that has not converged is none."""

    def fit(start: np.ndarray) -> np.ndarray:
        result = least_squares(
            LeastSquares(case.residual, start, case.data), throw=True
        )
        return np.asarray(result.values)

    return fit


def predictors(case: nist_strd.Problem) -> np.ndarray:
    """Returns the predictors as `curve_fit` takes them."""
    return case.data[1] if len(case.data) == 2 else np.stack(case.data[1:])


def curve(case: nist_strd.Problem) -> Callable:
    """Returns the model as `curve_fit` takes it."""
    model, several = nist_strd.MODELS[case.name], len(case.data) > 2
    return lambda x, *b: model(b, *x) if several else model(b, x)


def scipys(case: nist_strd.Problem, *, derivatives: bool) -> Fit:
    """Makes SciPy's fit of a set."""
    places = tuple(range(1, case.values.size + 1))
    model = jax.jit(curve(case))
    slopes = jax.jit(jax.jacfwd(curve(case), argnums=places))

    def jacobian(x, *b):
        return np.stack([np.asarray(column) for column in slopes(x, *b)], axis=1)

    def fit(start: np.ndarray) -> np.ndarray:
        return curve_fit(
            lambda x, *b: np.asarray(model(x, *b)),
            predictors(case),
            case.data[0],
            start,
            jac=jacobian if derivatives else None,
        )[0]

    return fit


def nlsqs(case: nist_strd.Problem) -> Fit:
    """Makes nlsq's fit of a set."""
    from nlsq import CurveFit  # pyright: ignore[reportMissingImports]

    fitter, model = CurveFit(), curve(case)

    def fit(start: np.ndarray) -> np.ndarray:
        found = fitter.curve_fit(model, predictors(case), case.data[0], p0=start)
        values, _ = found
        return np.asarray(values)

    return fit


def digits(values: np.ndarray, case: nist_strd.Problem) -> float:
    """Returns the number of correct digits of the worst parameter."""
    error = np.max(np.abs(values / case.values - 1))
    return float(-np.log10(max(error, 1e-16))) if np.isfinite(error) else 0.0


def attempt(fit: Fit, start: np.ndarray, case: nist_strd.Problem) -> float:
    """Fits once and returns the digits; 0 for a fit that fails."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return digits(fit(start), case)
        except FAILURES:
            return 0.0


def tools() -> dict[str, tuple[str, Callable[[nist_strd.Problem], Fit] | None]]:
    """Returns version and fit of each tool; no fit where it is not installed."""
    found: dict[str, tuple[str, Callable | None]] = {
        OURS: (ours_version(), ours),
        SCIPY: (version("scipy"), lambda case: scipys(case, derivatives=True)),
        DIFFERENCES: (version("scipy"), lambda case: scipys(case, derivatives=False)),
    }
    try:
        import nlsq  # noqa: F401 # pyright: ignore[reportMissingImports]
    except ImportError:
        found[NLSQ] = (MISSING, None)
    else:
        found[NLSQ] = (version("nlsq"), nlsqs)
    return found


def measured(names: Sequence[str], count: int) -> list[Row]:
    """Fits all sets with all tools.

    Args:
        names: Of the sets.
        count: Starts for each.

    Returns:
        A row for each set, tool and number of digits, and their totals.
    """
    rows, available = [], tools()
    for name in names:
        case = nist_strd.read(name)
        starts = perturbed(case, count)
        for tool, (release, make) in available.items():
            if make is None:
                continue
            fit = make(case)
            found = [attempt(fit, start, case) for start in starts]
            for least in DIGITS:
                good = sum(d >= least for d in found)
                rows.append(Row(_case(name, least), tool, release, good, "fits"))
    for least in DIGITS:
        for tool, (release, make) in available.items():
            good = [
                row.value
                for row in rows
                if row.tool == tool and row.case.endswith(_case("", least))
            ]
            total = None if make is None else float(sum(v for v in good if v))
            case = _case(f"all of {count * len(names)}", least)
            rows.append(Row(case, tool, release, total, "fits", runs=count))
    return ranked(rows)


def _case(name: str, least: int) -> str:
    return f"{name}: {least} digits"


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="where to write the rows")
    parser.add_argument("--starts", type=int, default=10, help="for each set")
    parser.add_argument("--sets", default="", help="which to fit; all by default")
    options = parser.parse_args(arguments)
    names = [name for name in options.sets.split(",") if name]
    unknown = sorted(set(names) - set(nist_strd.MODELS))
    if unknown:
        parser.error(f"unknown sets {unknown}; there are {sorted(nist_strd.MODELS)}")
    jax.config.update("jax_enable_x64", True)
    rows = measured(names or list(nist_strd.MODELS), options.starts)
    if not any(row.tool == NLSQ and row.value is not None for row in rows):
        console().print("nlsq is not installed; its rows are missing.")
    report(rows, "fits that find the certified values", options.json)


if __name__ == "__main__":
    main()
