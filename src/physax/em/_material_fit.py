"""Materials fitted to tables of n and k."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Complex, Float, Num

from .._checks import ArgumentError, refuse_traced, warn, whole
from ..units import MICRO, SPEED_OF_LIGHT
from ._materials import Material
from ._poles import TAU, AbstractPole, Lorentz, PoleResidue
from ._transparent_fit import fit_resonances
from ._vector_fit import Samples, error, fit_poles, refined


# Beyond this many poles a fit follows the noise of a table.
_MOST = 8
# In metres: tables above it are more often of micrometres than of radar.
_LONG = 1e-2


class MaterialFit(eqx.Module):
    r"""A material fitted to a table, and how well.

    Errors compare with the table at its wavelengths. Those of the permittivity are
    $|\epsilon_\text{fit} - \epsilon| / |\epsilon|$.

    Attributes:
        material: The material: poles and the permittivity at high frequencies; it
            holds at the wavelengths from the first to the last of the table.
        wavelengths: Of the table, in metres.
        table: The index $n + i k$ of the table.
        fitted: The index of the fit.
        rms_error: Root mean square of the relative errors of the permittivity.
        max_error: The largest of them.
        rms_n: Root mean square of the errors of $n$.
        rms_k: Root mean square of the errors of $k$.
    """

    material: Material
    wavelengths: Float[Array, " points"]
    table: Complex[Array, " points"]
    fitted: Complex[Array, " points"]
    rms_error: Float[Array, ""]
    max_error: Float[Array, ""]
    rms_n: Float[Array, ""]
    rms_k: Float[Array, ""]


class _Candidate(NamedTuple):
    rms: float
    constant: float
    poles: tuple[AbstractPole, ...]
    values: np.ndarray


def fit_material(
    wavelengths: Num[ArrayLike, "..."] | Sequence[float | int],
    n: Num[ArrayLike, "..."] | Sequence[float | int],
    k: Num[ArrayLike, "..."] | Sequence[float | int] | None = None,
    *,
    poles: int | None = None,
    tolerance: float | None = None,
) -> MaterialFit:
    r"""Fits poles to a table of refractive indices.

    With losses: pairs of poles by vector fitting, mirrored where they are unstable, and
    residues under the condition that the material absorbs at every frequency, inside
    the table and outside. Without losses: a Sellmeier formula whose resonances lie
    outside the table. Relative errors of the permittivity are minimised. Runs on the
    host in float64, and takes some seconds. Outside its table a fit means nothing.

    References: Gustavsen and Semlyen, IEEE Transactions on Power Delivery 14, 1052
    (1999); Gustavsen, the same 21, 1587 (2006).

    Args:
        wavelengths: In metres (vacuum), increasing.
        n: The index at each.
        k: The extinction coefficient at each, at least 0; `None` or zeros for a
            material without losses.
        poles: How many: pairs of poles with losses, resonances without. By default the
            fewest, up to 8, that reach the tolerance.
        tolerance: Largest root mean square of the relative errors of the permittivity;
            0.02 with losses and 1e-4 without unless given. Not used where `poles` is
            given.

    Returns:
        The material with its errors.

    Raises:
        ArgumentError: If the table is unusable, active, or too short for so many
            poles, or if the tolerance is not reached.
    """
    table = _Table.of(wavelengths, n, k)
    _check_choices(poles, tolerance)
    enough = (len(table.x) - 1) // 2
    if poles is not None and poles > enough:
        raise ArgumentError(
            f"`wavelengths` must have at least {2 * poles + 1} entries for {poles} "
            f"poles, but have {len(table.x)}."
        )
    wanted = (1e-4 if table.transparent else 0.02) if tolerance is None else tolerance
    best, fewest = None, 0 if table.transparent else 1
    for count in range(fewest, min(_MOST, enough) + 1) if poles is None else (poles,):
        found = _fit(table, count, None if poles is not None else wanted)
        if found is not None and (best is None or found.rms < best.rms):
            best = found
        if best is not None and best.rms <= wanted:
            break
    if best is None or (poles is None and best.rms > wanted):
        raise ArgumentError(_refusal(best, wanted, min(_MOST, enough)))
    return _result(table, best)


class _Table(NamedTuple):
    """A table in units of its middle frequency, in ascending order.

    Attributes:
        x: Frequencies over that of the middle.
        values: Relative permittivities.
        middle: In Hz.
        transparent: Whether there is no loss.
    """

    x: np.ndarray
    values: np.ndarray
    middle: float
    transparent: bool

    @staticmethod
    def of(wavelengths: Any, n: Any, k: Any) -> "_Table":
        waves, n = _column("wavelengths", wavelengths), _column("n", n)
        k = np.zeros_like(n) if k is None else _column("k", k)
        if not len(waves) == len(n) == len(k) or len(waves) < 3:
            raise ArgumentError(
                "`wavelengths`, `n` and `k` must be of one length of at least 3, but "
                f"have {len(waves)}, {len(n)} and {len(k)} entries."
            )
        if waves[0] <= 0 or np.any(np.diff(waves) <= 0):
            at = 0 if waves[0] <= 0 else int(np.argmax(np.diff(waves) <= 0)) + 1
            raise ArgumentError(
                f"`wavelengths` must be positive and increasing, but entry {at} is "
                f"{waves[at]:g} m. Sort the table, and remove duplicates."
            )
        if waves[0] > _LONG:
            warn(
                f"`wavelengths` should be in metres, but begin at {waves[0]:g} m. Are "
                "they in µm or nm?",
            )
        _at_least("n", n, waves, "Give the complex index of a metal as `n` and `k`")
        _at_least("k", k, waves, "A negative one amplifies: the medium is active")
        frequencies = SPEED_OF_LIGHT / waves[::-1]
        middle = float(np.sqrt(frequencies[0] * frequencies[-1]))
        values = ((n + 1j * k) ** 2)[::-1]
        if not np.all(np.abs(values) > 0):
            raise ArgumentError("`n` and `k` must not both be 0.")
        return _Table(frequencies / middle, values, middle, not np.any(k > 0))


def _column(name: str, x: Any) -> np.ndarray:
    refuse_traced(x, name, "Fit outside.")
    column = np.asarray(x)
    if column.ndim != 1 or column.dtype.kind not in "iuf":
        raise ArgumentError(
            f"`{name}` must be a list of real numbers, but has shape {column.shape} "
            f"and dtype {column.dtype}."
        )
    column = column.astype(float)
    if not np.all(np.isfinite(column)):
        at = int(np.argmin(np.isfinite(column)))
        raise ArgumentError(
            f"`{name}` must be finite, but entry {at} is {column[at]:g}. Leave such "
            "rows out."
        )
    return column


def _at_least(name: str, column: np.ndarray, waves: np.ndarray, remedy: str) -> None:
    bad = column < 0
    if np.any(bad):
        at = int(np.argmax(bad))
        raise ArgumentError(
            f"`{name}` must be at least 0, but is {column[at]:g} at "
            f"{waves[at] / MICRO:g} µm. {remedy}."
        )


def _check_choices(poles: int | None, tolerance: float | None) -> None:
    if poles is not None:
        whole(poles, "poles")
    if tolerance is not None and not 0 < tolerance < 1:
        raise ArgumentError(f"`tolerance` must lie in (0, 1), but is {tolerance:g}.")


def _fit(table: _Table, count: int, wanted: float | None) -> _Candidate | None:
    """Fits so many poles, with care where that may reach what is wanted, if given."""
    if table.transparent:
        return _without_losses(table, count)
    samples = Samples(table.x, table.values.conj(), 1 / np.abs(table.values))
    model = fit_poles(samples, count)
    if model is None:
        return None
    if wanted is None or error(samples, model) > wanted:
        model = refined(samples, model)
    unit = TAU * table.middle
    poles = tuple(
        PoleResidue(complex(unit * p), complex(unit * c))
        for p, c in zip(model.poles, model.residues, strict=True)
    )
    values = model.at(table.x).conj()
    return _Candidate(error(samples, model), model.constant, poles, values)


def _without_losses(table: _Table, count: int) -> _Candidate:
    model = fit_resonances(table.x, np.real(table.values), count)
    found = tuple(
        Lorentz(float(strength), float(place) * table.middle)
        for place, strength in zip(model.places, model.strengths, strict=True)
    )
    values = model.at(table.x)
    rms = float(np.sqrt(np.mean((values / np.real(table.values) - 1) ** 2)))
    return _Candidate(rms, model.constant, found, values.astype(complex))


def _refusal(best: _Candidate | None, wanted: float, most: int) -> str:
    reached = "no passive fit was found"
    if best is not None:
        reached = f"the best error is {best.rms:.3g}, with {len(best.poles)} poles"
    return (
        f"`tolerance` must be reached with at most {most} poles, but is {wanted:g}, "
        f"and {reached}. Give a larger `tolerance`, or `poles` to accept any error; "
        "fit a narrower band; or check the table: noise, joins of two sources and "
        "losses that do not match the dispersion (Kramers-Kronig) cannot be fitted."
    )


def _result(table: _Table, best: _Candidate) -> MaterialFit:
    relative = np.abs(best.values / table.values - 1)[::-1]
    index, given = np.sqrt(best.values)[::-1], np.sqrt(table.values)[::-1]
    off = index - given
    waves = SPEED_OF_LIGHT / (table.x * table.middle)[::-1]
    ends = float(waves[0]), float(waves[-1])
    return MaterialFit(
        material=Material(best.constant, poles=best.poles, valid=ends),
        wavelengths=jnp.asarray(waves),
        table=jnp.asarray(given),
        fitted=jnp.asarray(index),
        rms_error=jnp.asarray(best.rms),
        max_error=jnp.asarray(relative.max()),
        rms_n=jnp.asarray(np.sqrt(np.mean(np.real(off) ** 2))),
        rms_k=jnp.asarray(np.sqrt(np.mean(np.imag(off) ** 2))),
    )
