"""Pairs of frames, each once: the triangle above the diagonal in square tiles."""

from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree


# Tiles of this size waste little on the diagonal, and their rows fill vector registers.
_TILE = 32


class Tiles:
    """Square tiles that cover the triangle above the diagonal.

    Within a tile a pair of frames is a row and a column, so that what a model needs of
    single frames is computed for the frames of the tile and not for each pair.

    Attributes:
        frames: Number of frames.
        size: Frames along a side of a tile.
        starts: First frame of the rows and of the columns of each tile.
    """

    def __init__(self, frames: int):
        blocks = -(-frames // _TILE)
        self.frames = frames
        self.size = -(-frames // blocks)
        rows, columns = np.triu_indices(-(-frames // self.size))
        self.starts = np.stack([rows, columns], axis=1) * self.size

    def cut(self, values: Array | np.ndarray) -> Array:
        """Cuts maps into tiles.

        Args:
            values: Arrays of shape (..., frames, frames).

        Returns:
            The tiles, shape (tiles, ..., size, size); zeros beyond the last frame.
        """
        # Known maps are cut on the host: these are copies, and nothing to compile.
        module: Any = jnp if isinstance(values, jax.core.Tracer) else np
        blocks = -(-self.frames // self.size)
        pad = blocks * self.size - self.frames
        lead = values.ndim - 2
        padded = module.pad(values, [(0, 0)] * lead + [(0, pad)] * 2)
        shape = (*values.shape[:-2], blocks, self.size, blocks, self.size)
        split = module.moveaxis(padded.reshape(shape), (-4, -2), (0, 1))
        rows, columns = (self.starts // self.size).T
        return jnp.asarray(split[rows, columns])


def frames_of(
    starts: Int[Array, "tiles 2"], size: int
) -> tuple[Int[Array, "tiles size"], Int[Array, "tiles size"]]:
    """Returns the frames of the rows and of the columns of tiles."""
    frames = starts[:, :, None] + jnp.arange(size)
    return frames[:, 0], frames[:, 1]


def is_pair(
    starts: Int[Array, "tiles 2"], size: int, frames: int
) -> Bool[Array, "tiles size size"]:
    """Returns which places of tiles are pairs, the earlier frame first."""
    first, second = frames_of(starts, size)
    return (second[:, None, :] > first[:, :, None]) & (second < frames)[:, None, :]


def at_pairs(
    prepared: PyTree, starts: Int[Array, "tiles 2"], size: int
) -> tuple[PyTree, PyTree]:
    """Returns values of frames along the rows and along the columns of tiles.

    Args:
        prepared: Arrays whose first axis is the frames.
        starts: Of the tiles.
        size: Of the tiles.

    Returns:
        Two trees, of shapes (tiles, 1, size, 1) and (tiles, 1, 1, size): the axis in
        between is for the maps.
    """
    first, second = frames_of(starts, size)

    def take(index):
        # Frames beyond the last repeat it; nobody reads what comes of them.
        return lambda x: x.at[index].get(mode="clip")

    rows = jax.tree.map(lambda x: take(first)(x)[:, None, :, None], prepared)
    columns = jax.tree.map(lambda x: take(second)(x)[:, None, None, :], prepared)
    return rows, columns
