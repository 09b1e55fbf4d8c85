"""Reads velocities and scalars from NetCDF, zarr, HDF5 and npz files."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from numbers import Integral
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float
from scipy.ndimage import distance_transform_edt

from .._checks import ArgumentError, as_array
from ..grid import AbstractInterpolation, AbstractOutside, Clamp, Linear
from ..particles import (
    EARTH_RADIUS,
    AbstractField,
    GriddedField,
    Land,
    Leave,
    OnSphere,
    SlipField,
    fill_land,
)
from ..particles._sphere import unfolded
from ..runtime import check_memory
from ._gaps import as_gaps, bridged, largest_of, warn_of_gaps, warn_of_land
from ._netcdf_open import Paths
from ._netcdf_time import Epoch, seconds_since
from ._netcdf_variable import StoredVariable, find_variable, same_places
from ._snapshot_series import VelocityPart, open_files, velocity_parts
from ._staggered import staggered_field


_LINEAR = Linear()


class StoredField(AbstractField):
    """A field that was read from files, and what these say about it.

    It may carry particles, or be sampled along their tracks, as it is: on a sphere also
    beyond a pole, where latitudes of tracks go on. Time is in seconds since `epoch`;
    without dates in the files, as these have it.

    Attributes:
        field: The field.
        land: Where the files have no data at any time, `None` if they have everywhere.
        epoch: The date of time 0.
        names: Of the coordinates, as the files call them.
        units: Of the coordinates: `"degrees"`, `"m"` or `"Pa"`.
        spherical: Whether positions are longitude and latitude in degrees.
        periodic: For each axis whether the field repeats.
        downward: For each axis whether it increases downward, as depths do.
        cells: For each axis the number of cells between nodes.
        low: The smallest coordinates that have data.
        high: The largest ones.
        times: The instants that were read, `None` of a steady field.
        largest: Of each component in the files the largest magnitude, in m/s or, of a
            scalar, in the unit of the file; NaN where there are no data at all.
        unitless: Components whose unit the files do not say: they were taken to be in
            m/s.
    """

    field: AbstractField
    land: Land | None
    low: Float[Array, " ndim"]
    high: Float[Array, " ndim"]
    times: Float[Array, " times"] | None
    largest: Float[Array, " components"]
    epoch: Epoch | None = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    spherical: bool = eqx.field(static=True)
    periodic: tuple[bool, ...] = eqx.field(static=True)
    downward: tuple[bool, ...] = eqx.field(static=True)
    cells: tuple[int, ...] = eqx.field(static=True)
    unitless: tuple[str, ...] = eqx.field(static=True)

    def start(self, x):
        return self.field.start(self._within(x))

    def look(self, t, x, memory):
        return self.field.look(t, self._within(x), memory)

    def _within(self, x):
        """Returns the place where a scalar on a sphere has it, if beyond a pole."""
        folds = self.spherical and not isinstance(self.field, OnSphere)
        return unfolded(x)[0] if folds else x

    def span(self):
        return self.field.span()


def read_velocity(
    paths: Paths,
    u: str | None = None,
    v: str | None = None,
    w: str | None = None,
    *,
    axes: Sequence[str] | None = None,
    time: str | None = None,
    select: Mapping[str, float] | None = None,
    snapshots: slice | None = None,
    scale: float | None = None,
    gaps: float | None = None,
    slip: float | None = None,
    radius: float = EARTH_RADIUS,
    method: AbstractInterpolation = _LINEAR,
    time_method: AbstractInterpolation = _LINEAR,
    time_period: float | None = None,
    outside: Clamp | Leave | None = None,
    time_outside: AbstractOutside | Leave | None = None,
) -> StoredField:
    """Reads a velocity on a grid of straight axes, steady or at instants of time.

    NetCDF and zarr files are understood by the CF conventions: what is longitude,
    latitude, height or time is known by `standard_name`, `axis`, `units`, `positive`,
    or else by name. Packed values are unpacked; missing ones are those beyond
    `valid_min`, `valid_max` or `valid_range`, too, and the default fill of netCDF.
    Falling axes are flipped; longitudes that go around the globe are periodic; radians
    become degrees, and dates of any calendar seconds since the first; times without a
    unit count as seconds. Variables may lie in several files, and each may be cut in
    time. A component that lies on points of its own, on faces of the cells of others,
    makes a `CGridField`.

    A node where a component has no data at any instant is land, and the velocity there
    is 0. A node that has data at some instants has gaps: they stay NaN, which ends
    particles with the status `NOT_FINITE`, and a warning counts them; `gaps` bridges
    them.

    Over longitude and latitude the velocity becomes one of degrees per second
    (`OnSphere`). Vertical velocities are upward unless `standard_name` says downward;
    where heights count downward, as depths and pressures do, the sign is changed. What
    is called depth counts upward where all values are negative and `positive` is not
    given; where that says the opposite, a vertical velocity is refused.
    Without `w`, particles in three dimensions stay at their height.

    Args:
        paths: A file (`.nc`, `.zarr`, `.h5`, `.npz`), a pattern, or several.
        u: Name of the component along x or eastward; found by its name or
            `standard_name` if `None`.
        v: Name of the component along y or northward.
        w: Name of the vertical component, not searched for; a warning tells of one
            that the files have.
        axes: Of HDF5 and npz files, where dimensions have no names, the names of the
            arrays of coordinates in the order of dimensions; of no others.
        time: Of such files, the name of the array of times, the first dimension.
        select: For dimensions that are not used, where to take the nearest sample:
            `{"depth": 10.0}`, in the unit of the file. Refused more than half a cell
            beyond them.
        snapshots: Which instants to read, as `slice(0, 2)`; one makes a steady flow.
        scale: What a number is in m/s, of all components in place of their `units`. By
            default these say; without it is in m/s, as `unitless` of the result says.
        gaps: The longest time, in seconds, between two instants with data over which a
            node that has none in between is interpolated linearly. `math.inf` bridges
            all gaps, and holds the first and the last data of a node before and after.
        slip: How particles slide along land, as in `SlipField`; without it the velocity
            decreases to 0 toward land.
        radius: Of the sphere, in metres.
        method: The interpolation in space.
        time_method: The interpolation in time.
        time_period: The time after which the flow repeats, in seconds.
        outside: As in `GriddedField`.
        time_outside: As in `GriddedField`.

    Returns:
        The velocity.

    Raises:
        PhysaxFileError: If a file is damaged, has no such variable, or cannot be
            understood; lists what there is.
        MissingPackageError: If xarray or cftime is needed and not installed.
        ArgumentError: If an argument is out of its range or a unit is not known.
        MemoryLimitError: If the samples do not fit into memory; read fewer
            `snapshots`, or one by one with `SnapshotSeries`.
    """
    longest = as_gaps(gaps)
    with ExitStack() as stack:
        files = open_files(paths, axes, time, stack)
        parts = velocity_parts(files, u, v, w, select or {}, scale)
        first, last = _chosen(parts[0].variable, snapshots)
        read = [_samples(part, first, last) for part in parts]
    variables = [part.variable for part in parts]
    largest = largest_of(variables, read)
    lead = variables[0]
    times = _times(lead, first, last)
    read = [bridged(values, times, longest) for values in read]
    warn_of_gaps(variables, read, times, longest)
    periods = tuple(axis.period for axis in lead.axes)
    options: dict[str, Any] = {
        "time_period": time_period,
        "outside": outside,
        "time_outside": time_outside,
    }
    if all(_same(lead, other) for other in variables[1:]):
        leading = 0 if times is None else 1
        warn_of_land(variables, read, leading)
        read += [np.zeros_like(read[0])] * (len(lead.axes) - len(read))
        values = np.stack(read, -1)
        nodes = [axis.positions for axis in lead.axes]
        values, land = fill_land(
            values, nodes, periods=periods, leading=leading, trailing=1
        )
        options["periods"] = periods
        if slip is None or land is None:
            options |= {"method": method, "time_method": time_method}
            field: AbstractField = GriddedField(values, nodes, times, **options)
        else:
            field = SlipField(values, nodes, times, dry=land.mask, slip=slip, **options)
        places: Sequence[np.ndarray] = nodes
    else:
        if len(read) < len(lead.axes):
            raise ArgumentError(
                f"`w` must be given where {variables[1].name!r} lies on other points "
                f"than {lead.name!r}, on a grid of three axes. To read one level, "
                "`select` it."
            )
        options["time_method"] = time_method
        field, places = staggered_field(variables, read, times, options)
        land = None
    if lead.spherical:
        field = OnSphere(field, radius)
    unitless = [] if scale is not None else [v.name for v in variables if not v.units]
    return _stored(field, land, places, lead, times, largest, unitless=unitless)


def read_scalar(
    paths: Paths,
    name: str,
    *,
    axes: Sequence[str] | None = None,
    time: str | None = None,
    select: Mapping[str, float] | None = None,
    snapshots: slice | None = None,
    epoch: Epoch | None = None,
    gaps: float | None = None,
    method: AbstractInterpolation = _LINEAR,
    time_method: AbstractInterpolation = _LINEAR,
    time_period: float | None = None,
    outside: AbstractOutside | Leave | None = None,
    time_outside: AbstractOutside | Leave | None = None,
) -> StoredField:
    """Reads a scalar such as temperature or salinity, in the unit of the file.

    Files are understood as by `read_velocity`. Where there are no data at any instant,
    the value is that of the nearest place that has some: `land` says where. It is NaN
    where they are missing at some instants, unless `gaps` bridges these.

    Args:
        paths: A file, a pattern, or several.
        name: Of the variable.
        axes: As for `read_velocity`.
        time: As for `read_velocity`.
        select: As for `read_velocity`.
        snapshots: As for `read_velocity`.
        epoch: The date of time 0, such as that of the velocity; the first instant of
            this variable if `None`.
        gaps: As for `read_velocity`.
        method: The interpolation in space.
        time_method: The interpolation in time.
        time_period: The time after which it repeats, in seconds.
        outside: As in `GriddedField`.
        time_outside: As in `GriddedField`.

    Returns:
        The scalar.

    Raises:
        PhysaxFileError: As for `read_velocity`.
        MissingPackageError: As for `read_velocity`.
        ArgumentError: If an argument is out of its range.
        MemoryLimitError: If the samples do not fit into memory.
    """
    longest = as_gaps(gaps)
    with ExitStack() as stack:
        files = open_files(paths, axes, time, stack)
        variable = find_variable(files, name, select or {})
        first, last = _chosen(variable, snapshots)
        values = _samples(VelocityPart(variable, 1.0), first, last)
    largest = largest_of([variable], [values])
    times = _times(variable, first, last)
    if times is not None and epoch is not None:
        times = times + seconds_since(epoch, variable.epoch)
    values = bridged(values, times, longest)
    warn_of_gaps([variable], [values], times, longest)
    nodes = [axis.positions for axis in variable.axes]
    periods = tuple(axis.period for axis in variable.axes)
    leading = 0 if times is None else 1
    land = fill_land(values, nodes, periods=periods, leading=leading)[1]
    field = GriddedField(
        _spread(values, leading, land),
        nodes,
        times,
        periods=periods,
        time_period=time_period,
        method=method,
        time_method=time_method,
        outside=outside,
        time_outside=time_outside,
    )
    epoch = epoch or variable.epoch
    return _stored(field, land, nodes, variable, times, largest, epoch)


def _stored(
    field: AbstractField,
    land: Land | None,
    places: Sequence[np.ndarray],
    lead: StoredVariable,
    times: np.ndarray | None,
    largest: np.ndarray,
    epoch: Epoch | None = None,
    unitless: Sequence[str] = (),
) -> StoredField:
    low = np.array([axis[0] for axis in places])
    high = np.array(
        [
            axis[-1] if planned.period is None else axis[0] + planned.period
            for axis, planned in zip(places, lead.axes, strict=True)
        ]
    )
    return StoredField(
        field=field,
        land=land,
        low=as_array(low),
        high=as_array(high),
        times=None if times is None else as_array(times),
        largest=as_array(largest),
        epoch=epoch or lead.epoch,
        names=tuple(axis.name for axis in lead.axes),
        units=tuple(axis.unit for axis in lead.axes),
        spherical=lead.spherical,
        periodic=tuple(axis.period is not None for axis in lead.axes),
        downward=tuple(axis.downward for axis in lead.axes),
        cells=tuple(
            max(axis.positions.size - (axis.period is None), 1) for axis in lead.axes
        ),
        unitless=tuple(unitless),
    )


def _spread(values: np.ndarray, leading: int, land: Land | None) -> np.ndarray:
    """Gives nodes without data the value of the nearest one that has some."""
    if land is None:
        return values
    dry = np.asarray(land.mask)
    nearest = distance_transform_edt(dry, return_distances=False, return_indices=True)
    return values[(slice(None),) * leading + tuple(np.asarray(nearest))]


def _chosen(variable: StoredVariable, snapshots: slice | None) -> tuple[int, int]:
    """Returns the first instant that is read, and one more than the last."""
    if snapshots is None:
        return 0, variable.count
    if not isinstance(snapshots, slice) or not all(
        end is None or isinstance(end, Integral)
        for end in (snapshots.start, snapshots.stop, snapshots.step)
    ):
        raise ArgumentError(
            "`snapshots` must be a slice of integers, as `slice(0, 2)`, but is "
            f"{snapshots!r}. The first alone is `slice(0, 1)`."
        )
    first, last, step = snapshots.indices(variable.count)
    if step != 1 or last <= first:
        raise ArgumentError(
            f"`snapshots` must be a slice of {variable.count} instants without a step, "
            f"but is {snapshots}."
        )
    return first, last


def _times(variable: StoredVariable, first: int, last: int) -> np.ndarray | None:
    if variable.seconds is None or last - first == 1:
        return None
    return variable.seconds[first:last]


def _samples(part: VelocityPart, first: int, last: int) -> np.ndarray:
    """Reads instants, without the axis of time if there is only one."""
    nodes = [axis.positions.size for axis in part.variable.axes]
    check_memory(
        (last - first) * int(np.prod(nodes)) * 8,
        f"reading {last - first} instants of {part.variable.name!r}; read fewer "
        "`snapshots`: they",
    )
    values = part.read(first, last)
    return values[0] if last - first == 1 else values


def _same(a: StoredVariable, b: StoredVariable) -> bool:
    pairs = zip(a.axes, b.axes, strict=False)
    return len(a.axes) == len(b.axes) and all(same_places(p, q) for p, q in pairs)
