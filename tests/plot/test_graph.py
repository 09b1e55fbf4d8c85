from physax.graph import Graph, Linear, op
from physax.plot import graph as draw


def boxes(axes):
    """The middle of each box by its text."""
    found = {}
    for text in axes.texts:
        if text.get_text() and text.get_ha() == "center":
            found[text.get_text()] = text.get_position()
    return found


def test_a_node_stands_below_what_it_reads_and_wires_show_shapes(tmp_path):
    graph = Graph() | Linear(8).connect(input="x", output="h")
    graph |= op("tanh").connect(x="h", output="t")
    graph |= op("multiply").connect(x="t", y="scale", output="y")
    graph |= op("sum").connect(a="h", output="total")
    axes = draw(graph.with_shapes(x=("b", 4)))
    at = boxes(axes)
    chain = ("x", "linear", "tanh", "multiply", "y")
    heights = [at[name][1] for name in chain]
    assert heights == sorted(heights, reverse=True)
    assert at["multiply"][1] < at["scale"][1] < at["linear"][1]
    assert at["tanh"][1] == at["sum"][1]
    assert at["tanh"][0] != at["sum"][0]
    shapes = [text.get_text() for text in axes.texts]
    assert shapes.count("[b,8]") == 3
    assert "?" in shapes
    for ending in ("svg", "png"):
        path = tmp_path / f"graph.{ending}"
        axes.figure.savefig(path)
        assert path.stat().st_size > 1000
