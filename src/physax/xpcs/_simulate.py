"""Two-time maps as an experiment would measure them."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import ArrayLike, Num, PRNGKeyArray

from .._checks import ArgumentError, at_least, instance
from ._correlation import AbstractCorrelation
from ._evaluate import two_time
from ._noise import AbstractNoise
from ._two_time import TwoTime


def simulate_two_time(
    model: AbstractCorrelation,
    times: Num[ArrayLike, " frames"],
    q: Num[ArrayLike, "..."],
    phi: Num[ArrayLike, "..."] = 0.0,
    *,
    contrast: Num[ArrayLike, "..."] = 1.0,
    offset: Num[ArrayLike, "..."] = 1.0,
    key: PRNGKeyArray,
    noise: AbstractNoise | Sequence[AbstractNoise],
) -> TwoTime:
    """Draws two-time maps: those of a model, with noise.

    Args:
        model: The model.
        times: Times of the frames in seconds, at least 0, strictly increasing.
        q: Wavevector of each map in 1/angstrom; one number applies to all.
        phi: Its direction in radians.
        contrast: Of each map, dimensionless, at least 0.
        offset: Of each map, dimensionless.
        key: The same key draws the same noise.
        noise: One kind of noise, or several that are independent.

    Returns:
        The maps, symmetric, with the standard deviation that the noise has off the
        diagonal. It does not describe the correlations of noise that frames share.

    Raises:
        ArgumentError: As for `two_time` and `TwoTime`, if `contrast` is negative (under
            `jit` the maps are NaN), there is no noise, or `noise` or `key` is of
            another kind.
    """
    kinds = tuple(noise) if isinstance(noise, Sequence) else (noise,)
    for kind in kinds:
        instance(kind, "noise", AbstractNoise, "Write `WhiteNoise(0.01)`.")
    instance(key, "key", jax.Array, "Write `jax.random.key(0)`.")
    if not kinds:
        raise ArgumentError(
            "`noise` must hold at least one kind of noise, but is empty. `two_time` "
            "makes maps without noise."
        )
    contrast = at_least("contrast", 0.0)(contrast)
    clean = two_time(model, times, q, phi, contrast=contrast, offset=offset)
    noisy, sigma = _with_noise(clean, kinds, key)
    # A program of its own: fused with the noise, both values of a pair would be
    # computed, with a rounding that may differ.
    return TwoTime(_mirrored(noisy), q, phi, times, sigma)


@eqx.filter_jit
def _with_noise(clean, kinds, key):
    """Returns noisy maps and the standard deviation of one value."""
    noisy, variance = clean, jnp.zeros((), clean.dtype)
    for part, kind in zip(jax.random.split(key, len(kinds)), kinds, strict=True):
        noisy = noisy + kind.sample(part, clean)
        variance = variance + kind.variance(clean)
    return noisy, jnp.sqrt(variance)


@jax.jit
def _mirrored(maps):
    """Returns maps with the values above the diagonal copied below it."""
    return jnp.triu(maps) + jnp.swapaxes(jnp.triu(maps, 1), 1, 2)
