"""Graphs to programs: shapes bound, arrays drawn, cast and placed."""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import ShapeDtypeStruct
from jax.sharding import PartitionSpec
from jax.tree_util import DictKey, GetAttrKey, SequenceKey, tree_flatten_with_path
from jaxtyping import Array, Key

from .._checks import instance, one_key
from ..runtime import propose, shardings
from ..runtime._remat import NAMELESS
from ._assembly import Assembly, Frozen, assemble
from ._backend import Backend
from ._block import Connection, GraphError
from ._draw import drawer
from ._evaluation import Source, evaluator
from ._given_values import constant, first_value
from ._graph import Graph, Part
from ._inference import described
from ._layer import KEY_AS_SHAPE, Batched, Keyed, Layer
from ._program import Program
from ._structs import Sizes, agree, is_symbolic, shape_of, struct_of, struct_text
from ._summary import table
from ._wiring import Wiring, check_agrees, declared


def compile(
    graph: Part,
    shapes: Mapping[str, Any] | None = None,
    key: Key[Array, ""] | None = None,
    backend: Backend | None = None,
    *,
    trainable: Mapping[str, Any] | None = None,
    constants: Mapping[str, Any] | None = None,
    discard: Sequence[str] = (),
    inference: bool = False,
    jit: bool | None = None,
    verbose: bool = False,
    shard: Mapping[str, PartitionSpec] | None = None,
    shard_params: Mapping[str, PartitionSpec] | bool | None = None,
    remat: str = "none",
) -> Program:
    """Turns a graph into a program with parameters drawn, cast and placed.

    Nodes that no output needs are left out.

    Args:
        graph: A graph, or a part that would be one alone.
        shapes: The shape of each input, as `Graph.with_shapes` takes it, of the dtype
            of the backend. A size may stay a symbol where no parameter needs it.
        key: For all that is drawn; by default `jax.random.key(0)`.
        backend: Where and how the program runs; by default `Backend()`.
        trainable: Inputs that become parameters, with their first values.
        constants: Inputs that become constants, with their values: arrays, lists of
            numbers, or other trees of arrays.
        discard: Outputs to leave out, with all that they alone need.
        inference: Whether layers are to infer, so that nothing is dropped out.
        jit: Whether to compile; by default as the backend says.
        verbose: Whether to print the table of nodes.
        shard: How the backend's mesh cuts wires, by name.
        shard_params: How it cuts parameters, by regular expressions that are searched
            in their names; True to take what `Program.propose_shardings` proposes.
        remat: What a gradient keeps of each node, a policy of `runtime.remat` without
            names: with `"nothing_saveable"` its inputs alone, from which it runs again.
            A nested graph is one node.

    Returns:
        The program.

    Raises:
        GraphError: If an input has no shape, a name or policy is unknown, or a shape
            does not fit.
        ArgumentError: If a layout does not fit the mesh, or `key` or `backend` is of
            another kind.
    """
    graph = graph if isinstance(graph, Graph) else Graph() | graph
    backend = Backend() if backend is None else backend
    instance(backend, "backend", Backend, "Write `Backend()`, or leave it out.")
    if key is not None:
        key = one_key(key)
    if jit is not None:
        backend = backend.with_jit(jit)
    if remat not in NAMELESS:
        raise GraphError(
            f"`remat` must be one of {', '.join(NAMELESS)}, but is {remat!r}."
        )
    fixed = {w: first_value(w, v, backend) for w, v in (trainable or {}).items()}
    other = {w: constant(w, v, backend) for w, v in (constants or {}).items()}
    outputs = _outputs(graph.wiring, discard)
    wiring = _bound(_needed(graph.wiring, outputs), shapes or {}, fixed, other, backend)
    if verbose:
        sys.stdout.write(f"{table(wiring)}\n")

    def build(key: Key[Array, ""]) -> Assembly:
        built = assemble(wiring.nodes, wiring.structs, wiring.inputs, outputs, key)
        return eqx.nn.inference_mode(built) if inference else built

    skeleton = eqx.filter_eval_shape(build, jr.key(0))
    structs, rest = eqx.partition(skeleton, _is_struct)
    tree = jax.tree.structure(structs)
    found = _arrays(structs, backend)
    _check_arrays(found, tree.num_leaves, {**fixed, **other})
    names = tuple(found)
    mine = {n: a.struct for n, a in found.items() if a.trainable}
    placed = _placements(mine | fixed, backend, shard_params)

    types = {name: array.struct.dtype for name, array in found.items()}
    made = drawer(
        wiring.nodes, wiring.structs, jax.tree.unflatten(tree, names), types,
        dict.fromkeys(names, backend.placement("constants", ())) | placed,
    )  # fmt: skip

    def draw(key: Key[Array, ""]) -> tuple[dict, dict]:
        values = made(key)
        return (
            {name: values[name] for name in names if name in mine},
            {name: values[name] for name in names if name not in mine},
        )

    drawn, buffers = draw(jr.key(0) if key is None else key)
    source = Source(
        rest, tree, names, {n: a.struct for n, a in found.items()} | _shapes(fixed),
        (*fixed, *other), _inputs(wiring, fixed, other),
        _layout(shard or {}, wiring, backend), backend, remat,
    )  # fmt: skip
    forward, pull_back = evaluator(source)
    return Program(
        drawn | {n: jax.device_put(v, placed[n]) for n, v in fixed.items()},
        buffers | other,
        tuple(source.structs),
        outputs,
        backend,
        wiring,
        forward,
        pull_back,
        draw,
    )


class _ArrayOfNode(NamedTuple):
    """An array of a built block: its type in the program, and whether it is trained."""

    struct: ShapeDtypeStruct
    trainable: bool


def _shapes(values: Mapping[str, Any]) -> dict[str, Any]:
    return {wire: shape_of(value) for wire, value in values.items()}


def _is_struct(leaf: Any) -> bool:
    return isinstance(leaf, ShapeDtypeStruct)


def _outputs(wiring: Wiring, discard: Sequence[str]) -> tuple[str, ...]:
    for wire in discard:
        if wire not in wiring.outputs:
            raise GraphError(
                f"`discard` must name outputs, {', '.join(wiring.outputs)}, but got "
                f"{wire!r}."
            )
    outputs = tuple(wire for wire in wiring.outputs if wire not in discard)
    if not outputs:
        raise GraphError(
            "A graph must have an output, but has "
            f"{'none left' if wiring.nodes else 'no nodes'}."
        )
    return outputs


def _needed(wiring: Wiring, outputs: Sequence[str]) -> Wiring:
    """The wiring without nodes that no output needs."""
    needed, nodes = set(outputs), []
    for node in reversed(wiring.nodes):
        if needed & set(node.outputs):
            nodes.insert(0, node)
            needed |= set(node.inputs)
    # A node whose parameters another one shares is built from its own inputs.
    kept = {node.name for node in nodes}
    for name in kept:
        first = wiring.names[name]
        if not any(first is node for node in nodes):
            raise GraphError(
                f"`{name}` takes the shapes of its parameters from its first use, but "
                f"no output needs that: {described(first, wiring.structs)}. Connect "
                "the one that is needed first."
            )
    return dataclasses.replace(
        wiring,
        nodes=tuple(nodes),
        writers={wire: node.name for node in nodes for wire in node.outputs},
        readers={w: n for w, n in wiring.readers.items() if w in needed},
    )


def _bound(
    wiring: Wiring,
    shapes: Mapping[str, Any],
    trainable: Mapping[str, Array],
    constants: Mapping[str, Any],
    backend: Backend,
) -> Wiring:
    """The wiring with the shapes of all wires."""
    given = {"shapes": shapes, "trainable": trainable, "constants": constants}
    seen: dict[str, str] = {}
    for argument, wires in given.items():
        for wire in wires:
            if wire not in wiring.inputs and not (
                argument == "shapes" and wire in wiring.wires
            ):
                raise GraphError(
                    f"`{argument}` must name inputs of the graph, "
                    f"{', '.join(wiring.inputs)}, but got {wire!r}."
                )
            if wire in seen:
                raise GraphError(
                    f"`{wire}` must be in only one of `shapes`, `trainable` and "
                    f"`constants`, but is in {seen[wire]} and {argument}."
                )
            seen[wire] = argument
    dtype = jnp.dtype(backend.dtype)
    default = jnp.result_type(float)
    wanted = {w: _retyped(s, default, dtype) for w, s in wiring.declared.items()}
    known = {wire: s for wire, s in wanted.items() if wire in wiring.wires}
    known |= {wire: struct_of(wire, s, dtype) for wire, s in shapes.items()}
    known |= _shapes({**trainable, **constants})
    sizes = Sizes()
    for wire, struct in known.items():
        before = wiring.declared.get(wire)
        # What comes with the declared type itself keeps it.
        if not agree(struct, before):
            check_agrees(wire, wanted.get(wire), struct, "")
        if before is not None:
            sizes.bind(wire, before, struct)
    known = {wire: sizes.resolved(struct) for wire, struct in known.items()}
    for wire in wiring.inputs:
        if wire not in known:
            reader = next(node for node in wiring.nodes if wire in node.inputs)
            terminal = reader.block.terminals[reader.inputs.index(wire)]
            drawn = isinstance(reader.block, Layer) and terminal == "key"
            remedy = f" {KEY_AS_SHAPE}" if drawn else ""
            raise GraphError(
                f"`{wire}` is dangling: no node writes it, and `shapes` has no shape "
                f"for it, but {described(reader, wiring.structs)} reads it. The inputs "
                f"are {', '.join(wiring.inputs)}.{remedy}"
            )
    if dtype != default:
        wiring = _retyped_wiring(wiring, default, dtype)
    return declared(dataclasses.replace(wiring, declared={}), known)


def _retyped(struct: Any, old: Any, new: Any) -> Any:
    """Puts one dtype in place of another in a struct or a pytree of them."""

    def retype(leaf):
        if not _is_struct(leaf) or leaf.dtype != old:
            return leaf
        return ShapeDtypeStruct(leaf.shape, new)

    return jax.tree.map(retype, struct)


def _retyped_wiring(wiring: Wiring, old: Any, new: Any) -> Wiring:
    """The wiring with another dtype of arrays and declared wires, in each graph."""
    return dataclasses.replace(
        wiring,
        nodes=tuple(_retyped_node(node, old, new) for node in wiring.nodes),
        declared={w: _retyped(s, old, new) for w, s in wiring.declared.items()},
        structs={},
        dtype=_real(new),
    )


def _retyped_node(node: Connection, old: Any, new: Any) -> Connection:
    """The node with another dtype in a graph in it."""
    block = node.block
    if not isinstance(block, Graph):
        return node
    wiring = _retyped_wiring(block.wiring, old, new)
    graph = Graph(wiring, label=block.label, trainable=block.trainable)
    return Connection(graph, node.name, node.inputs, node.outputs)


def _real(dtype: Any) -> np.dtype:
    """The dtype of real arrays in a program of a real or complex dtype."""
    return jnp.finfo(dtype).dtype


def _arrays(structs: Assembly, backend: Backend) -> dict[str, _ArrayOfNode]:
    """The arrays of built blocks by name, in the order of the tree."""
    found = {}
    for path, struct in tree_flatten_with_path(structs)[0]:
        parts: list[str] = []
        place: Any = structs
        trainable = True
        for key in path:
            if isinstance(key, GetAttrKey):
                if not isinstance(place, (Assembly, Frozen, Batched, Keyed)):
                    parts.append(key.name)
                trainable &= not isinstance(place, Frozen)
                place = getattr(place, key.name)
            elif isinstance(key, (DictKey, SequenceKey)):
                index = key.key if isinstance(key, DictKey) else key.idx
                parts.append(str(index))
                place = place[index]
            else:
                parts.append(str(key).strip("[].<>"))
        if jnp.issubdtype(struct.dtype, jnp.floating):
            struct = ShapeDtypeStruct(struct.shape, _real(backend.dtype))
        trainable &= jnp.issubdtype(struct.dtype, jnp.inexact)
        found[".".join(parts)] = _ArrayOfNode(struct, bool(trainable))
    return found


def _check_arrays(
    found: Mapping[str, _ArrayOfNode], count: int, given: Mapping[str, Any]
) -> None:
    for name, array in found.items():
        if name in given:
            raise GraphError(
                f"`{name}` must not be the name of an input and of an array of a node. "
                "Rename the wire."
            )
        if is_symbolic(array.struct):
            raise GraphError(
                f"`{name}` must have sizes that are numbers, but has shape "
                f"{struct_text(array.struct)}. Give them in `shapes`."
            )
    if len(found) != count:
        raise GraphError(
            "Each array of a node must have a name of its own, but two have one of "
            f"{', '.join(found)}. Give the nodes names without '.'."
        )


def _placements(
    params: Mapping[str, Any],
    backend: Backend,
    rules: Mapping[str, PartitionSpec] | bool | None,
) -> dict[str, Any]:
    if backend.mesh is None:
        if rules:
            raise GraphError(
                "`shard_params` needs a mesh, but the backend has none. Give "
                "`Backend(mesh=...)`."
            )
        return {name: backend.placement(name, ()) for name in params}
    if rules is True:
        rules = propose(dict(params), backend.mesh)
    return shardings(dict(params), backend.mesh, rules or {})


def _inputs(wiring: Wiring, *given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        wire: wiring.structs[wire]
        for wire in wiring.inputs
        if not any(wire in values for values in given)
    }


def _layout(
    shard: Mapping[str, PartitionSpec], wiring: Wiring, backend: Backend
) -> dict[str, PartitionSpec]:
    for wire, spec in shard.items():
        if wire not in wiring.wires:
            raise GraphError(
                f"`shard` must name wires of the graph, {', '.join(wiring.wires)}, but "
                f"got {wire!r}."
            )
        struct = wiring.structs[wire]
        if not is_symbolic(struct):
            backend.placement(wire, struct.shape, spec)
    return dict(shard)
