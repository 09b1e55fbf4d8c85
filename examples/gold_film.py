"""A film of gold from measured n and k: vector fit, run, and the transfer matrix.

`python -m examples.gold_film [--cells NM] [--output FOLDER]`. The table of Johnson and
Christy is fitted by a few poles that absorb at every frequency; a film of 40 nm
reflects and transmits one pulse, and absorbs the rest. The reference is the transfer
matrix of the table itself, without any fit. Saves `gold_film.png`.
"""

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

from physax import em
from physax.grid import Grid
from physax.units import MICRO, NANO, SPEED_OF_LIGHT

from .command_line import numbers
from .pictures import keep


# P. B. Johnson and R. W. Christy, Phys. Rev. B 6, 4370 (1972): um, n, k.
TABLE = np.array(
    [
        (0.4959, 1.04, 1.833), (0.5209, 0.62, 2.081), (0.5486, 0.43, 2.455),
        (0.5821, 0.29, 2.863), (0.6168, 0.21, 3.272), (0.6595, 0.14, 3.697),
        (0.7045, 0.13, 4.103), (0.7560, 0.14, 4.542), (0.8211, 0.16, 5.083),
        (0.8920, 0.17, 5.663), (0.9840, 0.22, 6.350), (1.0880, 0.27, 7.150),
    ]
)  # fmt: skip
THICKNESS = 40 * NANO
WAVELENGTHS = TABLE[:, 0] * MICRO
FREQUENCIES = SPEED_OF_LIGHT / WAVELENGTHS


def film(material: em.Material, cell: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns the power that a film reflects and transmits; the cell is in metres."""
    wave = em.PlaneWave(
        direction="+x",
        component="Ez",
        centre=(0.7 * MICRO,),
        size=(0.7 * MICRO,),
        pulse=em.Ricker(FREQUENCIES.mean()),
        exit=False,
    )
    monitors = {
        name: em.FluxMonitor(
            axis="x", centre=(place * MICRO,), size=(0.0,), frequencies=FREQUENCIES
        )
        for name, place in {"front": 0.5, "behind": 1.6}.items()
    }

    def fluxes(structures):
        grid = Grid.uniform((round(2.2 * MICRO / cell),), cell)
        sim = em.Simulation(
            grid,
            em.rasterise(structures, grid),
            em.Boundaries.all(em.CPML(round(0.3 * MICRO / cell))),
            sources={"wave": wave},
            monitors=monitors,
            steps=round(16 * MICRO / cell),
        )
        seen = em.simulate(sim).monitors
        return [np.asarray(seen[name].flux) for name in monitors]

    body = em.Structure(
        em.Box.from_corners(1.2 * MICRO, 1.2 * MICRO + THICKNESS), material
    )
    incident, _ = fluxes([])
    front, behind = fluxes([body])
    return 1 - front / incident, behind / incident


def transfer_matrix(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the same for a film with complex indices, exactly."""
    r = (1 - index) / (1 + index)
    turn = np.exp(2j * np.pi / WAVELENGTHS * index * THICKNESS)
    below = 1 - (r * turn) ** 2
    return abs(r * (1 - turn**2) / below) ** 2, abs((1 - r**2) * turn / below) ** 2


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=4.0)
    fit = em.fit_material(WAVELENGTHS, TABLE[:, 1], TABLE[:, 2], tolerance=0.01)
    found = film(fit.material, chosen.cells * NANO)
    exact = transfer_matrix(TABLE[:, 1] + 1j * TABLE[:, 2])
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.0), layout="constrained")
    waves = np.linspace(WAVELENGTHS[0], WAVELENGTHS[-1], 200)
    epsilon = em.complex_permittivity(fit.material, SPEED_OF_LIGHT / waves)
    fitted = np.sqrt(np.asarray(epsilon))
    parts = {"n": np.real(fitted), "k": np.imag(fitted)}
    for column, (name, part) in enumerate(parts.items()):
        axes[0].plot(waves / NANO, part, f"C{column}", label=f"{name}, fit")
        axes[0].plot(
            WAVELENGTHS / NANO,
            TABLE[:, column + 1],
            f"C{column}o",
            mfc="none",
            label=name,
        )
    axes[0].set(xlabel="wavelength (nm)", ylabel="index of gold")
    rows = {"reflected": 0, "transmitted": 1, "absorbed": 2}
    shares = {
        name: (*pair, 1 - sum(pair))
        for name, pair in (("found", found), ("exact", exact))
    }
    for name, row in rows.items():
        axes[1].plot(WAVELENGTHS / NANO, shares["exact"][row], f"C{row}-", label=name)
        axes[1].plot(WAVELENGTHS / NANO, shares["found"][row], f"C{row}o", mfc="none")
    axes[1].set(xlabel="wavelength (nm)", ylabel="part of the power", ylim=(0, 1))
    axes[1].set_title("lines: transfer matrix, circles: FDTD")
    for one in axes:
        one.legend()
    made = {name: np.stack(one) for name, one in shares.items()}
    keep(figure, made, chosen.output, "gold_film")
    worst = np.max(np.abs(made["found"] - made["exact"]))
    Console().print(
        f"{len(fit.material.poles)} poles, {float(fit.rms_error):.4f} off in the mean; "
        f"shares of the power within {worst:.4f} of the transfer matrix of the table"
    )


if __name__ == "__main__":
    main()
