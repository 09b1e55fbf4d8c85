"""Loss of a taper over its length, from a butt joint to an adiabatic one.

`python -m examples.taper [--cells NM] [--lengths N] [--output FOLDER]`. A guide of
silicon nitride in silica widens from 0.5 to 2 um, in 2-D with Ez. One program serves
all lengths, as only the permittivity differs. An abrupt joint transmits what the
overlap of the two modes predicts, a long taper everything. Saves `taper.png`. A minute
or two.
"""

import equinox as eqx
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

from physax import em, plot
from physax.units import MICRO, NANO, SPEED_OF_LIGHT

from .command_line import numbers
from .pictures import driven, keep


NITRIDE, SILICA = 2.0**2, 1.444**2
NARROW, WIDE, WAVE = 0.5, 2.0, 1.55  # um
REACH, SIDE = 7.0, 2.2  # half lengths of the scene in um
PORTS = {
    "in": em.Port(((0.2 - REACH) * MICRO, 0.0), 3.6 * MICRO, "+x", offset=0.4 * MICRO),
    "out": em.Port(((REACH - 0.2) * MICRO, 0.0), 3.6 * MICRO, "-x", offset=0.4 * MICRO),
}


def taper(length: float) -> em.Structure:
    """Returns a guide that widens over a length in um."""
    x = np.array([-50.0, -length / 2, length / 2, 50.0]) * MICRO
    widths = np.array([NARROW, NARROW, WIDE, WIDE]) * MICRO
    points = np.stack([x, np.zeros(4)], axis=1)
    return em.Structure(em.Path(points, widths), em.Material(NITRIDE))


def scene(length: float, cell: float) -> em.Simulation:
    """Returns the scene of a taper, the cell in metres."""
    return em.scene(
        [taper(length)],
        (2 * REACH * MICRO, 2 * SIDE * MICRO),
        [WAVE * MICRO],
        background=em.Material(SILICA),
        polarisation="Ez",
        spacing=cell,
        steps=round(90 * MICRO / cell),
    )


def passed(lengths, cell: float) -> np.ndarray:
    """Returns the power in the first mode behind each taper, and that reflected."""
    first = scene(1.0, cell)
    found = []
    for length in lengths:
        medium = scene(length, cell).medium
        sim = eqx.tree_at(lambda one: one.medium, first, medium)
        s = em.s_parameters(sim, PORTS, [WAVE * MICRO], inputs=["in"])
        found.append([float(s.power[0, 1, 0]), float(s.power[0, 0, 0])])
    return np.array(found)


def butt_joint() -> float:
    """Returns the power through a butt joint: overlap of the modes, and Fresnel."""
    spacing = 0.02
    y = (np.arange(300) - 149.5) * spacing
    one, width = jnp.ones(len(y)), jnp.full(len(y), spacing * MICRO)
    narrow, wide = (
        em.slab_mode(
            jnp.asarray(np.where(abs(y) < w / 2, NITRIDE, SILICA)),
            *(one, one, width, width),
            SPEED_OF_LIGHT / (WAVE * MICRO),
            polarisation="Ez",
        )
        for w in (NARROW, WIDE)
    )
    fields = [np.asarray(mode.electric, float) for mode in (narrow, wide)]
    low, high = (float(mode.effective_index) for mode in (narrow, wide))
    overlap = np.sum(fields[0] * fields[1]) ** 2 / np.prod(
        [np.sum(f**2) for f in fields]
    )
    return overlap * 4 * low * high / (low + high) ** 2


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=50.0, lengths=7)
    cell = chosen.cells * NANO
    lengths = np.concatenate([[0.001], np.linspace(0, 11, chosen.lengths)[1:]])
    through, reflected = passed(lengths, cell).T
    theory = butt_joint()
    middle = lengths[len(lengths) // 2]
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    sim = driven(scene(middle, cell), PORTS["in"], WAVE * MICRO)
    light = em.simulate(sim).monitors["Ez"]
    plot.field(light, "Ez", outline=sim, axes=axes[0])
    axes[0].set_title(f"|Ez| in {middle:.1f} µm")
    axes[1].plot(lengths, 100 * (1 - through), "o-", label="FDTD")
    label = "overlap of the modes"
    axes[1].plot(0, 100 * (1 - theory), "k+", ms=14, label=label)
    axes[1].set_yscale("log")
    axes[1].set(xlabel="length (µm)", ylabel="not in the first mode behind (%)")
    axes[1].legend()
    made = {"lengths": lengths, "through": through, "joint": theory}
    keep(figure, made, chosen.output, "taper")
    Console().print(
        f"a butt joint passes {through[0]:.4f} (overlap {theory:.4f}), "
        f"{lengths[-1]:.0f} um of taper {through[-1]:.4f}; at most "
        f"{reflected.max():.1e} comes back"
    )


if __name__ == "__main__":
    main()
