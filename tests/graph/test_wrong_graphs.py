"""Graphs that are wrong: each message names the node, its terminals and the shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.graph import (
    MLP,
    AbstractBlock,
    FourierFeatures,
    Graph,
    GraphError,
    Linear,
    compile,
    layer,
    op,
    register_op,
)
from physax.graph._operation import operation_named


def chain():
    graph = Graph() | Linear(64).connect(input="x", output="h")
    graph += op("tanh").connect(output="t")
    return graph.with_shapes(x=("b", 32))


def twice(x):
    return 2 * x


def halves(x):
    return x[:1], x[1:]


def matmul(a, b):
    return a @ b


class Own(AbstractBlock):
    label: str = "own"
    terminals: tuple[str, ...] = ("x",)
    results: tuple[str, ...] = ("y",)
    trainable: bool = True

    def build(self, key, *inputs):
        return np.sin


def shaped(**shapes):
    graph = Graph() | op(matmul).connect(a="a", b="b", output="c")
    return graph.with_shapes(**shapes)


WRONG = {
    "two writers": (
        lambda: chain() | Linear(3).connect(input="q", output="h"),
        ["`h`", "one writer", "`linear`", "[b,64]", "output of `linear_1`"],
    ),
    "two results on one wire": (
        lambda: Graph() | op(halves, outputs=("a", "b")).connect(a="y", b="y"),
        ["`y`", "one writer", "`halves`", "b of `halves`"],
    ),
    "a cycle of two": (
        lambda: chain() | op("sin").connect(x="t", output="x"),
        ["cycle", "`linear`", "h:[b,64] into x of `tanh`", "x:[b,32] into input"],
    ),
    "a node that reads itself": (
        lambda: Graph() | op(twice).connect(x="y", output="y"),
        ["cycle", "`twice`", "y:? into x of `twice`"],
    ),
    "unknown terminal": (
        lambda: Linear(64).connect(inputs="x"),
        ["`linear`", "terminals input", "'inputs'"],
    ),
    "unknown result": (
        lambda: op(halves, outputs=("a", "b")).connect(c="y"),
        ["`halves`", "results a, b", "'c'"],
    ),
    "too many outputs": (
        lambda: Linear(64).connect(output=("y", "z")),
        ["`linear`", "1 results", "names 2: y, z"],
    ),
    "one result written twice": (
        lambda: op(halves, outputs=("a", "b")).connect(output=("y",), a="z"),
        ["`halves`", "a to one wire", "'y' and 'z'"],
    ),
    "sizes that do not multiply": (
        lambda: shaped(a=(3, 4), b=(5, 6)),
        ["matmul(a=a:[3,4], b=b:[5,6]) -> c:?", "(4,) and (5,)"],
    ),
    "sizes that do not multiply, found when the node is added": (
        lambda: chain() | op("matmul").connect(a="h", b="t", output="y"),
        ["matmul(a=h:[b,64], b=t:[b,64]) -> y:?"],
    ),
    "symbols that differ": (
        lambda: (Graph() | op("add").connect(x="a", y="b")).with_shapes(
            a=("n",), b=("m",)
        ),
        ["add(x=a:[n], y=b:[m]) -> add:?", "(n,), (m,)"],
    ),
    "too few axes": (
        lambda: (Graph() | layer("Conv2d", out_channels=4, kernel_size=3)).with_shapes(
            input=(8, 8)
        ),
        ["conv2d(input=input:[8,8]) -> conv2d:?", "3 axes", "has 2"],
    ),
    "a layer of another size": (
        lambda: (Graph() | MLP(3, (8,), 1)).with_shapes(input=("b", 4)),
        ["mlp(input=input:[b,4]) -> mlp:?", "size 3", "(b, 4)"],
    ),
    "integers where real numbers are needed": (
        lambda: chain() | op("bitwise_and").connect(x="h", y="t"),
        ["bitwise_and(x=h:[b,64], y=t:[b,64]) -> bitwise_and:?", "float32"],
    ),
    "a declared dtype": (
        lambda: chain().with_shapes(h=jax.ShapeDtypeStruct((4, 64), jnp.int32)),
        ["`h`", "[4,64] int32", "`linear`", "[b,64]"],
    ),
    "a declared shape of an inner wire": (
        lambda: chain().with_shapes(h=("b", 63)),
        ["`h` must have shape [b,63]", "`linear` writes [b,64]"],
    ),
    "a declared shape that a new writer breaks": (
        lambda: (
            (Graph() | op("tanh").connect(x="h", output="y")).with_shapes(h=(5,))
            | op("sum", axis=0).connect(a="x", output="h")
        ).with_shapes(x=(5, 6)),
        ["`h` must have shape [5]", "`sum` writes [6]"],
    ),
    "a function that returns too few": (
        lambda: (Graph() | op(halves, outputs=("a", "b", "c"))).with_shapes(x=(4,)),
        ["halves(x=x:[4]) -> halves.a:?", "3 results, a, b, c", "returns 2"],
    ),
    "a dict without a result": (
        lambda: (
            Graph() | op(lambda x: {"a": x}, outputs=("a", "b"), label="parts")
        ).with_shapes(x=(4,)),
        ["parts(x=x:[4])", "results a, b", "returns a"],
    ),
    "one name for two blocks": (
        lambda: chain() | Linear(3).connect(input="h", name="linear"),
        ["`linear` already names a different block (linear)"],
    ),
    "shared weights of another size": (
        lambda: (
            Graph()
            | Linear(4).connect(input="a", output="u", name="enc")
            | Linear(4).connect(input="b", output="v", name="enc")
        ).with_shapes(a=("n", 3), b=("n", 5)),
        ["enc(input=b:[n,5]) -> v:?", "(3,) and (5,)"],
    ),
    "a nested graph that gets another shape": (
        lambda: (Graph() | chain().connect(x="outside")).with_shapes(outside=("b", 9)),
        ["graph(x=outside:[b,9]) -> graph:?", "`x` must have shape [b,32]", "[b,9]"],
    ),
    "chaining to a part that is closed": (
        lambda: chain() + Linear(3).connect(input="h"),
        ["`linear_1`", "open terminal", "its terminals, input, all read wires"],
    ),
    "dangling": (
        lambda: compile(Graph() | Linear(4).connect(input="x", output="y"), {}),
        ["`x` is dangling", "linear(input=x:?) -> y:?"],
    ),
    "a parameter whose size is a symbol": (
        lambda: compile(Graph() | Linear(4), {"input": ("b", "n")}),
        ["`linear`", "size n", "`shapes`"],
    ),
    "a shape that contradicts the declared one": (
        lambda: compile(chain(), {"x": (7, 31)}),
        ["`x` must have shape [b,32]", "[7,31]"],
    ),
    "a symbol that stands for two sizes": (
        lambda: compile(
            op(lambda a, b: a[:1] + b[:1], label="firsts"),
            {"a": ("n", 2), "b": ("n", 2)},
        ).evaluate({}, {"a": np.ones((3, 2)), "b": np.ones((4, 2))}),
        ["n must stand for one size", "3 in `a`", "4 in `b`"],
    ),
    "an input of another shape": (
        lambda: compile(chain()).evaluate(
            compile(chain()).params, {"x": np.ones((7, 31), np.float32)}
        ),
        ["input `x`", "[b,32]", "[7,31]"],
    ),
    "an unknown input": (
        lambda: compile(chain())(y=np.ones((7, 32))),
        ["`inputs` must hold x", "x is missing", "y is unknown"],
    ),
    "a parameter that is missing": (
        lambda: compile(chain()).evaluate({}, {"x": np.ones((7, 32), np.float32)}),
        ["`params`", "linear.weight, linear.bias is missing"],
    ),
    "a shape that is a number": (
        lambda: chain().with_shapes(x=32),
        ["shape of `x`", "('b', 64)", "32"],
    ),
    "a negative size": (
        lambda: chain().with_shapes(x=(-1, 32)),
        ["size of `x`", "at least 0", "-1"],
    ),
    "a size that is no expression": (
        lambda: chain().with_shapes(x=("2*", 32)),
        ["size of `x`", "'2*'"],
    ),
    "an unknown wire": (
        lambda: chain().with_shapes(z=(3,)),
        ["`with_shapes`", "x, h, t", "'z'"],
    ),
    "exposing what no node writes": (
        lambda: chain().expose("x"),
        ["`expose`", "h, t", "'x'"],
    ),
    "renaming to a name that is taken": (
        lambda: chain().rename(x="h"),
        ["`x`", "'h' is taken"],
    ),
    "a function of NumPy": (
        lambda: compile(op(lambda x: np.sin(x), label="wave"), {"x": (4,)}),
        ["wave(x=x:[4]) -> wave:?", "`wave` must be written with `jax.numpy`"],
    ),
    "a function that decides by a value": (
        lambda: compile(op(lambda x: x if x[0] > 0 else -x, label="f"), {"x": (4,)}),
        ["f(x=x:[4]) -> f:?", "`f` must be one formula for all values", "`jnp.where`"],
    ),
    "a function that needs a number": (
        lambda: compile(op(lambda x: x * float(x[0]), label="f"), {"x": (4,)}),
        ["f(x=x:[4]) -> f:?", "`f` must not need a value as a Python number"],
    ),
    "a block of one's own that uses NumPy": (
        lambda: compile(Own(), {"x": (4,)}),
        ["own(x=x:[4]) -> own:?", "`own` must be written with `jax.numpy`"],
    ),
    "a function that refuses the shape": (
        lambda: shaped(a=(3, 4), b=(5, 6)),
        ["c:? must accept inputs of these shapes, but raises TypeError: dot_general"],
    ),
    "parameters that were made for another size": (
        lambda: compile(
            Graph()
            | Linear(4).connect(input="x", output="h", name="e")
            | Linear(4).connect(input="y", output="k", name="e"),
            {"x": (7, 3), "y": (7, 2)},
        ),
        [
            "e(input=y:[7,2]) -> k:? has parameters already, from its first use, "
            "e(input=x:[7,3]) -> h:[7,4], which do not fit",
            "another name",
        ],
    ),
    "a list in place of an array": (
        lambda: compile(op("sin"), {"x": ("b", 3)})(x=[[1.0, 2.0, 3.0]]),
        ["input `x` must be an array of shape [b,3], but is a list.", "`jnp.asarray`"],
    ),
    "an input without its name": (
        lambda: compile(op("sin"), {"x": (3,)})(np.ones(3)),
        ["given by name, `program(x=...)`, but 1 came by position"],
    ),
    "a block that is called": (
        lambda: Linear(8)(input="x"),
        ["`linear` must be wired by `connect(input='...')`", "but was called"],
    ),
    "an operation made of a block": (
        lambda: op(Linear(8)),
        ["`function` must be a function", "but is a Layer", "without `op`"],
    ),
    "a dimension that is a boolean": (
        lambda: Linear(True),
        ["`dimension` must be an integer of at least 1, but is True"],
    ),
    "one hidden size without a tuple": (
        lambda: MLP(2, 4, 1),
        ["`hidden_sizes` must be a sequence of integers, as `(64, 64)`, but is 4"],
    ),
    "a number of waves that is none": (
        lambda: FourierFeatures(2.5),
        ["`count` must be an integer of at least 1, but is 2.5"],
    ),
    "a size that is a boolean": (
        lambda: chain().with_shapes(x=(True, 32)),
        ["size of `x`", "at least 0", "True"],
    ),
    "an operation that JAX has": (
        lambda: register_op("tanh")(twice),
        ["'tanh' already is one of JAX", "`replace=True`"],
    ),
    "a name with a dot": (
        lambda: chain() | Linear(3).connect(name="a.b"),
        ["must not contain '.'", "'a.b'"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_message_says_where_and_what(case):
    make, parts = WRONG[case]
    with pytest.raises(GraphError) as error:
        make()
    for part in parts:
        assert part in str(error.value)


def test_the_function_of_the_user_stays_the_cause():
    with pytest.raises(GraphError) as error:
        compile(op(np.sin, inputs=("x",)), {"x": (4,)})
    assert isinstance(error.value.__cause__, jax.errors.TracerArrayConversionError)


def test_an_operation_is_replaced_where_that_is_asked_for():
    tanh = operation_named("tanh")
    try:
        register_op("tanh", replace=True)(twice)
        assert compile(op("tanh"), {"x": (1,)})(x=np.ones(1))["tanh"][0] == 2
    finally:
        register_op("tanh", replace=True)(tanh)
    assert operation_named("tanh") is tanh
    # What is registered already may be registered again.
    register_op("tanh")(tanh)
