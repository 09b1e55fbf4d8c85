"""Nodes joined by wires of equal name: adding one, and what is wrong with it."""

import dataclasses
import graphlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import numpy as np

from ._block import AbstractBlock, Connection, GraphError
from ._inference import infer, inferred
from ._structs import agree, struct_text


@dataclasses.dataclass(frozen=True, eq=False)
class Wiring:
    """The nodes of a graph and the wires between them.

    No pytree: an Equinox module looks at each of its leaves whenever it is made, which
    would make a chain of parts cost the square of its length.

    Attributes:
        nodes: The connected blocks, each after those whose outputs it reads.
        declared: Shapes of wires as they were given.
        structs: Shapes of all wires that are known.
        exposed: Wires that are outputs although they are read.
        newest: The wire that the next part in a chain reads.
        writers: The node that writes each wire.
        readers: A node that reads each wire.
        names: The first node of each name; later ones share its parameters.
        dtype: Of real arrays of the blocks, once it is known from a backend whose dtype
            is not the default one.
    """

    nodes: tuple[Connection, ...] = ()
    declared: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    structs: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    exposed: tuple[str, ...] = ()
    newest: str = ""
    writers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    readers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    names: Mapping[str, Connection] = dataclasses.field(default_factory=dict)
    dtype: np.dtype | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The wires that are read and never written."""
        return tuple(wire for wire in self.readers if wire not in self.writers)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The wires that are written and never read, and those that are exposed."""
        return tuple(
            wire
            for wire in self.writers
            if wire not in self.readers or wire in self.exposed
        )

    @property
    def wires(self) -> tuple[str, ...]:
        """All wires."""
        return tuple({**self.readers, **self.writers})


def added(wiring: Wiring, part: Connection, *, chain: bool) -> Wiring:
    """Adds a node.

    Args:
        wiring: What is there.
        part: The block with its wires; "" where open.
        chain: Whether the first open terminal reads the newest wire.

    Returns:
        The wiring with the node.

    Raises:
        GraphError: If the node does not fit.
    """
    node = _placed(wiring, part, chain)
    _check_writers(wiring, node)
    name = node.name
    nodes, backward = _ordered(wiring, node)
    names = wiring.names if name in wiring.names else {**wiring.names, name: node}
    read = {wire: name for wire in node.inputs if wire not in wiring.readers}
    if backward:
        given = {
            wire: struct
            for wire, struct in wiring.declared.items()
            if wire not in wiring.writers and wire not in node.outputs
        }
        structs = {**wiring.declared, **inferred(nodes, given, wiring.dtype)}
    else:
        structs = dict(wiring.structs)
        infer(node, structs, names[name], wiring.dtype)
    for wire in node.outputs:
        check_agrees(wire, wiring.declared.get(wire), structs.get(wire), name)
    return dataclasses.replace(
        wiring,
        nodes=nodes,
        structs=structs,
        newest=node.outputs[-1],
        writers={**wiring.writers, **dict.fromkeys(node.outputs, name)},
        readers={**wiring.readers, **read},
        names=names,
    )


def declared(wiring: Wiring, shapes: Mapping[str, Any]) -> Wiring:
    """Declares shapes of wires and infers the others.

    Args:
        wiring: The nodes.
        shapes: The struct of each wire.

    Returns:
        The wiring that knows them.

    Raises:
        GraphError: If a shape contradicts a node.
    """
    for wire, struct in shapes.items():
        check_agrees(wire, wiring.declared.get(wire), struct, "")
    given = {**wiring.declared, **shapes}
    inputs = {wire: s for wire, s in given.items() if wire not in wiring.writers}
    structs = inferred(wiring.nodes, inputs, wiring.dtype)
    for wire, struct in given.items():
        check_agrees(wire, struct, structs.get(wire), wiring.writers.get(wire, ""))
    return dataclasses.replace(wiring, declared=given, structs={**given, **structs})


def renamed(wiring: Wiring, wires: Mapping[str, str]) -> Wiring:
    """Gives wires other names.

    Args:
        wiring: The nodes.
        wires: The new name of each old one.

    Returns:
        The wiring with the new names.
    """

    def named(wire: str) -> str:
        return wires.get(wire, wire)

    def keys(table: Mapping[str, Any]) -> dict[str, Any]:
        return {named(wire): value for wire, value in table.items()}

    nodes = tuple(
        Connection(
            node.block,
            node.name,
            tuple(map(named, node.inputs)),
            tuple(map(named, node.outputs)),
        )
        for node in wiring.nodes
    )
    names: dict[str, Connection] = {}
    for node in nodes:
        names.setdefault(node.name, node)
    return Wiring(
        nodes,
        keys(wiring.declared),
        keys(wiring.structs),
        tuple(map(named, wiring.exposed)),
        named(wiring.newest),
        keys(wiring.writers),
        keys(wiring.readers),
        names,
        wiring.dtype,
    )


def check_agrees(wire: str, wanted: Any, found: Any, writer: str) -> None:
    """Refuses a wire whose shape is not the declared one.

    Args:
        wire: Its name.
        wanted: The declared struct, or None.
        found: What it is, or None if unknown.
        writer: The node that writes it; "" for an input.

    Raises:
        GraphError: If the two differ.
    """
    if wanted is None or found is None or agree(found, wanted):
        return
    who = f"`{writer}` writes" if writer else "it gets"
    raise GraphError(
        f"`{wire}` must have shape {struct_text(wanted, found)}, but {who} "
        f"{struct_text(found, wanted)}."
    )


def _placed(wiring: Wiring, part: Connection, chain: bool) -> Connection:
    block, label = part.block, part.block.label
    if not block.results:
        raise GraphError(f"`{part.name or label}` must have a result, but has none.")
    name = part.name or _unused(label, wiring.names)
    if part.name:
        _check_name(wiring, part.name, block)
    inputs = list(part.inputs)
    if chain and wiring.nodes:
        if "" not in inputs:
            raise GraphError(
                f"`{name}` must have an open terminal to be chained by `+=`, but "
                f"its terminals, {', '.join(block.terminals) or 'none'}, all read "
                "wires. Add it by `|=`."
            )
        inputs[inputs.index("")] = wiring.newest
    mine = set(inputs)

    def free(wire: str) -> bool:
        return not (wire in wiring.readers or wire in wiring.writers or wire in mine)

    for place, terminal in enumerate(block.terminals):
        if not inputs[place]:
            inputs[place] = terminal if free(terminal) else f"{name}.{terminal}"
    mine |= {*inputs, *part.outputs}
    outputs = list(part.outputs)
    for place, result in enumerate(block.results):
        if not outputs[place]:
            wire = name if len(block.results) == 1 else f"{name}.{result}"
            outputs[place] = wire if free(wire) else f"{wire}.{result}"
    for wire in (*inputs, *outputs):
        if not wire or wire == "self":
            raise GraphError(f"A wire must have a name, not 'self', but has {wire!r}.")
    return Connection(block, name, tuple(inputs), tuple(outputs))


def _unused(label: str, names: Mapping[str, Connection]) -> str:
    name, count = label, 0
    while name in names:
        count += 1
        name = f"{label}_{count}"
    return name


def _check_name(wiring: Wiring, name: str, block: AbstractBlock) -> None:
    if "." in name:
        raise GraphError(f"The name of a node must not contain '.', but is {name!r}.")
    if name not in wiring.names:
        return
    other = wiring.names[name].block
    if other is not block and not bool(eqx.tree_equal(other, block)):
        raise GraphError(
            "Nodes of one name share their parameters and must have the same block, "
            f"but `{name}` already names a different block ({other.label}). Choose "
            "another name."
        )


def _check_writers(wiring: Wiring, node: Connection) -> None:
    mine: dict[str, str] = {}
    for wire, result in zip(node.outputs, node.block.results, strict=True):
        here = f"{result} of `{node.name}`"
        writer = wiring.writers.get(wire)
        other = mine.setdefault(wire, here) if writer is None else f"`{writer}`"
        if other != here:
            raise GraphError(
                f"`{wire}` must have one writer, but {other} writes it "
                f"(shape {struct_text(wiring.structs.get(wire))}) and so does {here}."
            )


def _ordered(wiring: Wiring, node: Connection) -> tuple[tuple[Connection, ...], bool]:
    """The nodes with a new one, and whether an earlier node reads what it writes."""
    nodes = (*wiring.nodes, node)
    if not any(w in wiring.readers or w in node.inputs for w in node.outputs):
        return nodes, False
    writers = {w: place for place, n in enumerate(nodes) for w in n.outputs}
    before = {
        place: [writers[w] for w in n.inputs if w in writers]
        for place, n in enumerate(nodes)
    }
    try:
        order = tuple(graphlib.TopologicalSorter(before).static_order())
    except graphlib.CycleError as error:
        raise GraphError(_cycle(wiring, nodes, error.args[1])) from None
    return tuple(nodes[place] for place in order), True


def _cycle(wiring: Wiring, nodes: Sequence[Connection], places: Sequence[int]) -> str:
    steps = []
    for place, following in itertools.pairwise(places):
        reader = nodes[following]
        wire = next(w for w in nodes[place].outputs if w in reader.inputs)
        terminal = reader.block.terminals[reader.inputs.index(wire)]
        shape = struct_text(wiring.structs.get(wire))
        steps.append(f"{wire}:{shape} into {terminal} of `{reader.name}`")
    return (
        f"A graph must have no cycle, but `{nodes[places[0]].name}` writes "
        f"{', which writes '.join(steps)}."
    )
