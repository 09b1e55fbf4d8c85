"""What an optimiser changes, and the density that follows from it."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .._checks import ArgumentError, one_key, real, whole
from .._known_number import known_number
from ._argument_checks import as_shape


class AbstractDensity(eqx.Module):
    """Parameters of a design. Call it for the density, one value for each cell."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float] | None:
        """Between which values `optimise` keeps the parameters; None for any."""

    @abstractmethod
    def __call__(self) -> Float[Array, "*cells"]:
        """Returns the density, before any filter."""


class PixelDensity(AbstractDensity):
    """One parameter for each cell: the density itself.

    Attributes:
        values: The densities, in [0, 1].
    """

    values: Float[Array, "*cells"] = eqx.field(converter=lambda x: real(x, "values"))

    @property
    def bounds(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def __call__(self) -> Float[Array, "*cells"]:
        return self.values


def grey_start(
    shape: tuple[int, ...],
    value: float = 0.5,
    *,
    noise: float = 0.0,
    key: PRNGKeyArray | None = None,
) -> PixelDensity:
    """Makes a uniform start, with optional noise.

    Args:
        shape: Cells along each axis.
        value: The density.
        noise: Half the width of the uniform noise that is added to each cell.
        key: Where the noise comes from.

    Returns:
        The parameters.

    Raises:
        ArgumentError: If densities may leave [0, 1], or `noise` is given without `key`.
    """
    shape = as_shape(shape)
    value, noise = known_number(value, "value"), known_number(noise, "noise")
    if not (noise >= 0 and value - noise >= 0 and value + noise <= 1):
        raise ArgumentError(
            "`value - noise` and `value + noise` must lie in [0, 1], but are "
            f"{value - noise:g} and {value + noise:g}."
        )
    if noise == 0:
        return PixelDensity(jnp.full(shape, value))
    if key is None:
        raise ArgumentError("`key` must be given with `noise`, but is None.")
    key = one_key(key)
    return PixelDensity(
        jax.random.uniform(key, shape, minval=value - noise, maxval=value + noise)
    )


class NeuralDensity(AbstractDensity):
    r"""A density given by a network that takes coordinates.

    The position of a cell, from -1 to 1 along each axis, and its harmonics
    $\sin(\pi k x), \cos(\pi k x)$ up to $k = $ `harmonics` go through a multilayer
    perceptron and a logistic function. Few harmonics make smooth designs; the number of
    parameters does not grow with that of cells, and the same network can be evaluated
    on a finer grid (`at`). Reference: Chandrasekhar and Suresh, *TOuNN: topology
    optimization using neural networks*, Structural and Multidisciplinary Optimization
    63, 1135 (2021).

    Attributes:
        network: The perceptron.
        shape: Cells along each axis.
        harmonics: The highest harmonic.
    """

    network: eqx.nn.MLP
    shape: tuple[int, ...] = eqx.field(static=True)
    harmonics: int = eqx.field(static=True)

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        key: PRNGKeyArray,
        harmonics: int = 4,
        width: int = 32,
        depth: int = 3,
    ):
        """Makes a network with random weights.

        Args:
            shape: Cells along each axis.
            key: Where the weights come from.
            harmonics: The highest harmonic that the network is given; 0 for none.
            width: Neurons of a hidden layer.
            depth: Hidden layers.

        Raises:
            ArgumentError: If a number is not an integer or too small, or the key is not
                one.
        """
        key = one_key(key)
        shape, harmonics = as_shape(shape), whole(harmonics, "harmonics", 0)
        width, depth = whole(width, "width"), whole(depth, "depth")
        self.shape, self.harmonics = shape, harmonics
        inputs = len(shape) * (1 + 2 * harmonics)
        self.network = eqx.nn.MLP(inputs, "scalar", width, depth, jax.nn.silu, key=key)

    @property
    def bounds(self) -> None:
        return None

    def __call__(self) -> Float[Array, "*cells"]:
        return self.at(self.shape)

    def at(self, shape: tuple[int, ...]) -> Float[Array, "..."]:
        """Returns the density on another number of cells over the same region.

        Args:
            shape: Cells along each axis.

        Returns:
            The density.

        Raises:
            ArgumentError: If there is not one positive integer for each axis.
        """
        shape = as_shape(shape)
        if len(shape) != len(self.shape):
            raise ArgumentError(
                f"`shape` must have {len(self.shape)} entries, one for each axis, but "
                f"is {shape}."
            )
        dtype = jax.tree.leaves(eqx.filter(self.network, eqx.is_inexact_array))[0].dtype
        axes = [(jnp.arange(n, dtype=dtype) * 2 + 1) / n - 1 for n in shape]
        points = jnp.stack(jnp.meshgrid(*axes, indexing="ij"), axis=-1)
        flat = points.reshape(-1, len(shape))
        waves = jnp.pi * flat[:, :, None] * jnp.arange(1, self.harmonics + 1)
        waves = waves.reshape(flat.shape[0], -1).astype(dtype)
        features = jnp.concatenate([flat, jnp.sin(waves), jnp.cos(waves)], axis=-1)
        with jax.default_matmul_precision("highest"):
            values = jax.vmap(self.network)(features)
        return jax.nn.sigmoid(values).reshape(shape)
