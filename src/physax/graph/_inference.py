"""Which shapes follow from those of the inputs: blocks are traced, never run."""

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.tree_util import PyTreeDef
from jaxtyping import PyTree

from .._checks import ArgumentError
from .._written_for_jax import written_for_jax
from ._block import Connection, GraphError, results_of
from ._structs import struct_text


def inferred(
    nodes: Iterable[Connection],
    structs: Mapping[str, Any],
    dtype: np.dtype | None = None,
) -> dict:
    """Returns the shapes of all wires that follow from some.

    Args:
        nodes: The nodes, each after those that it reads.
        structs: Known wires.
        dtype: As of `infer`.

    Returns:
        `structs` and what follows.

    Raises:
        GraphError: If a block refuses its inputs.
    """
    structs = dict(structs)
    names: dict[str, Connection] = {}
    for node in nodes:
        infer(node, structs, names.setdefault(node.name, node), dtype)
    return structs


def infer(
    node: Connection,
    structs: dict[str, Any],
    first: Connection,
    dtype: np.dtype | None,
) -> None:
    """Adds the outputs of a node to the known wires, if its inputs are known.

    Args:
        node: The node.
        structs: Known wires; extended.
        first: The first node of its name, whose parameters it uses.
        dtype: Of real arrays of blocks; `None` leaves them as they are built.

    Raises:
        GraphError: If the block refuses its inputs.
    """
    if any(wire not in structs for wire in (*node.inputs, *first.inputs)):
        return
    inputs = tuple(structs[wire] for wire in node.inputs)
    built = tuple(structs[wire] for wire in first.inputs)
    try:
        outputs = by_value(_traced, (first.block, built, inputs), dtype)
    except ArgumentError as error:
        raise GraphError(f"{described(node, structs)}: {error}") from error.__cause__
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        reason = (str(error).strip() or "without a message").splitlines()[0]
        if node is not first and built != inputs:
            raise GraphError(
                f"{described(node, structs)} has parameters already, from its first "
                f"use, {described(first, structs)}, which do not fit these inputs. "
                f"Give one of them another name ({type(error).__name__}: {reason})"
            ) from error
        raise GraphError(
            f"{described(node, structs)} must accept inputs of these shapes, but "
            f"raises {type(error).__name__}: {reason}"
        ) from error
    structs.update(zip(node.outputs, outputs, strict=True))


def by_value(remembering: Any, subject: PyTree, *others: Any) -> Any:
    """Calls a function that remembers its results: networks repeat layers.

    Args:
        remembering: Made by `functools.lru_cache`. Takes the structure of the subject,
            its leaves, their types (1, 1.0 and True are equal), the default type of
            real numbers, and `others`.
        subject: A pytree. Where it can't be hashed, nothing is remembered.
        *others: Further arguments.

    Returns:
        What the function returns.
    """
    leaves, tree = jax.tree.flatten(subject)
    kinds = tuple(map(type, leaves))
    key = (tree, tuple(leaves), kinds, jnp.result_type(float), *others)
    try:
        return remembering(*key)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
    return remembering.__wrapped__(*key)


@functools.lru_cache(maxsize=4096)
def _traced(
    tree: PyTreeDef,
    leaves: tuple,
    kinds: tuple,
    real: np.dtype,
    dtype: np.dtype | None,
) -> tuple:
    del kinds, real
    block, built, inputs = jax.tree.unflatten(tree, leaves)

    def cast(leaf):
        real = eqx.is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.floating)
        return leaf.astype(dtype) if real else leaf

    def run(values):
        with written_for_jax(block.label):
            function = block.build(jr.key(0), *built)
            if dtype is not None:
                function = jax.tree.map(cast, function)
            found = function(*values)
        return results_of(found, block.results, block.label)

    return eqx.filter_eval_shape(run, inputs)


def described(node: Connection, structs: Mapping[str, Any]) -> str:
    """Shows a node with its terminals, wires and shapes on one line.

    Args:
        node: The node.
        structs: Known wires.

    Returns:
        As in `mm(a=x:[3,4], b=y:[5,6]) -> z:?`.
    """
    reads = ", ".join(
        f"{terminal}={wire}:{struct_text(structs.get(wire))}"
        for terminal, wire in zip(node.block.terminals, node.inputs, strict=True)
    )
    writes = ", ".join(
        f"{wire}:{struct_text(structs.get(wire))}" for wire in node.outputs
    )
    return f"{node.name}({reads}) -> {writes}"
