"""Pictures of model graphs."""

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from .._checks import instance
from ..graph import Graph, struct_text
from ._canvas import new_axes


_COLOURS = {"input": "#dbe9f6", "node": "#f3f3f3", "output": "#e2f0d9"}
_STEP = 1.0, 2.4
_BOX = 0.36, 1.9


def graph(graph: Graph, *, axes: Axes | None = None) -> Axes:
    """Draws a graph from its inputs on top to its outputs at the bottom.

    A node lies below all that it reads. Wires carry their shapes, where these are
    known. `figure.savefig("graph.svg")` makes a file of it.

    Args:
        graph: The graph.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If `graph` is something else.
    """
    instance(graph, "graph", Graph, "Make one by `graph.Graph`.")
    places = _places(graph)
    rows = 1 + max((row for row, _ in places.values()), default=0)
    widest = max((abs(x) for _, x in places.values()), default=0) + 1
    axes = new_axes(axes, aspect=rows * _STEP[0] / (2 * widest * _STEP[1]) * 1.6)
    wiring = graph.wiring
    sources = {wire: ("input", wire) for wire in graph.terminals}
    for number, node in enumerate(wiring.nodes):
        sources |= {wire: ("node", str(number)) for wire in node.outputs}
    for number, node in enumerate(wiring.nodes):
        for wire in dict.fromkeys(node.inputs):
            _draw_wire(
                axes, graph, wire, places[sources[wire]], places["node", str(number)]
            )
    for wire in graph.results:
        _draw_wire(axes, graph, wire, places[sources[wire]], places["output", wire])
    for (kind, name), (row, x) in places.items():
        shown = wiring.nodes[int(name)].name if kind == "node" else name
        _draw_box(axes, shown, row, x, _COLOURS[kind])
    axes.set_xlim(-widest * _STEP[1], widest * _STEP[1])
    axes.set_ylim(-rows * _STEP[0] + 0.4, 0.6)
    axes.set_axis_off()
    return axes


def _places(graph: Graph) -> dict[tuple[str, str], tuple[int, float]]:
    """The row of each box, and where it stands in the row."""
    wiring = graph.wiring
    rows: dict[tuple[str, str], int] = {("input", w): 0 for w in graph.terminals}
    above: dict[tuple[str, str], list[tuple[str, str]]] = {box: [] for box in rows}
    source = {wire: ("input", wire) for wire in graph.terminals}
    for number, node in enumerate(wiring.nodes):
        box = ("node", str(number))
        above[box] = [source[wire] for wire in node.inputs]
        rows[box] = 1 + max((rows[other] for other in above[box]), default=0)
        source |= {wire: box for wire in node.outputs}
    last = 1 + max(rows.values(), default=0)
    for wire in graph.terminals:
        readers = (str(n) for n, node in enumerate(wiring.nodes) if wire in node.inputs)
        rows["input", wire] = min(rows["node", number] for number in readers) - 1
    for wire in graph.results:
        rows["output", wire] = last
        above["output", wire] = [source[wire]]
    places: dict[tuple[str, str], tuple[int, float]] = {}
    for row in range(last + 1):
        boxes = [box for box, mine in rows.items() if mine == row]

        def centre(box):
            found = [places[other][1] for other in above[box]]
            return sum(found) / len(found) if found else float("inf")

        # Below what they read, so that few wires cross.
        boxes.sort(key=centre)
        for number, box in enumerate(boxes):
            places[box] = (row, number - (len(boxes) - 1) / 2)
    return places


def _draw_box(axes: Axes, shown: str, row: int, x: float, colour: str) -> None:
    height, width = _BOX
    corner = (x * _STEP[1] - width / 2, -row * _STEP[0] - height / 2)
    box = FancyBboxPatch(corner, width, height, boxstyle="round,pad=0.02", zorder=2)
    box.set(facecolor=colour, edgecolor="0.3")
    axes.add_patch(box)
    middle = {"ha": "center", "va": "center", "size": 9, "zorder": 3}
    axes.text(x * _STEP[1], -row * _STEP[0], shown, **middle)


def _draw_wire(axes: Axes, graph: Graph, wire: str, start, end) -> None:
    (row, x), (row_below, x_below) = start, end
    tail = (x * _STEP[1], -row * _STEP[0] - _BOX[0] / 2)
    head = (x_below * _STEP[1], -row_below * _STEP[0] + _BOX[0] / 2)
    # A wire that skips rows goes around the boxes between.
    bend = "arc3" if row_below - row == 1 else "arc3,rad=0.25"
    arrow = {"arrowstyle": "->", "color": "0.4", "connectionstyle": bend}
    axes.annotate("", head, tail, arrowprops=arrow)
    axes.text(
        0.35 * tail[0] + 0.65 * head[0] + 0.06,
        0.35 * tail[1] + 0.65 * head[1],
        struct_text(graph.wiring.structs.get(wire)),
        size=7,
        color="0.35",
        va="center",
    )
