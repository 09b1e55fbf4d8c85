"""Noise of measured two-time maps."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._checks import positive, true_or_false
from ._measured import wide


class AbstractNoise(eqx.Module):
    """What a measurement adds to two-time maps."""

    @abstractmethod
    def variance(
        self, c2: Float[Array, "maps frames frames"]
    ) -> Float[Array, ""] | Float[Array, "maps frames frames"]:
        """Returns the variance of one value off the diagonal, for each or for all.

        Args:
            c2: The maps without noise.
        """

    @abstractmethod
    def sample(
        self, key: PRNGKeyArray, c2: Float[Array, "maps frames frames"]
    ) -> Float[Array, "maps frames frames"]:
        """Draws what is added to the maps, symmetric in the frames.

        Args:
            key: Key of the random numbers.
            c2: The maps without noise.
        """


def _positive(x, name):
    return wide(positive(x, name))


def _symmetric_normal(key, shape, dtype):
    """Draws normal numbers, independent for each pair of frames."""
    upper = jnp.triu(jax.random.normal(key, shape, dtype))
    return upper + jnp.swapaxes(jnp.triu(upper, 1), 1, 2)


class WhiteNoise(AbstractNoise):
    """Normal noise, independent for each pair of frames.

    Attributes:
        sigma: Its standard deviation.

    Raises:
        ArgumentError: If `sigma` is not positive.
    """

    sigma: Float[Array, ""] = eqx.field(converter=lambda x: _positive(x, "sigma"))

    def variance(self, c2):
        del c2
        return self.sigma**2

    def sample(self, key, c2):
        return self.sigma.astype(c2.dtype) * _symmetric_normal(key, c2.shape, c2.dtype)


class ShotNoise(AbstractNoise):
    r"""The noise of counted photons at low count rates.

    With $\bar n \ll 1$ photons per pixel and frame and $P$ pixels, the mean of the
    products of counts has the variance $c_2 / (\bar n^2 P)$ off the diagonal. On it,
    photons are paired with themselves, which adds a peak of height $1 / \bar n$.

    Attributes:
        counts: Mean number $\bar n$ of photons in a pixel and a frame.
        pixels: Number $P$ of pixels in the average, each a speckle of its own.

    Raises:
        ArgumentError: If an attribute is not positive.
    """

    counts: Float[Array, ""] = eqx.field(converter=lambda x: _positive(x, "counts"))
    pixels: Float[Array, ""] = eqx.field(converter=lambda x: _positive(x, "pixels"))

    def variance(self, c2):
        return jnp.maximum(c2, 0) / (self.counts**2 * self.pixels)

    def sample(self, key, c2):
        noise = _symmetric_normal(key, c2.shape, c2.dtype)
        peak = jnp.eye(c2.shape[1], dtype=c2.dtype) / self.counts
        return (peak + jnp.sqrt(self.variance(c2)) * noise).astype(c2.dtype)


class FrameNoise(AbstractNoise):
    r"""Noise that all pairs with a common frame share.

    $\delta_{ij} = \sigma (\epsilon_i + \epsilon_j) / \sqrt 2$ with one normal number
    $\epsilon$ for each frame: values of pairs with a common frame have a correlation of
    1/2. Errors of a fit that takes values as independent are then too small.

    Attributes:
        sigma: Standard deviation of one value off the diagonal.
        shared: Whether all maps have the same fluctuations, such as those of the beam,
            or each has its own.

    Raises:
        ArgumentError: If `sigma` is not positive.
    """

    sigma: Float[Array, ""] = eqx.field(converter=lambda x: _positive(x, "sigma"))
    shared: bool = eqx.field(
        static=True, converter=lambda x: true_or_false(x, "shared"), default=False
    )

    def variance(self, c2):
        del c2
        return self.sigma**2

    def sample(self, key, c2):
        maps, frames, _ = c2.shape
        shape = (1 if self.shared else maps, frames)
        frame = jax.random.normal(key, shape, c2.dtype) / jnp.sqrt(2.0)
        sigma = self.sigma.astype(c2.dtype)
        added = sigma * (frame[:, :, None] + frame[:, None, :])
        return jnp.broadcast_to(added, c2.shape).astype(c2.dtype)
