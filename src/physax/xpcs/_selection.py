"""Parts of measured maps: angles, frames, and a diagonal to look at."""

from collections.abc import Iterable, Sequence
from math import pi
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._checks import ArgumentError, as_array, real, whole
from ._two_time import TwoTime, check_data


# Rounding of an angle in float32, a few times over.
_ROUNDING = 2e-6


def select(
    data: TwoTime, phi_ranges: Sequence[tuple[float | int, float | int]]
) -> TwoTime:
    """Returns the maps whose direction lies in one of some ranges.

    Runs on the host: the angles must be known.

    Args:
        data: The maps.
        phi_ranges: Pairs of angles in radians, the first and the last of a range, both
            included. Ranges may cross pi: (3.0, -3.0) is the short way round.

    Returns:
        The maps, in their order.

    Raises:
        ArgumentError: If no map lies in a range, or a range is not in radians.
    """
    check_data(data)
    phi = np.asarray(data.phi, float)
    keep = in_ranges(phi, phi_ranges)
    if not keep.any():
        there = ", ".join(f"{angle:.4g}" for angle in sorted(set(phi.tolist())))
        raise ArgumentError(
            f"`phi_ranges` must contain the angle of a map, but {list(phi_ranges)} "
            f"contain none of the angles of maps: {there} (radians)."
        )
    at = np.flatnonzero(keep)
    return TwoTime(
        data.c2[at],
        data.q[at],
        data.phi[at],
        data.times,
        _part_of_sigma(data, at),
        data.mask,
        data.sigma_is_known,
    )


def _part_of_sigma(data: TwoTime, maps, part: slice = slice(None)) -> Array:
    """Returns the standard deviations of some maps and frames."""
    sigma = data.sigma
    if sigma.ndim == 3:
        return sigma[maps, part, part]
    return sigma[maps] if sigma.ndim else sigma


def in_ranges(
    phi: Float[np.ndarray, " maps"],
    phi_ranges: Sequence[tuple[float | int, float | int]],
) -> Bool[np.ndarray, " maps"]:
    """Returns which angles lie in one of some ranges, as `select` takes them.

    Args:
        phi: Angles in radians.
        phi_ranges: Pairs of angles in radians.

    Raises:
        ArgumentError: If they are not pairs, or an end is not finite or beyond 2 pi.
    """
    phi = np.asarray(real(phi, "phi"), float)
    inside = np.zeros(phi.shape, bool)
    for low, high in check_ranges(phi_ranges):
        full = high - low >= 2 * pi - _ROUNDING
        width = 2 * pi if full else (high - low) % (2 * pi)
        beyond = (phi - low + _ROUNDING) % (2 * pi)
        inside |= beyond <= width + 2 * _ROUNDING
    return inside


def check_ranges(phi_ranges: Any) -> list[tuple[float, float]]:
    """Returns ranges of angles as pairs of numbers.

    Raises:
        ArgumentError: If they are not pairs, or not in radians.
    """
    text = "`phi_ranges` must be pairs of angles in radians, as `[(-0.1, 0.1)]`, but "
    if isinstance(phi_ranges, str) or not isinstance(phi_ranges, Iterable):
        raise ArgumentError(f"{text}is {phi_ranges!r}.")
    given = phi_ranges if isinstance(phi_ranges, tuple) else list(phi_ranges)
    try:
        ranges = np.asarray(given) if given else np.zeros((0, 2))
    except ValueError as error:
        raise ArgumentError(f"{text}is {given!r}.") from error
    if ranges.dtype.kind not in "iuf" or ranges.ndim != 2 or ranges.shape[1] != 2:
        raise ArgumentError(f"{text}is {given!r}.")
    pairs = [(float(low), float(high)) for low, high in ranges]
    for low, high in pairs:
        if not max(abs(low), abs(high)) <= 2 * pi + 1e-3:
            raise ArgumentError(
                "`phi_ranges` must hold angles in radians, from -2 pi to 2 pi (use "
                f"`math.radians`), but has ({low:g}, {high:g})."
            )
    return pairs


def frame_range(data: TwoTime, start: int, end: int) -> TwoTime:
    """Returns the maps of some frames in a row.

    The times start again at 0: what is fitted to the result is a transport that begins
    with its first frame.

    Args:
        data: The maps.
        start: Number of the first frame, counted from 1.
        end: Number of the last frame, included.

    Returns:
        Maps of `end - start + 1` frames.

    Raises:
        ArgumentError: If the range is not within the frames, or shorter than two.
    """
    check_data(data)
    start, end = whole(start, "start", 0), whole(end, "end", 0)
    if not 1 <= start < end <= data.frames:
        raise ArgumentError(
            f"`start` and `end` must satisfy 1 <= start < end <= {data.frames}, the "
            f"number of frames, but are {start} and {end}. They count from 1, and both "
            "ends are included."
        )
    part = slice(start - 1, end)
    times = data.times[part]
    return TwoTime(
        data.c2[:, part, part],
        data.q,
        data.phi,
        times - times[0],
        _part_of_sigma(data, slice(None), part),
        None if data.mask is None else data.mask[part, part],
        data.sigma_is_known,
    )


def neighbour_diagonal(
    c2: Float[Array, "*maps frames frames"],
) -> Float[Array, "*maps frames frames"]:
    """Returns maps with the mean of its neighbours in place of the diagonal.

    **For pictures only**: it hides the peak of the shot noise, which would set the
    range of colours. At both ends there is one neighbour.

    Args:
        c2: The maps, as those of `TwoTime`.

    Returns:
        The maps, dimensionless.

    Raises:
        ArgumentError: If they are not square.
    """
    c2 = as_array(c2, "c2")
    if c2.ndim < 2 or c2.shape[-1] != c2.shape[-2]:
        raise ArgumentError(
            f"`c2` must have shape (..., frames, frames), but has shape {c2.shape}."
        )
    return c2 if c2.shape[-1] < 2 else _smoothed(c2)


@jax.jit
def _smoothed(c2):
    frames = c2.shape[-1]
    beside = jnp.diagonal(c2, offset=1, axis1=-2, axis2=-1)
    ends = [beside[..., :1], (beside[..., 1:] + beside[..., :-1]) / 2, beside[..., -1:]]
    at = jnp.arange(frames)
    return c2.at[..., at, at].set(jnp.concatenate(ends, axis=-1))
