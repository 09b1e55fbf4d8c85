"""Pictures shared by the examples: history of a design, and light in a device."""

from collections.abc import Mapping
from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from physax import em, io, plot
from physax.units import NANO, SPEED_OF_LIGHT


LOSS = "worst loss (smooth maximum)"


def draw_convergence(objective: np.ndarray, path: Path, label: str = LOSS) -> None:
    """Draws the objective of each step of a design."""
    figure, axes = plt.subplots(layout="constrained")
    plot.convergence(objective, label=label, axes=axes)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def keep(figure: Figure, numbers: Mapping, folder: Path, name: str) -> None:
    """Writes a picture as `name.png`, and the numbers in it as `name.npz`."""
    figure.savefig(folder / f"{name}.png", dpi=100)
    plt.close(figure)
    io.save_npz(folder / f"{name}.npz", dict(numbers))


def driven(quiet: em.Simulation, port: em.Port, wavelength: float) -> em.Simulation:
    """Sends light into a port of a 2-D device; `"Ez"` sees it everywhere."""
    frequency = SPEED_OF_LIGHT / wavelength
    pulse = em.band_pulse(frequency, frequency)
    monitor = em.FieldMonitor(
        components=("Ez",),
        centre=port.centre,
        size=(float("inf"),) * 2,
        frequencies=jnp.array(frequency),
    )
    return em.Simulation(
        quiet.grid,
        quiet.medium,
        quiet.boundaries,
        sources={"in": em.ModeSource(port=port, pulse=pulse)},
        monitors={"Ez": monitor},
        steps=quiet.steps,
        dt=quiet.dt,
        polarisation="Ez",
    )


def draw_device(
    sim: em.Simulation, monitor: str, component: str, path: Path, plane=None
) -> None:
    """Runs a simulation; draws it, and the field that a monitor saw.

    Args:
        sim: With sources.
        monitor: Name of a field monitor in a plane with one frequency.
        component: To draw, as its modulus.
        path: Of the PNG file.
        plane: In 3-D, where to cut the structure: axis and position in metres.
    """
    fields = em.simulate(sim, until=em.Decay(1e-7)).monitors[monitor]
    wavelength = SPEED_OF_LIGHT / np.ravel(fields.frequencies)[0]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    plot.simulation(sim, left, plane=plane)
    outline = sim if sim.grid.ndim == 2 else None
    plot.field(fields, component, outline=outline, axes=right)
    right.set_title(f"|{component}| at {wavelength / NANO:.0f} nm")
    figure.savefig(path, dpi=150)
    plt.close(figure)
