"""Optical materials from the literature."""

import dataclasses
import json
import math
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

import equinox as eqx
import jax
import jax.core
import numpy as np
from jaxtyping import ArrayLike, Num

from .._checks import ArgumentError, refuse_text, refuse_traced
from ..units import MICRO
from ._materials import Material, check_range
from ._poles import Drude, Lorentz
from ._sellmeier import sellmeier


# The frequency of an electronvolt in Hz (CODATA 2018, exact).
_HERTZ_PER_EV = 1.602_176_634e-19 / 6.626_070_15e-34


class LibraryEntry(eqx.Module):
    """What the library knows about a material.

    Attributes:
        title: What it is, and at which temperature where the source says it.
        formula: `"Sellmeier"`, without losses, or `"Drude-Lorentz"`.
        shortest: The shortest wavelength at which the formula holds, in metres.
        longest: The longest one.
        source: Author, journal, volume, page, year.
    """

    title: str = eqx.field(static=True)
    formula: str = eqx.field(static=True)
    shortest: float = eqx.field(static=True)
    longest: float = eqx.field(static=True)
    source: str = eqx.field(static=True)


@cache
def _table() -> dict[str, dict[str, Any]]:
    text = files(__package__).joinpath("_library.json").read_text(encoding="utf-8")
    return json.loads(text)


def materials() -> dict[str, LibraryEntry]:
    """Lists the materials of the library.

    Returns:
        For each name that `library` takes: formula, range and source.
    """
    return {name: _entry(numbers) for name, numbers in _table().items()}


def library(
    name: str,
    *,
    wavelengths: Num[ArrayLike, "*shape"] | Sequence[float | int] | None = None,
) -> Material:
    r"""Returns an optical material from the literature.

    Crystals with an axis come twice, with the index of the ordinary wave (`-o`) and of
    the extraordinary one (`-e`); `uniaxial` makes one of both. Transparent materials
    are Sellmeier formulas without losses, metals the Lorentz-Drude models of Rakić et
    al. (1998).

    Args:
        name: As `materials` lists it, for example `"SiO2"`, `"Si"` or `"Au"`.
        wavelengths: Where the material is needed, in metres (vacuum). If given, they
            are checked against the range of the source; otherwise only `scene` and
            `graded_grid` do this.

    Returns:
        The material, with poles.

    Raises:
        ArgumentError: If the name is unknown, or a wavelength out of range.
    """
    numbers = _table().get(name)
    if numbers is None:
        raise ArgumentError(
            f"`name` must be that of a material in the library, but is {name!r}. "
            f"{_hint(name)}"
        )
    if wavelengths is not None:
        _check_range(name, _entry(numbers), wavelengths)
    # Built on the host even while tracing, as all its numbers are known.
    with jax.ensure_compile_time_eval():
        lossy = numbers["formula"] == "Drude-Lorentz"
        found = _metal(numbers) if lossy else _transparent(numbers)
    entry = _entry(numbers)
    return dataclasses.replace(found, valid=(entry.shortest, entry.longest))


def _entry(numbers: dict[str, Any]) -> LibraryEntry:
    shortest, longest = (value * MICRO for value in numbers["range"])
    lossy = numbers["formula"] == "Drude-Lorentz"
    formula = "Drude-Lorentz" if lossy else "Sellmeier"
    return LibraryEntry(numbers["title"], formula, shortest, longest, numbers["source"])


def _hint(name: str) -> str:
    """Returns which names are like an unknown one."""
    spoken: dict[str, list[str]] = {}
    for known, numbers in _table().items():
        for text in (known, numbers["title"].split(",")[0]):
            spoken.setdefault(text.lower(), []).append(known)
    asked = str(name).lower()
    near = get_close_matches(asked, spoken, n=4, cutoff=0.7)
    found = list(dict.fromkeys(known for text in near for known in spoken[text]))
    if found:
        return "Did you mean " + " or ".join(map(repr, found[:6])) + "?"
    return "`materials()` lists them all."


def _check_range(name: str, entry: LibraryEntry, wavelengths: Any) -> None:
    refuse_traced(wavelengths, "wavelengths", "Look the material up outside.")
    refuse_text(wavelengths, "wavelengths")
    waves = np.asarray(wavelengths, float)
    check_range(waves, (entry.shortest, entry.longest), f"{name!r} ({entry.source})")


def _transparent(numbers: dict[str, Any]) -> Material:
    constant, strengths = numbers["constant"], numbers["strengths"]
    kind, resonances = numbers["formula"], numbers["resonances"]
    squares = [value**2 if kind == "roots" else value for value in resonances]
    if kind == "fractions":
        # B / (l^2 - C) = (B / C) (l^2 / (l^2 - C) - 1), exactly.
        strengths = [b / c for b, c in zip(strengths, squares, strict=True)]
        constant -= sum(strengths)
    waves = [MICRO * math.sqrt(c) for c in squares]
    return sellmeier(strengths, waves, constant=constant)


def _metal(numbers: dict[str, Any]) -> Material:
    plasma = numbers["plasma"]
    poles = []
    for strength, resonance, damping in zip(
        numbers["strengths"], numbers["resonances"], numbers["dampings"], strict=True
    ):
        width = damping * _HERTZ_PER_EV
        if resonance:
            weight = strength * (plasma / resonance) ** 2
            poles.append(Lorentz(weight, resonance * _HERTZ_PER_EV, width))
        else:
            free = math.sqrt(strength) * plasma
            poles.append(Drude(free * _HERTZ_PER_EV, width))
    return Material(1.0, poles=tuple(poles))
