"""Designs a lens of silicon in silica by gradient, in 2-D, from a grey start.

`python -m examples.metalens [--steps N] [--cells NM] [--output FOLDER]`. A strip 10 um
wide and 0.8 um thick focuses a plane wave of three wavelengths 6 um behind it. It
prints the gain in the focus of the binary lens, and saves the lens and pictures.
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


SILICON, SILICA = 3.48**2, 1.44**2
# The first is that of the pictures.
FREQUENCIES = SPEED_OF_LIGHT / (np.array([1.55, 1.50, 1.60]) * MICRO)
WIDTH, THICKNESS, FOCUS = 10 * MICRO, 0.8 * MICRO, 6 * MICRO
LAYER, RIM = 0.6 * MICRO, 1.6 * MICRO  # Absorbing; from the lens to the end.


def scene(density, part: float, cell: float, *, whole: bool = False) -> em.Simulation:
    """Sends a plane wave upwards through a lens; the grid's middle is the origin.

    Args:
        density: On the nodes of the lens, an odd number along x.
        part: Fraction of the light's path to simulate; 1 is 140 um in vacuum.
        cell: Distance between the nodes in metres.
        whole: Whether to record the light everywhere, not only on the focal line.
    """
    across, layers = density.shape
    rim, layer = round(RIM / cell), round(LAYER / cell)
    shape = across - 1 + 2 * rim, layers + 2 * rim + round(FOCUS / cell)
    inside = tuple((n - 2 * layer - 8) * cell for n in shape)
    region = em.DesignRegion(
        ((rim, rim + across), (rim, rim + layers)),
        design.linear_material(density, SILICA, SILICON),
    )
    wave = em.PlaneWave(
        direction="+y",
        component="Ez",
        centre=(0.0, 0.0),
        size=inside,
        pulse=em.GaussianPulse(FREQUENCIES[0], FREQUENCIES[0] / 8),
        permittivity=SILICA,
    )
    seen = em.FieldMonitor(
        components=("Ez",),
        centre=(0.0, 0.0 if whole else (THICKNESS + FOCUS) / 2),
        size=(inside[0], inside[1] if whole else 0.0),
        frequencies=FREQUENCIES,
    )
    return em.Simulation(
        Grid.uniform(shape, cell, [-n / 2 * cell for n in shape]),
        em.Medium(SILICA, regions=region),
        em.Boundaries.all(em.CPML(layer)),
        sources={"wave": wave},
        monitors={"light": seen},
        steps=round(part * 200 * MICRO / cell),
        polarisation="Ez",
    )


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = options(__doc__, arguments, steps=112, cells=30)
    cell, path = chosen.cells * NANO, chosen.output / "metalens.png"
    lens = lenses.Lens(
        scene=partial(scene, cell=cell),
        symmetries=(design.Mirror(0),),
        shape=(2 * round(WIDTH / 2 / cell) + 1, round(THICKNESS / cell)),
        cell=cell,
        length=150 * NANO,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysaxWarning)  # Light has not decayed.
        made = lenses.designed(lens, chosen.steps)
        solid = jnp.asarray(made["solid"], float)
        draw_device(scene(solid, 1.0, cell, whole=True), "light", "Ez", path)
    lenses.finish(lens, made, path)


if __name__ == "__main__":
    main()
