import re

import numpy as np
import pytest

from physax.cli import ExitCode, main


xarray = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")


@pytest.fixture
def run(tmp_path):
    """Follows points for a tenth of a day over a region of the globe, or all of it."""

    def run(points, lon):
        lat = np.arange(-90.0, 91, 30) if len(lon) > 9 else np.arange(-30.0, 31, 10)
        u = (("lat", "lon"), np.ones((lat.size, lon.size)), {"units": "m/s"})
        xarray.Dataset(
            {"u": u, "v": u},
            {"lat": ("lat", lat, {"units": "degrees_north"}),
             "lon": ("lon", lon, {"units": "degrees_east"})},
        ).to_netcdf(tmp_path / "flow.nc", engine="h5netcdf")  # fmt: skip
        settings = tmp_path / "a.yaml"
        settings.write_text(
            f"seeds: {{type: Points, points: {points}}}\n"
            "times: {duration_days: 0.1}\n"
            "output: {tracks: a.npz, figures: false}\n"
        )
        line = ["track", str(tmp_path / "flow.nc"), "--config", str(settings)]
        return main([*line, "--output-dir", str(tmp_path / "out")])

    return run


GLOBE, REGION = np.arange(0.0, 360, 30), np.arange(-40.0, 41, 10)


@pytest.mark.parametrize("lon", [GLOBE, REGION])
def test_latitudes_beyond_the_poles_are_refused(run, capsys, lon):
    assert run([[10, 20], [-11, 162]], lon) == ExitCode.REFUSED
    said = capsys.readouterr().err
    assert re.search(
        r"latitudes from -90 to 90 degrees, but 1 of 2 do not; number 1 is at "
        r"\[-11\. +162\.\]\. The order is longitude, latitude\.$",
        said.strip(),
    )


@pytest.mark.slow
def test_poles_and_any_longitude_are_places(run):
    assert run([[10, 90], [-11, -90], [725, 0]], GLOBE) == ExitCode.DONE


@pytest.mark.slow
def test_seeds_beyond_the_data_are_refused_in_words_of_the_command(run, capsys):
    assert run([[0, 0], [350, 5], [100, 10]], REGION) == ExitCode.REFUSED
    said = capsys.readouterr().err
    assert "lon -40 to 40 degrees, lat -30 to 30 degrees, but 1 of 3 do not" in said
    assert "do not, first number 2 at [100.0, 10.0]" in said
    assert "Clamp" not in said
    assert run([[0, 0], [350, 5]], REGION) == ExitCode.DONE
