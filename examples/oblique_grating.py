"""A grating at oblique incidence: efficiencies of its orders against coupled waves.

`python -m examples.oblique_grating [--cells N] [--output FOLDER]`. Ridges of index 2 on
glass, a period of 1 um, between Bloch faces: one pulse meets them at about 30 degrees
and gives the powers of all orders over a band. `em.diffraction_orders` separates them;
the reference is rigorous coupled-wave analysis. Saves `oblique_grating.png`.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

from physax import PhysaxWarning, em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT

from .command_line import numbers
from .pictures import keep


RIDGE, GLASS = 4.0, 2.25  # permittivities
PERIOD, DEPTH = 1.0, 0.5  # um; a ridge takes half of the period
TILT = np.sin(np.radians(30)) / 1.2  # sine over wavelength: 30 degrees at 1.2 um
WAVES = np.linspace(1.1, 1.3, 9)
FREQUENCIES = SPEED_OF_LIGHT / (WAVES * MICRO)
FREE = np.inf


def plane(height: float, face: str) -> em.NearFieldMonitor:
    """Returns a monitor of one face over the period; the height is in um."""
    return em.NearFieldMonitor((0, height * MICRO), (FREE, 0), FREQUENCIES, (face,))


def grating(cells: int) -> em.Simulation:
    """Returns the scene, with cells per um; light comes from below."""
    layer, top = 1.0, 3.0 + DEPTH
    shape = round(PERIOD * cells), round((top + 1.6) * cells)
    corners = (0.25 * PERIOD * MICRO, 3.0 * MICRO), (0.75 * PERIOD * MICRO, top * MICRO)
    grid = Grid.uniform(shape, MICRO / cells)
    structures = [
        em.Structure(
            em.Box.from_corners((-FREE, top * MICRO), FREE), em.Material(GLASS)
        ),
        em.Structure(em.Box.from_corners(*corners), em.Material(RIDGE)),
    ]
    pulse = em.band_pulse(FREQUENCIES.min(), FREQUENCIES.max())
    wave = em.PlaneWave(
        direction="+y",
        component="Ez",
        centre=(0, 2.0 * MICRO),
        size=(FREE, 0.8 * MICRO),
        pulse=pulse,
        exit=False,
    )
    return em.Simulation(
        grid,
        em.rasterise(structures, grid, components=("Ez", "Hx", "Hy")),
        em.Boundaries(
            x=em.Bloch(2 * np.pi * TILT / MICRO), y=em.CPML(round(layer * cells))
        ),
        sources={"wave": wave},
        monitors={
            "in": plane(2.0, "-y"),
            "reflected": plane(1.3, "-y"),
            "transmitted": plane(top + 0.3, "+y"),
        },
        polarisation="Ez",
        steps=180 * cells,
    )


def coupled_waves(wave: float, most: int = 20) -> np.ndarray:
    """Returns the reflected and transmitted power of the orders -1 and 0, exactly.

    Moharam and others, J. Opt. Soc. Am. A 12, 1068 (1995); lengths in um.
    """
    m = np.arange(-most, most + 1)
    kx = wave * (TILT + m / PERIOD)
    n = m[:, None] - m
    epsilon = 1.0 * (n == 0) + (RIDGE - 1) * np.sinc(n / 2) / 2
    before, behind = np.sqrt(1 - kx**2 + 0j), np.sqrt(GLASS - kx**2 + 0j)
    squares, vectors = np.linalg.eig(epsilon - np.diag(kx**2))
    q = np.sqrt(squares + 0j)
    turn = np.diag(np.exp(2j * np.pi * q * DEPTH / wave))
    other, one = vectors * q, np.eye(len(m))
    zero = np.zeros_like(one)
    # Unknowns: reflected, waves up and down in the ridges, transmitted.
    system = np.block(
        [
            [-one, vectors, vectors @ turn, zero],
            [np.diag(before), other, -other @ turn, zero],
            [zero, vectors @ turn, vectors, -one],
            [zero, other @ turn, -other, -np.diag(behind)],
        ]
    )
    source = np.zeros(4 * len(m), complex)
    source[most], source[len(m) + most] = 1, before[most]
    found = np.linalg.solve(system, source)
    r, t = found[: len(m)], found[-len(m) :]
    parts = (abs(r) ** 2 * np.real(before), abs(t) ** 2 * np.real(behind))
    return np.stack(parts)[:, most - 1 : most + 1] / np.real(before[most])


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=40)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", PhysaxWarning
        )  # Orders near their onset decay slowly.
        seen = em.simulate(grating(chosen.cells)).monitors
    incident = em.diffraction_orders(seen["in"], incoming=True).power.sum(axis=1)
    sides = ("reflected", "transmitted")
    powers = [em.diffraction_orders(seen[side], (1,)).power[:, :2] for side in sides]
    found = np.stack([np.asarray(power / incident[:, None]) for power in powers], 1)
    exact = np.stack([coupled_waves(wave) for wave in WAVES])
    fine = np.linspace(WAVES[0], WAVES[-1], 81)
    curves = np.stack([coupled_waves(wave) for wave in fine])
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for side, name in enumerate(sides):
        for column, order in enumerate((-1, 0)):
            colour = f"C{2 * side + column}"
            axes.plot(
                1e3 * fine, curves[:, side, column], colour, label=f"{name}, {order}"
            )
            axes.plot(
                1e3 * WAVES, found[:, side, column], "o", mfc="none", color=colour
            )
    axes.set(xlabel="wavelength (nm)", ylabel="efficiency of the order", ylim=(0, 0.8))
    axes.set_title("lines: coupled waves, circles: FDTD")
    axes.legend(ncols=2)
    keep(figure, {"found": found, "exact": exact}, chosen.output, "oblique_grating")
    worst = np.max(np.abs(found - exact))
    total = found.sum(axis=(1, 2))
    Console().print(
        f"efficiencies within {worst:.4f} of coupled waves; they sum to "
        f"{total.min():.4f} to {total.max():.4f}"
    )


if __name__ == "__main__":
    main()
