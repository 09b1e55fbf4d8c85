"""Curve fits of many points beside other codes, their runs interleaved.

`python -m benchmarks.fit [--json FILE] [--quick] [--peers scipy,nlsq,optimistix]` fits
a sum of two exponentials and a constant, 5 parameters, to 1 and 10 million points with
noise, in float64 on the CPU. Each tool runs in a process of its own, in turn; the first
call of each compiles. The answers are compared with ours.
"""

import dataclasses
from collections.abc import Sequence

from ._command import Command
from ._rows import CHECK, MISSING, OURS, Row, console, ranked, report
from .peers._worker import interleaved, opened


PEERS = ("scipy", "nlsq", "optimistix")
MODULES = {"physax": "_physax_fit", **{tool: f"peers.{tool}_fit" for tool in PEERS}}
SIZES = (1_000_000, 10_000_000)
QUICK = (100_000,)


def measured(points: int, tools: Sequence[str], rounds: int) -> list[Row]:
    """Measures one size with all tools, interleaved."""
    name = f"{points:,} points, 5 parameters"
    workers, missing = opened(tools, MODULES)
    rows = []
    for tool, why in missing.items():
        console().print(f"{name}: {why}")
        rows.append(Row(f"{name}: warm", tool, MISSING, None, "s"))
    answers = interleaved(workers, rounds, points=points)
    ours = answers[OURS][0]["values"]
    for worker in workers:
        first, *rest = answers[worker.tool]
        off = max(abs(a / b - 1) for a, b in zip(first["values"], ours, strict=True))
        version = worker.version
        best = min(run["seconds"] for run in rest)
        memory = max(run["peak_mb"] for run in rest)
        warm = Row(f"{name}: warm", worker.tool, version, best, "s")
        rows += [
            dataclasses.replace(warm, peak_mb=memory, runs=rounds),
            Row(f"{name}: first call", worker.tool, version, first["seconds"], "s"),
            Row(f"{name}: memory besides data", worker.tool, version, memory, "MiB"),
            Row(f"{name}: off from ours", worker.tool, version, off, CHECK),
        ]
    order = list(dict.fromkeys(row.case for row in rows))
    return ranked(sorted(rows, key=lambda row: order.index(row.case)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    command = Command(__doc__, PEERS, rounds=3, quick=1)
    options = command.options(arguments)
    rows = []
    for points in QUICK if options.quick else SIZES:
        rows += measured(points, [OURS, *options.peers], options.rounds)
    report(rows, "curve fits, float64", options.json)


if __name__ == "__main__":
    main()
