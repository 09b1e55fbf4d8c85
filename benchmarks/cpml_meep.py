"""Reflection of our absorbing layer beside Meep's of equal thickness.

`python -m benchmarks.cpml_meep [--json FILE]` prints, for every case of `_cpml_cases`
(which defines the measurement), the amplitude that each reflects: ours in float64,
Meep's with its own target `R_asymptotic = 1e-15`, and Meep's best over the targets of
`peers/meep_pml.py`, a choice made afresh for every case with the answer known ("meep
tuned"; our figure has one setting for all cases). Our `Absorber`, which is for media
that such layers amplify, is measured alike, several times as thick.
"""

import argparse
import json
from collections.abc import Sequence

import jax

from physax import em

from ._cpml_cases import CASES, LAYERS, reflection
from ._physax_cpml import physax_trace
from ._rows import MISSING, OURS, Row, ours_version, ranked, report
from .peers._worker import PeerError, start


UNIT = "amplitude reflected"
MEEP, TUNED = "meep", "meep tuned"
DEFAULT_TARGET = 1e-15


ABSORBERS = (40, 60, 80)
"""Cells of absorbers."""


def name(case: str, cells: int, kind: str = "CPML") -> str:
    """Returns the name of a row."""
    return f"{kind}, {case}, {cells} cells"


def meep_rows() -> list[Row]:
    """Runs Meep; returns two rows per case, or missing ones."""
    try:
        process = start("meep", "peers.meep_pml")
    except PeerError:
        lines = ""
    else:
        lines, _ = process.communicate()
    found = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    rows = []
    for case in CASES:
        for cells in LAYERS:
            runs = [r for r in found if (r["case"], r["cells"]) == (case.name, cells)]
            title = name(case.name, cells)
            for tool in (MEEP, TUNED):
                tried = [
                    r for r in runs if tool == TUNED or r["target"] == DEFAULT_TARGET
                ]
                if not tried:
                    rows.append(Row(title, tool, MISSING, None, UNIT))
                    continue
                best = min(tried, key=lambda r: r["reflection"])
                label = f"{best['version']}, R={best['target']:.0e}"
                value, peak = best["reflection"], best["peak_mb"]
                rows.append(
                    Row(title, tool, label, value, UNIT, None, 0.0, peak, len(tried))
                )
    return rows


def physax_rows() -> list[Row]:
    """Measures our layer; missing rows where it cannot be."""
    ours = ours_version()
    rows = []
    for case in CASES:
        for cells in LAYERS:
            title = name(case.name, cells)
            try:
                short = physax_trace(case, cells, 0)
                value = reflection(short, physax_trace(case, cells, case.far))
                rows.append(Row(title, OURS, ours, value, UNIT, runs=1))
            except NotImplementedError:
                rows.append(Row(title, OURS, MISSING, None, UNIT))
    return rows


def absorber_rows() -> list[Row]:
    """Measures our absorber."""
    ours, rows = ours_version(), []
    for case in CASES:
        for cells in ABSORBERS:
            layer, title = em.Absorber(cells), name(case.name, cells, "Absorber")
            both = (physax_trace(case, cells, n, layer) for n in (0, case.far))
            rows.append(Row(title, OURS, ours, reflection(*both), UNIT, runs=1))
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="where to write the rows")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)  # the claim is one of float64
    rows = ranked(physax_rows() + absorber_rows() + meep_rows())
    rows = sorted(rows, key=lambda r: r.case)
    report(rows, "absorbing layers, 20 cells per wavelength", options.json)


if __name__ == "__main__":
    main()
