"""Whether chains agree, and how many independent draws they are worth.

Reference: Vehtari, Gelman, Simpson, Carpenter and Bürkner, *Rank-normalization,
folding, and localization: an improved R-hat*, Bayesian Analysis 16, 667 (2021).
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from .._checks import ArgumentError


Draws = Float[np.ndarray, "chains draws"]


def _split(draws: Draws) -> Float[np.ndarray, "halves half"]:
    """Cuts each chain into halves: one that drifts then disagrees with itself."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_ranks(draws: Draws) -> Draws:
    """Replaces draws by the normal quantiles of their ranks; equal ones share one."""
    _, place, count = np.unique(draws, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    rank = (last - (count - 1) / 2)[place].reshape(draws.shape)
    return ndtri((rank - 0.375) / (draws.size + 0.25))


def _plain_r_hat(draws: Draws) -> float:
    length = draws.shape[1]
    between = length * np.var(draws.mean(axis=1), ddof=1)
    within = np.mean(np.var(draws, axis=1, ddof=1))
    return float(np.sqrt((between / within + length - 1) / length))


def _plain_ess(draws: Draws) -> float:
    """Effective sample size by Geyer's initial monotone sequence."""
    chains, length = draws.shape
    centred = draws - draws.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * length)
    products = np.fft.irfft(np.abs(spectrum) ** 2, 2 * length)[:, :length]
    covariance = products.mean(axis=0) / length
    within = covariance[0] * length / (length - 1)
    total = within * (length - 1) / length
    if chains > 1:
        total += np.var(draws.mean(axis=1), ddof=1)
    if not total > 0:
        return float(draws.size)
    rho = 1 - (within - covariance) / total
    rho[0] = 1
    # Sums of neighbours are positive and decrease, but for noise: it ends where they do
    # not.
    last = 2 * max((length - 3) // 2, 1)
    pairs = rho[:last].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    end = int(negative[0]) if negative.size else pairs.size
    tail = max(float(rho[2 * end]), 0.0) if 2 * end < length else 0.0
    time = -1 + 2 * np.sum(np.minimum.accumulate(pairs[:end])) + tail
    time = max(time, 1 / np.log10(draws.size))
    return float(draws.size / time)


def _check(draws: Any) -> np.ndarray:
    draws = np.asarray(draws)
    if draws.ndim != 2 or draws.dtype.kind not in "iuf":
        raise ArgumentError(
            "`draws` must be real numbers of shape (chains, draws), but has dtype "
            f"{draws.dtype} and shape {draws.shape}."
        )
    draws = draws.astype(float)
    if draws.shape[1] < 4:
        raise ArgumentError(
            f"`draws` must be at least 4 in each chain, but are {draws.shape[1]}."
        )
    return draws


def r_hat(draws: Draws) -> float:
    """Returns the rank-normalised split R-hat, near 1 where chains agree.

    The larger of two values: that of the draws, and that of their distances from the
    median, which detects chains that differ in width.

    Args:
        draws: Draws of one number, one row for each chain.

    Raises:
        ArgumentError: If they are not real numbers, or fewer than 4 in each chain.
    """
    draws = _check(draws)
    if not np.isfinite(draws).all() or np.ptp(draws) == 0:
        return float("nan")
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves))
    return max(_plain_r_hat(_normal_ranks(x)) for x in (halves, folded))


def bulk_ess(draws: Draws) -> float:
    """Returns the effective number of draws for the centre of the distribution.

    Args:
        draws: Draws of one number, one row for each chain.

    Raises:
        ArgumentError: If they are not real numbers, or fewer than 4 in each chain.
    """
    draws = _check(draws)
    if not np.isfinite(draws).all():
        return float("nan")
    return _plain_ess(_normal_ranks(_split(draws)))


def tail_ess(draws: Draws) -> float:
    """Returns the effective number of draws for the 5 % and 95 % quantiles.

    Args:
        draws: Draws of one number, one row for each chain.

    Raises:
        ArgumentError: If they are not real numbers, or fewer than 4 in each chain.
    """
    draws = _check(draws)
    if not np.isfinite(draws).all():
        return float("nan")
    limits = np.quantile(draws, (0.05, 0.95))
    return min(_plain_ess(_split((draws <= limit).astype(float))) for limit in limits)
