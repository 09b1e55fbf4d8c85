"""From a layout to S-parameters: a multimode splitter in GDSII.

`python -m examples.layout_splitter [--cells NM] [--output FOLDER]`. A splitter for
silicon nitride is drawn, written to `layout_splitter.gds` and read back, as any layout
would be; `em.s_parameters` gives both arms over a band, in 2-D with Ez, as a table and
as `layout_splitter.png`. A minute.
"""

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

from physax import design, em, io, plot
from physax.units import MICRO, NANO

from .command_line import numbers
from .pictures import driven, keep


NITRIDE, SILICA = 2.0**2, 1.444**2
GUIDE, WIDTH, WAVE = 0.9, 4.4, 1.55  # um
# By imaging of the modes one spot becomes two a quarter of the width beside the middle:
# L. B. Soldano and E. C. M. Pennings, J. Lightwave Technol. 13, 615 (1995).
SEEN = WIDTH + WAVE / np.pi / np.sqrt(NITRIDE - SILICA)  # where the modes end
LENGTH, ARM = np.sqrt(NITRIDE) * SEEN**2 / WAVE / 2, SEEN / 4
LAYER = (1, 0)


def draw(path) -> None:
    """Writes the layout: a wide part, one guide to the left and two to the right."""
    half, beyond = LENGTH / 2, 12.0
    upper = [(beyond, ARM - GUIDE / 2), (beyond, ARM + GUIDE / 2)]
    upper = [(half, ARM - GUIDE / 2), *upper, (half, ARM + GUIDE / 2)]
    upper += [(half, WIDTH / 2), (-half, WIDTH / 2)]
    upper += [(-half, GUIDE / 2), (-beyond, GUIDE / 2)]
    lower = [(x, -y) for x, y in reversed(upper)]
    solids = [design.SolidPart(np.array(upper + lower) * MICRO)]
    io.save_gds(path, {LAYER: design.Contours(solids)}, cell="SPLITTER")


def scene(path, cell: float) -> em.Simulation:
    """Returns the scene of the layout; the cell is in metres."""
    core = io.GDSLayer(em.Material(NITRIDE))
    return em.scene(
        io.read_gds(path, {LAYER: core}, cell="SPLITTER"),
        ((LENGTH + 4) * MICRO, (WIDTH + 2) * MICRO),
        [WAVE * MICRO],
        background=em.Material(SILICA),
        polarisation="Ez",
        spacing=cell,
        steps=round(240 * MICRO / cell),
    )


def ports() -> dict[str, em.Port]:
    """Returns the ports of the splitter."""
    end = (LENGTH / 2 + 1.8) * MICRO
    size, offset = (2 * ARM - 0.1) * MICRO, 0.3 * MICRO
    found = {"in": em.Port((-end, 0.0), size, "+x", offset=offset)}
    for name, side in (("upper", 1), ("lower", -1)):
        found[name] = em.Port((end, side * ARM * MICRO), size, "-x", offset=offset)
    return found


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=50.0, points=9)
    path = chosen.output / "layout_splitter.gds"
    draw(path)
    sim = scene(path, chosen.cells * NANO)
    waves = np.linspace(1.5, 1.6, chosen.points) * MICRO
    s = em.s_parameters(sim, ports(), waves, inputs=["in"], until=em.Decay(1e-6))
    io.write_csv(chosen.output / "layout_splitter.csv", s)
    power = np.asarray(s.power)[:, :, 0]
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
    lit = driven(sim, ports()["in"], WAVE * MICRO)
    plot.field(em.simulate(lit).monitors["Ez"], "Ez", outline=lit, axes=axes[0])
    axes[0].set_title("|Ez| at 1550 nm")
    axes[1].plot(waves / NANO, 100 * power[:, 1], label="upper arm")
    axes[1].plot(waves / NANO, 100 * power[:, 2], "o", mfc="none", label="lower arm")
    axes[1].axhline(50, color="k", lw=0.8, ls="--", label="no loss")
    axes[1].set(xlabel="wavelength (nm)", ylabel="part of the power (%)")
    axes[1].legend()
    made = {"wavelengths": waves, "power": power}
    keep(figure, made, chosen.output, "layout_splitter")
    middle = power[len(waves) // 2]
    Console().print(
        f"at 1550 nm {middle[1]:.4f} in the upper arm, {middle[2]:.4f} in the lower; "
        f"{10 * np.log10(middle[0]):.1f} dB come back"
    )


if __name__ == "__main__":
    main()
