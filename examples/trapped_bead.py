"""Finds where a focused beam holds a bead, and how far heat moves it from there.

`python -m examples.trapped_bead [--cells N] [--particles N] [--output FOLDER]` sends a
Gaussian beam of 1064 nm through a bead of silica, 1 um across, in water. FDTD around
the axis of the beam, with N cells per micrometre, gives the force of the light at some
places of the bead, from one program; the series of partial waves gives it, too. In that
force and the noise of 298 K beads then move. Saves `trapped_bead.png`.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

from physax import em
from physax.grid import Grid
from physax.particles import Overdamped, StochasticHeun, track
from physax.units import BOLTZMANN, MICRO, NANO, SPEED_OF_LIGHT

from .command_line import numbers
from .mie_sphere import angular, coefficients
from .pictures import keep


RADIUS, WAIST, WATER, SILICA = 0.5 * MICRO, 0.42 * MICRO, 1.33, 1.45
FREQUENCY = SPEED_OF_LIGHT / (1.064 * MICRO)
POWER, KT = 3e-3, BOLTZMANN * 298
MOBILITY = 1 / (6 * np.pi * 0.89e-3 * RADIUS)
PLACES = np.linspace(-0.4, 0.7, 12) * MICRO  # of the bead, beyond the focus
PORT, WIDE = -1.0 * MICRO, 4.0 * MICRO


def pushed(cells: int) -> np.ndarray:
    """Returns the force in N on the bead at all places."""
    layer = em.CPML(max(8, cells // 2))
    size = round(4.1 * cells) + layer.cells, round(2.5 * cells) + 2 * layer.cells
    low = -(round(1.3 * cells) + layer.cells) * MICRO / cells
    grid = Grid.uniform(size, MICRO / cells, origin=(0.0, low))
    pulse = em.GaussianPulse(FREQUENCY, FREQUENCY / 8)
    port = em.Port((0.0, PORT), 2 * WIDE, "+z")
    water = em.Material(WATER**2)

    def simulated(structures, focus, monitor):
        beam = em.GaussianBeam(
            port=port, pulse=pulse, waist=WAIST, distance=focus - PORT
        )
        medium = em.rasterise(
            structures, grid, water, components=em.Cylindrical.components
        )
        sim = em.Simulation(
            grid,
            medium,
            em.Boundaries(r=layer, z=layer),
            cylindrical=em.Cylindrical(1),
            sources={"beam": beam},
            monitors={"seen": monitor},
            steps=60 * cells,
        )
        return em.simulate(sim).monitors["seen"]

    bead = em.Structure(em.Circle((0.0, 0.0), RADIUS), em.Material(SILICA**2))
    around = em.ForceMonitor((0.0, 0.0), (1.44 * MICRO,) * 2, FREQUENCY)
    ahead = em.FluxMonitor(
        axis="z", centre=(WIDE / 2, 0.0), size=(WIDE, 0.0), frequencies=FREQUENCY
    )
    sent = simulated([], jnp.zeros(()), ahead).flux[0]

    def force(place):
        return simulated([bead], -place, around).force["z"][0] / sent * POWER

    every = jax.jit(lambda places: jax.lax.map(force, places))
    return np.asarray(every(jnp.asarray(PLACES)), float)


def series(place: float) -> float:
    """Returns the force in N from the partial waves of the beam.

    What they bring of momentum less what they take.
    """
    k = 2 * np.pi * FREQUENCY / SPEED_OF_LIGHT * WATER
    nodes, weights = np.polynomial.legendre.leggauss(80)
    theta, weights = np.pi / 4 * (1 + nodes), np.pi / 4 * weights
    s, c = np.sin(theta), np.cos(theta)
    waves = s * c * weights * np.exp(-((k * WAIST * s) ** 2) / 4)
    power = np.sum(waves * np.exp(-((k * WAIST * s) ** 2) / 4) * (2 - s**2) * c)
    n, a, b = coefficients(k * RADIUS, SILICA / WATER)
    pi, tau = angular(n, theta)
    waves = waves * np.exp(1j * k * place * c) / (n * (n + 1))[:, None]
    g, h = ((waves * (c * x + y)).sum(1) for x, y in ((tau, pi), (pi, tau)))
    total = (
        (2 * n + 1) / (n * (n + 1)) * g * h.conj() * (a + b.conj() - 2 * a * b.conj())
    )
    weight = (n * (n + 2) / (n + 1))[:-1]
    for own, one in ((g, a), (h, b)):
        pair, next_ = weight * own[:-1] * own[1:].conj(), one[1:].conj()
        total[:-1] += pair * (one[:-1] + next_ - 2 * one[:-1] * next_)
    return 2 * total.sum().real / power * WATER / SPEED_OF_LIGHT * POWER


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=20, particles=2000)
    force, exact = pushed(chosen.cells), np.array([series(x) for x in PLACES])
    last = np.flatnonzero((force[:-1] > 0) & (force[1:] <= 0))[0]
    some = slice(last - 1, last + 3)
    curve = np.polyfit(PLACES[some] / NANO, force[some], 3)
    roots = np.roots(curve)
    rest = roots[np.argmin(np.abs(roots - PLACES[last] / NANO))].real
    stiffness = -np.polyval(np.polyder(curve), rest) / NANO
    relax, spread = 1 / (MOBILITY * stiffness), np.sqrt(KT / stiffness) / NANO

    def pull(t, x, v):
        return jnp.interp(x, PLACES, force)

    tracks = track(
        Overdamped(lambda t, x: 0 * x, (pull,), MOBILITY),
        np.full((chosen.particles, 1), rest * NANO),
        np.linspace(0, 10, 101) * relax,
        dt=relax / 20,
        solver=StochasticHeun(),
        diffusivity=MOBILITY * KT,
        key=jax.random.key(0),
    )
    late = np.ravel(np.asarray(tracks.positions, float)[40:]) / NANO

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    fine = np.linspace(PLACES[0], PLACES[-1], 60)
    axes[0].plot(fine / NANO, [1e12 * series(x) for x in fine], "k-", label="series")
    axes[0].plot(PLACES / NANO, 1e12 * force, "o", mfc="none", label="FDTD")
    axes[0].axhline(0, color="k", lw=0.6)
    axes[0].set(xlabel="bead beyond the focus (nm)", ylabel="force of the light (pN)")
    axes[0].legend()
    axes[1].hist(late, 60, density=True, label="beads")
    x = np.linspace(-4, 4, 200) * spread
    bell = np.exp(-((x / spread) ** 2) / 2) / np.sqrt(2 * np.pi) / spread
    axes[1].plot(rest + x, bell, label="kT over the stiffness")
    axes[1].set(xlabel="bead beyond the focus (nm)", ylabel="density (1/nm)")
    axes[1].legend()
    made = {"force": force, "exact": exact, "places": PLACES, "late": late}
    keep(figure, made, chosen.output, "trapped_bead")
    worst = np.max(np.abs(force - exact)) / np.max(np.abs(exact))
    Console().print(
        f"force within {worst:.3f} of the largest of the series, held {rest:.0f} nm "
        f"beyond the focus at {stiffness * 1e6:.2f} pN/um; spread {late.std():.0f} nm, "
        f"{late.std() / spread:.3f} of that of the stiffness"
    )


if __name__ == "__main__":
    main()
