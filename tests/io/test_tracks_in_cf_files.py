"""Tracks in CF files: dates of any calendar, and places within the poles."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from physax.io import Epoch, read_tracks, write_tracks
from physax.particles import OnSphere, Tracks, track


xarray = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")

TIMES = np.array([0.0, 10.0, 20.0])


def tracks(ended, since=0.0, ndim=2):
    """Particles that end, and are released, at some times."""
    f = lambda x: jnp.asarray(x, float)  # noqa: E731
    count = len(ended)
    places = np.arange(3.0 * count * ndim).reshape(3, count, ndim)
    late = (TIMES[:, None] < np.broadcast_to(since, count))[..., None]
    over = (TIMES[:, None] > np.asarray(ended))[..., None]
    places = np.where(late, places[0], np.where(over, places[-1], places))
    return Tracks(
        times=f(TIMES),
        positions=f(places),
        velocities=None,
        variables={},
        status=jnp.asarray(np.where(np.isnan(ended), 0, 4), jnp.int32),
        ended=f(ended),
        face=jnp.full(count, -1, jnp.int32),
        since=f(np.broadcast_to(since, count)),
        entries=jnp.zeros(count, jnp.int32),
    )


NAN = np.nan


@pytest.mark.filterwarnings("ignore:Unable to decode time axis")
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(
    ("calendar", "date"),
    [
        ("standard", "2001-02-26T00:00:00"),
        ("noleap", "2001-02-26T00:00:00"),
        ("360_day", "2001-02-30T00:00:00"),
        ("standard", "1500-02-26T00:00:00"),
        ("proleptic_gregorian", "0001-02-26T00:00:00"),
    ],
)
@pytest.mark.parametrize(
    ("ended", "since"),
    [
        ([NAN, NAN], 0.0),  # None has ended.
        ([NAN, 20.0, NAN], 0.0),  # Neither the first nor the last has.
        ([NAN, 5.0], [15.0, 0.0]),  # No observation in the first and the last row.
        ([5.0, 20.0], 0.0),
        ([4.0, 5.0], [2.0, 3.0]),  # No observation at all.
    ],
)
def test_dates_of_any_calendar_are_opened(
    tmp_path, calendar, date, ended, since, ragged
):
    cftime = pytest.importorskip("cftime")
    given, path = tracks(ended, since), tmp_path / "a.nc"
    write_tracks(path, given, epoch=Epoch(date, calendar), ragged=ragged)
    read = read_tracks(path)
    for name in ("positions", "ended", "since", "status"):
        assert np.array_equal(getattr(read, name), getattr(given, name), equal_nan=True)
    moving = np.asarray(given.moving()).T
    with xarray.open_dataset(path) as data:
        # Also one at a time, which xarray decodes alone.
        picks = [data.time[at].values[()] for at in np.ndindex(data.time.shape)]
        dates = np.array(picks, data.time.dtype).reshape(data.time.shape)
        assert np.array_equal(data.ended.isnull(), np.isnan(ended))
        assert (data.ended.dtype.kind == "f") == ("comment" in data.ended.attrs)
        if calendar == "standard" and date > "1678":
            seconds = (dates - np.datetime64(date)) / np.timedelta64(1, "s")
            truth = np.where(moving, TIMES, NAN)
        else:
            units = f"seconds since {date.replace('T', ' ')}"
            seconds = cftime.date2num(dates, units, calendar) if dates.size else dates
            truth = np.broadcast_to(TIMES, moving.shape)
            if np.isnan(ended).any():
                said = f"Numbers of {units} of the calendar {calendar}, NaN for none."
                assert data.ended.attrs["comment"] == said
                assert np.array_equal(data.ended, ended, equal_nan=True)
    assert np.array_equal(seconds, truth[moving] if ragged else truth, equal_nan=True)


def test_files_of_before_are_read(tmp_path):
    # They have a calendar, and NaN where a particle has not ended or begun.
    given, path = tracks([NAN, 5.0], [15.0, 0.0]), tmp_path / "a.nc"
    write_tracks(path, given, epoch=Epoch("2001-02-26T00:00:00", "noleap"))
    with xarray.open_dataset(path, decode_times=False) as data:
        old = data.load()
    old["time"] = old.time.where(np.asarray(given.moving()).T)
    clock = {name: old.time.attrs[name] for name in ("units", "calendar")}
    old.ended.attrs = {"long_name": "time at which the particle ended", **clock}
    old.to_netcdf(tmp_path / "b.nc", engine="h5netcdf")
    for read in (read_tracks(path), read_tracks(tmp_path / "b.nc")):
        for name in ("positions", "ended", "since", "times"):
            a, b = getattr(read, name), getattr(given, name)
            assert np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("ragged", [False, True])
def test_latitudes_are_within_the_poles_in_a_file(tmp_path, ragged):
    # A rotation around an axis through the equator, 15.5 degrees a day.
    def speed(t, x):
        lon, lat = jnp.radians(x[0] - 30), jnp.radians(x[1])
        return 20 * jnp.array([jnp.sin(lon) * jnp.sin(lat), jnp.cos(lon), 0.0])

    seeds = np.array([[30.0, 80.0, 5.0], [370.0, 0.0, 5.0]])
    given = track(OnSphere(speed), seeds, np.arange(8) * 86400.0, steps=70)
    assert given.positions[..., 1].max() > 180  # Over both poles.
    write_tracks(tmp_path / "a.nc", given, spherical=True, ragged=ragged)
    with xarray.open_dataset(tmp_path / "a.nc") as data:
        assert np.abs(data.lat).max() <= 90
        assert np.abs(data.last_lat).max() <= 90
        assert data.lat.attrs["standard_name"] == "latitude"
    read = np.asarray(read_tracks(tmp_path / "a.nc").positions, float)
    # The same points in space.
    for a, b in zip(unit_vectors(given.positions), unit_vectors(read), strict=True):
        assert np.allclose(a, b, atol=1e-6)
    same = np.abs(given.positions[..., 1]) <= 90
    assert same.any()
    assert np.array_equal(read[same], given.positions[same])
    assert np.array_equal(read[..., 2], given.positions[..., 2])


def unit_vectors(positions):
    lon, lat = np.radians(np.moveaxis(np.asarray(positions, float)[..., :2], -1, 0))
    return np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)


def test_velocities_and_periodic_ends_fit_places_beyond_a_pole(tmp_path):
    places = jnp.array([[[350.0, 100.0]], [[10.0, 80.0]], [[20.0, 260.0]]])
    given = replace(
        tracks([NAN]),
        positions=places,
        velocities=jnp.full((3, 1, 2), 2.0),
        wraps=jnp.array([[0.0, -jnp.inf], [360.0, jnp.inf]]),
    )
    write_tracks(tmp_path / "a.nc", given, spherical=True)
    read = read_tracks(tmp_path / "a.nc")
    # Over the north pole; not over one; around to the south on the meridian opposite.
    truth = [[[170.0, 80.0]], [[10.0, 80.0]], [[200.0, -80.0]]]
    assert np.allclose(read.positions, truth, atol=1e-4)
    assert np.allclose(read.velocities[:, 0], [[2, -2], [2, 2], [2, -2]])
