"""A run for tests that kill its process: `particle_run.py FOLDER`."""

import sys
import time
from pathlib import Path

import jax
import numpy as np

from physax.io import TrackFile
from physax.particles import Box, GriddedField, Reflect, Windows, run
from physax.runtime import Checkpointing
from tests.particles.flows import gridded_gyre, seeds


STEPS = 240
TIMES = np.linspace(0, 3.9, STEPS // 2 + 1)
COUNT = 50
FIELD = gridded_gyre(instants=14)


class Snapshots:
    """Snapshots that are read one by one."""

    times = np.linspace(0, 4, 14)

    def __call__(self, number):
        return np.asarray(FIELD.values[number])


def windows():
    axes = [np.asarray(axis.positions()) for axis in FIELD.axes]
    return Windows(Snapshots(), lambda v, t: GriddedField(v, axes, t), size=4)


def follow(folder, **options):
    folder = Path(folder)
    rows = TrackFile(folder / "tracks.npy", TIMES.size, COUNT, 2, "float32")
    return run(
        windows(),
        seeds(COUNT).astype("float32"),
        TIMES,
        steps=STEPS,
        boundary=Box([0.1, 0.05], [1.9, 0.95], Reflect()),
        diffusivity=1e-3,
        key=jax.random.key(1),
        sink=rows,
        checkpoint=Checkpointing(folder / "checkpoints", 10),
        progress=False,
        chunk=4,
        **options,
    )


if __name__ == "__main__":
    follow(sys.argv[1], on_chunk=lambda *_: time.sleep(0.02))
