"""Finds parts of a device that are attached to nothing, and enclosed holes."""

import equinox as eqx
import numpy as np
import scipy.ndimage
from jaxtyping import ArrayLike

from .._checks import ArgumentError, refuse_traced


class Connectivity(eqx.Module):
    """The parts and voids of a device that are not connected.

    Attributes:
        islands: How many solid parts touch no anchor.
        holes: How many voids touch no outlet.
        floating: Where those parts are.
        enclosed: Where those voids are.
    """

    islands: int
    holes: int
    floating: np.ndarray
    enclosed: np.ndarray


def connectivity(
    binary: ArrayLike,
    *,
    anchors: ArrayLike | None = None,
    outlets: ArrayLike | None = None,
) -> Connectivity:
    """Counts islands and holes of a binary device, on the host.

    Cells are connected through their faces, not through edges or corners.

    Args:
        binary: Where the device is solid, in two or three dimensions.
        anchors: Cells to which solid is attached; by default all at the border.
        outlets: Cells through which a void opens; by default all at the border.

    Returns:
        What was found.

    Raises:
        ArgumentError: If an array is not of booleans, or a mask of another shape.
    """
    refuse_traced(binary, "binary", "Call it outside: it counts on the host.")
    device = np.asarray(binary)
    if device.dtype != bool:
        raise ArgumentError(
            f"`binary` must be an array of booleans, but is of {device.dtype}. Compare "
            "a density with 0.5 first."
        )
    held = as_mask(anchors, "anchors", device.shape)
    open_ = as_mask(outlets, "outlets", device.shape)
    islands, floating = _detached(device, held)
    holes, enclosed = _detached(~device, open_)
    return Connectivity(islands, holes, floating, enclosed)


def _detached(part: np.ndarray, held: np.ndarray) -> tuple[int, np.ndarray]:
    labels = np.empty(part.shape, np.int32)
    scipy.ndimage.label(part, output=labels)
    loose = np.setdiff1d(labels[labels > 0], labels[held])
    return loose.size, np.isin(labels, loose)


def as_mask(mask, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Returns a mask, by default that of all cells at the border.

    Args:
        mask: The mask or None.
        name: What to call it in errors.
        shape: The shape it must have.

    Returns:
        The mask.

    Raises:
        ArgumentError: If it has another shape, is not of booleans, or has no cell.
    """
    if mask is None:
        border = np.ones(shape, bool)
        border[tuple(slice(1, -1) for _ in shape)] = False
        return border
    given = np.asarray(mask)
    if given.dtype != bool or given.shape != shape:
        raise ArgumentError(
            f"`{name}` must be booleans of shape {shape}, but is "
            f"{given.dtype}{list(given.shape)}."
        )
    if not given.any():
        raise ArgumentError(f"`{name}` must have at least one cell, but has none.")
    return given
