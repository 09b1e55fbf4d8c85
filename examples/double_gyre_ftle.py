"""Finds the transport barriers of the double gyre by gradients of its flow map.

`python -m examples.double_gyre_ftle [--nodes N] [--output FOLDER]` follows particles on
a grid of N x 2N together with the gradient of the flow map, over 15 time units forward
and backward, prints the largest Lyapunov exponents and the change of areas, and saves
`double_gyre_ftle.png`: ridges of the forward field repel, those of the backward field
attract. It is the flow of Shadden, Lekien and Marsden, Physica D 212, 271 (2005).
"""

import argparse
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, Float

from physax import plot
from physax.particles import flow_map_gradient, ftle


DURATION, STEPS = 15.0, 300


def gyre(t: Float[Array, ""], x: Float[Array, " 2"]) -> Float[Array, " 2"]:
    """Returns the velocity at one time and position."""
    a, w = 0.25 * jnp.sin(2 * jnp.pi * t / 10), 0.1 * jnp.pi
    f, slope = a * x[0] ** 2 + (1 - 2 * a) * x[0], 2 * a * x[0] + 1 - 2 * a
    u = -w * jnp.sin(jnp.pi * f) * jnp.cos(jnp.pi * x[1])
    return jnp.stack([u, w * jnp.cos(jnp.pi * f) * jnp.sin(jnp.pi * x[1]) * slope])


def exponents(
    axes: list[np.ndarray], start: float, stop: float
) -> tuple[Float[Array, "x y"], float]:
    """Returns the exponents on a grid, and the largest change of an area.

    Args:
        axes: Positions of the seeds along x and y.
        start: When they begin.
        stop: When they end; before the start for attracting ridges.
    """
    seeds = jnp.stack(jnp.meshgrid(*map(jnp.asarray, axes), indexing="ij"), -1)
    shape = seeds.shape[:2]
    gradient = flow_map_gradient(
        gyre, seeds.reshape(-1, 2), np.array([start, stop]), steps=STEPS
    )
    area = float(jnp.max(jnp.abs(jnp.linalg.det(gradient) - 1)))
    return ftle(gradient, abs(stop - start)).reshape(shape), area


def main(arguments: list[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=140, help="along y")
    parser.add_argument("--output", type=Path, default=Path("."))
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    # The determinant of a gradient of size 50 is a difference of squares of that.
    jax.config.update("jax_enable_x64", True)
    n = options.nodes
    axes = [np.linspace(0.001, 1.999, 2 * n), np.linspace(0.001, 0.999, n)]
    figure, panels = plt.subplots(2, 1, figsize=(7, 7.5), layout="constrained")
    for panel, (name, start, stop) in zip(
        panels,
        [("forward: repelling", 0.0, DURATION), ("backward: attracting", DURATION, 0)],
        strict=True,
    ):
        began = time.perf_counter()
        values, area = exponents(axes, start, stop)
        seconds = time.perf_counter() - began
        print(
            f"{name}: largest exponent {float(values.max()):.4f}, determinants within "
            f"{area:.1e} of 1; {values.size} seeds in {seconds:.1f} s"
        )
        plot.ftle_map(values, axes, axes=panel)
        panel.set_title(f"Double gyre, {name} ridges, T = {DURATION:g}")
    path = options.output / "double_gyre_ftle.png"
    figure.savefig(path, dpi=150)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
