"""What the runtime gains and costs: cache, donation, remat, precision, pipelines.

`python -m benchmarks.runtime [--json FILE] [--quick]` measures each topic of the guide
with and without it. Of gradients it tells the memory and the time that `explain_remat`
and `em.adjoint_bytes` foretell, and beside them what the process takes. Ratios, in the
column of values over the best peer, are ours over the figure without, or over what was
foretold.
"""

import ctypes
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from physax import em, graph, runtime
from physax.graph import Graph, Linear, op
from physax.grid import Grid

from ._command import Command
from ._rows import CHECK, OURS, Row, console, ours_version, report


WITHOUT = "without"
FORETOLD = "foretold"
MIB = 2**20
POLICIES = ("none", "dots_saveable", "nothing_saveable")
ADJOINTS = {
    "LinearTape()": em.LinearTape(),
    "LinearTape('bfloat16')": em.LinearTape("bfloat16"),
    "LinearTape(every=50)": em.LinearTape(every=50),
    "Reversible()": em.Reversible(),
}


def pair(case: str, without: float, ours: float, unit: str, tool: str = WITHOUT):
    """Two rows: what it is without, or was foretold, and what it is."""
    return [
        Row(case, tool, jax.__version__, without, unit),
        Row(case, OURS, ours_version(), ours, unit, ours / without),
    ]


def worked(*words: str, **environment: str) -> Any:
    """What a part prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks._runtime_worker", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def cache() -> list[Row]:
    """Seconds to a first gradient in a process: no cache, an empty one, a full one."""
    case = "first gradient of a small simulation in a new process"
    without = worked("start")["seconds"]
    with tempfile.TemporaryDirectory() as folder:
        inner = str(Path(folder) / "cache")
        empty, full = (worked("start", inner)["seconds"] for _ in range(2))
    return [
        *pair(f"{case}, cache empty", without, empty, "s"),
        *pair(f"{case}, cache full", without, full, "s"),
    ]


def donation(cells: int) -> list[Row]:
    """Bytes that steps of a state take, its first and last included."""

    def steps(u):
        def one_step(_, u):
            return u + 0.1 * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1))

        return jax.lax.fori_loop(0, 100, one_step, u)

    state = jax.ShapeDtypeStruct((cells,), jnp.float32)
    kept = runtime.memory(jax.jit(steps), state).total
    given = runtime.memory(jax.jit(steps, donate_argnums=0), state).total
    case = f"100 steps of a state of {cells * 4 / MIB:.3g} MiB, donated: memory"
    return pair(case, kept / MIB, given / MIB, "MiB")


def growth(run: Callable[[], Any]) -> float | None:
    """Bytes by which the process grows while it runs; None where that is not told."""
    if sys.platform != "linux":
        return None

    def told(name: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        line = next(line for line in lines if line.startswith(name))
        return 1024 * int(line.split()[1])

    grown = []
    for _ in range(3):
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before = told("VmRSS")
        jax.block_until_ready(run())
        grown.append(told("VmHWM") - before)
    return max(grown)


def compared(
    case: str, run: Callable[[], Any], foretold: float, seconds: float, runs: int
) -> list[Row]:
    """Rows of memory and time of a gradient, foretold and taken."""
    rows = []
    taken = growth(run)
    if taken is not None:
        what = f"{case}: memory"
        rows += pair(what, foretold / MIB, taken / MIB, "MiB", FORETOLD)
    times = []
    while len(times) < runs or sum(times) < 0.5:
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    spent = min(times)
    return [*rows, *pair(f"{case}: time", seconds, spent, "s", FORETOLD)]


def deep(layers: int, batch: int, width: int, rounds: int) -> list[Row]:
    """A graph of many layers under policies of `remat`."""
    layer = Graph(label="layer") + Linear(width) + "gelu" + "sin"
    layer = layer.rename(input="i") + op("tanh").connect(output="o")
    model = Graph()
    for number in range(layers):
        wire = f"h{number - 1}" if number else "x"
        part = layer.connect(i=wire, o=f"h{number}", name=f"layer{number}")
        model |= part
    last = f"h{layers - 1}"
    key = jr.key(0)
    x = jr.normal(key, (batch, width))

    @functools.cache
    def program(policy):
        return graph.compile(model, {"x": x.shape}, key, remat=policy)

    def loss(policy, params, x):
        return jnp.mean(program(policy).evaluate(params, {"x": x})[last] ** 2)

    params = program("none").params
    rows = []
    for told in runtime.explain_remat(
        loss, params, x, policies=POLICIES, repeats=rounds
    ):
        slope = jax.jit(jax.value_and_grad(functools.partial(loss, told.policy)))
        case = f"gradient of a {layers}-layer graph, {told.policy}"
        run = functools.partial(slope, params, x)
        jax.block_until_ready(run())
        rows += compared(case, run, told.temporary, told.seconds, rounds)
    return rows


def fields(cells: int, steps: int, rounds: int) -> list[Row]:
    """A simulation under ways to differentiate it."""
    cell, low, high = 20e-9, cells * 3 // 10, cells * 7 // 10
    side = high - low
    region = em.DesignRegion(((low, high),) * 2, jnp.full((side, side), 2.0))
    sim = em.Simulation(
        Grid.uniform((cells, cells), cell),
        em.Medium(2.0, regions=region),
        em.Boundaries.all(em.CPML(8)),
        polarisation="Ez",
        steps=steps,
        sources={
            "dipole": em.Dipole(
                component="Ez",
                position=(0.2 * cells * cell, 0.5 * cells * cell),
                pulse=em.GaussianPulse(2e14, 5e13),
            )
        },
        monitors={
            "flux": em.FluxMonitor(
                axis="x",
                centre=(0.8 * cells * cell, 0.5 * cells * cell),
                size=(0.0, 0.6 * cells * cell),
                frequencies=jnp.array([2e14]),
            )
        },
    )

    def flux(adjoint, eps):
        moved = eqx.tree_at(lambda s: s.medium.regions[0].permittivity, sim, eps)
        return em.simulate(moved, adjoint=adjoint).monitors["flux"].flux[0]

    eps = sim.medium.regions[0].permittivity
    rows = []
    for name, adjoint in ADJOINTS.items():
        slope = jax.jit(jax.value_and_grad(functools.partial(flux, adjoint)))
        run = functools.partial(slope, eps)
        jax.block_until_ready(run())
        case = f"gradient of {cells}^2 cells, {steps} steps, {name}"
        foretold = em.adjoint_bytes(sim, adjoint)
        taken = runtime.memory(slope, eps).temporary
        what = f"{case}: memory of the program"
        rows += pair(what, foretold / MIB, taken / MIB, "MiB", FORETOLD)
        seconds = em.adjoint_seconds(sim, adjoint, repeats=rounds)
        rows += compared(case, run, foretold, seconds, rounds)
    return rows


def accumulation(batch: int, parts: Sequence[int], rounds: int) -> list[Row]:
    """Memory and time of the gradient of eight layers, whole and in parts."""
    key = jr.key(0)
    weights = jr.normal(key, (8, 256, 256)) / 16
    rows_ = jr.normal(key, (batch, 256))

    def loss(weights, rows):
        for weight in weights:
            rows = jnp.tanh(rows @ weight)
        return jnp.mean(rows**2)

    def whole(weights, rows):
        return jax.value_and_grad(loss)(weights, rows)

    base = runtime.memory(jax.jit(whole), weights, rows_).temporary
    spent = runtime.benchmark(whole, weights, rows_, repeats=rounds).min
    rows = []
    for count in parts:

        def split(weights, rows, count=count):
            return runtime.accumulate(functools.partial(whole, weights), rows, count)

        case = f"gradient of 8 layers, {batch} rows in {count} parts"
        taken = runtime.memory(jax.jit(split), weights, rows_).temporary
        least = runtime.benchmark(split, weights, rows_, repeats=rounds).min
        rows += pair(f"{case}: memory", base / MIB, taken / MIB, "MiB")
        rows += pair(f"{case}: time", spent, least, "s")
    return rows


def precision() -> list[Row]:
    """Relative errors of value and gradient against float64."""
    rows = []
    for found in worked("precision", JAX_ENABLE_X64="1"):
        for what in ("value", "gradient"):
            case = f"{found['case']}: error of the {what}"
            rows.append(Row(case, OURS, ours_version(), found[what], CHECK))
    return rows


def pipelined() -> list[Row]:
    """Four stages on four virtual devices beside one device."""
    found = worked("pipeline", JAX_NUM_CPU_DEVICES="4")
    case = "gradient through 4 stages, 16 microbatches"
    return [
        *pair(f"{case}: time", found["alone"], found["piped"], "s"),
        *pair(
            f"{case}: weights on a device",
            found["whole"] / MIB,
            found["held"] / MIB,
            "MiB",
        ),
        Row(f"{case}: error", OURS, ours_version(), found["error"], CHECK),
    ]


def watching(rounds: int, calls: int) -> list[Row]:
    """Microseconds of a call of a small function, watched or not."""
    plain = jax.jit(lambda params, u: u * params["dt"])
    runs = {WITHOUT: plain, OURS: runtime.watched(plain)}
    params, u = {"dt": jnp.ones(())}, jnp.zeros(100)
    spent = {tool: [] for tool in runs}
    for run in runs.values():
        jax.block_until_ready(run(params, u))
    for _ in range(rounds):
        for tool, run in runs.items():
            for _ in range(calls):
                start = time.perf_counter()
                jax.block_until_ready(run(params, u))
                spent[tool].append(time.perf_counter() - start)
    least = {tool: 1e6 * float(np.min(times)) for tool, times in spent.items()}
    return pair("a call under `watched`", least[WITHOUT], least[OURS], "us")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    command = Command(__doc__, (), rounds=5, quick=1)
    options = command.options(arguments)
    quick, rounds = options.quick, options.rounds
    if sys.platform == "linux":
        # What is freed has to go back to the system, else nothing grows when it is
        # taken again: at once from 64 KiB on. Option -3 is glibc's M_MMAP_THRESHOLD.
        ctypes.CDLL(None).mallopt(-3, 65536)
    rows = watching(rounds, 50 if quick else 1500)
    if quick:
        rows += [*donation(10_000), *deep(3, 64, 16, 1), *fields(60, 20, 1)]
        rows += accumulation(64, (4,), 1)
    else:
        rows += [*donation(4 * MIB), *deep(32, 2048, 128, rounds)]
        rows += fields(400, 600, min(rounds, 3))
        rows += accumulation(8192, (4, 16), rounds)
        rows += [*cache(), *precision(), *pipelined()]
    report(rows, "runtime, float32", options.json)
    console().print(
        "The column '/ best peer' is ours over the figure without, or over what was "
        "foretold."
    )


if __name__ == "__main__":
    main()
