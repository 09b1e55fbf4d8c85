"""Silicon guides around a design box, shared by bend, splitter and demultiplexer.

A `Chip` is oxide with guides that leave a box in its middle, in 2-D with Ez. A script
defines where the guides leave and the objective; here are the scene, the simulation
of a density in the box, the design from grey to binary, and the files.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physax import design, em, io
from physax.units import FEMTO, MICRO, NANO

from .pictures import draw_convergence, draw_device, driven


SILICON, OXIDE = 12.25, 2.25  # relative permittivities
WIDTH, MARGIN = 0.4 * MICRO, 0.8 * MICRO  # of a guide, of the oxide around the box
# About the width of parts and gaps; `mode_converter` shows how to enforce it.
LENGTH = 120 * NANO
# A design step may stop before all light has left; the final figures do not.
SHORT, LONG = 400 * FEMTO, 2000 * FEMTO
BINARY = float("inf")


@dataclass(frozen=True)
class Chip:
    """Guides around a design box.

    Attributes:
        sim: Without sources, with only oxide and guides.
        cell: Width of the cells in metres.
        box: The cells of the design.
        ports: By name; light comes in at the first.
        wavelengths: In metres.
        symmetries: Of the design.
    """

    sim: em.Simulation
    cell: float
    box: tuple[tuple[int, int], tuple[int, int]]
    ports: dict[str, em.Port]
    wavelengths: np.ndarray
    symmetries: tuple[design.AbstractSymmetry, ...]


def chip(guides: dict, size, wavelengths, cell: float, *symmetries) -> Chip:
    """Makes guides that end at a box around the origin.

    Args:
        guides: By name of the port, the side at which the guide leaves the box, such as
            `"+y"`, and its position along that side in metres. The first is the input.
        size: Lengths of the box in metres.
        wavelengths: In metres.
        cell: Width of the cells in metres.
        symmetries: Of the design.

    Returns:
        The chip.
    """
    strips, ports = [], {}
    for name, (side, place) in guides.items():
        axis, sign = "xy".index(side[1]), 1 if side[0] == "+" else -1
        centre, length = [place] * 2, [WIDTH] * 2
        # From the middle of the box to far beyond the scene.
        centre[axis], length[axis] = sign * 50 * MICRO, 100 * MICRO
        strips.append(em.Structure(em.Box(centre, length), em.Material(SILICON)))
        centre[axis] = sign * (size[axis] / 2 + MARGIN - 0.1 * MICRO)
        inwards = ("-" if sign > 0 else "+") + side[1]
        ports[name] = em.Port(centre, 1.4 * MICRO, inwards, offset=0.3 * MICRO)
    half = [round(length / 2 / cell) for length in size]
    sim = em.scene(
        strips,
        [2 * (cells + round(MARGIN / cell)) * cell for cells in half],
        wavelengths,
        background=em.Material(OXIDE),
        polarisation="Ez",
        spacing=cell,
        steps=1,
    )
    middle = [cells // 2 for cells in sim.grid.shape]  # the nodes at the origin
    low, high = ((m - h, m + h + 1) for m, h in zip(middle, half, strict=True))
    return Chip(sim, cell, (low, high), ports, np.asarray(wavelengths), symmetries)


def density(chip: Chip, parameters, beta) -> Float[Array, "x y"]:
    """Returns the density in the box: symmetric, smooth, projected."""
    silicon = (chip.sim.medium.permittivity["Ez"] - OXIDE) / (SILICON - OXIDE)
    beside = design.Surround(silicon, tuple(low for low, _ in chip.box))
    smooth = design.ConicFilter(design.filter_radius(LENGTH), chip.cell, beside)
    latent = design.symmetrise(parameters(), *chip.symmetries)
    return design.subpixel_projection(smooth(latent), beta)


def filled(chip: Chip, density, duration: float = LONG) -> em.Simulation:
    """Returns the simulation with a density in the box, of a duration in seconds."""
    inside = design.linear_material(jnp.asarray(density, float), OXIDE, SILICON)
    region = em.DesignRegion(chip.box, inside)
    medium = em.Medium(chip.sim.medium.permittivity, regions=region)
    sim = eqx.tree_at(lambda s: s.medium, chip.sim, medium)
    return em.with_steps(sim, round(duration / float(sim.dt)))


def powers(chip: Chip, density, duration: float = LONG, until: em.Decay | None = None):
    """Returns the fraction of the power that leaves each port, (wavelength, port)."""
    s = em.s_parameters(
        filled(chip, density, duration),
        chip.ports,
        chip.wavelengths,
        inputs=list(chip.ports)[:1],
        until=until,
    )
    return s.power[:, :, 0]


def designed(chip: Chip, loss: Callable, steps: int) -> dict[str, np.ndarray]:
    """Designs a device from grey to binary.

    Args:
        chip: The chip.
        loss: Maps the powers to the number that is minimised.
        steps: Number of steps.

    Returns:
        The binary device as `"solid"`, its `"powers"` and the `"loss"` of each step.
    """

    def objective(parameters, beta):
        return loss(powers(chip, density(chip, parameters, beta), SHORT))

    result = design.optimise(
        objective,
        design.grey_start(
            tuple(high - low for low, high in chip.box),
            noise=0.05,
            key=jax.random.key(0),
        ),
        steps=steps,
        schedule=design.Stages((8, 16, 32, BINARY), every=-(-steps // 4)),
        optimiser=design.MovingAsymptotes(move=0.05),
    )
    solid = np.asarray(density(chip, result.design, BINARY)) > 0.5
    found = powers(chip, solid, until=em.Decay(1e-7))
    losses = np.asarray(result.history.objective)
    return {"solid": solid, "powers": np.asarray(found), "loss": losses}


def draw(chip: Chip, solid: np.ndarray, wavelength: float, path: Path) -> None:
    """Draws a device and the light in it at one wavelength."""
    entry = next(iter(chip.ports.values()))
    sim = driven(filled(chip, solid), entry, wavelength)
    draw_device(sim, "Ez", "Ez", path)


def save(chip: Chip, made: dict, drawn, output: Path, name: str) -> None:
    """Writes a device and its pictures, with light of the wavelengths `drawn`."""
    io.save_npz(output / f"{name}.npz", {"wavelengths": chip.wavelengths, **made})
    draw_convergence(made["loss"], output / f"{name}_convergence.png")
    for wavelength in drawn:
        path = output / f"{name}_{wavelength / NANO:.0f}nm.png"
        draw(chip, made["solid"], wavelength, path)
