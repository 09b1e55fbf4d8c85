"""Files and grids of velocities that are refused, with the remedy."""

import inspect

import numpy as np
import pytest

from physax import ArgumentError
from physax.io import (
    Epoch,
    MissingPackageError,
    PhysaxFileError,
    SnapshotSeries,
    _netcdf_open,
    _netcdf_variable,
    _read_velocity,
    _snapshot_series,
    read_scalar,
    read_velocity,
)
from physax.io._netcdf_open import list_files
from physax.particles import track

from .flows import LAT, LON, flow, save


def sinking(tmp_path, values, name="depth", **attributes):
    """Returns the height after 10 hours of what begins at -15 m and rises."""
    data = flow(depth=np.array(values))
    data["wo"] = data.uo * 0 + 1e-4
    data.wo.attrs |= {"standard_name": "upward_sea_water_velocity", "units": "m/s"}
    data.uo[:], data.vo[:] = 0, 0
    data.depth.attrs = {"units": "m"} | attributes
    path = save(data.rename(depth=name), tmp_path / "heights.nc")
    seeds, times = np.array([[5.0, 15.0, -15.0]]), np.array([0.0, 36000.0])
    return float(track(read_velocity(path, w="wo"), seeds, times).positions[-1, 0, 2])


HEIGHTS = (0.0, -10.0, -20.0, -30.0)


@pytest.mark.parametrize("name", ["depth", "z", "lev"])
@pytest.mark.parametrize("attributes", [{}, {"positive": "up"}])
def test_what_rises_comes_nearer_to_the_surface(tmp_path, name, attributes):
    end = sinking(tmp_path, HEIGHTS, name, **attributes)
    assert end == pytest.approx(-15 + 1e-4 * 36000, rel=1e-5)


def test_heights_below_the_surface_that_say_down_are_refused_with_w(tmp_path):
    wanted = r"`positive` of 'depth' must fit .*'down' where they are -30 to 0 m"
    with pytest.raises(ArgumentError, match=wanted):
        sinking(tmp_path, HEIGHTS, positive="down")
    with pytest.warns(match="'wo' is a vertical velocity and is not used"):
        field = read_velocity(tmp_path / "heights.nc")
    assert field.downward == (False, False, True)


def test_faulty_files_are_refused(tmp_path):
    path = save(flow(), tmp_path / "a.nc")
    with pytest.raises(
        PhysaxFileError, match=r"variable 'u', but there are lat, lon, uo"
    ):
        read_velocity(path, u="u")
    with pytest.raises(PhysaxFileError, match="along y must be named, `v=...`: none"):
        read_velocity(save(flow()[["uo"]], tmp_path / "b.nc"))
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_velocity(tmp_path / "none.nc")
    with pytest.raises(PhysaxFileError, match="It must match files, but matches none"):
        read_velocity(str(tmp_path / "x*.nc"))
    with pytest.raises(ArgumentError, match="`paths` must name at least one file"):
        read_velocity([])
    for wrong, kind in ((flow(), "is a Dataset"), ([flow().uo], "holds a DataArray")):
        with pytest.raises(
            ArgumentError, match=rf"must be names of files, but {kind}\. Write it to a"
        ):
            inspect.unwrap(list_files)(wrong)
    with pytest.raises(ArgumentError, match="must be names of files, but is a int.$"):
        inspect.unwrap(list_files)(3)
    (tmp_path / "c.nc").write_bytes(path.read_bytes()[:1000])
    with pytest.raises(PhysaxFileError, match="It cannot be read"):
        read_velocity(tmp_path / "c.nc")
    (tmp_path / "c.npz").write_bytes(b"PK")
    with pytest.raises(PhysaxFileError, match="not a valid npz file"):
        read_velocity(tmp_path / "c.npz", axes=("x",))
    (tmp_path / "c.txt").write_text("")
    with pytest.raises(PhysaxFileError, match=r"files in the folder, as '\*.nc'"):
        read_velocity(tmp_path)
    (tmp_path / "d.nc").write_text("no NetCDF")
    with pytest.raises(PhysaxFileError, match=r"read: [^.\n]*\. If the file is"):
        read_velocity(tmp_path / "d.nc")
    with pytest.raises(PhysaxFileError, match=r"suffix must be one of .nc"):
        read_velocity(tmp_path / "c.txt")


def test_dates_that_units_round_otherwise_are_the_same(tmp_path):
    # 02:24 of each day, in days and in hours since long before.
    days = np.arange(9.0) + 0.1
    far = (days + 36890) * 24
    dated = (days, "days since 2001-01-01"), (far, "hours since 1900-01-01")
    assert read_velocity(apart(tmp_path, *dated)).epoch.date == "2001-01-01T02:24:00"


def apart(folder, u, v, **calendar):
    """Writes both components to files of their own, at times of some units."""
    return [
        save(flow(times=t, units=units, **calendar)[[name]], folder / f"{name}.nc")
        for name, (t, units) in (("uo", u), ("vo", v))
    ]


@pytest.mark.parametrize("first", ["2001-03-01T00:00:00", "1996-10-01T00:00:00"])
def test_dates_at_the_ends_of_months_are_the_same(tmp_path, first):
    # Since 16:34 they are no binary fractions of days, and round to a little before.
    dated = []
    for since in ("1950-01-01T16:34:00", "1950-01-01T00:00:00"):
        seconds = (np.datetime64(first) - np.datetime64(since)).astype(float)
        days = seconds / 86400 + np.arange(9.0)
        dated.append((days, f"days since {since.replace('T', ' ')}"))
    assert read_velocity(apart(tmp_path, *dated)).epoch.date == first
    # Whole milliseconds, and times 0.4 ms later.
    since = "milliseconds since 2000-01-01"
    odd = days + 0.4e-3 / 86400, dated[1][1]
    whole = (np.datetime64(first) - np.datetime64("2000-01-01T00:00:00")).astype(int)
    read_velocity(apart(tmp_path, odd, (1000 * (whole + 86400 * np.arange(9)), since)))


@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day"])
def test_frames_of_a_camera_are_paired_by_their_dates(tmp_path, calendar):
    # 10 kHz, in milliseconds and in seconds since another date, 24 hours before.
    frames, since = np.arange(9) * 0.1, "milliseconds since 2020-01-16"
    same = 86400 + frames * 1e-3, "seconds since 2020-01-15"
    cal = {"calendar": calendar}
    read_velocity(apart(tmp_path, (frames, since), same, **cal))
    for late in (0.1, 0.5, 86_400_000):
        with pytest.raises(PhysaxFileError, match=r"Write both with the same dates\."):
            read_velocity(
                apart(tmp_path, (frames, since), (frames + late, since), **cal)
            )


def test_components_without_dates_need_the_same_times(tmp_path):
    days = np.arange(9.0)
    paths = apart(tmp_path, (days, "days"), (days + 1, "days"))
    with pytest.raises(PhysaxFileError, match=r"Write both with the same times\.$"):
        read_velocity(paths)


@pytest.mark.parametrize("first", [0, 1])
def test_a_component_without_dates_is_not_paired_with_one_that_has_some(
    tmp_path, first
):
    days = np.arange(9.0)
    kinds = [(days, "days since 2001-01-01"), (days, "days")]
    paths = apart(tmp_path, kinds[first], kinds[1 - first])
    same = r"'vo' must be at the same times .* since 2001-01-01.*with the same dates\.$"
    with pytest.raises(PhysaxFileError, match=same):
        read_velocity(paths)


@pytest.mark.filterwarnings("ignore:Unable to decode time axis")
@pytest.mark.parametrize("calendar", ["standard", "noleap"])
def test_components_of_different_ages_are_refused(tmp_path, calendar):
    # In 1500 there are no dates of NumPy in nanoseconds.
    days, cal = np.arange(9.0), {"calendar": calendar}
    old, new = (days, "days since 1500-01-01"), (days, "days since 2001-01-01")
    for one, other in ((old, new), (new, old)):
        paths = apart(tmp_path, one, other, **cal)
        with pytest.raises(PhysaxFileError, match="'vo' must be at the same times as"):
            read_velocity(paths)
    assert read_velocity(apart(tmp_path, old, old, **cal)).epoch.calendar == calendar


def test_dates_in_two_names_of_one_calendar_are_the_same(tmp_path):
    days, units = np.arange(9.0), "days since 2001-01-01"
    paths = apart(tmp_path, (days, units), (days, units))
    save(
        flow(times=days, units=units, calendar="proleptic_gregorian")[["vo"]], paths[1]
    )
    assert read_velocity(paths).epoch == Epoch("2001-01-01T00:00:00")
    late = Epoch("2000-12-31T00:00:00", "proleptic_gregorian")
    assert np.allclose(
        read_scalar(paths[0], "uo", epoch=late).times, days * 86400 + 86400
    )


@pytest.mark.filterwarnings("ignore:Unable to decode time axis")
@pytest.mark.parametrize(
    "epoch", [Epoch("2001-01-01T00:00:00", "noleap"), Epoch("1500-01-01T00:00:00")]
)
def test_a_date_that_cannot_be_compared_with_a_file_s_is_refused(tmp_path, epoch):
    path = save(flow(times=np.arange(2.0)), tmp_path / "a.nc")
    with pytest.raises(
        ArgumentError,
        match=r"`epoch` must be in the file's calendar, 'standard', and near its first "
        rf"date, 2001-03-01T00:00:00, but is {epoch.date} in '{epoch.calendar}'\.",
    ):
        read_scalar(path, "uo", epoch=epoch)


@pytest.mark.parametrize(
    "read",
    [read_velocity, SnapshotSeries, lambda paths: read_scalar(paths, "uo")],
    ids=["velocity", "series", "scalar"],
)
@pytest.mark.parametrize(
    ("one", "other"),
    [("noleap", "360_day"), ("standard", "noleap"), ("360_day", "standard")],
)
def test_files_of_different_calendars_are_refused(tmp_path, read, one, other):
    pytest.importorskip("cftime")
    paths = []
    for month, calendar in ((3, one), (4, other)):
        units = f"days since 2001-{month:02}-01"
        data = flow(times=np.array([0.0, 1]), units=units, calendar=calendar)
        paths.append(save(data, tmp_path / f"{calendar}.nc"))
    with pytest.raises(
        PhysaxFileError,
        match=rf"{other}\.nc: Its times must be in the calendar of .*{one}\.nc, "
        rf"'{one}', but are in '{other}'\. Rewrite one .*convert_calendar\('{one}'\)",
    ):
        read(paths)


def test_times_without_a_date_beside_dates_are_refused(tmp_path):
    dated = save(flow(times=np.array([0.0, 1])), tmp_path / "a.nc")
    plain = save(flow(times=np.array([2.0, 3]), units="days"), tmp_path / "b.nc")
    with pytest.raises(PhysaxFileError, match=r"b\.nc: .*must be dates as in .*a\.nc"):
        read_velocity([dated, plain])
    with pytest.raises(PhysaxFileError, match="must have no date as in .* are dates"):
        read_velocity([plain, dated])


def test_components_of_different_dates_are_refused(tmp_path):
    # Their seconds since the first instant are the same.
    paths = []
    for name, year in (("uo", 2001), ("vo", 2005)):
        data = flow(times=np.array([0.0, 1]), units=f"days since {year}-03-01")
        paths.append(save(data[[name]], tmp_path / f"{name}.nc"))
    with pytest.raises(
        PhysaxFileError,
        match=r"'vo' must be at the same times as 'uo', at 2 instants from 0 to 86400 "
        r"s since 2001-03-01T00:00:00 \(standard\), but is at .* since 2005-03-01",
    ):
        read_velocity(paths)


@pytest.mark.parametrize(
    "read",
    [read_velocity, SnapshotSeries, lambda p, **names: read_scalar(p, "uo", **names)],
    ids=["velocity", "series", "scalar"],
)
@pytest.mark.parametrize(("name", "value"), [("axes", ["nope"]), ("time", "nope")])
def test_names_of_coordinates_are_refused_where_dimensions_have_names(
    tmp_path, read, name, value
):
    path = save(flow(), tmp_path / "a.nc")
    with pytest.raises(
        ArgumentError, match=rf"`{name}` must be left out of NetCDF and .*nope'"
    ):
        read(path, **{name: value})


def test_a_component_that_is_named_twice_is_refused(tmp_path):
    path = save(flow(), tmp_path / "a.nc")
    with pytest.raises(ArgumentError, match="`u`, `v` and `w` must .* 'uo', 'uo'"):
        read_velocity(path, "uo", "uo")


def test_grids_that_cannot_be_understood_are_refused(tmp_path):
    wild = flow(lon=np.array([0.0, 20.0, 10.0]))
    with pytest.raises(PhysaxFileError, match="along `lon` must be monotonic"):
        read_velocity(save(wild, tmp_path / "a.nc"))
    more = flow().expand_dims(member=[1.0, 2.0])
    path = save(more, tmp_path / "b.nc")
    with pytest.raises(PhysaxFileError, match=r"dimension 'member'. .* with `select`"):
        read_velocity(path)
    assert read_velocity(path, select={"member": 2.0}).spherical
    bent = flow().rename(lat="j", lon="i").drop_vars(["i", "j"])
    for name in ("lon", "lat"):
        values = np.ones((LAT.size, LON.size))
        bent[name] = (("j", "i"), values, {"standard_name": f"{name}gitude"[:9]})
    with pytest.raises(PhysaxFileError, match="lat, lon have two dim.*Mesh.structured"):
        read_velocity(save(bent, tmp_path / "c.nc"))
    dated = flow(times=np.array([0.0, 1.0]), units="fortnights")
    dated["time"].attrs["axis"] = "T"
    with pytest.raises(PhysaxFileError, match="unit of times must be seconds"):
        read_velocity(save(dated, tmp_path / "d.nc"))


def test_without_xarray_the_remedy_is_named(tmp_path, without):
    path = save(flow(), tmp_path / "a.nc")
    without("xarray")
    with pytest.raises(MissingPackageError, match="NetCDF .* need .* xarray: pip"):
        read_velocity(path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"snapshots": 0}, r"`snapshots` must be a slice of integers, .*, but is 0"),
        ({"snapshots": (0, 2)}, r"`snapshots` must be a slice .*, but is \(0, 2\)"),
        ({"snapshots": slice(0.0, 1)}, r"`snapshots` must be .* is slice\(0.0, 1"),
        ({"scale": "cm"}, "`scale` must be a number, but is 'cm'"),
        ({"scale": True}, "`scale` must be numbers, but holds booleans"),
        ({"scale": [1.0, 2.0]}, "`scale` must be one number, but has shape"),
        ({"select": 3}, r"`select` must be a dict of places by dim.*, but is 3"),
        ({"axes": "yx"}, r"`axes` must be a list of names, as .*, but is 'yx'"),
    ],
)
def test_arguments_of_another_kind_are_refused(tmp_path, changed, message):
    path = tmp_path / "a.npz"
    speed = np.ones((2, 3, 4))
    axes = {"y": np.arange(3.0), "x": np.arange(4.0), "t": np.arange(2.0)}
    np.savez(path, u=speed, v=speed, **axes)
    options = {"axes": ("y", "x"), "time": "t"} | changed
    with pytest.raises(ArgumentError, match=message):
        unchecked_read(path, **options)


def unchecked_read(path, **options):
    """Reads as users do, without the type checks of the tests."""
    modules = (_read_velocity, _snapshot_series, _netcdf_variable, _netcdf_open)
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            for name, made in inspect.getmembers(module, inspect.isfunction):
                patch.setattr(module, name, inspect.unwrap(made))
        return _read_velocity.read_velocity(path, **options)
