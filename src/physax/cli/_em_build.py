"""Makes a simulation of the settings of `physax em run`."""

import math
from typing import Any

import numpy as np

from .. import em
from .._checks import ArgumentError
from ..grid import AXES
from ..units import SPEED_OF_LIGHT
from ._em_parts import check_wavelengths
from ._em_settings import Faces, Settings


def build(settings: Settings) -> em.Simulation:
    """Makes the simulation, which checks all that can be checked before a run.

    Raises:
        ArgumentError: If the parts do not fit together.
    """
    waves = check_wavelengths(settings.wavelengths)
    frequencies = SPEED_OF_LIGHT / waves
    pulse = em.band_pulse(frequencies.min(), frequencies.max())
    run = settings.run
    ndim = len(settings.size)
    sources = {name: one.make(pulse) for name, one in settings.sources.items()}
    sim = em.scene(
        [
            em.Structure(one.shape, _material(one.material, waves))
            for one in settings.structures
        ],
        settings.size,
        waves,
        centre=settings.centre,
        background=_material(settings.background or em.Material(), waves),
        boundaries=_boundaries(settings.boundaries, ndim),
        sources=sources,
        monitors={
            name: one.make(waves, sources) for name, one in settings.monitors.items()
        },
        polarisation=settings.polarisation,
        spacing=settings.spacing,
        steps=1 if run.time is not None else run.steps,
        averaging=settings.averaging,
    )
    if run.time is None:
        return sim
    return em.with_steps(sim, math.ceil(run.time / float(sim.dt)))


def _material(given: str | em.Material, waves: np.ndarray) -> em.Material | em.PEC:
    if not isinstance(given, str):
        return given
    return em.PEC() if given == "PEC" else em.library(given, wavelengths=waves)


def _boundaries(given: Faces, ndim: int) -> em.Boundaries | None:
    """Returns the faces; `None`, layers that the scene chooses, without any."""
    axes = AXES[:ndim]
    chosen: dict[str, Any] = {axis: getattr(given, axis) for axis in axes}
    for axis in AXES[ndim:]:
        if getattr(given, axis) is not None:
            raise ArgumentError(
                f"`boundaries.{axis}` must be left out: `size` has {ndim} "
                f"{'entry' if ndim == 1 else 'entries'}, so that there is no such axis."
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
