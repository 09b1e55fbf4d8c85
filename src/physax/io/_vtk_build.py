"""Data for VTK files, made of arrays and of tracks."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import ArrayLike, Num

from .._checks import ArgumentError
from ..particles import Tracks
from ._vtk_cells import VTKCells
from ._vtk_data import VTKData, cell_shape


def vtk_grid(
    axes: Sequence[Num[ArrayLike, " _"]],
    *,
    point_data: Mapping[str, Num[ArrayLike, "..."]] | None = None,
    cell_data: Mapping[str, Num[ArrayLike, "..."]] | None = None,
    time: float | int | None = None,
) -> VTKData:
    """Makes data on a grid with straight axes, such as a map of density or FTLE.

    Args:
        axes: Coordinates along x, or x and y, or x, y and z, ascending. Of a histogram
            these are the edges of the bins, and the counts are `cell_data`.
        point_data: Values on the points, `[i, j]` for two axes, components last.
            Two components get a third that is 0, as VTK expects of vectors.
        cell_data: Values in the cells between the points.
        time: The time that the file shall bear.

    Returns:
        Data of the kind `"rectilinear"`.

    Raises:
        ArgumentError: If the number of axes is not 1 to 3, or shapes do not fit.
    """
    if not 1 <= len(axes) <= 3:
        raise ArgumentError(f"`axes` must be 1 to 3 arrays, but are {len(axes)}.")
    rank = len(axes)
    given = tuple(as_values(axis) for axis in axes)
    for number, axis in enumerate(given):
        if axis.ndim != 1 or axis.size == 0 or not np.all(np.diff(axis) > 0):
            raise ArgumentError(
                f"`axes[{number}]` must be increasing numbers, but is {axis}."
            )
    x, y, z = (*given, *(np.zeros(1),) * (3 - rank))

    def padded(values: Mapping | None, shape: tuple[int, ...], what: str) -> dict:
        found = {}
        for name, value in (values or {}).items():
            value = as_values(value)
            if value.shape[:rank] != shape or value.ndim > rank + 1:
                raise ArgumentError(
                    f"`{what}[{name!r}]` must have the shape {shape}, or that and "
                    f"components, but has {value.shape}."
                )
            filled = value.reshape(*shape, *(1,) * (3 - rank), *value.shape[rank:])
            found[name] = vectors(filled) if value.ndim > rank else filled
        return found

    shape = tuple(axis.size for axis in given)
    return VTKData(
        "rectilinear",
        axes=(x, y, z),
        point_data=padded(point_data, shape, "point_data"),
        cell_data=padded(cell_data, cell_shape(shape), "cell_data"),
        time=None if time is None else float(time),
    )


def vtk_points(
    positions: Num[ArrayLike, "points ndim"],
    *,
    point_data: Mapping[str, Num[ArrayLike, "..."]] | None = None,
    time: float | int | None = None,
) -> VTKData:
    """Makes a set of points, one VTK vertex each.

    Args:
        positions: The points, of 1 to 3 coordinates; those missing become 0.
        point_data: Values on the points, components last. Two components get a third.
        time: The time that the file shall bear.

    Returns:
        Data of the kind `"polydata"`.
    """
    points = as_points(positions, "positions")
    count = len(points)
    cells = VTKCells(
        np.arange(count), np.arange(count + 1), np.ones(count, dtype=np.uint8)
    )
    values = {k: vectors(as_values(v)) for k, v in (point_data or {}).items()}
    when = None if time is None else float(time)
    return VTKData("polydata", points=points, cells=cells, point_data=values, time=when)


def as_values(values: ArrayLike) -> np.ndarray:
    """Returns numbers of any origin as an array of the host that VTK knows."""
    host = np.asarray(values)
    if host.dtype.kind == "b":
        return host.astype(np.uint8)
    if host.dtype.name in ("float16", "bfloat16"):
        return host.astype(np.float32)
    if host.dtype.kind not in "fiu" or host.dtype.itemsize > 8:
        raise ArgumentError(
            f"Arrays must hold real numbers of at most 64 bits, but one is of "
            f"{host.dtype}. Write real and imaginary parts as two arrays."
        )
    return host


def as_points(positions: ArrayLike, name: str) -> np.ndarray:
    """Returns positions with three coordinates, as floating point numbers."""
    points = as_values(positions)
    if points.ndim < 2 or not 1 <= points.shape[-1] <= 3:
        raise ArgumentError(
            f"`{name}` must have 1 to 3 coordinates on its last axis, but has the "
            f"shape {points.shape}."
        )
    if points.dtype.kind != "f":
        points = points.astype(np.float64)
    missing = 3 - points.shape[-1]
    return np.pad(points, [*[(0, 0)] * (points.ndim - 1), (0, missing)])


def vectors(values: np.ndarray) -> np.ndarray:
    """Gives vectors of two components a third, which VTK expects; leaves others."""
    if values.ndim < 2 or values.shape[-1] != 2:
        return values
    return np.pad(values, [*[(0, 0)] * (values.ndim - 1), (0, 1)])


def vtk_tracks(tracks: Tracks) -> VTKData:
    """Makes one line for each particle, through all its recorded positions.

    Where a particle leaves a periodic box, `tracks.wraps`, and comes in at the other
    end, another line begins; a single position between two such rows is a vertex.
    Points have the arrays `time`, `moving` (1 while the particle moves), `velocity` if
    the motion has one, and the variables; lines and vertices have `particle`, `status`
    (`ParticleStatus`), `ended`, `face`, `since` and `entries`.

    Args:
        tracks: The tracks.

    Returns:
        Data of the kind `"polydata"`, particle after particle, vertices before lines.
    """
    positions = np.asarray(tracks.positions)
    times, particles = positions.shape[:2]

    def by_particle(values: ArrayLike) -> np.ndarray:
        host = as_values(values)
        flat = np.swapaxes(host, 0, 1).reshape(times * particles, *host.shape[2:])
        return vectors(flat)

    point_data = {
        "time": np.tile(as_values(tracks.times), particles),
        "moving": by_particle(tracks.moving()),
        **_values_on_tracks(tracks, by_particle),
    }
    begin = np.flatnonzero(_first_of_line(tracks, positions))
    sizes = np.diff(np.append(begin, times * particles))
    # Polydata holds vertices before lines.
    order = np.argsort(sizes > 1, kind="stable")
    begin, sizes = begin[order], sizes[order]
    offsets = np.append(0, np.cumsum(sizes))
    cells = VTKCells(
        np.arange(times * particles) + np.repeat(begin - offsets[:-1], sizes),
        offsets,
        np.array([2, 3, 4], np.uint8)[np.minimum(sizes, 3) - 1],
    )
    particle = begin // max(times, 1)
    cell_data = {
        "particle": particle,
        **{
            name: as_values(getattr(tracks, name))[particle]
            for name in ("status", "ended", "face", "since", "entries")
        },
    }
    points = by_particle(as_points(positions, "positions"))
    return VTKData("polydata", points, None, cells, point_data, cell_data)


def _first_of_line(tracks: Tracks, positions: np.ndarray) -> np.ndarray:
    """Returns at which rows a line begins, `[particles, times]`."""
    first = np.zeros(positions.shape[1::-1], bool)
    first[:, :1] = True
    if tracks.wraps is not None:
        size = np.diff(np.asarray(tracks.wraps), axis=0)[0]
        jumps = np.abs(np.diff(positions, axis=0)) > size / 2
        first[:, 1:] |= jumps.any(-1).T
    return first


def vtk_snapshots(tracks: Tracks) -> Iterator[VTKData]:
    """Makes the points of all particles at each recorded time, one time after another.

    Points have the arrays `particle`, `moving`, `velocity` if the motion has one, and
    the variables.

    Args:
        tracks: The tracks.

    Yields:
        Data of the kind `"polydata"`, with the time.
    """
    times, moving = np.asarray(tracks.times), np.asarray(tracks.moving())
    positions = np.asarray(tracks.positions)
    number = np.arange(positions.shape[1])
    values = _values_on_tracks(tracks, np.asarray)
    for row, time in enumerate(times.tolist()):
        yield vtk_points(
            positions[row],
            point_data={
                "particle": number,
                "moving": moving[row],
                **{name: array[row] for name, array in values.items()},
            },
            time=time,
        )


def _values_on_tracks(tracks: Tracks, shaped: Callable) -> dict[str, np.ndarray]:
    own = ("time", "moving", "velocity", "particle")
    clash = [name for name in tracks.variables if name in own]
    if clash:
        raise ArgumentError(
            f"Variables must not have the names {own}, which are written too, but one "
            f"is {clash[0]!r}."
        )
    found = {name: shaped(values) for name, values in tracks.variables.items()}
    if tracks.velocities is not None:
        found["velocity"] = shaped(tracks.velocities)
    return found
