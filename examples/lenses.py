"""Shared by `metalens` and `focus_3d`: gain, design from grey to binary, files.

A script defines a `Lens`: its scene, and the density that follows from parameters. The
objective is the gain, the intensity in the focus over that without the lens, at the
worst wavelength. Once the design is binary, widths of parts and gaps are constraints.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from rich.console import Console

from physax import design, em, io
from physax.units import NANO

from .pictures import draw_convergence


BINARY = float("inf")


@dataclass(frozen=True)
class Lens:
    """A lens and its scene.

    Attributes:
        scene: Maps a density, and the fraction of the light's path to simulate (1:
            until all has left), to a simulation with a monitor on a line through the
            focus.
        symmetries: Of the density.
        shape: Of the density.
        cell: Width of its cells in metres.
        length: Minimum width of parts and gaps, in metres.
    """

    scene: Callable
    symmetries: tuple[design.AbstractSymmetry, ...]
    shape: tuple[int, int]
    cell: float
    length: float


def line(sim: em.Simulation) -> Float[Array, "waves x"]:
    """Returns the intensity along the line through the focus."""
    (seen,) = em.simulate(sim).monitors.values()
    (values,) = seen.values.values()
    return jnp.abs(values.reshape(values.shape[0], -1)) ** 2


def middle(lines):
    """Returns the intensity in the focus."""
    return lines[:, lines.shape[1] // 2]


def densities(lens: Lens, parameters, beta):
    """Returns the filtered density, with its symmetries, and the projected one."""
    smooth = design.ConicFilter(
        design.filter_radius(lens.length), lens.cell, design.Fill()
    )
    density = design.symmetrise(smooth(parameters()), *lens.symmetries)
    return density, design.subpixel_projection(density, beta)


def designed(lens: Lens, steps: int) -> dict[str, np.ndarray]:
    """Designs a lens from grey to binary.

    Args:
        lens: The lens.
        steps: Number of steps.

    Returns:
        The binary lens as `"solid"`, the smooth least gain of each step as `"course"`,
        and of the binary lens the `"gain"` and the `"width"` of the focus in metres.
    """
    alone = line(lens.scene(jnp.zeros(lens.shape), 1.0))

    def gain(parameters, beta):
        lit = line(lens.scene(densities(lens, parameters, beta)[1], 0.4))
        return design.soft_min(middle(lit) / middle(alone), 3.0)

    def widths(parameters, beta):
        found = densities(lens, parameters, beta)
        excess = design.length_constraints(*found, lens.length, lens.cell, limit=5e-7)
        return jnp.where(jnp.isinf(beta), excess, -1.0)

    result = design.optimise(
        gain,
        design.grey_start(lens.shape),
        steps=steps,
        maximise=True,
        schedule=design.Stages((8, 16, 32, BINARY), every=-(-steps // 7)),
        optimiser=design.MovingAsymptotes(move=0.2),
        constraints=widths,
    )
    solid = np.asarray(densities(lens, result.design, BINARY)[1] > 0.5)
    lit = np.asarray(line(lens.scene(jnp.asarray(solid, float), 1.0)))
    return {
        "solid": solid,
        "course": np.asarray(result.history.objective),
        "gain": middle(lit) / np.asarray(middle(alone)),
        "width": lens.cell * half_width(lit),
    }


def half_width(lines: np.ndarray) -> np.ndarray:
    """Returns over how many cells each line exceeds half its largest value."""
    x = np.arange(lines.shape[1])
    fine = np.arange(0, x[-1], 0.01)
    finer = np.stack([np.interp(fine, x, one) for one in lines])
    return 0.01 * np.sum(finer > finer.max(axis=1, keepdims=True) / 2, axis=1)


def finish(lens: Lens, made: dict, path: Path) -> None:
    """Saves a design, draws its history and prints the results."""
    io.save_npz(path.with_suffix(".npz"), made)
    convergence = path.with_name(f"{path.stem}_convergence.png")
    draw_convergence(made["course"], convergence, "least gain (smooth minimum)")
    least = design.minimum_length(made["solid"], lens.cell)
    gain, width = made["gain"], made["width"].max()
    Console().print(
        f"Gain {gain.min():.1f} to {gain.max():.1f}, focus {width / NANO:.0f} nm wide; "
        f"solid {least.solid / NANO:.0f} nm, gaps {least.void / NANO:.0f} nm"
    )
