"""Designs a demultiplexer by gradient: each of two wavelengths gets its own guide.

`python -m examples.demultiplexer [--steps N] [--cells NM] [--output FOLDER]`. Light of
1500 nm should leave by the upper guide and light of 1600 nm by the lower one. A soft
maximum of the loss and of the power in the wrong guide is minimised. Under three
minutes on two cores.
"""

import jax.numpy as jnp
import numpy as np
from rich.console import Console

from physax import design
from physax.units import MICRO, NANO

from . import guides
from .command_line import options


WAVELENGTHS = np.array([1500, 1600]) * NANO
SIZE = (3.2 * MICRO, 2.8 * MICRO)
OUT = 0.8 * MICRO  # from the middle
GUIDES = {"in": ("-x", 0.0), "upper": ("+x", OUT), "lower": ("+x", -OUT)}


def losses(powers):
    """Returns the loss and the power in the wrong guide, at each wavelength."""
    right = jnp.stack([powers[0, 1], powers[1, 2]])
    wrong = jnp.stack([powers[0, 2], powers[1, 1]])
    return 1 - right, wrong


def worst(powers):
    """Returns the worst case, with power in the wrong guide counted twice."""
    lost, astray = losses(powers)
    return design.soft_max(jnp.concatenate([lost, 2 * astray]), 20.0)


def told(powers: np.ndarray) -> str:
    """Describes what a demultiplexer does, in one line."""
    lost, astray = losses(powers)
    upper, lower = 1 - lost
    crosstalk, reflected = 10 * np.log10([astray.max(), powers[:, 0].max()])
    return (
        f"Demultiplexer: {upper:.4f} of 1500 nm come out above, {lower:.4f} of 1600 nm "
        f"below, crosstalk {crosstalk:.1f} dB, reflection {reflected:.1f} dB"
    )


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = options(__doc__, arguments, steps=80, cells=40)
    chip = guides.chip(GUIDES, SIZE, WAVELENGTHS, chosen.cells * NANO)
    made = guides.designed(chip, worst, chosen.steps)
    guides.save(chip, made, WAVELENGTHS, chosen.output, "demultiplexer")
    Console().print(told(made["powers"]), soft_wrap=True)


if __name__ == "__main__":
    main()
