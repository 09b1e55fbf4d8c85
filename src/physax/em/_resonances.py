"""Resonances: frequencies and quality factors from how a structure rings down."""

import math
from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import ArrayLike, Complex, Float, Inexact, Num

from .._checks import ArgumentError, refuse_traced
from .._known_number import known_number
from .._status import RunError, Status
from ..units import NANO, SPEED_OF_LIGHT, TERA
from ._matrix_pencil import STOP, Modes, modes_in_band
from ._time_monitors import TimeSeries, recorded_part


# Fewer samples than this determine hardly a mode.
_LEAST = 20
# Amplitudes above this many times the record are of modes that cancel each other, as
# in the fit of a pulse.
_CANCELLING = 100


class Resonances(eqx.Module):
    r"""Damped oscillations found in a record, by frequency; `str` makes a table.

    The record of probe p is $\sum_k a_{kp} e^{-(2 \pi i f_k + \gamma_k)(t - t_0)}$, of
    a real record the real part. Values are NumPy arrays in float64.

    Attributes:
        frequency: $f$ in Hz.
        decay: $\gamma$ in 1/s, at which the amplitude decays; positive for loss.
        error: Standard deviation of $f$ in Hz, at least the rounding of the times; that
            of $\gamma$ is $2 \pi$ times it.
        amplitude: $a$ in the unit of the record, a column for each probe.
        time: $t_0$ in seconds: the first sample that was used.
    """

    frequency: Float[np.ndarray, " modes"]
    decay: Float[np.ndarray, " modes"]
    error: Float[np.ndarray, " modes"]
    amplitude: Complex[np.ndarray, "modes probes"]
    time: float

    @property
    def complex_frequency(self) -> Complex[np.ndarray, " modes"]:
        r"""$f - i \gamma / 2 \pi$ in Hz."""
        return self.frequency - 1j * self.decay / (2 * np.pi)

    @property
    def quality(self) -> Float[np.ndarray, " modes"]:
        r"""The quality factor $Q = \pi f / \gamma$: infinite without decay."""
        with np.errstate(divide="ignore"):
            return np.pi * np.abs(self.frequency) / self.decay

    @property
    def quality_error(self) -> Float[np.ndarray, " modes"]:
        r"""Standard deviation of $Q$, $2 Q^2 / |f|$ times that of $f$.

        Where it is not well below $Q$, the record is too short to tell the loss: `str`
        shows what $Q$ is probably above.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return 2 * self.quality**2 * self.error / np.abs(self.frequency)

    @property
    def phase(self) -> Float[np.ndarray, "modes probes"]:
        """The phase of the amplitude in radians."""
        return np.angle(self.amplitude)

    def __str__(self) -> str:
        lines = [
            f"{len(self.frequency)} "
            f"{'resonance' if len(self.frequency) == 1 else 'resonances'}",
            f"{'frequency (THz)':>18} {'error':>8} {'wavelength (nm)':>16} {'Q':>10} "
            f"{'error':>8} {'decay (1/ps)':>12} {'amplitude':>10}",
        ]
        for f, error, quality, spread, decay, factors in zip(
            self.frequency,
            self.error,
            self.quality,
            self.quality_error,
            self.decay,
            self.amplitude,
            strict=True,
        ):
            shown = f"{quality:10.5g} {spread:8.1e}"
            # Two standard deviations of the decay.
            sure = 4 * np.pi * error
            if abs(decay) <= sure and sure > 0:
                above = np.pi * abs(f) / (max(decay, 0.0) + sure)
                shown = f"{f'> {above:.2g}':>10} {'':8}"
            lines.append(
                f"{f / TERA:18.10g} {error / TERA:8.1e} "
                f"{SPEED_OF_LIGHT / f / NANO:16.8g} {shown} "
                f"{decay / TERA:12.5g} {np.max(np.abs(factors)):10.3g}"
            )
        return "\n".join(lines)


class _Record(eqx.Module):
    """Equally spaced samples, and when the first was taken."""

    values: Inexact[np.ndarray, "times probes"]
    first: Float[np.ndarray, " probes"]
    dt: float
    rounding: float


def resonances(
    signal: TimeSeries | Num[ArrayLike, "times *probes"],
    band: Sequence[Num[ArrayLike, ""]] | Num[ArrayLike, "..."],
    *,
    dt: Num[ArrayLike, ""] | None = None,
    start: Num[ArrayLike, ""] | None = None,
    tolerance: Num[ArrayLike, ""] = 0.1,
) -> Resonances:
    r"""Finds the resonances in a band from a record of fields that ring down.

    Far fewer periods are needed than for the width of a peak in a spectrum. The band is
    filtered out of the record and decimated; a matrix pencil finds the poles that all
    probes share. An error comes from what is left of the record without the modes and
    from how far the poles move with other windows, and is at least the rounding of the
    times; modes with too large an error are left out. The record must be long enough
    to have three widths of its resolution for each mode, on average over a few tens of
    them.

    Runs on the host in float64. Reference: Hua and Sarkar, IEEE Transactions on
    Acoustics, Speech, and Signal Processing 38, 814 (1990).

    Args:
        signal: The result of a `TimeMonitor`, of which each sample of each component is
            a probe, or an array with time along its first axis. Of a `TimeSeries` only
            what is `recorded` is used.
        band: Lowest and highest frequency in Hz; negative ones for complex records.
        dt: Interval of the samples of an array in seconds.
        start: Time in seconds, at least 0, of the first sample to use: not before the
            sources are over, `pulse.duration()`. A resonance that decays within the
            pulse is not found later.
        tolerance: Largest error of a mode over the larger of its width
            $\gamma / \pi$ and the resolution, the inverse length, of the record.

    Returns:
        The resonances.

    Raises:
        ArgumentError: If the band is empty or above the Nyquist frequency, `start` is
            negative or behind the record, the record too short for the band, not
            finite, zero or traced, or an option no single real number.
        RunError: If there is no resonance in the band.
    """
    tolerance = known_number(tolerance, "tolerance")
    if not tolerance > 0:
        raise ArgumentError(f"`tolerance` must be positive, but is {tolerance!r}.")
    record = _from(_record(signal, dt), start)
    low, high = _checked_band(band, record)
    _check_samples(record, low, high)
    peak = np.max(np.abs(record.values))
    found = modes_in_band(record.values / peak, low * record.dt, high * record.dt)
    criteria = _criteria(found, len(record.values), tolerance)
    good = np.all(criteria, axis=0)
    if not np.any(good):
        raise _none_found(record, low, high, found, criteria)
    modes = Modes(*(one[good] for one in found))
    first = float(np.min(record.first))
    # Magnetic samples are taken half a step before electric ones.
    late = np.exp(1j * np.outer(modes.rate / record.dt, record.first - first))
    # A real oscillation is half of a complex one and half of its mirror image.
    scale = peak * (1 if np.iscomplexobj(record.values) else 2)
    frequency = np.real(modes.rate) / (2 * np.pi * record.dt)
    error = modes.error / (2 * np.pi * record.dt)
    return Resonances(
        frequency=frequency,
        decay=-np.imag(modes.rate) / record.dt,
        error=np.maximum(error, record.rounding * np.abs(frequency)),
        amplitude=scale * modes.amplitude * late,
        time=first,
    )


def _criteria(modes: Modes, count: int, tolerance: float) -> tuple[np.ndarray, ...]:
    """Returns which modes are none of the noise, of the filter, and of a pulse."""
    width = np.maximum(1 / count, np.abs(np.imag(modes.rate)) / np.pi)
    exact = modes.error / (2 * np.pi) <= tolerance * width
    sizes = np.max(np.abs(modes.amplitude), axis=1, initial=0.0)
    return exact, modes.seen > 10 * STOP, sizes < _CANCELLING


def _record(signal, dt) -> _Record:
    """Returns samples as columns in double precision, with their times."""
    refuse_traced(signal, "signal", "Call `resonances` outside.")
    if not isinstance(signal, TimeSeries):
        values = _columns(np.asarray(signal))
        if dt is None:
            raise ArgumentError(
                "`dt` must be given with an array: the seconds between its samples."
            )
        dt, rounding = known_number(dt, "dt"), _rounding(dt)
        if not (dt > 0 and math.isfinite(dt)):
            raise ArgumentError(f"`dt` must be positive and finite, but is {dt:g} s.")
        return _Record(values, np.zeros(values.shape[1]), dt, rounding)
    if dt is not None:
        raise ArgumentError("`dt` must be left out: a `TimeSeries` has its own times.")
    signal, columns, first = recorded_part(signal, "signal"), [], []
    for name, samples in signal.values.items():
        columns.append(_columns(np.asarray(samples)))
        first.append(np.full(columns[-1].shape[1], float(signal.times[name][0])))
    times = np.asarray(next(iter(signal.times.values())))
    rounding, times = _rounding(times), times.astype(np.float64)
    if len(times) < 2:
        raise ArgumentError("`signal` must have at least 2 samples, but has 1.")
    values = np.concatenate(columns, axis=1)
    interval = (times[-1] - times[0]) / (len(times) - 1)
    return _Record(values, np.concatenate(first), float(interval), rounding)


def _rounding(seconds) -> float:
    """Returns the relative error of a time by its precision."""
    kind = np.asarray(seconds).dtype
    return float(np.finfo(kind if kind.kind == "f" else np.float64).eps)


def _columns(samples: np.ndarray) -> np.ndarray:
    """Returns samples in double precision, time down and probes across."""
    if samples.dtype.kind not in "fciu":
        raise ArgumentError(
            "`signal` must be a `TimeSeries` or an array of numbers, but is neither. "
            "From a `Result`, pass one of `monitors`."
        )
    if samples.ndim == 0 or samples.size == 0:
        raise ArgumentError(
            "`signal` must have samples along time of at least one probe, but has the "
            f"shape {samples.shape}."
        )
    kind = np.complex128 if np.iscomplexobj(samples) else np.float64
    return samples.reshape(len(samples), -1).astype(kind)


def _from(record: _Record, start) -> _Record:
    """Leaves out what comes before a time, after checking the samples."""
    bad = np.flatnonzero(~np.all(np.isfinite(record.values), axis=1))
    if bad.size:
        raise ArgumentError(
            f"`signal` must be finite, but its sample {bad[0]} is not. Did the run "
            "diverge?"
        )
    if start is None:
        return record
    start = known_number(start, "start")
    if not start >= 0:
        raise ArgumentError(
            f"`start` must be a time of at least 0 s, but is {start:.6g} s. Give the "
            "`duration()` of the pulse."
        )
    end = float(np.min(record.first)) + record.dt * (len(record.values) - 1)
    if not start < end:
        raise ArgumentError(
            f"`start` must be before the last sample, at {end:.6g} s, but is "
            f"{start:.6g} s. Run longer."
        )
    # A start on a sample takes it, whatever the rounding.
    skipped = max(0, math.ceil((start - np.min(record.first)) / record.dt - 1e-3))
    return _Record(
        record.values[skipped:],
        record.first + skipped * record.dt,
        record.dt,
        record.rounding,
    )


# Periods in the record below which a number was not a frequency in Hz.
_LEAST_PERIODS = 1e-6


def _checked_band(band, record: _Record) -> tuple[float, float]:
    """Returns the ends of the band in Hz."""
    band = band if np.ndim(band) else (band,)
    ends = np.asarray([known_number(end, "band") for end in band])
    if ends.shape != (2,) or not (np.all(np.isfinite(ends)) and ends[0] < ends[1]):
        raise ArgumentError(
            "`band` must be a lower and a higher frequency in Hz, but is "
            f"({', '.join(f'{end:g}' for end in ends)})."
        )
    low, high = map(float, ends)
    if low <= 0 and not np.iscomplexobj(record.values):
        raise ArgumentError(
            "`band` must begin above 0 Hz, where nothing oscillates, but begins at "
            f"{low:g} Hz."
        )
    length = record.dt * len(record.values)
    if max(-low, high) * length < _LEAST_PERIODS:
        raise ArgumentError(
            f"`band` must be in Hz, above {_LEAST_PERIODS / length:.3g} Hz for a "
            f"record of {length:.3g} s, but is ({low:g}, {high:g}). Is it in Hz, and "
            "not wavelengths?"
        )
    limit = 1 / (2 * record.dt)
    if max(-low, high) >= limit:
        raise ArgumentError(
            f"`band` must lie below the Nyquist frequency, {limit:.6g} Hz for samples "
            f"every {record.dt:.6g} s, but reaches {max(-low, high):.6g} Hz. Record "
            "more often."
        )
    return low, high


def _check_samples(record: _Record, low: float, high: float) -> None:
    """Refuses records that are too short or empty."""
    count = len(record.values)
    need = max(_LEAST, math.ceil(2 / ((high - low) * record.dt)))
    if count < need:
        raise ArgumentError(
            f"`signal` must have at least {need} samples for a band of "
            f"{high - low:.4g} Hz sampled every {record.dt:.4g} s, but has {count} "
            "from `start` on. Run longer, or widen the band."
        )
    if not np.any(record.values):
        raise ArgumentError(
            "`signal` must not be zero throughout. Have the waves reached the probe, "
            "and is it off the nodes of the field?"
        )


def _none_found(
    record: _Record,
    low: float,
    high: float,
    found: Modes,
    criteria: tuple[np.ndarray, ...],
) -> RunError:
    """Says that there is no resonance, and what may be done about it."""
    count = len(record.values)
    message = (
        f"No resonance was found from {low / TERA:.6g} to {high / TERA:.6g} THz in "
        f"{count} samples over {count * record.dt:.4g} s"
    )
    if found.rate.size:
        best = np.argmin(found.error)
        scale = 2 * np.pi * record.dt * TERA
        message += (
            f"; the best candidate, {np.real(found.rate[best]) / scale:.6g} THz, has "
            f"an error of {found.error[best] / scale:.2g} THz"
        )
        exact, seen, alone = (bool(one[best]) for one in criteria)
        if exact and not alone:
            size = np.max(np.abs(found.amplitude[best]))
            message += (
                f", but its amplitude is {size:.2g} times that of the record, where "
                f"at most {_CANCELLING} is allowed: it and others cancel, as in the "
                "fit of a pulse, or where two modes coincide (an exceptional point), "
                "whose field t exp(-gamma t) is no sum of oscillations. Begin after "
                "the pulse (`start`), or change the structure so that the modes part."
            )
            return RunError(message, Status.UNDETERMINED)
        if exact and not seen:
            message += (
                f", but its amplitude is {found.seen[best]:.1g} of that of the record, "
                f"where {10 * STOP:.0g} may be left of what is outside the band"
            )
    message += (
        ". Run longer, begin after the pulse (`start`), move source or probe off the "
        "nodes of the mode, or give another band. For a short-lived mode, the record "
        "should span few lifetimes; for many modes, three times one over their "
        "spacing."
    )
    return RunError(message, Status.UNDETERMINED)
