"""The quality of a measurement: a report before any model is assumed."""

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float

from ._two_time import TwoTime, check_data


LOWEST, HIGHEST = 0.5, 3.0
"""An intensity correlation can reasonably be expected between these."""

# Of the longest lag: beyond this the correlation is taken as gone.
_LONG = 0.8
# Lags shorter than this bend too much to tell noise from signal.
_SHORTEST = 3
# A frame is off when it differs from its neighbours by this many deviations, and by
# this fraction of the contrast.
_DEVIATIONS, _FRACTION = 8.0, 0.25
# From the median of absolute values to a standard deviation, for Gaussian noise.
_MEDIAN_TO_SIGMA = 1.4826


class QualityReport(eqx.Module):
    """What was found in a measurement; `str` gives it as text.

    Attributes:
        q: Wavevector of each map in 1/angstrom.
        phi: Angle of each map in radians.
        used: Fraction of the pairs above the diagonal that the mask allows.
        finite: Fraction of the values that are used and finite, for each map.
        monotone: Whether the times increase.
        outside: Fraction of the values below 0.5 or above 3, for each map.
        asymmetry: Largest difference between a map and its mirror image.
        dead: Frames whose values with all others are constant, or far from those of
            their neighbours, in any map.
        baseline: Mean over the longest fifth of the lags, for each map.
        contrast: Mean at the shortest lag minus the baseline, for each map. The true
            one is larger where the correlation decays within a frame.
        sigma: Standard deviation of one value, from its difference to values at
            neighbouring lags, for each map.
        stated_sigma: The mean standard deviation that the data state, for each map; NaN
            if they do not.
    """

    q: Float[np.ndarray, " maps"]
    phi: Float[np.ndarray, " maps"]
    used: float
    finite: Float[np.ndarray, " maps"]
    monotone: bool
    outside: Float[np.ndarray, " maps"]
    asymmetry: Float[np.ndarray, " maps"]
    dead: Bool[np.ndarray, " frames"]
    baseline: Float[np.ndarray, " maps"]
    contrast: Float[np.ndarray, " maps"]
    sigma: Float[np.ndarray, " maps"]
    stated_sigma: Float[np.ndarray, " maps"]

    @property
    def signal_to_noise(self) -> Float[np.ndarray, " maps"]:
        """Contrast over the standard deviation of one value."""
        return self.contrast / np.maximum(self.sigma, np.finfo(float).tiny)

    @property
    def dead_frames(self) -> tuple[int, ...]:
        """Numbers of the dead frames, counted from 1."""
        return tuple(int(k) + 1 for k in np.flatnonzero(self.dead))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to examine before a fit, as sentences."""
        return tuple(_findings(self))

    @property
    def good(self) -> bool:
        """Whether no problems were found."""
        return not self.warnings

    def __str__(self) -> str:
        frames = self.dead.size
        lines = [
            f"{self.q.size} maps of {frames} x {frames} frames, {self.used:.1%} of the "
            "pairs used",
            f"{'q (1/A)':>10} {'phi (deg)':>9} {'baseline':>9} {'contrast':>9} "
            f"{'sigma':>9} {'stated':>9} {'signal/noise':>12}",
        ]
        for row in zip(
            self.q,
            np.degrees(self.phi),
            self.baseline,
            self.contrast,
            self.sigma,
            self.stated_sigma,
            self.signal_to_noise,
            strict=True,
        ):
            q, phi, baseline, contrast, sigma, stated, ratio = row
            lines.append(
                f"{q:10.5g} {phi:9.2f} {baseline:9.4f} {contrast:9.4f} {sigma:9.2g} "
                f"{stated:9.2g} {ratio:12.3g}"
            )
        found = self.warnings
        lines += [f"! {text}" for text in found] or ["No problems found."]
        return "\n".join(lines)


def check_quality(data: TwoTime) -> QualityReport:
    """Examines a measurement on the host.

    Args:
        data: The maps.

    Returns:
        The report. Frames that the mask leaves out altogether are not examined.

    Raises:
        ArgumentError: If `data` is not a `TwoTime`.
    """
    check_data(data)
    times = np.asarray(data.times, np.float64)
    frames = data.frames
    pairs = np.triu(np.ones((frames, frames), bool), 1)
    total = max(int(pairs.sum()), 1)
    if data.mask is not None:
        pairs &= np.asarray(data.mask)
    sigma = np.asarray(data.sigma, np.float64)
    if not data.sigma_is_known:
        stated = np.full(data.maps, np.nan)
    elif sigma.ndim == 3:
        stated = np.array([np.mean(s[pairs]) if pairs.any() else np.nan for s in sigma])
    else:
        stated = np.broadcast_to(sigma, (data.maps,)).copy()
    dead = np.zeros(frames, bool)
    rows = []
    for one in data.c2:
        # Map by map: a copy of all in float64 would not fit where the maps just do.
        found, off = _examine(np.asarray(one, np.float64), pairs)
        rows.append(found)
        dead |= off
    finite, outside, asymmetry, baseline, contrast, noise = np.array(rows).T
    return QualityReport(
        q=np.asarray(data.q, np.float64),
        phi=np.asarray(data.phi, np.float64),
        used=float(pairs.sum() / total),
        finite=finite,
        monotone=bool(np.all(np.diff(times) > 0)),
        outside=outside,
        asymmetry=asymmetry,
        dead=dead,
        baseline=baseline,
        contrast=contrast,
        sigma=noise,
        stated_sigma=stated,
    )


def _examine(c2: np.ndarray, pairs: np.ndarray) -> tuple[tuple, np.ndarray]:
    """Returns the numbers of one map, and which frames are dead in it."""
    good = pairs & np.isfinite(c2)
    values = c2[good]
    count = max(int(pairs.sum()), 1)
    finite = values.size / count
    outside = float(np.sum((values < LOWEST) | (values > HIGHEST))) / count
    both = good & np.isfinite(c2.T)
    asymmetry = float(np.max(np.abs(c2 - c2.T)[both], initial=0.0))
    frames = len(c2)
    lags = np.subtract.outer(np.arange(frames), np.arange(frames)).T
    baseline = _mean(c2, good & (lags >= _LONG * (frames - 1)))
    contrast = _mean(c2, good & (lags == 1)) - baseline
    sigma = _noise(c2, good, lags)
    dead = _dead(c2, good, contrast, sigma)
    return (finite, outside, asymmetry, baseline, contrast, sigma), dead


def _mean(values: np.ndarray, where: np.ndarray) -> float:
    return float(np.mean(values[where])) if where.any() else float("nan")


def _noise(c2: np.ndarray, good: np.ndarray, lags: np.ndarray) -> float:
    """Estimates the noise from second differences along the lag.

    The second difference of a smooth curve is small; that of noise has 3/2 of its
    variance. The median does not mind a few bad frames.
    """
    if len(c2) < 3:
        return float("nan")
    three = good[:, 1:-1] & good[:, :-2] & good[:, 2:] & (lags[:, :-2] >= _SHORTEST)
    if not three.any():
        three = good[:, 1:-1] & good[:, :-2] & good[:, 2:]
    if not three.any():
        return float("nan")
    bend = c2[:, 1:-1] - (c2[:, :-2] + c2[:, 2:]) / 2
    spread = float(np.median(np.abs(bend[three])))
    return _MEDIAN_TO_SIGMA * spread / np.sqrt(1.5)


def _dead(c2, good, contrast: float, sigma: float) -> np.ndarray:
    """Finds frames that are constant, or whose mean is far from their neighbours'."""
    known = good | good.T
    full = np.where(good, c2, c2.T)
    count = known.sum(1)
    some = count > 0
    highest = np.max(full, axis=1, where=known, initial=-np.inf)
    lowest = np.min(full, axis=1, where=known, initial=np.inf)
    with np.errstate(invalid="ignore"):
        constant = (count > 2) & (highest - lowest <= 1e-7 * np.abs(highest))
    if constant[some].all():
        # Every frame is constant: that is the map, not a frame.
        return np.zeros(len(c2), bool)
    at = np.flatnonzero(some & ~constant)
    if at.size < 5:
        return constant
    mean = np.sum(full, axis=1, where=known)[at] / count[at]
    # Two neighbours on either side; fewer at the ends.
    ends = np.pad(mean, 2, constant_values=np.nan)
    near = [ends[k : k + at.size] for k in (0, 1, 3, 4)]
    off = np.abs(mean - np.nanmedian(near, axis=0))
    floor = np.nanmax([_FRACTION * abs(contrast), sigma, 1e-6])
    limit = max(_DEVIATIONS * _MEDIAN_TO_SIGMA * float(np.median(off)), floor)
    far = np.zeros(len(c2), bool)
    far[at] = off > limit
    return constant | far


def _findings(report: QualityReport):
    def maps(bad) -> str:
        numbers = [str(int(k) + 1) for k in np.flatnonzero(bad)]
        more = f" and {len(numbers) - 10} more" if len(numbers) > 10 else ""
        return "map " + ", ".join(numbers[:10]) + more

    if not report.monotone:
        yield "The times do not increase."
    if np.any(report.finite < 1):
        bad = report.finite < 1
        yield f"{maps(bad)}: {1 - report.finite[bad].min():.2%} not finite."
    if np.any(report.outside > 0):
        bad = report.outside > 0
        yield (
            f"{maps(bad)}: up to {report.outside.max():.2%} of the values lie outside "
            f"{LOWEST:g} to {HIGHEST:g}."
        )
    slack = 1e-4 * np.maximum(np.abs(report.baseline), 1)
    if np.any(report.asymmetry > slack):
        bad = report.asymmetry > slack
        yield f"{maps(bad)}: not symmetric, by up to {report.asymmetry.max():.2g}."
    if report.dead_frames:
        listed = ", ".join(map(str, report.dead_frames[:20]))
        more = " ..." if len(report.dead_frames) > 20 else ""
        yield (
            f"Frames {listed}{more} are constant or far from their neighbours: leave "
            "them out with `mask`."
        )
    if np.any(np.abs(report.baseline - 1) > 0.1):
        bad = np.abs(report.baseline - 1) > 0.1
        yield (
            f"{maps(bad)}: the baseline at long lags is not near 1; the correlation "
            "may not have decayed, or the normalisation differs."
        )
    if np.any(report.signal_to_noise < 3):
        bad = report.signal_to_noise < 3
        yield f"{maps(bad)}: the contrast is less than 3 standard deviations."
    ratio = report.stated_sigma / np.maximum(report.sigma, np.finfo(float).tiny)
    bad = (ratio > 2) | (ratio < 0.5)
    if np.any(bad & np.isfinite(ratio)):
        yield (
            f"{maps(bad)}: the stated `sigma` is {ratio[bad][0]:.2g} times that of the "
            "data."
        )
