"""What the lengths of a scene must be for the waves in it, and for the memory."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from .._checks import ArgumentError
from ..runtime import check_memory


# Wavelengths along the longest axis. Beyond them a number was meant in another unit.
_SHORTEST, _LONGEST = 1e-5, 1e6
# Components of the fields in 1-D, 2-D and 3-D.
_COMPONENTS = (2, 3, 6)
# With structures: fields and permittivities, or, where these are more, the five arrays
# that painting a single shape was measured to take at once.
_PAINTED = (5, 5, 9)


def check_scale(
    size: Sequence[float],
    waves: np.ndarray,
    key: str = "",
    remedy: str = (
        "Are all lengths in metres, such as `1.5e-6`? `Simulation` has no such limit."
    ),
    limits: tuple[float, float] = (_SHORTEST, _LONGEST),
) -> None:
    """Refuses a scene that is far longer or far shorter than the waves in it.

    Args:
        size: Lengths of the scene in metres.
        waves: Wavelengths in metres.
        key: What gives them; the wavelengths, or the size, if empty.
        remedy: What to do, for the message.
        limits: Wavelengths along the longest axis, the fewest and the most.

    Raises:
        ArgumentError: If numbers are in other units than meant, by all appearances.
    """
    length, low, high = max(size), float(np.min(waves)), float(np.max(waves))
    fewest, most = limits
    for wave, good, suspect in (
        (high, length >= fewest * high, "wavelengths"),
        (low, length <= most * low, "size"),
    ):
        if not good:
            raise ArgumentError(
                f"`{key or suspect}` must make the scene {fewest:g} to "
                f"{most:g} wavelengths long, but it is {length / wave:.3g}: "
                f"{length:.3g} m at a wavelength of {wave:.3g} m. {remedy}"
            )


def check_fields(
    shape: Sequence[int],
    spacing: float,
    key: str = "spacing",
    remedy: str = "Lengths are in metres.",
    *,
    painted: bool = False,
) -> None:
    """Refuses a grid whose fields do not fit into memory, before anything is made.

    Args:
        shape: How many cells it has along each axis.
        spacing: Their width in metres, for the message.
        key: What makes so many.
        remedy: What to do, for the message.
        painted: Whether structures are painted onto it.

    Raises:
        MemoryLimitError: If there is less memory than the fields alone need, or, with
            structures, than fields and permittivities do.
    """
    arrays = (_PAINTED if painted else _COMPONENTS)[len(shape) - 1]
    bytes_each = arrays * jnp.result_type(float).itemsize
    what = (
        f"`{key}` makes {' x '.join(map(str, shape))} cells of {spacing:.3g} m. "
        f"{remedy} The scene"
    )
    check_memory(math.prod(map(int, shape)) * bytes_each, what)
