"""Speed of the FDTD step beside other codes, their runs interleaved.

`python -m benchmarks.fdtd [--json FILE] [--quick] [--peers beamz,fdtdx,meep,...]` runs
each workload of `peers/_protocol.py` with every tool in turn (A B C A B C ...) and
keeps each tool's best run; compilation and set-up are apart. The peers step vacuum,
which is never slower for them; the two loops without absorber (`numpy`, `bare`) and we
step a permittivity that is random per cell. We do so twice: on the one device that JAX
makes of a CPU, like the others, and cut over a device per core. With `--gpu` all share
the first GPU, the grids are larger, and our speed is also told as a fraction of the
measured memory bandwidth over the bytes that a step has to move.
"""

from collections.abc import Sequence

import jax

from physax.cli._machine import measure

from ._command import Command
from ._physax_fdtd import Prepared, least_bytes, physax_advance, physax_runner
from ._rows import (
    BANDWIDTH,
    MACHINE,
    MISSING,
    OURS,
    OWN,
    Row,
    console,
    ours_version,
    ranked,
    report,
)
from ._turns import in_turn
from .peers._worker import PEERS, PeerError, opened


SPEED = "Mcell-steps/s"
# Case, cells along an edge, steps; NumPy's loop makes a tenth of them.
WORKLOADS = [("2d", 1000, 500), ("3d", 128, 200)]
LARGE = [("2d", 4096, 300), ("3d", 256, 200), ("3d", 512, 60)]
ON_CPUS = ("numpy", "meep")
QUICK = [("2d", 200, 100), ("3d", 32, 50)]


def title(case: str, n: int, steps: int) -> str:
    """Returns the name of a workload."""
    dimensions = int(case[0])
    return f"FDTD {dimensions}-D {'x'.join([str(n)] * dimensions)}, {steps} steps"


def speed(case: str, n: int, steps: int, seconds: float) -> float:
    """Returns million cell steps per second."""
    return n ** int(case[0]) * steps / seconds / 1e6


def throughput(
    case: str, n: int, steps: int, tools: Sequence[str], rounds: int
) -> list[Row]:
    """Measures one workload with all tools, interleaved."""
    name = title(case, n, steps)
    workers, missing = opened(tools)
    answers = {worker.tool: [] for worker in workers}
    versions = {worker.tool: worker.version for worker in workers}
    try:
        for _ in range(rounds):
            for worker in workers:
                if worker.tool in missing:
                    continue
                count = max(steps // 10, 1) if worker.tool == "numpy" else steps
                try:
                    answer = worker.run(case=case, n=n, steps=count)
                except PeerError as error:
                    missing[worker.tool] = str(error)
                    continue
                rate = speed(case, n, count, answer["seconds"])
                answers[worker.tool].append((rate, answer))
    finally:
        for worker in workers:
            worker.close()
    rows = []
    for tool in tools:
        if tool in missing:
            console().print(f"{name}: {missing[tool]}")
            rows.append(Row(name, tool, MISSING, None, SPEED))
            continue
        best, _ = max(answers[tool], key=lambda pair: pair[0])
        last = answers[tool][-1][1]
        compile_s, peak = last["compile_s"], last["peak_mb"]
        runs = len(answers[tool])
        rows.append(
            Row(name, tool, versions[tool], best, SPEED, None, compile_s, peak, runs)
        )
    return ranked(rows)


def fraction_of_bare(rows: Sequence[Row]) -> list[Row]:
    """Returns our speeds over that of the loop without absorber."""
    bare = {r.tool: r.value for r in rows}.get("bare")
    if not bare:
        return []
    return [
        Row(r.case, r.tool, r.version, r.value / bare, "of the bare loop")
        for r in rows
        if r.tool in OWN and r.value
    ]


def of_bandwidth(rows: Sequence[Row], case: str, n: int) -> list[Row]:
    """Returns our memory traffic, were it the least, over the measured bandwidth."""
    device, version = jax.devices()[0], ours_version()
    rate = measure(device).bandwidth
    name = f"{device.device_kind}, measured beside {case} {n}"
    found = [Row(name, MACHINE, version, rate, "bytes/s")]
    for row in rows:
        if row.tool == OURS and row.value:
            share = row.value * 1e6 * least_bytes(case, n) / rate
            found.append(Row(row.case, OURS, version, share, BANDWIDTH))
    return found


def costs(case: str, n: int, steps: int, rounds: int) -> list[Row]:
    """Measures what is ours alone: compile time, memory, the price of monitors."""
    name, key = title(case, n, steps), (case, n, steps)
    plain, donating = physax_runner(*key), physax_advance(*key)

    def row(what: str, value: float, unit: str, runs: int = 1) -> Row:
        return Row(f"{name}: {what}", OURS, ours_version(), value, unit, runs=runs)

    def memory(prepared: Prepared) -> float:
        return prepared.temp_bytes / prepared.state_bytes

    rows = [
        row("compile", plain.compile_s, "s"),
        row("temporary over state, simulate", memory(plain), "x"),
        row("temporary over state, advance", memory(donating), "x"),
    ]
    if case == "2d":  # mode sources are of 2-D simulations
        runs = {"bare": plain.run, "full": physax_runner(*key, monitors=True).run}
        spent = in_turn(runs, rounds + 1)
        bare, full = (min(spent[kind][1:]) for kind in runs)
        what = "mode source, 20 frequencies in 2 monitors over bare run"
        rows.append(row(what, full / bare, "x", rounds))
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    command = Command(__doc__, PEERS, rounds=5, quick=2, gpu=True)
    options = command.options(arguments)
    workloads = QUICK if options.quick else WORKLOADS + LARGE * options.gpu
    tools = [*OWN, *options.peers]
    if options.gpu:
        tools = [OURS, *(tool for tool in options.peers if tool not in ON_CPUS)]
    rows = []
    for case, n, steps in workloads:
        found = throughput(case, n, steps, tools, options.rounds)
        rows += found + fraction_of_bare(found)
        rows += of_bandwidth(found, case, n) if options.gpu else []
        rows += costs(case, n, steps, options.rounds)
    report(rows, "FDTD, float32 (Meep float64)", options.json)


if __name__ == "__main__":
    main()
