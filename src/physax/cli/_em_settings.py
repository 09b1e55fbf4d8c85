"""The schema of the YAML file of `physax em run`."""

import dataclasses
import math
from abc import ABC
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from .. import em
from .._checks import ArgumentError
from ..em._scene import check_size
from ..io import DEGREES, Dimension, YamlNode, construct, read_yaml
from ..units import FEMTO, MICRO, MILLI, NANO, TERA
from ._em_parts import (
    MONITORS,
    SOURCES,
    AbstractMonitor,
    AbstractSource,
    Numbers,
    check_wavelengths,
)
from ._em_shapes import SHAPES


DIMENSIONS = (
    Dimension(
        "a length",
        "metres",
        {"nm": NANO, "um": MICRO, "mm": MILLI},
        (
            *("size", "centre", "spacing", "wavelengths", "valid"),
            *("radius", "radii", "length", "width", "widths", "low", "high"),
            *("vertices", "points", "drawn_at", "Taper.start", "Taper.stop", "unit"),
            *("position", "waist", "distance", "offset"),
        ),
    ),
    Dimension("a time", "seconds", {"fs": FEMTO}, ("time",)),
    Dimension(
        "a frequency", "Hz", {"THz": TERA}, ("frequency", "bandwidth", "damping")
    ),
    Dimension(
        "an angle",
        "radians",
        DEGREES,
        (
            *("phase", "tilt", "azimuth", "GaussianBeam.polarisation"),
            *("sidewall", "Bend.start", "Bend.stop"),
        ),
    ),
)
"""What numbers of the file measure; those of none are pure, or have their SI unit."""


class AbstractFace(ABC):  # noqa: B024
    """A face of the grid, of those in `physax.em`."""


FACES = (em.PEC, em.PMC, em.CPML, em.Absorber, em.Periodic, em.Bloch)
for _face in FACES:
    AbstractFace.register(_face)


@dataclasses.dataclass(frozen=True)
class Structure:
    """A shape filled with a material.

    Attributes:
        shape: Where.
        material: A name of the library, `PEC`, or what the material is.
    """

    shape: em.AbstractShape
    material: str | em.Material

    def __post_init__(self):
        check_material(self.material, "material")


def check_material(material: str | em.Material | None, key: str) -> None:
    """Refuses a name that the library does not know and that is not `PEC`."""
    if isinstance(material, str) and material not in (*em.materials(), "PEC"):
        try:
            em.library(material)
        except ArgumentError as error:
            hint = str(error).partition(". ")[2]
            raise ArgumentError(
                f"`{key}` must be a name of `em.materials()` or a mapping, such as "
                f"{{permittivity: 2.1}}, but is {material!r}. {hint}"
            ) from error


@dataclasses.dataclass(frozen=True)
class Faces:
    """What lies at the faces of the scene, one for both ends of an axis or a pair.

    Attributes:
        x: Along x; an absorbing layer outside of the scene if `None`.
        y: Along y.
        z: Along z.
    """

    x: AbstractFace | list[AbstractFace] | None = None
    y: AbstractFace | list[AbstractFace] | None = None
    z: AbstractFace | list[AbstractFace] | None = None


@dataclasses.dataclass(frozen=True)
class Timing:
    """How long, and how carefully.

    Attributes:
        time: Of the run in seconds; found from the pulse and the scene if `None`.
        steps: The same as a number of steps.
        decay: Ends the run when so little of the largest energy is left.
        checkpoint_every: Steps between two checkpoints.
    """

    time: float | None = None
    steps: int | None = None
    decay: float | None = None
    checkpoint_every: int = 10_000

    def __post_init__(self):
        if self.time is not None and self.steps is not None:
            raise ArgumentError("`time` and `steps` must not both be given.")
        if self.time is not None and not self.time > 0:
            raise ArgumentError(f"`time` must be positive, but is {self.time:g} s.")
        if self.time == math.inf:
            raise ArgumentError(
                "`time` must be finite, but is inf s. Leave it out for one that is "
                "found from the pulse and the scene."
            )
        if self.decay is not None and not 0 < self.decay < 1:
            raise ArgumentError(f"`decay` must lie in (0, 1), but is {self.decay:g}.")
        for name in ("steps", "checkpoint_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ArgumentError(f"`{name}` must be at least 1, but is {value}.")


@dataclasses.dataclass(frozen=True)
class Output:
    """What is written.

    Attributes:
        results: The file in the output folder, `*.npz` or `*.h5`.
        figures: Whether pictures are drawn.
        animation: `"gif"` or `"mp4"`: of each time monitor on an area.
    """

    results: str = "results.npz"
    figures: bool = True
    animation: Literal["gif", "mp4"] | None = None

    def __post_init__(self):
        name = Path(self.results)
        if name.suffix not in (".npz", ".h5") or name.name != self.results:
            raise ArgumentError(
                "`results` must be the name of a file that ends in .npz or .h5, "
                f"without a folder, but is {self.results!r}."
            )
        if self.animation is not None and not self.figures:
            raise ArgumentError(
                "`animation` must be left out without `figures`, but is "
                f"{self.animation!r}. Write `figures: true`."
            )


@dataclasses.dataclass(frozen=True)
class Settings:
    """A run.

    Attributes:
        size: Lengths of the scene in metres, without absorbing layers; one for each
            axis.
        wavelengths: In vacuum, in metres: those of the monitors, and what the pulses
            cover.
        centre: Middle of the scene in metres; the origin if `None`.
        spacing: Width of the cells in metres; a twentieth of the shortest wavelength in
            the densest material if `None`.
        polarisation: In 2-D, `"Ez"` or `"Hz"`.
        background: What lies between the structures; vacuum if `None`.
        averaging: Of cells that an interface cuts, as for `em.rasterise`.
        structures: Later ones lie over earlier ones.
        boundaries: What lies at the faces.
        sources: By name.
        monitors: By name.
        run: How long.
        precision: Of the fields.
        output: What is written.
    """

    size: Numbers
    wavelengths: Numbers
    sources: dict[str, AbstractSource]
    centre: Numbers | None = None
    spacing: float | None = None
    polarisation: Literal["Ez", "Hz"] | None = None
    background: str | em.Material | None = None
    averaging: Literal["volume", "polarised", "staircase"] = "volume"
    structures: list[Structure] = dataclasses.field(default_factory=list)
    boundaries: Faces = Faces()
    monitors: dict[str, AbstractMonitor] = dataclasses.field(default_factory=dict)
    run: Timing = Timing()
    precision: Literal["float32", "float64"] = "float32"
    output: Output = Output()

    def __post_init__(self):
        check_wavelengths(self.wavelengths)
        check_size(self.size, self.wavelengths)
        check_material(self.background, "background")
        if self.spacing is not None and not 0 < self.spacing < math.inf:
            raise ArgumentError(
                f"`spacing` must be positive and finite, but is {self.spacing:g} m."
            )
        if self.centre is not None and not all(map(math.isfinite, self.centre)):
            raise ArgumentError(f"`centre` must be finite, but is {self.centre} m.")


_PULSES = (em.GaussianPulse, em.ContinuousWave, em.Ricker)
_POLES = (em.Lorentz, em.Drude, em.Debye)
REGISTRY: Mapping[str, Callable[..., Any]] = {
    kind.__name__: kind for kind in (*FACES, *SOURCES, *MONITORS, *_PULSES, *_POLES)
} | SHAPES


def read_settings(path: str) -> tuple[Settings, YamlNode]:
    """Reads a YAML file of settings.

    Returns:
        The settings, and the file with its lines.

    Raises:
        PhysaxFileError: If a key is unknown or a value of a wrong type; names the line.
        FileNotFoundError: If there is no such file.
    """
    file = read_yaml(path)
    settings = construct(
        file, Settings, registry=REGISTRY, units={}, dimensions=DIMENSIONS
    )
    return settings, file
