"""Holds a Brownian particle in a focus, and measures the trap from its motion.

`python -m examples.optical_trap [--particles N] [--output FOLDER]` puts spheres of 60
nm radius into water in a Gaussian focus of 1064 nm, follows them with the optical force
and the noise of 298 K, compares the growing variance of their positions with kT over
the theoretical stiffness, and saves `optical_trap.png`.
"""

import argparse
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

from physax.particles import (
    OpticalForce,
    Overdamped,
    StochasticHeun,
    sphere_polarizability,
    track,
)
from physax.units import BOLTZMANN, EPSILON_0, MICRO, NANO


RADIUS, WAVELENGTH, WAIST = 60 * NANO, 1064 * NANO, 0.6 * MICRO
INDEX_SQUARED, WATER_SQUARED, VISCOSITY = 2.5, 1.77, 1e-3
KT = BOLTZMANN * 298
DEPTH = 50  # of the trap, in kT


def main(arguments: list[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--particles", type=int, default=4000)
    parser.add_argument("--output", type=Path, default=Path("."))
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    alpha = sphere_polarizability(RADIUS, INDEX_SQUARED, WAVELENGTH, WATER_SQUARED)
    # The depth of the trap is eps0 Re(alpha) E0^2 / 4.
    peak = np.sqrt(4 * DEPTH * KT / (EPSILON_0 * float(alpha.real)))
    stiffness = EPSILON_0 * float(alpha.real) * peak**2 / WAIST**2
    mobility = 1 / (6 * np.pi * VISCOSITY * RADIUS)
    relax = 1 / (mobility * stiffness)

    axis = np.linspace(-0.6 * MICRO, 0.6 * MICRO, 49)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    light = peak * np.exp(-(x**2 + y**2) / WAIST**2) + 0j
    trap = Overdamped(
        lambda t, x: 0 * x, (OpticalForce.of(light, [axis, axis], alpha),), mobility
    )
    times = np.linspace(0, 5, 51) * relax
    tracks = track(
        trap,
        np.zeros((options.particles, 2)),
        times,
        dt=relax / 10,
        solver=StochasticHeun(),
        diffusivity=mobility * KT,
        key=jax.random.key(0),
    )
    variance = np.mean(np.asarray(tracks.positions, float) ** 2, axis=(1, 2))
    theory = KT / stiffness * (1 - np.exp(-2 * times / relax))
    late = variance[25:].mean() / (KT / stiffness)
    print(f"stiffness {stiffness * 1e6:.2f} pN/um, relaxation {relax * 1e3:.2f} ms")
    # A Gaussian focus is softer away from its middle, by some 2 kT over its depth.
    print(f"variance {late:.3f} times kT / stiffness, in a trap {DEPTH} kT deep")

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    axes[0].plot(*np.asarray(tracks.positions[:, 0] / NANO).T, lw=0.8)
    axes[0].set_xlabel("x (nm)")
    axes[0].set_ylabel("y (nm)")
    axes[0].set_aspect("equal")
    axes[1].plot(times * 1e3, variance / NANO**2, label="particles")
    axes[1].plot(times * 1e3, theory / NANO**2, "--", label="theory")
    axes[1].set_xlabel("time (ms)")
    axes[1].set_ylabel("variance of a coordinate (nm$^2$)")
    axes[1].legend()
    figure.savefig(options.output / "optical_trap.png", dpi=150)
    print(f"wrote {options.output / 'optical_trap.png'}")


if __name__ == "__main__":
    main()
