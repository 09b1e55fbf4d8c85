"""What poles, full tensors and spectra cost over a plain medium, runs interleaved.

`python -m benchmarks.media [--json FILE] [--quick] [--gpu]` steps a random permittivity
with layers on all faces in 2-D and 3-D: plain, with four Lorentz poles in a quarter of
the cells, and with full tensors in all; in 3-D also with two flux monitors between the
layers and 101 frequencies; and compares the least times of a step. Of the sizes in 3-D
the caches of many machines hold a plain run well, hardly and not at all.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from physax import em
from physax.grid import Grid
from physax.units import SPEED_OF_LIGHT

from ._command import Command
from ._rows import OURS, Row, console, ours_version, report
from ._turns import least_seconds


CELL = 20e-9
LAYER = 10  # Cells.
RESONANCES = 5e14, 7e14, 9e14, 1.1e15
# Polarisation, cells along an edge, steps, edge of the dispersive box.
WORKLOADS = [
    ("Ez", 1000, 200, 500),
    ("Hz", 1000, 200, 500),
    (None, 64, 400, 40),
    (None, 128, 100, 81),
]
WIDE = [(None, 256, 48, 161)]
SPECTRA = 128, 200  # Cells, steps.
LARGE = [("Ez", 4096, 200, 2048), ("Hz", 4096, 200, 2048), (None, 256, 100, 161)]
QUICK = [("Ez", 60, 10, 30), (None, 30, 4, 19)]


def medium(kind: str, polarisation: str | None, cells: int, inner: int) -> em.Medium:
    """Returns a medium `"plain"`, with `"poles"` in the middle, or full `"tensors"`."""
    ndim = 3 if polarisation is None else 2
    shape = (cells,) * ndim
    random = np.random.default_rng(0)
    low = (cells - inner) // 2
    box = ((low, low + inner),) * ndim
    pairs = {"Ez": (), "Hz": ("xy",), None: ("xy", "xz", "yz")}[polarisation]
    entries = {
        pair: jnp.asarray(random.uniform(-0.05, 0.05, shape), jnp.float32)
        for pair in pairs
    }
    whole = ((0, cells),) * ndim
    poles = tuple(em.Lorentz(0.3, f, 4e13) for f in RESONANCES)
    return em.Medium(
        jnp.asarray(random.uniform(1, 4, shape), jnp.float32),
        dispersions=em.Dispersion(box, poles) if kind == "poles" else (),
        off_diagonals=em.OffDiagonal(whole, entries) if kind == "tensors" else (),
    )


def simulation(
    kind: str,
    polarisation: str | None,
    cells: int,
    steps: int,
    inner: int,
    monitors: Mapping[str, em.FluxMonitor] | None = None,
) -> em.Simulation:
    """Returns a run, in 3-D without a polarisation."""
    ndim = 3 if polarisation is None else 2
    middle = (cells * CELL / 2,) * ndim
    pulse = em.GaussianPulse(3e14, 1e14)
    dipole = em.Dipole(component=polarisation or "Ez", position=middle, pulse=pulse)
    return em.Simulation(
        Grid.uniform((cells,) * ndim, CELL),
        medium(kind, polarisation, cells, inner),
        em.Boundaries.all(em.CPML(LAYER)),
        polarisation=polarisation,
        steps=steps,
        # One for all: a tensor has a shorter limit.
        dt=0.9 * CELL / SPEED_OF_LIGHT / ndim**0.5,
        sources={"in": dipole},
        monitors=dict(monitors or {}),
    )


def costs(
    polarisation: str | None, cells: int, steps: int, inner: int, rounds: int
) -> list[Row]:
    """Milliseconds of a step in a plain medium and in others."""
    run = jax.jit(lambda sim: em.simulate(sim).fields)
    # The field of "Ez" is along the third axis of any tensor in the plane.
    kinds = ["plain", "poles", "tensors"][: 2 if polarisation == "Ez" else 3]
    sims = {k: simulation(k, polarisation, cells, steps, inner) for k in kinds}
    spent = least_seconds({k: partial(run, sim) for k, sim in sims.items()}, rounds)
    least = {kind: seconds / steps * 1e3 for kind, seconds in spent.items()}
    ndim, version = 3 if polarisation is None else 2, ours_version()
    case = f"{polarisation or '3-D'}, {cells}^{ndim} cells"
    told = {
        "poles": f"4 poles in {(inner / cells) ** ndim:.0%}",
        "tensors": "full tensors everywhere",
    }
    base = least.pop("plain")
    rows = [Row(case, "plain medium", version, base, "ms", runs=rounds)]
    for kind, value in least.items():
        own = f"{case}, {told[kind]}"
        rows.append(Row(own, OURS, version, value, "ms", value / base, runs=rounds))
    return rows


def spectra(cells: int, steps: int, rounds: int) -> list[Row]:
    """Milliseconds of a 3-D step without and with 101 frequencies on two planes."""
    middle, frequencies = cells * CELL / 2, jnp.linspace(2e14, 4e14, 101)
    planes = {
        name: em.FluxMonitor(
            axis="x",
            centre=(place * cells * CELL, middle, middle),
            size=(0.0, *((cells - 2 * LAYER) * CELL,) * 2),
            frequencies=frequencies,
        )
        for name, place in (("before", 0.4), ("after", 0.6))
    }

    @jax.jit
    def run(sim: em.Simulation):
        result = em.simulate(sim)
        return result.fields, result.monitors

    plain, seen = (
        simulation("plain", None, cells, steps, 0, monitors)
        for monitors in (None, planes)
    )
    runs = {"plain": partial(run, plain), "seen": partial(run, seen)}
    spent = least_seconds(runs, rounds)
    base, value = (spent[kind] / steps * 1e3 for kind in runs)
    case, version = f"3-D, {cells}^3 cells, {steps} steps", ours_version()
    own = f"{case}, 101 frequencies on two planes"
    return [
        Row(case, "no monitors", version, base, "ms", runs=rounds),
        Row(own, OURS, version, value, "ms", value / base, runs=rounds),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    command = Command(__doc__, (), rounds=8, quick=1, gpu=True)
    options = command.options(arguments)
    rows = []
    more = LARGE if options.gpu else WIDE
    workloads = QUICK if options.quick else WORKLOADS + more
    for polarisation, cells, steps, inner in workloads:
        rows += costs(polarisation, cells, steps, inner, options.rounds)
    rows += spectra(*((30, 8) if options.quick else SPECTRA), options.rounds)
    report(rows, "a step in plain and other media, float32", options.json)
    console().print("The column '/ best peer' is over the plain medium.")


if __name__ == "__main__":
    main()
