"""The schema of the YAML file of `physax track`."""

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError
from ..io import Dimension, construct, read_yaml
from ..io._netcdf_open import refuse_needless
from ..particles import (
    RK2,
    RK4,
    AbstractRungeKutta,
    Euler,
    RK4ThreeEighths,
    seed_gaussian,
    seed_grid,
    seed_line,
    seed_random,
)
from ._options import check_seed


Numbers = list[float]
# A value printed with 8 digits must fit.
_FIT = 1e-7
_UNITS = {"seconds": 1.0, "minutes": 60.0, "hours": 3600.0, "days": 86_400.0}
_TIMES = Dimension(
    "a time",
    "seconds",
    _UNITS,
    ("period", "gaps", "Timing.start", "duration", "record_every", "step"),
)


@dataclasses.dataclass(frozen=True)
class Flow:
    """Which flow.

    Attributes:
        files: Files or patterns.
        u: The variable along x, found if `None`.
        v: The variable along y.
        w: The vertical variable; none if `None`.
        axes: Coordinates of HDF5 and npz files, in the order of dimensions.
        time: The array of times of such files.
        select: Where to take a sample, along dimensions that are not used.
        scale: What a number of all components is in m/s, in place of their units.
        gaps: The longest gap in time that is bridged, in seconds; none if `None`.
        slip: How particles slide along land, from 0 to 1.
        period: The time after which the flow repeats, in seconds.
        hold: Whether the flow before the first and after the last instant is that of
            the nearest instant.
    """

    files: list[str] | None = None
    u: str | None = None
    v: str | None = None
    w: str | None = None
    axes: list[str] | None = None
    time: str | None = None
    select: dict[str, float] | None = None
    scale: float | None = None
    gaps: float | None = None
    slip: float | None = None
    period: float | None = None
    hold: bool = False

    def __post_init__(self):
        names = [name for name in (self.u, self.v, self.w) if name is not None]
        if len(set(names)) < len(names):
            raise ArgumentError(
                "`u`, `v` and `w` must name different variables, but are "
                f"{', '.join(map(repr, names))}."
            )
        if self.slip is not None and not 0 <= self.slip <= 1:
            raise ArgumentError(f"`slip` must lie in [0, 1], but is {self.slip:g}.")
        for name in ("scale", "period"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ArgumentError(
                    f"`{name}` must be positive and finite, but is {value:g}."
                )
        if self.hold and self.period is not None:
            raise ArgumentError(
                "`hold` must be false where the flow repeats after a `period`, which "
                "has no last instant. Leave out one of them."
            )
        if self.files:
            refuse_needless(self.files, self.axes, self.time)
        if self.gaps is not None and not self.gaps > 0:
            raise ArgumentError(f"`gaps` must be positive, but is {self.gaps:g} s.")


class AbstractSeeds(eqx.Module):
    """Where particles begin."""

    def __check_init__(self):
        # What is refused is so where the line of the file is known.
        self.place()

    @abstractmethod
    def place(self) -> Float[Array, "particles ndim"]:
        """Returns the positions."""


def _place(values: Numbers) -> np.ndarray:
    return np.asarray(values, float)


class Grid(AbstractSeeds):
    """The nodes of a regular grid."""

    low: Numbers
    high: Numbers
    shape: list[int]

    def place(self):
        return seed_grid(_place(self.low), _place(self.high), self.shape)


class Random(AbstractSeeds):
    """Evenly random places in a box."""

    low: Numbers
    high: Numbers
    count: int
    seed: int = 0

    def __check_init__(self):
        check_seed(self.seed)

    def place(self):
        key = jax.random.key(self.seed)
        return seed_random(key, _place(self.low), _place(self.high), self.count)


class Gaussian(AbstractSeeds):
    """A cloud around a place."""

    centre: Numbers
    spread: Numbers
    count: int
    seed: int = 0

    def __check_init__(self):
        check_seed(self.seed)

    def place(self):
        key = jax.random.key(self.seed)
        return seed_gaussian(key, _place(self.centre), _place(self.spread), self.count)


class Line(AbstractSeeds):
    """Evenly on a line."""

    start: Numbers
    stop: Numbers
    count: int

    def place(self):
        return seed_line(_place(self.start), _place(self.stop), self.count)


class Points(AbstractSeeds):
    """Places one by one."""

    points: list[Numbers]

    def place(self):
        sizes = sorted({len(point) for point in self.points})
        if len(sizes) != 1:
            came = f"have {' and '.join(map(str, sizes))}" if sizes else "is empty"
            raise ArgumentError(
                "`points` must be one place or more with the same number of "
                f"coordinates each, as [[10, 50], [12, 50]], but {came}."
            )
        wrong = [point for point in self.points if not all(map(math.isfinite, point))]
        if wrong:
            raise ArgumentError(f"`points` must be finite, but one is {wrong[0]}.")
        return jax.numpy.asarray(self.points, float)


SEEDS: Mapping[str, Callable[..., Any]] = {
    kind.__name__: kind for kind in (Grid, Random, Gaussian, Line, Points)
}
SOLVERS: Mapping[str, Callable[..., Any]] = {
    kind.__name__: kind for kind in (RK4, RK4ThreeEighths, RK2, Euler)
}


@dataclasses.dataclass(frozen=True)
class Timing:
    """When, in seconds.

    Attributes:
        start: Since the first instant; the first one, or backward the last, if `None`.
        duration: How long; found if `None`.
        record_every: From one recorded time to the next; divides `duration`.
        step: At most; found from the velocity if `None`.
        backward: Whether time runs backward.
    """

    start: float | None = None
    duration: float | None = None
    record_every: float | None = None
    step: float | None = None
    backward: bool = False

    def __post_init__(self):
        for name in ("duration", "record_every", "step"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ArgumentError(
                    f"`{name}` must be positive and finite, but is {value:g} s."
                )
        if self.start is not None and not math.isfinite(self.start):
            raise ArgumentError(f"`start` must be finite, but is {self.start:g} s.")
        if self.duration is not None and self.record_every is not None:
            _check_divides(self.record_every, self.duration)


def _check_divides(every: float, duration: float) -> None:
    """Refuses recorded times that miss the last one."""
    count = duration / every
    if round(count) >= 1 and abs(count - round(count)) <= _FIT * count:
        return
    fitting = [unit for unit, worth in _UNITS.items() if worth < min(every, duration)]
    unit = fitting[-1] if fitting else "seconds"
    show = lambda x: f"{x / _UNITS[unit]:.8g} {unit}"  # noqa: E731
    below = math.floor(count)
    counts = [n for n in (below, below + 1) if n]
    values = [show(duration / n) for n in counts]
    lengths = [show(every * n) for n in counts]
    raise ArgumentError(
        f"`record_every` must divide `duration`, {show(duration)}, but is "
        f"{show(every)}. Take {' or '.join(values)}, or a `duration` of "
        f"{' or '.join(lengths)}."
    )


@dataclasses.dataclass(frozen=True)
class Output:
    """What is written.

    Attributes:
        tracks: The file in the output folder, `*.nc`, `*.zarr` or `*.npz`; the best
            there is if `None`.
        ragged: Whether tracks are in the file without padding.
        figures: Whether a map is drawn.
        animation: `"gif"` or `"mp4"`.
        west: The smallest longitude of maps; if `None`, that half way around from the
            middle of the data, or -180 where these go around the globe.
    """

    tracks: str | None = None
    ragged: bool = False
    figures: bool = True
    animation: Literal["gif", "mp4"] | None = None
    west: float | None = None

    def __post_init__(self):
        if self.west is not None and not abs(self.west) <= 360:
            raise ArgumentError(
                f"`west` must be a longitude from -360 to 360, but is {self.west:g}."
            )
        name = self.tracks
        if name is None:
            return
        if "/" in name or not name.endswith((".nc", ".zarr", ".npz")):
            raise ArgumentError(
                "`tracks` must be the name of a file that ends in .nc, .zarr or .npz, "
                f"without a folder, but is {name!r}."
            )


@dataclasses.dataclass(frozen=True)
class Settings:
    """A run.

    Attributes:
        velocity: Which flow.
        seeds: Where particles begin; a grid all over the data if `None`.
        times: When.
        solver: How steps are made; `RK4` if `None`.
        coast: What land does: `"strand"` ends particles, `"none"` nothing.
        output: What is written.
    """

    velocity: Flow = Flow()
    seeds: AbstractSeeds | None = None
    times: Timing = Timing()
    solver: AbstractRungeKutta | None = None
    coast: Literal["strand", "none"] = "strand"
    output: Output = Output()


def read_settings(path: str) -> Settings:
    """Reads a YAML file of settings.

    Raises:
        PhysaxFileError: If a key is unknown or a value of a wrong type; names the line.
        FileNotFoundError: If there is no such file.
    """
    return construct(
        read_yaml(path),
        Settings,
        registry={**SEEDS, **SOLVERS},
        units={},
        dimensions=(_TIMES,),
    )
