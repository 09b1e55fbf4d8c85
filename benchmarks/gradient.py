"""Time of value and gradient beside other codes, their runs interleaved.

`python -m benchmarks.gradient [--json FILE] [--quick] [--gpu] [--peers ...]` runs each
workload of `peers/_gradient.py` with every tool in turn, forward alone and with its
gradient (A A' B B' A A' ...), and keeps the best run of each; compilation is apart. The
gradient of each program is first checked along one direction against differences of
its own values, and only right ones are timed. Float32.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ._command import Command
from ._rows import (
    CHECK,
    FASTER,
    MISSING,
    OURS,
    Row,
    console,
    number,
    ranked,
    report,
)
from ._turns import in_turn
from .peers._gradient import FORWARD
from .peers._worker import PeerError, Worker, opened


# How each tool differentiates; of a peer's right ones the fastest counts.
METHODS = {
    OURS: ("LinearTape",),
    "beamz": ("full trajectory", "sqrt(T) checkpoints"),
    "fdtdx": ("reversible",),
}
PEERS = tuple(tool for tool in METHODS if tool != OURS)
# Largest relative error of a gradient that counts as right: float32 differences reach
# some 1e-5, gradients that are wrong are off by a tenth or more.
TOLERANCE = 1e-2
VALUE_AND_GRADIENT = "value and gradient"

Answers = Mapping[str, Sequence[dict]]  # by method, one for each run


class Workload(NamedTuple):
    """What is run: the case, cells along an edge, steps, design cells along an edge."""

    case: str
    n: int
    steps: int
    design: int

    @property
    def name(self) -> str:
        """The name in the rows."""
        ndim = int(self.case[0])
        run = f"{ndim}-D {self.n}^{ndim}, {self.steps} steps"
        return f"{run}, design {self.design}^{ndim}"


WORKLOADS = [Workload("2d", 200, 400, 100), Workload("3d", 64, 150, 24)]
LARGE = [Workload("2d", 1000, 2000, 400), Workload("3d", 160, 300, 64)]
QUICK = [Workload("2d", 80, 160, 40), Workload("3d", 56, 120, 12)]


def answered(
    work: Workload, tools: Sequence[str], rounds: int
) -> tuple[Mapping[str, Answers], dict[str, str], dict[str, str]]:
    """Runs a workload with all tools in turn.

    Args:
        work: The workload.
        tools: Of `METHODS`.
        rounds: Runs of each method.

    Returns:
        By tool, the answers; the versions; why a tool is missing.
    """
    workers, missing = opened(tools)
    versions = {worker.tool: worker.version for worker in workers}

    def ask(worker: Worker, method: str) -> dict:
        if worker.tool in missing:
            return {}
        try:
            return worker.run(**work._asdict(), method=method)
        except PeerError as error:
            missing[worker.tool] = str(error)
            return {}

    runs = {
        (worker.tool, method): partial(ask, worker, method)
        for worker in workers
        for method in (FORWARD, *METHODS[worker.tool])
    }
    try:
        found = in_turn(runs, rounds)
    finally:
        for worker in workers:
            worker.close()
    answers: dict[str, dict[str, list[dict]]] = {tool: {} for tool in versions}
    for (tool, method), given in found.items():
        answers[tool][method] = given
    return answers, versions, missing


def right(runs: Sequence[dict]) -> bool:
    """Whether the gradient of these runs agrees with differences."""
    return runs[0]["error"] <= TOLERANCE


def seconds(runs: Sequence[dict]) -> float:
    """Returns the time of the best run."""
    return min(run["seconds"] for run in runs)


def rows_of(name: str, tool: str, version: str, answers: Answers) -> list[Row]:
    """Makes the rows of one tool.

    Args:
        name: Of the workload.
        tool: The tool.
        version: Its version.
        answers: What it answered, the forward runs first.

    Returns:
        Its rows, without ratios to other tools. Where no gradient is right, those about
        gradients have no value.
    """

    def timed(what: str, runs: Sequence[dict]) -> Row:
        first, best = runs[0], seconds(runs)
        return Row(
            f"{name}: {what}",
            tool,
            version,
            best,
            "s",
            compile_s=first["compile_s"],
            peak_mb=first["peak_mb"],
            runs=len(runs),
        )

    forward, *gradients = answers
    rows = [timed(FORWARD, answers[forward])]
    for method in gradients:
        error = answers[method][0]["error"]
        # Not a number cannot be written; that nothing was measured says as much.
        value = error if math.isfinite(error) else None
        rows.append(Row(f"{name}: error of {method}", tool, version, value, CHECK))
    good = [method for method in gradients if right(answers[method])]
    if not good:
        case = f"{name}: {VALUE_AND_GRADIENT}"
        return [*rows, Row(case, tool, version, None, "s")]
    best = answers[min(good, key=lambda method: seconds(answers[method]))]
    cost = seconds(best) / seconds(answers[forward])
    memory = best[0]["temp_mb"]
    rows += [
        timed(VALUE_AND_GRADIENT, best),
        Row(f"{name}: {VALUE_AND_GRADIENT} over {FORWARD}", tool, version, cost, "x"),
        Row(f"{name}: temporary memory", tool, version, memory, "MiB"),
    ]
    if len(gradients) > 1:
        rows += [timed(f"by {method}", answers[method]) for method in good]
    return rows


def faster(rows: Sequence[Row]) -> list[Row]:
    """Returns how many times faster our gradient is than the fastest peer's."""
    return [
        Row(row.case, OURS, row.version, 1 / row.ratio_to_best_peer, FASTER)
        for row in rows
        if row.tool == OURS
        and row.case.endswith(f": {VALUE_AND_GRADIENT}")
        and row.ratio_to_best_peer
    ]


def measured(work: Workload, tools: Sequence[str], rounds: int) -> list[Row]:
    """Measures one workload with all tools, interleaved."""
    answers, versions, missing = answered(work, tools, rounds)
    rows = []
    for tool in tools:
        if tool in missing:
            console().print(f"{work.name}: {missing[tool]}")
            for what in (FORWARD, VALUE_AND_GRADIENT):
                rows.append(Row(f"{work.name}: {what}", tool, MISSING, None, "s"))
            continue
        rows += rows_of(work.name, tool, versions[tool], answers[tool])
        for method in METHODS[tool]:
            runs = answers[tool][method]
            if not right(runs):
                error = number(runs[0]["error"])
                console().print(
                    f"{work.name}: {tool}'s {method} is off by {error}; not timed."
                )
    order = list(dict.fromkeys(row.case for row in rows))
    rows = ranked(sorted(rows, key=lambda row: order.index(row.case)))
    return rows + faster(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    command = Command(__doc__, PEERS, rounds=5, quick=2, gpu=True)
    options = command.options(arguments)
    rows = []
    for work in QUICK if options.quick else WORKLOADS + LARGE * options.gpu:
        rows += measured(work, [OURS, *options.peers], options.rounds)
    report(rows, "value and gradient, float32", options.json)


if __name__ == "__main__":
    main()
