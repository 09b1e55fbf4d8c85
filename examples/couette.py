"""Tests two formulas of the shear factor against particles in Couette flow.

`python -m examples.couette [--blocks N] [--output FOLDER]`. Brownian particles between
two plates, 1000 in each block, are carried by the liquid; their two-time
correlation is computed from their positions and compared with both conventions of
`physax.xpcs.LaminarFlow`. It prints the deviations and saves `couette.png`.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.optimize import minimize

from physax import xpcs


Q = 0.0054  # 1/angstrom
GAP = 2e6  # angstrom
D0 = 2000.0  # angstrom^2/s: the growth of the variance, twice the Stokes-Einstein D
RATE = 1.1e-4  # 1/s
PHI0 = 0.2  # direction of the flow, radians
PHI = PHI0 + np.array([0.0, np.pi / 4, np.pi / 2])
FRAMES, DT = 25, 0.4  # s
EACH = 1000  # particles in a block
CONVENTIONS = ("physical", "homodyne")


def model(convention: str, rate=RATE, d0=D0) -> xpcs.LaminarFlow:
    """Returns the model with the numbers of the simulation."""
    shear = xpcs.Shear(rate, phi0=PHI0)
    return xpcs.LaminarFlow(xpcs.Diffusion(d0), shear, GAP, convention)


def tracks(key: PRNGKeyArray, particles: int) -> Float[Array, "frames particles 3"]:
    """Moves particles by Brownian steps and with the liquid between the plates.

    The liquid moves in the plane of the detector, along `PHI0`, with the velocity
    `RATE * z` at the height z above the resting plate. Plates reflect.

    Args:
        key: For starting points and steps.
        particles: Number of particles.

    Returns:
        Positions in angstrom, x and y in the plane of the detector, z along the beam.
    """
    start, key = jax.random.split(key)
    z = jax.random.uniform(start, (particles,), maxval=GAP)
    first = jnp.stack([jnp.zeros(particles), jnp.zeros(particles), z], -1)
    flow = jnp.array([np.cos(PHI0), np.sin(PHI0), 0.0])

    def step(x, key):
        moved = x + jnp.sqrt(D0 * DT) * jax.random.normal(key, x.shape)
        z = jnp.abs(moved[:, 2])
        z = GAP - jnp.abs(GAP - z)
        mean_height = (x[:, 2] + z) / 2
        moved = moved.at[:, 2].set(z) + RATE * DT * mean_height[:, None] * flow
        return moved, moved

    _, rest = jax.lax.scan(step, first, jax.random.split(key, FRAMES - 1))
    return jnp.concatenate([first[None], rest])


@partial(jax.jit, static_argnums=1)
def simulated(key: PRNGKeyArray, blocks: int) -> Float[Array, "blocks maps frames"]:
    """Returns the correlations of the first frame with all, for independent blocks."""
    q = Q * jnp.stack([jnp.cos(PHI), jnp.sin(PHI), jnp.zeros(len(PHI))], -1)

    def one(key):
        return xpcs.two_time_from_positions(tracks(key, EACH), q)[:, 0]

    return jax.lax.map(one, jax.random.split(key, blocks))


def predicted(convention: str, rate=RATE, d0=D0) -> np.ndarray:
    """Returns the values of the model, (maps, frames)."""
    lags = jnp.arange(FRAMES) * DT
    values = xpcs.g2(model(convention, rate, d0), lags, Q, PHI[:, None], offset=0.0)
    return np.asarray(values)


class Verdict(NamedTuple):
    """How a prediction compares with the particles.

    Attributes:
        largest: Largest deviation of one value in its standard errors.
        chi2: Sum of squares of deviations, decorrelated, for each degree of freedom.
    """

    largest: float
    chi2: float


def judge(found: np.ndarray, expected: np.ndarray, every: int = 3) -> Verdict:
    """Compares a prediction with the mean over blocks.

    Args:
        found: Values of each block, (blocks, maps, frames).
        expected: Values predicted, (maps, frames).
        every: The sum of squares uses each `every`-th lag: the blocks determine the
            covariance of fewer values better.

    Returns:
        The verdict.
    """
    blocks = len(found)
    off = found.mean(0) - expected
    error = found.std(0, ddof=1) / np.sqrt(blocks)
    largest = float(np.max(np.abs(off[:, 1:]) / error[:, 1:]))
    some = found[:, :, every::every].reshape(blocks, -1)
    covariance = np.cov(some.T) / blocks
    off = off[:, every::every].ravel()
    # Hotelling: the inverse of an estimated covariance is too large on average.
    bias = (blocks - off.size - 2) / (blocks - 1)
    chi2 = bias * float(off @ np.linalg.solve(covariance, off))
    return Verdict(largest, chi2 / off.size)


def fit(found: np.ndarray, convention: str) -> tuple[float, float]:
    """Fits shear rate and diffusion in a convention.

    Args:
        found: Values of each block.
        convention: Of the shear factor.

    Returns:
        The rate in 1/s and the prefactor of the diffusion in angstrom^2/s.
    """

    def cost(scales):
        rate, d0 = scales * [RATE, D0]
        return judge(found, predicted(convention, rate, d0)).chi2

    # Near the start that both formulas share for small arguments.
    start = float(xpcs.convert_rate(1.0, "physical", convention))
    best = minimize(cost, [start, 1.0], method="Nelder-Mead", options={"xatol": 1e-4})
    rate, d0 = best.x * [RATE, D0]
    return rate, d0


def draw(found: np.ndarray, fitted: tuple[float, float], path: Path) -> None:
    """Draws correlations along the flow and both formulas.

    Args:
        found: Values of each block.
        fitted: Rate and diffusion of the best fit in the homodyne convention.
        path: Of the PNG file.
    """
    argument = Q * GAP * RATE * np.arange(FRAMES) * DT / 2
    error = found.std(0, ddof=1) / np.sqrt(len(found))
    figure, (top, bottom) = plt.subplots(
        2, 1, sharex=True, figsize=(6.4, 6), layout="constrained"
    )
    top.errorbar(argument, found.mean(0)[0], error[0], fmt="k.", label="particles")
    curves = {
        "physical": (predicted("physical"), "C0-"),
        "homodyne": (predicted("homodyne"), "C3-"),
        "homodyne, fitted": (predicted("homodyne", *fitted), "C1--"),
    }
    for label, (expected, style) in curves.items():
        top.plot(argument, expected[0], style, label=label)
        off = (found.mean(0) - expected)[0, 1:] / error[0, 1:]
        bottom.plot(argument[1:], off, style)
    top.set_ylabel("$(c_2 - o) / b$")
    top.legend()
    bottom.set_yscale("symlog", linthresh=10)
    bottom.set_yticks([100, 10, 0, -10, -100, -1000])
    bottom.axhspan(-2, 2, color="0.9")
    bottom.set_ylabel("deviation in standard errors")
    bottom.set_xlabel(r"$X = q L \cos(\phi - \phi_0)\, \dot\gamma \tau / 2$")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments=None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=400, help="of 1000 particles")
    parser.add_argument("--output", type=Path, default=Path("output"))
    chosen = parser.parse_args(arguments)
    if chosen.blocks < 60:
        parser.error(f"--blocks must be at least 60, but is {chosen.blocks}")
    chosen.output.mkdir(parents=True, exist_ok=True)
    found = np.asarray(simulated(jax.random.key(0), chosen.blocks), float)
    largest = Q * GAP * RATE * (FRAMES - 1) * DT / 2
    print(f"{chosen.blocks * EACH} particles, X from 0 to {largest:.2f}")
    fitted = (RATE, D0)
    for convention in CONVENTIONS:
        given = judge(found, predicted(convention))
        fitted = fit(found, convention)
        best = judge(found, predicted(convention, *fitted))
        print(
            f"{convention:9} rate as simulated: largest deviation {given.largest:.1f} "
            f"standard errors, chi^2 {given.chi2:.2f}\n"
            f"{'':9} rate fitted, {fitted[0] / RATE:.3f} of it: {best.largest:.1f}, "
            f"{best.chi2:.2f}"
        )
    path = chosen.output / "couette.png"
    draw(found, fitted, path)
    print(f"saved {path}")


if __name__ == "__main__":
    main()
