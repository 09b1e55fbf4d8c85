"""physax's side of `benchmarks.particles`."""

import numpy as np

from physax.particles import GriddedField, track

from ._rows import ours_version
from .peers._serve import serve
from .peers._tracks_data import DT, axes, flow, seeds


def field() -> GriddedField:
    """Returns the flow of the workload."""
    times, nodes = axes()
    return GriddedField(flow(), [nodes] * 3, times)


def prepare(steps: int, particles: int, recorded: int):
    """Returns a run: all steps recorded, or the last alone."""
    velocity, start = field(), seeds(particles)
    times = np.linspace(0, steps * DT, steps + 1 if recorded else 2)

    def run():
        tracks = track(velocity, start, times, steps=steps)
        return (np.asarray(tracks.positions[-1], float) ** 2).mean(0)

    return run


if __name__ == "__main__":
    serve("physax", ours_version(), prepare)
