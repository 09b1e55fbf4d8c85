"""Carries air parcels around the globe by measured winds.

`python -m examples.wind [--days N] [--output FOLDER]` reads monthly mean winds at 200
hPa (`tests/validation/data/wind`, with their licence), releases parcels on a grid of
longitudes and latitudes, interpolates linearly between January and February,
checks six of them against reference end points, and saves `wind.png` and `wind.gif`.
"""

import argparse
import json
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from physax import io, plot
from physax.particles import seed_grid, track


DATA = Path(__file__).parents[1] / "tests" / "validation" / "data" / "wind"
DAY = 86_400.0


def main(arguments: list[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=20)
    parser.add_argument("--output", type=Path, default=Path("."))
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    wind = io.read_velocity([DATA / "uwnd_mean.nc", DATA / "vwnd_mean.nc"])

    rows = json.loads((DATA / "reference.json").read_text())["rows"]
    rows = [row for row in rows if row["field"] == "linear_in_time"]
    starts = np.array([[row["lon0"], row["lat0"]] for row in rows], "f4")
    ends = np.array([[row["lon"], row["lat"]] for row in rows])
    checked = track(wind, starts, [0, 20 * DAY], steps=2000)
    off = np.abs(np.asarray(checked.positions[-1]) - ends).max()
    print(f"{len(ends)} reference parcels after 20 days: within {off:.1e} degrees")

    seeds = seed_grid((0, -80), (350, 80), (36, 17))
    times = np.arange(4 * options.days + 1) * DAY / 4
    tracks = track(wind, seeds, times, dt=900)
    seconds = time.perf_counter() - began
    print(
        f"{len(seeds)} parcels, {options.days} days, {seconds:.1f} s; {tracks.counts()}"
    )
    figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
    plot.tracks(tracks, spherical=True, axes=axes)
    axes.set_title(f"200 hPa, {options.days} days of mean winter wind")
    figure.savefig(options.output / "wind.png", dpi=150)
    plot.animate_tracks(tracks, options.output / "wind.gif", spherical=True)
    print(f"wrote {options.output / 'wind.png'} and wind.gif")


if __name__ == "__main__":
    main()
