"""Particles in real winds against trajectories by another integrator (data/wind)."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from physax.io import read_velocity
from physax.particles import OnSphere, ParticleStatus, track


pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")

WIND = Path(__file__).parent / "data" / "wind"
DAY = 86_400.0
FILES = [WIND / "uwnd_mean.nc", WIND / "vwnd_mean.nc"]


def rows(case):
    cases = json.loads((WIND / "reference.json").read_text())["rows"]
    chosen = [row for row in cases if row["field"] == case]
    start = np.array([[row["lon0"], row["lat0"]] for row in chosen])
    stop = np.array([[row["lon"], row["lat"]] for row in chosen])
    return start, stop, chosen[0]["days"]


# The velocity has kinks at the faces of cells, so steps over them are of order 2: the
# number of steps is what the stated tolerance takes, with a reserve of 3.
@pytest.mark.x64
@pytest.mark.parametrize(
    ("case", "instants", "step", "tolerance"),
    [("steady", 1, 20.0, 1e-6), ("linear_in_time", 2, 60.0, 1e-5)],
)
def test_trajectories_in_double_precision(case, instants, step, tolerance):
    start, stop, days = rows(case)
    wind = read_velocity(FILES, snapshots=slice(0, instants))
    tracks = track(wind, start, np.array([0.0, days * DAY]), dt=step)
    assert np.all(tracks.status == ParticleStatus.ALIVE)
    assert np.abs(tracks.positions[-1] - stop).max() < tolerance


@pytest.mark.f32
@pytest.mark.parametrize(("case", "instants"), [("steady", 1), ("linear_in_time", 2)])
def test_trajectories_in_single_precision(case, instants):
    start, stop, days = rows(case)
    wind = read_velocity(FILES, snapshots=slice(0, instants))
    tracks = track(wind, start, np.array([0.0, days * DAY]), dt=1800.0)
    assert tracks.positions.dtype == jnp.float32
    assert np.abs(tracks.positions[-1] - stop).max() < 5e-2


@pytest.mark.f32
def test_the_files_are_understood():
    wind = read_velocity(FILES)
    assert wind.spherical
    assert wind.periodic == (True, False)
    assert wind.epoch is not None
    assert wind.epoch.date == "1970-01-01T00:00:00"
    months = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334])
    assert np.allclose(wind.times, months * DAY)
    assert isinstance(wind.field, OnSphere)
    values = wind.field.velocity.values
    assert values.shape == (12, 144, 73, 2)
    # The ranges that the data's own page states.
    assert np.allclose(values.min((0, 1, 2)), [-25.12, -14.05], atol=0.005)
    assert np.allclose(values.max((0, 1, 2)), [76.89, 13.17], atol=0.005)
