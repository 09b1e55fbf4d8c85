"""What a plane wave asks of its run: one medium, walls that let it pass, an angle."""

from collections.abc import Iterable, Mapping
from math import isinf
from typing import Any

import jax
import jax.core
import numpy as np
from jaxtyping import Array

from .._checks import ArgumentError, at_once
from ..units import SPEED_OF_LIGHT
from ._boundaries import PEC, PMC
from ._boxes import cells_of
from ._clock import stepped
from ._components import AXES
from ._incident_line import WavePlace
from ._medium import Medium, at_component
from ._plane_wave import SLACK, PlaneWave
from ._setup import Setup
from ._sources import AbstractSource
from ._tilted_wave import across


def check_plane_waves(
    sources: Mapping[str, AbstractSource],
    places: Iterable[tuple[str, Any]],
    setup: Setup,
    medium: Medium,
) -> None:
    """Refuses plane waves that do not fit the medium, the walls or the Bloch vector.

    Args:
        sources: By name.
        places: Names of sources and monitors, and where they are.
        setup: The run; metrics and phases are not asked for.
        medium: Its medium with the design regions painted in.

    Raises:
        ArgumentError: If, when concrete, a face lies in another medium than that of the
            wave, a wall shorts the wave, or the wave would be evanescent.
    """
    for name, place in places:
        wave = sources.get(name)
        if isinstance(wave, PlaneWave):
            _check_background(name, wave, place, medium, setup)
            _check_poles(name, wave, place, medium, setup)
            _check_walls(name, wave, setup)
            _check_angle(name, wave, setup)


def _known(*values: Array) -> bool:
    """Whether values can be read here: not traced, not on other hosts."""
    return not any(
        isinstance(value, jax.core.Tracer) or not value.is_fully_addressable
        for value in values
    )


def _check_background(
    name: str, wave: PlaneWave, place: WavePlace, medium: Medium, setup: Setup
) -> None:
    """Refuses faces on cells that are not of the medium in which the wave is made."""
    same = (
        " If the medium is the same all around, give it as the `permittivity` (and "
        "`poles`) of the wave; `exit=False` leaves out the far face."
    )
    checks = []
    for own in wave.carried(setup):
        if own[0] == "E":
            checks.append(("permittivity", own, wave.permittivity, same))
            checks.append(("conductivity", own, 0.0, ""))
        else:
            checks.append(("permeability", own, 1.0, ""))
            checks.append(("magnetic_conductivity", own, 0.0, ""))
    for prop, component, wanted, more in checks:
        value = at_component(getattr(medium, prop), component)
        if value is None or not _known(value, *jax.tree.leaves(wave.permittivity)):
            continue
        value, wanted = np.asarray(value), float(wanted)
        own = component if component[0] == "E" else wave.component
        for box in wave.boxes_of(place, own):
            here = value[cells_of(box)] if value.ndim else value
            bad = np.argwhere(np.abs(here - wanted) > SLACK * wanted)
            if not len(bad):
                continue
            at = tuple(map(int, bad[0]))
            cell = tuple(k + low for k, (low, _) in zip(at, box, strict=False))
            raise ArgumentError(
                f"`{prop}` of the medium at the faces of the plane wave {name!r} must "
                f"be {wanted:.6g}, as for the wave, but is {float(here[at]):.6g}"
                + (f" in cell {cell}" if cell else "")
                + ": light would leak there. Move the faces, or what they meet."
                + more
            )


def _check_poles(
    name: str, wave: PlaneWave, place: WavePlace, medium: Medium, setup: Setup
) -> None:
    """Refuses faces among other poles than those of the wave, and waves in metals."""
    frequency = wave.pulse.frequency
    if not _known(*jax.tree.leaves((wave, medium.dispersions, setup.dt))):
        return
    with at_once((frequency, setup.dt)):
        value = complex(wave.background(stepped(frequency, setup.dt)))
        apart = float(wave.foreign_poles(place, medium, setup))
    if value.real <= 0:
        raise ArgumentError(
            f"`poles` of the plane wave {name!r} must leave a permittivity above 0 at "
            "the frequency of its pulse, as the time steps see it, but it is "
            f"{value:.6g}: no such wave propagates."
        )
    if apart > SLACK:
        raise ArgumentError(
            f"`poles` of the plane wave {name!r} must be those of the medium at its "
            f"faces, but the permittivities differ by {apart:.2g} of that of the wave "
            "there: light would leak. Give it the poles of the medium all around, "
            "those of a `Material` as its `poles`, or move the faces, or what they "
            "meet."
        )


def _check_walls(name: str, wave: PlaneWave, setup: Setup) -> None:
    """Refuses walls across which the wave is infinite and that hold it at zero."""
    for axis, length in enumerate(wave.size):
        if not isinf(length) or axis == wave.axis:
            continue
        # Between electric walls E is normal to them, between magnetic ones H.
        normal = wave.component[1] == AXES[axis]
        wall, letter, other = (PMC, "H", "PEC") if normal else (PEC, "E", "PMC")
        if any(isinstance(face, wall) for face in setup.boundaries.axis(axis)):
            raise ArgumentError(
                f"`boundaries` along {AXES[axis]} must not short the plane wave "
                f"{name!r}, which is infinite there, but have a `{wall.__name__}` face "
                f"along its {letter}. Take `Periodic()` or `{other}()`, or give the "
                "wave a finite `size`."
            )


def _check_angle(name: str, wave: PlaneWave, setup: Setup) -> None:
    """Refuses known Bloch vectors with which the wave does not travel.

    Of traced ones the run makes NaN: `travels`.
    """
    square = 0.0
    for axis, wavevector in enumerate(across(setup, wave.axis)):
        if wavevector is None:
            continue
        if not setup.grid.is_uniform(axis):
            raise ArgumentError(
                f"`grid` must have cells of one width along {AXES[axis]}, where the "
                f"`Bloch` faces tilt the plane wave {name!r}, but is graded."
            )
        if not _known(wavevector):
            return
        square += float(wavevector) ** 2
    frequency = wave.pulse.frequency
    if not square or not _known(*jax.tree.leaves(wave)):
        return
    with at_once(frequency):
        index = float(np.real(wave.background(frequency))) ** 0.5
    limit = 2 * np.pi * float(np.max(np.asarray(frequency))) * index / SPEED_OF_LIGHT
    if square**0.5 >= limit:
        raise ArgumentError(
            f"`wavevector` of the `Bloch` faces across the plane wave {name!r} must "
            f"be less than {limit:.6g} rad/m, the wavenumber at the frequency of its "
            f"pulse, but is {square**0.5:.6g}: no such wave propagates. For an angle, "
            "give the wavenumber times its sine."
        )
