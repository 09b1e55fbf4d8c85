"""Bands of a photonic crystal: Bloch faces and resonances against plane waves.

`python -m examples.band_structure [--cells N] [--points N] [--output FOLDER]`. A square
lattice of rods of permittivity 8.9 and radius 0.2 periods, with the electric field
along the rods. A pulse excites one cell at each Bloch wavevector, all in one program,
and `em.resonances` finds the bands in the ring-down. Saves `band_structure.png`.
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from scipy.special import j1

from physax import em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT

from .command_line import numbers
from .pictures import keep


PERIOD, RADIUS, RODS = MICRO, 0.2, 8.9
UNIT = SPEED_OF_LIGHT / PERIOD
CORNERS = np.array([(0.0, 0.0), (0.5, 0.0), (0.5, 0.5), (0.0, 0.0)])
HIGHEST, MIDDLE = 0.8, 0.38  # of the bands, of the gap, in c / a
PULSE = em.GaussianPulse(0.4 * UNIT, 0.2 * UNIT)


def path(points: int) -> np.ndarray:
    """Returns wavevectors along Gamma, X, M, Gamma, in 2 pi / a."""
    part = np.arange(points)[:, None] / points
    legs = [a + part * (b - a) for a, b in pairwise(CORNERS)]
    return np.concatenate([*legs, CORNERS[-1:]])


def plane_waves(k: np.ndarray, bands: int = 5, most: int = 7) -> np.ndarray:
    """Returns exact bands in c / a: 225 plane waves, and the inverse permittivity."""
    n = np.stack(np.meshgrid(*[np.arange(-most, most + 1)] * 2), -1).reshape(-1, 2)
    g = 2 * np.pi * np.linalg.norm(n[:, None] - n, axis=-1) * RADIUS
    filled = np.pi * RADIUS**2
    parts = (RODS - 1) * filled * np.where(g > 0, 2 * j1(g) / np.where(g > 0, g, 1), 1)
    inverse = np.linalg.inv(parts + np.eye(len(n)))
    length = np.linalg.norm(k + n, axis=1)
    squares = np.linalg.eigvalsh(length[:, None] * inverse * length)
    return np.sqrt(np.abs(squares[:bands]))


def ringing(wavevectors: np.ndarray, cells: int) -> em.TimeSeries:
    """Returns the record of a row of the cell; wavevectors are along the first axis."""
    grid = Grid.uniform((cells, cells), PERIOD / cells)
    rod = em.Structure(em.Circle((PERIOD / 2,) * 2, RADIUS * PERIOD), em.Material(RODS))
    medium = em.rasterise([rod], grid, components=("Ez", "Hx", "Hy"))
    row = em.TimeMonitor(("Ez",), (0.0, 0.2 * PERIOD), (np.inf, 0.0), every=4)

    place = (0.37 * PERIOD, 0.24 * PERIOD)
    kick = em.Dipole(component="Ez", position=place, pulse=PULSE)

    def run(k):
        sim = em.Simulation(
            grid,
            medium,
            em.Boundaries(x=em.Bloch(k[0]), y=em.Bloch(k[1])),
            sources={"kick": kick},
            monitors={"row": row},
            polarisation="Ez",
            steps=120 * cells,
        )
        return em.simulate(sim).monitors["row"]

    return jax.jit(jax.vmap(run))(jnp.asarray(wavevectors * 2 * np.pi / PERIOD))


def bands(seen: em.TimeSeries, point: int) -> np.ndarray:
    """Returns the bands at one wavevector in c / a."""
    series = jax.tree.map(lambda x: x[point], seen)
    record, times = np.asarray(series.values["Ez"]), series.times["Ez"]
    probes = record.reshape(len(record), -1)[:, ::3]
    dt, start = times[1] - times[0], PULSE.duration() - times[0]
    band = (0.08 * UNIT, HIGHEST * UNIT)
    return em.resonances(probes, band, dt=dt, start=start).frequency / UNIT


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=20, points=6)
    wavevectors = path(chosen.points)
    seen = ringing(wavevectors, chosen.cells)
    found = [bands(seen, point) for point in range(len(wavevectors))]
    exact = np.stack([plane_waves(k) for k in wavevectors])
    errors = np.concatenate(
        [
            np.min(np.abs(one[:, None] - f), axis=1)
            for one, f in zip(found, exact, strict=True)
        ]
    )
    steps = np.linalg.norm(np.diff(wavevectors, axis=0), axis=1)
    along = np.concatenate([[0], np.cumsum(steps)])
    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    fine = path(4 * chosen.points)
    there = np.linspace(0, 1, len(fine)) * (len(along) - 1)
    x = np.interp(there, np.arange(len(along)), along)
    lines = axes.plot(x, np.stack([plane_waves(k) for k in fine]), "k-", lw=0.8)
    lines[0].set_label("plane waves")
    for at, one in zip(along, found, strict=True):
        (dots,) = axes.plot(np.full(len(one), at), one, "o", mfc="none", color="C0")
    dots.set_label("FDTD")
    every = np.concatenate(found)
    below, above = every[every < MIDDLE].max(), every[every > MIDDLE].min()
    axes.axhspan(below, above, alpha=0.2, color="C1", label="gap")
    axes.set_xticks(along[:: chosen.points], ["$\\Gamma$", "X", "M", "$\\Gamma$"])
    axes.set(xlabel="Bloch wavevector", ylabel="frequency (c/a)", ylim=(0, HIGHEST))
    axes.legend(loc="lower center")
    keep(
        figure,
        {"errors": errors, "gap": np.array([below, above])},
        chosen.output,
        "band_structure",
    )
    Console().print(
        f"gap from {below:.3f} to {above:.3f} c/a; {len(errors)} frequencies, at most "
        f"{errors.max():.4f} c/a off those of plane waves"
    )


if __name__ == "__main__":
    main()
