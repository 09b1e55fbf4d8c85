"""What is asked of a file of two-time correlations, checked before it is opened."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any, NamedTuple

import jax
import numpy as np

from .._checks import ArgumentError, positive, refuse_masked, whole
from ..xpcs._selection import check_ranges


class Asked(NamedTuple):
    """Arguments of `read_two_time` that choose, as it describes them."""

    q: float | None
    phi_ranges: list[tuple[float, float]] | None
    frames: tuple[int, int] | None
    mask: np.ndarray | None
    without: list[int]
    dt: float | None
    q_tolerance: float
    keep_times: bool


def asked_for(
    q: Any,
    phi_ranges: Any,
    frames: Any,
    mask: Any,
    without: Any,
    dt: Any,
    q_tolerance: Any,
    keep_times: Any,
) -> Asked:
    """Checks the arguments of `read_two_time`.

    Returns:
        The same, as numbers and arrays of the host.

    Raises:
        ArgumentError: If one is of another kind, or cannot be.
    """
    return Asked(
        _positive(q, "q"),
        None if phi_ranges is None else check_ranges(phi_ranges),
        None if frames is None else _first_and_last(frames),
        None if mask is None else _pairs(mask),
        _numbers(without),
        _positive(dt, "dt"),
        _positive(q_tolerance, "q_tolerance"),
        _flag(keep_times),
    )


def _positive(x: Any, name: str) -> Any:
    if x is None:
        return None
    shape = positive(x, name).shape
    if shape:
        raise ArgumentError(
            f"`{name}` must be one number, but has shape {shape}. Read the file once "
            "for each."
        )
    # Not that of JAX, which may have fewer digits.
    value = float(x)
    if not np.isfinite(value):
        raise ArgumentError(f"`{name}` must be positive and finite, but is {value:g}.")
    return value


def _first_and_last(frames: Any) -> tuple[int, int]:
    given = frames if isinstance(frames, tuple | list | np.ndarray) else ()
    whole = (isinstance(one, Integral) and not isinstance(one, bool) for one in given)
    if len(given) != 2 or not all(whole):
        raise ArgumentError(
            "`frames` must be the numbers of the first and the last frame, as "
            f"`(1, 200)`, but is {frames!r}."
        )
    return int(given[0]), int(given[1])


def _flag(keep_times: Any) -> bool:
    if not isinstance(keep_times, bool | np.bool_):
        raise ArgumentError(
            f"`keep_times` must be `True` or `False`, but is {keep_times!r}."
        )
    return bool(keep_times)


def _pairs(mask: Any) -> np.ndarray:
    refuse_masked(mask, "mask", "Fill it: `mask.filled(False)`.")
    try:
        values = np.asarray(mask)
    except ValueError:  # Rows of several lengths.
        values = np.asarray(None)
    if values.dtype.kind not in "biuf" or not np.all((values == 0) | (values == 1)):
        raise ArgumentError(
            "`mask` must hold booleans, or 0 and 1, for each pair of frames, but "
            f"has other entries, dtype {values.dtype}. Say which count: `mask == 1`."
        )
    return values.astype(bool)


def _numbers(without: Any) -> list[int]:
    """Returns numbers of frames as a list."""
    text = isinstance(without, str | bytes)
    array = isinstance(without, jax.Array | np.ndarray)
    if text or not isinstance(without, Iterable) or (array and without.ndim != 1):
        raise ArgumentError(
            f"`without` must be numbers of frames, as `[17]`, but is {without!r}."
        )
    given = np.asarray(without) if array else without
    if isinstance(given, np.ndarray) and given.dtype.kind not in "iu" and given.size:
        remedy = "np.flatnonzero(without) + 1" if given.dtype == bool else "astype(int)"
        raise ArgumentError(
            "`without` must be numbers of frames, from 1 on, but is an array of "
            f"{given.dtype}. Take `{remedy}`."
        )
    return [whole(one, "without") for one in given]
