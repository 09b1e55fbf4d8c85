"""Cell edges for graded grids: fine where it matters, coarse elsewhere."""

from math import ceil, isfinite

import numpy as np
from jaxtyping import Float

from .._checks import ArgumentError


# How many times finer than asked the fine region may become before we give up.
_FINER = 3


def smooth_edges(
    low: float,
    high: float,
    *,
    coarse: float,
    fine: float,
    region: tuple[float, float],
    ratio: float = 1.1,
) -> Float[np.ndarray, " edges"]:
    r"""Makes cell edges that are fine in one region and grow smoothly around it.

    Inside the region all cells are equal. Away from it the widths grow by a constant
    factor $q \le$ `ratio` until they reach the coarse width, which the remaining cells
    share. The ends of the interval and of the region are edges, without rounding.
    Differences on a graded grid keep their second order as long as neighbouring widths
    differ little; reduce `ratio` to its square root when halving the widths.

    Reference: Monk and Sueli, *A convergence analysis of Yee's scheme on nonuniform
    grids*, SIAM Journal on Numerical Analysis 31, 393 (1994).

    Args:
        low: Where the interval begins, in metres.
        high: Where it ends, in metres.
        coarse: Largest width of a cell, in metres.
        fine: Largest width of a cell in the fine region, in metres.
        region: The ends of the fine region, in metres, within the interval.
        ratio: Largest quotient of neighbouring widths, above 1. 1.05 to 1.2 is usual.

    Returns:
        The edges in float64, for `Grid.graded`.

    Raises:
        ArgumentError: If an argument is out of its range, or no grading fits between
            the region and an end of the interval.
    """
    start, stop = region
    _check_interval(low, high, coarse, fine, region, ratio)
    count = max(1, ceil((stop - start) / fine * (1 - 1e-12)))
    for cells in range(count, _FINER * count + _FINER):
        width = (stop - start) / cells
        left = _growing_widths(start - low, width, coarse, ratio)
        right = _growing_widths(high - stop, width, coarse, ratio)
        if left is not None and right is not None:
            break
    else:
        raise ArgumentError(
            f"`region` must leave room for cells that differ by at most {ratio:g} "
            "between it and the ends of the interval, but leaves "
            f"{start - low:g} m and {high - stop:g} m beside cells of {fine:g} m. "
            "Let it touch the end, or reduce `fine`."
        )
    # Distances from the region are summed away from it and then end on the interval's
    # ends exactly; summed across the whole interval their rounding would pile up.
    edges_left = start - np.cumsum(left)[::-1]
    edges_right = stop + np.cumsum(right)
    edges_left[:1] = low
    edges_right[-1:] = high
    middle = np.linspace(start, stop, cells + 1)
    return np.concatenate([edges_left, middle, edges_right])


def _check_interval(low, high, coarse, fine, region, ratio):
    start, stop = region
    if not all(map(isfinite, (low, high, coarse, fine, start, stop, ratio))):
        raise ArgumentError("Arguments of `smooth_edges` must be finite.")
    if not low <= start < stop <= high:
        raise ArgumentError(
            f"`region` must increase and lie within [{low:g}, {high:g}], but is "
            f"({start:g}, {stop:g})."
        )
    if not 0 < fine <= coarse:
        raise ArgumentError(
            f"`fine` must be positive and at most `coarse`, {coarse:g} m, but is "
            f"{fine:g} m."
        )
    if not ratio > 1:
        raise ArgumentError(f"`ratio` must be above 1, but is {ratio:g}.")


def _growing_widths(
    length: float, first: float, coarse: float, ratio: float
) -> Float[np.ndarray, " cells"] | None:
    """Fills a length with widths that grow from `first` towards `coarse`.

    Returns None where no widths within the ratio fill it.
    """
    if length == 0:
        return np.zeros(0)
    cells, total, width = 0, 0.0, first
    while total < length * (1 - 1e-12):
        width = min(coarse, width * ratio)
        cells, total = cells + 1, total + width
    powers = np.arange(1, cells + 1)

    def widths(quotient):
        return np.minimum(coarse, first * quotient**powers)

    low, high = 1.0, ratio
    # Halving a factor 64 times leaves nothing above the rounding of float64.
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if widths(middle).sum() < length else (low, middle)
    filled = widths(low)
    # Cells too wide even without growth are shrunk alike, within the ratio.
    filled *= length / filled.sum()
    return filled if filled[0] * ratio >= first * (1 - 1e-12) else None
