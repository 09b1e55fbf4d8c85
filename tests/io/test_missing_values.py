"""What stands for missing data in files: limits of valid values, and default fills."""

from contextlib import closing

import h5netcdf
import numpy as np
import pytest

from physax import PhysaxWarning
from physax.io import read_scalar, read_velocity
from physax.io._netcdf_open import open_stored
from physax.io._netcdf_variable import find_variable

from .flows import LAT, LON, flow, save


xarray = pytest.importorskip("xarray")

KELVIN = np.arange(12.0 * 7).reshape(7, 12)


def stored(path, values, **attributes):
    """Writes a scalar with attributes of exactly these types, bare of any others."""
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"lat": LAT.size, "lon": LON.size}
        for name, places, units in (
            ("lat", LAT, "degrees_north"),
            ("lon", LON, "degrees_east"),
        ):
            file.create_variable(name, (name,), data=places).attrs["units"] = units
        variable = file.create_variable("t", ("lat", "lon"), data=values)
        for name, value in attributes.items():
            variable.attrs[name] = value
    return path


def known(path):
    """Returns which values are known, in the order of the file."""
    with closing(open_stored(path, None, None)) as data:
        return np.isfinite(find_variable([data], "t", {}).read(0, 1))[0].T[::-1]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize(
    ("limits", "low", "high"),
    [
        ({"valid_min": 5.0}, 5, 100),
        ({"valid_max": np.float32(70.1)}, 0, 70),
        ({"valid_range": np.array([5.0, 70.0])}, 5, 70),
        ({"valid_range": np.array([5, 70], np.int32)}, 5, 70),
        # No number, so it says nothing.
        ({"valid_min": "5"}, 0, 100),
    ],
)
def test_values_beyond_the_valid_ones_are_missing(tmp_path, kind, limits, low, high):
    path = stored(tmp_path / "a.nc", KELVIN.astype(kind), **limits)
    assert np.array_equal(known(path), (low <= KELVIN) & (high >= KELVIN))


@pytest.mark.parametrize("scale", [0.1, -0.1])
@pytest.mark.parametrize("unpacked", [False, True])
def test_limits_of_packed_values_are_packed_if_whole(tmp_path, scale, unpacked):
    # From 5 to 40 degrees; unsigned, so that 150 and more are negative as stored.
    packed = np.round((KELVIN / 2 - 20) / scale).astype(np.int16)
    ends = np.array([5.0, 40.0])
    limits = ends if unpacked else np.sort((ends - 20) / scale).round().astype(np.int16)
    path = stored(
        tmp_path / "a.nc",
        packed,
        scale_factor=scale,
        add_offset=20.0,
        valid_min=limits[0],
        valid_max=limits[1],
    )
    good = (KELVIN / 2 >= 5) & (KELVIN / 2 <= 40)
    assert np.array_equal(known(path), good)


def test_limits_of_unsigned_bytes_are_unsigned(tmp_path):
    packed = (KELVIN * 3).astype(np.uint8).view(np.int8)
    path = stored(
        tmp_path / "a.nc",
        packed,
        _Unsigned="true",
        scale_factor=0.5,
        valid_range=np.array([10, 200], np.uint8).view(np.int8),
    )
    assert np.array_equal(known(path), (KELVIN * 3 >= 10) & (KELVIN * 3 <= 200))


def test_limits_of_speeds_hold_before_they_are_scaled(tmp_path):
    data = flow()
    data["vo"] = data.uo.copy()
    for name in ("uo", "vo"):
        data[name].attrs = {"units": "cm/s", "valid_max": 65.0}
    field = read_velocity(save(data, tmp_path / "a.nc"))
    # The speed is the latitude, so the row at 90 is none, and that at -90 is one.
    assert np.argwhere(field.land.mask)[:, 1].tolist() == [6] * 12
    assert np.allclose(field.largest, [0.9, 0.9])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_default_fill_is_no_value(tmp_path, kind):
    values = KELVIN.astype(kind)
    values[2, 3] = 9.969209968386869e36
    path = stored(tmp_path / "a.nc", values)
    assert np.argwhere(~known(path)).tolist() == [[2, 3]]
    assert read_scalar(path, "t").largest[0] == KELVIN.max()


def test_limits_that_void_all_values_are_told(tmp_path):
    # A range that was never filled in.
    path = stored(tmp_path / "f.nc", KELVIN, valid_min=1e20, valid_max=-1e20)
    with pytest.warns(
        PhysaxWarning, match="All values .* limits, 1e\\+20 to -1e\\+20,"
    ):
        known(path)
