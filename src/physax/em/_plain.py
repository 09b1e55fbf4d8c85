"""Where a medium is plain: linear, its principal axes along the grid, no metal."""

from collections.abc import Iterable

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError
from ..grid import Box
from ._boxes import cells_of, common, meet
from ._medium import Medium


def violations(medium: Medium, boxes: Iterable[Box]) -> dict[str, list[Array]]:
    """Returns the values that must be zero for a medium to be plain in some cells.

    Args:
        medium: The medium.
        boxes: The cells.

    Returns:
        Values in the cells, by what they belong to.
    """
    found: dict[str, list[Array]] = {}

    def add(what, own: Box, box: Box, value):
        for entry in jax.tree.leaves(value):
            if entry.ndim:
                entry = entry[cells_of(common(box, own), own)]
            found.setdefault(what, []).append(entry)

    for box in boxes:
        if medium.metal is not None:
            parts = medium.metal.cut(box).open.values()
            found.setdefault("perfect metal", []).extend(1 - part for part in parts)
        for one in medium.off_diagonals:
            add("off-diagonal entries", one.box, box, one.inverse)
        for one in medium.nonlinearities:
            if meet(one.box, box):
                all_of = [getattr(one, prop) for prop in one.given()]
                add("a nonlinear susceptibility", one.box, box, all_of)
    return found


def plain(medium: Medium, boxes: Iterable[Box]) -> Float[Array, ""]:
    """Returns 1 where a medium is plain in all of some boxes, else NaN."""
    values = jax.tree.leaves(violations(medium, boxes))
    sound = [jnp.all(value == 0) for value in values]
    return jnp.where(jnp.all(jnp.stack(sound)), 1, jnp.nan) if sound else jnp.ones(())


def check_plain(medium: Medium, boxes: Iterable[Box], what: str, remedy: str) -> None:
    """Refuses boxes in which a medium is known not to be plain.

    Args:
        medium: The medium.
        boxes: The cells.
        what: What lies there, for the message.
        remedy: What to do.

    Raises:
        ArgumentError: Tells what the medium has there.
    """
    for found, values in violations(medium, boxes).items():
        for value in values:
            if isinstance(value, jax.core.Tracer):
                continue
            if np.any(np.asarray(value) != 0):
                raise ArgumentError(
                    f"{what} must lie in a linear medium whose principal axes are "
                    f"along the grid, but meet {found}. {remedy}"
                )
