"""Layers of `equinox.nn` as blocks, their sizes inferred."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import export
from jaxtyping import Array, PyTree

from ._block import AbstractBlock, GraphError
from ._operation import operation_named
from ._structs import as_size, struct_text


# The arguments that say what comes in, and the axis of one item that they count.
_SIZES = {
    "in_features": -1,
    "in_size": -1,
    "input_size": -1,
    "query_size": -1,
    "embedding_size": -1,
    "in_channels": 0,
    "channels": 0,
}
# Axes of one item, where the name of the class has no digit and it is not 1. None: the
# layer takes arrays of any shape as they are.
_RANKS = {
    "Embedding": 0,
    "MultiheadAttention": 2,
    "RotaryPositionalEmbedding": 2,
    "Dropout": None,
    "Identity": None,
    "PReLU": None,
}
_FUNCTIONS = ("activation", "final_activation")


KEY_AS_SHAPE = "Give a key in place of a shape: `shapes={'key': jax.random.key(0)}`."
"""How a graph is compiled with a layer that draws numbers."""


class Batched(eqx.Module):
    """A layer for one item, applied to all items along leading axes.

    Attributes:
        layer: Takes one item.
        rank: Axes of an item; None to give the layer its inputs as they are.
    """

    layer: Callable
    rank: int | None = eqx.field(static=True)

    def __call__(self, *inputs: PyTree[Array]) -> PyTree[Array]:
        """Applies the layer to each item."""
        function = self.layer
        if self.rank is not None:
            for _ in range(jax.tree.leaves(inputs)[0].ndim - self.rank):
                function = jax.vmap(function)
        return function(*inputs)


class Keyed(eqx.Module):
    """A layer that draws numbers, with the key as its last input.

    Attributes:
        layer: Takes `key` by name.
    """

    layer: Callable

    def __call__(self, *inputs: PyTree[Array]) -> PyTree[Array]:
        """Applies the layer.

        Raises:
            GraphError: If the key is none.
        """
        *values, key = inputs
        kinds = (jax.dtypes.prng_key, jnp.uint32)
        if not any(jnp.issubdtype(jnp.result_type(key), kind) for kind in kinds):
            raise GraphError(
                f"`key` must be a key of random numbers, but is {struct_text(key)}. "
                f"{KEY_AS_SHAPE}"
            )
        return self.layer(*values, key=key)


class Layer(AbstractBlock):
    """A layer of `equinox.nn`; made by `layer`.

    Attributes:
        name: Of the class in `equinox.nn`.
        options: Its arguments, apart from sizes of inputs and the key.
        rank: Axes of one item, the axes before them being batches; None to give the
            layer its inputs as they are.
        label: What a node is called unless it gets a name.
        terminals: Names of the inputs.
        results: `("output",)`.
        trainable: Whether its arrays are parameters.
    """

    name: str = eqx.field(static=True)
    options: tuple[tuple[str, Any], ...] = eqx.field(static=True)
    rank: int | None = eqx.field(static=True)
    label: str = eqx.field(static=True)
    terminals: tuple[str, ...] = eqx.field(static=True)
    results: tuple[str, ...] = eqx.field(static=True, default=("output",))
    trainable: bool = eqx.field(static=True, default=True)

    def build(self, key, *inputs):
        """Draws the arrays, now that the size of the input is known."""
        item = jax.tree.leaves(inputs[0])[0].shape
        if self.rank is not None:
            if len(item) < self.rank:
                raise GraphError(
                    f"An item of `{self.label}` must have {self.rank} axes, but "
                    f"its input has {len(item)}."
                )
            item = item[len(item) - self.rank :]
        made = getattr(eqx.nn, self.name)
        arguments = inspect.signature(made).parameters
        options = dict(self.options)
        for argument in arguments.keys() - options.keys():
            if argument in _SIZES and (self.name, argument) != _TABLE:
                options[argument] = _known(item[_SIZES[argument]], self.label)
            elif argument == "shape":
                options[argument] = tuple(_known(size, self.label) for size in item)
        for argument in _FUNCTIONS:
            if isinstance(options.get(argument), str):
                options[argument] = operation_named(options[argument])
        if "key" in arguments:
            options["key"] = key
        block = made(**options)
        if self.terminals[-1] == "key":
            block = Keyed(block)
        return Batched(block, self.rank)


# The width of an embedding's output, which no input tells.
_TABLE = ("Embedding", "embedding_size")


def _known(size: Any, label: str) -> int:
    if export.is_symbolic_dim(size):
        raise GraphError(
            f"The parameters of `{label}` need the size {size} of its input as a "
            "number. Give it in `shapes`."
        )
    return int(size)


def layer(
    name: str | type,
    *,
    rank: int | None = None,
    keyed: bool | None = None,
    label: str | None = None,
    trainable: bool = True,
    **options: Any,
) -> Layer:
    """Makes a block of any layer of `equinox.nn` without a state.

    Sizes of inputs (`in_features`, `in_channels`, `input_size`, `shape`, ...) are
    inferred: `layer("Conv2d", out_channels=8, kernel_size=3)`.

    Args:
        name: The class, or its name.
        rank: Axes of one item, the axes before them being batches; by default what is
            usual for the layer: 1 for vectors, 3 for images with channels.
        keyed: Whether the layer draws numbers when it is called, as `"Dropout"` does
            outside inference; by default only that one is taken to. The last terminal
            is then `key`.
        label: What a node is called unless it gets a name; by default the name of the
            class in small letters.
        trainable: Whether its arrays are parameters rather than constants.
        **options: Arguments of the layer by name. An activation may be the name of an
            operation.

    Returns:
        The block.

    Raises:
        GraphError: If there is no such layer, it has a state, or an option is unknown.
    """
    name = name.__name__ if isinstance(name, type) else name
    made = getattr(eqx.nn, name, None) if isinstance(name, str) else None
    if not isinstance(made, type) or not issubclass(made, eqx.Module):
        raise GraphError(
            f"`name` must be a layer of equinox.nn, such as 'Linear' or 'Conv2d', but "
            f"is {name!r}."
        )
    called = inspect.signature(made.__call__).parameters.values()
    needed = [
        parameter.name
        for parameter in list(called)[1:]
        if parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    if "state" in needed or not needed:
        raise GraphError(
            f"`name` must be a layer that maps arrays to an array, but {name!r} keeps "
            "a state or is not a layer. To normalise, take 'LayerNorm' or 'GroupNorm'."
        )
    accepted = inspect.signature(made).parameters
    if unknown := sorted(options.keys() - accepted.keys()):
        raise GraphError(
            f"{name} takes the options {', '.join(accepted)}, but got "
            f"{', '.join(unknown)}."
        )
    keyed = name == "Dropout" if keyed is None else keyed
    if rank is None and name == "GroupNorm":
        raise GraphError(
            "`rank` must be given for GroupNorm, whose channels are the first axis of "
            "an item: 3 for images."
        )
    if rank is None:
        digit = re.search(r"([123])d$", name)
        rank = int(digit[1]) + 1 if digit else _RANKS.get(name, 1)
    terminals = tuple("input" if terminal == "x" else terminal for terminal in needed)
    fixed = sorted(
        (key, tuple(value) if isinstance(value, list) else value)
        for key, value in options.items()
    )
    return Layer(
        name=name,
        options=tuple(fixed),
        rank=rank,
        label=label or name.lower(),
        terminals=(*terminals, "key") if keyed else terminals,
        trainable=trainable,
    )


def Linear(dimension: int, *, use_bias: bool = True) -> Layer:
    """Makes a block $W x + b$ over the last axis.

    Args:
        dimension: Size of the output; that of the input is inferred.
        use_bias: Whether there is a $b$.

    Returns:
        The block.

    Raises:
        GraphError: If `dimension` is not a positive integer.
    """
    return layer(
        "Linear", out_features=as_size(dimension, "dimension"), use_bias=use_bias
    )
