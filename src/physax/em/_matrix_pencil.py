"""The matrix pencil: poles of sums of damped exponentials, part by part of a band."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Inexact


# What the filter leaves of frequencies that decimation folds into the band.
STOP = 1e-7
# The shape of Kaiser's window for it, and its length times the transition in cycles.
_ATTENUATION = -20 * np.log10(STOP)
_KAISER = 0.1102 * (_ATTENUATION - 8.7)
_LENGTH = (_ATTENUATION - 8) / (2.285 * 2 * np.pi)
# Width of a part of the band over the resolution of the record. A narrow band is made
# as wide, so that the filter costs no more than a ninth of the record; a wide one is
# cut into parts, because singular values cost the cube of it.
_WIDTH = 80
# How far the singular values of noise, in windows of half of a record, lie above the
# one that nine tenths of them exceed.
_NOISE = 12.0
# More series are combined to so many, each of which has all the poles.
_SERIES = 6


class Modes(NamedTuple):
    """Exponentials found in a record.

    Attributes:
        rate: Complex angular frequency, in radians per sample.
        error: Standard deviation of `rate`.
        amplitude: Factor in each series, at the first sample.
        seen: The largest factor in the filtered record.
    """

    rate: Complex[np.ndarray, " modes"]
    error: Float[np.ndarray, " modes"]
    amplitude: Complex[np.ndarray, "modes series"]
    seen: Float[np.ndarray, " modes"]


def modes_in_band(
    record: Inexact[np.ndarray, "times series"], low: float, high: float
) -> Modes:
    r"""Finds the exponentials of a record with frequencies in a band.

    $s_n = \sum_k a_k e^{-i \omega_k n}$. The band is shifted to zero, filtered and
    decimated, which leaves exponentials what they are; the poles of the rest are the
    eigenvalues of a shift by one sample in the space that its windows span.

    Reference: Hua and Sarkar, IEEE Transactions on Acoustics, Speech, and Signal
    Processing 38, 814 (1990).

    Args:
        record: Its series share the poles.
        low: Lower end of the band, in cycles per sample.
        high: Upper end.

    Returns:
        The modes by frequency, spurious ones among them.
    """
    count = len(record)
    parts = max(1, int(np.ceil((high - low) * count / _WIDTH)))
    edges = np.linspace(low, high, parts + 1)
    # A mode on the border of two parts may lie outside of both by rounding, so that
    # they overlap by a fraction of the resolution.
    reach = np.full(parts + 1, 0.1 / count)
    reach[[0, -1]] = 0.0
    found = [_part(record, *ends) for ends in pairwise(edges)]
    found = [
        _pick(modes, _between(modes, first - before, last + after))
        for modes, (first, last), (before, after) in zip(
            found, pairwise(edges), pairwise(reach), strict=True
        )
    ]
    source = np.repeat(np.arange(parts), [one.rate.size for one in found])
    joined = Modes(*(np.concatenate(one) for one in zip(*found, strict=True)))
    once = _once(joined, source, 1e-3 / count)
    return _pick(joined, once[np.argsort(np.real(joined.rate[once]))])


def _between(modes: Modes, low: float, high: float) -> np.ndarray:
    cycles = np.real(modes.rate) / (2 * np.pi)
    return (cycles >= low) & (cycles <= high)


def _once(modes: Modes, source: np.ndarray, slack: float) -> np.ndarray:
    """Returns the modes without those that another part found more exactly."""
    order = np.argsort(modes.error)
    kept = np.ones(len(order), bool)
    for place, k in enumerate(order):
        if not kept[k]:
            continue
        rest = order[place + 1 :]
        reach = slack + 10 * (modes.error[k] + np.minimum(modes.error[rest], slack))
        same = np.abs(modes.rate[rest] - modes.rate[k]) < reach
        kept[rest[same & (np.abs(source[rest] - source[k]) == 1)]] = False
    return np.flatnonzero(kept)


def _pick(modes: Modes, which: np.ndarray) -> Modes:
    return Modes(*(one[which] for one in modes))


def _part(record: np.ndarray, low: float, high: float) -> Modes:
    """Finds the modes in and around one part of a band."""
    centre = (low + high) / 2
    taps, every = _filter(len(record), high - low)
    if every == 1:
        centre, filtered = 0.0, record
    else:
        filtered = _filtered(record, taps, every, centre)
    combined = _combined(filtered)
    roots = _roots(combined, len(combined) // 2)
    # Other windows find the same exponentials, but spurious ones elsewhere.
    skipped = len(combined) // 16
    moved = np.zeros(roots.shape)
    for part in (combined[skipped:], combined[:-skipped]):
        others = _roots(part, len(part) // 2)
        steps = np.abs(np.log(others[None] / roots[:, None]))
        moved = np.maximum(moved, np.min(steps, axis=1, initial=np.inf))
    factors, deviation = _fit(filtered, roots)
    error = np.hypot(deviation, moved) / every
    offset = 1j * np.log(roots.astype(complex)) / every
    rate = 2 * np.pi * centre + offset
    response = np.exp(-1j * np.outer(offset, np.arange(len(taps)))) @ taps
    amplitude = factors / response[:, None]
    seen = np.max(np.abs(factors), axis=1, initial=0.0)
    return Modes(rate, error, amplitude, seen)


def _filter(count: int, width: float) -> tuple[np.ndarray, int]:
    """Returns a low-pass filter for a band, and by how much it may decimate."""
    width = max(width, _WIDTH / count)
    every = int(1 / (2 * width))
    if every <= 1:
        return np.ones(1), 1
    # What folds into the band begins at 1 / every - width / 2.
    length = int(np.ceil(_LENGTH / (1 / every - width)))
    middle = np.arange(length) - (length - 1) / 2
    taps = np.sinc(middle / every) * np.kaiser(length, _KAISER)
    return taps / np.sum(taps), every


def _filtered(
    record: np.ndarray, taps: np.ndarray, every: int, centre: float
) -> np.ndarray:
    """Shifts a frequency to zero, filters and decimates."""
    shifted = taps * np.exp(2j * np.pi * centre * np.arange(len(taps)))
    windows = np.lib.stride_tricks.sliding_window_view(record, len(taps), axis=0)
    windows = windows[::every]
    out = np.stack([series @ shifted for series in windows.swapaxes(0, 1)], axis=1)
    turn = np.exp(2j * np.pi * centre * every * np.arange(len(out)))
    return out * turn[:, None]


def _combined(series: np.ndarray) -> np.ndarray:
    """Returns the strongest combinations of series that share their poles."""
    if series.shape[1] <= _SERIES:
        return series
    u, s, _ = np.linalg.svd(series, full_matrices=False)
    return u[:, :_SERIES] * s[:_SERIES]


def _roots(series: np.ndarray, length: int) -> np.ndarray:
    """Returns the factors by which the exponentials in a record change per sample.

    The windows of noise have many singular values of about one size, of signals a few
    above them: those are kept.
    """
    windows = np.lib.stride_tricks.sliding_window_view(series, length, axis=0)
    rows = windows.reshape(-1, length)
    _, s, vh = np.linalg.svd(rows, full_matrices=False)
    floor = max(_NOISE * s[len(s) * 9 // 10], 4 * np.finfo(float).eps * s[0])
    basis = vh[s > floor][: length - 1].T
    shift = np.linalg.lstsq(basis[:-1], basis[1:], rcond=None)[0]
    return np.linalg.eigvals(shift)


def _fit(series: np.ndarray, roots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fits exponentials with given roots to a record.

    Returns:
        The factor of each root in each series, and the standard deviation of the
        logarithm of each root, by the bound of Cramér and Rao for what is left.
    """
    count, kinds = series.shape
    n = np.arange(count)[:, None]
    # Columns of about one size, those that grow as well: they are 1 at one end.
    start = np.where(np.abs(roots) > 1, count - 1, 0)
    powers = np.exp(np.log(roots.astype(complex)) * (n - start))
    factors = np.linalg.lstsq(powers, series, rcond=None)[0]
    freedom = max(1, (count - 2 * len(roots)) * kinds)
    noise = np.linalg.norm(series - powers @ factors) / np.sqrt(freedom)
    # How the sum changes with each root, less what its factors can make up for.
    q, _ = np.linalg.qr(powers)
    slopes = n * powers
    slopes = slopes - q @ (q.conj().T @ slopes)
    information = (slopes.conj().T @ slopes) * (factors.conj() @ factors.T)
    size = np.sqrt(np.maximum(np.abs(np.diag(information)), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(information / np.outer(size, size))
    values = np.maximum(values, len(roots) * np.finfo(float).eps)
    spread = np.sqrt(np.sum(np.abs(vectors) ** 2 / values, axis=1))
    return factors * powers[0][:, None], noise * spread / size
