"""Results of XPCS fits as files: written, and read back to draw them again."""

import json
import math
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import physax

from .._status import Status
from .._whole_file import whole_file
from ..fit import FitResult, identifiability
from ..fit._statistics import correlation_of
from ..io import PhysaxFileError
from ..xpcs import TwoTime
from ._xpcs_job import Outcome, convention_of
from ._xpcs_names import NAMES, file_name, names_of
from ._xpcs_settings import Settings


PARAMETERS = "parameters.json"
ANALYSIS = "analysis_results_nlsq.json"
CONVERGENCE = "convergence_metrics.json"
FITTED = "fitted_data.npz"
SAMPLES = "samples.npz"


def write_json(path: Path, content: Any) -> None:
    """Writes a file of JSON, whole or not at all; NaN and infinity become null."""
    with whole_file(path) as file:
        text = json.dumps(plain(content), indent=2, allow_nan=False)
        file.write(text.encode() + b"\n")


def plain(value: Any) -> Any:
    """Makes of arrays and numbers what JSON has; NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | jax.Array):
        return plain(np.asarray(value).tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def parameters_of(outcome: Outcome) -> dict[str, dict[str, Any]]:
    """Returns name, value, uncertainty and unit of all parameters, scaling included.

    Angles are in degrees. What was fixed has no uncertainty.
    """
    fit, result = outcome.fit, outcome.fit.result
    linear_errors, own_errors = _errors(outcome)
    errors = {
        file_name(name): float(error)
        for name, error in zip(result.names, own_errors, strict=True)
    }
    at_bound = {
        file_name(name)
        for name, held in zip(result.names, result.active, strict=True)
        if held
    }
    found: dict[str, dict[str, Any]] = {}
    for name in names_of(fit.model):
        place = NAMES[name]
        error = errors.get(name)
        found[name] = {
            "value": float(place.of(fit.model)) / place.scale,
            "uncertainty": None if error is None else error / place.scale,
            "unit": place.unit,
            "fixed": name not in errors,
            "at_bound": name in at_bound,
        }
        if place.part == "shear":
            # A rate means nothing without it.
            found[name]["convention"] = convention_of(fit.model)
    problem = outcome.problem
    for name, value, error, held, low, high in zip(
        result.linear_names,
        result.linear,
        linear_errors,
        result.held,  # linear ones first
        problem.low,
        problem.high,
        strict=False,
    ):
        fixed = bool(low == high)
        found[name] = {
            "value": float(value),
            "uncertainty": None if fixed else float(error),
            "unit": "",
            "fixed": fixed,
            "at_bound": bool(held) and not fixed,
        }
    return found


def _errors(outcome: Outcome) -> tuple[np.ndarray, np.ndarray]:
    """Returns standard errors of linear coefficients, and of free parameters."""
    errors = np.sqrt(np.diagonal(outcome.covariance))
    linear = len(outcome.fit.result.linear_names)
    return errors[:linear], errors[linear:]


def summary_of(outcome: Outcome, settings: Settings, source: str) -> dict[str, Any]:
    """Returns what a table of many fits holds of one."""
    result, data = outcome.fit.result, outcome.data
    return {
        "file": source,
        "q": mean_wavevector(np.asarray(data.q)),
        "mode": settings.mode,
        "convention": convention_of(outcome.fit.model),
        "maps": data.maps,
        "frames": data.frames,
        "status": Status(int(result.status)).name.lower(),
        "success": result.success,
        "chi2": float(result.chi2),
        "reduced_chi2": _reduced(result),
        "noise": noise_of(outcome),
        "errors": settings.fit.errors,
        "seconds": round(outcome.seconds, 3),
    }


def noise_of(outcome: Outcome) -> float:
    """Returns the standard deviation of one value of all maps, from the residuals."""
    return float(np.sqrt(np.mean(np.square(outcome.fit.noise))))


def _reduced(result: FitResult) -> float | None:
    """Returns the reduced chi-square, which is one where sigma is known only."""
    return float(result.reduced_chi2) if result.absolute_sigma else None


def mean_wavevector(q: np.ndarray) -> float:
    """Returns the mean, of maps of one wavevector this one, as one would write it."""
    # The mean of equal numbers may differ from them in the last digit, and float32 in
    # double precision has more digits than it knows.
    mean = q[0] if np.all(q == q[0]) else np.mean(q, dtype=float)
    return float(str(mean))


def write_results(
    folder: Path, outcome: Outcome, settings: Settings, source: str
) -> None:
    """Writes the JSON and npz files of a fit."""
    parameters = parameters_of(outcome)
    summary = summary_of(outcome, settings, source)
    named = {"mode": settings.mode, "convention": summary["convention"]}
    write_json(folder / PARAMETERS, parameters)
    write_json(folder / ANALYSIS, _analysis(outcome, settings, summary, parameters))
    write_json(folder / CONVERGENCE, {**named, **_convergence(outcome)})
    _write_fitted(folder / FITTED, outcome, settings, source)


_ABOUT = {
    "angles": "degrees",
    "times": "seconds",
    "q": "1/angstrom",
    "uncertainty": "one standard error",
}


def _analysis(outcome: Outcome, settings: Settings, summary, parameters):
    fit, data, quality = outcome.fit, outcome.data, outcome.quality
    result = fit.result
    linear, (_, errors) = len(result.linear_names), _errors(outcome)
    covariance = jnp.asarray(outcome.covariance[linear:, linear:])
    correlation = correlation_of(covariance, jnp.asarray(errors))
    return {
        "method": "nlsq",
        "physax": physax.__version__,
        "jax": jax.__version__,
        **summary,
        "message": result.message,
        "degrees_of_freedom": int(result.degrees_of_freedom),
        "points": int(result.count),
        "bic": bic(result),
        "absolute_sigma": result.absolute_sigma,
        "neighbour_correlation": outcome.neighbours[0],
        "dt": float(np.mean(np.diff(np.asarray(data.times, float)))),
        "gap": getattr(settings, "gap", None),
        "units": _ABOUT,
        "parameters": parameters,
        "contrast": fit.contrast,
        "offset": fit.offset,
        "phi_angles": np.degrees(np.asarray(data.phi)),
        "correlation": {
            "names": [file_name(name) for name in result.names],
            "matrix": correlation,
        },
        "quality": {
            "warnings": quality.warnings,
            "baseline": quality.baseline,
            "contrast": quality.contrast,
            "sigma": quality.sigma,
            "stated_sigma": quality.stated_sigma,
            "dead_frames": quality.dead_frames,
        },
    }


def bic(result: FitResult) -> float:
    """Returns Bayes' criterion, with the noise as one more unknown if it is."""
    count = int(result.count)
    size = result.factor.shape[-1]
    cost = float(result.chi2)
    if not count or not math.isfinite(cost):
        return math.nan
    if not result.absolute_sigma:
        cost = count * math.log(cost / count) if cost > 0 else -math.inf
    return cost + size * math.log(count)


def _convergence(outcome: Outcome) -> dict[str, Any]:
    result = outcome.fit.result
    weak = identifiability(result)
    plan = result.plan
    return {
        "converged": result.success,
        "status": Status(int(result.status)).name.lower(),
        "message": result.message,
        "iterations": int(result.iterations),
        "evaluations": int(result.evaluations),
        "chi2": float(result.chi2),
        "reduced_chi2": _reduced(result),
        "noise": noise_of(outcome),
        "gradient": dict(
            zip(map(file_name, result.names), result.gradient.tolist(), strict=True)
        ),
        "condition_number": float(result.condition),
        "undetermined_combinations": weak.undetermined,
        "identifiability": str(weak).splitlines(),
        "chi2_of_starts": outcome.starts,
        "strategy": None if plan is None else plan.strategy.value,
        "seconds": outcome.seconds,
    }


def _write_fitted(path: Path, outcome: Outcome, settings: Settings, source) -> None:
    data, fit = outcome.data, outcome.fit
    c2 = np.asarray(data.c2)
    times = np.asarray(data.times, float)
    sigma = np.asarray(data.sigma)
    kept = c2.dtype if c2.dtype == np.float32 else np.float64
    arrays = {
        "phi_angles": np.degrees(np.asarray(data.phi, float)),
        "q": np.asarray(data.q, float),
        "t1": times,
        "t2": times,
        "c2_exp": c2,
        "c2_fit": outcome.fitted.astype(kept),
        "c2_theory": outcome.factor.astype(kept),
        "residuals": (c2 - outcome.fitted).astype(kept),
        "per_angle_scaling": np.stack(
            [np.asarray(fit.contrast), np.asarray(fit.offset)], axis=1
        ),
        "sigma": sigma,
        "sigma_is_known": np.array(data.sigma_is_known),
        "mode": np.array(settings.mode),
        "convention": np.array(convention_of(fit.model) or ""),
        "source": np.array(source),
    }
    if data.mask is not None:
        arrays["mask"] = np.asarray(data.mask)
    with whole_file(path) as file:
        np.savez(file, **arrays)


class Stored(NamedTuple):
    """A result that was read back.

    Attributes:
        data: What was fitted.
        fitted: The fitted maps.
        parameters: As in `parameters.json`.
        analysis: As in `analysis_results_nlsq.json`.
        samples: Samples of the posterior and their names, if there are any.
    """

    data: TwoTime
    fitted: np.ndarray
    parameters: dict[str, Any]
    analysis: dict[str, Any]
    samples: tuple[np.ndarray, list[str]] | None


def read_results(folder: Path) -> Stored:
    """Reads what `write_results` wrote.

    Raises:
        PhysaxFileError: If a file is missing or damaged.
    """
    arrays = _arrays(folder / FITTED)
    try:
        data = TwoTime(
            arrays["c2_exp"],
            arrays["q"],
            np.radians(arrays["phi_angles"]),
            arrays["t1"],
            arrays["sigma"],
            arrays.get("mask"),
            bool(arrays["sigma_is_known"]),
        )
        fitted = arrays["c2_fit"]
    except (KeyError, ValueError) as error:
        raise PhysaxFileError(
            folder / FITTED, f"It must hold a fit, but does not: {error}."
        ) from error
    parameters, analysis = (_json(folder / n) for n in (PARAMETERS, ANALYSIS))
    samples = None
    if (folder / SAMPLES).exists():
        drawn = _arrays(folder / SAMPLES)
        samples = (drawn["samples"], [str(n) for n in drawn["names"]])
    return Stored(data, fitted, parameters, analysis, samples)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        # `np.load` does not close what it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError as error:
        raise PhysaxFileError(
            path, "There must be the result of a fit, but there is none."
        ) from error
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise PhysaxFileError(path, f"It is damaged: {error}.") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PhysaxFileError(
            path, "There must be the result of a fit, but there is none."
        ) from error
    except ValueError as error:
        raise PhysaxFileError(path, f"It is not valid JSON: {error}.") from error
    if not isinstance(content, dict):
        raise PhysaxFileError(path, "It must hold a JSON object.")
    return content
