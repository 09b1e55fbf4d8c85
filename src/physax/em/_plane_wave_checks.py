"""What a plane wave asks of its run: one medium, walls that let it pass, an angle."""

from collections.abc import Iterable, Mapping
from math import isinf
from typing import Any

import jax
import jax.core
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, at_once, warn
from ..units import SPEED_OF_LIGHT
from ._apodised import Apodised
from ._boundaries import PEC, PMC, Boundaries
from ._boxes import cells_of
from ._clock import stepped
from ._components import AXES
from ._incident_line import WavePlace
from ._medium import Medium, at_component
from ._monitors import AbstractMonitor, AbstractSpectralMonitor
from ._plane_wave import SLACK, PlaneWave
from ._pulses import AbstractPulse, GaussianPulse, Ricker
from ._setup import Setup
from ._sources import AbstractSource
from ._tilted_wave import across


def check_plane_waves(
    sources: Mapping[str, AbstractSource],
    monitors: Mapping[str, AbstractMonitor],
    places: Iterable[tuple[str, Any]],
    setup: Setup,
    medium: Medium,
) -> None:
    """Refuses plane waves that do not fit the medium, the walls or the Bloch vector.

    Warns of monitors with frequencies at which the wave does not travel.

    Args:
        sources: By name.
        monitors: By name.
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
            _review_cutoff(name, wave, monitors, setup)


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
    ndim = setup.grid.ndim
    for axis, wavevector in enumerate(across(setup.boundaries, ndim, wave.axis)):
        if wavevector is not None and not setup.grid.is_uniform(axis):
            raise ArgumentError(
                f"`grid` must have cells of one width along {AXES[axis]}, where the "
                f"`Bloch` faces tilt the plane wave {name!r}, but is graded. Give "
                "`Grid.graded` equally spaced NumPy edges in float64 there, or `Grid` "
                "one width."
            )
    tilt = _tilt(wave, setup.boundaries, ndim)
    if not tilt:
        return
    frequency = np.atleast_1d(np.asarray(wave.pulse.frequency))
    wavenumber = 2 * np.pi * frequency * _index(wave, frequency) / SPEED_OF_LIGHT
    limit = float(np.max(wavenumber))
    if tilt >= limit:
        raise ArgumentError(
            f"`wavevector` of the `Bloch` faces across the plane wave {name!r} must "
            f"be less than {limit:.6g} rad/m, the wavenumber at the frequency of its "
            f"pulse, but is {tilt:.6g}: no such wave propagates. For an angle, "
            "give the wavenumber times its sine."
        )


def _tilt(wave: PlaneWave, boundaries: Boundaries, ndim: int) -> float:
    """Returns the wavevector across a wave in rad/m; 0 if it or the wave is traced."""
    both = [k for k in across(boundaries, ndim, wave.axis) if k is not None]
    if not _known(*both, *jax.tree.leaves(wave)):
        return 0.0
    return float(np.linalg.norm([float(k) for k in both]))


def _index(
    wave: PlaneWave, frequencies: Float[np.ndarray, " freqs"]
) -> Float[np.ndarray, " freqs"]:
    """Returns the refractive index of the background at frequencies in Hz."""
    with at_once(frequencies):
        epsilon = np.real(np.asarray(wave.background(frequencies)))
    return np.sqrt(np.maximum(epsilon, 0.0))


def _review_cutoff(
    name: str, wave: PlaneWave, monitors: Mapping[str, AbstractMonitor], setup: Setup
) -> None:
    """Warns of monitors with frequencies at which a tilted wave is evanescent."""
    tilt = _tilt(wave, setup.boundaries, setup.grid.ndim)
    if not tilt:
        return
    for key, monitor in monitors.items():
        monitor = monitor.monitor if isinstance(monitor, Apodised) else monitor
        if not isinstance(monitor, AbstractSpectralMonitor):
            continue
        if not _known(monitor.frequencies):
            continue
        frequencies = np.asarray(monitor.frequencies)
        wavenumber = 2 * np.pi * frequencies * _index(wave, frequencies)
        dark = frequencies[wavenumber <= SPEED_OF_LIGHT * tilt]
        if dark.size:
            warn(
                f"`frequencies` of monitor {key!r} should lie where the plane wave "
                f"{name!r} travels, above c k / (2 pi n) with its n there and the k of "
                f"the `Bloch` faces across it, {tilt:.4g} rad/m, but {dark.size} of "
                f"{frequencies.size} do not, from {dark.min():.4g} to "
                f"{dark.max():.4g} Hz: there R and T are rounding errors. Leave them "
                "out. For one angle at several frequencies make a run for each, by "
                "`vmap`, with a narrower pulse."
            )


# Of the peak of a spectrum. What is there of it at a cutoff has not left by the end.
_SLOW = 1e-3


def slow_waves(
    sources: Mapping[str, AbstractSource], boundaries: Boundaries, ndim: int
) -> list[str]:
    """Tells of tilted plane waves with cutoffs in the bands of their pulses.

    Args:
        sources: By name; traced ones are not looked at.
        boundaries: The faces of the grid.
        ndim: Its dimension.
    """
    told = []
    for name, wave in sources.items():
        if not isinstance(wave, PlaneWave):
            continue
        tilt = _tilt(wave, boundaries, ndim)
        if not tilt:
            continue
        frequency = np.atleast_1d(np.asarray(wave.pulse.frequency))
        index = _index(wave, frequency)[0]
        cutoff = float(SPEED_OF_LIGHT * tilt / (2 * np.pi * index))
        share = _share_at(cutoff, wave.pulse)
        if share > _SLOW:
            told.append(
                f"Waves near the cutoff of the tilted plane wave {name!r}, "
                f"{cutoff:.4g} Hz, hardly leave the grid, and the spectrum of its "
                f"pulse has {share:.2g} of its peak there: a narrower pulse decays "
                "sooner."
            )
    return told


def _share_at(frequency: float, pulse: AbstractPulse) -> float:
    """Returns the spectrum of a pulse over its peak, as far as it has a formula."""
    if isinstance(pulse, Ricker):
        square = (frequency / float(pulse.frequency)) ** 2
        return square * float(np.exp(1 - square))
    if isinstance(pulse, GaussianPulse):
        away = (float(pulse.frequency) - frequency) / float(pulse.bandwidth)
        return float(np.exp(-(away**2) / 2))
    return 0.0
