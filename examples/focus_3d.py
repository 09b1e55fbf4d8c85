"""Designs a lens of silicon nitride by gradient, in 3-D, from a grey start.

`python -m examples.focus_3d [--steps N] [--cells NM] [--output FOLDER]`. A plate 3.2 um
square and 0.6 um thick, etched through, focuses a plane wave of three wavelengths and
any polarisation 1.6 um behind it. It prints the gain in the focus of the binary plate,
and saves the plate and pictures.
"""

import warnings
from functools import partial

import jax.numpy as jnp
import numpy as np

from physax import PhysaxWarning, design, em
from physax.grid import Grid
from physax.units import MICRO, NANO, SPEED_OF_LIGHT

from . import lenses
from .command_line import options
from .pictures import draw_device


NITRIDE = 2.0**2
# The first is that of the pictures.
FREQUENCIES = SPEED_OF_LIGHT / (np.array([0.85, 0.81, 0.89]) * MICRO)
WIDTH, THICKNESS, FOCUS, ROOM = 3.2 * MICRO, 0.6 * MICRO, 1.6 * MICRO, 0.4 * MICRO
LAYER, RIM = 0.4 * MICRO, 0.7 * MICRO  # Absorbing; from the plate to the end.
LINE, SIDE, ABOVE = (1, 0, 0), (1, 0, 1), (1, 1, 0)


def permittivity(density) -> dict:
    """Returns the mean over the cells around the points of each component."""
    means = {}
    for name, across in {"Ex": (1, 2), "Ey": (0, 2), "Ez": (0, 1)}.items():
        mean = jnp.pad(density, (0, 1))  # By void: then a shift may wrap around.
        for axis in across:
            mean = (mean + jnp.roll(mean, 1, axis)) / 2
        means[name] = design.linear_material(mean, 1.0, NITRIDE)
    return means


def scene(flat, part: float, cell: float, seen=LINE) -> em.Simulation:
    """Sends a plane wave along z through a plate; the grid's middle is the origin.

    Args:
        flat: Density of the plate's cells, an even number along x and y.
        part: Fraction of the light's path to simulate; 1 is 34 um.
        cell: Width of the cells in metres.
        seen: Axes along which the monitor extends, through the focus or the middle.
    """
    density = design.extrude(flat, [cell] * round(THICKNESS / cell))
    rim, layer = round(RIM / cell), round(LAYER / cell)
    shape = np.array(density.shape) + 2 * rim
    shape[2] += round((FOCUS + ROOM) / cell)
    # The faces of the wave lie half way from the plate to the layers.
    inside = (shape - 2 * layer - 2 * ((rim - layer) // 2)) * cell
    box = [(rim, rim + n + 1) for n in density.shape]
    wave = em.PlaneWave(
        direction="+z",
        component="Ex",
        centre=(0.0, 0.0, 0.0),
        size=inside,
        pulse=em.GaussianPulse(FREQUENCIES[0], FREQUENCIES[0] / 4),
    )
    monitor = em.FieldMonitor(
        components=("Ex",),
        centre=(0.0, 0.0, 0.0 if seen[2] else (THICKNESS + FOCUS - ROOM) / 2),
        size=seen * inside,
        frequencies=FREQUENCIES,
    )
    return em.Simulation(
        Grid.uniform(shape.tolist(), cell, (-shape / 2 * cell).tolist()),
        em.Medium(regions=em.DesignRegion(box, permittivity(density))),
        em.Boundaries.all(em.CPML(layer)),
        sources={"wave": wave},
        monitors={"light": monitor},
        steps=round(part * 60 * MICRO / cell),
    )


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = options(__doc__, arguments, steps=42, cells=50)
    cell, path = chosen.cells * NANO, chosen.output / "focus_3d.png"
    lens = lenses.Lens(
        scene=partial(scene, cell=cell),
        symmetries=(design.Rotation(4), design.Transposition()),
        shape=(2 * round(WIDTH / 2 / cell),) * 2,
        cell=cell,
        length=150 * NANO,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysaxWarning)  # 8 cells per wavelength.
        made = lenses.designed(lens, chosen.steps)
        solid = jnp.asarray(made["solid"], float)
        draw_device(scene(solid, 1.0, cell, SIDE), "light", "Ex", path, ("y", 0.0))
        above = path.with_name("focus_3d_above.png")
        plane = ("z", -(FOCUS + ROOM) / 2)
        draw_device(scene(solid, 1.0, cell, ABOVE), "light", "Ex", above, plane)
    lenses.finish(lens, made, path)


if __name__ == "__main__":
    main()
