"""Blocks: what can be wired into a graph."""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import equinox as eqx
from jaxtyping import Array, Key

from .._checks import ArgumentError


class GraphError(ArgumentError):
    """A graph is wired wrongly. Names the node, its terminals and their shapes."""


class AbstractBlock(eqx.Module):
    """Anything that can be wired into a graph. Its sizes may wait for its inputs.

    Attributes:
        label: What a node is called unless it gets a name.
        terminals: Names of the inputs, in the order of the arguments.
        results: Names of the outputs.
        trainable: Whether the arrays of the block are parameters. Otherwise they are
            constants.
    """

    label: eqx.AbstractVar[str]
    terminals: eqx.AbstractVar[tuple[str, ...]]
    results: eqx.AbstractVar[tuple[str, ...]]
    trainable: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def build(self, key: Key[Array, ""], *inputs: Any) -> Callable:
        """Makes the callable for inputs of known shapes, its arrays included.

        Args:
            key: For arrays that are drawn.
            *inputs: A `jax.ShapeDtypeStruct` for each terminal, or a pytree of them.

        Returns:
            What takes the inputs by position and returns the output, or a tuple or a
            dict of several outputs.
        """

    def __call__(self, *inputs: Any, **wires: Any) -> NoReturn:
        """Raises: a block is wired by `connect` and run by `compile`.

        Args:
            *inputs: What it was called with.
            **wires: What it was called with by name.

        Raises:
            GraphError: Always.
        """
        del inputs, wires
        example = ", ".join(f"{terminal}='...'" for terminal in self.terminals[:2])
        raise GraphError(
            f"`{self.label}` must be wired by `connect({example})` and run by "
            "`compile`, but was called. A block is not a function."
        )

    def connect(
        self,
        /,
        *,
        name: str = "",
        output: str | Sequence[str] = (),
        **wires: str,
    ) -> "Connection":
        """Wires terminals by name: `Linear(64).connect(input="x", output="h")`.

        Args:
            name: Of the node; by default its label. A block that is connected twice
                under one name shares its parameters.
            output: The wires that it writes, in the order of its results.
            **wires: The wire of each terminal or result. A block of one terminal takes
                `input`, whatever the terminal is called. What is not named stays open:
                a terminal becomes an input of the graph, a result is called after the
                node.

        Returns:
            The block with its wires, ready to be added to a graph.

        Raises:
            GraphError: If a terminal or a result is unknown, or written twice.
        """
        if len(self.terminals) == 1 and "input" in wires:
            wires.setdefault(self.terminals[0], wires["input"])
            if self.terminals[0] != "input":
                del wires["input"]
        known = (*self.terminals, *self.results)
        for wire in wires:
            if wire not in known:
                raise GraphError(
                    f"`{name or self.label}` has the terminals "
                    f"{', '.join(self.terminals) or '(none)'} and the results "
                    f"{', '.join(self.results)}, but got {wire!r}."
                )
        if isinstance(output, str) and "output" in self.results:
            wires.setdefault("output", output)
            output = ()
        outputs = [output] if isinstance(output, str) else list(output)
        if len(outputs) > len(self.results):
            raise GraphError(
                f"`{name or self.label}` has {len(self.results)} results, "
                f"{', '.join(self.results)}, but `output` names {len(outputs)}: "
                f"{', '.join(outputs)}."
            )
        outputs += [""] * (len(self.results) - len(outputs))
        for place, result in enumerate(self.results):
            if result in wires and result not in self.terminals:
                if outputs[place]:
                    raise GraphError(
                        f"`{name or self.label}` must write {result} to one wire, but "
                        f"got {outputs[place]!r} and {wires[result]!r}."
                    )
                outputs[place] = wires[result]
        inputs = tuple(wires.get(terminal, "") for terminal in self.terminals)
        return Connection(self, name, inputs, tuple(outputs))


class Connection(eqx.Module):
    """A block and the wires that it reads and writes; "" where that is still open.

    Attributes:
        block: The block.
        name: Of the node in the graph; "" to be called after the label.
        inputs: The wire of each terminal.
        outputs: The wire of each result.
    """

    block: AbstractBlock
    name: str = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    outputs: tuple[str, ...] = eqx.field(static=True)


def results_of(value: Any, results: tuple[str, ...], node: str) -> tuple:
    """Splits what a block returned into its results.

    Args:
        value: The value, or a tuple, list or dict of values where there are several
            results.
        results: The names of the results.
        node: The node that returned it, for the message.

    Returns:
        The values in the order of `results`.

    Raises:
        GraphError: If there are not as many, or a name is missing.
    """
    if len(results) == 1:
        if isinstance(value, Mapping) and tuple(value) == results:
            return tuple(value.values())
        return (value,)
    if isinstance(value, Mapping):
        missing = [result for result in results if result not in value]
        if not missing:
            return tuple(value[result] for result in results)
        raise GraphError(
            f"`{node}` must return the results {', '.join(results)}, but returns "
            f"{', '.join(map(str, value))}."
        )
    if not isinstance(value, (tuple, list)) or len(value) != len(results):
        count = len(value) if isinstance(value, (tuple, list)) else 1
        raise GraphError(
            f"`{node}` must return {len(results)} results, {', '.join(results)}, but "
            f"returns {count}."
        )
    return tuple(value)
