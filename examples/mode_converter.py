"""Designs a waveguide mode converter by gradient, from a grey start.

`python -m examples.mode_converter [--iterations N] [--cells NM]`. The device is that
of `published_designs`: light enters in the first mode of a 400 nm waveguide and shall
leave in the second. The density of a 1.6 um box is free; a filter keeps features wide,
a projection drives it to black and white.
"""

import argparse
import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.console import Console

from physax import PhysaxWarning, em
from physax.runtime import Progress, drive
from physax.units import NANO

from .published_designs import load, ports, simulation


# The ends and the middle of the published band.
WAVELENGTHS = np.array([1265.0, 1280.0, 1295.0]) * NANO
RADIUS = 100 * NANO


class Problem(NamedTuple):
    """A coarser copy of the published mode converter."""

    geometry: dict
    steps: int


def coarse_problem(cell_nm: float, steps: int) -> Problem:
    """Returns the geometry of the published converter with larger cells."""
    fine = load(names=["50nm"])[0].problem
    ratio = cell_nm / fine["dl_nm"]

    def scaled(value):
        return [round(v / ratio) for v in value]

    layer = fine["pml_cells"]
    # The layers keep their number of cells: the scene moves by what they grow.
    shift = layer - layer / ratio
    shape = [round(n / ratio + 2 * shift) for n in fine["shape"]]

    def moved(box):
        out = [round(v / ratio + shift) for v in box]
        for axis, n in enumerate(fine["shape"]):
            low, high = 2 * axis, 2 * axis + 1
            out[low] = 0 if box[low] == 0 else out[low]
            out[high] = shape[axis] if box[high] == n else out[high]
        return out

    ports_ = []
    for one in fine["ports"]:
        inner = 2 * one["towards"]
        plane = round(one["plane"] / ratio + shift) + inner
        width, offset = scaled([one["width"], one["offset"]])
        centre = round(one["centre"] / ratio + shift)
        ports_.append(
            {**one, "plane": plane, "centre": centre, "width": width}
            | {"offset": max(offset, 1)}
        )
    geometry = {
        **fine,
        "shape": shape,
        "dl_nm": cell_nm,
        "design_box": moved(fine["design_box"]),
        "waveguides": [moved(box) for box in fine["waveguides"]],
        "ports": ports_,
    }
    return Problem(geometry, steps)


def filtered(density: jnp.ndarray, cell: float) -> jnp.ndarray:
    """Averages a density over a cone of radius `RADIUS`."""
    reach = int(np.ceil(RADIUS / cell))
    x = np.arange(-reach, reach + 1) * cell
    cone = np.clip(1 - np.hypot(x[:, None], x[None, :]) / RADIUS, 0, None)
    wide = jnp.pad(density, reach, mode="edge")
    kernel = jnp.asarray(cone / cone.sum(), density.dtype)
    return jax.scipy.signal.convolve2d(wide, kernel, mode="valid")


def projected(density: jnp.ndarray, sharpness) -> jnp.ndarray:
    """Pushes a density towards 0 and 1 by a tanh around 1/2."""
    half = jnp.tanh(sharpness / 2)
    return (half + jnp.tanh(sharpness * (density - 0.5))) / (2 * half)


def pattern(parameters: jnp.ndarray, cell: float, sharpness) -> jnp.ndarray:
    """Returns the density that free parameters stand for."""
    return projected(filtered(jax.nn.sigmoid(parameters), cell), sharpness)


def transmission(density, problem: Problem, wavelengths=WAVELENGTHS) -> jnp.ndarray:
    """Returns the power that leaves in the second mode, at each wavelength."""
    sim = simulation(problem.geometry, density, problem.steps)
    s = em.s_parameters(
        sim,
        ports(problem.geometry),
        wavelengths,
        inputs=["1"],
        match_frequency_domain=True,
    )
    return s.power[:, 1, 0]


def design(problem: Problem, iterations: int, *, progress: bool = True):
    """Maximises the least transmission; returns density, history and transmission."""
    x0, x1, y0, y1 = problem.geometry["design_box"]
    cell = problem.geometry["dl_nm"] * NANO
    optimiser = optax.adam(0.3)

    def loss(parameters, sharpness):
        power = transmission(pattern(parameters, cell, sharpness), problem)
        # A smooth minimum over the wavelengths.
        return jax.nn.logsumexp(-20 * power) / 20

    @jax.jit
    def advance(state, start, stop):
        del stop
        parameters, memory, history = state
        sharpness = 4 + 16 * (start / iterations) ** 2
        value, slope = jax.value_and_grad(loss)(parameters, sharpness)
        change, memory = optimiser.update(slope, memory, parameters)
        history = history.at[start].set(value)
        return optax.apply_updates(parameters, change), memory, history

    # A little noise: the box is symmetric, and at a symmetric start the transmission
    # into the odd mode is stationary.
    noise = np.random.default_rng(0).normal(size=(x1 - x0, y1 - y0))
    parameters = jnp.asarray(0.1 * noise, jnp.float32)
    state = parameters, optimiser.init(parameters), jnp.zeros(iterations)
    label = Progress("designing a mode converter", "iterations") if progress else False
    outcome = drive(advance, state, stop=iterations, chunk=1, progress=label)
    parameters, _, history = outcome.state
    density = pattern(parameters, cell, 20.0)
    return density, -np.asarray(history), np.asarray(transmission(density, problem))


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--cells", type=float, default=20.0, help="nm")
    parser.add_argument("--steps", type=int, default=4000)
    options = parser.parse_args()
    problem = coarse_problem(options.cells, options.steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysaxWarning)
        _, history, power = design(problem, options.iterations)
    console = Console()
    console.print(f"least transmission, first: {history[0]:.4f}")
    for wave, value in zip(WAVELENGTHS, power, strict=True):
        console.print(f"{wave / NANO:.0f} nm: {value:.4f} in the second mode")


if __name__ == "__main__":
    main()
