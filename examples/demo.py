"""The main job: published devices beside another code, then a device of our own.

`python -m examples.demo [--small] [--output FOLDER]` simulates four published
inverse-designed devices and prints our complex S-parameters beside the published ones,
designs a mode converter by gradient from a grey start, and writes pictures: each
device, the modulus of the field in it, spectra ours and published, and the convergence
of the design. Under four minutes on two cores; `--small` is a part of the same.
"""

import argparse
import time
import warnings
from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

from physax import PhysaxWarning, em, plot
from physax.units import NANO, SPEED_OF_LIGHT

from . import mode_converter, published_designs
from .published_designs import Design


def draw_spectra(design: Design, s: np.ndarray, path: Path) -> None:
    """Draws our spectra as lines and the published ones as circles."""
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    waves = design.wavelengths / NANO
    for j in range(s.shape[1]):
        colour = f"C{j}"
        name = f"$|S_{{{j + 1}1}}|^2$"
        axes.plot(waves, np.abs(s[:, j]) ** 2, label=f"{name} physax", color=colour)
        published = np.abs(design.s[:, j]) ** 2
        label = f"{name} published"
        axes.plot(waves, published, "o", mfc="none", label=label, color=colour)
    axes.set_xlabel("wavelength (nm)")
    axes.set_ylabel("fraction of the power")
    axes.set_ylim(-0.02, 1.02)
    axes.set_title(design.name, fontsize=8)
    axes.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw_device(problem: dict, density, wavelength: float, steps: int, path: Path):
    """Draws a driven device and the modulus of its field at one wavelength."""
    quiet = published_designs.simulation(problem, density, steps)
    entry = published_designs.ports(problem)["1"]
    frequency = SPEED_OF_LIGHT / wavelength
    source = em.ModeSource(port=entry, pulse=em.band_pulse(frequency, frequency))
    monitor = em.FieldMonitor(
        components=("Ez",),
        centre=entry.centre,
        size=(float("inf"),) * 2,
        frequencies=jnp.array(frequency),
    )
    sim = em.Simulation(
        quiet.grid,
        quiet.medium,
        quiet.boundaries,
        sources={"port 1": source},
        monitors={"Ez": monitor},
        steps=steps,
        dt=quiet.dt,
        polarisation="Ez",
    )
    fields = em.simulate(sim).monitors["Ez"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    plot.simulation(sim, left)
    plot.field(fields, "Ez", outline=sim, axes=right)
    right.set_title(f"|Ez| at {wavelength / NANO:.0f} nm")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def simulate_published(output: Path, *, small: bool) -> None:
    """Compares the published devices and draws them."""
    designs = published_designs.load(names=["50nm"] if small else None)
    found = published_designs.compare(designs)
    for design in designs:
        short = design.name.split(".")[0]
        draw_spectra(design, found[design.name], output / f"spectra_{short}.png")
        wavelength = float(design.wavelengths[2])
        path = output / f"device_{short}.png"
        steps = 6_000 if small else 10_000
        draw_device(design.problem, design.density, wavelength, steps, path)


def design_converter(output: Path, *, small: bool) -> None:
    """Designs a mode converter and draws it."""
    console = Console()
    problem = mode_converter.coarse_problem(40.0, 1500 if small else 3000)
    iterations = 4 if small else 50
    density, history, power = mode_converter.design(problem, iterations)
    best = ", ".join(
        f"{value:.3f} at {wave / NANO:.0f} nm"
        for wave, value in zip(mode_converter.WAVELENGTHS, power, strict=True)
    )
    console.print(
        f"Designed a mode converter in {iterations} iterations from a grey start: "
        f"transmission into the second mode {best}."
    )
    figure, axes = plt.subplots(layout="constrained")
    plot.convergence(history, label="least transmission (smooth minimum)", axes=axes)
    figure.savefig(output / "convergence.png", dpi=150)
    middle = float(mode_converter.WAVELENGTHS[1])
    path = output / "designed_converter.png"
    draw_device(problem.geometry, jnp.asarray(density), middle, problem.steps, path)


def main() -> None:
    """Runs the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="one device, few steps")
    parser.add_argument("--output", type=Path, default=Path("output"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    plt.switch_backend("Agg")
    began = time.perf_counter()
    with warnings.catch_warnings():
        # 40 nm cells are few for a wavelength in silicon, and a pulse drawn early in a
        # design still rings: both are meant here.
        warnings.simplefilter("ignore", PhysaxWarning)
        simulate_published(options.output, small=options.small)
        design_converter(options.output, small=options.small)
    seconds = time.perf_counter() - began
    pictures = sorted(path.name for path in options.output.glob("*.png"))
    Console().print(f"{len(pictures)} pictures in {options.output}, {seconds:.0f} s.")


if __name__ == "__main__":
    main()
