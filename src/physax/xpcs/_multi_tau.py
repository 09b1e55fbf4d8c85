"""One-time correlations of long series of frames, at logarithmically spaced lags."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Float, Int, Num

from .._checks import ArgumentError, whole
from .._products import einsum
from ._pixel_chunks import as_frames, floating, pixel_chunks


class MultiTau(NamedTuple):
    r"""One-time correlations of frames.

    Attributes:
        lags: Lags in frames.
        g2: Correlations, one row for each label.
        sigma: Their standard deviations, from the scatter of the pixels, which are
            assumed to be independent: too small where a speckle covers several.
    """

    lags: Int[np.ndarray, " lags"]
    g2: Float[Array, "maps lags"]
    sigma: Float[Array, "maps lags"]


def multi_tau_lags(
    frames: int, channels: int = 16, levels: int | None = None
) -> list[Int[np.ndarray, " _"]]:
    """Returns the lags of each level, in steps of the level, 2^level frames.

    Args:
        frames: How many frames there are.
        channels: Lags of the first level, an even number: 1 to `channels` - 1. The
            other levels have the upper half of these.
        levels: How many levels at most; `None` for as many as there are frames for.

    Returns:
        One array for each level.

    Raises:
        ArgumentError: If `channels` is odd or below 4, or there is no level.
    """
    frames, channels = whole(frames, "frames"), whole(channels, "channels", 4)
    if channels % 2:
        raise ArgumentError(
            f"`channels` must be an even number of at least 4, but is {channels}."
        )
    levels = None if levels is None else whole(levels, "levels")
    found: list[np.ndarray] = []
    while levels is None or len(found) < levels:
        length = frames >> len(found)
        lags = np.arange(channels // 2 if found else 1, channels)
        lags = lags[lags < length]
        if not lags.size:
            break
        found.append(lags)
    return found


def multi_tau(
    frames: Num[ArrayLike, "frames *pixels"],
    labels: Int[ArrayLike, "*labelled"],
    *,
    channels: int = 16,
    levels: int | None = None,
    chunk: int = 1024,
) -> MultiTau:
    r"""Correlates a series of frames with itself at lags from one frame to all.

    $g_2(\tau) = \langle I(t) I(t + \tau) \rangle / \langle I(t) \rangle \langle I(t +
    \tau) \rangle$, with means over all $t$ for which both exist and over the pixels of
    one label. From level to level frames are averaged in pairs and the lags double, so
    that the cost grows as `frames`, not as its square. The averaging smooths $g_2$ over
    a range of $1 / k$ of a lag of $k$ steps, at least two parts in `channels`.

    Reference: Schätzel, Drewel and Stimac, J. Mod. Opt. 35, 711 (1988).

    Args:
        frames: Intensities or counts, equally spaced in time.
        labels: As for `two_time_from_frames`.
        channels: Lags of the first level, an even number of at least 4.
        levels: How many levels at most; `None` for as many as there are frames for.
        chunk: How many pixels to take at once.

    Returns:
        Lags in frames, correlations and their errors. With the time of a frame and
        wavevectors they make a `OneTime`.

    Raises:
        ArgumentError: If a shape does not fit, a pixel with a label is not finite or is
            a negative integer, there are fewer than two frames, labels are missing or
            negative, or a number is out of its range.
    """
    frames = as_frames(frames)
    parts = pixel_chunks(frames, labels, chunk)
    lags = multi_tau_lags(frames.shape[0], channels, levels)
    in_frames = np.concatenate([k << level for level, k in enumerate(lags)])
    return MultiTau(in_frames, *_correlate(frames, parts, lags))


@eqx.filter_jit
def _correlate(frames, parts, lags):
    """Returns correlations and their errors, (maps, lags)."""
    dtype = floating(frames)
    flat = frames.reshape(frames.shape[0], -1)
    size = jnp.asarray(parts.size, dtype)
    level = _levels(flat, parts, dtype)

    @jax.checkpoint  # pyright: ignore[reportPrivateImportUsage]
    def add(carry, part):
        pixels, used, label = part
        # Not a product with 0: the pixel that fills up a chunk may be NaN.
        panel = jnp.where(used, flat[:, pixels].astype(dtype), 0)
        found = _moments(_means(panel, level[label], lags), used)
        merged = _merged(jax.tree.map(lambda x: x[label], carry), found)
        return jax.tree.map(lambda x, y: x.at[label].set(y), carry, merged), None

    count = sum(map(len, lags))
    start = (
        jnp.zeros(parts.maps, dtype),
        jnp.zeros((parts.maps, count, 3), dtype),
        jnp.zeros((parts.maps, count, 3, 3), dtype),
    )
    (_, mean, scatter), _ = lax.scan(
        add, start, (parts.pixels, parts.used, parts.label)
    )
    return _ratio(mean, scatter, level[:, None], size[:, None])


def _levels(flat, parts, dtype):
    """Returns what to take from the frames of each label before they are multiplied.

    The scatter of products is then not below the rounding of their mean. Where most
    readings are 0 that is no concern, and products that are all 0 remain so.
    """
    mean = jnp.mean(flat, axis=0, dtype=dtype)
    power = jnp.mean(flat.astype(dtype) ** 2, axis=0)

    def of_labels(values):
        sums = jnp.where(parts.used, values[parts.pixels], 0).sum(1)
        return jnp.zeros(parts.maps, dtype).at[parts.label].add(sums) / parts.size

    mean, power = of_labels(mean), of_labels(power)
    # Nothing depends on it but rounding.
    return lax.stop_gradient(jnp.where(power < 1.5 * mean**2, mean, 0))


def _means(panel, level, lags):
    """Returns means over t: (I(t) - l) (I(t + k) - l), I(t), I(t + k) at each lag."""
    found = []
    for number, steps in enumerate(lags):
        if number:
            pairs = panel[: panel.shape[0] // 2 * 2]
            panel = (pairs[0::2] + pairs[1::2]) / 2
        found.append(_of_one_level(panel, level, jnp.asarray(steps)))
    return jnp.concatenate(found, axis=1)


def _of_one_level(panel, level, steps):
    """Does it for the lags of one level."""
    length = panel.shape[0]
    total = jnp.cumsum(panel, axis=0)
    less = panel - level
    # Beyond the end there are zeros, which add nothing to sums of products.
    padded = jnp.concatenate([less, jnp.zeros_like(less)])

    def one(k):
        later = lax.dynamic_slice_in_dim(padded, k, length)
        products = jnp.sum(less * later, axis=0)
        early = total[length - 1 - k]
        late = total[-1] - total[k - 1]
        return jnp.stack([products, early, late]) / (length - k)

    return jnp.moveaxis(lax.map(one, steps), 0, 1)


def _moments(values, used):
    """Returns number, means (lags, 3) and summed squares about them (lags, 3, 3)."""
    count = used.sum(dtype=values.dtype)
    mean = jnp.sum(jnp.where(used, values, 0), axis=-1) / count
    off = jnp.where(used, values - mean[..., None], 0)
    return count, mean.T, einsum("alp,blp->lab", off, off)


def _merged(one, other):
    """Returns the moments of two sets of pixels together.

    Reference: Chan, Golub and LeVeque, *Algorithms for computing the sample variance*,
    American Statistician 37, 242 (1983).
    """
    (size, mean, scatter), (more, its_mean, its_scatter) = one, other
    count = size + more
    step = its_mean - mean
    between = step[:, :, None] * step[:, None, :] * (size * more / count)
    return count, mean + step * (more / count), scatter + its_scatter + between


def _ratio(mean, scatter, level, size):
    """Returns g2 and its error, by the linear expansion of the ratio of means."""
    bright = jnp.all(mean[..., 1:] > 0, axis=-1)
    product, early, late = jnp.moveaxis(jnp.where(bright[..., None], mean, 1), -1, 0)
    norm = early * late
    # G - P F of the frames is the same when a level is taken from them.
    excess = product / norm - (early - level) * (late - level) / norm
    # Of G / <P> <F> - g2 (P / <P> + F / <F>) for each pixel, by the moments without
    # the level: G has the level times P + F more, which would cancel the other terms.
    by_early = (level - late - late * excess) / norm
    by_late = (level - early - early * excess) / norm
    weight = jnp.stack([1 / norm, by_early, by_late], axis=-1)
    total = einsum("mlab,mla,mlb->ml", scatter, weight, weight)
    variance = jnp.maximum(total / size, 0) / jnp.maximum(size - 1, 1)
    root = jnp.where(variance > 0, jnp.sqrt(jnp.where(variance > 0, variance, 1)), 0)
    return jnp.where(bright, 1 + excess, jnp.nan), jnp.where(bright, root, jnp.nan)
