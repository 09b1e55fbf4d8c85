import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from physax import PhysaxWarning, plot
from physax.cli import ExitCode, main
from physax.io import read_tracks
from physax.particles import ParticleStatus


xarray = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")

WIND = Path(__file__).parents[1] / "validation" / "data" / "wind"
FILES = [str(WIND / "uwnd_mean.nc"), str(WIND / "vwnd_mean.nc")]


def test_winds_alone_give_tracks_a_map_and_a_table(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["track", *FILES, "--output-dir", str(out), "-v"]) == ExitCode.DONE
    said = capsys.readouterr().out
    assert "float64" in said
    assert "stepped by RK4" in said
    assert "12 instants from 1970-01-01T00:00:00 over 334 days" in said
    assert "612 particles, 5 days forward" in said
    assert "alive" in said
    assert "m/s, mean" in said
    tracks = read_tracks(out / "tracks.nc")
    assert tracks.positions.shape == (41, 612, 2)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["counts"]["alive"] == 612
    assert summary["epoch"] == "1970-01-01T00:00:00"
    assert 50 < summary["speed"]["most"] < 80
    assert summary["pictures"] == ["tracks.png"]
    with Image.open(out / "tracks.png") as image:
        assert image.size[0] > 500
    with xarray.open_dataset(out / "tracks.nc", decode_times=False) as data:
        assert data.lon.attrs["units"] == "degrees_east"
        assert data.time.attrs["units"] == "seconds since 1970-01-01 00:00:00"


def channel(folder):
    """A flow along x of 1 m/s with land at its end, as an npz file and settings."""
    x, y = np.arange(0.0, 11), np.arange(0.0, 5)
    u = np.ones((11, 5))
    u[8:] = np.nan
    np.savez(folder / "flow.npz", x=x, y=y, u=u, v=0 * u)
    text = f"""
velocity: {{files: ["{folder}/flow.npz"], axes: [x, y]}}
seeds: {{type: Points, points: [[1, 1], [2, 2.5], [9, 2]]}}
times: {{duration_minutes: 0.25, record_every: 1, step_seconds: 0.1}}
solver: {{type: RK2}}
output: {{tracks: a.npz}}
"""
    path = folder / "track.yaml"
    path.write_text(text)
    return path, text


@pytest.mark.slow
def test_settings_of_a_file_are_followed(tmp_path, capsys):
    path, _ = channel(tmp_path)
    out = tmp_path / "out"
    line = ["track", "--config", str(path), "--output-dir", str(out)]
    assert main([*line, "--animation", "gif"]) == ExitCode.DONE
    tracks = read_tracks(out / "a.npz")
    # What lies on land is left out; the others strand half way between 7 and 8.
    assert tracks.positions.shape == (16, 2, 2)
    assert np.all(tracks.status == ParticleStatus.STUCK)
    assert np.allclose(tracks.positions[-1], [[7.5, 1], [7.5, 2.5]], atol=1e-3)
    # The last half metre is slower: from u = 1 to 1/2 it takes ln 2 s.
    assert np.allclose(tracks.ended, [6 + np.log(2), 5 + np.log(2)], atol=1e-2)
    assert (out / "tracks.gif").exists()
    assert "stuck" in capsys.readouterr().out


@pytest.mark.slow
def test_options_overrule_settings(tmp_path, capsys):
    path, text = channel(tmp_path)
    path.write_text(text.replace("record_every: 1,", "record_every: 1.08,").replace(
        "duration_minutes: 0.25, ", ""))  # fmt: skip
    out = tmp_path / "out"
    line = ["track", "--config", str(path), "--output-dir", str(out), "-q"]
    more = ["--backward", "--days", "2.5e-5", "--no-figures"]
    assert main([*line, *more]) == ExitCode.DONE
    assert capsys.readouterr().out == ""
    assert np.allclose(read_tracks(out / "a.npz").times, [0, -1.08, -2.16])
    assert not list(out.glob("*.png"))


def test_the_template_is_valid_and_names_every_key(tmp_path, capsys):
    path = tmp_path / "t.yaml"
    assert main(["track", "config"]) == ExitCode.DONE
    text = capsys.readouterr().out
    assert main(["track", "config", "-o", str(path)]) == ExitCode.DONE
    assert path.read_text() == text
    assert main(["track", "config", "--check", str(path)]) == ExitCode.DONE
    assert "valid settings" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds:", "seedz:", "line 3: .* unknown key `seedz`.* Did you mean `seeds`"),
        ("files:", "flies:", "unknown key `flies`.* Did you mean `files`"),
        ("type: Points", "type: Point", "must be one of .*Points, but is 'Point'"),
        ("type: RK2", "type: RK5", "must be one of RK4, .*Did you mean `RK"),
        ("type: Points, points: [[1, 1], [2, 2.5], [9, 2]]",
         f"type: Random, low: [1, 1], high: [2, 2], count: 3, seed: {2**64}",
         "line 3: .*`seed` must be a whole number of at least 0 and below"),
        ("type: Points, points: [[1, 1], [2, 2.5], [9, 2]]",
         "type: Gaussian, centre: [1, 1], spread: [0.1, 0.1], count: 3, seed: -1",
         "line 3: .*`seed` must be a whole number of at least 0 and below"),
        ("record_every: 1", "record_every: 0", "`record_every` must be positive"),
        ("a.npz}", "a.csv}", "must be the name of a file that ends in .nc"),
        ("axes: [x, y]", "axes: [x, z]", "array 'z', but has u, v, x, y"),
        ("flow.npz", "none.npz", "There is no file"),
        ("[1, 1], [2, 2.5]", "[1, 1, 1], [2, 2.5]", "line 3: .*the same number of "
         "coordinates each, as .*, but have 2 and 3"),
        ("[[1, 1], [2, 2.5], [9, 2]]", "[]", "line 3: .*one place or more .*is empty"),
        ("type: Points, points: [[1, 1], [2, 2.5], [9, 2]]",
         "type: Grid, low: [1, 1], high: [2, 2], shape: [3]", "line 3: .*`shape` must"),
        ("type: Points, points: [[1, 1], [2, 2.5], [9, 2]]",
         "type: Line, start: [1, 1], stop: [2, 2], count: 0", "line 3: .*`count` must"),
        ("type: Points, points: [[1, 1], [2, 2.5], [9, 2]]",
         "type: Random, low: [1, 3], high: [2, 2], count: 3", "line 3: .*`low` must"),
        ("axes: [x, y]", "axes: [x, y], u: u, v: u", "`u`, `v` and `w` must name "
         "different variables, but are 'u', 'u'"),
        ("step_seconds: 0.1", "step_seconds: 1.0e-9", "`step` and `record_"
         "every` must make at most 1073741823 steps, but make [0-9]{11}"),
        ("duration_minutes", "duration_weeks", "unknown key `duration_weeks`.*With a "
         "unit it is `duration_seconds` or .*_minutes` or .*_hours` or .*_days`"),
        ("axes: [x, y]", "axes: [x, y], u: u, v: none", "variable 'none', but there"),
        ("axes: [x, y]", "axes: [x, y], gaps_hours: 0", "`gaps` must be positive"),
        ("axes: [x, y]", "axes: [x, y], slip: 2", r"`slip` must lie in \[0, 1\]"),
        ("axes: [x, y]", "axes: [x, y], slip_hours: 0", "end in `_hours`.* no unit"),
        ("axes: [x, y]", "axes: [x, y], period_days: 3, hold: true", "line 2: .*`hold` "
         "must be false where the flow repeats after a `period`.*Leave out one"),
        ("axes: [x, y]", "axes: [x, y], period: 3", "line 2: .*`period` must be left "
         "out, as the files have one instant only"),
        ("flow.npz", "*.nc", r"line 2: .*`axes` must be left out of NetCDF and zarr "
         r".*, but is \['x', 'y'\]: it is for .h5 and .npz"),
        ("[2, 2.5]", "[2, .inf]", r"line 3: .*`points` must be finite, but .* "
         r"\[2\.0, inf\]"),
        ("duration_minutes: 0.25", "duration_minutes: .inf", "line 4: .*`duration` "
         "must be positive and finite, but is inf s"),
        ("duration_minutes: 0.25", "start: .nan", "line 4: .*start"),
        ("duration_minutes: 0.25", "start: -.inf", "line 4: .*`start` must be finite"),
        ("a.npz}", "a.npz, west: 500}", "line 6: .*`west` must be a longitude from "
         "-360 to 360, but is 500"),
    ],
)  # fmt: skip
def test_faulty_settings_are_refused(tmp_path, capsys, old, new, message):
    path, text = channel(tmp_path)
    assert old in text
    path.write_text(text.replace(old, new))
    out = tmp_path / "out"
    line = ["track", "--config", str(path), "--output-dir", str(out)]
    assert main(line) == ExitCode.REFUSED
    assert re.search(message, capsys.readouterr().err)
    assert not out.exists()


def test_a_period_shorter_than_the_data_is_told_in_days_with_its_line(tmp_path, capsys):
    x, t = np.arange(0.0, 11), np.arange(0.0, 6) * 86_400
    u = np.full((6, 11, 11), 0.1)
    np.savez(tmp_path / "flow.npz", x=x, y=x, t=t, u=u, v=u)
    path = tmp_path / "a.yaml"
    path.write_text(f"""
velocity:
  files: ["{tmp_path}/flow.npz"]
  axes: [x, y]
  time: t
  period_hours: 72
""")
    line = ["track", "--config", str(path), "--output-dir", str(tmp_path / "out")]
    assert main(line) == ExitCode.REFUSED
    assert re.search(
        "line 6: `velocity` is refused: `period` must be longer than the data, which "
        "span 5 days, but is 3 days",
        capsys.readouterr().err,
    )


def test_files_of_different_calendars_are_refused(tmp_path, capsys):
    pytest.importorskip("cftime")
    places = {"lat": [0.0, 1], "lon": [0.0, 1]}
    for month, calendar in ((3, "noleap"), (4, "360_day")):
        since = {"units": f"days since 2001-{month:02}-01", "calendar": calendar}
        names = ("time", "lat", "lon")
        speed = names, np.ones((2, 2, 2)), {"units": "m/s"}
        xarray.Dataset(
            {"u": speed, "v": speed}, {"time": ("time", [0.0, 1], since), **places}
        ).to_netcdf(tmp_path / f"{calendar}.nc", engine="h5netcdf")
    files = [str(tmp_path / f"{name}.nc") for name in ("noleap", "360_day")]
    assert (
        main(["track", *files, "--output-dir", str(tmp_path / "out")])
        == ExitCode.REFUSED
    )
    said = capsys.readouterr().err
    assert f"{files[1]}: Its times must be in the calendar of {files[0]}," in said
    assert "'noleap', but are in '360_day'. Rewrite" in said


def test_a_line_without_a_folder_is_wrong_as_for_other_commands(capsys):
    for line in (["track", "a.nc"], ["em", "run", "a.yaml"]):
        with pytest.raises(SystemExit, match=str(int(ExitCode.USAGE))):
            main(line)
        assert "arguments are required: --output-dir" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["track", "--output-dir", "o"], "`FILE` must be given"),
        (["track", "none.nc", "--output-dir", "o"], "There is no file 'none.nc'"),
        (
            ["track", "a.nc", "--output-dir", "o", "--check", "x"],
            "go with `physax track",
        ),
        (["track", "config", "--check", "none.yaml"], "no file 'none.yaml'"),
        (
            ["track", "a.nc", "--output-dir", "o", "--config", "none.yml"],
            "`--config`: There is no file 'none.yml'.",
        ),
    ],
)
def test_faulty_lines_are_refused(tmp_path, capsys, monkeypatch, line, message):
    monkeypatch.chdir(tmp_path)
    assert main(line) == ExitCode.REFUSED
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_component_that_is_not_found_is_named_by_an_option(tmp_path, capsys):
    path, _ = channel(tmp_path)
    x, y = np.arange(0.0, 11), np.arange(0.0, 5)
    np.savez(tmp_path / "flow.npz", x=x, y=y, u=np.ones((11, 5)))
    line = ["track", "--config", str(path), "--output-dir", str(tmp_path / "out")]
    assert main(line) == ExitCode.REFUSED
    said = capsys.readouterr().err
    assert "along y must be named, `--v NAME`: none does." in said
    assert "=..." not in said


@pytest.mark.parametrize(("begin", "limits"), [(100.0, (20, 380)), (0.0, (-180, 180))])
def test_maps_are_cut_where_there_are_no_data(tmp_path, monkeypatch, begin, limits):
    # From 100 to 300 degrees, more than half of the globe; and all around.
    lon = begin + np.arange(0, 201 if begin else 360, 20)
    coordinates = {
        "lat": ("lat", [-10.0, 0, 10], {"units": "degrees_north"}),
        "lon": ("lon", lon, {"units": "degrees_east"}),
    }
    values = ("lat", "lon"), np.zeros((3, lon.size)), {"units": "m/s"}
    flow = xarray.Dataset({"u": values, "v": values}, coordinates)
    flow.to_netcdf(tmp_path / "flow.nc", engine="h5netcdf")
    drawn, draw = [], plot.tracks
    keep = lambda *given, **options: drawn.append(draw(*given, **options)) or drawn[0]  # noqa: E731
    monkeypatch.setattr(plot, "tracks", keep)
    line = ["track", str(tmp_path / "flow.nc"), "--days", "1"]
    assert main([*line, "--output-dir", str(tmp_path / "out")]) == ExitCode.DONE
    assert drawn[0].get_xlim() == limits


@pytest.mark.slow
def test_velocities_without_units_are_told(tmp_path, capsys):
    path, text = channel(tmp_path)
    line = ["track", "--config", str(path), "--output-dir", str(tmp_path / "out")]
    assert main([*line, "--no-figures"]) == ExitCode.DONE
    told = "u, v have no units in the file: taken to be in m/s, as `scale: 1`"
    assert told in capsys.readouterr().out
    path.write_text(text.replace("axes: [x, y]", "axes: [x, y], scale: 1"))
    assert main([*line, "--no-figures"]) == ExitCode.DONE
    assert "no units" not in capsys.readouterr().out


def test_data_without_dates_or_sea_are_explained(tmp_path, capsys):
    path, text = channel(tmp_path)
    path.write_text(text.replace("[1, 1], [2, 2.5], ", ""))
    line = ["track", "--config", str(path), "--output-dir", str(tmp_path / "out")]
    assert main(line) == ExitCode.REFUSED
    assert "all are on land" in capsys.readouterr().err


def test_gaps_are_bridged_where_settings_say(tmp_path, capsys):
    x, y, t = np.arange(0.0, 11), np.arange(0.0, 5), np.arange(0.0, 4) * 10
    u = np.full((4, 11, 5), 0.1)
    u[1, 5, 2] = np.nan
    np.savez(tmp_path / "flow.npz", x=x, y=y, t=t, u=u, v=0 * u)
    text = f"""
velocity: {{files: ["{tmp_path}/flow.npz"], axes: [x, y], time: t, gaps_minutes: 0.4}}
seeds: {{type: Points, points: [[4.5, 2]]}}
output: {{tracks: a.npz, figures: false}}
"""
    path, out = tmp_path / "track.yaml", tmp_path / "out"
    line = ["track", "--config", str(path), "--output-dir", str(out)]
    path.write_text(text)
    assert main(line) == ExitCode.DONE
    assert read_tracks(out / "a.npz").status.tolist() == [ParticleStatus.ALIVE]
    path.write_text(text.replace(", gaps_minutes: 0.4", ""))
    with pytest.warns(PhysaxWarning, match="'u' has no data at some of the 4 instants"):
        assert main(line) == ExitCode.DONE
    assert read_tracks(out / "a.npz").status.tolist() == [ParticleStatus.NOT_FINITE]
    assert "not_finite" in capsys.readouterr().out


def test_speeds_count_beyond_a_pole_too(tmp_path, capsys):
    # Northward at 20 m/s on one side of the pole, southward at 40 m/s on the other.
    lon, lat = np.arange(0.0, 360, 30), np.arange(60.0, 91, 5)
    v = np.where(np.abs(lon - 180) < 90, -40.0, 20.0) + 0 * lat[:, None]
    coordinates = {
        "lat": ("lat", lat, {"units": "degrees_north"}),
        "lon": ("lon", lon, {"units": "degrees_east"}),
    }
    winds = {"u": (("lat", "lon"), 0 * v, {"units": "m/s"}),
             "v": (("lat", "lon"), v, {"units": "m/s"})}  # fmt: skip
    path, out = tmp_path / "flow.nc", tmp_path / "out"
    xarray.Dataset(winds, coordinates).to_netcdf(path, engine="h5netcdf")
    (tmp_path / "a.yaml").write_text("""
seeds: {type: Points, points: [[0, 70]]}
times: {duration_hours: 48, record_every_hours: 6}
output: {figures: false}
""")
    line = ["track", str(path), "--config", str(tmp_path / "a.yaml")]
    assert main([*line, "--output-dir", str(out)]) == ExitCode.DONE
    # 20 degrees to the pole take 30.9 h: six records before it, three behind.
    speed = json.loads((out / "summary.json").read_text())["speed"]
    truth = {"least": 20, "mean": (6 * 20 + 3 * 40) / 9, "most": 40}
    assert speed.pop("components") == "all"
    assert speed == pytest.approx(truth)
    assert "20 to 40 m/s, mean 26.7, of all components" in capsys.readouterr().out


def test_a_rate_of_change_of_pressure_is_no_speed(tmp_path, capsys):
    coordinates = {
        "lev": ("lev", [1000.0, 900, 800], {"units": "hPa"}),
        "lat": ("lat", [0.0, 5, 10], {"units": "degrees_north"}),
        "lon": ("lon", [0.0, 5, 10], {"units": "degrees_east"}),
    }
    full = np.ones((3, 3, 3))
    names = ("u", 4, "m/s"), ("v", 3, "m/s"), ("omega", -12, "Pa/s")
    winds = {n: (coordinates.keys(), k * full, {"units": s}) for n, k, s in names}
    path, out = tmp_path / "flow.nc", tmp_path / "out"
    xarray.Dataset(winds, coordinates).to_netcdf(path, engine="h5netcdf")
    (tmp_path / "a.yaml").write_text("""
seeds: {type: Points, points: [[5, 5, 9.0e+4]]}
times: {duration_minutes: 10}
output: {figures: false}
""")
    line = ["track", str(path), "--w", "omega", "--config", str(tmp_path / "a.yaml")]
    assert main([*line, "--output-dir", str(out)]) == ExitCode.DONE
    speed = json.loads((out / "summary.json").read_text())["speed"]
    truth = dict.fromkeys(("least", "mean", "most"), 5)
    assert speed.pop("components") == "horizontal"
    assert speed == pytest.approx(truth)
    assert "mean 5, of horizontal components" in capsys.readouterr().out
