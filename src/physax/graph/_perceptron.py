"""Multilayer perceptrons, and the features that let them follow fine detail."""

import itertools
import operator
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Key

from ._block import AbstractBlock, GraphError
from ._layer import Batched
from ._operation import operation_named
from ._structs import as_size, sized


def _hidden(x: Any) -> tuple[int, ...]:
    if not isinstance(x, Sequence) or isinstance(x, str):
        raise GraphError(
            f"`hidden_sizes` must be a sequence of integers, as `(64, 64)`, but is "
            f"{x!r}."
        )
    return tuple(as_size(one, f"hidden_sizes[{n}]") for n, one in enumerate(x))


class MLP(AbstractBlock):
    """A multilayer perceptron over the last axis.

    Attributes:
        input_size: Size of the last axis of the input.
        hidden_sizes: Sizes of the hidden layers.
        output_size: Size of the last axis of the output.
        activation: Name of the operation between two layers.
        label: What a node is called unless it gets a name.
        terminals: `("input",)`.
        results: `("output",)`.
        trainable: Whether its arrays are parameters.

    Raises:
        GraphError: If a size is not a positive integer, or the operation is unknown.
    """

    input_size: int = eqx.field(
        static=True, converter=lambda x: as_size(x, "input_size")
    )
    hidden_sizes: tuple[int, ...] = eqx.field(static=True, converter=_hidden)
    output_size: int = eqx.field(
        static=True, converter=lambda x: as_size(x, "output_size")
    )
    activation: str = eqx.field(static=True, default="gelu")
    label: str = eqx.field(static=True, default="mlp")
    terminals: tuple[str, ...] = eqx.field(static=True, default=("input",))
    results: tuple[str, ...] = eqx.field(static=True, default=("output",))
    trainable: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        operation_named(self.activation)

    def build(self, key, *inputs):
        """Draws the weights as `equinox.nn.Linear` does."""
        (struct,) = inputs
        if not struct.ndim or struct.shape[-1] != self.input_size:
            raise GraphError(
                f"The last axis of the input must have size {self.input_size}, but the "
                f"shape is {struct.shape}."
            )
        sizes = (self.input_size, *self.hidden_sizes, self.output_size)
        layers = _linear(sizes, jr.split(key, len(sizes) - 1))
        return Batched(Perceptron(layers, operation_named(self.activation)), 1)


def _linear(sizes: Sequence[int], keys: Key[Array, " layers"]) -> list[eqx.nn.Linear]:
    """Draws layers, those of equal sizes at once: a long program compiles long."""
    pairs = list(itertools.pairwise(sizes))
    layers = {}
    for pair in dict.fromkeys(pairs):
        places = [place for place, other in enumerate(pairs) if other == pair]
        make = partial(_keyed_linear, *pair)
        if len(places) == 1:
            layers[places[0]] = make(keys[places[0]])
            continue
        drawn = eqx.filter_vmap(make)(keys[np.array(places)])
        for row, place in enumerate(places):
            layers[place] = jax.tree.map(operator.itemgetter(row), drawn)
    return [layers[place] for place in range(len(pairs))]


def _keyed_linear(inputs: int, outputs: int, key: Key[Array, ""]) -> eqx.nn.Linear:
    return eqx.nn.Linear(inputs, outputs, key=key)


class Perceptron(eqx.Module):
    """Layers with an activation between each two.

    Attributes:
        layers: The layers.
        activation: What is applied after all but the last.
    """

    layers: Sequence[Callable]
    activation: Callable

    def __call__(self, input: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """Applies the layers in turn."""
        for layer in self.layers[:-1]:
            input = self.activation(layer(input))
        return self.layers[-1](input)


class FourierFeatures(AbstractBlock):
    r"""Random waves of the last axis: $\cos 2\pi B x$ and $\sin 2\pi B x$.

    In front of a perceptron of coordinates they let it follow detail as fine as
    1 / `scale`. $B$ is drawn from a normal distribution and not trained. Reference:
    Tancik et al., *Fourier Features Let Networks Learn High Frequency Functions in Low
    Dimensional Domains*, NeurIPS (2020).

    Attributes:
        count: Number of waves; the output has twice this size.
        scale: Standard deviation of the wave numbers, in periods per unit of $x$.
        label: What a node is called unless it gets a name.
        terminals: `("input",)`.
        results: `("output",)`.
        trainable: Whether $B$ is a parameter.

    Raises:
        GraphError: If `count` or `scale` is not positive.
    """

    count: int = eqx.field(static=True, converter=sized("count"))
    scale: float = eqx.field(static=True, default=1.0)
    label: str = eqx.field(static=True, default="fourier")
    terminals: tuple[str, ...] = eqx.field(static=True, default=("input",))
    results: tuple[str, ...] = eqx.field(static=True, default=("output",))
    trainable: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if not isinstance(self.scale, Real) or not self.scale > 0:
            raise GraphError(
                f"`scale` must be a positive number, but is {self.scale!r}."
            )

    def build(self, key: Key[Array, ""], *inputs: jax.ShapeDtypeStruct) -> "Waves":
        """Draws the wave numbers."""
        shape = (self.count, inputs[0].shape[-1])
        return Waves(self.scale * jr.normal(key, shape))


class Waves(eqx.Module):
    """Waves of given wave numbers.

    Attributes:
        numbers: Periods per unit of each coordinate.
    """

    numbers: Float[Array, "waves coordinates"]

    def __call__(
        self, input: Float[Array, "*batch coordinates"]
    ) -> Float[Array, "*batch features"]:
        """Evaluates them."""
        phase = 2 * jnp.pi * input @ self.numbers.T
        return jnp.concat([jnp.cos(phase), jnp.sin(phase)], axis=-1)
