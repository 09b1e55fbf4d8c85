"""Sellmeier formulas fitted to an index without losses, on the host."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares, nnls


# How near to the band a resonance may lie, as a ratio of frequencies.
_APART = 1.02


class Resonances(NamedTuple):
    r"""$A + \sum_k B_k x_k^2 / (x_k^2 - x^2)$.

    Attributes:
        constant: $A$, at least 1.
        places: $x_k$, outside of the band.
        strengths: $B_k$, positive.
    """

    constant: float
    places: np.ndarray
    strengths: np.ndarray

    def at(self, x: np.ndarray) -> np.ndarray:
        """Returns the values at frequencies."""
        return self.constant + _columns(x, self.places) @ self.strengths


def fit_resonances(x: np.ndarray, values: np.ndarray, count: int) -> Resonances:
    """Fits a number of resonances above and below the band.

    Args:
        x: Frequencies in any unit, ascending.
        values: Relative permittivities; relative errors are made least.
        count: How many resonances, or 0. Those without strength are left out.

    Returns:
        The best fit. It has no losses and does not amplify.
    """
    if not count:
        return Resonances(_strengths(x, values, x[:0])[0], x[:0], x[:0])
    found = []
    for above in range(count, -1, -1):
        # Distances from the band, from half of its frequency on.
        begin = np.log(np.geomspace(0.5, 3.0, count + 1)[1:])
        begin = np.concatenate([begin[:above], begin[: count - above]])
        fit = least_squares(_misfit, begin, args=(x, values, above), max_nfev=200)
        found.append((fit.cost, above, fit.x))
    _, above, distances = min(found, key=lambda entry: entry[0])
    places = _places(distances, x, above)
    constant, strengths = _strengths(x, values, places)
    kept = strengths > 0
    return Resonances(constant, places[kept], strengths[kept])


def _places(distances: np.ndarray, x: np.ndarray, above: int) -> np.ndarray:
    # Further away they act as constants or as 1 / x^2.
    ratio = _APART + np.exp(np.clip(distances, -20.0, 4.0))
    return np.where(np.arange(len(ratio)) < above, x[-1] * ratio, x[0] / ratio)


def _misfit(
    distances: np.ndarray, x: np.ndarray, values: np.ndarray, above: int
) -> np.ndarray:
    places = _places(distances, x, above)
    constant, strengths = _strengths(x, values, places)
    return (constant + _columns(x, places) @ strengths) / values - 1


def _strengths(
    x: np.ndarray, values: np.ndarray, places: np.ndarray
) -> tuple[float, np.ndarray]:
    """Fits what is linear: a constant of at least 1, and strengths of at least 0."""
    columns = np.concatenate([np.ones((len(x), 1)), _columns(x, places)], axis=1)
    columns = columns / values[:, None]
    lengths = np.linalg.norm(columns, axis=0)
    parts, _ = nnls(columns / lengths, 1 - 1 / values, maxiter=1000)
    parts = parts / lengths
    return 1 + float(parts[0]), parts[1:]


def _columns(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    return places**2 / (places**2 - x[:, None] ** 2)
