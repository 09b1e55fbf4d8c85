"""Spectra of records that end before the fields have decayed."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num
from scipy.linalg import toeplitz

from .._checks import ArgumentError, instance, refuse_traced
from ._monitors import SpectralFields, as_frequencies
from ._time_monitors import TimeSeries, recorded_part


# The cost grows as the third power of the samples: some seconds for so many.
_MOST, _LEAST = 2_000, 20
# One shorter record alone may agree with the whole one by chance.
_LEFT_OUT = 10, 5
# Singular values below this share of the largest are of rounding.
_SMALLEST = 1e-14


class PadeSpectra(eqx.Module):
    """Spectra of a long record, predicted from a short one.

    Attributes:
        fields: The spectra, as of a `FieldMonitor`.
        change: For each frequency how far the spectra move at most if the last tenth or
            fifth of the record is left out, over the largest modulus of all: an
            estimate of their error, seldom too small by more than a factor of 5 while
            it is small. Lines too close to be resolved by any of the records do not
            show in it.
    """

    fields: SpectralFields
    change: Float[Array, " freqs"]


def pade(
    series: TimeSeries, frequencies: Num[ArrayLike, "*freqs"] | list[float]
) -> PadeSpectra:
    r"""Extrapolates a record to its end by a Padé approximant of its transform.

    The transform $\sum_n F(t_n) z^n$ with $z = e^{2 \pi i f \Delta t}$ is a power
    series; for a sum of damped oscillations, begun by a pulse of any shape, it is a
    quotient of polynomials, which $2 N + 1$ samples determine to degree $N$. So a
    record of a few widths of the resolution gives spectra for which a transform needs
    all of the ringing. It must hold the pulse from its beginning, and two samples for
    each oscillation there is, in the band or not.

    Runs on the host in float64, for each sample of the region on its own. Reference:
    Dey and Mittra, IEEE Microwave and Guided Wave Letters 8, 415 (1998).

    Args:
        series: The result of a `TimeMonitor`, whose `every` leaves at most 2,000
            records: a tenth of the shortest period is often enough.
        frequencies: In Hz.

    Returns:
        The spectra and how certain they are.

    Raises:
        ArgumentError: If `series` is of another monitor, the record has too few or too
            many samples, is traced or not finite, or a frequency is above half its
            sampling rate.
    """
    instance(series, "series", TimeSeries, "Give what a `TimeMonitor` recorded.")
    refuse_traced(series, "series", "Call `pade` outside.")
    refuse_traced(frequencies, "frequencies", "Call `pade` outside.")
    f = np.asarray(as_frequencies(frequencies), float)
    series = recorded_part(series, "series")
    values, changes = {}, []
    for name, samples in series.values.items():
        record, times = np.asarray(samples), np.asarray(series.times[name], float)
        record, dt = _checked(record, times, f, name)
        phase = dt * np.exp(2j * np.pi * f * times[0])
        count, z = len(record), np.exp(2j * np.pi * f * dt)
        whole, *shorter = (
            phase[:, None] * _approximant(record[: count - left], z)
            for left in (0, *(count // part for part in _LEFT_OUT))
        )
        peak = np.max(np.abs(whole), initial=0.0) or 1.0
        gaps = np.abs(np.stack(shorter) - whole)
        changes.append(np.max(gaps, axis=(0, 2)) / peak)
        values[name] = jnp.asarray(whole.reshape(-1, *np.shape(samples)[1:]))
    fields = SpectralFields(jnp.asarray(f), values, series.coordinates)
    return PadeSpectra(fields, jnp.asarray(np.max(changes, axis=0)))


def _checked(
    record: np.ndarray, times: np.ndarray, f: np.ndarray, name: str
) -> tuple[np.ndarray, float]:
    """Returns samples as columns, and the time between them."""
    columns = record.reshape(len(record), -1)
    count = len(columns) if np.any(columns) else 0
    if not _LEAST <= count <= _MOST:
        raise ArgumentError(
            f"`series` must have from {_LEAST} to {_MOST} records that are not zero, "
            f"but {name} has {count}. Choose `every` of the monitor, or the length of "
            "the run."
        )
    if not np.all(np.isfinite(columns)):
        raise ArgumentError(f"`series` must be finite, but {name} is not.")
    dt = float(times[-1] - times[0]) / (len(times) - 1)
    if f.max() >= 0.5 / dt:
        raise ArgumentError(
            f"`frequencies` must lie below {0.5 / dt:.6g} Hz, half the sampling rate "
            f"of the record, but one is {f.max():.6g} Hz. Record more often."
        )
    return columns, dt


def _approximant(record: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Evaluates the diagonal approximant of each column at points of the plane."""
    order = (len(record) - 1) // 2
    # What is below the rounding of the samples would be fitted by poles of no meaning.
    smallest = max(_SMALLEST, 0.1 * float(np.finfo(record.dtype).eps))
    found = []
    for c in record[: 2 * order + 1].T:
        c = c.astype(complex if np.iscomplexobj(c) else float)
        rows = toeplitz(c[order : 2 * order], c[order:0:-1])
        solved = np.linalg.lstsq(rows, -c[order + 1 :], rcond=smallest)[0]
        below = np.concatenate([[1.0], solved])
        above = np.convolve(below, c[: order + 1])[: order + 1]
        found.append(np.polyval(above[::-1], z) / np.polyval(below[::-1], z))
    return np.stack(found, axis=1)
