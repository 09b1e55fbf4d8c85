"""Graphs as tables."""

from collections.abc import Mapping
from typing import Any

from ._block import Connection
from ._structs import struct_text
from ._wiring import Wiring, declared


def table(
    wiring: Wiring, *, depth: int = 1, arrays: Mapping[str, Any] | None = None
) -> str:
    """Shows the nodes of a graph with their wires and shapes.

    Args:
        wiring: The nodes.
        depth: Down to which level nested graphs are opened; 1 for one line each.
        arrays: Parameters by name, to count those of each node.

    Returns:
        A line for each node, in columns.
    """
    heads = ["node", "reads", "writes"] + (["parameters"] if arrays else [])
    rows = [heads, *_rows(wiring, depth, arrays, "")]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    rows.insert(1, ["-" * width for width in widths])
    lines = (
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def _rows(wiring, depth, arrays, prefix):
    for node in wiring.nodes:
        name = f"{prefix}{node.name}"
        named = zip(node.block.terminals, node.inputs, strict=True)
        reads = ", ".join(
            f"{wire}:{struct_text(wiring.structs.get(wire))}"
            if terminal == wire
            else f"{terminal}={wire}:{struct_text(wiring.structs.get(wire))}"
            for terminal, wire in named
        )
        writes = ", ".join(
            f"{wire}:{struct_text(wiring.structs.get(wire))}" for wire in node.outputs
        )
        row = [name, reads, writes]
        if arrays:
            mine = (a for n, a in arrays.items() if n.startswith(f"{name}."))
            row.append(f"{sum(array.size for array in mine):,}")
        yield row
        inner = _inner(node, wiring)
        if depth > 1 and inner is not None:
            yield from _rows(inner, depth - 1, arrays, f"{name}.")


def _inner(node: Connection, wiring: Wiring) -> Wiring | None:
    """The wiring of a nested graph, with the shapes that it gets here."""
    # A name, not the class: graphs show themselves by this module.
    inner = getattr(node.block, "wiring", None)
    if not isinstance(inner, Wiring):
        return None
    named = zip(node.block.terminals, node.inputs, strict=True)
    known = {t: wiring.structs[w] for t, w in named if w in wiring.structs}
    return declared(inner, known)
