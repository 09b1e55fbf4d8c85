"""Fits of two-time correlations beside other codes, their runs interleaved.

`python -m benchmarks.xpcs [--json FILE] [--quick] [--peers homodyne,xpcsjax]` measures,
in float64 on the CPU, the residuals and normal equations of a laminar flow (5 angles of
500 frames), its fit with contrast and offset of each angle (5 of 100), and, of physax
alone, a fit of 23 angles of 1000 frames. The model is homodyne's, trapezoids included.
Reduced chi-squares are computed here from the parameters that a fit returns.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ._command import Command
from ._rows import CHECK, MISSING, OURS, Row, console, ranked, report
from .peers._worker import interleaved, opened
from .peers._xpcs_data import NOISE, factor, maps


PEERS = ("homodyne", "xpcsjax")
MODULES = {"physax": "_physax_xpcs", **{tool: f"peers.{tool}_xpcs" for tool in PEERS}}


class Case(NamedTuple):
    """What is run.

    Attributes:
        work: `"normal"` or `"fit"`.
        angles: How many maps.
        frames: Of each.
        name: In the table.
        shared: Whether peers run it, too.
    """

    work: str
    angles: int
    frames: int
    name: str
    shared: bool


CASES = (
    Case("normal", 5, 500, "normal equations, 5 x 500^2", True),
    Case("fit", 5, 100, "laminar fit, 5 x 100^2", True),
    Case("fit", 23, 1000, "laminar fit, 23 x 1000^2", False),
)
QUICK = (Case("normal", 2, 40, "normal equations, 2 x 40^2", True),)


def reduced_chi2(case: Case, found: Sequence[float]) -> float:
    """Returns that of a fit, contrast and offset of each map at their best."""
    given = maps(case.angles, case.frames)
    above = np.triu_indices(case.frames, 1)
    cost, count = 0.0, 0
    for f, c2 in zip(factor(found, given), given.c2, strict=True):
        columns = np.stack([f[above], np.ones(above[0].size)], axis=1)
        left = np.linalg.lstsq(columns, c2[above])[1]
        cost, count = cost + float(left[0]), count + above[0].size
    return cost / NOISE**2 / (count - len(found) - 2 * case.angles)


def measured(case: Case, tools: Sequence[str], rounds: int) -> list[Row]:
    """Measures one case with all tools, interleaved."""
    workers, missing = opened(tools, MODULES)
    rows = []
    for tool, why in missing.items():
        console().print(f"{case.name}: {why}")
        rows.append(Row(case.name, tool, MISSING, None, "s"))
    request = {"work": case.work, "angles": case.angles, "frames": case.frames}
    answers = interleaved(workers, rounds, **request)
    for worker in workers:
        first, *rest = answers[worker.tool]
        warm = Row(
            f"{case.name}: warm",
            worker.tool,
            worker.version,
            min(run["seconds"] for run in rest),
            "s",
            peak_mb=max(run["peak_mb"] for run in rest),
            runs=rounds,
        )
        cold = {"case": f"{case.name}: first call", "value": first["seconds"]}
        rows += [warm, dataclasses.replace(warm, **cold, runs=0)]
        if case.work == "fit":
            ratio = reduced_chi2(case, first["values"])
            check = {"case": f"{case.name}: reduced chi-square - 1", "unit": CHECK}
            rows.append(dataclasses.replace(warm, **check, value=ratio - 1))
    order = list(dict.fromkeys(row.case for row in rows))
    return ranked(sorted(rows, key=lambda row: order.index(row.case)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    command = Command(__doc__, PEERS, rounds=2, quick=1)
    options = command.options(arguments)
    rows = []
    for case in QUICK if options.quick else CASES:
        tools = [OURS, *options.peers] if case.shared else [OURS]
        rows += measured(case, tools, options.rounds)
    report(rows, "two-time correlations, float64", options.json)


if __name__ == "__main__":
    main()
