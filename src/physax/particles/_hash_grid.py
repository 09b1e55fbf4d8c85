"""Bins in space that list every element whose bounding box touches them."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


# A box is in this many bins on average, at most, and there are at most as many bins for
# each box. More take memory, fewer make lists longer.
_ENTRIES = 16.0
_BINS = 8.0


class HashGrid(eqx.Module):
    """A uniform grid of bins; made by `make_hash_grid`.

    Attributes:
        low: Lower corner of the bins.
        high: Upper corner; no box reaches beyond.
        per_length: Number of bins per unit length along each axis.
        starts: Where the list of each bin starts in `entries`, and where the last ends.
        entries: Numbers of boxes.
        shape: Number of bins along each axis.
    """

    low: Float[Array, " ndim"]
    high: Float[Array, " ndim"]
    per_length: Float[Array, " ndim"]
    starts: Int[Array, " starts"]
    entries: Int[Array, " entries"]
    shape: tuple[int, ...] = eqx.field(static=True)

    def candidates(
        self, x: Float[Array, " ndim"]
    ) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """Returns the range of `entries` whose boxes may hold a place.

        Args:
            x: The place; outside the bins, and where it is not finite, the range is
                empty.
        """
        inside = jnp.all((x >= self.low) & (x <= self.high))
        number = self.bin_of(x)
        start = self.starts[number]
        return start, jnp.where(inside, self.starts[number + 1], start)

    def bin_of(self, x: Float[Array, " ndim"]) -> Int[Array, ""]:
        """Returns the number of the bin at or next to a place."""
        number = jnp.asarray(0, jnp.int32)
        for axis, count in enumerate(self.shape):
            at = (x[axis] - self.low[axis]) * self.per_length[axis]
            # Clipped before it is made an integer, which far numbers do not fit.
            at = jnp.clip(jnp.nan_to_num(at), 0, count - 1).astype(jnp.int32)
            number = number * count + at
        return number


def make_hash_grid(
    low: Float[np.ndarray, "boxes ndim"],
    high: Float[np.ndarray, "boxes ndim"],
    dtype: np.dtype,
) -> HashGrid:
    """Files boxes into bins, each into every bin that it touches.

    Args:
        low: Lower corners of the boxes.
        high: Upper corners.
        dtype: In which precision places will be looked up.
    """
    bottom, top = low.min(0), high.max(0)
    # Room for the rounding of places, and of the corners themselves.
    eps = np.finfo(dtype).eps
    slack = 4 * eps * np.maximum(np.abs(bottom), np.abs(top)) + 1e-4 * (top - bottom)
    bottom, top = bottom - slack, top + slack
    bottom = bottom.astype(dtype).astype(float)
    width = 0.5 * np.mean(high - low, axis=0)
    while True:
        shape = np.maximum(1, np.ceil((top - bottom) / width)).astype(np.int64)
        # Beyond, positions in units of bins are too coarse in single precision.
        if np.all(shape < 2**16) and np.prod(shape.astype(float)) <= _BINS * len(low):
            per_length = (shape / (top - bottom)).astype(dtype)
            first, last = _corners(low, high, bottom, per_length, shape, slack)
            filed = np.prod(last - first + 1, axis=1)
            if filed.sum() <= _ENTRIES * len(low) or np.all(shape == 1):
                break
        width = 1.2 * width
    starts, entries = _file(
        first, last, filed, shape, (low + high) / 2, bottom, per_length
    )
    return HashGrid(
        low=jnp.asarray(bottom, dtype),
        high=jnp.asarray(top, dtype),
        per_length=jnp.asarray(per_length),
        starts=jnp.asarray(starts, jnp.int32),
        entries=jnp.asarray(entries, jnp.int32),
        shape=tuple(int(count) for count in shape),
    )


def _corners(low, high, bottom, per_length, shape, slack):
    """Returns the first and the last bin of each box along each axis."""
    # A place at the edge of a bin may be rounded into the bin beside it.
    margin = 1e-3 + 8 * np.finfo(per_length.dtype).eps * shape
    reach = np.minimum(slack, 0.1 / per_length)
    first = np.floor((low - reach - bottom) * per_length - margin)
    last = np.floor((high + reach - bottom) * per_length + margin)
    return (
        np.clip(first, 0, shape - 1).astype(np.int64),
        np.clip(last, 0, shape - 1).astype(np.int64),
    )


def _file(first, last, filed, shape, middle, bottom, per_length):
    """Lists the boxes of each bin, those around its middle first."""
    box = np.repeat(np.arange(len(filed)), filed)
    rest = np.arange(len(box)) - np.repeat(np.cumsum(filed) - filed, filed)
    spans = last - first + 1
    number = np.zeros(len(box), np.int64)
    far = np.zeros(len(box))
    step = 1
    for axis in reversed(range(len(shape))):
        span = spans[box, axis]
        at = first[box, axis] + rest % span
        number += step * at
        far += ((middle[box, axis] - bottom[axis]) * per_length[axis] - at - 0.5) ** 2
        rest //= span
        step *= int(shape[axis])
    order = np.lexsort((far, number))
    starts = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=step))])
    return starts, box[order]
