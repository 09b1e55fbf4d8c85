"""How an FDTD step scales: measured here beside the model, and predicted to 1,024.

`python -m benchmarks.scaling [--json FILE] [--quick]` measures what the model needs:
the bytes per second of the step on one device, what a step costs without cells, and
the link between virtual devices and between two local processes. With these it
predicts the step on 2, 4 and 8 virtual devices, which is measured, too. They share the
cores of this machine: each has its part of the rate, so the whole can get no faster,
and what is compared is the cost of cutting. Last come predictions for a cluster of
DGX H100, from figures of data sheets.
"""

import json
import math
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp

from physax import em, runtime
from physax.grid import AXES, Layout
from physax.runtime import Link, Machine, Scaling

from ._command import Command
from ._physax_fdtd import workload
from ._rows import MACHINE, OURS, Row, console, ours_version, report


DEVICES = 8
MODEL = "model"
SHARE = "of one device"

# Per GPU. Memory, float32 and NVLink (half of 900 GB/s, one direction): NVIDIA H100
# Tensor Core GPU data sheet, SXM. Network: one 400 Gb/s port of NDR InfiniBand for each
# GPU, NVIDIA DGX H100 data sheet. Latencies: what NCCL's own model (src/graph/
# tuning.cc, 2.19 to 2.21, ring, protocol Simple) has for a step, 8.4 us to begin and
# 3.4 us over NVLink or 14 us over the network.
DGX_H100 = Machine(
    memory_rate=3.35e12,
    flop_rate=67e12,
    links=(Link(11.8e-6, 450e9, reach=8), Link(22.4e-6, 50e9)),
)

MESHES = {
    "2d": ((1, 1), (2, 1), (2, 2), (4, 2)),
    "3d": ((1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2)),
}


def seconds_per_step(
    case: str, n: int, steps: int, blocks: tuple[int, ...], rounds: int
) -> float:
    """Returns the seconds of a step of a workload cut into blocks, the fastest run."""
    sim = workload(case, n, steps, monitors=False)
    layout = None
    if math.prod(blocks) > 1:
        names = AXES[: len(blocks)]
        sizes = dict(zip(names, blocks, strict=True))
        layout = Layout(runtime.mesh(**sizes), **{name: name for name in names})
    spent = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        jax.block_until_ready(em.simulate(sim, layout=layout))
        spent.append(time.perf_counter() - start)
    return min(spent[1:]) / steps


def matmul_rate(rounds: int) -> float:
    """Returns the flops per second of a product of matrices in float32."""
    n = 2048
    x = jnp.ones((n, n), jnp.float32)
    return 2 * n**3 / runtime.benchmark(jnp.matmul, x, x, repeats=rounds).min


def measured_machine(case: str, n: int, steps: int, rounds: int) -> Machine:
    """Returns what one device of this machine does with the step itself."""
    whole = (1,) * int(case[0])
    least = 24
    overhead = seconds_per_step(case, least, steps, whole, rounds)
    cost = em.step_cost(workload(case, n, 1, monitors=False), whole)
    work = seconds_per_step(case, n, steps, whole, rounds) - overhead
    return Machine(cost.memory_bytes / work, overhead=overhead)


def shared(machine: Machine, link: Link, count: int) -> Machine:
    """Returns one of several virtual devices, which share the cores and the memory."""
    crowd = max(1.0, count / (os.cpu_count() or 1))
    return Machine(
        machine.memory_rate / count, links=(link,), overhead=machine.overhead * crowd
    )


def beside_model(
    case: str, n: int, steps: int, rounds: int, links: dict[int, Link]
) -> list[Row]:
    """Measures a workload on virtual devices, and predicts it."""
    machine = measured_machine(case, n, steps, rounds)
    name = f"{case[0]}-D {'x'.join([str(n)] * int(case[0]))}"
    rows = [
        figure(
            f"{name}, one device: moved by the step", machine.memory_rate, "bytes/s"
        ),
        figure(f"{name}, one device: step without cells", machine.overhead, "s"),
    ]
    sim = workload(case, n, 1, monitors=False)
    for blocks in MESHES[case]:
        count = math.prod(blocks)
        spent = seconds_per_step(case, n, steps, blocks, rounds)
        title = f"{name} as {'x'.join(map(str, blocks))}: step"
        now = shared(machine, links[count], count) if count > 1 else machine
        guess = sum(runtime.step_seconds(em.step_cost(sim, blocks), now))
        rows += compared(title, spent, guess, rounds)
    return rows


def two_processes(case: str, n: int, steps: int, rounds: int) -> list[Row]:
    """Measures link and step between two processes of this machine."""
    machine = measured_machine(case, n, steps, rounds)
    script = Path(__file__).with_name("_physax_scaling.py")
    root = str(script.parents[1])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    words = [case, *map(str, (n, steps, rounds))]
    done = subprocess.run(
        [sys.executable, "-m", "physax", "launch", "-n", "2", str(script), *words],
        env={**os.environ, "PYTHONPATH": paths, "JAX_NUM_CPU_DEVICES": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    (found,) = re.findall(r"\{.*\}", done.stdout)
    answer = json.loads(found)
    link = Link(answer["latency"], answer["rate"], 2)
    blocks = (2,) + (1,) * (int(case[0]) - 1)
    cost = em.step_cost(workload(case, n, 1, monitors=False), blocks)
    guess = sum(runtime.step_seconds(cost, shared(machine, link, 2)))
    name = f"{case[0]}-D {'x'.join([str(n)] * int(case[0]))} in two processes: step"
    rows = of_link("link of two local processes", link)
    return rows + compared(name, answer["seconds"], guess, rounds)


def predictions() -> list[tuple[str, Scaling]]:
    """Predicts weak and strong scaling on the cluster."""
    sim = workload("3d", 24, 1, monitors=False)
    return [
        (
            f"DGX H100, 3-D, {size}^3 cells {'each' if weak else 'in all'}",
            em.predict_scaling(sim, DGX_H100, weak=weak, shape=(size,) * 3),
        )
        for weak, size in ((True, 400), (True, 200), (True, 100), (False, 1024))
    ]


def of_link(name: str, link: Link) -> list[Row]:
    """Returns the rows of a link."""
    return [
        figure(f"{name}: latency", link.latency, "s"),
        figure(f"{name}: each device sends", link.rate, "bytes/s"),
    ]


def compared(name: str, measured: float, guess: float, rounds: int) -> list[Row]:
    """Returns a measured time, and what the model says with its ratio to it."""
    version = ours_version()
    return [
        Row(name, OURS, version, measured, "s", runs=rounds),
        Row(name, MODEL, version, guess, "s", guess / measured),
    ]


def figure(case: str, value: float, unit: str) -> Row:
    """Returns a figure of this machine."""
    return Row(case, MACHINE, platform.machine(), value, unit, runs=1)


def environment() -> list[Row]:
    """Returns what the figures depend on."""
    return [
        Row(
            "environment", "Python", platform.python_version(), os.cpu_count(), "cores"
        ),
        Row("environment", "jax", jax.__version__, len(jax.devices()), "devices"),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    command = Command(__doc__, (), rounds=5, quick=1)
    options = command.options(arguments)
    quick, rounds = options.quick, options.rounds
    flat, deep = ((64, 10), (32, 5)) if quick else ((1000, 100), (96, 50))
    rows = environment()
    rows.append(figure("product of matrices", matmul_rate(rounds), "flop/s"))
    links = {n: runtime.measure_link(runtime.mesh(n)) for n in (2, 4, DEVICES)}
    for count, link in links.items():
        rows += of_link(f"link of {count} virtual devices", link)
    rows += beside_model("2d", *flat, rounds, links)
    rows += beside_model("3d", *deep, rounds, links)
    if not quick:
        rows += two_processes("2d", *flat, rounds)
    tables = predictions()
    for name, scaling in tables:
        for row in scaling.rows:
            case = f"{name}: {row.cost.devices} devices"
            rows.append(Row(case, MODEL, ours_version(), row.efficiency, SHARE))
    report(rows, "scaling, float32", options.json)
    for name, scaling in tables:
        console().print(f"\n{name}\n{scaling}", highlight=False)
    console().print(
        "\nIn rows of the tool 'model' the column '/ best peer' is the prediction over "
        f"what was measured. All virtual devices share {os.cpu_count()} cores."
    )


if __name__ == "__main__":
    # In time: the backend starts when a device is first asked for.
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
