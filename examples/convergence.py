"""The resonance of a ring with an error bar.

`python -m examples.convergence [--cells N] [--output FOLDER]`. `em.converge` repeats
the ring of `ring_resonator` with finer and finer cells, finds the order at which
frequency and loss approach their limit, and estimates the error of the limit. The exact
value, which the estimate does not use, confirms it. Saves `convergence.png`.
"""

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

from physax import em, plot

from .command_line import numbers
from .pictures import keep
from .ring_resonator import exact, ring


MODE, UNIT = 3, 1e-3  # c/um


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=8)
    # Twice as fine along three steps; faces of the ring stay on nodes.
    resolutions = [round(chosen.cells * factor) for factor in (1, 1.5, 2.25)]
    study = em.converge(lambda cells: ring(MODE, cells)[0], resolutions, progress=False)
    wanted = exact(MODE)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.0), layout="constrained")
    plot.grid_convergence(study, label="distance from the limit (c/µm)", axes=axes[0])
    axes[0].set_xlabel("cells per µm")
    runs, limit = study.values / UNIT, complex(study.limit) / UNIT
    axes[1].plot(np.real(runs), -np.imag(runs), "o-", label="runs")
    for r, value in zip(resolutions, runs, strict=True):
        place = {"xytext": (0, 8), "textcoords": "offset points", "ha": "center"}
        axes[1].annotate(f"{r} cells", (np.real(value), -np.imag(value)), **place)
    bar = float(study.error) / UNIT
    axes[1].errorbar(
        limit.real, -limit.imag, bar, bar, fmt="s", capsize=3, label="limit"
    )
    axes[1].plot(wanted.real / UNIT, -wanted.imag / UNIT, "k+", ms=14, label="exact")
    axes[1].set(xlabel="frequency (0.001 c/µm)", ylabel="loss (0.001 c/µm)")
    axes[1].margins(0.1)
    axes[1].legend(loc="lower right")
    made = {"limit": study.limit, "error": study.error, "order": study.order}
    keep(figure, made | {"exact": np.asarray(wanted)}, chosen.output, "convergence")
    Console().print(
        f"order {float(study.order):.2f}; the limit is {abs(study.limit - wanted):.1e} "
        f"c/um off, its error bar {float(study.error):.1e}, the finest run "
        f"{abs(study.values[-1] - wanted):.1e}",
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
