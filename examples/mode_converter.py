"""Designs a waveguide mode converter by gradient, from a grey start.

The first mode of a 400 nm waveguide becomes the second, at six wavelengths. On cells of
20 nm the projection is sharpened, then widths become constraints, then cells are 10 nm.
The last steps use the binary device; the best one that is nowhere too narrow is kept.
"""

import argparse
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from physax import PhysaxWarning, design, em, io
from physax.units import NANO

from .best_binary import BestBinary
from .pictures import draw_convergence, draw_device
from .published_designs import coarser, driven, load, s_parameters, surroundings


PUBLISHED = load(names=["50nm"])[0]


def densities(parameters, beta, problem: dict, radius: float):
    """Returns the filtered density of parameters, and the projected one."""
    beside = surroundings(problem, 300 * NANO)
    density = design.ConicFilter(radius, problem["dl_nm"] * NANO, beside)(parameters())
    return density, design.subpixel_projection(density, beta)


def powers(density, problem: dict, steps: int, until: em.Decay | None = None):
    """Returns the reflected and converted fraction of the power at each wavelength."""
    s = s_parameters(problem, density, PUBLISHED.wavelengths, steps, until)
    return s.power[:, 0, 0], s.power[:, 1, 0]


def stage(start, problem, steps, count, strength, radius, limit=0.0, on_step=None):
    """Minimises the worst of loss and six times the reflection in `count` steps."""
    cell = problem["dl_nm"] * NANO

    def worst(parameters, beta):
        density = densities(parameters, beta, problem, radius)[1]
        density = density if on_step is None else design.straight_through(density)
        reflected, converted = powers(density, problem, steps)
        bad = jnp.concatenate([1 - converted, 6 * reflected])
        return design.soft_max(bad, 60.0), density

    def widths(parameters, beta):
        found = densities(parameters, beta, problem, radius)
        return design.length_constraints(*found, radius, cell, limit=limit)

    result = design.optimise(
        worst,
        start,
        steps=count,
        schedule=strength,
        optimiser=design.MovingAsymptotes(move=0.1 if limit else 0.2),
        constraints=widths if limit else None,
        feasible_start=limit == 0.0,
        has_aux=True,
        on_step=on_step,
    )
    return result.design, np.asarray(result.history.objective)


def grey_start(problem: dict, seed: int) -> design.PixelDensity:
    """Returns grey with noise: without, the slope towards an odd mode is zero."""
    x0, x1, y0, y1 = problem["design_box"]
    return design.grey_start((x1 - x0, y1 - y0), noise=0.1, key=jax.random.key(seed))


def designed(seed: int, least: float, count: int, cells=(20, 10)):
    """Returns the binary device, its problem and the objective of each step."""
    radius = design.filter_radius(1.2 * least)
    coarse, fine = (coarser(PUBLISHED.problem, cell) for cell in cells)
    few, many = (round(140_000 / cell) for cell in cells)  # Shorter: light still rings.
    raised = design.Stages((8, 16, 32, 64), every=-(-count // 4))
    after, ratio = -(-3 * count // 4), round(cells[0] / cells[1])
    now, first = stage(grey_start(coarse, seed), coarse, few, count, raised, radius)
    now, second = stage(now, coarse, few, after, np.inf, radius, 1e-7)
    now = design.PixelDensity(now.values.repeat(ratio, 0).repeat(ratio, 1))
    now, third = stage(now, fine, many, -(-after // 3), np.inf, radius, 1e-8)
    best = BestBinary(fine["dl_nm"] * NANO, least)
    _, last = stage(now, fine, many, after, np.inf, radius, 1e-9, best)
    return best.device(), fine, np.concatenate([first, second, third, last])


def main(arguments=None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least", type=float, default=100.0, help="width, nm")
    parser.add_argument("--steps", type=int, default=160, help="of the first stage")
    parser.add_argument("--cells", type=int, nargs=2, default=(20, 10), help="nm")
    parser.add_argument("--output", type=Path, default=Path("output"))
    chosen = parser.parse_args(arguments)
    chosen.output.mkdir(parents=True, exist_ok=True)
    path, least = chosen.output / "mode_converter.png", chosen.least * NANO
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysaxWarning)  # few cells, ringing pulses
        solid, problem, loss = designed(chosen.seed, least, chosen.steps, chosen.cells)
        reflected, converted = powers(
            jnp.asarray(solid, float), problem, 24_000, em.Decay(1e-7)
        )
        sim = driven(problem, solid * 1.0, float(PUBLISHED.wavelengths[2]), 10_000)
        draw_device(sim, "Ez", "Ez", path)
    widths = design.minimum_length(solid, problem["dl_nm"] * NANO)
    Console().print(
        f"Converts {converted.min():.4f}, reflects {10 * np.log10(reflected.max()):.1f}"
        f" dB; solid {widths.solid / NANO:.0f} nm, gaps {widths.void / NANO:.0f} nm"
    )
    io.save_npz(path.with_suffix(".npz"), {"solid": solid, "loss": loss})
    draw_convergence(loss, path.with_name("mode_converter_convergence.png"))


if __name__ == "__main__":
    main()
