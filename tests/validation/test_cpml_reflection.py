"""Absorbing layers: what they reflect, beside what Meep's of equal thickness do."""

import json
from pathlib import Path

import pytest

from benchmarks._cpml_cases import CASES, LAYERS, reflection
from benchmarks._physax_cpml import physax_trace
from benchmarks.cpml_meep import ABSORBERS, name
from physax import em


RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "cpml_meep.json"
MEEP = {
    r["case"]: r["value"]
    for r in json.loads(RESULTS.read_text())
    if r["tool"] == "meep"
}
ABSORBED = {
    r["case"]: r["value"]
    for r in json.loads(RESULTS.read_text())
    if r["case"].startswith("Absorber")
}
# Measured with the defaults of `CPML`: in the docs to these digits.
OURS = {
    ("0 degrees", 10): 6.85e-6,
    ("0 degrees", 20): 5.79e-8,
    ("60 degrees", 10): 2.61e-5,
    ("60 degrees", 20): 1.31e-8,
    ("80 degrees", 10): 1.23e-2,
    ("80 degrees", 20): 1.45e-4,
    ("evanescent, k_parallel = 1.2 k", 10): 9.31e-3,
    ("evanescent, k_parallel = 1.2 k", 20): 8.65e-5,
}
LIMITS = {10: 1e-5, 20: 1e-6}  # at normal incidence
ALL = [
    pytest.param(case, cells, marks=() if case.k_parallel == 0 else pytest.mark.slow)
    for case in CASES
    for cells in LAYERS
]


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_absorbers_reflect_what_the_docs_say(case):
    cells, layer = ABSORBERS[0], em.Absorber(ABSORBERS[0])
    short = physax_trace(case, cells, 0, layer)
    found = reflection(short, physax_trace(case, cells, case.far, layer))
    recorded = [ABSORBED[name(case.name, n, "Absorber")] for n in ABSORBERS]
    assert found == pytest.approx(recorded[0], rel=0.01)
    assert recorded == sorted(recorded, reverse=True)


@pytest.mark.slow(after=1)
@pytest.mark.x64  # float32 rounds at 1e-7 of the incident wave
@pytest.mark.parametrize(("case", "cells"), ALL)
def test_default_layer_reflects_less_than_meeps(case, cells):
    short = physax_trace(case, cells, 0)
    found = reflection(short, physax_trace(case, cells, case.far))
    assert found < MEEP[f"CPML, {case.name}, {cells} cells"]
    assert found == pytest.approx(OURS[case.name, cells], rel=0.05)
    if case.k_parallel == 0:
        assert found <= LIMITS[cells]
