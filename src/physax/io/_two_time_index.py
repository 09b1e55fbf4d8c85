"""The index of an HDF5 file of two-time correlations, put together and checked."""

import math
from typing import NamedTuple

import h5py
import numpy as np

from ._errors import PhysaxFileError
from ._hdf5 import dataset, find, listing, natural_key, numbers, scalar, seconds


class MapPlace(NamedTuple):
    """Where one map lies.

    Attributes:
        dataset: Path of the dataset.
        row: Its number along the axis of maps; `None` where the dataset is one map.
        last: Whether that axis is the last and not the first.
    """

    dataset: str
    row: int | None = None
    last: bool = False

    def __str__(self) -> str:
        return self.dataset if self.row is None else f"{self.dataset}[{self.row}]"


class Index(NamedTuple):
    """What a file says about its maps, the maps themselves left unread.

    Attributes:
        q: Of each map, in 1/angstrom.
        phi: Of each map, in radians.
        places: Of each map.
        frames: How many there are.
        dtype: Of the maps.
        times: Of the frames in seconds; `None` where the file has none.
        baseline: What has to be added to the stored values to make c2.
    """

    q: np.ndarray
    phi: np.ndarray
    places: tuple[MapPlace, ...]
    frames: int
    dtype: np.dtype
    times: np.ndarray | None
    baseline: float = 0.0

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of all maps together."""
        return len(self.places), self.frames, self.frames


def maps_of(file: h5py.File, group: str) -> tuple[MapPlace, ...]:
    """Lists the datasets of a group in the order of the numbers in their names."""
    found = find(file, group)
    if not isinstance(found, h5py.Group):
        raise PhysaxFileError(
            file.filename,
            f"It must hold the group `{group}`, but has {listing(file)}.",
        )
    names = sorted(found, key=natural_key)
    return tuple(MapPlace(f"{group}/{name}") for name in names)


def check_counts(file: h5py.File, counts: dict[str, int]) -> None:
    """Refuses lists that do not have one entry per map."""
    if len(set(counts.values())) != 1 or 0 in counts.values():
        seen = ", ".join(f"`{name}` has {count}" for name, count in counts.items())
        raise PhysaxFileError(
            file.filename, f"There must be as many entries in all lists, but {seen}."
        )


def bin_values(
    file: h5py.File, bins: np.ndarray, what: str
) -> tuple[np.ndarray, np.ndarray]:
    """Returns q (1/angstrom) and angle (degrees) of bins of an APS-U file.

    Args:
        file: The file.
        bins: Numbers of bins, counted from 1.
        what: Where they stand, for messages.

    Returns:
        q and the angle of each bin.

    Raises:
        PhysaxFileError: If a number is not that of a bin, or the axes of the grid are
            not q and angle.
    """
    check_axes(file)
    q = numbers(file, "xpcs/qmap/dynamic_v_list_dim0").reshape(-1)
    phi = numbers(file, "xpcs/qmap/dynamic_v_list_dim1").reshape(-1)
    size, where = q.size * phi.size, np.arange(q.size * phi.size)
    mapping = "xpcs/qmap/dynamic_index_mapping"
    if find(file, mapping) is not None:
        where = numbers(file, mapping).reshape(-1)
        if np.any((where < 0) | (where >= size) | (where != np.round(where))):
            raise PhysaxFileError(
                file.filename,
                f"`{mapping}` must number the {q.size} x {phi.size} bins from 0, but "
                f"ranges from {where.min():g} to {where.max():g}.",
            )
    bad = (bins < 1) | (bins > where.size) | (bins != np.round(bins))
    if np.any(bad):
        raise PhysaxFileError(
            file.filename,
            f"`{what}` must hold numbers of bins from 1 to {where.size}, but holds "
            f"{bins[bad][0]:g}.",
        )
    found = where[bins.astype(int) - 1].astype(int)
    return q[found // phi.size], phi[found % phi.size]


def check_axes(file: h5py.File) -> None:
    """Refuses an APS-U file whose grid of bins is not one of q and angle."""
    names = find(file, "xpcs/qmap/map_names")
    if not isinstance(names, h5py.Dataset) or names.size != 2:
        return
    read = [n.decode() if isinstance(n, bytes) else str(n) for n in names[()].flat]
    if read != ["q", "phi"]:
        raise PhysaxFileError(
            file.filename,
            f"`xpcs/qmap/map_names` must be 'q' and 'phi', but is {read}.",
        )


def product(file: h5py.File, time: str, counts: tuple[str, ...]) -> float | None:
    """Returns a time per frame multiplied by the numbers of frames joined or left."""
    dt = seconds(file, time)
    if dt is None:
        return None
    return dt * math.prod(scalar(file, name) or 1.0 for name in counts)


def finished(
    file: h5py.File,
    q_name: str,
    q: np.ndarray,
    phi: np.ndarray,
    places: tuple[MapPlace, ...],
    *,
    dt: float | None,
    times: str | None = None,
) -> Index:
    """Checks values and shapes, and puts the index together.

    Args:
        file: The file.
        q_name: Where the wavevectors stand, for messages.
        q: Of each map, in 1/angstrom.
        phi: Of each map, in degrees.
        places: Of each map.
        dt: Time per frame in seconds, if it is known.
        times: Dataset with the times of the frames, if there is one.

    Returns:
        The index.

    Raises:
        PhysaxFileError: If a value or a shape cannot be right.
    """
    if np.any(q <= 0):
        raise PhysaxFileError(
            file.filename,
            f"`{q_name}` must be positive, but is {q[q <= 0][0]:g} for map "
            f"{int(np.argmax(q <= 0)) + 1}.",
        )
    first = dataset(file, places[0].dataset)
    frames = map_shape(first, places[0])[0]
    for name in dict.fromkeys(place.dataset for place in places):
        data = dataset(file, name)
        place = MapPlace(name, places[0].row, places[0].last)
        if map_shape(data, place) != (frames, frames) or data.dtype != first.dtype:
            raise PhysaxFileError(
                file.filename,
                f"`{name}` must be a map of {frames} x {frames} frames and "
                f"{first.dtype}, as the first is, but has shape {data.shape} and "
                f"{data.dtype}.",
            )
    # Ours, written beside any layout: the others cannot hold times that are exact.
    own = times or ("physax/times" if find(file, "physax/times") else None)
    at = None if dt is None else dt * np.arange(frames)
    if own is not None:
        at = numbers(file, own).reshape(-1)
        check_times(file.filename, own, at, frames)
    return Index(q, np.radians(phi), places, frames, first.dtype, at)


def map_shape(data: h5py.Dataset, place: MapPlace) -> tuple[int, ...]:
    """Returns the shape of one map of a dataset."""
    if place.row is None:
        return data.shape if data.ndim == 2 else (-1, *data.shape)
    return data.shape[:-1] if place.last else data.shape[1:]


def check_times(path: str, name: str, times: np.ndarray, frames: int) -> None:
    """Refuses times that are not one per frame, or do not increase."""
    if times.shape != (frames,):
        raise PhysaxFileError(
            path,
            f"`{name}` must have one time for each of {frames} frames, but has shape "
            f"{times.shape}.",
        )
    late = np.flatnonzero(~(np.diff(times) > 0))
    if late.size:
        k = int(late[0])
        raise PhysaxFileError(
            path,
            f"`{name}` must increase, but goes from {times[k]:g} s to "
            f"{times[k + 1]:g} s at frame {k + 2}. Give `dt` to use the numbers of "
            "the frames instead.",
        )
