"""Sources and monitors as the YAML file of `physax em` names them.

Their keys are the attributes of the classes of `physax.em`. Pulses and frequencies that
are left out are those of the wavelengths of the run.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from .. import em
from .._checks import ArgumentError
from ..em import AbstractPulse
from ..units import SPEED_OF_LIGHT


Numbers = list[float]


def _given(settings: Any) -> dict[str, Any]:
    """Returns the attributes by name."""
    return {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}


class AbstractSource:
    """A source; its attributes are those of the class in `physax.em` of its name."""

    makes: ClassVar[type[em.AbstractSource]]

    def make(self, pulse: AbstractPulse) -> em.AbstractSource:
        """Makes the source, with a pulse for where none is given."""
        given = _given(self)
        given["pulse"] = given["pulse"] or pulse
        return self.makes(**given)


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
        known = f"one of {dipoles}" if dipoles else "which has none"
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


# What a file gives in another form than the library takes, or may leave out.
_OPTIONAL = {
    "pulse": ("pulse", AbstractPulse | None),
    "frequencies": ("wavelengths", Numbers | None),
}


def _settings_of(kind: type, base: type) -> type:
    """Makes the class of settings that names a class of the library."""
    required, optional = [], []
    for field in dataclasses.fields(kind):
        hint = str if field.name == "dipole" else field.type
        if field.name in _OPTIONAL:
            optional.append((*_OPTIONAL[field.name], None))
        elif field.default is dataclasses.MISSING:
            required.append((field.name, hint))
        else:
            optional.append((field.name, hint, field.default))
    return dataclasses.make_dataclass(
        kind.__name__,
        required + optional,
        bases=(base,),
        namespace={"makes": kind},
        frozen=True,
    )


SOURCES = tuple(
    _settings_of(kind, AbstractSource)
    for kind in (em.Dipole, em.PlaneWave, em.ModeSource, em.GaussianBeam)
)
MONITORS = tuple(
    _settings_of(kind, AbstractMonitor)
    for kind in (
        em.FieldMonitor,
        em.FluxMonitor,
        em.ModeMonitor,
        em.NearFieldMonitor,
        em.ForceMonitor,
        em.EmissionMonitor,
        em.TimeMonitor,
        em.EnergyMonitor,
    )
)
