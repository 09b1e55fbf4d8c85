"""Resonances of a ring: cylindrical coordinates against Bessel functions.

`python -m examples.ring_resonator [--cells N] [--output FOLDER]`. A pulse excites a
ring of index 3.4, infinite along its axis, from 1 to 2 um in radius; `em.resonances`
finds frequency and quality of the mode with each angular number. The exact ones are
zeros of a determinant. Saves `ring_resonator.png`. Half a minute on two cores.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from scipy.optimize import root_scalar
from scipy.special import h1vp, hankel1, jv, jvp, yv, yvp

from physax import em
from physax.grid import Grid
from physax.units import MICRO, PICO, SPEED_OF_LIGHT, TERA

from .command_line import numbers
from .pictures import keep


INDEX, INNER, OUTER = 3.4, 1.0, 2.0  # radii in um
UNIT = SPEED_OF_LIGHT / MICRO
GUESS = {3: 0.118, 4: 0.148, 5: 0.176, 6: 0.204}  # frequency in c / um
FACE = np.array([INNER, OUTER])


def mismatch(frequency: complex, m: int) -> complex:
    """Returns the determinant that is zero at a mode with Ez; J, Y and J, H match."""
    k = 2 * np.pi * frequency
    (j, dj), (y, dy) = (
        (f(m, INDEX * k * FACE), INDEX * df(m, INDEX * k * FACE))
        for f, df in ((jv, jvp), (yv, yvp))
    )
    inside = jv(m, k * INNER), jvp(m, k * INNER)
    outside = hankel1(m, k * OUTER), h1vp(m, k * OUTER)
    rows = [
        [f * d - g * v for f, g in ((j, dj), (y, dy))] for v, d in (inside, outside)
    ]
    return rows[0][0][0] * rows[1][1][1] - rows[0][1][0] * rows[1][0][1]


def exact(m: int) -> complex:
    """Returns the complex frequency of a mode in c / um."""
    first = GUESS[m] - 1e-4j
    return root_scalar(
        mismatch, args=(m,), method="secant", x0=first, x1=1.0001 * first, xtol=1e-12
    ).root


def ring(m: int, cells: int) -> tuple[complex, em.TimeSeries]:
    """Returns frequency in c / um and the ring-down, with cells per um."""
    spacing = MICRO / cells
    # One cell along the axis, and a layer of two units.
    grid = Grid.uniform((6 * cells, 1), spacing)
    body = em.Structure(
        em.Box((1.5 * MICRO, 0.0), (MICRO, np.inf)), em.Material(INDEX**2)
    )
    carrier = GUESS[m] * UNIT
    pulse = em.GaussianPulse(carrier, carrier / 12)
    make = partial(
        em.Simulation,
        grid,
        em.rasterise([body], grid, components=em.Cylindrical.components),
        em.Boundaries(r=em.CPML(2 * cells), z=em.Periodic()),
        cylindrical=em.Cylindrical(m),
        sources={
            "kick": em.Dipole(
                component="Ez", position=(1.5 * MICRO, spacing / 2), pulse=pulse
            )
        },
        monitors={
            "bell": em.TimeMonitor(
                ("Ez",), (1.7 * MICRO, spacing / 2), (0.0, 0.0), every=cells // 2
            )
        },
    )
    steps = round(400 / UNIT / float(make(steps=1).dt))
    bell = em.simulate(make(steps=steps)).monitors["bell"]
    band = (0.9 * carrier, 1.1 * carrier)
    modes = em.resonances(bell, band, start=pulse.duration()).complex_frequency / UNIT
    return modes[np.argmin(abs(modes - GUESS[m]))], bell


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=20, modes=4)
    order = list(GUESS)[: chosen.modes]
    runs = [ring(m, chosen.cells) for m in order]
    found, wanted = np.array([f for f, _ in runs]), np.array([exact(m) for m in order])
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    bell = runs[0][1]
    field = bell.values["Ez"].ravel()
    axes[0].plot(bell.times["Ez"] / PICO, field / np.max(np.abs(field)), lw=0.8)
    axes[0].set(xlabel="time (ps)", ylabel="Ez over its largest")
    axes[0].set_title(f"m = {order[0]}")
    for values, mark, name in (
        (wanted, "k+", "Bessel functions"),
        (found, "o", "FDTD"),
    ):
        style = {"ms": 12 if mark == "k+" else 6, "mfc": "none", "label": name}
        axes[1].plot(order, np.real(values) * UNIT / TERA, mark, **style)
        axes[2].plot(order, quality(values), mark, **style)
    axes[1].set(xlabel="angular number m", ylabel="frequency (THz)", xticks=order)
    axes[2].set(xlabel="angular number m", ylabel="quality factor", xticks=order)
    axes[1].legend()
    axes[2].set_yscale("log")
    keep(figure, {"found": found, "exact": wanted}, chosen.output, "ring_resonator")
    worst = np.max(np.abs(np.real(found) / np.real(wanted) - 1))
    Console().print(
        f"m = {order[-1]}: f = {np.real(found[-1]):.5f} c/um, Q = "
        f"{quality(found)[-1]:.4g} (exact {np.real(wanted[-1]):.5f}, "
        f"{quality(wanted)[-1]:.4g}); frequencies within {worst:.1e}",
        soft_wrap=True,
    )


def quality(frequency):
    """Returns the quality factor of complex frequencies."""
    return -np.real(frequency) / (2 * np.imag(frequency))


if __name__ == "__main__":
    main()
