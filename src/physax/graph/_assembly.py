"""Built blocks in the order in which they run."""

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.random as jr
from jaxtyping import Array, Key, PyTree

from ..runtime import remat
from ._block import Connection, results_of


# A node: its name, the wires it reads and writes, and its results.
Step: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]
# Gets a node, a wire and its value, and returns the value.
Watch: TypeAlias = Callable[[str, str, Any], Any]


class Frozen(eqx.Module):
    """A callable whose arrays are constants.

    Attributes:
        function: The callable.
    """

    function: Callable

    def __call__(self, *inputs: PyTree[Array]) -> PyTree[Array]:
        """Calls it."""
        return self.function(*inputs)


class Assembly(eqx.Module):
    """Built blocks and the order in which they run.

    Attributes:
        modules: The callable of each name.
        plan: The nodes in order.
        inputs: The wires that come from outside.
        outputs: The wires that are returned.
    """

    modules: dict[str, Callable]
    plan: tuple[Step, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    outputs: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, *values: PyTree[Array]) -> PyTree[Array]:
        """Runs the nodes; several outputs come as a tuple."""
        found = self.run(dict(zip(self.inputs, values, strict=True)))
        return found[0] if len(found) == 1 else found

    def run(
        self,
        wires: dict[str, Any],
        watch: Watch | None = None,
        policy: str = "none",
    ) -> tuple:
        """Runs the nodes on named wires.

        Args:
            wires: The value of each input.
            watch: Sees each value that a node writes, and returns what others read.
            policy: What a gradient keeps of each node, as of `runtime.remat`.

        Returns:
            The outputs.
        """
        for name, reads, writes, results in self.plan:
            with jax.named_scope(name):
                function = remat(self.modules[name], policy)
                value = function(*(wires[wire] for wire in reads))
                values = results_of(value, results, name)
            for wire, value in zip(writes, values, strict=True):
                wires[wire] = value if watch is None else watch(name, wire, value)
        return tuple(wires[wire] for wire in self.outputs)


def assemble(
    nodes: Iterable[Connection],
    structs: Mapping[str, Any],
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    key: Key[Array, ""],
) -> Assembly:
    """Builds the blocks of nodes.

    Each draws from its own key, which depends on its name alone: other nodes do not
    change what it gets.

    Args:
        nodes: The nodes in order.
        structs: The shape of each wire.
        inputs: The wires that come from outside.
        outputs: The wires that are returned.
        key: For arrays that are drawn.

    Returns:
        The built blocks.
    """
    modules: dict[str, Callable] = {}
    plan = []
    for node in nodes:
        if node.name not in modules:
            mine = jr.fold_in(key, zlib.crc32(node.name.encode()))
            built = node.block.build(mine, *(structs[wire] for wire in node.inputs))
            modules[node.name] = built if node.block.trainable else Frozen(built)
        plan.append((node.name, node.inputs, node.outputs, node.block.results))
    return Assembly(modules, tuple(plan), inputs, outputs)
