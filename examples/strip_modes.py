"""Modes of a silicon strip: effective indices over the width, and group index.

`python -m examples.strip_modes [--cells NM] [--output FOLDER]`. A strip 220 nm high in
silica: `em.cross_section_modes` gives the effective indices at 1550 nm of widths from
0.3 to 0.7 um, and `em.group_index`, a derivative, the group index of the strip of 0.5
um with the dispersion of silicon and silica. Saves `strip_modes.png`. Two minutes.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

from physax import PhysaxWarning, em, plot
from physax.grid import Grid
from physax.units import MICRO, NANO, SPEED_OF_LIGHT

from .command_line import numbers
from .pictures import keep


WAVE, HEIGHT = 1.55 * MICRO, 0.22 * MICRO
SILICON, SILICA = em.Material(3.4757**2), em.Material(1.444**2)
COUNT = 3
FEMWELL = np.array([2.4451, 1.7702])  # finite elements: quasi-TE and quasi-TM at 0.5 um


def section(
    width: float, cell: float, core=SILICON, cladding=SILICA
) -> tuple[Grid, em.Medium]:
    """Returns the cells of a section, and the strip in it; lengths in metres."""
    # Faces on nodes where half the width is a number of cells.
    shape, spacing = (2 * round(1.1 * MICRO / cell), 72), (cell, HEIGHT / 8)
    grid = Grid.centred(shape, spacing)
    strip = em.Structure(em.Box((0.0, 0.0), (width, HEIGHT)), core)
    return grid, em.rasterise([strip], grid, cladding, components=("Ex", "Ey", "Ez"))


def dispersion(wavelengths: np.ndarray, cell: float) -> np.ndarray:
    """Returns the group index of the first mode at wavelengths in metres."""
    materials = [em.library(name, wavelengths=wavelengths) for name in ("Si", "SiO2")]
    grid, medium = section(0.5 * MICRO, cell, *materials)

    def index(frequency):
        modes = em.cross_section_modes(grid, medium, frequency)
        return modes.effective_index[0].real

    frequencies = SPEED_OF_LIGHT / wavelengths
    return np.array([float(em.group_index(index, f)) for f in frequencies])


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=25.0, points=5)
    cell = chosen.cells * NANO
    widths = np.linspace(0.3, 0.7, chosen.points) * MICRO
    frequency = SPEED_OF_LIGHT / WAVE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysaxWarning)  # Near cut-off, modes are wide.
        modes = [
            em.cross_section_modes(*section(width, cell), frequency, count=COUNT)
            for width in widths
        ]
    indices = np.stack([np.real(one.effective_index) for one in modes])
    shares = np.stack([np.asarray(one.x_fraction) for one in modes])
    middle = len(widths) // 2  # 0.5 um
    waves = np.linspace(1.5, 1.6, 3) * MICRO
    group = dispersion(waves, cell)
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    plot.cross_section_mode(modes[middle], axes=axes[0])
    guided = indices > 1.444
    for name, kind, mark in (("TE", shares >= 0.5, "o"), ("TM", shares < 0.5, "s")):
        place, order = np.nonzero(guided & kind)
        label = f"quasi-{name}"
        axes[1].plot(widths[place] / NANO, indices[place, order], mark, label=label)
    axes[1].axhline(1.444, color="k", lw=0.8, ls="--", label="silica")
    axes[1].set(xlabel="width (nm)", ylabel="effective index at 1550 nm")
    axes[1].set_ylim(1.4, 2.8)
    axes[1].legend()
    axes[2].plot(waves / NANO, group, "o-")
    axes[2].set(xlabel="wavelength (nm)", ylabel="group index, 500 nm wide")
    made = {"indices": indices, "group": group, "widths": widths}
    keep(figure, made, chosen.output, "strip_modes")
    off = np.max(np.abs(indices[middle, :2] - FEMWELL))
    Console().print(
        f"at 500 nm indices {indices[middle, 0]:.4f} and {indices[middle, 1]:.4f}, "
        f"within {off:.4f} of finite elements; group index {group[1]:.3f} at 1550 nm"
    )


if __name__ == "__main__":
    main()
