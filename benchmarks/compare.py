"""Shows what became worse between two benchmark files.

`python -m benchmarks.compare OLD NEW [--tolerance 0.1]` prints every figure of ours
that OLD holds; it exits with 1 where one is worse by more than the tolerance, or gone.
Speeds of one machine vary by some 30 % under load, so figures that have a best peer in
both files are compared as ratios to it, which cancels the machine.
"""

import argparse
import sys
from collections.abc import Sequence

from rich.table import Table

from ._rows import CHECK, MISSING, OURS, Row, console, higher_is_better, number, read


def change(old: Row, new: Row) -> float | None:
    """Returns how much better the new figure is: 2 for twice as good."""
    a, b = old.ratio_to_best_peer, new.ratio_to_best_peer
    if a is None or b is None:
        a, b = old.value, new.value
    if not a or not b:
        return None
    return b / a if higher_is_better(new.unit) else a / b


def compare(old: Sequence[Row], new: Sequence[Row]) -> list[tuple[Row, Row, float]]:
    """Pairs our rows of both files and says how each changed, worst first.

    A row of ours that had a figure and has none now counts as a change to 0. The error
    of a gradient is rounding where it is right, so it is left out.
    """
    after = {(r.case, r.unit): r for r in new if r.tool == OURS}
    pairs = []
    for row in old:
        if row.tool != OURS or row.value is None or row.unit == CHECK:
            continue
        now = after.get(
            (row.case, row.unit), Row(row.case, OURS, MISSING, None, row.unit)
        )
        factor = 0.0 if now.value is None else change(row, now)
        if factor is not None:
            pairs.append((row, now, factor))
    return sorted(pairs, key=lambda pair: pair[2])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--tolerance", type=float, default=0.1)
    options = parser.parse_args(arguments)
    pairs = compare(read(options.old), read(options.new))
    limit = 1 - options.tolerance
    table = Table(title="times as good as before (ratios to the best peer where known)")
    for name in ("case", "unit", "old", "new", "change"):
        table.add_column(name)
    for old, new, factor in pairs:
        table.add_row(
            new.case,
            new.unit,
            number(old.value),
            number(new.value),
            f"{factor:.2f}",
            style="red" if factor < limit else None,
        )
    console().print(table)
    worse = sum(factor < limit for *_, factor in pairs)
    console().print(f"{worse} of {len(pairs)} figures are worse.")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
