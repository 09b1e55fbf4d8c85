"""Where a file's contents are moved to."""

from typing import Any

import numpy as np
from jaxtyping import Float

from .._checks import ArgumentError


_NUMBERS = {2: "two", 3: "three"}


def as_centre(centre: Any, entries: int) -> Float[np.ndarray, " entries"]:
    """Returns a point, refusing what is not so many finite numbers."""
    wanted = f"`centre` must be {_NUMBERS[entries]} finite numbers, but is {centre!r}."
    try:
        point = np.asarray(centre, float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(wanted) from error
    if point.shape != (entries,) or not np.isfinite(point).all():
        raise ArgumentError(wanted)
    return point
