"""One variable of a flow, through all files that hold parts of it in time."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._checks import ArgumentError, refuse_masked, warn
from ._errors import PhysaxFileError
from ._netcdf_axes import PlannedAxis, Role, T, X, Y, Z, plan_axis, role_of
from ._netcdf_open import StoredArray, StoredData
from ._netcdf_time import Epoch, calendar_of, read_stamps, to_seconds


class StoredVariable(NamedTuple):
    """A variable on a grid, at instants of time.

    Attributes:
        name: In the files.
        path: The file, the first one of several.
        axes: The axes of space that it has, x, y, z.
        spherical: Whether x and y are longitude and latitude.
        seconds: The instants, `None` of a steady variable.
        epoch: The date from which they are counted.
        attributes: What the file says of it.
        read: Returns the samples from one instant to before another, of shape
            `[times, *nodes]`; of a steady variable there is one.
    """

    name: str
    path: Path
    axes: tuple[PlannedAxis, ...]
    spherical: bool
    seconds: np.ndarray | None
    epoch: Epoch | None
    attributes: Mapping[str, Any]
    read: Callable[[int, int], np.ndarray]

    @property
    def count(self) -> int:
        """Number of instants; 1 of a steady variable."""
        return 1 if self.seconds is None else self.seconds.size

    @property
    def units(self) -> str | None:
        """The unit as the file says it, `None` if it does not."""
        found = self.attributes.get("units")
        return None if found is None else str(found)


class _Part(NamedTuple):
    """A variable in one file.

    Attributes:
        data: The file.
        array: The samples.
        roles: For each dimension what it is.
        picks: For each dimension that is not kept, which sample is taken.
    """

    data: StoredData
    array: StoredArray
    roles: tuple[Role, ...]
    picks: Mapping[int, int]

    def number(self, axis: str) -> int | None:
        """Returns the number of the dimension that is x, y, z or t."""
        for number, role in enumerate(self.roles):
            if role.axis == axis and number not in self.picks:
                return number
        return None


def find_variable(
    files: Sequence[StoredData], name: str, select: Mapping[str, float]
) -> StoredVariable:
    """Finds a variable in open files, and what its dimensions are.

    Args:
        files: The files.
        name: Of the variable.
        select: Places along dimensions that are not kept; the nearest sample is taken.

    Raises:
        PhysaxFileError: If no file has it, or its dimensions cannot be understood.
        ArgumentError: If `select` is not a dict, or names another dimension.
    """
    if not isinstance(select, Mapping):
        raise ArgumentError(
            "`select` must be a dict of places by dimension, as `{'depth': 10.0}`, but "
            f"is {select!r}."
        )
    holding = [data for data in files if name in data.arrays]
    if not holding:
        first = files[0]
        there = ", ".join(sorted({n for data in files for n in data.arrays}))
        raise PhysaxFileError(
            first.path,
            f"{it_or_others(files)} must have the variable {name!r}, but there are "
            f"{there}.",
        )
    parts = [_part(data, name, select) for data in holding]
    axes = _axes_of(parts[0])
    for part in parts[1:]:
        same = _axes_of(part)
        if not _agree(axes, same):
            raise PhysaxFileError(
                part.data.path,
                f"{name!r} must be on the same grid as in {parts[0].data.path}.",
            )
    pieces, seconds, epoch = _in_time(parts, name)
    coordinates = _coordinates(parts[0])
    spherical = all(coordinates[a].degrees for a in (X, Y) if a in coordinates)

    def read(first: int, last: int) -> np.ndarray:
        return np.concatenate(
            [_read(*piece, axes) for piece in _cut(pieces, first, last)]
        )

    return StoredVariable(
        name,
        parts[0].data.path,
        axes,
        spherical and X in coordinates,
        seconds,
        epoch,
        parts[0].array.attributes,
        read,
    )


def it_or_others(files: Sequence[StoredData]) -> str:
    """Returns the subject of a sentence on what one of several files must have.

    Args:
        files: The files; the sentence follows the name of the first.
    """
    others = len(files) - 1
    if not others:
        return "It"
    return "It or the other file" if others == 1 else f"It or one of {others} others"


def _agree(a: Sequence[PlannedAxis], b: Sequence[PlannedAxis]) -> bool:
    return len(a) == len(b) and all(
        same_places(p, q) for p, q in zip(a, b, strict=True)
    )


def same_places(a: PlannedAxis, b: PlannedAxis) -> bool:
    """Tells whether two axes have the same positions."""
    if a.positions.shape != b.positions.shape:
        return False
    gap = np.diff(a.positions).min(initial=np.inf)
    gap = gap if np.isfinite(gap) else max(abs(a.positions[0]), 1.0)
    return bool(np.all(np.abs(a.positions - b.positions) <= 1e-4 * gap))


def _coordinates(part: _Part) -> dict[str, Role]:
    kept = [r for n, r in enumerate(part.roles) if n not in part.picks]
    return {role.axis: role for role in kept}


def _coordinate(data: StoredData, array: StoredArray, dim: str) -> tuple[str, Any]:
    """Returns the name and the array of the coordinate of a dimension."""
    if dim in data.arrays and data.arrays[dim].dims == (dim,):
        return dim, data.arrays[dim]
    listed = str(array.attributes.get("coordinates", "")).split()
    for name in (*listed, *sorted(data.arrays)):
        other = data.arrays.get(name)
        if other is not None and other.dims == (dim,):
            role = role_of(name, other.attributes)
            if role.axis:
                return name, other
    return dim, None


def _nearest(places: np.ndarray, wanted: Any, name: str) -> int:
    """Returns the number of the place next to the one that is wanted."""
    refuse_masked(wanted, "select", "Give a number.")
    # Also a number of xarray, NumPy or JAX without axes.
    number = None if isinstance(wanted, str) else np.asarray(wanted)
    if number is None or number.shape or number.dtype.kind not in "iuf":
        raise ArgumentError(
            f"`select` must be a number along {name!r}, but is {wanted!r}."
        )
    wanted = float(number)
    order = np.sort(places)
    if order.size > 1:
        # Half a cell, and what float32 rounds.
        margin = 0.501 * np.diff(order)[[0, -1]]
        if not order[0] - margin[0] <= wanted <= order[-1] + margin[1]:
            raise ArgumentError(
                f"`select` must be at most half a cell away from {name!r}, which goes "
                f"from {order[0]:g} to {order[-1]:g}, but is {wanted:g}. Check its "
                "unit and its sign."
            )
    return int(np.argmin(np.abs(places - wanted)))


def _part(data: StoredData, name: str, select: Mapping[str, float]) -> _Part:
    array = data.arrays[name]
    roles, picks = [], {}
    for number, dim in enumerate(array.dims):
        label, coordinate = _coordinate(data, array, dim)
        attributes = {} if coordinate is None else coordinate.attributes
        role = role_of(label, attributes)
        wanted = select.get(label, select.get(dim))
        size = array.shape[number]
        if wanted is not None:
            places = np.arange(size) if coordinate is None else coordinate.read((...,))
            picks[number] = _nearest(np.asarray(places, float), wanted, label)
        elif size == 1 and role.axis not in (X, Y, T):
            picks[number] = 0
        elif coordinate is None and role.axis != T and size > 1:
            raise PhysaxFileError(data.path, _no_coordinate(data, name, dim))
        elif not role.axis:
            raise PhysaxFileError(
                data.path,
                f"{name!r} must be over longitude, latitude, height and time, or x, y, "
                f"z and time, but has the dimension {dim!r}. Take one place along it "
                f"with `select`, such as {{{dim!r}: 0}}.",
            )
        roles.append(role)
    unknown = set(select) - {
        n for d in array.dims for n in (d, _coordinate(data, array, d)[0])
    }
    if unknown:
        raise ArgumentError(
            f"`select` must name dimensions of {name!r}, {', '.join(array.dims)}, but "
            f"has {sorted(unknown)}."
        )
    letters = [r.axis for n, r in enumerate(roles) if n not in picks]
    if len(set(letters)) < len(letters):
        raise PhysaxFileError(
            data.path,
            f"{name!r} must have different axes, but its dimensions "
            f"{', '.join(array.dims)} look like {', '.join(letters)}. Set the "
            "attribute `axis` of their coordinates.",
        )
    return _Part(data, array, tuple(roles), picks)


def _no_coordinate(data: StoredData, name: str, dim: str) -> str:
    flat = [
        n for n, a in data.arrays.items() if len(a.dims) == 2 and dim in a.dims
        and role_of(n, a.attributes).degrees
    ]  # fmt: skip
    if flat:
        return (
            f"{name!r} must be on a grid whose longitudes and latitudes are "
            f"one-dimensional, but {', '.join(sorted(flat))} have two dimensions. "
            "Regrid it to such axes, or read the arrays yourself and make "
            "`particles.MeshField(Mesh.structured(coordinates), values)` of them."
        )
    return f"The dimension {dim!r} of {name!r} must have a coordinate, but has none."


def _axes_of(part: _Part) -> tuple[PlannedAxis, ...]:
    planned = []
    for letter in (X, Y, Z):
        number = part.number(letter)
        if number is None:
            continue
        label, coordinate = _coordinate(part.data, part.array, part.array.dims[number])
        values = coordinate.read((...,))
        try:
            planned.append(
                plan_axis(label, values, coordinate.attributes, part.roles[number])
            )
        except ArgumentError as error:
            raise PhysaxFileError(part.data.path, str(error)) from error
    return tuple(planned)


_Piece = tuple[_Part, int, int]


def _in_time(parts: Sequence[_Part], name: str):
    """Orders the snapshots of all files in time.

    Returns:
        For each run of snapshots its file, its first and its number; the seconds; and
        the date from which they are counted.
    """
    dimensions = [part.number(T) for part in parts]
    if len(parts) == 1 and dimensions[0] is None:
        return [(parts[0], 0, 1)], None, None
    stamps, calendars = [], []
    for part, number in zip(parts, dimensions, strict=True):
        if number is None:
            raise PhysaxFileError(
                part.data.path, f"{name!r} must have times, as in the other files."
            )
        label, coordinate = _coordinate(part.data, part.array, part.array.dims[number])
        if coordinate is None:
            raise PhysaxFileError(
                part.data.path, f"It must hold the times {label!r} of {name!r}."
            )
        try:
            stamps.append(read_stamps(coordinate.read((...,)), coordinate.attributes))
        except ArgumentError as error:
            raise PhysaxFileError(part.data.path, str(error)) from error
        attributes = coordinate.attributes
        calendars.append(calendar_of(stamps[-1], attributes))
        if stamps[-1].dtype.kind != stamps[0].dtype.kind or (
            stamps[0].dtype.kind == "O" and calendars[-1] != calendars[0]
        ):
            raise PhysaxFileError(
                part.data.path,
                _other_calendar(calendars[-1], calendars[0], parts[0].data.path),
            )
    turns = sorted(range(len(parts)), key=lambda i: stamps[i][0])
    seconds, epoch = to_seconds(np.concatenate([stamps[i] for i in turns]), attributes)
    wrong = np.flatnonzero(np.diff(seconds) <= 0)
    if wrong.size:
        at = int(wrong[0])
        holders = np.repeat(turns, [len(stamps[i]) for i in turns])
        before, path = (parts[holders[n]].data.path for n in (at, at + 1))
        where = "" if holders[at] == holders[at + 1] else f", the former in {before}"
        raise PhysaxFileError(
            path,
            f"The times of {name!r} must increase, also from file to file, but "
            f"snapshots {at} and {at + 1} are at {seconds[at]:g} and "
            f"{seconds[at + 1]:g} s{where}.",
        )
    pieces: list[_Piece] = [(parts[i], 0, len(stamps[i])) for i in turns]
    return pieces, seconds, epoch


def _other_calendar(here: str | None, there: str | None, path: Path) -> str:
    """Says how the times of a file differ from those of another at `path`."""
    if here is None or there is None:
        said = ["are dates" if name else "have no date" for name in (there, here)]
        return (
            f"Its times must {said[0].replace('are', 'be')} as in {path}, but "
            f"{said[1]}. Set the attribute `units` of all to one with a date, such as "
            "'days since 1970-01-01', or of none."
        )
    if here != there:
        return (
            f"Its times must be in the calendar of {path}, {there!r}, but are in "
            f"{here!r}. Rewrite one of the files, as by "
            f"`xarray.open_dataset(...).convert_calendar({there!r})`."
        )
    return (
        f"Its times must be in the same centuries as in {path}, but are on the other "
        f"side of what NumPy's dates have of the calendar {here!r}. Read them apart."
    )


def _cut(pieces: Sequence[_Piece], first: int, last: int) -> list[_Piece]:
    """Returns the parts of pieces that hold some of all snapshots."""
    found, begin = [], 0
    for part, _, count in pieces:
        low, high = max(first - begin, 0), min(last - begin, count)
        if low < high:
            found.append((part, low, high))
        begin += count
    return found


def _read(part: _Part, low: int, high: int, axes: Sequence[PlannedAxis]) -> np.ndarray:
    """Reads snapshots, and brings their axes into order."""
    rank = len(part.array.dims)
    when = part.number(T)
    key: list[Any] = [slice(None)] * rank
    for number, index in part.picks.items():
        key[number] = index
    if when is not None:
        key[when] = slice(low, high)
    values = part.array.read(tuple(key))
    least, most = part.array.valid
    if np.isfinite(least) or np.isfinite(most):
        kind = np.float64 if values.dtype.itemsize > 4 else np.float32
        void = (values < least) | (values > most)
        known = np.isfinite(values)
        if known.any() and void[known].all():
            warn(
                f"All values of an array lie beyond its limits, {least:g} to {most:g}, "
                "and count as missing. If they are sound, delete `valid_min`, "
                "`valid_max` and `valid_range` from the file."
            )
        values = np.where(void, kind(np.nan), values.astype(kind, copy=False))
    kept = [n for n in range(rank) if n not in part.picks]
    order = [part.number(letter) for letter in (T, X, Y, Z)]
    values = values.transpose([kept.index(n) for n in order if n is not None])
    if when is None:
        values = values[None]
    for number, axis in enumerate(axes):
        stored = np.arange(values.shape[number + 1])
        if np.array_equal(axis.order, stored):
            continue
        if np.array_equal(axis.order, stored[::-1]):
            values = np.flip(values, number + 1)
        else:
            values = np.take(values, axis.order, number + 1)
    return values
