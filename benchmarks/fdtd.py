"""Speed of the FDTD step beside other codes, their runs interleaved.

`python -m benchmarks.fdtd [--json FILE] [--quick] [--peers beamz,fdtdx,meep,...]` runs
each workload of `peers/_protocol.py` with every tool in turn (A B C A B C ...) and
keeps each tool's best run; compilation and set-up are apart. The peers step vacuum,
which is never slower for them; the two loops without absorber (`numpy`, `bare`) and we
step a permittivity that is random per cell. We do so twice: on the one device that JAX
makes of a CPU, like the others, and cut over a device per core.
"""

from collections.abc import Callable, Sequence

from ._command import Command
from ._physax_fdtd import Prepared, physax_advance, physax_runner
from ._rows import MISSING, OURS, OWN, Row, console, ours_version, ranked, report
from .peers._worker import PEERS, PeerError, opened


SPEED = "Mcell-steps/s"
# Case, cells along an edge, steps; NumPy's loop makes a tenth of them.
WORKLOADS = [("2d", 1000, 500), ("3d", 128, 200)]
LARGE = [("3d", 256, 200)]
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


def costs(case: str, n: int, steps: int, rounds: int) -> list[Row]:
    """Measures what is ours alone: compile time, memory, the price of monitors."""
    name = title(case, n, steps)

    def row(what: str, value: Callable[[], float], unit: str, runs: int = 1) -> Row:
        label = f"{name}: {what}"
        try:
            return Row(label, OURS, ours_version(), value(), unit, runs=runs)
        except NotImplementedError:
            return Row(label, OURS, MISSING, None, unit)

    def memory(prepared: Prepared) -> float:
        return prepared.temp_bytes / prepared.state_bytes

    def price() -> float:
        pair = (
            physax_runner(case, n, steps),
            physax_runner(case, n, steps, monitors=True),
        )
        times = [[p.run() for p in pair] for _ in range(rounds + 1)][1:]
        bare, full = (min(column) for column in zip(*times, strict=True))
        return full / bare

    key = case, n, steps
    rows = [
        row("compile", lambda: physax_runner(*key).compile_s, "s"),
        row("temporary over state, simulate", lambda: memory(physax_runner(*key)), "x"),
        row("temporary over state, advance", lambda: memory(physax_advance(*key)), "x"),
    ]
    if case == "2d":  # mode sources are of 2-D simulations
        what = "mode source, 20 frequencies in 2 monitors over bare run"
        rows.append(row(what, price, "x", rounds))
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    command = Command(__doc__, PEERS, rounds=5, quick=2)
    command.parser.add_argument(
        "--large", action="store_true", help="256^3 too (for a GPU)"
    )
    options = command.options(arguments)
    workloads = QUICK if options.quick else WORKLOADS + LARGE * options.large
    rows = []
    for case, n, steps in workloads:
        found = throughput(case, n, steps, [*OWN, *options.peers], options.rounds)
        rows += found + fraction_of_bare(found) + costs(case, n, steps, options.rounds)
    report(rows, "FDTD, float32 (Meep float64)", options.json)


if __name__ == "__main__":
    main()
