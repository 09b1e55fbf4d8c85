"""A cavity in a holey waveguide: its resonance from a short ring-down, and its mode.

`python -m examples.holey_cavity [--cells N] [--output FOLDER]`. Three holes on either
side of a defect confine light in a guide of permittivity 13. A quarter of the scene is
simulated, between mirrors; `em.resonances` finds frequency and quality within a fifth
of a lifetime, and a window after the pulse shows the mode. Saves `holey_cavity.png`.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle
from rich.console import Console

from physax import PhysaxWarning, em, plot
from physax.grid import Grid
from physax.units import FEMTO, MICRO, SPEED_OF_LIGHT, TERA

from .command_line import numbers
from .pictures import keep


PERIOD = MICRO  # of the holes
# In periods: width of the guide, places of the holes on one side, their radius.
WIDTH, HOLES, HOLE = 1.2, (0.7, 1.7, 2.7), 0.36
UNIT = SPEED_OF_LIGHT / PERIOD
EXACT, QUALITY = 0.2344542, 372.4  # Meep 1.25 at 20 cells a period
PULSE = em.GaussianPulse(0.25 * UNIT, 0.04 * UNIT)
BAND = (0.2 * UNIT, 0.3 * UNIT)


def cavity(cells: int, monitors: dict) -> em.Simulation:
    """Returns a quarter of the cavity; Hz is even about both walls on its planes."""
    grid = Grid.uniform((round(6.2 * cells), 3 * cells), PERIOD / cells)
    guide = em.Structure(em.Box(0.0, (np.inf, WIDTH * PERIOD)), em.Material(13.0))
    holes = [
        em.Structure(em.Circle((x * PERIOD, 0.0), HOLE * PERIOD), em.Material())
        for x in HOLES
    ]
    absorber = em.CPML(cells)
    return em.Simulation(
        grid,
        em.rasterise([guide, *holes], grid, None, ("Hz", "Ex", "Ey"), "polarised"),
        em.Boundaries(x=(em.PEC(), absorber), y=(em.PEC(), absorber)),
        sources={"kick": em.Dipole(component="Hz", position=(0.0, 0.0), pulse=PULSE)},
        monitors=monitors,
        polarisation="Hz",
        steps=212 * cells,
    )


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=20)
    start = float(PULSE.duration())
    mode = em.FieldMonitor(
        components=("Hz",),
        centre=(3 * PERIOD, 1.5 * PERIOD),
        size=(np.inf,) * 2,
        frequencies=0.2344 * UNIT,
    )
    sim = cavity(
        chosen.cells,
        {
            "bell": em.TimeMonitor(
                ("Hz",), (0.5 * PERIOD, 0.3 * PERIOD), (0, 0), chosen.cells // 4
            ),
            "mode": em.Apodised(mode, 1.5 * start, start / 8),
        },
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysaxWarning)  # It still rings, as intended.
        seen = em.simulate(sim).monitors
    found = em.resonances(seen["bell"], BAND, start=start)
    best = int(np.argmin(found.error))
    frequency, quality = found.frequency[best] / UNIT, found.quality[best]
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.4), layout="constrained")
    times, field = seen["bell"].times["Hz"], seen["bell"].values["Hz"].ravel()
    axes[0].plot(times / FEMTO, field / 1e6, lw=0.5)
    late = times > start
    amplitude = np.abs(field[late]).max()
    decay = np.exp(-np.pi * found.frequency[best] / quality * (times[late] - start))
    axes[0].plot(times[late] / FEMTO, amplitude * decay / 1e6, "k--", lw=1)
    axes[0].set(xlabel="time (fs)", ylabel="η₀Hz (MV/m)")
    title = f"{found.frequency[best] / TERA:.2f} THz, Q = {quality:.0f}"
    axes[0].set_title(title)
    whole = em.unfold(seen["mode"], sim)
    plot.field(whole, "Hz", part="real", axes=axes[1])
    for x in HOLES:
        for side in (-1, 1):
            axes[1].add_patch(Circle((side * x, 0.0), HOLE, fill=False, lw=0.8))
    for y in (-WIDTH / 2, WIDTH / 2):
        axes[1].axhline(y, color="k", lw=0.8)
    axes[1].set_title("the mode")
    numbers_seen = {"frequency": frequency, "quality": quality}
    keep(figure, numbers_seen, chosen.output, "holey_cavity")
    Console().print(
        f"f = {frequency:.5f} c/a, Q = {quality:.1f}; Meep has {EXACT:.5f} and "
        f"{QUALITY}"
    )


if __name__ == "__main__":
    main()
