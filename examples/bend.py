"""Designs a bend by gradient: light from the left leaves downwards.

`python -m examples.bend [--steps N] [--cells NM] [--output FOLDER]`. The worst of three
wavelengths from 1500 to 1600 nm is optimised. Box and guides are symmetric about the
diagonal, and so is the design. Under two minutes on two cores.
"""

import numpy as np
from rich.console import Console

from physax import design
from physax.units import MICRO, NANO

from . import guides
from .command_line import options


WAVELENGTHS = np.array([1500, 1550, 1600]) * NANO
SIZE = (2.0 * MICRO, 2.0 * MICRO)
GUIDES = {"in": ("-x", 0.0), "out": ("-y", 0.0)}


def lost(powers):
    """Returns the fraction of the power that is lost, at the worst wavelength."""
    return design.soft_max(1 - powers[:, 1], 60.0)


def told(powers: np.ndarray) -> str:
    """Describes what a bend does, in one line."""
    reflected, through = powers.T
    return (
        f"Bend, 1500 to 1600 nm: at least {through.min():.4f} comes out, reflects "
        f"{10 * np.log10(reflected.max()):.1f} dB"
    )


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = options(__doc__, arguments, steps=60, cells=40)
    symmetry = design.Transposition()
    chip = guides.chip(GUIDES, SIZE, WAVELENGTHS, chosen.cells * NANO, symmetry)
    made = guides.designed(chip, lost, chosen.steps)
    guides.save(chip, made, [1550 * NANO], chosen.output, "bend")
    Console().print(told(made["powers"]), soft_wrap=True)


if __name__ == "__main__":
    main()
