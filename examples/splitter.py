"""Designs a splitter by gradient: half of the light goes into each of two arms.

`python -m examples.splitter [--steps N] [--cells NM] [--output FOLDER]`. The worst of
both arms and three wavelengths from 1500 to 1600 nm is optimised. Mirror symmetry keeps
the arms equal to rounding. Under two minutes on two cores.
"""

import numpy as np
from rich.console import Console

from physax import design
from physax.units import MICRO, NANO

from . import guides
from .command_line import options


WAVELENGTHS = np.array([1500, 1550, 1600]) * NANO
SIZE = (2.4 * MICRO, 2.4 * MICRO)
ARM = 0.8 * MICRO  # from the middle
GUIDES = {"in": ("-x", 0.0), "upper": ("+x", ARM), "lower": ("+x", -ARM)}


def missing(powers):
    """Returns the largest fraction of its half that an arm lacks."""
    return design.soft_max(1 - 2 * powers[:, 1:], 60.0)


def told(powers: np.ndarray) -> str:
    """Describes what a splitter does, in one line."""
    reflected, upper, lower = powers.T
    return (
        f"Splitter, 1500 to 1600 nm: at least {upper.min():.4f} in the upper arm and "
        f"{lower.min():.4f} in the lower, reflects {10 * np.log10(reflected.max()):.1f}"
        " dB"
    )


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = options(__doc__, arguments, steps=60, cells=40)
    symmetry = design.Mirror(1)
    chip = guides.chip(GUIDES, SIZE, WAVELENGTHS, chosen.cells * NANO, symmetry)
    made = guides.designed(chip, missing, chosen.steps)
    guides.save(chip, made, [1550 * NANO], chosen.output, "splitter")
    Console().print(told(made["powers"]), soft_wrap=True)


if __name__ == "__main__":
    main()
