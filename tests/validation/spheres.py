"""Scattering of a plane wave by a sphere, as tests run it."""

import functools
import json
from pathlib import Path

import jax
import numpy as np

from physax import em
from physax.grid import Grid
from physax.units import SPEED_OF_LIGHT


ROWS = json.loads((Path(__file__).parent / "data" / "em_analytic.json").read_text())[
    "mie_sphere"
]["rows"]
SCATTERED = {(row["x"], row["m_re"]): row["qsca"] for row in ROWS if not row["m_im"]}
RADIUS = 1e-6
BOX, OUTER, LAYER = 1.5, 1.75, 10  # half widths in radii, and cells


def run(size, cells, half, medium, faces, width, monitors):
    """Returns the fluxes of a pulse along z, polarised along x, by the monitors.

    Args:
        size: Size parameter at the middle of the spectrum.
        cells: Cells per radius.
        half: Half widths of the grid in cells.
        medium: Makes the medium on a grid.
        faces: Boundaries of the grid.
        width: Of the total field along each axis, in radii.
        monitors: Makes the monitors from a frequency.
    """
    grid = Grid.centred(tuple(2 * n for n in half), RADIUS / cells)
    frequency = size * SPEED_OF_LIGHT / (2 * np.pi * RADIUS)
    pulse = em.GaussianPulse(frequency, 0.4 * frequency)
    ends = (0.0,) * 3, tuple(w * RADIUS for w in width)
    sim = em.Simulation(
        grid,
        medium(grid),
        faces,
        sources={"wave": em.PlaneWave("+z", "Ex", *ends, pulse)},
        monitors=monitors(frequency),
        steps=120 * half[2],
        dt=0.55 * RADIUS / cells / SPEED_OF_LIGHT,
    )
    # The tests are compiled for their many short programs; this one runs for long.
    compiled = jax.jit(
        lambda sim: em.simulate(sim, until=em.Decay(1e-8, 200)),
        compiler_options={"xla_backend_optimization_level": 3},
    )
    found = compiled(sim).monitors
    return {name: float(one.flux[0]) for name, one in found.items()}


def box_monitors(frequency):
    """Returns flux monitors on the six sides of a cube outside of the total field."""
    out = {}
    for axis in range(3):
        for sign in (-1, 1):
            centre, size = [0.0, 0.0, 0.0], [2 * OUTER * RADIUS] * 3
            centre[axis], size[axis] = sign * OUTER * RADIUS, 0.0
            where = tuple(centre), tuple(size)
            monitor = em.FluxMonitor("xyz"[axis], *where, frequency)
            out[f"{axis} {sign}"] = monitor
    return out


@functools.cache
def scattered(size, index, cells):
    """Returns the power that a sphere scatters."""
    ball = em.Structure(em.Sphere((0.0, 0.0, 0.0), RADIUS), em.Material(index**2))
    fluxes = run(
        size,
        cells,
        (round((OUTER + 0.25) * cells) + LAYER,) * 3,
        lambda grid: em.rasterise([ball], grid, averaging="polarised"),
        em.Boundaries.all(em.CPML(LAYER)),
        (2 * BOX,) * 3,
        box_monitors,
    )
    return sum(sign * fluxes[f"{axis} {sign}"] for axis in range(3) for sign in (-1, 1))


@functools.cache
def incident(size, cells):
    """Returns the power of the wave through `RADIUS` squared, on a few columns."""
    across, free = 2, (float("inf"),) * 2
    fluxes = run(
        size,
        cells,
        (across, across, round(0.75 * cells) + LAYER),
        lambda grid: em.Medium(),
        em.Boundaries(x=em.Periodic(), y=em.Periodic(), z=em.CPML(LAYER)),
        (*free, 1.0),
        lambda f: {"on": em.FluxMonitor("z", (0.0,) * 3, (*free, 0.0), f)},
    )
    return fluxes["on"] * (cells / (2 * across)) ** 2


def gap(size, index, cells):
    """Returns the relative error of the efficiency of scattering."""
    found = scattered(size, index, cells) / incident(size, cells) / np.pi
    return found / SCATTERED[size, index] - 1
