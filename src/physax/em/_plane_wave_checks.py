"""What a plane wave asks of its run: one medium, walls that let it pass, an angle."""

from collections.abc import Iterable, Mapping
from math import isinf
from typing import Any

import jax
import jax.core
import numpy as np
from jaxtyping import Array

from .._checks import ArgumentError
from ..units import SPEED_OF_LIGHT
from ._boundaries import PEC, PMC
from ._boxes import cells_of
from ._components import AXES
from ._medium import Medium, at_component
from ._plane_wave import PlaneWave, WavePlace
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
            _check_background(name, wave, place, medium)
            _check_walls(name, wave, setup)
            _check_angle(name, wave, setup)


def _known(*values: Array) -> bool:
    """Whether values can be read here: not traced, not on other hosts."""
    return not any(
        isinstance(value, jax.core.Tracer) or not value.is_fully_addressable
        for value in values
    )


# Of the permittivity or permeability. A face so far off sends back a quarter of that
# share of the amplitude.
_SLACK = 1e-3


def _check_background(
    name: str, wave: PlaneWave, place: WavePlace, medium: Medium
) -> None:
    """Refuses faces on cells that are not of the medium in which the wave is made."""
    own = wave.component
    across = next(a for a in AXES if a not in wave.direction + own)
    # Samples of the component lie on the faces along it, and beside those across it.
    boxes = [
        term.box
        for term in place.corrections[0]
        if term.target == own or AXES[term.axis] == own[1]
    ]
    for prop, component, wanted, more in (
        (
            "permittivity",
            own,
            wave.permittivity,
            " If the medium is the same all around, give it as the `permittivity` of "
            "the wave; `exit=False` leaves out the far face.",
        ),
        ("permeability", "H" + across, 1.0, ""),
        ("conductivity", own, 0.0, ""),
        ("magnetic_conductivity", "H" + across, 0.0, ""),
    ):
        value = at_component(getattr(medium, prop), component)
        if value is None or not _known(value, *jax.tree.leaves(wave.permittivity)):
            continue
        value, wanted = np.asarray(value), float(wanted)
        for box in boxes:
            here = value[cells_of(box)] if value.ndim else value
            bad = np.argwhere(np.abs(here - wanted) > _SLACK * wanted)
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
    if not square or not _known(frequency, wave.permittivity):
        return
    index = float(wave.permittivity) ** 0.5
    limit = 2 * np.pi * float(np.max(np.asarray(frequency))) * index / SPEED_OF_LIGHT
    if square**0.5 >= limit:
        raise ArgumentError(
            f"`wavevector` of the `Bloch` faces across the plane wave {name!r} must "
            f"be less than {limit:.6g} rad/m, the wavenumber at the frequency of its "
            f"pulse, but is {square**0.5:.6g}: no such wave propagates. For an angle, "
            "give the wavenumber times its sine."
        )
