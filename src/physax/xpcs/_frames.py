"""Two-time maps from the frames of a detector."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, ArrayLike, Float, Int, Num

from .._products import matmul
from ._pixel_chunks import as_frames, floating, pixel_chunks


def two_time_from_frames(
    frames: Num[ArrayLike, "frames *pixels"],
    labels: Int[ArrayLike, "*labelled"],
    *,
    chunk: int = 4096,
) -> Float[Array, "maps frames frames"]:
    r"""Correlates the frames of a detector with each other, for each label of a map.

    $c_2(t_i, t_j) = \langle I(t_i) I(t_j) \rangle / \langle I(t_i) \rangle \langle
    I(t_j) \rangle$, where the means are over the pixels of one label. The diagonal
    holds the peak of the shot noise. With wavevectors and times the result makes a
    `TwoTime`.

    Pixels are taken in chunks and converted to floating point there, so integers may
    stay as small as they are stored. Differentiable in `frames`.

    Args:
        frames: Intensities or counts. Integers must not be negative, as detectors mark
            pixels by that; floating point may be, as counts less a dark image are.
        labels: Which map a pixel belongs to: 0 for none, 1, 2, ... for those of each
            wavevector. Not traced.
        chunk: How many pixels to take at once.

    Returns:
        The maps, in the order of their labels. Pairs with a frame that is dark in all
        pixels of a label are NaN: leave them out with the mask of `TwoTime`.

    Raises:
        ArgumentError: If a shape does not fit, a pixel with a label is not finite or is
            a negative integer, there are fewer than two frames, labels are missing or
            negative, or `chunk` is not positive.
    """
    frames = as_frames(frames)
    parts = pixel_chunks(frames, labels, chunk)
    dtype = floating(frames)
    count = frames.shape[0]
    flat = frames.reshape(count, -1)

    @jax.checkpoint  # pyright: ignore[reportPrivateImportUsage]
    def add(carry, part):
        pairs, sums = carry
        pixels, used, label = part
        # Not a product with 0: the pixel that fills up a chunk may be NaN.
        panel = jnp.where(used, flat[:, pixels].astype(dtype), 0)
        found = matmul(panel, panel.T)
        return (pairs.at[label].add(found), sums.at[label].add(panel.sum(1))), None

    start = (
        jnp.zeros((parts.maps, count, count), dtype),
        jnp.zeros((parts.maps, count), dtype),
    )
    (pairs, sums), _ = lax.scan(add, start, (parts.pixels, parts.used, parts.label))
    size = jnp.asarray(parts.size, dtype)[:, None, None]
    norm = sums[:, :, None] * sums[:, None, :]
    return jnp.where(norm > 0, size * pairs / jnp.where(norm > 0, norm, 1), jnp.nan)
