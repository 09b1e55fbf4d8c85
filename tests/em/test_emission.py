"""Emission of dipoles: in homogeneous media, through a surface, and its derivatives."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, em
from physax.grid import Grid
from physax.units import MICRO, NANO, SPEED_OF_LIGHT


CELL = 50 * NANO
CARRIER = SPEED_OF_LIGHT / (1 * MICRO)
PULSE = em.GaussianPulse(CARRIER, 0.15 * CARRIER)
BAND = CARRIER * np.array([0.9, 1.0, 1.1])


def emitter(component, shape, polarisation=None, medium=None, **options):
    dipole = em.Dipole(component, (0.0,) * len(shape), PULSE, moment=2.0)
    layers = em.Boundaries.all(em.CPML(10))
    options = {"boundaries": layers, "steps": 900, "monitors": {}} | options
    return em.Simulation(
        Grid.centred(shape, CELL),
        medium,
        options.pop("boundaries"),
        sources={"dipole": dipole},
        monitors={"seen": em.EmissionMonitor(dipole, BAND)} | options.pop("monitors"),
        polarisation=polarisation,
        **options,
    )


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.parametrize(
    ("component", "shape", "polarisation"),
    [
        ("Ez", (40,), None),
        ("Hy", (41,), None),
        ("Ez", (40, 40), "Ez"),
        ("Hx", (40, 41), "Ez"),
        ("Hz", (41, 41), "Hz"),
        ("Ey", (40, 41), "Hz"),
    ],
)
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_homogeneous_media(component, shape, polarisation, epsilon):
    sim = emitter(component, shape, polarisation, em.Medium(epsilon))
    seen = em.simulate(sim).monitors["seen"]
    n, w, c = np.sqrt(epsilon), 2 * np.pi * BAND, SPEED_OF_LIGHT
    # The states of a scalar wave: all of them for a dipole out of the plane, and half
    # of those of the other polarisation for each direction in it.
    states = (
        n / (np.pi * c) + 0 * w if len(shape) == 1 else n**2 * w / (2 * np.pi * c**2)
    )
    if len(shape) == 2 and component[1] != "z":
        states = states / 2
    # The cells' own error is (k dx)^2 / 8 in 1-D, from the cosine between E and H.
    error = np.abs(em.purcell(seen) - 1)
    assert np.all(error < (n * w / c * CELL) ** 2 / 7)
    np.testing.assert_allclose(seen.ldos / states, em.purcell(seen), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.f32
def test_homogeneous_medium_in_three_dimensions():
    sim = emitter("Hx", (32, 32, 32), steps=600)
    seen = em.simulate(sim).monitors["seen"]
    states = (2 * np.pi * BAND) ** 2 / (3 * np.pi**2 * SPEED_OF_LIGHT**3)
    np.testing.assert_allclose(em.purcell(seen), 1, rtol=0.02)
    np.testing.assert_allclose(seen.ldos / states, em.purcell(seen), rtol=1e-5)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("position", [(0.0, 0.0), (0.3 * CELL, -0.2 * CELL)])
def test_power_is_the_flux_through_a_surface(position):
    # By Poynting's theorem of the discrete fields: to rounding. The period is too short
    # for guided waves, which would ring for long.
    epsilon = np.ones((40, 6))
    epsilon[13:27] = np.random.default_rng(0).uniform(1, 3, (14, 6))
    dipole = em.Dipole("Ez", position, PULSE)
    everywhere = (0.0, float("inf"))
    sim = em.Simulation(
        Grid.centred((40, 6), CELL),
        em.Medium(jnp.asarray(epsilon)),
        em.Boundaries(x=em.CPML(10), y=em.Periodic()),
        sources={"dipole": dipole},
        monitors={
            "seen": em.EmissionMonitor(dipole, BAND),
            "left": em.FluxMonitor("x", (-8 * CELL, 0.0), everywhere, BAND),
            "right": em.FluxMonitor("x", (8 * CELL, 0.0), everywhere, BAND),
        },
        steps=2_000,
        polarisation="Ez",
    )
    seen = em.simulate(sim).monitors
    flux = seen["right"].flux - seen["left"].flux
    wide = flux.dtype == jnp.float64
    np.testing.assert_allclose(flux, seen["seen"].power, rtol=1e-6 if wide else 1e-4)


@pytest.mark.slow
def test_a_run_in_chunks_sees_what_simulate_sees():
    sim = emitter("Ez", (40,))
    alone = em.simulate(sim).monitors["seen"]
    driven = em.run(sim, chunk=250, progress=False).result.monitors["seen"]
    assert np.all(driven.power > 0)
    for one, other in zip(*map(jax.tree.leaves, (driven, alone)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.x64
def test_the_density_of_states_has_the_permittivity_at_the_dipole():
    # Electric and magnetic energies share it: eps times the resistance.
    epsilon = 1 + np.arange(40.0)[:, None] / 20 * np.ones(40)
    sim = emitter("Ez", (40, 40), "Ez", em.Medium(jnp.asarray(epsilon)), steps=1_500)
    seen = em.simulate(sim).monitors["seen"]
    ratio = seen.ldos / seen.resistance
    np.testing.assert_allclose(ratio, 2 / np.pi * 8.8541878128e-12 * 2.0, rtol=1e-9)
    assert seen.homogeneous[1] == pytest.approx(
        4e-7 * np.pi * 2 * np.pi * BAND[1] / 4, rel=1e-6
    )


@pytest.mark.slow
@pytest.mark.x64
def test_purcell_factor_is_differentiable():
    density = jnp.asarray(np.random.default_rng(1).uniform(1, 2, (40, 40)))
    sim = emitter("Ez", (40, 40), "Ez", em.Medium(density), steps=1_500)
    way = jnp.asarray(np.random.default_rng(2).standard_normal((40, 40)))

    @jax.jit
    def factor(scale):
        changed = eqx.tree_at(
            lambda s: s.medium, sim, em.Medium(density + scale * way / 10)
        )
        return em.purcell(em.simulate(changed).monitors["seen"])[1]

    h = 1e-4
    slope = (factor(h) - factor(-h)) / (2 * h)
    assert float(jax.grad(factor)(0.0)) == pytest.approx(float(slope), rel=1e-5)
    many = jax.vmap(factor)(jnp.array([0.0, h]))
    np.testing.assert_allclose(many, [factor(0.0), factor(h)], rtol=1e-9)


@pytest.mark.f32
def test_without_light_there_is_no_figure():
    sim = emitter("Ez", (40,))
    # 5.3 standard deviations of the spectrum off the carrier.
    bands = CARRIER * np.array([1.0, 1.8])
    monitor = em.EmissionMonitor(sim.sources["dipole"], bands)
    sim = em.Simulation(
        sim.grid,
        boundaries=sim.boundaries,
        sources=sim.sources,
        monitors={"seen": monitor},
        steps=900,
    )
    seen = em.simulate(sim).monitors["seen"]
    for values in (seen.resistance, seen.power, seen.ldos, em.purcell(seen)):
        np.testing.assert_array_equal(np.isnan(values), [False, True])


@pytest.mark.f32
def test_references_of_other_frequencies_are_refused():
    seen = em.simulate(emitter("Ez", (40,))).monitors["seen"]
    np.testing.assert_array_equal(em.purcell(seen, seen), 1)
    other = eqx.tree_at(lambda e: e.frequencies, seen, seen.frequencies * 1.01)
    with pytest.raises(ValueError, match="`reference` must have the frequencies of"):
        em.purcell(seen, other)
    fewer = jax.tree.map(lambda v: v[:2], seen)
    with pytest.raises(ValueError, match="the 3 frequencies of `emission`, but has 2"):
        em.purcell(seen, fewer)


@pytest.mark.f32
def test_references_of_other_dipoles_are_refused():
    # By (6 pi, 8, 4, 2) R = (Z k^2, Z k in the plane, Z k along z, Z), with 1 / Z for
    # magnetic ones: all others differ by a factor that the structure did not make.
    def of(component, ndim, polarisation=None, medium=None):
        shape = (6,) * ndim
        walls = em.Boundaries()
        sim = emitter(component, shape, polarisation, medium, steps=2, boundaries=walls)
        return jax.jit(em.simulate)(sim).monitors["seen"]

    line = of("Ez", 2, "Ez")
    for other in (of("Hx", 2, "Ez"), of("Ex", 2, "Hz"), of("Ez", 1), of("Ez", 3)):
        with pytest.raises(ArgumentError, match=r"along z in 2-D\), but is of"):
            em.purcell(line, other)
    em.purcell(line, of("Ez", 2, "Ez", em.Medium(4.0)))
    across, along = of("Ex", 3), of("Ez", 3)
    em.purcell(across, along)
    # Of one structure, so that all orientations can be averaged.
    jax.tree.map(jnp.add, across, along)


@pytest.mark.f32
@pytest.mark.parametrize(
    ("component", "position", "message"),
    [
        ("Hz", (0.0, 0.0), "`component` of monitor 'seen' must be one of"),
        ("Ez", (1.0, 0.0), "monitor 'seen' must lie in the grid"),
        ("Ez", (0.0,), "`position` of monitor 'seen' must have one entry for each"),
    ],
)
def test_a_monitor_of_a_dipole_that_cannot_be_is_refused(component, position, message):
    dipole = em.Dipole(component, position, PULSE)
    with pytest.raises(ValueError, match=message):
        em.Simulation(
            Grid.centred((40, 40), CELL),
            monitors={"seen": em.EmissionMonitor(dipole, BAND)},
            steps=10,
            polarisation="Ez",
        )


LINE = Grid.centred((40,), CELL)
HERE = em.Dipole("Ez", (0.0,), PULSE)


@pytest.mark.f32
@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"a": em.Dipole("Ez", (0.0,), PULSE, 3.0)}, r"is none of the sources \['a'\]"),
        ({"a": em.Dipole("Ez", (CELL,), PULSE)}, r"`dipole` of monitor 'seen' must be"),
        ({"a": em.Dipole("Hy", (0.0,), PULSE)}, "must be a source of the simulation"),
        (
            {"a": em.Dipole("Ez", (0.0,), em.GaussianPulse(CARRIER, 0.1 * CARRIER))},
            "must be a source of the simulation",
        ),
        ({"a": em.Dipole("Ez", (0.0,), em.Ricker(CARRIER))}, "must be a source of"),
        ({}, r"is none of the sources \[\]"),
        (
            {"a": HERE, "b": HERE},
            r"must be the only source, but .* are \['a', ",
        ),
    ],
)
def test_a_monitor_of_what_does_not_drive_alone_is_refused(sources, message):
    with pytest.raises(ValueError, match=message):
        driven(sources, em.Dipole("Ez", (0.0,), PULSE))


def driven(sources, dipole):
    return em.Simulation(
        LINE,
        sources=sources,
        monitors={"seen": em.EmissionMonitor(dipole, BAND)},
        steps=10,
    )


@pytest.mark.f32
def test_a_traced_moment_is_taken_for_that_of_the_source():
    def count(moment):
        dipole = em.Dipole("Ez", (0.0,), PULSE, moment)
        return moment * len(driven({"a": dipole}, dipole).monitors)

    assert float(jax.jit(count)(2.0)) == 2


@pytest.mark.f32
@pytest.mark.parametrize(
    ("pulse", "light"),
    [
        (PULSE, {0.2: False, 0.4: True, 1.6: True, 2.2: False}),
        (em.Ricker(CARRIER), {0.5: True, 2.2: True, 4.6: False}),
        (em.ContinuousWave(CARRIER), {2.2: True}),
    ],
)
def test_near_fields_without_light_are_warned_of(pulse, light):
    for ratio, good in light.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            em.Simulation(
                Grid.centred((40,), CELL / 4),
                sources={"dark": em.Dipole("Ez", (0.0,), pulse)},
                monitors={"near": em.NearFieldMonitor((0,), (CELL,), ratio * CARRIER)},
                steps=10,
            )
        told = [str(w.message) for w in caught]
        assert len(told) == (0 if good else 1)
        for text in told:
            assert text.startswith("`frequencies` of monitor 'near' should lie where")
            assert f"one is {ratio * CARRIER:.4g} Hz" in text


@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_where_a_dipole_lies_in_a_period_of_one_cell_does_not_matter():
    # The wave along it is all that a Bloch axis of one cell has.
    def resistance(place):
        pulse = em.GaussianPulse(3e14, 6e13)
        dipole = em.Dipole("Ez", (place * 2e-8, 4e-7), pulse)
        sim = em.Simulation(
            Grid.uniform((1, 40), 2e-8),
            boundaries=em.Boundaries(x=em.Bloch(3e6), y=em.CPML(10)),
            sources={"dipole": dipole},
            monitors={"seen": em.EmissionMonitor(dipole, [3e14])},
            polarisation="Ez",
            steps=2000,
        )
        return float(em.simulate(sim).monitors["seen"].resistance[0])

    assert resistance(0.8) == pytest.approx(resistance(0.2), rel=1e-6)
