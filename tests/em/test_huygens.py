"""Equivalent currents: the first run's fields outside of the box, none inside."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT


CELL = MICRO / 16
FREQUENCY = SPEED_OF_LIGHT / MICRO
PULSE = em.GaussianPulse(FREQUENCY, FREQUENCY / 8)
# Another time dependence: the spectra at the frequency stay what they were.
OTHER = em.GaussianPulse(1.03 * FREQUENCY, FREQUENCY / 10, phase=0.7)
FREE = float("inf")
COMPONENT = {"Ez": "Ez", "Hz": "Ey", None: "Ex"}


def scene(ndim, polarisation, source, monitors, medium=None, **options):
    count = options.pop("cells", 44)
    return em.Simulation(
        Grid.centred((count,) * ndim, CELL),
        medium,
        options.pop("boundaries", None) or em.Boundaries.all(em.CPML(8)),
        sources={"source": source},
        monitors=monitors,
        polarisation=polarisation,
        steps=options.pop("steps", 700),
    )


def errors(ndim, polarisation, cells, steps, **options):
    """Returns the error outside of the box, and what is left inside."""
    middle = (0.0,) * ndim
    # A body inside, which the second run leaves out, and one outside.
    centre = cells // 2
    level = np.ones((cells,) * ndim)
    outside = (
        slice(centre + 6, centre + 8),
        *(slice(centre - 3, centre),) * (ndim - 1),
    )
    level[outside] = 2.0
    with_body = level.copy()
    with_body[
        (slice(centre - 3, centre - 1), *(slice(centre, centre + 2),) * (ndim - 1))
    ] = 2.2
    names = {"Ez": ("Ez", "Hx"), "Hz": ("Hz", "Ex"), None: ("Ex", "Hz")}[polarisation]
    monitors = {
        "near": em.NearFieldMonitor(middle, (10 * CELL,) * ndim, FREQUENCY),
        "all": em.FieldMonitor(names, middle, (FREE,) * ndim, FREQUENCY),
    }
    dipole = em.Dipole(COMPONENT[polarisation], (CELL,) * ndim, PULSE)
    options |= {"cells": cells, "steps": steps}
    first = scene(
        ndim,
        polarisation,
        dipole,
        monitors,
        em.Medium(jnp.asarray(with_body)),
        **options,
    )
    one = em.simulate(first).monitors
    huygens = em.HuygensSource(one["near"], OTHER)
    second = scene(
        ndim, polarisation, huygens, monitors, em.Medium(jnp.asarray(level)), **options
    )
    other = em.simulate(second).monitors
    worst = []
    for name in names:
        a, b = (np.asarray(found["all"].values[name])[0] for found in (one, other))
        where = [np.asarray(x) for x in one["all"].coordinates[name]]
        far = np.max(np.abs(np.stack(np.meshgrid(*where, indexing="ij"))), axis=0)
        scale = np.max(np.abs(a[far > 7 * CELL]))
        worst.append(
            (
                np.max(np.abs(a - b)[far > 6 * CELL]) / scale,
                np.max(np.abs(b)[far < 4.6 * CELL]) / scale,
            )
        )
    return np.max(worst, axis=0)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_currents_make_the_earlier_fields_outside_and_none_inside(polarisation):
    # The equations of the grid themselves; what is left is aliasing and decay.
    assert np.max(errors(2, polarisation, 44, 700)) < 1e-6


@pytest.mark.slow
def test_currents_in_3d():
    assert np.max(errors(3, None, 32, 650)) < 1e-4


def record(**options):
    options = {"cells": 44, "steps": 700} | options
    monitor = em.NearFieldMonitor((0.0, 0.0), (10 * CELL,) * 2, FREQUENCY)
    dipole = em.Dipole("Ez", (CELL, CELL), PULSE)
    return em.simulate(scene(2, "Ez", dipole, {"near": monitor}, **options))


def probe():
    return em.FieldMonitor(("Ez",), (11 * CELL, 3 * CELL), (0.0, 0.0), FREQUENCY)


@pytest.mark.slow
def test_a_line_sends_one_way_at_any_phase_of_a_period():
    # One face over a Bloch period: the wave of the first run goes on, none goes back.
    plane = em.NearFieldMonitor((0.0, -4 * CELL), (FREE, 0.0), FREQUENCY, "+y")
    faces = em.Boundaries(x=em.Bloch(0.8 / MICRO), y=em.CPML(10))
    options = {"boundaries": faces, "steps": 1200}
    wave = em.PlaneWave("+y", "Ez", (0.0, 0.0), (FREE, 20 * CELL), PULSE, exit=False)
    monitors = {
        "plane": plane,
        "ahead": em.FieldMonitor(("Ez",), (0.0, 6 * CELL), (FREE, 0.0), FREQUENCY),
        "behind": em.FieldMonitor(("Ez",), (0.0, -7 * CELL), (FREE, 0.0), FREQUENCY),
    }
    first = em.simulate(scene(2, "Ez", wave, monitors, **options)).monitors
    source = em.HuygensSource(first["plane"], OTHER)
    second = em.simulate(scene(2, "Ez", source, monitors, **options)).monitors
    one, other = (np.asarray(m["ahead"].values["Ez"]) for m in (first, second))
    back = np.asarray(second["behind"].values["Ez"])
    assert np.max(np.abs(other - one)) < 1e-5 * np.max(np.abs(one))
    assert np.max(np.abs(back)) < 1e-5 * np.max(np.abs(one))


@pytest.mark.slow
def test_gradient_goes_through_both_runs():
    near = record().monitors["near"]
    sim = scene(2, "Ez", em.HuygensSource(near, OTHER), {"probe": probe()})

    monitor = em.NearFieldMonitor((0.0, 0.0), (10 * CELL,) * 2, FREQUENCY)
    dipole = em.Dipole("Ez", (CELL, CELL), PULSE)
    medium = em.Medium(jnp.ones((44, 44)))
    first = scene(2, "Ez", dipole, {"near": monitor}, medium)

    # One program gives the gradient and the differences.
    @jax.jit
    @jax.value_and_grad
    def intensity(by):
        level = jnp.ones((44, 44)).at[20:22, 22:24].add(by)
        one = eqx.tree_at(lambda s: s.medium.permittivity, first, level)
        values = em.simulate(one).monitors["near"].values
        here = eqx.tree_at(lambda s: s.sources["source"].near.values, sim, values)
        field = em.simulate(here).monitors["probe"].values["Ez"]
        return 1e30 * jnp.sum(jnp.abs(field) ** 2)

    _, slope = intensity(0.3)
    want = (intensity(0.3 + 1e-4)[0] - intensity(0.3 - 1e-4)[0]) / 2e-4
    assert float(slope) == pytest.approx(float(want), rel=1e-5)


@pytest.mark.slow
def test_other_cells_components_and_several_frequencies_are_refused():
    near = record(steps=650).monitors["near"]
    source = em.HuygensSource(near, OTHER)
    with pytest.raises(ArgumentError, match="must lie on cells of the grid"):
        em.Simulation(
            Grid.centred((45, 45), CELL),
            sources={"source": source},
            polarisation="Ez",
            steps=1,
        )
    with pytest.raises(ArgumentError, match="must hold the components"):
        scene(2, "Hz", source, {})
    two = eqx.tree_at(lambda n: n.frequencies, near, jnp.ones(2))
    for index in (None, 2, -1):
        with pytest.raises(
            ArgumentError, match=f"frequencies of `near`, 0 to 1, but is {index}"
        ):
            em.HuygensSource(two, OTHER, index)


def small(source, monitors, **options):
    """A run of a few steps, without layers."""
    options = {"boundaries": em.Boundaries(), "cells": 24, "steps": 60} | options
    return scene(2, "Ez", source, monitors, **options)


def plane_of_few_steps(boundaries, medium=None, frequencies=FREQUENCY):
    size = (FREE, 0.0)
    monitor = em.NearFieldMonitor((0.0, 0.0), size, frequencies, "+y")
    dipole = em.Dipole("Ez", (CELL, CELL), PULSE)
    sim = small(dipole, {"near": monitor}, boundaries=boundaries, medium=medium)
    return em.simulate(sim).monitors["near"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_one_of_several_frequencies_is_sent_by_run_as_by_simulate():
    both = jnp.array([0.97, 1.0]) * FREQUENCY
    near = plane_of_few_steps(em.Boundaries(), frequencies=both)
    alone = jax.tree.map(lambda x: x[1:], (near.frequencies, near.values))
    one = eqx.tree_at(lambda n: (n.frequencies, n.values), near, alone)
    monitors = {"probe": probe()}
    found = []
    for record, index in ((near, 1), (one, None)):
        sim = small(em.HuygensSource(record, PULSE, index), monitors)
        found.append(em.run(sim, progress=False).result)
        found.append(em.simulate(sim))
    values = [np.asarray(one.monitors["probe"].values["Ez"])[0] for one in found]
    assert np.all(np.abs(values[0]) > 0)
    np.testing.assert_allclose(values[1:], [values[0]] * 3, rtol=1e-9)
    # So narrow a pulse has no part of its spectrum there.
    off = em.GaussianPulse(0.5 * FREQUENCY, FREQUENCY / 20)
    with pytest.raises(ArgumentError, match="`pulse` of source 'source' must contain"):
        small(em.HuygensSource(near, off, 1), {}, steps=1000)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_another_medium_on_the_faces_is_refused():
    near = plane_of_few_steps(em.Boundaries(), em.Medium(2.25))
    source = em.HuygensSource(near, PULSE)
    known = small(source, {}, medium=em.Medium(2.25))
    level = jnp.full((24, 24), 2.25)
    # Away from the face it may change.
    small(source, {}, medium=em.Medium(level.at[:, :8].set(1.0)))
    for medium, name in (
        (em.Medium(1.0), "permittivity"),
        (em.Medium(level.at[3, 12].set(2.5)), "permittivity"),
        (em.Medium(2.25, 1.1), "permeability"),
        (em.Medium(2.25, conductivity=10.0), "loss"),
    ):
        with pytest.raises(ArgumentError, match=f"`near`: its {name} there must be"):
            small(source, {}, medium=medium)

    def status(epsilon):
        here = eqx.tree_at(lambda s: s.medium.permittivity, known, epsilon)
        return em.simulate(here).status

    traced = jax.jit(status)
    assert [int(traced(jnp.asarray(x))) for x in (2.25, 1.0)] == [0, 4]


@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_a_medium_with_powers_on_the_faces_is_refused():
    powers = em.Nonlinearity(((0, 44), (0, 44)), chi3=1e-18)
    medium = em.Medium(nonlinearities=powers)
    near = record(medium=medium, steps=3).monitors["near"]
    with pytest.raises(ArgumentError, match="must be linear.*but is 1e-18"):
        scene(2, "Ez", em.HuygensSource(near, OTHER), {}, medium)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_other_walls_and_bloch_vectors_are_refused():
    layers = em.CPML(8)
    walled = em.Boundaries(x=(em.PEC(), layers), y=layers)
    source = em.HuygensSource(plane_of_few_steps(walled), PULSE)
    # Another wall scatters what was recorded.
    more = em.Boundaries(x=(em.PEC(), layers), y=(em.PMC(), layers))
    small(source, {}, boundaries=more)
    for faces in (em.Boundaries.all(layers), em.Boundaries(x=(layers, em.PEC()))):
        with pytest.raises(ArgumentError, match="must have the PEC wall at x = -7.5e-"):
            small(source, {}, boundaries=faces)

    bloch = em.Boundaries(x=em.Bloch(1e6), y=layers)
    source = em.HuygensSource(plane_of_few_steps(bloch), PULSE)
    # A vector of the reciprocal lattice changes nothing.
    turned = em.Bloch(1e6 + 2 * np.pi / (24 * CELL))
    small(source, {}, boundaries=em.Boundaries(x=turned, y=layers))
    for face in (em.Bloch(2.5e6), em.Periodic()):
        with pytest.raises(ArgumentError, match="vector of the run along x must be"):
            small(source, {}, boundaries=em.Boundaries(x=face, y=layers))
    with pytest.raises(ArgumentError, match="must be periodic over the 1.5e-06 m"):
        small(source, {}, boundaries=em.Boundaries.all(layers))
