"""Graphs and their parameters as files: data, from which nothing is run."""

import os
from collections.abc import Mapping
from typing import Any

import jax
from jax import ShapeDtypeStruct, export

from .._checks import ArgumentError
from ..graph import (
    MLP,
    AbstractBlock,
    Connection,
    FourierFeatures,
    Graph,
    GraphError,
    Layer,
    Operation,
    layer,
    op,
    saved_operation,
)
from ._errors import PhysaxFileError
from ._npz import load_npz, save_npz


_FORMAT = "physax-graph"
_SCHEMA = 1


def save_graph(
    path: str | os.PathLike,
    graph: Graph,
    params: Mapping[str, jax.Array] | None = None,
) -> None:
    """Saves a graph, and parameters of a program of it, as one file.

    The file appears whole or not at all. `np.load` opens it too.

    Args:
        path: The file, by custom `*.npz`.
        graph: The graph. Its blocks are layers, perceptrons, graphs, and operations by
            name: functions and modules of your own have to be registered by
            `register_op`.
        params: Parameters, such as `Program.params`.

    Raises:
        ArgumentError: If a block can't be saved. The message names the node.
        OSError: If the file cannot be written.
    """
    content = {"format": _FORMAT, "schema": _SCHEMA, "graph": _graph(graph, "")}
    save_npz(path, content | {"params": dict(params or {})})


def load_graph(path: str | os.PathLike) -> tuple[Graph, dict[str, jax.Array]]:
    """Loads what `save_graph` saved.

    Nothing in the file is run: blocks are of four kinds, layers are those of
    `equinox.nn`, and operations come from a fixed list or were registered under their
    names by this program.

    Args:
        path: The file.

    Returns:
        The graph, to be compiled, and the parameters, to be given to
        `Program.evaluate`.

    Raises:
        PhysaxFileError: If the file is damaged or of a newer version, or needs a block
            or an operation that is unknown here.
    """
    content = load_npz(path)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise PhysaxFileError(path, "It holds no graph: it is not by `save_graph`.")
    if content["schema"] != _SCHEMA:
        raise PhysaxFileError(
            path,
            f"Its schema must be {_SCHEMA}, but is {content['schema']}: it is of "
            "another version of physax. Update physax.",
        )
    try:
        return _made_graph(content["graph"]), content["params"]
    except (GraphError, KeyError, TypeError, ValueError) as error:
        raise PhysaxFileError(path, f"It holds no sound graph: {error}") from error


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
        kept = {"name": block.name, "options": dict(block.options), "rank": block.rank}
    elif isinstance(block, MLP):
        sizes = (block.input_size, *block.hidden_sizes, block.output_size)
        kept = {"sizes": sizes, "activation": block.activation}
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
    sizes = [str(n) if export.is_symbolic_dim(n) else int(n) for n in struct.shape]
    return {"shape": sizes, "dtype": struct.dtype.name}


def _made_graph(content: dict[str, Any]) -> Graph:
    made = Graph(label=content["label"], trainable=content["trainable"])
    for node in content["nodes"]:
        block = _made_block(node["block"])
        wires = tuple(node["inputs"]), tuple(node["outputs"])
        made |= Connection(block, node["name"], *wires)
    shapes = {
        wire: _made_struct(struct["shape"], struct["dtype"])
        for wire, struct in content["declared"].items()
    }
    return made.with_shapes(**shapes).expose(*content["exposed"])


def _made_struct(sizes: list, dtype: str) -> ShapeDtypeStruct:
    # Any graph makes symbols of its own names.
    known = Graph() | op("negative").connect(x="x")
    struct = known.with_shapes(x=tuple(sizes)).wiring.declared["x"]
    return ShapeDtypeStruct(struct.shape, dtype)


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
        keyed = content["terminals"][-1] == "key"
        return layer(
            content["name"],
            rank=content["rank"],
            keyed=keyed,
            **shared,
            **content["options"],
        )
    if kind == "MLP":
        first, *hidden, last = content["sizes"]
        return MLP(first, tuple(hidden), last, content["activation"], **shared)
    if kind == "FourierFeatures":
        return FourierFeatures(content["count"], content["scale"], **shared)
    raise GraphError(
        "A block must be a Graph, Operation, Layer, MLP or FourierFeatures, but is a "
        f"{kind!r}."
    )
