import inspect
import re
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.io import (
    Epoch,
    MissingPackageError,
    PhysaxFileError,
    read_tracks,
    read_velocity,
    save_npz,
    to_xarray,
    write_tracks,
)
from physax.particles import (
    Box,
    BoxRegion,
    Outlet,
    Periodic,
    Reflect,
    Tracks,
    Variable,
    residence_time,
    track,
)

from .flows import DEPTH, flow, save


xarray = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")

TIMES = np.array([0.0, 10.0, 20.0, 30.0])


def tracks(ndim=2, *, backward=False):
    """Three particles: one goes on, one is released later, one ends at 25 s."""
    rng = np.random.default_rng(0)
    times = -TIMES if backward else TIMES
    sign = -1 if backward else 1
    positions = rng.normal(size=(4, 3, ndim))
    positions[:2, 1] = positions[0, 1]
    positions[3, 2] = 7.0
    age = rng.normal(size=(4, 3))
    age[1, 1] = age[0, 1]
    f = lambda x: jnp.asarray(x, float)  # noqa: E731
    return Tracks(
        times=f(times),
        positions=f(positions),
        velocities=f(rng.normal(size=(4, 3, ndim))),
        variables={"age": f(age)},
        status=jnp.asarray([0, 0, 4], jnp.int32),
        ended=f([np.nan, np.nan, sign * 25.0]),
        face=jnp.asarray([-1, -1, 0], jnp.int32),
        since=f([0.0, sign * 15.0, 0.0]),
        entries=jnp.asarray([0, 0, 0], jnp.int32),
    )


MOVING = np.array([[1, 1, 1, 1], [0, 0, 1, 1], [1, 1, 1, 0]], bool)


def assert_equal(a, b, *, padded):
    for name in ("times", "status", "ended", "face", "since", "entries", "positions"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype
        assert np.array_equal(x, y, equal_nan=True), name
    moving = MOVING.T if padded else np.ones((4, 3), bool)
    assert np.array_equal(a.velocities[moving], b.velocities[moving])
    # What a particle had at the hit is what one asks for.
    assert np.array_equal(a.variables["age"], b.variables["age"])


def test_npz_keeps_every_bit(tmp_path):
    write_tracks(tmp_path / "a.npz", tracks())
    assert_equal(tracks(), read_tracks(tmp_path / "a.npz"), padded=False)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("suffix", ["nc", "zarr"])
@pytest.mark.parametrize("ragged", [False, True])
def test_what_is_written_comes_back(tmp_path, suffix, ragged):
    if suffix == "zarr":
        pytest.importorskip("zarr")
    path = tmp_path / f"a.{suffix}"
    for backward in (False, True):
        given = tracks(3, backward=backward)
        write_tracks(path, given, ragged=ragged)
        assert_equal(given, read_tracks(path), padded=True)


@pytest.mark.parametrize("backward", [False, True])
def test_a_particle_that_lives_between_two_recorded_times_comes_back(
    tmp_path, backward
):
    age = Variable(lambda t, x, c: jnp.ones_like(c))
    times = np.linspace(0, 1, 6)
    release = np.array([0.05, 0.45])
    tracks = track(
        lambda t, x: jnp.array([-1.0 if backward else 1.0]),
        np.array([[0.9], [0.95]]),
        times[::-1] if backward else times,
        steps=20,
        boundary=Box([0.0], [1.0], Outlet()),
        release=1 - release if backward else release,
        variables={"age": age},
    )
    assert np.allclose(np.abs(tracks.ended - tracks.since), [0.1, 0.05], atol=1e-6)
    write_tracks(tmp_path / "fast.nc", tracks)
    read = read_tracks(tmp_path / "fast.nc")
    assert np.array_equal(read.positions, tracks.positions)
    assert np.array_equal(read.variables["age"], tracks.variables["age"])


@pytest.mark.parametrize("options", [{}, {"ragged": True}, {"spherical": True}])
@pytest.mark.parametrize("suffix", ["npz", "nc", "zarr"])
def test_the_ends_of_periodic_axes_come_back(tmp_path, suffix, options):
    if suffix == "zarr":
        pytest.importorskip("zarr")
    ends = jnp.asarray([[-np.inf, -0.1], [np.inf, 1.3]])
    for wraps in (None, ends):
        given = replace(tracks(), wraps=wraps)
        write_tracks(tmp_path / f"a.{suffix}", given, **options)
        read = read_tracks(tmp_path / f"a.{suffix}").wraps
        assert (read is None) == (wraps is None)
        if read is not None:
            assert read.dtype == ends.dtype
            assert jnp.array_equal(read, ends)


@pytest.mark.parametrize("suffix", ["npz", "nc"])
def test_residence_in_a_periodic_box_is_that_before_the_file(tmp_path, suffix):
    # At 1 m/s from 0.2 m in a box of 1 m: in the first 0.3 m until 0.1 s, and again
    # from 0.8 s on.
    box = Box([0, 0], [1, 1], [Periodic(), Reflect()])
    move = lambda t, x: jnp.array([1.0, 0.3])  # noqa: E731
    given = track(move, np.array([[0.2, 0.3]]), np.linspace(0, 1, 6), boundary=box)
    write_tracks(tmp_path / f"a.{suffix}", given)
    spent = residence_time(
        read_tracks(tmp_path / f"a.{suffix}"), BoxRegion([0, 0], [0.3, 1])
    )
    # Ten roundings of numbers of order 1, in float32.
    assert np.allclose(spent, 0.3, atol=1e-6)


def test_netcdf_follows_the_cf_conventions(tmp_path):
    path = tmp_path / "a.nc"
    epoch = Epoch("2020-02-28T12:00:00", "noleap")
    write_tracks(
        path,
        tracks(),
        spherical=True,
        epoch=epoch,
        attributes={"age": {"units": "s", "standard_name": "age"}},
    )
    with xarray.open_dataset(path, decode_times=False) as data:
        assert data.attrs["featureType"] == "trajectory"
        assert data.attrs["Conventions"].startswith("CF-1")
        assert data.trajectory.attrs["cf_role"] == "trajectory_id"
        assert data.lon.dims == ("trajectory", "obs")
        assert data.lon.attrs["standard_name"] == "longitude"
        assert data.lon.attrs["units"] == "degrees_east"
        assert data.lat.attrs["standard_name"] == "latitude"
        assert data.time.attrs["standard_name"] == "time"
        assert data.time.attrs["units"] == "seconds since 2020-02-28 12:00:00"
        assert data.time.attrs["calendar"] == "noleap"
        assert {"time", "lon", "lat"} <= set(data.age.coords)
        assert data.age.attrs["units"] == "s"
        meanings = data.status.attrs["flag_meanings"].split()
        assert meanings[data.status.attrs["flag_values"].tolist().index(4)] == "stuck"
        given = np.asarray(tracks().positions)
        assert np.array_equal(
            data.lon.values, np.where(MOVING, given[..., 0].T, np.nan), equal_nan=True
        )
        # xarray would read NaN as a date of this calendar.
        assert np.array_equal(data.time.values, np.broadcast_to(TIMES, (3, 4)))
        assert np.array_equal(data.last_lat, given[-1, :, 1])
        for variable in data.variables.values():
            assert variable.attrs["long_name"]
    pytest.importorskip("cftime")
    with xarray.open_dataset(path) as data:
        # The calendar has no 29 February.
        late = tracks().times[3]
        assert str(data.time.values[0, 3]) == f"2020-02-28 12:00:{int(late)}"


@pytest.mark.parametrize("positive", ["down", "up"])
def test_depths_are_written_as_such(positive, tmp_path):
    data = flow(depth=DEPTH)
    data.depth.attrs["positive"] = positive
    field = read_velocity(save(data, tmp_path / "a.nc"))
    write_tracks(tmp_path / "b.nc", tracks(3), field)
    with xarray.open_dataset(tmp_path / "b.nc", decode_times=False) as written:
        down = {"positive": "down"} if positive == "down" else {}
        label = {"axis": "Z", "units": "m", "long_name": "position z"}
        assert written.z.attrs.items() >= (label | down).items()
        assert ("positive" in written.z.attrs) == (positive == "down")
        assert "positive" not in written.lon.attrs


def test_ragged_files_say_how_long_each_track_is(tmp_path):
    write_tracks(tmp_path / "a.nc", tracks(), ragged=True)
    with xarray.open_dataset(tmp_path / "a.nc", decode_times=False) as data:
        assert data.row_size.values.tolist() == [4, 2, 3]
        assert data.row_size.attrs["sample_dimension"] == "obs"
        assert data.x.dims == ("obs",)
        assert data.x.attrs["units"] == "m"
        assert "no date" in data.time.attrs["comment"]


def test_faulty_requests_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match=r"`path` must end in '.npz', '.nc' or"):
        write_tracks(tmp_path / "a.csv", tracks())
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "precious").write_text("x")
    with pytest.raises(PhysaxFileError, match="must be a zarr store to be replaced"):
        write_tracks(tmp_path / "a.zarr", tracks())
    assert (tmp_path / "a.zarr" / "precious").exists()
    for name in ("z.npz", "z.nc", "z.zarr"):
        if name == "z.zarr":
            pytest.importorskip("zarr")
        with pytest.raises(FileNotFoundError, match=r"no folder '.*nodir'\. Make it"):
            write_tracks(tmp_path / "nodir" / name, tracks())
    assert not (tmp_path / "nodir").exists()
    with pytest.raises(ArgumentError, match="`date` must have the form '1970"):
        Epoch("yesterday")
    with pytest.raises(FileNotFoundError):
        read_tracks(tmp_path / "b.nc")
    save_npz(tmp_path / "b.npz", {"a": 1})
    with pytest.raises(PhysaxFileError, match="must hold tracks, but"):
        read_tracks(tmp_path / "b.npz")
    xarray.Dataset({"a": ("x", [1.0])}).to_netcdf(tmp_path / "c.nc", engine="h5netcdf")
    with pytest.raises(PhysaxFileError, match="lacks 'recorded_times'"):
        read_tracks(tmp_path / "c.nc")
    (tmp_path / "d.nc").write_bytes(b"no file")
    # One line, without the advice of xarray.
    with pytest.raises(PhysaxFileError, match=r"cannot be read: [^.\n]*\. If the file"):
        read_tracks(tmp_path / "d.nc")
    for name, remedy in (("e.npy", "read by `np.load`"), ("e.vtp", "by `read_vtk`")):
        (tmp_path / name).write_bytes(b"no file")
        message = rf"`write_tracks` wrote, '.npz', .* '\{name[1:]}'\. .*{remedy}"
        with pytest.raises(PhysaxFileError, match=message):
            read_tracks(tmp_path / name)
    with pytest.raises(ArgumentError, match="`path` must be the name of a file, as in"):
        inspect.unwrap(read_tracks)(tracks())
    for name in ("e.nc", "e.npz"):
        with pytest.raises(ArgumentError, match="`tracks` must be a `Tracks`, but is"):
            inspect.unwrap(write_tracks)(tmp_path / name, np.zeros((2, 2, 2)))
    with pytest.raises(ArgumentError, match=r"`write_tracks\(path, tracks\)`, but is"):
        inspect.unwrap(write_tracks)(tracks(), tmp_path / "e.nc")


@pytest.mark.parametrize(
    "name",
    ["z", "lon", "status", "first_x", "trajectory", "velocity_x", "velocity_lat"],
)
def test_a_variable_with_a_taken_name_is_refused(name, tmp_path):
    taken = replace(tracks(), variables={name: jnp.ones((4, 3))}, velocities=None)
    write_tracks(tmp_path / "a.npz", taken)
    assert name in read_tracks(tmp_path / "a.npz").variables
    with pytest.raises(ArgumentError, match=rf"`tracks.variables` .* is '{name}'\."):
        write_tracks(tmp_path / "a.nc", taken)


def test_a_variable_with_the_name_of_a_value_at_an_end_is_refused(tmp_path):
    both = {name: jnp.ones((4, 3)) for name in ("age", "last_age")}
    with pytest.raises(ArgumentError, match="the name 'last_age' beside 'age', whose"):
        write_tracks(tmp_path / "a.nc", replace(tracks(), variables=both))


def test_files_without_values_at_the_ends_have_nan_there(tmp_path):
    write_tracks(tmp_path / "a.nc", tracks())
    with xarray.open_dataset(tmp_path / "a.nc", decode_times=False) as data:
        old = data.drop_vars(["first_age", "last_age"])
        old.to_netcdf(tmp_path / "b.nc", engine="h5netcdf")
    age = np.asarray(read_tracks(tmp_path / "b.nc").variables["age"])
    assert np.array_equal(np.isfinite(age), MOVING.T)


@pytest.mark.parametrize("name", ["a/b", "/a", ""])
@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_a_name_that_a_file_would_lose_is_refused(name, suffix, tmp_path):
    odd = replace(tracks(), variables={name: jnp.ones((4, 3))})
    write_tracks(tmp_path / "a.npz", odd)
    assert name in read_tracks(tmp_path / "a.npz").variables
    with pytest.raises(ArgumentError, match=f"names without '/', .* one is '{name}'"):
        write_tracks(tmp_path / f"a.{suffix}", odd)


@pytest.mark.parametrize("lost", ["x", "y", "z", "first_y", "last_z", "velocity_z"])
@pytest.mark.parametrize("spherical", [False, True])
def test_a_file_that_lost_a_coordinate_is_refused(lost, spherical, tmp_path):
    if spherical:
        lost = re.sub("x$", "lon", re.sub("y$", "lat", lost))
    write_tracks(tmp_path / "a.nc", tracks(3), spherical=spherical)
    with xarray.open_dataset(tmp_path / "a.nc", decode_times=False) as data:
        data.drop_vars(lost).to_netcdf(tmp_path / "b.nc", engine="h5netcdf")
    with pytest.raises(PhysaxFileError, match=f"lacks .*{lost}"):
        read_tracks(tmp_path / "b.nc")


def test_a_zarr_store_stays_where_its_successor_fails(tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    path, rename = tmp_path / "a.zarr", Path.rename
    write_tracks(path, tracks())

    def failing(self, target):
        if ".tmp-" in self.name:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="No space left"):
        write_tracks(path, tracks(3))
    assert_equal(tracks(), read_tracks(path), padded=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.parametrize("spherical", [False, True])
def test_all_names_of_a_file_are_taken(spherical, tmp_path):
    path, given = tmp_path / "a.nc", tracks(3)
    write_tracks(path, given, spherical=spherical, ragged=True)
    with xarray.open_dataset(path, decode_times=False) as data:
        names = {str(name) for name in (*data.variables, *data.dims)} - {
            f"{word}age" for word in ("", "first_", "last_")
        }
    assert {"velocity_z", "row_size", "obs", "face", "last_z"} < names
    for name in names:
        taken = replace(given, variables={name: given.variables["age"]})
        with pytest.raises(ArgumentError, match=f"one is '{name}'"):
            write_tracks(path, taken)


def test_other_writers_name_the_one_of_tracks(tmp_path):
    with pytest.raises(ArgumentError, match="is a Tracks. .* by `write_tracks`"):
        to_xarray(tracks())
    for kept in (tracks(), {"a": [tracks()]}):
        with pytest.raises(ArgumentError, match="is a Tracks, .*by `write_tracks`, as"):
            save_npz(tmp_path / "a.npz", kept)


def test_without_xarray_the_remedy_is_named(tmp_path, without):
    without("xarray")
    with pytest.raises(MissingPackageError, match="NetCDF .* need .* xarray: pip"):
        write_tracks(tmp_path / "a.nc", tracks())
    write_tracks(tmp_path / "a.npz", tracks())


def test_an_old_xarray_would_write_another_format(tmp_path, monkeypatch):
    monkeypatch.setattr(xarray, "__version__", "2025.7.1")
    with pytest.raises(MissingPackageError, match="2025.8 or newer, but .* 2025.7"):
        write_tracks(tmp_path / "a.nc", tracks())
    assert not (tmp_path / "a.nc").exists()
