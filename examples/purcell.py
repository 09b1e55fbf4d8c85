"""Emission in front of a mirror: the Purcell factor of electric and magnetic lines.

`python -m examples.purcell [--cells N] [--output FOLDER]`. A line of current lies 0.6
um above a conductor. Interference with its image changes its emission: an electric line
along the mirror emits 1 - J0(2 k h) of its power in free space, a magnetic one
1 + J0(2 k h). One pulse measures a whole band, relative to the same run without the
mirror. Saves `purcell.png`.
"""

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from scipy.special import j0

from physax import em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT, TERA

from .command_line import numbers
from .pictures import keep


HEIGHT = 0.6 * MICRO
CARRIER = SPEED_OF_LIGHT / MICRO
PULSE = em.GaussianPulse(CARRIER, 0.25 * CARRIER)
FREQUENCIES = np.linspace(0.6, 1.4, 41) * CARRIER
SIGNS = {"Ez": -1, "Hz": 1}  # of the image


def emission(component: str, cells: int, *, mirror: bool) -> em.Emission:
    """Returns the emission of a line, above a wall at y = 0 or none; cells per um."""
    layer, spacing = cells // 2, MICRO / cells
    low = 0 if mirror else 2 * layer
    shape = 2 * (layer + layer), low + round(1.2 * cells) + layer
    line = em.Dipole(component=component, position=(0.0, HEIGHT), pulse=PULSE)
    sim = em.Simulation(
        Grid.uniform(shape, spacing, (-shape[0] / 2 * spacing, -low * spacing)),
        boundaries=em.Boundaries(
            x=em.CPML(layer),
            y=(em.PEC() if mirror else em.CPML(layer), em.CPML(layer)),
        ),
        sources={"line": line},
        monitors={"seen": em.EmissionMonitor(dipole=line, frequencies=FREQUENCIES)},
        steps=24 * cells,
        polarisation=component,
    )
    return em.simulate(sim).monitors["seen"]


def factor(component: str, cells: int) -> np.ndarray:
    """Returns the Purcell factor at the frequencies."""
    open_space, wall = (emission(component, cells, mirror=m) for m in (False, True))
    return np.asarray(em.purcell(wall, open_space))


def exact(component: str, frequencies: np.ndarray) -> np.ndarray:
    """Returns the emission of a line with its image over that of the line alone."""
    wavenumber = 2 * np.pi * frequencies / SPEED_OF_LIGHT
    return 1 + SIGNS[component] * j0(2 * wavenumber * HEIGHT)


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=30)
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    found, errors = {}, {}
    names = {"Ez": "electric line", "Hz": "magnetic line"}
    for component, name in names.items():
        found[component] = factor(component, chosen.cells)
        expected = exact(component, FREQUENCIES)
        errors[component] = np.max(np.abs(found[component] - expected))
        (line,) = axes.plot(FREQUENCIES / TERA, expected, label=f"{name}, image")
        axes.plot(
            FREQUENCIES[::2] / TERA,
            found[component][::2],
            "o",
            mfc="none",
            color=line.get_color(),
            label=f"{name}, FDTD",
        )
    axes.set(xlabel="frequency (THz)", ylabel="Purcell factor", ylim=(0.5, 1.5))
    axes.legend(ncols=2)
    keep(figure, found | {"frequencies": FREQUENCIES}, chosen.output, "purcell")
    Console().print(
        f"Purcell factors within {errors['Ez']:.4f} (electric) and {errors['Hz']:.4f} "
        "(magnetic) of those of a line and its image"
    )


if __name__ == "__main__":
    main()
