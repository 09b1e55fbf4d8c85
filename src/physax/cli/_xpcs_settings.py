"""The schema of the YAML file of a fit of XPCS data."""

import argparse
import dataclasses
import math
from pathlib import Path
from typing import Literal

from .._checks import ArgumentError
from ..io import YamlNode, construct, read_two_time, read_yaml
from ..xpcs import MODES, AbstractScaling, Constant, Fourier, PerAngle, Shared, TwoTime
from ..xpcs._scaling import check_bounds, linear_bounds
from ._options import check_seed
from ._xpcs_parameters import (
    Angle,
    LaminarParameters,
    Number,
    Range,
    StaticParameters,
)


LAMINAR = "laminar_flow"
SCALINGS = {c.__name__: c for c in (PerAngle, Shared, Fourier, Constant)}


@dataclasses.dataclass(frozen=True)
class DataChoice:
    """Which data are read.

    Attributes:
        file: A file or a folder of files.
        pattern: Of the names in a folder.
        q: The wavevector in 1/angstrom, nearest wins; all if `None`.
        phi_ranges_degrees: Ranges of angles, which may cross 180; all if `None`.
        frames: The first and the last, counted from 1.
        keep_times: Whether these keep the times of the file, or begin at 0.
        without: Frames to leave out, dead ones, counted from 1.
        dt: Seconds from frame to frame; as the file says if `None`.
        sigma: Standard deviation of one value; as the file says if `None`.
    """

    file: str | None = None
    pattern: str = "*.hdf"
    q: float | None = None
    phi_ranges_degrees: list[Range] | None = None
    frames: tuple[int, int] | None = None
    keep_times: bool = False
    without: list[int] | None = None
    dt: float | None = None
    sigma: float | None = None

    def __post_init__(self):
        for name in ("q", "dt", "sigma"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ArgumentError(f"`{name}` must be positive, but is {value:g}.")
        if self.frames is not None and not 1 <= self.frames[0] < self.frames[1]:
            raise ArgumentError(
                "`frames` must be the first and the last one, counted from 1, but are "
                f"{list(self.frames)}."
            )
        if min(self.without or [1]) < 1:
            raise ArgumentError(
                "`without` must be numbers of frames, counted from 1, but has "
                f"{min(self.without or [1])}."
            )
        for low, high in self.phi_ranges_degrees or ():
            if not (abs(low) <= 360 and abs(high) <= 360):
                raise ArgumentError(
                    "`phi_ranges_degrees` must lie within -360 and 360, but have "
                    f"[{low:g}, {high:g}]."
                )

    def read(self, file: Path, q: float | None) -> TwoTime:
        """Reads the data chosen from a file, at one wavevector."""
        ranges = self.phi_ranges_degrees
        return read_two_time(
            file,
            q=q,
            phi_ranges=ranges
            and [(math.radians(low), math.radians(high)) for low, high in ranges],
            frames=self.frames,
            keep_times=self.keep_times,
            without=self.without or (),
            dt=self.dt,
            sigma=self.sigma,
        )


@dataclasses.dataclass(frozen=True)
class Search:
    """How the fit searches.

    Attributes:
        method: `"nlsq"`, `"nuts"` or `"both"`.
        starts: How many starts are found from the data and tried, where some
            parameter has none.
        max_evaluations: Passes over the data.
        xtol: Relative change of the parameters at which the fit ends.
        absolute_sigma: Whether `sigma` is known; `None` means that it is if it is
            given, in the settings or the file.
        errors: The noise that errors are for: `"pairs"`, independent from pair to pair
            of frames, or `"speckles"`, whose noise lasts as long as they live.
    """

    method: Literal["nlsq", "nuts", "both"] = "nlsq"
    starts: int = 3
    max_evaluations: int = 300
    xtol: float | None = None
    absolute_sigma: bool | None = None
    errors: Literal["pairs", "speckles"] = "pairs"

    def __post_init__(self):
        if self.errors == "speckles" and self.method == "nuts":
            raise ArgumentError(
                "`errors` must be pairs where `method` is nuts, whose samples are for "
                "independent pairs, but is speckles. Choose the method nlsq or both."
            )
        for name in ("starts", "max_evaluations"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ArgumentError(f"`{name}` must be at least 1, but is {value}.")
        if self.xtol is not None and not self.xtol >= 0:
            raise ArgumentError(f"`xtol` must be at least 0, but is {self.xtol:g}.")


def _check_scale_bounds(settings: "StaticSettings | LaminarSettings") -> None:
    for name in ("contrast_bounds", "offset_bounds"):
        bounds = getattr(settings, name)
        if bounds is not None and not bounds[0] < bounds[1]:
            raise ArgumentError(
                f"`{name}` must be a lower and a higher number, but are "
                f"[{bounds[0]:g}, {bounds[1]:g}]."
            )
    if settings.scaling is not None:
        ends = settings.contrast_bounds, settings.offset_bounds
        given = linear_bounds(*(pair or (None, None) for pair in ends))
        check_bounds(settings.scaling, given)


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How the posterior is sampled, with the method nuts.

    Attributes:
        warmup: Steps that are thrown away, of each chain.
        samples: Samples of each chain.
        chains: How many.
        seed: The same one draws the same samples.
    """

    warmup: int = 500
    samples: int = 1000
    chains: int = 4
    seed: int = 0

    def __post_init__(self):
        check_seed(self.seed)
        for name in ("warmup", "samples", "chains"):
            if getattr(self, name) < 1:
                raise ArgumentError(
                    f"`{name}` must be at least 1, but is {getattr(self, name)}."
                )


@dataclasses.dataclass(frozen=True)
class Saving:
    """Checkpoints of fits that go through the data block by block.

    Attributes:
        every: Blocks between two checkpoints.
        keep: How many stay.
    """

    every: int = 10
    keep: int = 2

    def __post_init__(self):
        for name in ("every", "keep"):
            if getattr(self, name) < 1:
                raise ArgumentError(
                    f"`{name}` must be at least 1, but is {getattr(self, name)}."
                )


@dataclasses.dataclass(frozen=True)
class StaticSettings:
    """A fit without flow."""

    mode: Literal["static_isotropic", "static_anisotropic"]
    data: DataChoice = DataChoice()
    parameters: StaticParameters = dataclasses.field(default_factory=StaticParameters)
    scaling: AbstractScaling | None = None
    contrast_bounds: Range | None = None
    offset_bounds: Range | None = None
    fit: Search = Search()
    sampling: Sampling = Sampling()
    checkpoint: Saving = Saving()

    def __post_init__(self):
        _check_scale_bounds(self)


@dataclasses.dataclass(frozen=True)
class LaminarSettings:
    """A fit with flow."""

    mode: Literal["laminar_flow"]
    convention: Literal["physical", "homodyne"]
    gap: float = 2e6
    data: DataChoice = DataChoice()
    parameters: LaminarParameters = dataclasses.field(default_factory=LaminarParameters)
    scaling: AbstractScaling | None = None
    contrast_bounds: Range | None = None
    offset_bounds: Range | None = None
    fit: Search = Search()
    sampling: Sampling = Sampling()
    checkpoint: Saving = Saving()

    def __post_init__(self):
        if not 0 < self.gap < math.inf:
            raise ArgumentError(f"`gap` must be positive, but is {self.gap:g}.")
        _check_scale_bounds(self)


Settings = StaticSettings | LaminarSettings


def numbers(settings: Settings) -> dict[str, Number]:
    """Returns the parameters of a fit by their names, angles in radians."""
    found: dict[str, Number] = {}
    for field in dataclasses.fields(settings.parameters):
        value = getattr(settings.parameters, field.name)
        found[field.name] = value.number() if isinstance(value, Angle) else value
    return found


def read_settings(path: str) -> Settings:
    """Reads a YAML file of settings.

    Raises:
        PhysaxFileError: If a key is unknown, a value of a wrong type, or a start
            outside its bounds; names the line.
        FileNotFoundError: If there is no such file.
    """
    node = read_yaml(path)
    return construct(node, _kind(node), registry=SCALINGS, units={})


def _kind(node: YamlNode) -> type:
    entries = node.value if isinstance(node.value, dict) else {}
    mode = entries.get("mode")
    if mode is None:
        raise node.error("must have the key `mode`, but does not.")
    if mode.value not in MODES:
        raise mode.error(f"must be one of {', '.join(MODES)}, but is {mode.value!r}.")
    return LaminarSettings if mode.value == LAMINAR else StaticSettings


def refuse_flow_options(settings: Settings, options: argparse.Namespace) -> None:
    """Refuses options of the flow for models without any."""
    for name in ("convention", "gap"):
        given = getattr(options, name) is not None
        if given and not isinstance(settings, LaminarSettings):
            raise ArgumentError(
                f"`--{name}` must go with the mode {LAMINAR}, but the mode is "
                f"{settings.mode}."
            )
