"""Samples of the posterior of an XPCS fit."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._whole_file import whole_file
from ..fit import MissingExtraError, Posterior, sample_posterior
from ..runtime import Progress
from ._session import Talk
from ._xpcs_job import Outcome, convention_of
from ._xpcs_names import NAMES, file_name
from ._xpcs_results import PARAMETERS, SAMPLES, parameters_of, write_json
from ._xpcs_settings import Settings


def check_sampler(method: str) -> None:
    """Refuses before the fit to sample where the sampler is not installed.

    Raises:
        MissingExtraError: If it is not, and the posterior is asked for.
    """
    if method != "nlsq" and find_spec("numpyro") is None:
        raise MissingExtraError(
            f"`--method {method}` needs numpyro, but it is not installed: "
            'pip install "physax[bayes]".'
        )


def write_posterior(
    folder: Path, outcome: Outcome, settings: Settings, talk: Talk
) -> None:
    """Samples the posterior and writes samples and what follows from them.

    Args:
        folder: Where results go.
        outcome: The fit that the chains start from.
        settings: How many samples.
        talk: Says whether the samples can be relied on.
    """
    sampling = settings.sampling
    posterior = sample_posterior(
        outcome.problem,
        outcome.fit.result,
        key=jax.random.key(sampling.seed),
        draws=sampling.samples,
        warmup=sampling.warmup,
        chains=sampling.chains,
        progress=Progress("sample", "draws") if talk.level >= 0 else None,
    )
    names, scales = _names(posterior)
    samples = posterior.samples / scales
    flat = samples.reshape(-1, samples.shape[-1])
    with whole_file(folder / SAMPLES) as file:
        np.savez(
            file,
            samples=flat,
            names=np.array(names),
            chain=np.repeat(np.arange(samples.shape[0]), samples.shape[1]),
            linear=posterior.linear.reshape(len(flat), -1),
            linear_names=np.array(posterior.linear_names),
            convention=np.array(convention_of(outcome.fit.model) or ""),
        )
    found = _summary(posterior, names, samples)
    about = {"mode": settings.mode, "convention": convention_of(outcome.fit.model)}
    write_json(folder / "analysis_results_nuts.json", {**about, **found})
    if settings.fit.method == "nuts":
        entries = parameters_of(outcome)
        for name, entry in found["parameters"].items():
            entries[name] |= {"value": entry["mean"], "uncertainty": entry["deviation"]}
        write_json(folder / PARAMETERS, entries)
    talk.say(str(posterior))
    if not posterior.ok:
        talk.warn("the samples cannot be relied on: take more, or fix a parameter")


def _names(posterior: Posterior) -> tuple[list[str], np.ndarray]:
    names = [file_name(name) for name in posterior.names]
    return names, np.array([NAMES[name].scale for name in names])


def _summary(posterior: Posterior, names, samples) -> dict[str, Any]:
    low, high = np.quantile(samples, (0.025, 0.975), axis=(0, 1))
    return {
        "method": "nuts",
        "reliable": posterior.ok,
        "chains": samples.shape[0],
        "draws": samples.shape[1],
        "divergences": int(posterior.divergences.sum()),
        "parameters": {
            name: {
                "mean": samples[..., i].mean(),
                "deviation": samples[..., i].std(ddof=1),
                "interval_95": [low[i], high[i]],
                "unit": NAMES[name].unit,
                "r_hat": posterior.r_hat[i],
                "bulk_ess": posterior.bulk_ess[i],
                "tail_ess": posterior.tail_ess[i],
            }
            for i, name in enumerate(names)
        },
    }
