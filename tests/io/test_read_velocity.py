"""Velocities that are read: places, dates, land and units as the file has them."""

import inspect
from types import SimpleNamespace

import h5py
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, PhysaxWarning
from physax.io import Epoch, PhysaxFileError, SnapshotSeries, read_scalar, read_velocity
from physax.io._netcdf_variable import _nearest
from physax.io._speed_units import speed_factor
from physax.particles import CGridField, ParticleStatus, SlipField, sample_along, track

from .flows import DEPTH, LON, flow, save


xarray = pytest.importorskip("xarray")

DEGREE = np.radians(1) * 6_371_000.0


def at(field, *place, t=0.0):
    return np.asarray(field(jnp.asarray(t), jnp.asarray(place)))


def metres(field):
    """The velocity in m/s, before it becomes one in degrees."""
    return field.field.velocity


@pytest.mark.slow
def test_latitudes_are_flipped_and_the_globe_is_periodic(tmp_path):
    field = read_velocity(save(flow(), tmp_path / "a.nc"))
    assert field.spherical
    assert field.names == ("lon", "lat")
    assert field.periodic == (True, False)
    assert np.allclose(field.low, [0, -90])
    assert np.allclose(field.high, [360, 90])
    assert field.land is None
    for lon in (-350.0, -1.0, 10.0, 359.0, 365.0):
        assert np.allclose(at(metres(field), lon, 45.0), [45, 1], rtol=1e-5)
    assert np.allclose(at(field, 5.0, 60.0), [60 / DEGREE / 0.5, 1 / DEGREE], rtol=1e-5)
    tracks = track(field, np.array([[355.0, 0.0]]), np.array([0.0, 3600.0]))
    assert tracks.status[0] == ParticleStatus.ALIVE


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    "lon",
    [
        np.arange(-180.0, 180, 30),
        np.concatenate([np.arange(0.0, 180, 30), np.arange(-180.0, 0, 30)]),
        np.arange(0.0, 361, 30),
        np.arange(-30.0, 391, 30),
        LON.astype(np.float32) + np.float32(0.1),
    ],
)
def test_any_order_of_longitudes_goes_around_the_globe(tmp_path, lon):
    data = flow(lon)
    data["uo"] = data.uo + np.cos(np.radians(data.lon))
    field = metres(read_velocity(save(data, tmp_path / "a.nc")))
    nodes = np.arange(0.0, 360, 30) + (0.1 if lon.dtype == np.float32 else 0)
    values = [at(field, x, 30.0)[0] for x in nodes]
    assert np.allclose(values, 30 + np.cos(np.radians(nodes)), atol=2e-5)
    # Evenly spaced, also where the file has them in 32 bits.
    assert all(axis.nodes is None for axis in field.axes)


def test_a_region_has_ends(tmp_path):
    field = read_velocity(save(flow(lon=np.arange(-40.0, 41, 10)), tmp_path / "a.nc"))
    assert field.periodic == (False, False)
    assert np.all(np.isnan(at(field, 50.0, 0.0)))
    assert np.all(np.isfinite(at(field, 40.0, 0.0)))


@pytest.mark.slow
def test_packed_values_and_land(tmp_path):
    data = flow()
    data["uo"][2, 3] = data["vo"][2, 3] = np.nan
    packing = {"dtype": "int16", "scale_factor": 0.01, "_FillValue": -32768}
    path = save(data, tmp_path / "a.nc", uo=packing)
    field = read_velocity(path)
    assert np.allclose(at(metres(field), 0.0, 30.0)[0], 30, atol=0.005)
    # Row 2 from the north is 30 degrees, column 3 is 90 degrees.
    assert np.argwhere(field.land.mask).tolist() == [[3, 4]]
    assert np.array_equal(at(field, 90.0, 30.0), [0, 0])
    assert np.allclose(at(metres(field), 90.0, 45.0), [30, 0.5], atol=0.01)
    slipping = read_velocity(path, slip=1.0)
    assert isinstance(metres(slipping), SlipField)
    assert np.allclose(at(metres(slipping), 90.0, 45.0), [60, 1], atol=0.01)


@pytest.mark.parametrize(
    ("calendar", "days", "date"),
    [
        ("standard", [0.0, 31, 61], "2001-03-01T00:00:00"),
        ("noleap", [58.5, 59.5], "2001-04-28T12:00:00"),
        ("360_day", [30.0, 60.0], "2001-04-01T00:00:00"),
    ],
)
def test_dates_become_seconds(tmp_path, calendar, days, date):
    pytest.importorskip("cftime")
    path = save(flow(times=np.array(days), calendar=calendar), tmp_path / "a.nc")
    field = read_velocity(path)
    assert field.epoch == Epoch(date, calendar)
    assert np.allclose(field.times, (np.array(days) - days[0]) * 86400)
    half = 43200 * (days[1] - days[0])
    expected = 30 + 5 * (days[0] + days[1])
    assert np.allclose(at(metres(field), 0.0, 30.0, t=half)[0], expected)


def test_files_are_put_in_order_of_time(tmp_path):
    for number, (units, times) in enumerate(
        [("days since 2001-03-05", [0.0, 1]), ("hours since 2001-03-01", [0.0, 24])]
    ):
        save(flow(times=np.array(times), units=units), tmp_path / f"p{number}.nc")
    field = read_velocity(str(tmp_path / "p*.nc"))
    assert np.allclose(field.times, np.array([0, 1, 4, 5]) * 86400)
    # The second begins before the first ends: it is named, and where the other lies.
    save(flow(times=np.array([1.0, 2])), tmp_path / "q.nc")
    clash = r"q.nc: .*must increase, .* snapshots 1 and 2 are .*, the former in .*p1.nc"
    with pytest.raises(PhysaxFileError, match=clash):
        read_velocity([tmp_path / "p1.nc", tmp_path / "q.nc", tmp_path / "p0.nc"])
    back = save(flow(times=np.array([1.0, 0])), tmp_path / "back.nc")
    with pytest.raises(PhysaxFileError, match=r"0 and 1 are at 0 and -86400 s\.$"):
        read_velocity(back)
    some = read_velocity(str(tmp_path / "p*.nc"), snapshots=slice(1, 3))
    assert np.allclose(some.times, np.array([1, 4]) * 86400)
    assert read_velocity(tmp_path / "p0.nc", snapshots=slice(0, 1)).times is None
    with pytest.raises(ArgumentError, match="`snapshots` must be a slice of 4"):
        read_velocity(str(tmp_path / "p*.nc"), snapshots=slice(3, 3))


def test_components_may_lie_in_files_of_their_own(tmp_path):
    data = flow(times=np.array([0.0, 1.0]))
    paths = [save(data[[name]], tmp_path / f"{name}.nc") for name in ("uo", "vo")]
    assert np.allclose(at(metres(read_velocity(paths)), 3.0, 15.0), [15, 1])
    later = flow(times=np.array([0.0, 2.0]))[["vo"]]
    other = r"later.nc: 'vo' must be at the same times as 'uo'"
    with pytest.raises(PhysaxFileError, match=other):
        read_velocity([paths[0], save(later, tmp_path / "later.nc")])
    with pytest.raises(PhysaxFileError, match="It or the other file must have .*'wo'"):
        read_velocity(paths, w="wo")


def test_depths(tmp_path):
    data = flow(depth=DEPTH)
    data["wo"] = data.uo * 0 + 2.0
    path = save(data, tmp_path / "a.nc")
    still = metres(read_velocity(path))
    assert np.allclose(at(still, 0.0, 30.0, 5.0), [5030, 1, 0])
    # Upward where depth counts downward.
    moving = read_velocity(path, w="wo")
    assert moving.units == ("degrees", "degrees", "m")
    assert np.allclose(at(metres(moving), 0.0, 30.0, 5.0), [5030, 1, -2])
    level = read_velocity(path, select={"depth": 12.0})
    assert np.allclose(at(metres(level), 0.0, 30.0), [10030, 1])
    with pytest.raises(ArgumentError, match="`select` must name dimensions of 'uo'"):
        read_velocity(path, select={"height": 1.0})
    for depth in (-6.0, 56.0):
        with pytest.raises(ArgumentError, match="at most half a cell away"):
            read_velocity(path, select={"depth": depth})
    for depth in (-5.0, 55.0):
        read_velocity(path, select={"depth": depth})
    for none in ([1.0], "1", True, None):
        with pytest.raises(ArgumentError, match="number along 'depth', but is"):
            _nearest(DEPTH, none, "depth")
    for one in (np.array(12.0), jnp.array(12.0), data.depth[1], np.float32(12), 12):
        assert _nearest(DEPTH, one, "depth") == 1
    falling = save(data.isel(depth=slice(None, None, -1)), tmp_path / "d.nc")
    assert np.allclose(
        at(metres(read_velocity(falling, select={"depth": 12.0})), 0.0, 30.0),
        [10030, 1],
    )
    with pytest.raises(ArgumentError, match="which goes from 0 to 40, but is 56"):
        read_velocity(falling, select={"depth": 56.0})
    data["wo"].attrs["standard_name"] = "upward_sea_water_velocity"
    named = save(data, tmp_path / "c.nc")
    with pytest.warns(PhysaxWarning, match="'wo' is a vertical velocity and is"):
        read_velocity(named)
    read_velocity(named, w="wo")
    read_velocity(named, select={"depth": 0.0})
    data["wo"].attrs["units"] = "Pa/s"
    with pytest.raises(ArgumentError, match="'wo' must be in m/s over heights"):
        read_velocity(save(data, tmp_path / "b.nc"), w="wo")


def staggered(nx, ny, east):
    """NEMO's layout: u on the east and v on the north face of each cell."""
    rng = np.random.default_rng(0)
    x, y = np.arange(nx) + 0.5, np.arange(ny) + 0.5
    psi = np.zeros((nx, ny))
    psi[1:-1, 1:-1] = rng.normal(size=(nx - 2, ny - 2))
    u, v = np.zeros((nx, ny)), np.zeros((nx, ny))
    u[:, 1:], v[1:] = np.diff(psi, axis=1), -np.diff(psi, axis=0)
    u[0], v[:, 0] = np.nan, np.nan
    shift = 0.5 if east else -0.5
    return xarray.Dataset(
        {"u": (("y", "x_u"), u.T), "v": (("y_v", "x"), v.T)},
        {"x": x, "y": y, "x_u": ("x_u", x + shift, {"axis": "X"}),
         "y_v": ("y_v", y + shift, {"axis": "Y"})},
    )  # fmt: skip


def test_staggered_components_make_a_c_grid(tmp_path):
    field = read_velocity(save(staggered(9, 8, east=True), tmp_path / "a.nc"))
    assert isinstance(field.field, CGridField)
    assert not field.spherical
    assert np.allclose(field.low, [1, 1])
    assert np.allclose(field.high, [9, 8])
    seeds = np.random.default_rng(1).uniform([1.1, 1.1], [8.9, 7.9], (50, 2))
    tracks = track(field, seeds, np.array([0.0, 10.0]), dt=0.05)
    assert np.all(tracks.status == ParticleStatus.ALIVE)


@pytest.mark.parametrize("kind", ["npz", "h5"])
def test_plain_arrays(tmp_path, kind):
    x, y, t = np.linspace(0, 1e-4, 11, dtype=np.float32), np.arange(4.0), np.arange(3.0)
    u = np.add.outer(10 * t, np.add.outer(x, y))
    arrays = {"x": x, "y": y, "t": t, "flow/u": u, "flow/v": 2 * u}
    path = tmp_path / f"a.{kind}"
    if kind == "npz":
        np.savez(path, **arrays)
    else:
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    names = {"u": "flow/u", "v": "flow/v", "axes": ("x", "y"), "time": "t"}
    field = read_velocity(path, **names)
    assert field.epoch is None
    assert field.units == ("m", "m")
    assert field.field.axes[0].nodes is None
    assert np.allclose(at(field, 5e-5, 1.5, t=0.5), [6.50005, 13.0001])
    with pytest.raises(ArgumentError, match="`axes` must name the arrays .* there are"):
        read_velocity(path)
    with pytest.raises(PhysaxFileError, match="one-dimensional array 'z', but has"):
        read_velocity(path, axes=("x", "z"))


def test_zarr_is_read_like_netcdf(tmp_path):
    pytest.importorskip("zarr")
    flow().to_zarr(tmp_path / "a.zarr", consolidated=False)
    assert np.allclose(at(metres(read_velocity(tmp_path / "a.zarr")), 0.0, 45.0)[0], 45)


def test_a_series_reads_one_instant_at_a_time(tmp_path):
    data = flow(times=np.array([0.0, 1.0, 2.0]))
    data["uo"][:, 0, 0] = data["vo"][:, 0, 0] = np.nan
    path = save(data, tmp_path / "a.nc")
    whole = metres(read_velocity(path)).values
    with SnapshotSeries(path) as series:
        assert np.allclose(series.times, np.arange(3) * 86400)
        assert len(series) == 3
        assert series.periods == (360.0, None)
        assert series.epoch.date == "2001-03-01T00:00:00"
        for i in range(3):
            assert np.array_equal(series(i), whole[i])
        assert series.land().mask.sum() == 1
        assert np.isnan(series.read(1, 2)[0, 0, -1, 0])
        with pytest.raises(ArgumentError, match="`number` must be one of 3 instants"):
            series(3)
    save(staggered(9, 8, east=False), tmp_path / "b.nc")
    with pytest.raises(ArgumentError, match="A staggered grid is read by"):
        SnapshotSeries(tmp_path / "b.nc")


def test_scalars_are_sampled_along_tracks(tmp_path):
    data = flow(times=np.array([0.0, 1.0]))
    data["thetao"] = data.uo * 0 + 20 - data.lat / 10
    data["thetao"][:, 0] = np.nan
    path = save(data, tmp_path / "a.nc")
    field = read_velocity(path)
    warmth = read_scalar(path, "thetao", epoch=field.epoch)
    # North of 60 degrees there are no data, and the value is that at 60.
    assert warmth.land.mask.sum() == LON.size
    assert np.allclose(at(warmth, 10.0, 80.0), 14)
    # Beyond a pole latitudes of tracks go on: 230 degrees are 50 degrees south.
    assert np.allclose(at(warmth, 10.0, -130.0), 25)
    assert np.allclose(at(warmth, 10.0, 230.0), 25)
    tracks = track(
        field, np.array([[0.0, 10.0], [20.0, -50.0]]), np.array([0.0, 86400.0])
    )
    found = sample_along(warmth, tracks)
    assert np.allclose(found, 20 - tracks.positions[..., 1] / 10, rtol=1e-5)
    # A day earlier, time 0 is a day later.
    late = read_scalar(path, "thetao", epoch=Epoch("2001-02-28T00:00:00"))
    assert np.allclose(late.times, [86400, 172800])


def test_units_of_speed(tmp_path):
    data = flow()
    data["uo"].attrs["units"] = "cm/s"
    path = save(data, tmp_path / "a.nc")
    assert np.allclose(at(metres(read_velocity(path)), 0.0, 45.0), [0.45, 1])
    assert np.allclose(at(metres(read_velocity(path, scale=2.0)), 0.0, 45.0), [90, 2])
    assert read_velocity(path).unitless == ("vo",)
    assert read_velocity(path, scale=2.0).unitless == ()
    for wrong in ("furlong", "Pa/s", "Mm/s"):
        data["uo"].attrs["units"] = wrong
        with pytest.raises(ArgumentError, match="unit of 'uo' must be a unit of speed"):
            read_velocity(save(data, tmp_path / "b.nc"))


@pytest.mark.parametrize(
    ("worth", "spellings"),
    [
        (1, "m/s,m s-1,m s^-1,m s**-1,m.s-1,m*s-1,meter second-1,m/sec,m·s⁻¹"),
        (1, "m s\N{MINUS SIGN}1"),
        (1 / 86400, "m/day,m day-1,m d-1,m/d,meters per day,metre day^-1"),
        (0.01, "cm/s,cm s-1,cm.s-1,centimeter/second"),
        (0.01 / 86400, "cm day-1,cm/day"),
        (1e-3, "mm/s,mm s-1"),
        (1e3 / 86400, "km/day,km d-1"),
        (1 / 3.6, "km/h,km h-1,km hr-1"),
        (1e-3 / 3600, "mm/h,mm hour-1"),
        (1 / 60, "m/min,m min-1"),
    ],
)
def test_spellings_of_lengths_per_time(worth, spellings):
    def factor(units):
        variable = SimpleNamespace(name="w", units=units)
        return inspect.unwrap(speed_factor)(variable, None, vertical=True)

    for units in spellings.split(","):
        assert factor(units) == pytest.approx(worth)
    assert factor("hPa/h") == pytest.approx(1 / 36)


def test_each_component_keeps_its_own_unit(tmp_path):
    # As files of biogeochemical models have them.
    data = flow(depth=DEPTH)
    data["wo"] = data.vo.assign_attrs(units="m day-1")
    path = save(data, tmp_path / "a.nc")
    velocity = at(metres(read_velocity(path, w="wo")), 0.0, 45.0, 10.0)
    # Upward, where depth increases downward.
    assert np.allclose(velocity, [10045, 1, -1 / 86400], rtol=1e-5)
    data["wo"].attrs["units"] = "furlong day-1"
    message = (
        "'wo' must be .* m day-1, but is 'furlong day-1'. Correct `units` in the file; "
        "or, if all components have one unit, .* `scale`, which replaces the units of"
    )
    with pytest.raises(ArgumentError, match=message):
        read_velocity(save(data, tmp_path / "b.nc"), w="wo")


def test_the_largest_speed_is_that_of_all_instants(tmp_path):
    data = flow(times=np.array([0.0, 3.0, 7.0]))
    data["uo"][0, 0, 0] = np.nan
    data["uo"][1, 1, 1] = -700.0
    path = save(data, tmp_path / "a.nc")
    with pytest.warns(PhysaxWarning, match="'uo' has no data at some of the 3 inst"):
        assert np.allclose(read_velocity(path).largest, [700, 1])


def test_a_variable_without_any_data_is_refused(tmp_path):
    data = flow(times=np.array([0.0, 3.0, 7.0]))
    data["vo"] = data.vo * np.nan
    path = save(data, tmp_path / "a.nc")
    for read in (read_velocity, lambda path: read_scalar(path, "vo")):
        with pytest.raises(PhysaxFileError, match="'vo' must have data at some node"):
            read(path)
    message = "It must have data at some node of its first .* all of 'vo' are"
    told = pytest.raises(PhysaxFileError, match=message)
    with SnapshotSeries(path) as series, told:
        series.land()


@pytest.mark.parametrize("suffix", [".nc", ".zarr", ".h5"])
def test_damaged_chunks_are_told_of_by_file_and_name(tmp_path, suffix):
    data, path = flow(times=np.arange(3.0)), tmp_path / f"a{suffix}"
    data["uo"].values[:] = np.random.default_rng(0).normal(size=data.uo.shape)
    options = {}
    if suffix == ".zarr":
        data.to_zarr(path, consolidated=False)
        (chunk,) = [p for p in (path / "uo" / "c").rglob("*") if p.is_file()]
        chunk.write_bytes(chunk.read_bytes()[:50])
    else:
        packed = {"zlib": True, "chunksizes": data.uo.shape}
        data.to_netcdf(path, engine="h5netcdf", encoding={"uo": packed})
        with h5py.File(path) as file:
            place = file["uo"].id.get_chunk_info(0)
        whole = bytearray(path.read_bytes())
        middle = slice(place.byte_offset + 20, place.byte_offset + place.size)
        whole[middle] = bytes(b ^ 255 for b in whole[middle])
        path.write_bytes(bytes(whole))
    if suffix == ".h5":
        options = {"u": "uo", "v": "vo", "axes": ["lat", "lon"], "time": "time"}
    with pytest.raises(PhysaxFileError, match=f"a{suffix}.*'uo' cannot be read: ."):
        read_velocity(path, **options)
