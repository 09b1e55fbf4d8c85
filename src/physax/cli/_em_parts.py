"""Sources and monitors as the YAML file of `physax em` names them.

Pulses and frequencies that are left out are those of the wavelengths of the run.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from .. import em
from .._checks import ArgumentError
from ..em import AbstractPulse, Port
from ..units import SPEED_OF_LIGHT


Numbers = list[float]


def _given(settings: Any) -> dict[str, Any]:
    """Returns the attributes by name, lists as tuples."""
    found = {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}
    return {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}


class AbstractSource:
    """A source; its attributes are those of the class in `physax.em` of its name."""

    makes: ClassVar[type[em.AbstractSource]]

    def make(self, pulse: AbstractPulse) -> em.AbstractSource:
        """Makes the source, with a pulse for where none is given."""
        given = _given(self)
        given["pulse"] = given["pulse"] or pulse
        return self.makes(**given)


@dataclasses.dataclass(frozen=True)
class Dipole(AbstractSource):
    """A point current."""

    component: str
    position: Numbers
    moment: float = 1.0
    pulse: AbstractPulse | None = None
    makes: ClassVar = em.Dipole


@dataclasses.dataclass(frozen=True)
class PlaneWave(AbstractSource):
    """A plane wave in a box."""

    direction: str
    component: str
    centre: Numbers
    size: Numbers
    amplitude: float = 1.0
    permittivity: float = 1.0
    exit: bool = True
    pulse: AbstractPulse | None = None
    makes: ClassVar = em.PlaneWave


@dataclasses.dataclass(frozen=True)
class ModeSource(AbstractSource):
    """A guided mode."""

    port: Port
    power: float = 1.0
    pulse: AbstractPulse | None = None
    makes: ClassVar = em.ModeSource


@dataclasses.dataclass(frozen=True)
class GaussianBeam(AbstractSource):
    """A beam, in 2-D and 3-D."""

    port: Port
    waist: float
    distance: float = 0.0
    tilt: float = 0.0
    power: float = 1.0
    azimuth: float = 0.0
    polarisation: float = 0.0
    pulse: AbstractPulse | None = None
    makes: ClassVar = em.GaussianBeam


class AbstractMonitor:
    """A monitor; its attributes are those of the class in `physax.em` of its name."""

    makes: ClassVar[type[em.AbstractMonitor]]

    def make(
        self, wavelengths: np.ndarray, sources: Mapping[str, em.AbstractSource]
    ) -> em.AbstractMonitor:
        """Makes the monitor.

        Args:
            wavelengths: In metres, for where none are given.
            sources: By name, as a monitor may name one.

        Raises:
            ArgumentError: If there is no such source.
        """
        given = _given(self)
        if "dipole" in given:
            given["dipole"] = _dipole(given["dipole"], sources)
        if "wavelengths" in given:
            own = given.pop("wavelengths")
            waves = wavelengths if own is None else check_wavelengths(own)
            given["frequencies"] = SPEED_OF_LIGHT / waves
        return self.makes(**given)


def _dipole(name: str, sources: Mapping[str, em.AbstractSource]) -> em.Dipole:
    """Returns the dipole of a name."""
    found = sources.get(name)
    if not isinstance(found, em.Dipole):
        dipoles = [key for key, one in sources.items() if isinstance(one, em.Dipole)]
        known = f"one of {dipoles}" if dipoles else "of which there is none"
        raise ArgumentError(
            "`dipole` of an `EmissionMonitor` must be the name of a `Dipole` in "
            f"`sources`, {known}, but is {name!r}."
        )
    return found


def check_wavelengths(values: Sequence[float]) -> np.ndarray:
    """Returns wavelengths as an array, which must be positive and at least one."""
    waves = np.asarray(values, float)
    if not waves.size or not np.all((waves > 0) & np.isfinite(waves)):
        raise ArgumentError(
            "`wavelengths` must be at least one positive number, but is "
            f"{list(values)}."
        )
    return waves


@dataclasses.dataclass(frozen=True)
class FieldMonitor(AbstractMonitor):
    """Spectra of fields in a region."""

    components: list[str]
    centre: Numbers
    size: Numbers
    wavelengths: Numbers | None = None
    makes: ClassVar = em.FieldMonitor


@dataclasses.dataclass(frozen=True)
class FluxMonitor(AbstractMonitor):
    """Power through a plane."""

    axis: str
    centre: Numbers
    size: Numbers
    wavelengths: Numbers | None = None
    makes: ClassVar = em.FluxMonitor


@dataclasses.dataclass(frozen=True)
class ModeMonitor(AbstractMonitor):
    """Amplitudes of a mode, both ways."""

    port: Port
    wavelengths: Numbers | None = None
    makes: ClassVar = em.ModeMonitor


@dataclasses.dataclass(frozen=True)
class NearFieldMonitor(AbstractMonitor):
    """Fields on the faces of a box, and the power out of it."""

    centre: Numbers
    size: Numbers
    faces: list[str] | None = None
    wavelengths: Numbers | None = None
    makes: ClassVar = em.NearFieldMonitor


@dataclasses.dataclass(frozen=True)
class ForceMonitor(AbstractMonitor):
    """Force of light on what a closed box encloses."""

    centre: Numbers
    size: Numbers
    wavelengths: Numbers | None = None
    makes: ClassVar = em.ForceMonitor


@dataclasses.dataclass(frozen=True)
class EmissionMonitor(AbstractMonitor):
    """What a dipole, the source of that name, emits."""

    dipole: str
    wavelengths: Numbers | None = None
    makes: ClassVar = em.EmissionMonitor


@dataclasses.dataclass(frozen=True)
class TimeMonitor(AbstractMonitor):
    """Fields in a region over time."""

    components: list[str]
    centre: Numbers
    size: Numbers
    every: int = 1
    makes: ClassVar = em.TimeMonitor


@dataclasses.dataclass(frozen=True)
class EnergyMonitor(AbstractMonitor):
    """Energy in the grid over time."""

    every: int = 1
    makes: ClassVar = em.EnergyMonitor


SOURCES = (Dipole, PlaneWave, ModeSource, GaussianBeam)
MONITORS = (
    FieldMonitor,
    FluxMonitor,
    ModeMonitor,
    NearFieldMonitor,
    ForceMonitor,
    EmissionMonitor,
    TimeMonitor,
    EnergyMonitor,
)
