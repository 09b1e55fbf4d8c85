"""Draws from a posterior as ArviZ's data."""

from typing import Any

from .._checks import instance
from ._posterior import MissingExtraError, Posterior


def to_arviz(posterior: Posterior) -> Any:
    """Returns the draws as ArviZ's `InferenceData` (a `DataTree` from version 1 on).

    Needs arviz: `pip install "physax[bayes]"`.

    Args:
        posterior: The draws.

    Raises:
        ArgumentError: If `posterior` is of another kind.
        MissingExtraError: If arviz is not installed.
    """
    instance(posterior, "posterior", Posterior, "Make one by `sample_posterior`.")
    try:
        import arviz
    except ImportError as error:
        raise MissingExtraError(
            "`to_arviz` needs arviz, but it is not installed: "
            'pip install "physax[bayes]".'
        ) from error
    named = {name: posterior.samples[..., i] for i, name in enumerate(posterior.names)}
    for i, name in enumerate(posterior.linear_names):
        named[name] = posterior.linear[..., i]
    if posterior.sigma is not None:
        named["sigma"] = posterior.sigma
    about = {
        "diverging": posterior.divergences,
        "acceptance_rate": posterior.acceptance,
        "n_steps": posterior.steps,
    }
    if int(arviz.__version__.split(".")[0]) < 1:
        return arviz.from_dict(posterior=named, sample_stats=about)
    return arviz.from_dict({"posterior": named, "sample_stats": about})
