"""Which longitudes go around the globe, and where those of a region begin."""

import numpy as np
import pytest

from physax import ArgumentError
from physax.io import PhysaxFileError, read_velocity
from physax.io._netcdf_axes import Role, X, plan_axis, role_of

from .flows import flow, save


EAST = {"units": "degrees_east"}
# Two patches on both sides of Greenwich, and of the date line, sorted.
GREENWICH = np.r_[0:10.01:0.25, 350:360:0.25]
GREENWICH_TWICE = np.r_[0:10.01:0.25, 350:360.01:0.25]
DATE_LINE = np.r_[-180:-169.99:0.25, 170:180.01:0.25]


def planned(places):
    return plan_axis("lon", np.asarray(places), EAST, Role(X, True))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("stored", "west"),
    [(GREENWICH, 350.0), (GREENWICH_TWICE, 350.0), (DATE_LINE, 170.0)],
)
@pytest.mark.parametrize("falling", [False, True])
def test_a_region_across_the_end_of_longitudes_is_one_piece(
    stored, west, kind, falling
):
    stored = stored[::-1] if falling else stored
    axis = planned(stored.astype(kind))
    assert axis.period is None
    assert np.allclose(axis.positions, west + 0.25 * np.arange(81), atol=1e-9)
    assert np.allclose((stored[axis.order] - axis.positions) % 360, 0, atol=1e-4)


def test_a_column_may_be_there_as_minus_180_and_180():
    axis = planned(np.r_[170:180.01:0.25, -180:-169.99:0.25])
    assert axis.period is None
    assert np.allclose(axis.positions, 170 + 0.25 * np.arange(81))


def test_a_small_hole_is_a_hole():
    axis = planned(np.r_[0:100.01:0.5, 110:360:0.5])
    assert axis.period is None
    assert np.allclose(axis.positions[[0, -1]], [110, 460])
    # Two patches far apart stay as they are in the file.
    for stored in (np.r_[0:10.1:0.5, 200:210.1:0.5], np.array([0.0, 10, 200])):
        axis = planned(stored)
        assert axis.period is None
        assert np.array_equal(axis.positions, stored)


def stretched(count):
    """Spacings of 2 degrees in the west and 0.4 in the east, smoothly."""
    x = np.arange(count) * 360 / count
    return x + 36 * np.sin(np.radians(x))


@pytest.mark.parametrize(
    "places",
    [
        np.arange(0, 360, 0.25),
        np.arange(-180, 180.1, 0.25),
        (0.1 + np.arange(3600) / 10).astype(np.float32),
        np.linspace(-179.95, 179.95, 3600, dtype=np.float32),
        np.append(np.arange(3600) / 10, 360).astype(np.float32),
        stretched(300),
        np.append(stretched(300), 360),
        np.append(stretched(300), 360).astype(np.float32) - np.float32(180),
        # Nested grids change their spacing at once.
        np.r_[0:60:0.25, 60:360:5.0],
        np.r_[0:60:5.0, 60:120:0.25, 120:360.1:5],
        np.array([0.0, 120, 240]),
    ],
)
def test_the_globe_stays_one(places):
    axis = planned(places)
    assert axis.period == 360
    last = np.isclose(places[-1], places[0] + 360)
    assert axis.positions.size == places.size - last
    assert np.allclose(axis.positions, places[: places.size - last], atol=1e-4)


@pytest.mark.parametrize("stored", [GREENWICH, GREENWICH_TWICE, DATE_LINE])
def test_values_of_a_region_stay_with_their_columns(tmp_path, stored):
    lat = np.array([0.0, 1.0, 2.0])
    data = flow(stored, lat)
    data["uo"] = data.uo * 0 + np.cos(np.radians(data.lon))
    field = read_velocity(save(data, tmp_path / "a.nc"))
    assert field.periodic == (False, False)
    values = field.field.velocity.values[..., 0]
    nodes = field.field.velocity.axes[0].positions()
    assert np.allclose(values, np.cos(np.radians(nodes))[:, None], atol=1e-6)
    assert np.allclose(np.diff([field.low[0], field.high[0]]), 20)


def renamed(lon_units, lat_units, names=("lon", "lat"), scale=1.0):
    """A flow over places with names and units of their own."""
    lon, lat = np.arange(0.0, 40, 10), np.array([-30.0, 0, 30, 60])
    data = flow(lon * scale, lat * scale).rename(lon=names[0], lat=names[1])
    for name, units in zip(names, (lon_units, lat_units), strict=True):
        data[name].attrs = {"units": units}
    return data


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("units", ["radian", "radians", "rad"])
def test_radians_become_degrees(kind, units):
    stored = np.radians(np.arange(0.0, 360, 2)).astype(kind)
    axis = plan_axis("lon", stored, {"units": units}, Role(X, True))
    assert axis.unit == "degrees"
    assert axis.period == 360
    assert np.allclose(axis.positions, np.arange(0.0, 360, 2), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("units", "names"),
    [
        ("degrees", ("x", "y")),
        ("degree", ("x", "y")),
        ("radian", ("x", "y")),
        ("radian", ("lon", "lat")),
    ],
)
def test_angles_are_longitudes_and_latitudes_by_any_name(tmp_path, units, names):
    scale = np.radians(1.0) if units == "radian" else 1.0
    data = renamed(units, units, names, scale)
    field = read_velocity(save(data, tmp_path / "a.nc"))
    assert field.spherical
    assert field.units == ("degrees", "degrees")
    assert np.allclose(field.low, [0, -30], atol=1e-5)
    assert np.allclose(field.high, [30, 60], atol=1e-5)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            renamed("m", "degrees_north"),
            "unit of the longitudes `lon` must be degrees or radians, but is 'm'. Corr",
        ),
        (
            renamed("degrees_east", "km"),
            "unit of the latitudes `lat` must be degrees or radians, but is 'km'. Cor",
        ),
        (
            renamed("degrees_east", "degrees_north", scale=2.0),
            "Latitudes along `lat` must be from -90 to 90 degrees, but one is 120",
        ),
    ],
)
def test_other_units_of_longitudes_and_latitudes_are_refused(tmp_path, data, message):
    with pytest.raises(PhysaxFileError, match=message):
        read_velocity(save(data, tmp_path / "a.nc"))


def test_angles_of_a_camera_in_orbit_are_no_longitudes():
    attributes = {"units": "rad", "standard_name": "projection_x_coordinate"}
    for more in ({}, {"axis": "X"}):
        role = role_of("x", attributes | more)
        assert role == Role(X, False)
        with pytest.raises(ArgumentError, match="unit of `x` must .*, but is 'rad'"):
            plan_axis("x", np.arange(3.0), attributes, role)
