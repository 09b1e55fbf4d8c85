"""Pixels of a detector, sorted by the label of their wavevector into equal chunks."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Int, Num

from .._checks import (
    ArgumentError,
    native,
    refuse_masked,
    refuse_traced,
    traced,
    whole,
)


class PixelChunks(NamedTuple):
    """Which pixels belong together.

    Attributes:
        pixels: Numbers of the pixels in each chunk; 0 where a chunk has none left.
        used: Whether there is one.
        label: Which map a chunk belongs to, counted from 0.
        maps: How many maps there are.
        size: How many pixels each map has.
    """

    pixels: Int[np.ndarray, "chunks chunk"]
    used: Bool[np.ndarray, "chunks chunk"]
    label: Int[np.ndarray, " chunks"]
    maps: int
    size: Int[np.ndarray, " maps"]


def pixel_chunks(
    frames: Num[ArrayLike, "frames *pixels"],
    labels: Int[ArrayLike, "*labelled"],
    chunk: Any,
) -> PixelChunks:
    """Sorts pixels by label. The labels must be known, as they determine shapes.

    Args:
        frames: The frames, from `as_frames`.
        labels: 0 for pixels to leave out, 1, 2, ... for those of each map.
        chunk: How many pixels to take at once.

    Returns:
        The chunks, each of pixels with one label.

    Raises:
        ArgumentError: If a shape does not fit, a pixel with a label is not finite or is
            a negative integer, a label between 1 and the largest is missing, one is
            negative or none is positive, or `chunk` is not positive.
    """
    refuse_traced(labels, "labels", "Close over it instead of passing it in.")
    refuse_masked(labels, "labels", "Pixels to leave out have the label 0.")
    shape = np.shape(frames)
    if len(shape) < 2 or shape[1:] != np.shape(labels):
        raise ArgumentError(
            "`labels` must have the shape of one of the `frames`, "
            f"{shape[1:]}, but has shape {np.shape(labels)}."
        )
    if shape[0] < 2:
        raise ArgumentError(
            f"`frames` must hold at least 2 frames, but holds {shape[0]}."
        )
    chunk = whole(chunk, "chunk")
    flat = np.asarray(labels).ravel()
    if not np.issubdtype(flat.dtype, np.integer) or flat.min(initial=0) < 0:
        raise ArgumentError(
            "`labels` must be integers, 0 for pixels to leave out and 1, 2, ... for "
            f"maps, but have dtype {flat.dtype} and minimum {flat.min(initial=0)}."
        )
    _check_values(frames, flat > 0)
    size = np.bincount(flat)[1:]
    if not size.size or not size.all():
        missing = [int(n) + 1 for n in np.flatnonzero(size == 0)] or [1]
        raise ArgumentError(
            "`labels` must hold each number from 1 to the largest, but lacks "
            f"{missing}."
        )
    order = np.argsort(flat, kind="stable")[np.count_nonzero(flat == 0) :]
    chunk = min(chunk, int(size.max()))
    pixels, used, owner = [], [], []
    for label, members in enumerate(np.split(order, np.cumsum(size)[:-1])):
        for at in range(0, len(members), chunk):
            part = members[at : at + chunk]
            padding = (0, chunk - len(part))
            pixels.append(np.pad(part, padding))
            used.append(np.pad(np.ones(len(part), bool), padding))
            owner.append(label)
    return PixelChunks(
        np.array(pixels, np.int32),
        np.array(used),
        np.array(owner, np.int32),
        len(size),
        size,
    )


def _check_values(frames: Any, used: Bool[np.ndarray, " pixels"]) -> None:
    """Raises if a pixel with a label is no number of counts, where that is known."""
    if traced(frames) or frames.dtype.kind in "ub":
        return
    bad = ~np.asarray(_all_counts(frames)).ravel() & used
    if bad.any():
        pixel = np.unravel_index(int(np.argmax(bad)), frames.shape[1:])
        series = np.asarray(frames[(slice(None), *pixel)])
        frame = int(np.argmin(_counts(series)))
        kind = "not negative" if np.isfinite(series[frame]) else "finite"
        raise ArgumentError(
            f"`frames` must be {kind} where `labels` is not 0, but frame {frame} has "
            f"{series[frame]:g} at pixel {tuple(map(int, pixel))} ({bad.sum()} such "
            "pixels). Give them the label 0, or leave the frame out."
        )


def _counts(values):
    # Detectors mark pixels by negative integers; less a dark image, counts may be so.
    marked = values < 0 if jnp.issubdtype(values.dtype, jnp.integer) else False
    return (abs(values) < np.inf) & ~jnp.asarray(marked)


@jax.jit
def _all_counts(frames):
    return jnp.all(_counts(frames), axis=0)


def as_frames(frames: Any) -> Num[Array, "..."]:
    """Returns frames as JAX has them, as small as they are stored.

    Raises:
        ArgumentError: If a pixel is masked, or they are not real numbers.
    """
    refuse_masked(frames, "frames", "Leave such pixels out with the label 0.")
    if not isinstance(frames, jax.Array):
        frames = native(np.asarray(frames))
    floats = jnp.issubdtype(frames.dtype, jnp.floating)
    if not floats and frames.dtype.kind not in "iub":
        raise ArgumentError(
            f"`frames` must be real numbers, but have dtype {frames.dtype}."
        )
    return jnp.asarray(frames)


def floating(frames: Num[Array, "..."]) -> jnp.dtype:
    """Returns the precision in which counts are correlated: that of floats, or theirs.

    Args:
        frames: The frames as they are stored, integers or not.
    """
    if jnp.issubdtype(frames.dtype, jnp.floating):
        return jnp.promote_types(frames.dtype, jnp.float32)
    return jnp.dtype(jnp.result_type(float))
