"""What settings of `physax em run` must keep so that a scene can be made of them."""

from collections.abc import Callable, Sequence

import numpy as np

from .. import em
from .._checks import ArgumentError
from ..em import _extent
from ..em._boundaries import layer_cells
from ..em._graded_grid import reaches
from ..em._simulation import MOST_STEPS
from ..units import SPEED_OF_LIGHT


# Wavelengths along the longest axis: files tell units, and are of devices.
_LIGHT = (1e-3, 1e5)
# Poles lie far from the band: between these and what a forgotten THz or fs makes of
# them there are orders of magnitude.
_POLE = (1e-9, 1e8)
# Of `em.scene`, per wavelength in the densest material.
_CELLS = 20


def check_scale(
    size: Sequence[float],
    waves: np.ndarray,
    key: str = "",
    limits: tuple[float, float] = _LIGHT,
) -> None:
    """Refuses a scene that is far longer or far shorter than the waves in it.

    Args:
        size: Lengths of the scene in metres.
        waves: Wavelengths in metres.
        key: What gives them; that of the run, or the size, if empty.
        limits: How many may lie along the longest axis.

    Raises:
        ArgumentError: If numbers are in other units than meant, by all appearances.
    """
    remedy = (
        "Where a key has no unit, numbers are in metres, seconds or Hz: write "
        "`size_um`, `wavelengths_um`, `time_fs` or `frequency_THz`."
    )
    _extent.check_scale(size, waves, key, remedy, limits)


def check_pole(size: Sequence[float], pole: em.AbstractPole) -> None:
    """Refuses a pole whose frequency or time is not of light, by all appearances.

    Args:
        size: Lengths of the scene in metres.
        pole: The pole.

    Raises:
        ArgumentError: If a number lacks its unit.
    """
    key = "time" if isinstance(pole, em.Debye) else "frequency"
    check_scale(size, SPEED_OF_LIGHT / np.atleast_1d(pole.scale()), key, _POLE)


def check_spacing(spacing: float | None, size: Sequence[float]) -> None:
    """Refuses cells that are longer than the scene.

    Args:
        spacing: Width of its cells in metres, if given.
        size: Its lengths in metres.

    Raises:
        ArgumentError: If one does not fit into it.
    """
    if spacing is not None and spacing > 2 * min(size):
        raise ArgumentError(
            "`spacing` must be at most twice the shortest length of the scene, "
            f"{min(size):.3g} m, but is {spacing:.3g} m. Lengths are in metres where a "
            "key has no unit: write `spacing_nm`."
        )


def check_place(
    shape: em.AbstractShape, size: Sequence[float], middle: Sequence[float]
) -> None:
    """Refuses a shape that lies outside of the scene, as one without its unit does.

    Args:
        shape: The shape.
        size: Lengths of the scene in metres.
        middle: Its centre in metres.

    Raises:
        ArgumentError: If no part of it is in the scene.
    """
    low, high = (np.asarray(end, float) for end in shape.bounds())
    if len(size) == len(middle) and not reaches(low, high, size, middle):
        place = ", ".join(f"{a:.3g} to {b:.3g}" for a, b in zip(low, high, strict=True))
        raise ArgumentError(
            "`shape` must have a part in the scene of "
            f"{' x '.join(f'{length:.3g}' for length in size)} m, but lies at {place} "
            "m along x, y and z. Lengths are in metres where a key has no unit, as "
            "`centre_um`."
        )


def check_cells(
    size: Sequence[float],
    wavelength: float,
    spacing: float | None,
    faces: Callable[[float], em.Boundaries],
    *,
    painted: bool,
) -> None:
    """Refuses a scene whose fields do not fit into memory, before anything is made.

    Args:
        size: Lengths of the scene in metres.
        wavelength: The shortest one in the densest material, in metres.
        spacing: Width of its cells in metres; a twentieth of that if `None`.
        faces: Returns the faces for a width of the cells; their layers count, too.
        painted: Whether there are structures.

    Raises:
        MemoryLimitError: If there is less memory than fields and permittivities need.
    """
    key = "size" if spacing is None else "spacing"
    spacing = wavelength / _CELLS if spacing is None else spacing
    shape = [max(1, round(length / spacing)) for length in size]
    for axis in range(len(size)):
        shape[axis] += sum(layer_cells(faces(spacing), axis))
    remedy = "Lengths are in metres where a key has no unit, as `size_um`."
    _extent.check_fields(shape, spacing, key, remedy, painted=painted)


def check_steps(steps: int, dt: float) -> None:
    """Refuses more steps than can be counted.

    Args:
        steps: Of the run.
        dt: Time step in seconds.

    Raises:
        ArgumentError: Above 1073741823.
    """
    if steps > MOST_STEPS:
        raise ArgumentError(
            f"`time` and `steps` must make at most {MOST_STEPS} steps of {dt:.3g} s, "
            f"but make {steps}. Without a unit `time` is in seconds: write `time_fs`."
        )
