"""parcels' kernel of the classical Runge-Kutta method in three dimensions."""

from datetime import timedelta

import numpy as np
import parcels
import xarray as xr
from parcels.kernels import AdvectionRK4_3D

from ._serve import serve
from ._tracks_data import DT, axes, flow, seeds


SECONDS = 1000  # parcels' times have whole nanoseconds; the flow is slowed down by this


def fieldset():
    t, x = axes()
    values = np.moveaxis(flow(), -1, 0).transpose(0, 1, 4, 3, 2) / SECONDS
    times = (t * SECONDS * 1e9).astype("timedelta64[ns]")
    names = ("time", "depth", "lat", "lon")
    data = {
        name: (names, component)
        for name, component in zip("UVW", values.astype("f4"), strict=True)
    }
    coordinates = {
        "time": (("time",), times, {"axis": "T"}),
        "depth": (("depth",), x, {"axis": "Z"}),
        "lat": (("lat",), x, {"axis": "Y"}),
        "lon": (("lon",), x, {"axis": "X"}),
    }
    dataset = xr.Dataset(data, coordinates)
    return parcels.FieldSet.from_sgrid_conventions(
        parcels.convert.copernicusmarine_to_sgrid(
            fields={name: dataset[name] for name in "UVW"}
        ),
        mesh="flat",
    )


def prepare(steps, particles, recorded):
    del recorded
    field, start = fieldset(), seeds(particles)

    def run():
        swarm = parcels.ParticleSet(
            fieldset=field,
            pclass=parcels.Particle,
            x=start[:, 0],
            y=start[:, 1],
            z=start[:, 2],
        )
        step = timedelta(seconds=DT * SECONDS)
        swarm.execute(
            AdvectionRK4_3D, dt=step, runtime=steps * step, verbose_progress=False
        )
        return [np.mean(np.square(a, dtype=float)) for a in (swarm.x, swarm.y, swarm.z)]

    return run


if __name__ == "__main__":
    serve("parcels", parcels.__version__, prepare)
