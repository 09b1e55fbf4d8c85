"""Velocities that are linear in place and time, in files by CF's rules."""

import numpy as np
import pytest


xarray = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")

LON, LAT, DEPTH = (
    np.arange(0.0, 360, 30),
    np.arange(90.0, -91, -30),
    np.array([0.0, 10, 40]),
)


def flow(
    lon=LON, lat=LAT, depth=None, times=None, units="days since 2001-03-01", **cal
):
    """A velocity that is linear in latitude, depth and time, by CF's rules."""
    shape = [("time", times), ("depth", depth), ("lat", lat), ("lon", lon)]
    dims = [name for name, values in shape if values is not None]
    places = dict(zip(dims, np.meshgrid(*[v for _, v in shape if v is not None],
                                        indexing="ij"), strict=True))  # fmt: skip
    speed = places["lat"] + 1000.0 * places.get("depth", 0) + 10 * places.get("time", 0)
    attributes = {
        "time": {"units": units, **cal},
        "depth": {"units": "m", "positive": "down"},
        "lat": {"units": "degrees_north"},
        "lon": {"units": "degrees_east"},
    }
    coordinates = {n: (n, v, attributes[n]) for n, v in shape if v is not None}
    fields = {"uo": (dims, speed, {"units": "m s-1"}), "vo": (dims, 0 * speed + 1.0)}
    return xarray.Dataset(fields, coordinates)


def save(data, path, **encoding):
    data.to_netcdf(path, engine="h5netcdf", encoding=encoding)
    return path
