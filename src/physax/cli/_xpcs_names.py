"""Parameters of XPCS models as files and tables name them."""

import math
from typing import Any, NamedTuple

import equinox as eqx

from ..xpcs import AbstractCorrelation, LaminarFlow


class Name(NamedTuple):
    """A parameter as files name it.

    Attributes:
        part: The part of the model that holds it.
        field: Its name there.
        unit: In files.
        scale: What one unit of a file is worth in Python.
    """

    part: str
    field: str
    unit: str
    scale: float = 1.0

    def of(self, model: Any) -> Any:
        """Returns its value in a model, or whatever stands in that place."""
        return getattr(getattr(model, self.part), self.field)


NAMES = {
    "D0": Name("diffusion", "D0", "A^2/s^(1+alpha)"),
    "alpha": Name("diffusion", "alpha", ""),
    "D_offset": Name("diffusion", "D_offset", "A^2/s"),
    "shear_rate": Name("shear", "rate", "1/s^(1+beta)"),
    "beta": Name("shear", "beta", ""),
    "shear_offset": Name("shear", "offset", "1/s"),
    "phi0": Name("shear", "phi0", "degree", math.pi / 180),
}


def names_of(model: AbstractCorrelation) -> list[str]:
    """Returns the names of the parameters that a model has."""
    flow = isinstance(model, LaminarFlow)
    return [n for n, name in NAMES.items() if flow or name.part == "diffusion"]


def file_name(path: str) -> str:
    """Returns the name in files of a parameter that a fit calls `diffusion.D0`."""
    found = [n for n, name in NAMES.items() if f"{name.part}.{name.field}" == path]
    return found[0] if found else path


def with_values(model: AbstractCorrelation, values: dict[str, float]) -> Any:
    """Replaces parameters of a model, angles in radians."""
    for key, value in values.items():
        model = eqx.tree_at(NAMES[key].of, model, value)
    return model
