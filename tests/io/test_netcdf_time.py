import numpy as np
import pytest

from physax import ArgumentError
from physax.io import MissingPackageError
from physax.io._netcdf_time import read_stamps, to_seconds


pytest.importorskip("xarray")
pytest.importorskip("cftime")

NO_DATES = [
    ("months since 2001-03-01", "standard"),
    ("years since 2001-03-01", "noleap"),
    ("days since yesterday", "standard"),
    ("days since 2001-03-01", "lunar"),
]


@pytest.mark.parametrize(("units", "calendar"), NO_DATES)
def test_times_that_are_no_dates_are_explained(units, calendar):
    message = "Times must be in seconds, .*Rewrite them"
    with pytest.raises(ArgumentError, match=message) as caught:
        read_stamps(np.arange(2.0), {"units": units, "calendar": calendar})
    assert f"{units!r} of {calendar!r}" in str(caught.value)
    assert "decode_times" not in str(caught.value)


@pytest.mark.parametrize("units", ["s", "days since 2001-03-01"])
def test_a_time_that_is_missing_is_named(units):
    with pytest.raises(ArgumentError, match="1 of 3 are not; number 1 is nan. Write"):
        read_stamps(np.array([0.0, np.nan, 2.0]), {"units": units})


def test_months_of_thirty_days_are_read():
    attributes = {"units": "months since 2001-03-01", "calendar": "360_day"}
    seconds, epoch = to_seconds(read_stamps(np.arange(3.0), attributes), attributes)
    assert np.array_equal(seconds, np.arange(3) * 30 * 86400)
    assert epoch.calendar == "360_day"


def test_without_cftime_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        MissingPackageError, match="'lunar' may need the package cftime"
    ):
        read_stamps(
            np.arange(2.0), {"units": "days since 2001-03-01", "calendar": "lunar"}
        )
