"""Dielectric cylinders converge in second order where interfaces are averaged well."""

import json
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest

from physax import em
from physax.grid import Grid
from physax.units import SPEED_OF_LIGHT
from tests.validation import cylinders


DATA = json.loads((Path(__file__).parent / "data" / "em_analytic.json").read_text())
ROWS = DATA["cylinder_2d"]["rows"]
SIZES = cylinders.SIZES[:4]
INDEX = 2.0
GLASS = em.Material(INDEX**2)


def scattered(
    polarisation,
    cells,
    *,
    empty=False,
    material=GLASS,
    pulse=cylinders.PULSE,
    sizes=SIZES,
    **options,
):
    """Returns the efficiencies of scattering, or the flow of power without cylinder."""
    radius = cylinders.RADIUS
    half = cylinders.HALF
    grid = Grid.centred((int(2 * half * cells),) * 2, radius / cells)
    rods = [em.Structure(em.Circle((0.0, 0.0), radius), material)]
    medium = em.rasterise(
        [] if empty else rods,
        grid,
        em.Material(1.0),
        cylinders.COMPONENTS[polarisation],
        **{"averaging": "polarised", **options},
    )
    ends = (0.0, 0.0), (2 * cylinders.BOX * radius,) * 2
    component = "Ez" if polarisation == "Ez" else "Ey"
    f = cylinders.frequency(np.array(sizes))
    sim = em.Simulation(
        grid,
        medium,
        em.Boundaries.all(em.CPML(cells * 3 // 5)),
        sources={"wave": em.PlaneWave("+x", component, *ends, pulse)},
        monitors=cylinders.box_monitors("out", cylinders.OUTER, f)
        | cylinders.box_monitors("in", cylinders.INNER, f),
        polarisation=polarisation,
        dt=0.65 * radius / cells / SPEED_OF_LIGHT,
        steps=400 * cells,
    )
    # The tests are compiled for their many short programs; this one runs for long.
    run = jax.jit(
        lambda sim: em.simulate(sim, until=em.Decay(1e-9, 500)),
        compiler_options={"xla_backend_optimization_level": 3},
    )
    found = run(sim).monitors
    if empty:
        return np.asarray(found["in left"].flux) / cylinders.INNER
    return cylinders.net(found, "out")


@pytest.mark.slow
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_cylinder_converges_in_second_order(polarisation):
    want = [
        next(
            row["qsca"]
            for row in ROWS
            if row["pol"] == polarisation
            and (row["m_re"], row["m_im"]) == (INDEX, 0.0)
            and row["x"] == pytest.approx(size)
        )
        for size in SIZES
    ]
    gaps = []
    for cells in (15, 30):
        found = scattered(polarisation, cells)
        found = found / scattered(polarisation, cells, empty=True)
        gaps.append(found / np.array(want) - 1)
    rms = np.sqrt(np.mean(np.square(gaps), axis=1))
    assert rms[1] <= 3e-3
    assert np.log2(rms[0] / rms[1]) >= 1.8


@pytest.mark.slow
def test_a_cylinder_with_a_pole_scatters_as_one_without():
    at = cylinders.frequency(SIZES[1])
    pole = em.Lorentz((INDEX**2 - 1) * (1 - 1 / 4), 2 * at)
    lorentz = em.Material(1.0, poles=pole)
    assert complex(em.complex_permittivity(lorentz, at)) == pytest.approx(INDEX**2)
    flow = partial(
        scattered,
        "Hz",
        15,
        pulse=em.GaussianPulse(at, 0.15 * at),
        sizes=SIZES[1:2],
    )
    want, found, blunt = (
        flow(**options)[0]
        for options in (
            {},
            {"material": lorentz, "frequency": at},
            {"material": lorentz, "averaging": "volume"},
        )
    )
    assert found == pytest.approx(want, rel=1e-3)
    assert blunt != pytest.approx(want, rel=1e-2)
