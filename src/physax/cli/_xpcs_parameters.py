"""The parameters of a fit of XPCS data: where they start, and what bounds them."""

import dataclasses
import math
from typing import Any

from .._checks import ArgumentError


Range = tuple[float, float]


def _check_start(
    start: float | None,
    bounds: Range | None,
    fixed: bool,
    unit: str = "",
    line: str = "",
) -> None:
    """Refuses crossed bounds and a start outside, before any data are read.

    Args:
        start: Where the fit begins.
        bounds: Between these it stays.
        fixed: Whether it stays at its start.
        unit: How the names of the former end.
        line: What gives the start on the command line.
    """
    if bounds is not None and not bounds[0] < bounds[1]:
        raise ArgumentError(
            f"`bounds{unit}` must be a lower and a higher number, but are "
            f"[{bounds[0]:g}, {bounds[1]:g}]."
        )
    if start is None:
        if fixed:
            raise ArgumentError(
                f"`fixed` must go with a `start{unit}`, but there is none."
            )
        return
    low, high = bounds or (-math.inf, math.inf)
    what = line or f"start{unit}"
    if not math.isfinite(start):
        raise ArgumentError(f"`{what}` must be finite, but is {start:g}.")
    if not low <= start <= high:
        remedy = f" Change `bounds{unit}` in the YAML file." if line else ""
        raise ArgumentError(
            f"`{what}` must lie within [{low:g}, {high:g}], but is {start:g}.{remedy}"
        )


@dataclasses.dataclass(frozen=True)
class Number:
    """A parameter of the model.

    Attributes:
        start: Where the fit begins; found from the data if `None`.
        bounds: Between these it stays.
        fixed: Whether it stays at its start.
    """

    start: float | None = None
    bounds: Range | None = None
    fixed: bool = False

    def __post_init__(self):
        _check_start(self.start, self.bounds, self.fixed)


@dataclasses.dataclass(frozen=True)
class Angle:
    """A direction, in degrees as everywhere in files.

    Attributes:
        start_degrees: Where the fit begins; found from the data if `None`.
        bounds_degrees: Between these it stays.
        fixed: Whether it stays at its start.
    """

    start_degrees: float | None = None
    bounds_degrees: Range | None = None
    fixed: bool = False

    def __post_init__(self):
        _check_start(self.start_degrees, self.bounds_degrees, self.fixed, "_degrees")

    def number(self) -> Number:
        """Returns the same in radians."""
        start, bounds = self.start_degrees, self.bounds_degrees
        return Number(
            None if start is None else math.radians(start),
            None
            if bounds is None
            else (math.radians(bounds[0]), math.radians(bounds[1])),
            self.fixed,
        )


@dataclasses.dataclass(frozen=True)
class StaticParameters:
    """Parameters without flow."""

    D0: Number = Number()
    alpha: Number = Number()
    D_offset: Number = Number()


@dataclasses.dataclass(frozen=True)
class LaminarParameters:
    """Parameters with flow."""

    D0: Number = Number()
    alpha: Number = Number()
    D_offset: Number = Number()
    shear_rate: Number = Number()
    beta: Number = Number()
    shear_offset: Number = Number()
    phi0: Angle = Angle()


Parameters = StaticParameters | LaminarParameters


def with_starts(parameters: Parameters, given: list[str]) -> Parameters:
    """Replaces starts by those of the command line, `key=value`, angles in degrees.

    Args:
        parameters: Of the settings.
        given: What follows `--set`.

    Raises:
        ArgumentError: If a key is unknown or comes twice, or a value is no number.
    """
    names = [field.name for field in dataclasses.fields(parameters)]
    seen = set()
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in names:
            raise ArgumentError(
                f"`--set` must be NAME=NUMBER with one of {', '.join(names)}, but is "
                f"{text!r}."
            )
        if name in seen:
            raise ArgumentError(
                f"`--set {name}` must be given once, but is so again, as {value!r}."
            )
        seen.add(name)
        try:
            number = float(value)
        except ValueError as error:
            raise ArgumentError(
                f"`--set {name}` must be a number, but is {value!r}."
            ) from error
        old = getattr(parameters, name)
        unit = "_degrees" if isinstance(old, Angle) else ""
        bounds = getattr(old, f"bounds{unit}")
        _check_start(number, bounds, old.fixed, unit, f"--set {name}")
        new: Any = dataclasses.replace(old, **{f"start{unit}": number})
        parameters = dataclasses.replace(parameters, **{name: new})
    return parameters


def refuse_negative(parameters: Parameters, given: list[str]) -> None:
    """Refuses starts of a fit below 0 that physics does not allow and no bounds do.

    Args:
        parameters: Of the fit.
        given: What follows `--set`, by which some were set.

    Raises:
        ArgumentError: If there is one.
    """
    for name in ("D0", "shear_rate"):
        number = getattr(parameters, name, Number())
        if number.bounds is None and not number.fixed and (number.start or 0) < 0:
            line = any(text.startswith(f"{name}=") for text in given)
            what = f"--set {name}" if line else f"parameters.{name}.start"
            raise ArgumentError(
                f"`{what}` must be at least 0, but is {number.start:g}. Where a fit "
                "may go below 0, give `bounds` in the YAML file."
            )
