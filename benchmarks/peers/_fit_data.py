"""The workload of `benchmarks.fit`: the same points and start for every tool."""

from collections.abc import Callable
from functools import partial

import numpy as np

from ._serve import serve


TRUTH = (2.0, 1.3, 0.7, 0.25, 0.1)
START = (1.0, 1.0, 1.0, 0.1, 0.0)
NOISE = 0.02


def model(xp, x, a, b, c, d, e):
    """Evaluates the model with the arrays of a module."""
    return a * xp.exp(-b * x) + c * xp.exp(-d * x) + e


def sample(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns positions and noisy values."""
    x = np.linspace(0, 10, count)
    noise = np.random.default_rng(0).standard_normal(count)
    return x, model(np, x, *TRUTH) + NOISE * noise


def serve_fits(tool: str, version: str, fit: Callable) -> None:
    """Answers requests for fits of so many `points`.

    Args:
        tool: Name of the tool.
        version: Its version.
        fit: Takes positions and values to five parameters.
    """
    serve(tool, version, lambda points: partial(fit, *sample(points)))
