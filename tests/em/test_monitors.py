"""Monitors: spectra, fluxes, traces and energies against what they must be."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.em._program import build_program
from physax.grid import Grid
from physax.units import EPSILON_0, ETA_0, MICRO, NANO, SPEED_OF_LIGHT


CELL = 50 * NANO
CARRIER = SPEED_OF_LIGHT / (1 * MICRO)
PULSE = em.GaussianPulse(CARRIER, CARRIER / 10)
BAND = CARRIER * np.array([0.8, 0.95, 1.0, 1.1])
EVERYWHERE = float("inf")


def wide():
    return jnp.result_type(float) == jnp.float64


@pytest.fixture(scope="module")
def line():
    """A pulse along a vacuum line of 1-D, watched in every way."""
    monitors = {
        "dft": em.FieldMonitor(("Ez", "Hy"), (0.0,), (0.0,), BAND),
        "trace": em.TimeMonitor(("Ez", "Hy"), (0.0,), (0.0,)),
        "seldom": em.TimeMonitor(("Ez",), (0.0,), (4 * CELL,), 7),
        "energy": em.EnergyMonitor(3),
        "near": em.FluxMonitor("x", (-5 * CELL,), (0.0,), BAND),
        "far": em.FluxMonitor("x", (6 * CELL,), (0.0,), BAND),
    }
    wave = em.PlaneWave("+x", "Ez", (0.0,), (20 * CELL,), PULSE)
    sim = em.Simulation(
        Grid.centred((50,), CELL),
        boundaries=em.Boundaries.all(em.CPML(10)),
        sources={"wave": wave},
        monitors=monitors,
        steps=1000,
    )
    return sim, em.simulate(sim).monitors


def transform(series, name, frequencies):
    times = np.asarray(series.times[name], float)
    values = np.ravel(series.values[name]).astype(float)
    turn = np.exp(2j * np.pi * np.outer(frequencies, times))
    return turn @ values * (times[1] - times[0])


def test_spectrum_is_that_of_the_pulse(line):
    _, found = line
    # |W(f)| = tau sqrt(pi / 2) exp(-((f - f0) / bandwidth)^2 / 2); what the sheet and
    # the grid make of it away from the carrier is of the order (k dx)^2 / 24.
    tau = 1 / (2 * np.pi * float(PULSE.bandwidth))
    expected = (
        tau
        * np.sqrt(np.pi / 2)
        * np.exp(-(((BAND - CARRIER) / (CARRIER / 10)) ** 2) / 2)
    )
    values = np.ravel(np.abs(found["dft"].values["Ez"]))
    np.testing.assert_allclose(values, expected, rtol=5e-3)


@pytest.mark.parametrize("component", ["Ez", "Hy"])
def test_decimated_spectrum_is_that_of_every_step(line, component):
    sim, found = line
    every = build_program(sim).sampling["dft"].every
    assert every > 3  # else nothing is tested
    full = transform(found["trace"], component, BAND)
    assert np.ravel(found["dft"].values[component]) == pytest.approx(
        full, abs=1e-5 * np.abs(full).max()
    )


def test_flux_is_the_same_through_every_plane_of_vacuum(line):
    _, found = line
    near, far = (np.asarray(found[name].flux) for name in ("near", "far"))
    np.testing.assert_allclose(near, far, rtol=1e-7 if wide() else 2e-5)
    # The flux is in W fs^2.
    spectrum = np.ravel(np.abs(found["dft"].values["Ez"] * 1e15)) ** 2 / (2 * ETA_0)
    np.testing.assert_allclose(near, spectrum, rtol=0.02)


def test_trace_has_the_times_and_places_it_claims(line):
    sim, found = line
    trace, seldom = found["trace"], found["seldom"]
    dt = float(sim.dt)
    steps = np.arange(sim.steps)
    np.testing.assert_allclose(trace.times["Ez"], (steps + 1) * dt, rtol=1e-6)
    np.testing.assert_allclose(trace.times["Hy"], (steps + 0.5) * dt, rtol=1e-6)
    np.testing.assert_allclose(seldom.times["Ez"], (steps[::7] + 1) * dt, rtol=1e-6)
    x = np.asarray(seldom.coordinates["Ez"][0])
    np.testing.assert_allclose(x, CELL * np.arange(-2, 2), atol=1e-4 * CELL)
    same = np.asarray(seldom.values["Ez"])[:, 2]
    np.testing.assert_array_equal(same, np.ravel(trace.values["Ez"])[::7])
    # The pulse passes x = 0 later than x = -10 cells, where it enters, by 10 dx / c.
    values = np.ravel(trace.values["Ez"]).astype(float)
    energy = values**2
    centre = np.sum(energy * np.asarray(trace.times["Ez"])) / np.sum(energy)
    start = 6 / (2 * np.pi * float(PULSE.bandwidth))
    # The sheet stands 2 cells before the line enters the box at -10 cells.
    assert centre - start == pytest.approx(12 * CELL / SPEED_OF_LIGHT, abs=dt)


def test_energy_is_that_of_the_fields(line):
    sim, found = line
    series = found["energy"]
    assert series.energy.shape == (-(-sim.steps // 3),)
    np.testing.assert_allclose(
        series.times, (np.arange(0, sim.steps, 3) + 1) * float(sim.dt), rtol=1e-6
    )
    # While the whole box is under the pulse: eps0 E^2 / 2 times 20 cells at the peak
    # of the mean of cos^2, E and H together twice the half.
    expected = EPSILON_0 / 2 * 20 * CELL
    assert float(series.energy.max()) / expected == pytest.approx(1, rel=0.1)


@pytest.fixture(scope="module")
def guide():
    """A lossless structure between layers, with flux planes around it."""
    shape = (44, 30)
    epsilon = np.ones(shape)
    epsilon[16:26, 9:21] = np.random.default_rng(0).uniform(1, 4, (10, 12))
    planes = {
        f"x{i}": em.FluxMonitor("x", (i * CELL, 0.0), (0.0, EVERYWHERE), CARRIER)
        for i in (10, 14, 20, 28, 34)
    }
    wave = em.PlaneWave(
        "+x", "Ez", (22 * CELL, 0.0), (28 * CELL, EVERYWHERE), PULSE, exit=False
    )
    sim = em.Simulation(
        Grid.uniform(shape, CELL),
        em.Medium(jnp.asarray(epsilon)),
        em.Boundaries(x=em.CPML(8), y=em.Periodic()),
        sources={"wave": wave},
        monitors=planes,
        polarisation="Ez",
        steps=12000,  # until what the structure stores is gone
    )
    return {k: float(v.flux[0]) for k, v in em.simulate(sim).monitors.items()}


def test_flux_is_the_same_through_every_plane_of_a_lossless_structure(guide):
    # Poynting's theorem of the discrete fields, with H averaged over the node.
    flux = np.array(list(guide.values()))
    np.testing.assert_allclose(flux, flux[0], rtol=1e-6 if wide() else 1e-5)


@pytest.mark.filterwarnings("ignore:The fields had not decayed")
@pytest.mark.filterwarnings("ignore:.*lies in the absorbing layer")
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
@pytest.mark.parametrize("face", [em.CPML(8), em.PMC(), em.Periodic()])
def test_fluxes_through_parts_of_a_plane_add_up(polarisation, face):
    # Symmetric about y = 0, and cut there and within cells.
    low, high = -12 * CELL, 12 * CELL
    ends = [low, -6.3 * CELL, -6.05 * CELL, 0.0, 7.6 * CELL, high]

    def through(start, stop):
        place = (6 * CELL, (start + stop) / 2)
        return em.FluxMonitor("x", place, (0.0, stop - start), BAND[2:3])

    monitors = {f"{n}": through(*ends[n : n + 2]) for n in range(5)}
    monitors |= {"lower": through(low, 0.0), "upper": through(0.0, high)}
    monitors["whole"] = em.FluxMonitor("x", (6 * CELL, 0), (0, EVERYWHERE), BAND[2:3])
    sim = em.Simulation(
        Grid.centred((40, 24), CELL),
        boundaries=em.Boundaries(x=em.CPML(8), y=face),
        sources={"dipole": em.Dipole(polarisation, (0.0, 0.0), PULSE)},
        monitors=monitors,
        polarisation=polarisation,
        steps=400,
    )
    found = {k: float(v.flux[0]) for k, v in em.simulate(sim).monitors.items()}
    whole = found["whole"]
    assert sum(found[f"{n}"] for n in range(5)) == pytest.approx(whole, rel=1e-5)
    # Layers end in other ways at the two ends.
    if not isinstance(face, em.CPML):
        assert found["upper"] == pytest.approx(found["lower"], rel=1e-5)


@pytest.mark.slow
def test_monitors_batch_and_differentiate(line):
    sim, found = line

    def flux(epsilon):
        here = eqx.tree_at(lambda s: s.medium.permittivity, sim, epsilon)
        # Energy is not linear in the fields: the tape refuses it.
        run = em.simulate(here, adjoint=em.Checkpointed())
        return run.monitors["far"].flux[2]

    one, two = jax.jit(jax.vmap(flux))(jnp.array([1.0, 1.1]))
    assert float(one) / float(found["far"].flux[2]) == pytest.approx(1, rel=1e-5)
    assert np.isfinite(float(two))
    assert np.isfinite(jax.jit(jax.grad(flux))(jnp.array(1.05)))


LINE = Grid.centred((50,), CELL)


def lit(pulse, frequencies, make=em.FieldMonitor, medium=None):
    """A line with a dipole, and a monitor of some frequencies."""
    where = (("Ez",) if make is em.FieldMonitor else "x", (0.0,), (0.0,))
    return em.Simulation(
        LINE,
        medium,
        em.Boundaries.all(em.CPML(10)),
        sources={"dot": em.Dipole("Ez", (0.0,), pulse)},
        monitors={"eye": make(*where, frequencies)},
        steps=10,
    )


@pytest.mark.parametrize("make", [em.FieldMonitor, em.FluxMonitor])
@pytest.mark.parametrize("dark", [0.4, 1.6])
def test_frequencies_that_no_source_emits_are_warned_of(make, dark):
    # The spectrum falls to 1e-5 at 4.8 bandwidths, of a tenth of the carrier each.
    low, high, bad = (f"{part * CARRIER:.4g}" for part in (0.52015, 1.47985, dark))
    message = re.escape(
        "`frequencies` of monitor 'eye' should lie where the sources emit, from "
        f"{low} to {high} Hz, but one is {bad} Hz"
    )
    with pytest.warns(PhysaxWarning, match=message):
        lit(PULSE, CARRIER * np.array([1.0, dark]), make)
    # Warnings are errors here.
    lit(PULSE, CARRIER * np.array([0.53, 1.47]), make)


def test_what_is_known_to_be_emitted_or_not_known_is_not_warned_of():
    lit(em.ContinuousWave(CARRIER), CARRIER * np.array([0.5, 2.0]))
    lit(em.Ricker(CARRIER), CARRIER * np.array([0.1, 4.0]))
    lit(em.CustomPulse(jnp.sin, CARRIER, 1e-14), 5 * CARRIER)
    # A nonlinear medium has harmonics.
    powers = em.Nonlinearity(((20, 30),), chi3=1e-20)
    lit(PULSE, 3 * CARRIER, medium=em.Medium(nonlinearities=powers))
    # What is traced is not known.
    jax.eval_shape(lambda f: lit(em.GaussianPulse(f, CARRIER / 10), CARRIER).dt, 1e13)
    # What is known is looked at inside of a traced function, too.
    jax.eval_shape(lambda x: lit(em.Ricker(CARRIER), CARRIER).dt * x, 1.0)


def test_complex_frequencies_are_refused():
    with pytest.raises(ArgumentError, match="`frequencies` must be real, but has dtyp"):
        em.FieldMonitor(("Ez",), (0.0,), (0.0,), [CARRIER - 1e12j])


@pytest.mark.parametrize("make", [
    lambda every: em.TimeMonitor(("Ez",), (0.0,), (0.0,), every),
    em.EnergyMonitor,
])  # fmt: skip
def test_records_are_taken_after_whole_numbers_of_steps(make):
    with pytest.raises(ArgumentError, match="`every` must be a whole number .* is 2.0"):
        make(2.0)
    assert make(np.int64(2)).every == 2


def test_a_run_that_diverges_is_told(line):
    sim, _ = line
    unstable = eqx.tree_at(lambda s: s.dt, sim, 1.3 * sim.dt)
    with pytest.warns(PhysaxWarning, match="The fields are not finite at the end of"):
        em.simulate(unstable)
