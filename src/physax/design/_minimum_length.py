"""Measures the narrowest part and the narrowest gap of a binary device."""

import functools
import math
from collections.abc import Callable

import equinox as eqx
import numpy as np
import scipy.ndimage
from jaxtyping import ArrayLike

from .._checks import ArgumentError, refuse_traced, true_or_false
from ._argument_checks import check_reach
from ._filters import known_length


# A discrete disc of n + 1 cells does not always contain one of n cells: a size counts
# as possible for a cell if one of this many from it on is.
_SIZES = 10
# Openings and closings in turn change nothing after two or three in practice.
_TURNS = 20


class LengthReport(eqx.Module):
    """The narrowest part and the narrowest gap of a device.

    Attributes:
        solid: Least width of solid parts, in metres.
        void: Least width of gaps, in metres.
        solid_cells: The same in cells.
        void_cells: The same in cells.
    """

    solid: float
    void: float
    solid_cells: int
    void_cells: int

    @property
    def smallest(self) -> float:
        """The smaller of the two, in metres."""
        return min(self.solid, self.void)


def minimum_length(
    binary: ArrayLike,
    spacing: float | int,
    *,
    periodic: tuple[bool, bool] = (False, False),
) -> LengthReport:
    """Measures a binary device with discs, cell by cell, on the host.

    The width of a part is the diameter of the largest disc of cells that, moved about
    inside it, covers it. Cells on the rim of large parts do not count, because no disc
    of cells reaches into every corner of a contour drawn on cells. Beyond the edges
    the device is taken to continue in the most favourable way. Without parts, or
    without gaps, the length is that of its longer side. This is the definition of the
    program imageruler 0.3 (NanoComp), whose figures for 199 devices it gives.

    Args:
        binary: Where the device is solid.
        spacing: Width of a cell in metres, the same along both axes.
        periodic: Whether it repeats itself, along each axis.

    Returns:
        The lengths.

    Raises:
        ArgumentError: If the device is not a flat array of booleans, at least two cells
            each way, `spacing` is not positive, or `periodic` is not two booleans.
    """
    device = _as_device(binary, periodic)
    width = known_length(spacing, "spacing")
    solid, void = (_length_of(part, periodic) for part in (device, ~device))
    return LengthReport(solid * width, void * width, solid, void)


def narrow_cells(
    binary: ArrayLike,
    length: float | int,
    spacing: float | int,
    *,
    periodic: tuple[bool, bool] = (False, False),
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the cells of parts and of gaps that are narrower than a length.

    Args:
        binary: Where the device is solid.
        length: The length in metres; rounded up to whole cells.
        spacing: Width of a cell in metres.
        periodic: Whether the device repeats itself, along each axis.

    Returns:
        Where solid parts are too narrow, and where gaps are.

    Raises:
        ArgumentError: As `minimum_length`.
    """
    device = _as_device(binary, periodic)
    cells = _cells(length, spacing, device.shape)
    solid, void = (
        _uncovered(_misfits(part, periodic), cells) for part in (device, ~device)
    )
    return solid, void


def remove_narrow(
    binary: ArrayLike,
    length: float | int,
    spacing: float | int,
    *,
    periodic: tuple[bool, bool] = (False, False),
) -> np.ndarray:
    """Removes parts, and fills gaps, that are narrower than a length.

    Morphological opening and closing with a disc of cells, in turn until nothing
    changes: cells at the rims change, and what is narrower as a whole is gone. It fixes
    the few cells that `length_constraints` leave too narrow. A bridge that closing
    builds again, because its gap would be too narrow, stays as it is: measure and
    simulate what is returned. Reference: Serra, *Image analysis and mathematical
    morphology*, Academic Press (1982).

    Args:
        binary: Where the device is solid.
        length: The length in metres; rounded up to whole cells.
        spacing: Width of a cell in metres.
        periodic: Whether the device repeats itself, along each axis.

    Returns:
        Where the changed device is solid.

    Raises:
        ArgumentError: As `minimum_length`.
    """
    device = _as_device(binary, periodic)
    disc = _disc(_cells(length, spacing, device.shape))
    for _ in range(_TURNS):
        opened = device & _opened(device, disc, periodic)
        closed = opened | ~_opened(~opened, disc, periodic)
        if np.array_equal(closed, device):
            break
        device = closed
    return device


def _cells(length, spacing, shape: tuple[int, ...]) -> int:
    """Returns a length in whole cells that are no shorter."""
    width, length = known_length(spacing, "spacing"), known_length(length, "length")
    check_reach(length, "length", shape, (width,) * len(shape))
    return math.ceil(length / width - 1e-6)


def _as_device(binary, periodic) -> np.ndarray:
    refuse_traced(binary, "binary", "Call it outside: it works on the host.")
    device = np.asarray(binary)
    if np.shape(periodic) != (2,):
        raise ArgumentError(
            "`periodic` must be a pair of booleans, one for each axis, but is "
            f"{periodic!r}."
        )
    for each in periodic:
        true_or_false(each, "periodic")
    if device.dtype != bool or device.ndim != 2 or min(device.shape) < 2:
        raise ArgumentError(
            "`binary` must be a two-dimensional array of booleans, at least 2 cells "
            f"each way, but is {device.dtype}{list(device.shape)}. Compare a density "
            "with 0.5 first."
        )
    return device


Misfits = Callable[[int], np.ndarray]


def _misfits(part: np.ndarray, periodic: tuple[bool, bool]) -> Misfits:
    """Returns what finds the cells of a part that no disc of a given size reaches."""
    counted = part & ~_rim(part, periodic)

    @functools.cache
    def misfits(cells: int) -> np.ndarray:
        return counted & ~_opened(part, _disc(cells), periodic)

    return misfits


def _uncovered(misfits: Misfits, cells: int) -> np.ndarray:
    """Cells that are reached by no disc of this size or one slightly larger."""
    missed = misfits(cells)
    for size in range(cells + 1, cells + _SIZES):
        if not missed.any():
            break
        missed = missed & misfits(size)
    return missed


def _length_of(part: np.ndarray, periodic: tuple[bool, bool]) -> int:
    """The largest size of disc with which a part can be painted.

    What can be painted with a size can nearly always be with smaller ones. So sizes are
    doubled until one fails, and halved from there; one that fails is passed over if one
    of the next few does not.
    """
    misfits = _misfits(part, periodic)
    best, low, high = 0, 1, max(part.shape)
    while low <= high:
        trial = min(2 * low, high)
        nearby = range(trial, min(trial + _SIZES, high + 1))
        good = next((n for n in nearby if not _uncovered(misfits, n).any()), None)
        if good is None:
            high = trial - 1
        else:
            best, low = good, good + 1
    return best


def _disc(cells: int) -> np.ndarray:
    """Cells whose centre lies within a circle of that many cells across."""
    from_centre = np.arange(cells) - (cells - 1) / 2
    inside = from_centre[:, None] ** 2 + from_centre**2 < (cells / 2) ** 2
    if cells <= 2:
        return inside
    # Without single cells that stick out at its four ends.
    return scipy.ndimage.binary_opening(inside)


def _continued(part: np.ndarray, width: int, periodic, solid: bool = False):
    """Adds cells around: those of the other side, of the edge, or solid ones."""
    for axis, wraps in enumerate(periodic):
        pads = [(0, 0), (0, 0)]
        pads[axis] = (width, width)
        if solid and not wraps:
            part = np.pad(part, pads, constant_values=True)
        else:
            part = np.pad(part, pads, mode="wrap" if wraps else "edge")
    return part


def _opened(part: np.ndarray, disc: np.ndarray, periodic) -> np.ndarray:
    """All places that the disc covers where it fits."""
    reach = disc.shape[0]
    whole = _continued(part, reach, periodic, solid=True)
    fits = _correlate(whole, disc[::-1, ::-1]) > disc.sum() - 0.5
    # Where the disc would wrap around the array.
    fits[: reach - 1] = False
    fits[:, : reach - 1] = False
    covered = _correlate(fits, disc, back=True) > 0.5
    nx, ny = part.shape
    return covered[reach : reach + nx, reach : reach + ny]


def _correlate(values: np.ndarray, kernel: np.ndarray, back: bool = False):
    """Circular convolution, or its transpose, by Fourier transforms."""
    shape = values.shape
    spectrum = np.fft.rfft2(values.astype(float))
    factor = np.fft.rfft2(kernel.astype(float), shape)
    product = spectrum * (factor.conj() if back else factor)
    return np.fft.irfft2(product, shape)


def _rim(part: np.ndarray, periodic) -> np.ndarray:
    """Cells at the edge of a part that is at least three cells wide there."""
    inner = scipy.ndimage.minimum_filter(
        _continued(part, 1, periodic).astype(np.uint8), 3
    )[1:-1, 1:-1].astype(bool)
    nearby = np.ones((5, 5), bool)
    nearby[::4, ::4] = False
    wider = _continued(inner, 2, periodic)
    large = np.asarray(scipy.ndimage.binary_dilation(wider, nearby), bool)[2:-2, 2:-2]
    return part & ~inner & large & _at_edge(part, periodic)


def _at_edge(part: np.ndarray, periodic) -> np.ndarray:
    """Cells with void along a whole side, or around a whole corner."""
    void = ~_continued(part, 1, periodic)
    nx, ny = part.shape

    def beside(i: int, j: int) -> np.ndarray:
        return void[1 + i : 1 + i + nx, 1 + j : 1 + j + ny]

    found = np.zeros_like(part)
    for s in (-1, 1):
        found |= beside(s, -1) & beside(s, 0) & beside(s, 1)
        found |= beside(-1, s) & beside(0, s) & beside(1, s)
        for t in (-1, 1):
            found |= beside(s, 0) & beside(s, t) & beside(0, t)
    return found & part
