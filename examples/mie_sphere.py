"""Light scattered by a sphere: spectrum and angular pattern against Mie's series.

`python -m examples.mie_sphere [--cells N] [--output FOLDER]`. A sphere of index 1.5 and
0.5 um radius in a plane wave, in 3-D. A box of monitors around it gives the power
scattered over a band and, through the far field, its pattern. Interfaces are averaged
by polarisation, so few cells are enough. Saves `mie_sphere.png`. A minute or two.
"""

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from scipy.special import spherical_jn, spherical_yn

from physax import em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT

from .command_line import numbers
from .pictures import keep


RADIUS, INDEX = 0.5 * MICRO, 1.5
SIZES = np.linspace(1.2, 3.0, 10)  # circumference over wavelength
FREQUENCIES = SIZES * SPEED_OF_LIGHT / (2 * np.pi * RADIUS)
PULSE = em.band_pulse(FREQUENCIES[0], FREQUENCIES[-1])
BOX, OUTER, ROOM, LAYER = 1.3, 1.6, 0.2, 8  # half widths in radii; cells
ANGLES = np.radians(np.arange(0, 181, 4))


def coefficients(
    size: float, index: float = INDEX
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the orders and Mie's coefficients a and b."""
    n = np.arange(1, int(size + 4 * size ** (1 / 3) + 3))

    def riccati(x):
        j, dj = spherical_jn(n, x), spherical_jn(n, x, derivative=True)
        h = j + 1j * spherical_yn(n, x)
        dh = dj + 1j * spherical_yn(n, x, derivative=True)
        return x * j, j + x * dj, x * h, h + x * dh

    psi, dpsi, xi, dxi = riccati(size)
    inner, dinner = riccati(index * size)[:2]
    a = (index * inner * dpsi - psi * dinner) / (index * inner * dxi - xi * dinner)
    b = (inner * dpsi - index * psi * dinner) / (inner * dxi - index * xi * dinner)
    return n, a, b


def efficiency(size: float) -> float:
    """Returns the scattered power over that incident on the disc of the sphere."""
    n, a, b = coefficients(size)
    return 2 / size**2 * np.sum((2 * n + 1) * (abs(a) ** 2 + abs(b) ** 2))


def angular(n: np.ndarray, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the functions pi and tau of all orders at some angles."""
    mu = np.cos(angles)
    pi = [np.zeros_like(mu), np.ones_like(mu)]
    for order in n[1:]:
        pi.append(((2 * order - 1) * mu * pi[-1] - order * pi[-2]) / (order - 1))
    pi = np.stack(pi)
    return pi[1:], n[:, None] * mu * pi[1:] - (n[:, None] + 1) * pi[:-1]


def pattern(size: float, angles: np.ndarray) -> np.ndarray:
    """Returns the amplitude S2 in the plane of the electric field."""
    n, a, b = coefficients(size)
    pi, tau = angular(n, angles)
    weights = ((2 * n + 1) / (n * (n + 1)))[:, None]
    return np.sum(weights * (a[:, None] * tau + b[:, None] * pi), axis=0)


def near_field(cells: int) -> em.NearField:
    """Returns the scattered field on a box, with cells per radius."""
    spacing = RADIUS / cells
    half = round((OUTER + ROOM) * cells) + LAYER
    grid = Grid.centred((2 * half,) * 3, spacing)
    ball = em.Structure(em.Sphere((0.0, 0.0, 0.0), RADIUS), em.Material(INDEX**2))
    wave = em.PlaneWave(
        direction="+z",
        component="Ex",
        centre=(0.0,) * 3,
        size=(2 * BOX * RADIUS,) * 3,
        pulse=PULSE,
    )
    sim = em.Simulation(
        grid,
        em.rasterise([ball], grid, averaging="polarised"),
        em.Boundaries.all(em.CPML(LAYER)),
        sources={"wave": wave},
        monitors={
            "box": em.NearFieldMonitor(
                (0.0,) * 3, (2 * OUTER * RADIUS,) * 3, FREQUENCIES
            )
        },
        steps=130 * cells,
    )
    return em.simulate(sim).monitors["box"]


def incident() -> np.ndarray:
    """Returns the spectral energy of the incident wave, in W fs^2/m^2."""
    spacing = RADIUS / 40
    wave = em.PlaneWave(
        direction="+x",
        component="Ez",
        centre=(0.0,),
        size=(60 * spacing,),
        pulse=PULSE,
    )
    flux = em.FluxMonitor(axis="x", centre=(0.0,), size=(0.0,), frequencies=FREQUENCIES)
    sim = em.Simulation(
        Grid.centred((120,), spacing),
        boundaries=em.Boundaries.all(em.CPML(20)),
        sources={"wave": wave},
        monitors={"flux": flux},
        steps=2_000,
    )
    return np.asarray(em.simulate(sim).monitors["flux"].flux)


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=10)
    near, brought = near_field(chosen.cells), incident()
    found = np.asarray(near.outflow) / brought / (np.pi * RADIUS**2)
    exact = np.array([efficiency(size) for size in SIZES])
    # Forward is +z; the far field at angles on both sides of it would be the same.
    far = em.far_field(near, em.direction(0.0, ANGLES))
    wavenumber = 2 * np.pi * FREQUENCIES[-1] / SPEED_OF_LIGHT
    sent = np.asarray(far.intensity)[-1] / brought[-1] * wavenumber**2
    expected = np.abs(pattern(SIZES[-1], ANGLES)) ** 2
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.0), layout="constrained")
    fine = np.linspace(SIZES[0], SIZES[-1], 200)
    curve = [efficiency(size) for size in fine]
    axes[0].plot(fine, curve, "k-", lw=1, label="Mie's series")
    axes[0].plot(SIZES, found, "o", mfc="none", label="FDTD")
    axes[0].set(xlabel="size, circumference over wavelength", ylabel="efficiency")
    axes[0].legend()
    axes[1].semilogy(np.degrees(ANGLES), expected, "k-", lw=1, label="Mie's series")
    axes[1].semilogy(np.degrees(ANGLES), sent, "o", ms=4, mfc="none", label="FDTD")
    axes[1].set(xlabel="angle from forward (degrees)", ylabel="$|S_2|^2$")
    axes[1].set_title(f"plane of the electric field, size {SIZES[-1]:g}")
    axes[1].legend()
    made = {"found": found, "exact": exact, "sent": sent, "expected": expected}
    keep(figure, made, chosen.output, "mie_sphere")
    worst = np.max(np.abs(found / exact - 1))
    off = np.max(np.abs(sent - expected)) / expected.max()
    Console().print(
        f"efficiencies within {100 * worst:.1f} % of the series, the pattern within "
        f"{100 * off:.1f} % of its peak"
    )


if __name__ == "__main__":
    main()
