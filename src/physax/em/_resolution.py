"""Whether cells resolve the waves in them, and a frequency fits its grid."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import jax
import jax.core
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, positive, traced, warn
from ..grid import Grid
from ..units import SPEED_OF_LIGHT
from ._boxes import cells_of
from ._medium import Medium, Property, at_component
from ._poles import susceptibility


def _entries(value: Property) -> list[Array]:
    return list(value.values()) if isinstance(value, dict) else [value]


def _largest(entries: list[Array]) -> np.ndarray:
    """Returns the largest entry of any component, cell by cell where they differ."""
    return np.asarray(reduce(np.maximum, map(np.asarray, entries)))


def _worst(grid: Grid, index: np.ndarray) -> tuple[float, float]:
    """Returns index and width in metres of the cell that is optically longest."""
    found = []
    # Along an axis of one cell nothing varies.
    varied = [a for a in range(grid.ndim) if grid.shape[a] > 1] or [0]
    for axis in varied:
        width = np.asarray(grid.widths[axis])
        # On a graded grid the dense parts may have the small cells.
        others = tuple(a for a in range(grid.ndim) if a != axis)
        row = np.max(index, axis=others) if width.ndim and index.ndim else np.max(index)
        row, width = np.broadcast_arrays(row, width)
        where = np.unravel_index(np.argmax(row * width), row.shape)
        found.append((float(row[where]), float(width[where])))
    return max(found, key=lambda pair: pair[0] * pair[1])


_TINY = 1e-30

# Below the first number of cells per wavelength the answer means nothing, below the
# second it is rough: the phase velocity of a plane wave is wrong by 1 - 4 %.
_REFUSE, _WARN = 4, 10
# Wavelengths along the longest axis: with fewer, the number was no frequency in Hz.
_LEAST_WAVES = 1e-9


def _polarised(
    medium: Medium,
    electric: Sequence[str],
    grid: Grid,
    frequency: float,
    *,
    rough: bool,
) -> np.ndarray:
    """Returns the permittivity with what poles add at a frequency, where waves go.

    Of the components the largest. In a metal no waves go: of it only the skin is asked
    for.
    """
    if not medium.dispersions:
        return _largest(_entries(medium.permittivity))
    largest, loss = np.zeros(grid.shape, np.float32), _TINY
    for name in _told_apart(medium, electric):
        base = np.asarray(at_component(medium.permittivity, name))
        whole = np.broadcast_to(base, grid.shape).astype(np.complex64)
        for one in medium.dispersions:
            if one.covers(name):
                with jax.ensure_compile_time_eval():
                    more = one.at(name) * susceptibility(one.poles, frequency)
                whole[cells_of(one.box)] += np.asarray(more)
        loss = max(float(np.max(np.imag(np.sqrt(whole)))), loss)
        largest = np.maximum(largest, np.where(np.real(whole) > 0, np.abs(whole), 0))
    skin = SPEED_OF_LIGHT / (2 * np.pi * frequency) / loss
    cell = max(float(np.min(np.asarray(width))) for width in grid.widths)
    if skin < cell and not rough:
        warn(
            f"`grid` should have cells below the skin depth of the metals, {skin:.3g} "
            f"m at {frequency / 1e12:.4g} THz, but has cells of {cell:.3g} m.",
        )
    return largest


def _told_apart(medium: Medium, electric: Sequence[str]) -> Sequence[str]:
    """Returns components that differ in their permittivity, or one of those alike."""
    given = (medium.permittivity, *(one.fraction for one in medium.dispersions))
    return electric if any(isinstance(one, dict) for one in given) else electric[:1]


def judge_cells(
    what: str,
    index: float,
    cell: float,
    frequency: float,
    told: str,
    *,
    rough: bool = False,
) -> None:
    """Refuses or warns of too few cells per wavelength.

    Args:
        what: The argument that has the cells.
        index: Index of the medium there.
        cell: Width of the cells in metres.
        frequency: In Hz.
        told: Whose frequency it is, for the message.
        rough: Whether a rough answer is no reason to warn.

    Raises:
        ArgumentError: Below 4 cells.
    """
    # What is meant to be the limit is not below it by rounding.
    cells = (1 + 1e-5) * SPEED_OF_LIGHT / frequency / max(index, _TINY) / cell
    told = f"cells per wavelength where the medium has index {index:.3g}, at {told}"
    if cells < _REFUSE:
        raise ArgumentError(
            f"`{what}` must have at least {_REFUSE} {told}, but has {cells:.2g}. Are "
            "lengths in metres and frequencies in Hz?"
        )
    if cells < _WARN and not rough:
        warn(
            f"`{what}` should have at least {_WARN} {told}, but has {cells:.3g}.",
        )


def check_cells(
    grid: Grid,
    medium: Medium,
    frequencies: Mapping[str, Float[Array, "..."]],
    electric: Sequence[str] = ("Ex", "Ey", "Ez"),
    *,
    rough: bool = False,
) -> None:
    """Refuses or warns of too few cells per wavelength in the densest medium.

    Args:
        grid: The grid.
        medium: The medium, without design regions. Nothing is checked where it, or the
            grid, is traced.
        frequencies: In Hz, by whose they are; the highest of each counts.
        electric: The components of E.
        rough: Whether to refuse alone, and warn of nothing.

    Raises:
        ArgumentError: Below 4 cells per wavelength.
    """
    magnetic = _entries(medium.permeability)
    poles = jax.tree.leaves(medium.dispersions)
    parts = (*_entries(medium.permittivity), *magnetic, *grid.widths, *poles)
    if traced(parts):
        return
    for told, frequency in frequencies.items():
        if isinstance(frequency, jax.core.Tracer):
            continue
        highest = float(np.max(np.asarray(frequency)))
        _judge_span(grid, np.asarray(frequency), told)
        square = _polarised(medium, electric, grid, highest, rough=rough)
        square = square * _largest(magnetic)
        index, cell = _worst(grid, np.asarray(np.sqrt(np.maximum(square, _TINY))))
        judge_cells("grid", index, cell, highest, told, rough=rough)


def _judge_span(grid: Grid, frequency: np.ndarray, told: str) -> None:
    """Refuses frequencies too low for a wave on the grid, such as wavelengths."""
    some = frequency[frequency > 0]
    longest = _longest(grid)
    if some.size and longest < _LEAST_WAVES * SPEED_OF_LIGHT / np.min(some):
        least = _LEAST_WAVES * SPEED_OF_LIGHT / longest
        raise ArgumentError(
            f"{told[0].upper()}{told[1:]} must be at least {least:.3g} Hz, at which "
            f"the grid spans {_LEAST_WAVES:g} wavelengths, but is {np.min(some):.6g} "
            "Hz. Is it in Hz, or is it in THz or a wavelength?"
        )


def _longest(grid: Grid) -> float:
    """Returns the length of the longest axis in metres, found on the host."""
    widths = map(np.asarray, grid.widths)
    return float(max(map(np.sum, map(np.broadcast_to, widths, grid.shape))))


# Measured: in a section of a thousandth of a wavelength an index is good to 2e-3, in
# one of a tenth of that it is nothing but rounding.
LEAST_SPAN = 1e-3
"""Wavelengths in vacuum that a section spans at least."""


def one_frequency(value: Any) -> Float[Array, ""]:
    """Returns a frequency as an array, refusing several and one not positive."""
    frequency = positive(value, "frequency")
    if frequency.ndim:
        raise ArgumentError(
            f"`frequency` must be one number, but has shape {frequency.shape}. Solve "
            "for one frequency at a time."
        )
    return frequency


def check_span(what: str, length: float, frequency: float) -> None:
    """Refuses a section that is a tiny part of a wavelength, as none of light is.

    Args:
        what: The argument that has the length.
        length: Of the section in metres.
        frequency: In Hz.

    Raises:
        ArgumentError: Below a thousandth of the wavelength in vacuum.
    """
    wavelength = SPEED_OF_LIGHT / frequency
    if length < LEAST_SPAN * wavelength:
        least = LEAST_SPAN * SPEED_OF_LIGHT / length
        raise ArgumentError(
            f"`frequency` must be at least {least:.3g} Hz, at which `{what}` spans "
            f"{LEAST_SPAN:g} wavelengths of light, but is {frequency:.6g}. Is it in "
            "Hz, or is it a wavelength?"
        )


def check_section(
    grid: Grid, medium: Medium, frequency: Float[Array, ""], *, rough: bool = False
) -> Float[Array, ""]:
    """Refuses a frequency that does not fit a section, and warns of a poor fit.

    Args:
        grid: The section, or a whole grid.
        medium: What fills it.
        frequency: In Hz. Nothing is checked where it, or the grid, is traced by other
            than a derivative.
        rough: Whether to refuse alone, and warn of nothing.

    Returns:
        The frequency.

    Raises:
        ArgumentError: As `check_span` and `check_cells`.
    """

    @jax.custom_jvp
    def checked(frequency):
        if not traced((frequency, *grid.widths)):
            check_span("grid", _longest(grid), float(frequency))
            whole = medium.merged(grid.shape)
            told = {"`frequency`": frequency}
            check_cells(grid, whole, told, rough=rough)
        return frequency

    # A derivative hides the value of what it differentiates from all but its rules.
    @checked.defjvp
    def _(primals, tangents):
        return checked(*primals), tangents[0]

    if isinstance(frequency, jax.core.Tracer):
        return checked(frequency)
    return checked.fun(frequency)
