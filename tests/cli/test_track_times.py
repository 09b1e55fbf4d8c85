import re
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from physax import ArgumentError
from physax.cli import ExitCode, main
from physax.cli._track_settings import Timing
from physax.cli._track_times import DAY, plan_times
from physax.grid import Clamp
from physax.io import PhysaxFileError, read_tracks, read_velocity
from physax.particles import EARTH_RADIUS, CGridField, Components


WIND = Path(__file__).parents[1] / "validation" / "data" / "wind"
FILES = [WIND / "uwnd_mean.nc", WIND / "vwnd_mean.nc"]


@pytest.fixture(autouse=True)
def double():
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def flow(tmp_path):
    """Reads a flow on cells of 1 km by 2 km, from the speeds at some instants."""

    def flow(u, times=(0.0,), **options):
        x, y = np.arange(0.0, 11) * 1e3, np.arange(0.0, 6) * 2e3
        u = np.broadcast_to(np.reshape(u, (-1, 1, 1)), (len(times), 11, 6))
        path = tmp_path / "flow.npz"
        np.savez(path, x=x, y=y, t=np.asarray(times), u=u, v=0 * u)
        return read_velocity(path, axes=("x", "y"), time="t", **options)

    return flow


@pytest.fixture
def globe(tmp_path):
    """Reads a flow on cells of one degree, from the eastward speed by latitude."""

    def globe(latitudes, speed, **more):
        lon = np.arange(0.0, 21)
        lat = np.asarray(latitudes, float)
        u = np.broadcast_to(speed, (21, lat.size))
        path = tmp_path / "globe.npz"
        np.savez(path, lon=lon, lat=lat, u=u, v=0 * u, **more)
        return read_velocity(path, axes=("lon", "lat"))

    return globe


def test_the_track_of_a_seed_in_still_air_is_right(tmp_path, capsys):
    # At the seed and t = 0 the wind is weak. Steps of 60 s end at 1376.7429, 29.3203;
    # those of 900 s differ by 1e-4 degrees, steps of 5 days end at 1177.
    pytest.importorskip("h5netcdf")
    settings = tmp_path / "a.yaml"
    settings.write_text(
        "seeds: {type: Points, points: [[162, -11]]}\n"
        "times: {duration_days: 60, record_every_days: 5}\n"
        "output: {tracks: a.npz, figures: false}\n"
    )
    line = ["track", *map(str, FILES), "--config", str(settings)]
    assert main([*line, "--output-dir", str(tmp_path)]) == ExitCode.DONE
    tracks = read_tracks(tmp_path / "a.npz")
    assert np.allclose(tracks.positions[-1], [[1376.7429, 29.3203]], atol=1e-3)
    said = capsys.readouterr().out
    # Not the jet of 76.9 m/s at 30 degrees of latitude: at 85 cells are far narrower.
    assert re.search(
        r"7176 steps of 722\.408 s, .* speed at latitude -85, 8\.38 m/s", said
    )


def test_the_highest_speed_of_all_instants_bounds_the_step(flow):
    times = [0.0, 1e4, 2e4]
    timing = Timing(duration=2e4, record_every=1e4)
    # A quarter of 1 km at 5 m/s is 50 s.
    plan = plan_times(timing, flow([0.0, -5.0, 0.1], times))
    assert plan.step == pytest.approx(50)
    assert "at the highest speed, 5 m/s" in plan.sentence()
    assert np.allclose(plan.times, times)


DEGREE = np.radians(EARTH_RADIUS)


def test_a_step_is_a_quarter_of_the_narrow_cells_toward_a_pole(globe):
    timing = Timing(duration=DAY, record_every=DAY)
    for latitudes in (np.arange(60, 86), np.arange(-85, -59), np.arange(-85, 86)):
        plan = plan_times(timing, globe(latitudes, 20.0))
        parts = 20.0 * plan.step / (DEGREE * np.cos(np.radians(85)))
        # The number of steps is rounded up.
        assert 0.249 < parts <= 0.25
        assert re.search(r"highest speed at latitude -?85, 20 m/s", plan.reason)


def test_closer_to_a_pole_than_85_degrees_steps_are_not_shorter(globe):
    timing = Timing(duration=DAY, record_every=DAY)
    last = plan_times(timing, globe(np.arange(60, 86), 20.0)).step
    assert plan_times(timing, globe(np.arange(60, 91), 20.0)).step == last
    assert plan_times(timing, globe(np.arange(-90, 91), 20.0)).step == last
    # The width of a cell and the latitude in the sentence belong together.
    said = plan_times(timing, globe(np.arange(-89, 0), 20.0)).reason
    found = re.search(r"cell of (\S+) m at the highest speed at latitude (\S+),", said)
    width, latitude = map(float, found.groups())
    assert width == pytest.approx(DEGREE * np.cos(np.radians(latitude)), rel=1e-2)


def test_the_speed_at_each_latitude_counts(globe):
    timing = Timing(duration=DAY, record_every=DAY)
    lat = np.arange(0.0, 86)
    # A jet at 40 degrees, whose neighbour at 41 shares its cells; 1 m/s elsewhere.
    jet = np.where(lat == 40, 50.0, 1.0)
    plan = plan_times(timing, globe(lat, jet))
    width = DEGREE * np.cos(np.radians(41))
    assert 0.249 < 50 * plan.step / width <= 0.25
    assert "at latitude 41, 50 m/s" in plan.reason
    # Where there are no data, or a fill value, nothing is asked.
    for missing in (np.nan, 0.0):
        gone = plan_times(timing, globe(lat, np.where(lat > 60, missing, jet)))
        assert gone.step == plan.step
    # Near the equator cells are as wide as they are high.
    slow = plan_times(timing, globe([-1.0, 0, 1], 5.0))
    assert slow.steps == np.ceil(DAY / (0.25 * DEGREE / 5))


@pytest.mark.parametrize("kind", [CGridField, Components])
def test_components_apart_count_at_the_latitude_next_to_a_pole(tmp_path, kind):
    edges = np.arange(0.0, 21), np.arange(60.0, 86)
    middles = [(axis[1:] + axis[:-1]) / 2 for axis in edges]
    path = tmp_path / "faces.nc"
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    named = {"u": "eastward_sea_water_velocity", "v": "northward_sea_water_velocity"}
    axes = {
        "lon_u": (edges[0], "longitude"),
        "lat_u": (middles[1], "latitude"),
        # Columns that share a longitude are no cells between faces.
        "lon_v": (middles[0] if kind is CGridField else edges[0], "longitude"),
        "lat_v": (edges[1], "latitude"),
    }
    xarray.Dataset(
        {
            k: (
                (f"lat_{k}", f"lon_{k}"),
                np.full((axes[f"lat_{k}"][0].size, axes[f"lon_{k}"][0].size), 20.0),
                {"units": "m/s", "standard_name": name},
            )
            for k, name in named.items()
        },
        coords={
            name: ((name,), places, {"units": f"degrees_{way}", "standard_name": kind})
            for name, (places, kind) in axes.items()
            for way in ["east" if kind == "longitude" else "north"]
        },
    ).to_netcdf(path, engine="h5netcdf")
    flow = read_velocity(path)
    assert isinstance(flow.field.velocity, kind)
    plan = plan_times(Timing(duration=DAY, record_every=DAY), flow)
    # Samples are not at nodes: the highest speed counts at the highest latitude.
    width = DEGREE * np.cos(np.radians(float(flow.high[1])))
    assert 0.249 < 20 * plan.step / width <= 0.25


def test_a_step_is_no_longer_than_between_instants(flow):
    times = [0.0, 3e4, 4e4, 9e4]
    slow = [1e-4, 2e-4, 1e-4, 0.0]
    timing = Timing(duration=9e4, record_every=9e4)
    plan = plan_times(timing, flow(slow, times))
    assert plan.step == pytest.approx(1e4)
    assert "10000 s between two instants" in plan.sentence()
    # From the last instant to the first again it is 5000 s.
    again = flow(slow, times, time_period=9.5e4)
    assert plan_times(timing, again, 9.5e4).step == pytest.approx(5e3)
    # A steady flow has none.
    assert plan_times(timing, flow(1e-4)).step == pytest.approx(9e4)
    assert plan_times(timing, flow(0.0)).step == pytest.approx(9e4)


def test_a_given_step_is_followed_and_said(flow):
    timing = Timing(duration=9e4, record_every=9e4, step=6e4)
    plan = plan_times(timing, flow([1.0, 1.0, 1.0], [0.0, 3e4, 9e4]))
    assert plan.step == pytest.approx(4.5e4)
    assert "at most 60000 s by the settings, though instants are 30000 s" in plan.reason


def test_data_that_give_no_speed_are_refused(flow):
    with pytest.raises(PhysaxFileError, match="'u' must have data at some node"):
        flow(np.nan)
    # An undeclared fill value.
    with pytest.raises(ArgumentError, match=r"more than 1000000 steps, .*`_FillValue`"):
        plan_times(Timing(duration=DAY), flow(1e20))
    assert plan_times(Timing(duration=DAY, step=3600.0), flow(1e20)).steps == 40


@pytest.mark.parametrize(
    ("duration", "every", "message"),
    [
        (24, 7, "divide `duration`, 24 hours, but is 7 hours. Take 8 "
                "hours or 6 hours, or a `duration` of 21 hours or 28 hours."),
        (24, 48, "divide `duration`, 24 hours, but is 48 hours. Take 24 "
                 "hours, or a `duration` of 48 hours."),
        (24 * 60, 36, None),
        (24, 16.0, "divide `duration`, 24 hours, but is 16 hours. Take 24 "
                   "hours or 12 hours"),
        (1, 0.3, "divide `duration`, 60 minutes, but is 18 minutes. Take "
                 "20 minutes or 15 minutes"),
        (0.5 / 3600, 0.3 / 3600, "divide `duration`, 0.5 seconds, but is 0.3 seconds."),
        # As printed for 60 days and 7 hours.
        (24 * 60, 7.0243902, None),
        (0.3, 0.1, None),
    ],
)  # fmt: skip
def test_recorded_times_divide_the_duration(duration, every, message):
    hours = {"duration": 3600.0 * duration, "record_every": 3600.0 * every}
    if message is None:
        Timing(**hours)
        return
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Timing(**hours)


def test_settings_with_times_that_do_not_fit_are_refused(tmp_path, capsys):
    path = tmp_path / "a.yaml"
    path.write_text("times:\n  duration_days: 1\n  record_every_hours: 7\n")
    assert main(["track", "config", "--check", str(path)]) == ExitCode.REFUSED
    said = capsys.readouterr().err
    assert "line 3: `times` is refused: `record_every` must divide `duration`" in said
    path.write_text("times: {record_every_hours: 7}")
    line = ["track", "a.nc", "--config", str(path), "--output-dir", str(tmp_path)]
    assert main([*line, "--days", "1"]) == ExitCode.REFUSED
    assert "`--days`: `record_every` must divide" in capsys.readouterr().err


def test_a_duration_that_is_found_is_a_whole_number_of_records(flow):
    # 10 km at 1 m/s are 10,000 s.
    plan = plan_times(Timing(record_every=3e3), flow(1.0))
    assert np.allclose(plan.times, np.arange(4) * 3e3)
    with pytest.raises(ArgumentError, match=r"`record_every` .* 10000 s .* is 20000 s"):
        plan_times(Timing(record_every=2e4), flow(1.0))


@pytest.mark.parametrize("backward", [False, True])
def test_times_beyond_the_data_name_the_settings(flow, backward):
    timing = Timing(duration=4 * DAY, backward=backward)
    times = [0.0, 3 * DAY]
    reach = "-1 to 3" if backward else "0 to 4"
    message = f"0 to 3 days, but reach from {reach} days. .*`hold: true` or `period_d"
    with pytest.raises(ArgumentError, match=message):
        plan_times(timing, flow([1.0, 1.0], times))
    held = flow([1.0, 1.0], times, time_outside=Clamp())
    assert plan_times(timing, held).times.size == 41


def test_times_beyond_short_data_are_in_seconds(flow):
    timing = Timing(duration=40.0)
    with pytest.raises(ArgumentError, match="0 to 30 s, but reach from 0 to 40 s"):
        plan_times(timing, flow([1.0, 1.0], [0.0, 30.0]))


def test_a_step_is_a_quarter_of_a_cell_along_the_vertical_too(tmp_path, capsys):
    # Sinking through layers of 1 m, at a speed that changes over 20 m.
    z = np.arange(0.0, 101)
    sinking = -0.002 * (1 + 0.9 * np.cos(2 * np.pi * z / 20))
    shape = (3, 3, z.size)
    np.savez(
        tmp_path / "flow.npz",
        x=np.arange(3) * 1e5,
        y=np.arange(3) * 1e5,
        z=z,
        u=np.full(shape, 0.05),
        v=np.zeros(shape),
        w=np.broadcast_to(sinking, shape),
    )
    (tmp_path / "a.yaml").write_text(f"""
velocity: {{files: ["{tmp_path}/flow.npz"], axes: [x, y, z], w: w}}
seeds: {{type: Points, points: [[9.0e+4, 1.0e+5, 95], [1.0e+5, 1.0e+5, 90]]}}
times: {{duration_hours: 8, record_every_hours: 8}}
output: {{tracks: a.npz, figures: false}}
""")
    line = ["track", "--config", str(tmp_path / "a.yaml")]
    assert main([*line, "--output-dir", str(tmp_path)]) == ExitCode.DONE
    found = read_tracks(tmp_path / "a.npz").positions[-1, :, 2]
    fall = lambda _, at: np.interp(at, z, sinking)  # noqa: E731
    span, seeds = (0, 8 * 3600), [95, 90]
    truth = solve_ivp(fall, span, seeds, rtol=1e-10, atol=1e-8, max_step=20).y[:, -1]
    # Kinks at the nodes, at a quarter of a cell a step, cost 0.05 mm.
    assert np.allclose(found, truth, atol=1e-3)
    said = capsys.readouterr().out
    # 1 m / 0.0038 m/s / 4 are 65.8 s.
    assert re.search(
        r"438 steps of 65\.7534 s, .* 1 m at the highest speed along z at \S+ m, "
        r"0\.0038 m/s",
        said,
    )


def test_layers_of_pressure_count_with_their_own_thickness(tmp_path):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    # The layer of 20 hPa is crossed at 1 Pa/s in 2000 s, that of 300 hPa at 12 Pa/s in
    # 2500 s, and one degree at 5 m/s in 22,000 s.
    level = np.array([1000.0, 980, 850, 500, 200])
    fall = np.array([1.0, 1, 0, 0, 12])
    places = {
        "level": ("level", level, {"units": "hPa"}),
        "lat": ("lat", np.arange(-2.0, 3), {"units": "degrees_north"}),
        "lon": ("lon", np.arange(5.0), {"units": "degrees_east"}),
    }
    full = np.ones((5, 5, 5))
    winds = {
        "u": (places.keys(), 5 * full, {"units": "m/s"}),
        "v": (places.keys(), -full, {"units": "m/s"}),
        "omega": (places.keys(), fall[:, None, None] * full, {"units": "Pa/s"}),
    }
    path = tmp_path / "a.nc"
    xarray.Dataset(winds, places).to_netcdf(path, engine="h5netcdf")
    plan = plan_times(
        Timing(duration=DAY, record_every=DAY), read_velocity(path, w="omega")
    )
    assert plan.steps == np.ceil(DAY / 500)
    assert (
        "cell of 2e+03 Pa at the highest speed along level at 9.9e+04 Pa" in plan.reason
    )
