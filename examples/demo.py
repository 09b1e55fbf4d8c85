"""The main job: published devices against another code, then a device of our own.

`python -m examples.demo [--small] [--output FOLDER]` simulates four published
inverse-designed devices and prints our complex S-parameters next to the published ones,
designs a mode converter by gradient from a grey start, and writes pictures: each
device, the modulus of the field in it, spectra ours and published, and the convergence
of the design. About a minute and a half on two cores; `--small` runs part of the same.
"""

import argparse
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

from physax import PhysaxWarning
from physax.design import Stages
from physax.units import NANO

from . import mode_converter, published_designs
from .pictures import draw_convergence, draw_device
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
        sim = published_designs.driven(
            design.problem, design.density, wavelength, steps
        )
        draw_device(sim, "Ez", "Ez", path)


def design_converter(output: Path, *, small: bool) -> None:
    """Designs a mode converter and draws it."""
    problem = published_designs.coarser(mode_converter.PUBLISHED.problem, 40.0)
    steps, count = (1500, 4) if small else (3000, 48)
    start = mode_converter.grey_start(problem, seed=0)
    raised = Stages((4, 8, 16, 32), every=count // 4)
    radius = 120 * NANO
    found, losses = mode_converter.stage(start, problem, steps, count, raised, radius)
    density = mode_converter.densities(found, 32.0, problem, radius)[1]
    reflected, converted = mode_converter.powers(density, problem, steps)
    Console().print(
        f"Designed a mode converter in {count} iterations from a grey start: at six "
        f"wavelengths it converts at least {converted.min():.3f} of the power and "
        f"reflects at most {reflected.max():.3f}."
    )
    draw_convergence(losses, output / "convergence.png")
    middle = float(mode_converter.PUBLISHED.wavelengths[2])
    sim = published_designs.driven(problem, density, middle, steps)
    draw_device(sim, "Ez", "Ez", output / "designed_converter.png")


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
        # 40 nm cells are coarse for silicon, and fields of an early design have not
        # decayed at the end: both are intended here.
        warnings.simplefilter("ignore", PhysaxWarning)
        simulate_published(options.output, small=options.small)
        design_converter(options.output, small=options.small)
    seconds = time.perf_counter() - began
    pictures = sorted(path.name for path in options.output.glob("*.png"))
    Console().print(f"{len(pictures)} pictures in {options.output}, {seconds:.0f} s.")


if __name__ == "__main__":
    main()
