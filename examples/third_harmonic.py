"""Third harmonic and Kerr shift of a strong wave, against the theory of weak ones.

`python -m examples.third_harmonic [--cells N] [--output FOLDER]`. A wave of 1 GV/m runs
through a medium with chi3, in 1-D. Without dispersion the third harmonic grows in
proportion to the distance, and the phase of the wave lags by its Kerr index. Saves
`third_harmonic.png`.
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


INDEX, CHI3, FIELD = 1.5, 2e-22, 1e9  # chi3 in m^2/V^2, the field in V/m
WAVE = 1.5 * MICRO
FREQUENCY = SPEED_OF_LIGHT / WAVE
LENGTH = 4  # of the nonlinear medium, in wavelengths there


def amplitudes(chi3: float, cells: int, moment: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns positions, and complex amplitudes of the harmonics 1 to 7 there.

    Args:
        chi3: Of the medium from 0 to `LENGTH`.
        cells: Per wavelength in the medium.
        moment: Of the sheet of current that sends the wave.
    """
    spacing, layer, period = WAVE / INDEX / cells, cells // 2, 3 * cells
    before = layer + cells
    grid = Grid.uniform(
        (before + (LENGTH + 1) * cells + layer,), spacing, (-before * spacing,)
    )
    body = em.Structure(
        em.Box.from_corners((0.0,), (LENGTH * cells * spacing,)),
        em.Material(INDEX**2, chi3=chi3),
    )
    sim = em.Simulation(
        grid,
        em.rasterise([body], grid, em.Material(INDEX**2)),
        em.Boundaries.all(em.CPML(layer)),
        dt=1 / FREQUENCY / period,
        steps=20 * period,
        sources={
            "wave": em.Dipole(
                component="Ez",
                position=(-0.5 * cells * spacing,),
                pulse=em.ContinuousWave(FREQUENCY, 4.0),
                moment=moment,
            )
        },
        monitors={"film": em.TimeMonitor(("Ez",), (0.0,), (np.inf,))},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysaxWarning)  # The wave stays on.
        film = em.simulate(sim).monitors["film"]
    last = np.asarray(film.values["Ez"], float)[-period:]
    turns = np.arange(period) / period
    orders = np.arange(1, 8)[:, None]
    return (
        np.asarray(film.coordinates["Ez"][0], float),
        2 / period * np.exp(2j * np.pi * orders * turns) @ last.reshape(period, -1),
    )


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=80)
    x, weak = amplitudes(0.0, chosen.cells, 1.0)
    end = LENGTH * WAVE / INDEX
    inside = (x > 0) & (x < end)
    moment = FIELD / np.abs(weak[0, inside]).mean()
    _, strong = amplitudes(CHI3, chosen.cells, moment)
    found = np.abs(strong[2]) / FIELD
    shift = np.angle(strong[0] / weak[0])
    # Both the part that became the third harmonic, and the angle in radians.
    theory = 3 / 8 * 2 * np.pi / WAVE / INDEX * CHI3 * FIELD**2 * x
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.0), layout="constrained")
    axes[0].plot(x[inside] / MICRO, found[inside], label="third harmonic")
    axes[0].plot(x[inside] / MICRO, shift[inside], label="shift of the phase (rad)")
    axes[0].plot(x[inside] / MICRO, theory[inside], "k--", lw=1, label="theory of both")
    axes[0].set(
        xlabel="way in the medium (µm)", ylabel="amplitude over that of the wave"
    )
    axes[0].legend()
    at = np.argmax(x > end)
    axes[1].bar(range(1, 8), np.abs(strong[:, at]) / FIELD, width=0.3)
    axes[1].set_yscale("log")
    axes[1].set(xlabel="harmonic", ylabel="amplitude behind, over that of the wave")
    last = np.flatnonzero(inside)[-1]
    made = {"third": found[last] / theory[last], "kerr": shift[last] / theory[last]}
    keep(figure, made, chosen.output, "third_harmonic")
    Console().print(
        f"over that of theory: third harmonic {made['third']:.4f}, Kerr shift "
        f"{made['kerr']:.4f}"
    )


if __name__ == "__main__":
    main()
