"""Velocities in files, one instant at a time."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import numpy as np

from .._checks import ArgumentError, warn
from ..particles import Land
from ._errors import PhysaxFileError
from ._gaps import LOST
from ._netcdf_axes import X, Y, Z, all_negative
from ._netcdf_open import (
    Paths,
    StoredArray,
    StoredData,
    list_files,
    open_stored,
    refuse_needless,
)
from ._netcdf_time import Epoch, seconds_between
from ._netcdf_variable import StoredVariable, find_variable, same_places
from ._speed_units import changes_pressure, speed_factor


# Names and standard names of the components, in lower case.
_NAMES = {
    X: (
        "u uo ua uas u10 uwnd ugrd ugos uvel water_u vozocrtx u_velocity velocity_x vx "
        "ux u_wind"
    ).split(),
    Y: (
        "v vo va vas v10 vwnd vgrd vgos vvel water_v vomecrty v_velocity velocity_y vy "
        "uy v_wind"
    ).split(),
}
_STANDARD = {
    X: (
        "eastward_wind x_wind eastward_sea_water_velocity sea_water_x_velocity "
        "surface_eastward_sea_water_velocity eastward_sea_ice_velocity "
        "surface_geostrophic_eastward_sea_water_velocity"
    ).split(),
    Y: (
        "northward_wind y_wind northward_sea_water_velocity sea_water_y_velocity "
        "surface_northward_sea_water_velocity northward_sea_ice_velocity "
        "surface_geostrophic_northward_sea_water_velocity"
    ).split(),
    Z: (
        "upward_sea_water_velocity upward_air_velocity downward_air_velocity "
        "lagrangian_tendency_of_air_pressure"
    ).split(),
}


class UnnamedComponentError(PhysaxFileError):
    """The variable of a component of the velocity must be named, but is not.

    Attributes:
        argument: What names it, `"u"` or `"v"`.
    """

    def __init__(self, path: str | os.PathLike, reason: str, argument: str):
        super().__init__(path, reason)
        self.argument = argument


def open_files(
    paths: Paths, axes: Sequence[str] | None, time: str | None, stack: ExitStack
) -> list[StoredData]:
    """Opens files, which are closed with the stack."""
    found = []
    listed = list_files(paths)
    refuse_needless(listed, axes, time)
    for path in listed:
        data = open_stored(path, axes, time)
        stack.callback(data.close)
        found.append(data)
    return found


def _by_standard_name(arrays: Mapping[str, StoredArray], axis: str) -> list[str]:
    """Returns the names of velocities along an axis, by the CF conventions."""
    standard = _STANDARD[axis]
    return [
        name
        for name, array in arrays.items()
        if array.attributes.get("standard_name") in standard
    ]


def component_names(
    files: Sequence[StoredData], given: Mapping[str, str | None]
) -> list[str]:
    """Returns the names of the components of a velocity, found where not given.

    Args:
        files: Open files.
        given: By axis, `None` for what is to be found.

    Raises:
        UnnamedComponentError: If there is none, or more than one; lists what there is.
    """
    known = {name: array for data in files for name, array in data.arrays.items()}
    names = []
    for axis, name in given.items():
        if name is None:
            fitting = _by_standard_name(known, axis)
            if not fitting:
                fitting = [
                    n for n in known if n.lower().rsplit("/", 1)[-1] in _NAMES[axis]
                ]
            if len(fitting) != 1:
                letter = {X: "u", Y: "v"}[axis]
                seen = f"{sorted(fitting)} all look like it" if fitting else "none does"
                several = [n for n, a in known.items() if len(a.shape) > 1]
                raise UnnamedComponentError(
                    files[0].path,
                    f"The variable of the velocity along {axis} must be named, "
                    f"`{letter}=...`: {seen}. There are {', '.join(sorted(several))}.",
                    letter,
                )
            name = fitting[0]
        names.append(name)
    return names


class SnapshotSeries:
    """A velocity in files, read one instant at a time when it is called for.

    The files stay open until `close`, or the end of a `with` block.

    Attributes:
        paths: The files.
        times: The instants in seconds since the first one; empty of a steady flow.
        epoch: The date of the first instant, `None` where the files have no dates.
        axes: For each axis the positions of the nodes, increasing.
        periods: For each axis the length after which the nodes repeat, or `None`.
        names: Of the coordinates.
        units: Of the positions: `"degrees"`, `"m"` or `"Pa"`.
        spherical: Whether positions are longitude and latitude.
    """

    def __init__(
        self,
        paths: Paths,
        u: str | None = None,
        v: str | None = None,
        w: str | None = None,
        *,
        axes: Sequence[str] | None = None,
        time: str | None = None,
        select: Mapping[str, float] | None = None,
        scale: float | None = None,
    ):
        """Opens files; arguments as for `read_velocity`."""
        self.paths = tuple(map(str, list_files(paths)))
        with ExitStack() as stack:
            files = open_files(paths, axes, time, stack)
            parts = velocity_parts(files, u, v, w, select or {}, scale)
            _check_shared(parts)
            first = parts[0].variable
            self._parts = parts
            self._stack = stack.pop_all()
        self._first: np.ndarray | None = None
        self._warned = False
        self.times = np.empty(0) if first.seconds is None else first.seconds
        self.epoch: Epoch | None = first.epoch
        self.axes = tuple(axis.positions for axis in first.axes)
        self.periods = tuple(axis.period for axis in first.axes)
        self.names = tuple(axis.name for axis in first.axes)
        self.units = tuple(axis.unit for axis in first.axes)
        self.spherical = first.spherical

    def __len__(self) -> int:
        return self._parts[0].variable.count

    def __call__(self, number: int) -> np.ndarray:
        """Reads one instant.

        Args:
            number: Which, from 0.

        Returns:
            The samples, of shape `[*nodes, components]`, in m/s, 0 on land as `land`
            has it. Gaps, which are missing here but not at the first instant, stay NaN,
            and end particles with the status `NOT_FINITE`; a warning tells of them.
        """
        if not 0 <= number < len(self):
            raise ArgumentError(
                f"`number` must be one of {len(self)} instants, but is {number}."
            )
        values = self.read(number, number + 1)[0]
        dry, known = self._dry(), np.isfinite(values).all(-1)
        if not self._warned and np.any(dry == known):
            self._warned = True
            warn(
                f"{self.paths[0]}: The same nodes must have data at all instants, but "
                f"{np.sum(~dry & ~known)} nodes have none at instant {number} and do "
                f"at the first, where {np.sum(dry & known)} have none that do here. "
                "The former are NaN here, the latter were taken for land. "
                "`read_velocity(..., gaps=seconds)` bridges gaps in time."
            )
        return np.where((dry & ~known)[..., None], 0, values).astype(values.dtype)

    def land(self) -> Land | None:
        """Returns where the first instant has no data, the others unread."""
        dry = self._dry()
        return Land(dry, self.axes, periods=self.periods) if dry.any() else None

    def _dry(self) -> np.ndarray:
        """Returns where the first instant has no data, which is read once."""
        dry = self._first
        if dry is None:
            known = np.isfinite(self.read(0, 1)[0])
            dry = self._first = ~known.all(-1)
            if dry.all():
                names = [part.variable.name for part in self._parts]
                lost = [n for i, n in enumerate(names) if not known[..., i].any()]
                raise PhysaxFileError(
                    self.paths[0],
                    "It must have data at some node of its first instant, but all of "
                    f"{', '.join(map(repr, lost or names))} are missing: {LOST}.",
                )
        return dry

    def read(self, first: int, last: int) -> np.ndarray:
        """Reads the instants from one number to before another.

        Args:
            first: The first.
            last: One more than the last.

        Returns:
            The samples, of shape `[times, *nodes, components]`, NaN where there are no
            data.
        """
        found = [part.read(first, last) for part in self._parts]
        ndim = len(self.axes)
        # A flow without a vertical component leaves particles at their height.
        found += [np.zeros_like(found[0])] * (ndim - len(found))
        return np.stack(found, axis=-1)

    def close(self) -> None:
        """Closes the files."""
        self._stack.close()

    def __enter__(self) -> "SnapshotSeries":
        return self

    def __exit__(self, *reason) -> None:
        self.close()


class VelocityPart:
    """A component of a velocity, in m/s along its axis.

    Attributes:
        variable: In the files.
        factor: What its numbers are worth.
    """

    def __init__(self, variable: StoredVariable, factor: float):
        self.variable, self.factor = variable, factor

    def read(self, first: int, last: int) -> np.ndarray:
        """Reads some instants."""
        values = self.variable.read(first, last)
        kind = np.float64 if values.dtype.itemsize > 4 else np.float32
        values = values.astype(kind, copy=False)
        return values if self.factor == 1 else values * kind(self.factor)


def velocity_parts(
    files: Sequence[StoredData],
    u: str | None,
    v: str | None,
    w: str | None,
    select: Mapping[str, float],
    scale: float | None,
) -> list[VelocityPart]:
    """Finds the components of a velocity.

    Raises:
        PhysaxFileError: If one is not there, or the files do not fit to each other.
        ArgumentError: If a unit is not known.
    """
    names = component_names(files, {X: u, Y: v})
    named = [*names, *([] if w is None else [w])]
    if len(set(named)) < len(named):
        raise ArgumentError(
            "`u`, `v` and `w` must name different variables, but are "
            f"{', '.join(map(repr, named))}."
        )
    found = [find_variable(files, name, select) for name in names]
    parts = [VelocityPart(x, speed_factor(x, scale)) for x in found]
    if w is not None:
        variable = find_variable(files, w, select)
        factor = speed_factor(variable, scale, vertical=True)
        parts.append(VelocityPart(variable, factor * _upward(variable)))
    wanted = [X, Y] if w is None else [X, Y, Z]
    first = found[0]
    if w is None and len(first.axes) > 2:
        _mention_vertical(files)
    for part in parts:
        have = len(part.variable.axes)
        if have < 2 or (w is not None and have < 3):
            names = [axis.name for axis in part.variable.axes]
            raise PhysaxFileError(
                part.variable.path,
                f"{part.variable.name!r} must be over {', '.join(wanted)}, but is over "
                f"{', '.join(names) or 'no axis'} only.",
            )
        if not _same_times(part.variable, first):
            undated = part.variable.epoch is None and first.epoch is None
            raise PhysaxFileError(
                part.variable.path,
                f"{part.variable.name!r} must be at the same times as {first.name!r}, "
                f"{_instants(first)}, but is {_instants(part.variable)}. Write "
                f"both with the same {'times' if undated else 'dates'}.",
            )
    return parts


def _mention_vertical(files: Sequence[StoredData]) -> None:
    """Warns of a vertical velocity that nobody asked for."""
    for data in files:
        for name in _by_standard_name(data.arrays, Z):
            warn(
                f"{data.path}: {name!r} is a vertical velocity and is not used: "
                "particles stay at their height. Name it as `w` to use it."
            )
            return


def _instants(variable: StoredVariable) -> str:
    """Says when there are data, for a message."""
    if variable.seconds is None:
        return "steady"
    epoch = variable.epoch
    begin = "" if epoch is None else f" since {epoch.date} ({epoch.calendar})"
    first, last = variable.seconds[[0, -1]]
    return f"at {variable.count} instants from {first:g} to {last:g} s{begin}"


def _same_times(a: StoredVariable, b: StoredVariable) -> bool:
    if a.seconds is None or b.seconds is None:
        return a.seconds is b.seconds
    if a.count != b.count or (a.epoch is None) != (b.epoch is None):
        return False
    later = 0.0 if a.epoch is None else seconds_between(a.epoch, b.epoch)
    # Times of other units are rounded otherwise: to milliseconds, or to microseconds
    # where the date they count from is far.
    least = np.min(np.diff(a.seconds), initial=0.1)
    return np.allclose(a.seconds, b.seconds + later, rtol=0, atol=1e-2 * least)


def _upward(variable: StoredVariable) -> float:
    """Returns the sign with which a vertical velocity is along its axis."""
    if len(variable.axes) < 3:
        return 1.0
    standard = str(variable.attributes.get("standard_name", "")).lower()
    units = str(variable.attributes.get("units", ""))
    pressure = changes_pressure(units)
    unit = variable.axes[2].unit
    if (unit == "Pa") != pressure or unit not in ("m", "Pa"):
        raise ArgumentError(
            f"{variable.name!r} must be in m/s over heights in metres, or in Pa/s over "
            f"pressures, but is in {units!r} over {variable.axes[2].name!r} in "
            f"{unit!r}."
        )
    axis = variable.axes[2]
    if axis.downward and all_negative(axis.positions):
        raise ArgumentError(
            f"The attribute `positive` of {axis.name!r} must fit its values, but is "
            f"'down' where they are {axis.positions[0]:g} to {axis.positions[-1]:g} "
            f"{unit}, as heights below the surface are: the sign of {variable.name!r} "
            "is not known. Set it to 'up' in the file, or change the signs of the "
            "values."
        )
    # Pressure increases downward, and its rate of change is along it.
    falls = standard.startswith("downward") or pressure
    return 1.0 if falls == axis.downward else -1.0


def _check_shared(parts: Sequence[VelocityPart]) -> None:
    first = parts[0].variable
    for part in parts[1:]:
        axes = part.variable.axes
        if len(axes) != len(first.axes) or not all(
            same_places(a, b) for a, b in zip(first.axes, axes, strict=True)
        ):
            raise ArgumentError(
                f"{part.variable.name!r} must be on the same points as {first.name!r} "
                "to be read as a series. A staggered grid is read by `read_velocity`."
            )
