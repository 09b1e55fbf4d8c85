"""What a model graph costs over plain JAX and Equinox, their runs interleaved.

`python -m benchmarks.graph [--json FILE] [--quick]` calls a tiny perceptron by
`Program.evaluate` and by `jax.jit` over a flat list of arrays, with and without
gradients; composes chains of layers; and compiles a deep one beside the same written in
Equinox. Ratios stand in the column of values.
"""

import itertools
import time
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from physax import graph
from physax.graph import Graph, Linear

from ._command import Command
from ._rows import OURS, Row, console, ours_version, report


SIZES = (8, 16, 16, 4)
BATCH = 16
PLAIN = "jax.jit"


def chain(sizes: Sequence[int]) -> Graph:
    """Linear layers with an activation between each two."""
    model = Graph() | Linear(sizes[1]).connect(input="x")
    for size in sizes[2:]:
        model += "relu"
        model += Linear(size)
    return model


def forms(inputs: np.ndarray) -> dict[str, tuple[Callable, Callable]]:
    """The calls to compare, without and with gradients, by tool."""
    program = graph.compile(chain(SIZES), {"x": inputs.shape})
    params, (output,) = program.params, program.outputs
    given, seed = {"x": jnp.asarray(inputs)}, jnp.ones((BATCH, SIZES[-1]))
    names = [
        f"linear{end}.{name}" for end in ("", "_1", "_2") for name in ("weight", "bias")
    ]
    leaves = [params[name] for name in names]

    def plain(leaves, x):
        for number in range(0, len(leaves), 2):
            weight, bias = leaves[number : number + 2]
            x = (jax.nn.relu(x) if number else x) @ weight.T + bias
        return x

    def pulled(leaves, x, seed):
        value, pull = jax.vjp(lambda leaves: plain(leaves, x), leaves)
        return value, pull(seed)[0]

    run, back = jax.jit(plain), jax.jit(pulled)
    cotangent = {output: seed}
    return {
        PLAIN: (
            lambda: run(leaves, given["x"]),
            lambda: back(leaves, given["x"], seed),
        ),
        OURS: (
            lambda: program.evaluate(params, given),
            lambda: program.evaluate(params, given, cotangent),
        ),
    }


def overhead(rounds: int, calls: int) -> list[Row]:
    """Microseconds of a call: the least and the median, over those of plain JAX."""
    inputs = np.asarray(jr.normal(jr.key(0), (BATCH, SIZES[0])))
    rows = []
    for place, what in enumerate(("evaluate", "evaluate with gradients")):
        spent = {tool: [] for tool in (PLAIN, OURS)}
        runs = {tool: pair[place] for tool, pair in forms(inputs).items()}
        for run in runs.values():
            jax.block_until_ready(run())
        for _ in range(rounds):
            for tool, run in runs.items():
                for _ in range(calls):
                    start = time.perf_counter()
                    jax.block_until_ready(run())
                    spent[tool].append(time.perf_counter() - start)
        for name, of in (("least", np.min), ("median", np.median)):
            base = of(spent[PLAIN])
            for tool, times in spent.items():
                value = float(of(times))
                rows.append(
                    Row(
                        f"{what}, {name}",
                        tool,
                        ours_version() if tool == OURS else jax.__version__,
                        1e6 * value,
                        "us",
                        value / base if tool == OURS else None,
                        runs=rounds * calls,
                    )
                )
    return rows


def composition(counts: Sequence[int], rounds: int) -> list[Row]:
    """Seconds to compose chains whose shapes are checked at each step."""
    rows = []
    for count in counts:
        spent = []
        for _ in range(rounds):
            start = time.perf_counter()
            model = Graph() | Linear(32).connect(input="x")
            model = model.with_shapes(x=("b", 32))
            for _ in range(count - 1):
                model += Linear(32)
            spent.append(time.perf_counter() - start)
        case = f"composing {count} layers"
        rows.append(Row(case, OURS, ours_version(), min(spent), "s", runs=rounds))
    return rows


def compilation(layers: int, rounds: int, growth: int = 0) -> list[Row]:
    """Seconds from a deep model to its first output, beside the same in Equinox.

    Each layer is by `growth` wider than the one before it.
    """
    sizes = [32 + growth * number for number in range(layers + 1)]
    x = np.ones((4, 32), np.float32)

    def ours() -> None:
        program = graph.compile(chain(sizes), {"x": x.shape})
        jax.block_until_ready(program.evaluate(program.params, {"x": x}))

    def theirs() -> None:
        keys = jr.split(jr.key(0), layers)
        parts = [
            eqx.nn.Linear(*pair, key=key)
            for pair, key in zip(itertools.pairwise(sizes), keys, strict=True)
        ]

        @eqx.filter_jit
        def run(parts, x):
            for number, part in enumerate(parts):
                x = jax.vmap(part)(jax.nn.relu(x) if number else x)
            return x

        jax.block_until_ready(run(parts, x))

    spent = {"equinox": [], OURS: []}
    for _ in range(rounds):
        for tool, run in (("equinox", theirs), (OURS, ours)):
            jax.clear_caches()
            start = time.perf_counter()
            run()
            spent[tool].append(time.perf_counter() - start)
    base = min(spent["equinox"])
    case = f"first output of {layers} layers"
    if growth:
        case += " of different sizes"
    return [
        Row(case, "equinox", eqx.__version__, base, "s", runs=rounds),
        Row(case, OURS, ours_version(), min(spent[OURS]), "s",
            min(spent[OURS]) / base, runs=rounds),
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    command = Command(__doc__, (), rounds=5, quick=1)
    options = command.options(arguments)
    quick = options.quick
    rows = overhead(options.rounds, 50 if quick else 1500)
    rows += composition((10, 20) if quick else (60, 120, 240, 480), options.rounds)
    for layers in (3,) if quick else (60, 240):
        rows += compilation(layers, min(options.rounds, 3))
    rows += compilation(2 if quick else 12, min(options.rounds, 3), growth=1)
    report(rows, "model graphs, float32", options.json)
    console().print("The column '/ best peer' is ours over plain JAX or Equinox.")


if __name__ == "__main__":
    main()
