"""Simulates published inverse-designed devices and compares with another code.

`python -m examples.published_designs [--data FOLDER] [--each] [DESIGN ...]` prints the
complex S-parameters of every design in a folder that holds a `reference.json` (its
format is described in `examples/data/published_designs/README.md`). `--each` makes one
run for each wavelength instead of one broadband run.
"""

import argparse
import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from physax import PhysaxWarning, em
from physax.design import Surround
from physax.grid import Grid
from physax.units import NANO

from . import pictures


DATA = Path(__file__).parent / "data" / "published_designs"
# The pulse must be over and the waves decayed; the mode converters ring longest.
STEPS = 24_000


@dataclass(frozen=True)
class Design:
    """A published device.

    Attributes:
        name: Of its file.
        problem: Geometry, in cells, as in `reference.json`.
        density: From 0 (cladding) to 1 (core) in the design box.
        wavelengths: In metres.
        s: Published parameters, shape (wavelength, output).
    """

    name: str
    problem: dict
    density: np.ndarray
    wavelengths: np.ndarray
    s: np.ndarray


def load(folder: Path = DATA, names: list[str] | None = None) -> list[Design]:
    """Reads the designs of a folder."""
    reference = json.loads((folder / "reference.json").read_text())
    designs = []
    for name, entry in reference["designs"].items():
        if names and not any(part in name for part in names):
            continue
        s = np.array(entry["S_re"]) + 1j * np.array(entry["S_im"])
        # The reference has the time sign exp(+i w t), and amplitudes that follow the
        # magnetic field, so that a reflection has the opposite sign.
        s = np.conj(s) * np.where(np.arange(s.shape[1]) == 0, -1, 1)
        density = np.loadtxt(folder / name, delimiter=",", ndmin=2)
        problem = reference["problems"][entry["problem"]]
        wavelengths = np.array(reference["wavelengths_nm"]) * NANO
        designs.append(Design(name, problem, density, wavelengths, s))
    return designs


def medium(problem: dict, density) -> em.Medium:
    """Returns the permittivity at the nodes: waveguides, cladding, design box."""
    core, clad = problem["eps_core"], problem["eps_clad"]
    background = np.full(problem["shape"], clad)
    for x0, x1, y0, y1 in problem["waveguides"]:
        background[x0:x1, y0:y1] = core
    x0, x1, y0, y1 = problem["design_box"]
    inside = clad + (core - clad) * jnp.asarray(density)
    region = em.DesignRegion(((x0, x1), (y0, y1)), inside)
    return em.Medium(jnp.asarray(background, inside.dtype), regions=region)


def simulation(problem: dict, density, steps: int = STEPS) -> em.Simulation:
    """Builds the device without sources, on the cells of the reference."""
    layers = em.Boundaries.all(em.CPML(problem["pml_cells"]))
    return em.Simulation(
        Grid.uniform(problem["shape"], problem["dl_nm"] * NANO),
        medium(problem, density),
        layers,
        steps=steps,
        polarisation="Ez",
    )


def ports(problem: dict) -> dict[str, em.Port]:
    """Returns the ports of a device by number."""
    cell = problem["dl_nm"] * NANO
    return {
        str(one["number"]): em.Port(
            (one["plane"] * cell, one["centre"] * cell),
            one["width"] * cell,
            "+x" if one["towards"] > 0 else "-x",
            mode=one["mode"],
            offset=one["offset"] * cell,
            compensate=False,  # as the reference averages the fields
        )
        for one in problem["ports"]
    }


def driven(problem: dict, density, wavelength: float, steps: int) -> em.Simulation:
    """Sends light into port 1, and records `"Ez"` at one wavelength."""
    quiet = simulation(problem, density, steps)
    return pictures.driven(quiet, ports(problem)["1"], wavelength)


def coarser(fine: dict, cell_nm: float) -> dict:
    """Returns the geometry of a problem on larger cells."""
    if cell_nm == fine["dl_nm"]:
        return fine
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
    return {
        **fine,
        "shape": shape,
        "dl_nm": cell_nm,
        "design_box": moved(fine["design_box"]),
        "waveguides": [moved(box) for box in fine["waveguides"]],
        "ports": ports_,
    }


def surroundings(problem: dict, rim: float) -> Surround:
    """Returns where guides are in the design box and `rim` metres around it."""
    cells = round(rim / (problem["dl_nm"] * NANO))
    x0, x1, y0, y1 = problem["design_box"]
    around = np.zeros((x1 - x0 + 2 * cells, y1 - y0 + 2 * cells))
    for a, b, c, d in problem["waveguides"]:
        low, high = np.clip([a - x0 + cells, b - x0 + cells], 0, len(around))
        around[low:high, c - y0 + cells : d - y0 + cells] = 1
    return Surround(around, (cells, cells))


def s_parameters(problem: dict, density, wavelengths, steps: int, until=None):
    """Returns the parameters of a device for light into port 1."""
    return em.s_parameters(
        simulation(problem, density, steps),
        ports(problem),
        wavelengths,
        inputs=["1"],
        match_frequency_domain=True,
        until=until,
    )


def scattering(
    design: Design, *, each: bool = False, steps: int = STEPS, density=None
) -> np.ndarray:
    """Returns our parameters, shape (wavelength, output), for light into port 1."""
    density = design.density if density is None else density
    bands = design.wavelengths[:, None] if each else [design.wavelengths]
    parts = [
        s_parameters(design.problem, density, band, steps, em.Decay(1e-10)).values
        for band in bands
    ]
    return np.concatenate([np.asarray(part[:, :, 0]) for part in parts])


def compare(designs: list[Design], *, each: bool = False) -> dict[str, np.ndarray]:
    """Simulates designs with a progress bar and prints a table for each."""
    console, found = Console(), {}
    for design in track(designs, "simulating published designs", console=console):
        with warnings.catch_warnings():
            # Cells of 40 nm are coarse for silicon; the reference solves the same
            # discrete equations.
            warnings.simplefilter("ignore", PhysaxWarning)
            found[design.name] = scattering(design, each=each)
    for design in designs:
        console.print(comparison(design, found[design.name]))
    return found


def comparison(design: Design, s: np.ndarray) -> Table:
    """Returns a table of our parameters and the published ones."""
    worst = np.abs(np.abs(s) ** 2 - np.abs(design.s) ** 2).max(axis=0)
    told = ", ".join(f"|d|S{j + 1}1|^2| <= {w:.1e}" for j, w in enumerate(worst))
    power = (np.abs(s) ** 2).sum(axis=1).max()
    table = Table(
        title=f"{design.name}\n{told}, sum of powers <= {power:.6f}",
        title_justify="left",
    )
    for title in ("nm", "", "physax", "published", "|S|^2 physax", "published"):
        table.add_column(title, justify="right")
    for wave, ours, theirs in zip(design.wavelengths, s, design.s, strict=True):
        for j, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            table.add_row(
                "" if j else f"{wave / NANO:.0f}",
                f"S{j + 1}1",
                f"{a:.4f}",
                f"{b:.4f}",
                f"{abs(a) ** 2:.6f}",
                f"{abs(b) ** 2:.6f}",
                end_section=j + 1 == len(ours),
            )
    return table


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of designs")
    parser.add_argument("--each", action="store_true", help="one run per wavelength")
    parser.add_argument("designs", nargs="*", help="parts of names; all by default")
    options = parser.parse_args()
    compare(load(options.data, options.designs), each=options.each)


if __name__ == "__main__":
    main()
