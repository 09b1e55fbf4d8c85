"""Absorbing layers: what they reflect, beside what Meep's of equal thickness do."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks._cpml_cases import CASES, LAYERS, reflection
from benchmarks._physax_cpml import physax_trace
from benchmarks.cpml_meep import ABSORBERS, name
from physax import em
from physax.grid import Grid


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


def plasmon_trace(frequency, cells, extra):
    """Returns Hz on the surface of a lossless metal, and the time step."""
    width, metal, above, layer = 10e-9, 40, 80, 12
    source = cells + 40
    count = source + 100 + extra + cells
    box = ((0, count), (0, metal))
    sim = em.Simulation(
        Grid.uniform((count, metal + above + layer), width),
        em.Medium(dispersions=em.Dispersion(box, em.Drude(2e15, 1e9))),
        em.Boundaries(x=em.Absorber(cells), y=(em.PEC(), em.CPML(layer))),
        polarisation="Hz",
        steps=6000,
        sources={
            "in": em.Dipole(
                "Ey",
                (source * width, (metal + 0.5) * width),
                em.GaussianPulse(frequency, frequency / 10),
            )
        },
        monitors={
            "at": em.TimeMonitor(
                ("Hz",), ((source + 60) * width, metal * width), (0.0, 0.0), every=1
            )
        },
    )
    values = np.ravel(em.simulate(sim).monitors["at"].values["Hz"])
    return values, float(sim.dt)


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
@pytest.mark.parametrize(
    ("frequency", "cells", "recorded"),
    [
        (9e14, 40, 9.0e-4),
        (9e14, 80, 1.6e-4),
        (1.1e15, 40, 4.4e-2),
        (1.1e15, 80, 7.0e-3),
    ],
)
def test_absorbers_send_back_plasmons_as_the_docs_say(frequency, cells, recorded):
    (near, dt), (far, _) = (plasmon_trace(frequency, cells, n) for n in (0, 1200))
    turn = np.exp(2j * np.pi * frequency * dt * np.arange(near.size))
    found = abs(np.sum((near - far) * turn)) / abs(np.sum(far * turn))
    assert found == pytest.approx(recorded, rel=0.05)


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
