"""Makes a simulation of the settings of `physax em run`."""

import math
from functools import partial
from typing import Any

import numpy as np

from .. import em
from .._checks import ArgumentError
from ..em._monitors import AbstractSpectralMonitor
from ..em._scene import default_layer, largest_index, places
from ..grid import AXES
from ..io import YamlNode
from ..units import SPEED_OF_LIGHT
from ._em_limits import (
    MOST_STEPS,
    check_cells,
    check_place,
    check_pole,
    check_scale,
    check_spacing,
    check_steps,
)
from ._em_lines import at
from ._em_parts import check_wavelengths
from ._em_settings import Faces, Settings


def build(settings: Settings, file: YamlNode) -> em.Simulation:
    """Makes the simulation, which checks all that can be checked before a run.

    Args:
        settings: Those of the file.
        file: Its lines.

    Raises:
        PhysaxFileError: If the parts do not fit together.
        MemoryLimitError: If the scene does not fit into memory.
    """
    waves, size = check_wavelengths(settings.wavelengths), settings.size
    with at(file):
        check_scale(size, waves)
        check_spacing(settings.spacing, size)
    frequencies = SPEED_OF_LIGHT / waves
    pulse = em.band_pulse(frequencies.min(), frequencies.max())
    run = settings.run
    given = settings.background or em.Material()
    background = _material(given, settings, file, "background")
    structures, middle = [], settings.centre
    if middle is None:
        middle = (0.0,) * len(size)
    for k, one in enumerate(settings.structures):
        place = "structures", k, "material"
        material = _material(one.material, settings, file, *place)
        structures.append(em.Structure(one.shape, material))
        with at(file, "structures", k, "shape"):
            check_place(one.shape, size, middle)
    with at(file, "boundaries"):
        faces = _boundaries(settings.boundaries, len(size))
    sources, monitors = {}, {}
    for name, one in settings.sources.items():
        with at(file, "sources", name):
            _check_name(name)
            sources[name] = one.make(pulse)
        with at(file, "sources", name, "pulse"):
            frequency = np.atleast_1d(sources[name].pulse.frequency)
            check_scale(size, SPEED_OF_LIGHT / frequency, "frequency")
    for name, one in settings.monitors.items():
        with at(file, "monitors", name):
            _check_name(name)
            monitors[name] = one.make(waves, sources)
            if isinstance(monitors[name], AbstractSpectralMonitor):
                own = SPEED_OF_LIGHT / np.asarray(monitors[name].frequencies)
                check_scale(size, own, "wavelengths")
    for name in monitors:
        with at(file, "monitors", name):
            _check_picture(name, monitors)
    with at(file):
        materials = [background, *(one.material for one in structures)]
        index = max(map(partial(largest_index, waves), materials, places(structures)))

        def around(spacing: float) -> em.Boundaries:
            if faces is not None:
                return faces
            return em.Boundaries.all(default_layer(size, waves, background, spacing))

        check_cells(
            size,
            waves.min() / index,
            settings.spacing,
            around,
            painted=bool(structures),
        )
        sim = em.scene(
            structures,
            size,
            waves,
            centre=settings.centre,
            background=background,
            boundaries=faces,
            sources=sources,
            monitors=monitors,
            polarisation=settings.polarisation,
            spacing=settings.spacing,
            steps=1 if run.time is not None else _counted(run.steps),
            averaging=settings.averaging,
        )
    steps = run.steps or sim.steps
    if run.time is not None:
        # No number of steps is infinite.
        steps = math.ceil(min(run.time / float(sim.dt), 1e18))
    with at(file, "run"):
        check_steps(steps, float(sim.dt))
    return em.with_steps(sim, steps)


def _counted(steps: int | None) -> int | None:
    # More are refused once the time step is known.
    return steps if steps is None else min(steps, MOST_STEPS)


# Disks allow 255 for the name of a file, which is longer, as is a temporary one.
_LONGEST = 100


def _check_name(name: str) -> None:
    """Refuses names that cannot be those of files, or are taken."""
    fits = name.replace("-", "_").isidentifier() and len(name.encode()) <= _LONGEST
    if not fits or name.casefold() == "simulation":
        raise ArgumentError(
            "Names must be of letters, digits, - and _, at most "
            f"{_LONGEST} bytes, begin with no digit, and not be `simulation`, as files "
            f"are named after them, but one is {name!r:.120}."
        )


def _check_picture(name: str, monitors: dict[str, em.AbstractMonitor]) -> None:
    """Refuses the name of a monitor that the picture of another one has.

    Some disks take names that differ in case only for one.
    """
    if isinstance(monitors[name], em.NearFieldMonitor):
        return
    for other, one in monitors.items():
        drawn = not isinstance(one, em.NearFieldMonitor)
        if drawn and name != other and name.casefold() == other.casefold():
            raise ArgumentError(
                f"Monitor {name!r} must have a name that differs from {other!r} in "
                "more than case, as some disks take their pictures for one. Rename "
                "either."
            )
        for component in one.components if isinstance(one, em.FieldMonitor) else ():
            if name.casefold() == f"{other}_{component}".casefold():
                raise ArgumentError(
                    f"Monitor {name!r} must have another name: the picture of "
                    f"{component} of monitor {other!r} has this one. Rename either."
                )


def _material(
    given: str | em.Material, settings: Settings, file: YamlNode, *path: str | int
) -> em.Material | em.PEC:
    """Looks a material up, or checks one that the file gives at a path."""
    if not isinstance(given, str):
        for axis in range(3 if given.poles_differ() else 1):
            for k, pole in enumerate(given.poles_along(axis)):
                place = (axis, k) if given.poles_differ() else (k,)
                with at(file, *path, "poles", *place):
                    check_pole(settings.size, pole)
        return given
    with at(file, *path):
        waves = np.asarray(settings.wavelengths)
        return em.PEC() if given == "PEC" else em.library(given, wavelengths=waves)


def _boundaries(given: Faces, ndim: int) -> em.Boundaries | None:
    """Returns the faces; `None`, layers that the scene chooses, without any."""
    axes = AXES[:ndim]
    chosen: dict[str, Any] = {axis: getattr(given, axis) for axis in axes}
    for axis in AXES[ndim:]:
        if getattr(given, axis) is not None:
            raise ArgumentError(
                f"`boundaries.{axis}` must be left out: `size` has {ndim} "
                f"{'entry' if ndim == 1 else 'entries'}, so there is no such axis."
            )
    missing = [axis for axis, face in chosen.items() if face is None]
    if len(missing) == ndim:
        return None
    if missing:
        raise ArgumentError(
            f"`boundaries` must be given for all of the axes {', '.join(axes)} or for "
            f"none, but lack {', '.join(missing)}."
        )
    for axis, face in chosen.items():
        if isinstance(face, list) and len(face) != 2:
            raise ArgumentError(
                f"`boundaries.{axis}` must be one face or a list of two, but has "
                f"{len(face)}."
            )
    return em.Boundaries(**chosen)
