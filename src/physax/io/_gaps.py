"""Samples that are missing at some of the instants, and how they are bridged."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Num

from .._checks import positive, warn
from ._errors import PhysaxFileError
from ._netcdf_variable import StoredVariable


# Samples that are bridged together: enough for speed, few enough for memory.
_BLOCK = 2**22


def as_gaps(gaps: Any) -> float:
    """Returns the longest gap that is bridged, in seconds, 0 for none.

    Raises:
        ArgumentError: If it is not positive.
    """
    return 0.0 if gaps is None else float(positive(gaps, "gaps"))


def bridged(
    values: Num[np.ndarray, "times *nodes"],
    times: Float[np.ndarray, " times"] | None,
    longest: float,
) -> Num[np.ndarray, "..."]:
    """Interpolates linearly in time over gaps of each node.

    Args:
        values: The samples, NaN where there are none.
        times: The instants, `None` for a steady variable, which has no gaps.
        longest: The longest time between the two instants around a gap, in seconds.
            If it is infinite, the first and the last sample of a node are held before
            and after.

    Returns:
        The samples. Those of a node without any are as they were.
    """
    if times is None or not longest:
        return values
    rows = values.reshape(times.size, -1)
    filled = rows
    columns = np.flatnonzero(_has_gap(rows))
    size = max(_BLOCK // times.size, 1)
    if columns.size:
        filled = rows.copy()
    for start in range(0, columns.size, size):
        block = columns[start : start + size]
        filled[:, block] = _over(rows[:, block], times, longest)
    return filled.reshape(values.shape)


def _has_gap(values: np.ndarray) -> np.ndarray:
    """Whether each node has data at some of the instants and none at others."""
    known = np.isfinite(values)
    return np.any(known, 0) & ~np.all(known, 0)


def _over(values: np.ndarray, times: np.ndarray, longest: float) -> np.ndarray:
    known = np.isfinite(values)
    count = times.size
    numbers = np.arange(count)[:, None]
    before = np.maximum.accumulate(np.where(known, numbers, -1), axis=0)
    after = np.where(known, numbers, count)[::-1]
    after = np.minimum.accumulate(after, axis=0)[::-1]
    inner = (before >= 0) & (after < count)
    first = np.where(before >= 0, before, after)
    last = np.where(after < count, after, before)
    span = times[last] - times[first]
    part = (times[:, None] - times[first]) / np.where(span > 0, span, 1)
    part = np.where(inner, part, 0).astype(values.dtype)
    low, high = (np.take_along_axis(values, at, 0) for at in (first, last))
    bridge = ~known & (inner & (span <= longest) | np.isinf(longest))
    return np.where(bridge, low + part * (high - low), values)


def warn_of_gaps(
    variables: Sequence[StoredVariable],
    samples: Sequence[np.ndarray],
    times: np.ndarray | None,
    longest: float,
) -> None:
    """Warns of variables that have gaps, once.

    Args:
        variables: The variables.
        samples: Their samples, after gaps were bridged.
        times: The instants, `None` of steady variables.
        longest: Which gaps were bridged.
    """
    if times is None:
        return
    for variable, values in zip(variables, samples, strict=True):
        gaps = _has_gap(values)
        if not gaps.any():
            continue
        known = np.isfinite(values)
        share = 1 - known[:, gaps].mean()
        remedy = (
            f"Gaps of more than {longest:g} s stay; give `gaps` a longer time, or "
            "`math.inf`."
            if longest
            else "`gaps=seconds` bridges those that are not longer by linear "
            "interpolation in time, `gaps=math.inf` all."
        )
        warn(
            f"{variable.path}: {variable.name!r} has no data at some of the "
            f"{times.size} instants at {gaps.sum()} of {known.any(0).sum()} nodes, "
            f"there on average at {100 * share:.2g} % of them. Its value is NaN in "
            "these gaps, and particles that meet one end with the status NOT_FINITE. "
            + remedy
        )
        return


LOST = "chunks may be lost, or `_FillValue` or `valid_range` be wrong"
"""Why a variable may have no data at all."""


def largest_of(
    variables: Sequence[StoredVariable], samples: Sequence[np.ndarray]
) -> Float[np.ndarray, " variables"]:
    """Returns the largest magnitude of each variable.

    Args:
        variables: The variables.
        samples: Their samples.

    Raises:
        PhysaxFileError: If one has no number, and would count as land everywhere.
    """
    found = []
    for variable, values in zip(variables, samples, strict=True):
        good = np.isfinite(values)
        if not good.any():
            raise PhysaxFileError(
                variable.path,
                f"{variable.name!r} must have data at some node, but all that was read "
                f"of it are missing: {LOST}.",
            )
        high = values.max(where=good, initial=-np.inf)
        found.append(max(high, -values.min(where=good, initial=np.inf)))
    return np.array(found)


def warn_of_land(
    variables: Sequence[StoredVariable],
    samples: Sequence[np.ndarray],
    leading: int,
) -> None:
    """Warns of components on the same nodes that disagree on where land is.

    Args:
        variables: The components.
        samples: Their samples.
        leading: 1 with an axis of times, else 0.
    """
    times = tuple(range(leading))
    lost = [~np.any(np.isfinite(values), times) for values in samples]
    land = np.logical_or.reduce(lost)
    partly = land & ~np.logical_and.reduce(lost)
    if not partly.any():
        return
    node = np.argwhere(partly)[0]
    lacking = [v.name for v, one in zip(variables, lost, strict=True) if one[*node]]
    having = [v.name for v, one in zip(variables, lost, strict=True) if not one[*node]]
    warn(
        f"{variables[0].path}: {partly.sum()} nodes have data of some components only, "
        f"such as of {', '.join(map(repr, having))} and not of "
        f"{', '.join(map(repr, lacking))}. They count as land, of velocity 0."
    )
