"""Graphs and their parameters as files: data, from which nothing is run."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax import ShapeDtypeStruct, export

from .._checks import ArgumentError
from ..graph import (
    MLP,
    AbstractBlock,
    Circuit,
    Connection,
    FourierFeatures,
    Graph,
    GraphError,
    Layer,
    Operation,
    layer,
    op,
    saved_operation,
    struct_of,
)
from ._errors import PhysaxFileError
from ._npz import load_npz, save_npz


_FORMAT = "physax-graph"
_SCHEMA = 1
# What a file with changed content may lead to.
_UNSOUND = (
    GraphError,
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    RecursionError,
)


def save_graph(
    path: str | os.PathLike,
    graph: Graph,
    params: Mapping[str, jax.Array] | None = None,
    constants: Mapping[str, jax.Array] | None = None,
) -> None:
    """Saves a graph, and the arrays of a program of it, as one file.

    The file appears whole or not at all. `np.load` opens it too.

    Args:
        path: The file, by custom `*.npz`.
        graph: The graph. Its blocks are layers, perceptrons, graphs, and operations by
            name: functions and modules of your own have to be registered by
            `register_op`.
        params: Parameters, such as `Program.params`.
        constants: Such as `Program.constants`: what was drawn or given and is not
            trained. Without them they are drawn again, from the key of `compile`.

    Raises:
        ArgumentError: If a block can't be saved. The message names the node.
        OSError: If the file cannot be written.
    """
    content = {"format": _FORMAT, "schema": _SCHEMA, "graph": _graph(graph, "")}
    arrays = {"params": dict(params or {}), "constants": dict(constants or {})}
    save_npz(path, content | arrays)


def load_graph(
    path: str | os.PathLike,
) -> tuple[Graph, dict[str, jax.Array], dict[str, jax.Array]]:
    """Loads what `save_graph` saved.

    Nothing in the file is run: blocks are of six kinds, layers are those of
    `equinox.nn`, and operations come from a fixed list or were registered under their
    names by this program.

    Args:
        path: The file.

    Returns:
        The graph, to be compiled, its parameters, and its constants, both for
        `Program.with_arrays`. Inputs that were compiled as `constants` or `trainable`
        have to be so again, with the arrays of their names as values.

    Raises:
        PhysaxFileError: If the file is damaged or of a newer version, or needs a block
            or an operation that is unknown here.
    """
    content = load_npz(path)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise PhysaxFileError(
            path, "It must hold a graph by `save_graph`, but does not."
        )
    if content.get("schema") != _SCHEMA:
        raise PhysaxFileError(
            path,
            f"Its schema must be {_SCHEMA}, but is {content.get('schema')}: it is of "
            "another version of physax. Update physax.",
        )
    try:
        made = _made_graph(content["graph"])
        return made, _arrays(content["params"]), _arrays(content["constants"])
    except _UNSOUND as error:
        raise PhysaxFileError(
            path, f"It does not hold a valid graph: {error}"
        ) from error


def _graph(graph: Graph, where: str) -> dict[str, Any]:
    wiring = graph.wiring
    return {
        "label": graph.label,
        "trainable": graph.trainable,
        "nodes": [
            {
                "name": node.name,
                "inputs": node.inputs,
                "outputs": node.outputs,
                "block": _block(node.block, f"{where}{node.name}"),
            }
            for node in wiring.nodes
        ],
        "declared": {
            wire: _struct(struct, f"{where}{wire}")
            for wire, struct in wiring.declared.items()
        },
        "exposed": wiring.exposed,
        "newest": wiring.newest,
    }


def _block(block: AbstractBlock, where: str) -> dict[str, Any]:
    if isinstance(block, Graph):
        return {"kind": "Graph", **_graph(block, f"{where}.")}
    if isinstance(block, Operation):
        if block.source is None:
            raise ArgumentError(
                f"`{where}` must be an operation with a name to be saved, but is "
                f"{block.label}. Register the function by `register_op` and add it by "
                "its name."
            )
        name, options = block.source
        saved_operation(name)
        kept = {"name": name, "options": dict(options), "results": block.results}
    elif isinstance(block, Layer):
        for name, value in block.options:
            if not isinstance(value, (bool, int, float, str, tuple, type(None))):
                raise ArgumentError(
                    f"The option `{name}` of `{where}` must be a number, a string or a "
                    f"tuple to be saved, but is {value!r}. An activation may be given "
                    "by its name."
                )
        kept = {"name": block.name, "options": dict(block.options), "rank": block.rank}
    elif isinstance(block, MLP):
        sizes = (block.input_size, *block.hidden_sizes, block.output_size)
        kept = {"sizes": sizes, "activation": block.activation}
    elif isinstance(block, Circuit):
        kept = {"joins": dict(block.joins), "ports": dict(block.ports)}
    elif isinstance(block, FourierFeatures):
        kept = {"count": block.count, "scale": block.scale}
    else:
        raise ArgumentError(
            f"`{where}` must be a layer, a perceptron, a graph or an operation to be "
            f"saved, but is a {type(block).__name__}."
        )
    return {
        "kind": type(block).__name__,
        "label": block.label,
        "terminals": block.terminals,
        "trainable": block.trainable,
        **kept,
    }


def _struct(struct: Any, where: str) -> dict[str, Any]:
    if not isinstance(struct, ShapeDtypeStruct):
        raise ArgumentError(
            f"The declared shape of `{where}` must be that of an array to be saved, "
            f"but is of a {type(struct).__name__}."
        )
    if not isinstance(struct.dtype, np.dtype):
        raise ArgumentError(
            f"The declared shape of `{where}` must be that of numbers to be saved, but "
            f"is of {struct.dtype}. Declare it when you compile."
        )
    sizes = [str(n) if export.is_symbolic_dim(n) else int(n) for n in struct.shape]
    return {"shape": sizes, "dtype": struct.dtype.name}


def _made_graph(content: dict[str, Any]) -> Graph:
    made = Graph(label=content["label"], trainable=content["trainable"])
    # Nodes of one name have one block.
    blocks: dict[str, tuple[dict, AbstractBlock]] = {}
    for node in content["nodes"]:
        described, block = blocks.get(node["name"], ({}, None))
        if block is None or described != node["block"]:
            block = _made_block(node["block"])
            blocks[node["name"]] = (node["block"], block)
        wires = tuple(node["inputs"]), tuple(node["outputs"])
        made |= Connection(block, node["name"], *wires)
    shapes = {
        wire: _made_struct(struct["shape"], struct["dtype"])
        for wire, struct in content["declared"].items()
    }
    made = made.with_shapes(**shapes).expose(*content["exposed"])
    if content["newest"] not in made.wiring.writers:
        raise GraphError(f"No node writes the newest wire, {content['newest']!r}.")
    wiring = dataclasses.replace(made.wiring, newest=content["newest"])
    return Graph(wiring, label=made.label, trainable=made.trainable)


def _arrays(found: Any) -> dict[str, jax.Array]:
    good = isinstance(found, dict) and all(
        isinstance(array, jax.Array) for array in found.values()
    )
    if not good:
        raise GraphError("Parameters and constants must be arrays by name.")
    return found


def _made_struct(sizes: list, dtype: str) -> ShapeDtypeStruct:
    return struct_of("a wire of the file", tuple(sizes), np.dtype(dtype))


def _made_block(content: dict[str, Any]) -> AbstractBlock:
    kind = content["kind"]
    if kind == "Graph":
        return _made_graph(content)
    shared = {"label": content["label"], "trainable": content["trainable"]}
    if kind == "Operation":
        saved_operation(content["name"])
        return op(
            content["name"],
            inputs=content["terminals"],
            outputs=content["results"],
            **shared,
            **content["options"],
        )
    if kind == "Layer":
        for name in ("activation", "final_activation"):
            if name in content["options"]:
                saved_operation(content["options"][name])
        keyed = content["terminals"][-1] == "key"
        return layer(
            content["name"],
            rank=content["rank"],
            keyed=keyed,
            **shared,
            **content["options"],
        )
    if kind == "MLP":
        saved_operation(content["activation"])
        first, *hidden, last = content["sizes"]
        return MLP(first, tuple(hidden), last, content["activation"], **shared)
    if kind == "Circuit":
        parts = content["terminals"]
        return Circuit(parts, content["joins"], content["ports"], content["label"])
    if kind == "FourierFeatures":
        return FourierFeatures(content["count"], content["scale"], **shared)
    raise GraphError(
        "A block must be a Graph, Circuit, Operation, Layer, MLP or FourierFeatures, "
        f"but is a {kind!r}."
    )
