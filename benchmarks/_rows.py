"""Rows of a benchmark: how they are ranked, printed and kept."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.table import Table


OURS = "physax"
PER_CORE = "physax, a device per core"
OWN = (OURS, PER_CORE)
MISSING = "missing"
MACHINE = "machine"
# Not peers: two loops without absorber, and Meep with its layer tuned per case.
CONTROLS = ("bare", "numpy", "meep tuned")
# Where the output is no terminal, rich would fold the tables to 80 columns.
WIDTH = 150
FASTER = "times as fast as the best peer"
BANDWIDTH = "of the bandwidth"
# What finite differences say about a gradient: a check, not a figure to improve.
CHECK = "relative error"
# All other units (seconds, bytes, reflected amplitudes) are better when lower.
HIGHER_IS_BETTER = (
    "Mcell-steps/s",
    "Gcell-steps/s",
    "Mparticle-steps/s",
    "of the bare loop",
    BANDWIDTH,
    "fits",
    FASTER,
)


@dataclasses.dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        case: What was run.
        tool: Who ran it; `physax` is ours.
        version: Of the tool, or `"missing"` where it could not be run.
        value: The figure, in `unit`; `None` where missing.
        unit: Its unit, which also says whether more is better.
        ratio_to_best_peer: `value` over the best peer's, of the same case and unit.
        compile_s: Seconds of set-up that XLA spent compiling; 0 for compiled codes.
        peak_mb: Largest resident memory of the tool's process, in MiB.
        runs: How many runs the best was taken of.
    """

    case: str
    tool: str
    version: str
    value: float | None
    unit: str
    ratio_to_best_peer: float | None = None
    compile_s: float | None = None
    peak_mb: float | None = None
    runs: int = 0


def ours_version() -> str:
    """Returns the installed version of physax."""
    try:
        return version(OURS)
    except PackageNotFoundError:
        return "checkout"


def higher_is_better(unit: str) -> bool:
    """Whether more of a unit is better."""
    return unit in HIGHER_IS_BETTER


def ranked(rows: Iterable[Row]) -> list[Row]:
    """Fills in `ratio_to_best_peer` from the rows of the same case and unit."""
    rows = list(rows)
    out = []
    for row in rows:
        peers = [
            r.value
            for r in rows
            if (r.case, r.unit) == (row.case, row.unit)
            and r.unit != CHECK
            and r.tool not in (*OWN, *CONTROLS)
            and r.value is not None
        ]
        ratio = None
        if peers and row.value is not None:
            best = max(peers) if higher_is_better(row.unit) else min(peers)
            ratio = row.value / best if best else None
        out.append(dataclasses.replace(row, ratio_to_best_peer=ratio))
    return out


def write(rows: Sequence[Row], path: str | Path) -> None:
    """Writes the rows as a JSON list."""
    text = json.dumps([dataclasses.asdict(row) for row in rows], indent=1)
    Path(path).write_text(text + "\n", encoding="utf-8")


def read(path: str | Path) -> list[Row]:
    """Reads what `write` wrote."""
    return [Row(**row) for row in json.loads(Path(path).read_text(encoding="utf-8"))]


def number(x: float | None) -> str:
    """Formats a figure with three digits, `-` where there is none."""
    if x is None:
        return "-"
    if 0 < abs(x) < 1e-2:
        return f"{x:.2e}"
    return f"{x:,.0f}" if 1e3 <= abs(x) < 1e7 else f"{x:.3g}"


def console() -> Console:
    """Returns a console that is wide enough for the tables."""
    out = Console()
    return out if out.is_terminal else Console(width=WIDTH)


def table(rows: Sequence[Row], title: str) -> Table:
    """Lays the rows out for a terminal."""
    out = Table(title=title)
    for name in ("case", "tool", "version"):
        out.add_column(name)
    for name in ("value", "unit", "/ best peer", "compile s", "peak MiB", "runs"):
        out.add_column(name, justify="right" if name != "unit" else "left")
    for row in rows:
        out.add_row(
            row.case,
            row.tool,
            row.version,
            number(row.value),
            row.unit,
            number(row.ratio_to_best_peer),
            number(row.compile_s),
            number(row.peak_mb),
            str(row.runs),
            style="bold" if row.tool in OWN else None,
        )
    return out


def report(rows: Sequence[Row], title: str, path: str | None) -> None:
    """Prints the rows and, where a path is given, writes them."""
    console().print(table(rows, title))
    if path:
        write(rows, path)
