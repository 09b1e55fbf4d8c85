"""What a file of two-time correlations holds, and which part of it is asked for."""

import os
from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Float

from ..xpcs import in_ranges
from ._errors import PhysaxFileError
from ._two_time_index import Index
from ._two_time_layouts import AbstractTwoTimeLayout


_MOST_LISTED = 30


class TwoTimeContents(eqx.Module):
    """What a file holds; `str` makes a table of it.

    Attributes:
        path: The file.
        layout: How it is stored.
        q: Wavevector of each map in 1/angstrom.
        phi: Angle of each map in radians.
        frames: How many there are.
        dt: Mean time from frame to frame in seconds; `None` where the file does not
            tell.
        dtype: Name of the type of the values.
        datasets: Where each map lies.
    """

    path: str
    layout: AbstractTwoTimeLayout
    q: Float[np.ndarray, " maps"]
    phi: Float[np.ndarray, " maps"]
    frames: int
    dt: float | None
    dtype: str
    datasets: tuple[str, ...]

    @property
    def maps(self) -> int:
        """How many maps there are."""
        return len(self.datasets)

    def __str__(self) -> str:
        time = "not given" if self.dt is None else f"{self.dt:.6g} s"
        lines = [
            f"{self.path}: {self.layout.name}, {self.maps} maps of {self.frames} x "
            f"{self.frames} frames ({self.dtype}), time per frame {time}"
        ]
        for q in np.unique(self.q):
            angles = describe(np.degrees(self.phi[self.q == q]))
            lines.append(f"  q = {q:.6g} 1/angstrom, angles {angles} degrees")
        return "\n".join(lines)


def contents_of(
    path: str | os.PathLike, layout: AbstractTwoTimeLayout, index: Index
) -> TwoTimeContents:
    """Makes the public form of an index."""
    times = index.times
    dt = None
    if times is not None and times.size > 1:
        dt = float((times[-1] - times[0]) / (times.size - 1))
    return TwoTimeContents(
        path=os.fspath(path),
        layout=layout,
        q=index.q,
        phi=index.phi,
        frames=index.frames,
        dt=dt,
        dtype=index.dtype.name,
        datasets=tuple(str(place) for place in index.places),
    )


def describe(values: np.ndarray) -> str:
    """Lists distinct numbers in order, not too many of them."""
    texts = list(dict.fromkeys(f"{v:.6g}" for v in np.unique(values)))
    if len(texts) > _MOST_LISTED:
        more = len(texts) - _MOST_LISTED
        return ", ".join(texts[:_MOST_LISTED]) + f" and {more} more"
    return ", ".join(texts)


def chosen_maps(
    path: str | os.PathLike,
    index: Index,
    *,
    q: float | int | None,
    phi_ranges: Sequence[tuple[float | int, float | int]] | None,
    spread: float,
    q_tolerance: float | int,
) -> np.ndarray:
    """Returns the numbers of the maps that are asked for.

    Args:
        path: The file, for messages.
        index: What it holds.
        q: The wavevector in 1/angstrom, or `None` for all.
        phi_ranges: Ranges of angles in radians, or `None` for all.
        spread: By which fraction the maps of one wavevector differ.
        q_tolerance: By which fraction the nearest one may differ from `q`.

    Returns:
        Their numbers from 0, ascending.

    Raises:
        PhysaxFileError: If there is none; lists what there is.
    """
    keep = np.ones(index.q.size, bool)
    if q is not None:
        nearest = index.q[np.argmin(np.abs(index.q - q))]
        if not abs(nearest - q) <= q_tolerance * q:
            raise PhysaxFileError(
                path,
                f"It must have a wavevector within {100 * q_tolerance:.3g} % of `q` = "
                f"{q:g} 1/angstrom, but has {describe(index.q)}. Choose one of these.",
            )
        keep = np.abs(index.q - nearest) <= spread * nearest
    if phi_ranges is not None:
        at_q = describe(np.degrees(index.phi[keep]))
        keep &= in_ranges(index.phi, phi_ranges)
        if not np.any(keep):
            asked = ", ".join(
                f"{np.degrees(a):.6g} to {np.degrees(b):.6g}" for a, b in phi_ranges
            )
            raise PhysaxFileError(
                path,
                f"It must have a map at an angle in `phi_ranges` ({asked} degrees), "
                f"but has {at_q} degrees.",
            )
    return np.flatnonzero(keep)


def chosen_frames(
    path: str | os.PathLike, frames: tuple[int, int] | None, count: int
) -> slice:
    """Returns the frames that are asked for.

    Args:
        path: The file, for messages.
        frames: The first and the last, counted from 1, or `None` for all.
        count: How many there are.

    Returns:
        The slice of an array that holds them.

    Raises:
        PhysaxFileError: If they are not in the file, or fewer than two.
    """
    start, end = (1, count) if frames is None else frames
    if not 1 <= start < end <= count:
        raise PhysaxFileError(
            path,
            f"`frames` must be two numbers from 1 to {count}, the second larger, but "
            f"is ({start}, {end}). Frames are counted from 1, and both ends are "
            "included.",
        )
    return slice(start - 1, end)


def chosen_times(
    path: str | os.PathLike,
    index: Index,
    dt: float | int | None,
    part: slice,
    *,
    keep: bool,
) -> np.ndarray:
    """Returns the times of the chosen frames in seconds.

    Args:
        path: The file, for messages.
        index: What it holds.
        dt: Time per frame in seconds, which overrules the file.
        part: The chosen frames.
        keep: Whether a part keeps the times of the file, or begins at 0.

    Returns:
        Their times.

    Raises:
        PhysaxFileError: If neither the file nor `dt` gives them.
    """
    if dt is not None:
        return dt * (np.arange(part.start, part.stop) - (0 if keep else part.start))
    if index.times is None:
        raise PhysaxFileError(
            path, "It does not state the time between frames: give `dt` in seconds."
        )
    times = index.times[part]
    whole = part.stop - part.start == index.times.size
    return times if whole or keep else times - times[0]
