"""Graphs: blocks joined by wires of equal name."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp

from ._assembly import assemble
from ._block import AbstractBlock, Connection, GraphError
from ._operation import op
from ._structs import struct_of
from ._wiring import Wiring, added, declared, renamed


Part: TypeAlias = Connection | AbstractBlock | Callable | str


class Graph(AbstractBlock):
    """Blocks joined by wires of equal name.

    Immutable: `graph |= part` and `graph += part` bind the name to a new graph. `|=`
    wires a part by names, `+=` chains it to the newest output. A part is a block that
    was connected, a block, a function, or the name of an operation. Wires that are read
    and never written are the inputs of the graph; those that are written and never
    read, its outputs, with those that `expose` names. A graph is a block, so that
    graphs nest.

    Errors show as soon as parts are added: two writers of a wire, a cycle, an unknown
    terminal; and, wherever the shapes of the inputs are known (`with_shapes`), shapes
    and dtypes that do not fit.

    Attributes:
        wiring: The nodes and the wires between them.
        label: What a node is called unless it gets a name.
        trainable: Whether its arrays are parameters, where its blocks say so.
    """

    wiring: Wiring = eqx.field(static=True)
    label: str = eqx.field(static=True)
    trainable: bool = eqx.field(static=True)

    def __init__(
        self,
        wiring: Wiring | None = None,
        *,
        label: str = "graph",
        trainable: bool = True,
    ):
        """Makes a graph, by default an empty one.

        Args:
            wiring: The nodes and the wires between them.
            label: What a node is called unless it gets a name.
            trainable: Whether its arrays are parameters, where its blocks say so.
        """
        self.wiring = Wiring() if wiring is None else wiring
        self.label = label
        self.trainable = trainable

    @property
    def terminals(self) -> tuple[str, ...]:
        """The inputs: wires that are read and never written."""
        return self.wiring.inputs

    @property
    def results(self) -> tuple[str, ...]:
        """The outputs: wires that are written and never read, or exposed."""
        return self.wiring.outputs

    def __or__(self, part: Part) -> "Graph":
        """Adds a part; a terminal left open becomes an input of the graph.

        Args:
            part: A block that was connected, a block, a function or a name.

        Returns:
            The graph with the part.

        Raises:
            GraphError: If the part does not fit.
        """
        return self._with(added(self.wiring, _connection(part), chain=False))

    def __add__(self, part: Part) -> "Graph":
        """Adds a part whose first open terminal reads the newest output.

        Args:
            part: A block that was connected, a block, a function or a name.

        Returns:
            The graph with the part.

        Raises:
            GraphError: If the part does not fit, or has no open terminal.
        """
        return self._with(added(self.wiring, _connection(part), chain=True))

    def build(self, key, *inputs):
        """Builds all blocks: a graph is a block of another graph."""
        wiring = self.bound(*inputs)
        return assemble(wiring.nodes, wiring.structs, self.terminals, self.results, key)

    def bound(self, *inputs: Any) -> Wiring:
        """Finds the shapes of all wires.

        Args:
            *inputs: The struct of each input.

        Returns:
            The wiring that knows them.

        Raises:
            GraphError: If a shape contradicts a block.
        """
        given = dict(zip(self.terminals, inputs, strict=True))
        return declared(self.wiring, given)

    def with_shapes(self, /, **shapes: Any) -> "Graph":
        """Declares the shapes of wires, from which those of all others follow.

        Args:
            **shapes: For each wire a shape, of the default floating point type, which
                `compile` replaces by that of its backend; its sizes are integers,
                symbols such as `"b"` or expressions such as `"2*n"`. Or a
                `jax.ShapeDtypeStruct`, an array, or a pytree of them.

        Returns:
            The graph that knows the shapes.

        Raises:
            GraphError: If a wire is unknown, or a shape contradicts a block.
        """
        self._check_known("with_shapes", shapes, self.wiring.wires)
        dtype = jnp.result_type(float)
        given = {wire: struct_of(wire, s, dtype) for wire, s in shapes.items()}
        return self._with(declared(self.wiring, given))

    def expose(self, *wires: str) -> "Graph":
        """Makes inner wires outputs too.

        Args:
            *wires: Wires that a node writes.

        Returns:
            The graph with these outputs.

        Raises:
            GraphError: If no node writes a wire.
        """
        self._check_known("expose", wires, self.wiring.writers)
        shown = tuple(dict.fromkeys((*self.wiring.exposed, *wires)))
        return self._with(dataclasses.replace(self.wiring, exposed=shown))

    def rename(self, /, **wires: str) -> "Graph":
        """Gives wires other names, inputs and outputs among them.

        Args:
            **wires: The new name of each wire.

        Returns:
            The graph with these names.

        Raises:
            GraphError: If a wire is unknown, or a new name is taken.
        """
        self._check_known("rename", wires, self.wiring.wires)
        news = list(wires.values())
        for old, new in wires.items():
            taken = new in self.wiring.wires and new not in wires
            if taken or news.count(new) > 1:
                raise GraphError(
                    f"`{old}` must get an unused name, but {new!r} is taken."
                )
        return self._with(renamed(self.wiring, wires))

    def _with(self, wiring: Wiring) -> "Graph":
        return Graph(wiring, label=self.label, trainable=self.trainable)

    def _check_known(self, verb, wires, known) -> None:
        for wire in wires:
            if wire not in known:
                raise GraphError(
                    f"`{verb}` must name wires of the graph, "
                    f"{', '.join(known) or '(none)'}, but got {wire!r}."
                )


def _connection(part: Part) -> Connection:
    if isinstance(part, Connection):
        return part
    return (part if isinstance(part, AbstractBlock) else op(part)).connect()
