"""Near and far fields in cylindrical coordinates: rings of current around the axis."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import jv

from physax import ArgumentError, em
from physax.em._clock import Clock
from physax.em._far_field import tangents
from physax.grid import Grid
from physax.units import ETA_0, FEMTO, MICRO, SPEED_OF_LIGHT


CELL = MICRO / 15
FREQUENCY = SPEED_OF_LIGHT / MICRO
K = 2 * np.pi / MICRO
PULSE = em.Ricker(FREQUENCY)
MOMENT = 1e-13
PHI = np.linspace(0.1, 2 * np.pi, 7)[None, :-1]
THETA = np.linspace(0.05, np.pi - 0.05, 9)[:, None]
UNITS = np.asarray(em.direction(PHI, THETA), float).reshape(-1, 3)
POINTS = np.array([[1.0, 0.5, 0.7], [0.3, 0.2, 1.6], [30.0, 20.0, 40.0]]) * MICRO
CYLINDER = em.NearFieldMonitor((0.0, 0.0), (18 * CELL, 16 * CELL), FREQUENCY)
HOLLOW = em.NearFieldMonitor((5.5 * CELL, 0.0), (7 * CELL, 10 * CELL), FREQUENCY)


def wide():
    return jnp.result_type(float) == jnp.float64


def scene(component="Er", m=1, medium=None, low=-28, boundaries=None, **options):
    where = options.pop("where", (4.5, 2.5))
    monitors = options.pop("monitors", {"near": CYLINDER})
    dipole = em.Dipole(component, tuple(x * CELL for x in where), PULSE, MOMENT)
    shape, r = options.pop("shape", (30, 56)), options.pop("r", 0.0)
    return em.Simulation(
        Grid.uniform(shape, CELL, origin=(r, low * CELL)),
        medium,
        boundaries or em.Boundaries(r=em.CPML(10), z=em.CPML(10)),
        cylindrical=em.Cylindrical(m),
        sources=options.pop("sources", {"ring": dipole}),
        monitors=monitors,
        steps=options.pop("steps", 700),
    )


def spectrum(sim):
    """Returns the transform of the pulse as the steps of a run sample it."""
    n = np.arange(3 * sim.steps)
    pulse = jax.vmap(lambda half: PULSE(Clock(half, sim.dt), jnp.zeros(())))
    values = np.asarray(pulse(jnp.asarray(2 * n + 1)), float)
    dt = float(sim.dt)
    return np.sum(values * np.exp(2j * np.pi * FREQUENCY * (n + 0.5) * dt)) * dt


def ring(component, m, radius, height, wall=False):
    """Returns places and moments of point dipoles that make a ring, with its image."""
    phi = 2 * np.pi * np.arange(600) / 600
    around = np.cos(m * phi) if component != "Ep" or m == 0 else np.sin(m * phi)
    around *= (2 if m else 1) / len(phi)
    c, s, o = np.cos(phi), np.sin(phi), np.ones_like(phi)
    vectors = {"Er": (c, s, 0 * o), "Ep": (-s, c, 0 * o), "Ez": (0 * o, 0 * o, o)}
    places = np.stack([radius * c, radius * s, height * o], axis=-1)
    moments = around[:, None] * np.stack(vectors[component], axis=-1)
    if wall:
        places = np.concatenate([places, places * [1, 1, -1]])
        moments = np.concatenate([moments, moments * [-1, -1, 1]])
    return places, moments


def exact_far(places, moments, units):
    """Returns E of point dipoles far away, over the strength of one."""
    total = np.exp(-1j * K * units @ places.T) @ moments
    return total - units * np.sum(units * total, axis=-1, keepdims=True)


def exact_field(places, moments, points):
    """Returns E of point dipoles, over the strength of one."""
    apart = points[:, None] - places
    distance = np.linalg.norm(apart, axis=-1, keepdims=True)
    away, kr = apart / distance, K * distance
    along = away * np.sum(away * moments, axis=-1, keepdims=True)
    near = (3 * along - moments) * (1 / kr**2 - 1j / kr)
    return np.sum(np.exp(1j * kr) / distance * (moments - along + near), axis=1)


def cartesian(far, units):
    """Returns E of a far field by axis."""
    theta, phi = np.arccos(units[:, 2]), np.arctan2(units[:, 1], units[:, 0])
    c, s, o = np.cos(phi), np.sin(phi), 0 * phi
    flat = np.stack([np.cos(theta) * c, np.cos(theta) * s, -np.sin(theta)], axis=-1)
    upright = np.stack([-s, c, o], axis=-1)
    values = {name: np.asarray(one)[0][:, None] for name, one in far.values.items()}
    return values["Etheta"] * flat + values["Ephi"] * upright


RINGS = [("Er", 2, False), ("Ep", 0, False), ("Ez", 3, False), ("Ep", 1, True)]


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(("component", "m", "wall"), RINGS)
def test_a_ring_of_current_radiates_as_its_dipoles(component, m, wall):
    height = (6 if wall else 2) + 0.5 * (component == "Ez")
    radius = 4 + 0.5 * (component == "Er")
    options = {}
    if wall:
        floor = em.Boundaries(r=em.CPML(10), z=(em.PEC(), em.CPML(10)))
        box = em.NearFieldMonitor((0.0, 0.0), (18 * CELL, 24 * CELL), FREQUENCY)
        options = {"boundaries": floor, "low": 0, "shape": (30, 36)}
        options["monitors"] = {"near": box}
    sim = scene(component, m, where=(radius, height), **options)
    near = em.simulate(sim).monitors["near"]
    assert near.closed
    assert set(near.faces) == {"+r", "+z"} if wall else {"+r", "-z", "+z"}
    dipoles = ring(component, m, radius * CELL, height * CELL, wall)
    units = UNITS[UNITS[:, 2] > 0] if wall else UNITS
    strength = 1j * K * ETA_0 * MOMENT * spectrum(sim) / (4 * np.pi)
    expected = strength * exact_far(*dipoles, units)
    found = cartesian(em.far_field(near, units), units)
    # A quarter of that with half the cells.
    assert np.max(np.abs(found - expected)) < 0.03 * np.max(np.abs(expected))
    expected = strength * exact_field(*dipoles, POINTS)
    values = em.project_fields(near, POINTS).values
    found = np.stack([np.asarray(values["E" + a][0]) for a in "xyz"], axis=-1)
    scale = np.max(np.abs(expected), axis=-1)
    # With m = 3 the field on the axis, where the second point nearly is, is small.
    assert np.all(np.max(np.abs(found - expected), axis=-1) < 0.04 * scale)
    power = float(near.outflow[0])
    assert float(em.radiated_power(near)[0]) == pytest.approx(power, rel=0.02)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("m", [1, 0, 3])
def test_outflow_is_that_of_any_closed_box_of_rings(m):
    rng = np.random.default_rng(2)
    epsilon = np.ones((30, 56))
    # Of the samples next to the source, inside of all boxes.
    epsilon[4:7, 26:30] = rng.uniform(1, 2, (3, 4))
    larger = em.NearFieldMonitor((0.0, CELL), (22 * CELL, 22 * CELL), FREQUENCY)
    boxes = {"near": CYLINDER, "larger": larger, "hollow": HOLLOW}
    top = em.FluxMonitor("z", (4.5 * CELL, 8 * CELL), (9 * CELL, 0.0), FREQUENCY)
    sim = scene(
        "Ep", m, em.Medium(epsilon), where=(5, 0), monitors=boxes | {"top": top}
    )
    found = em.simulate(sim).monitors
    top = found.pop("top")
    assert set(found["hollow"].faces) == {"-r", "+r", "-z", "+z"}
    power = float(found["near"].outflow[0])
    # What is left of the spectrum of the pulse beyond the rate of samples aliases.
    rounding = 1e-5 if wide() else 1e-4
    for one in found.values():
        assert one.closed
        assert float(one.outflow[0]) == pytest.approx(power, rel=rounding)
    # E on the node of the face, H half a cell off or the mean of both sides.
    through = float(top.flux[0])
    assert float(found["near"].flux["+z"][0]) == pytest.approx(through, rel=0.05)
    hollow, whole = (
        cartesian(em.far_field(found[n], UNITS), UNITS) for n in ("hollow", "near")
    )
    assert np.max(np.abs(hollow - whole)) < 0.02 * np.max(np.abs(whole))


def test_absorbed_power_is_what_rings_of_a_conductor_take():
    sigma = np.zeros((30, 56))
    sigma[6:8, 30:32] = 2e4
    medium = em.Medium(conductivity=jnp.asarray(sigma))
    box = em.NearFieldMonitor((7 * CELL, 3 * CELL), (4 * CELL, 4 * CELL), FREQUENCY)
    where = (6.5 * CELL, 2.5 * CELL), (3 * CELL, 3 * CELL)
    inside = em.FieldMonitor(("Er", "Ep", "Ez"), *where, FREQUENCY)
    monitors = {"near": box, "inside": inside}
    sim = scene("Ep", 2, medium, where=(2, 0), monitors=monitors)
    found = em.simulate(sim).monitors
    middle, taken = np.cos(np.pi * FREQUENCY * float(sim.dt)), 0.0
    for name, values in found["inside"].values.items():
        r, z = (np.asarray(x) / CELL for x in found["inside"].coordinates[name])
        i, j = np.round(r - 0.25).astype(int), np.round(z + 28 - 0.25).astype(int)
        square = np.abs(np.asarray(values)[0] / FEMTO) ** 2 * r[:, None]
        taken += np.sum(sigma[np.ix_(i, j)] * square)
    taken *= np.pi * middle * CELL**3 / 2
    absorbed = float(em.absorbed_power(found["near"])[0])
    assert absorbed == pytest.approx(taken, rel=1e-6 if wide() else 1e-3)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("component", "m"), [("Ez", 2), ("Er", 1), ("Hp", 1)])
def test_a_ring_emits_its_part_of_a_point(component, m):
    where = (4.0, 2.5) if component == "Ez" else (0.5, 0.0)
    dipole = scene(component, m, where=where).sources["ring"]
    monitors = {"near": CYLINDER, "out": em.EmissionMonitor(dipole, FREQUENCY)}
    sim = scene(component, m, where=where, monitors=monitors)
    found = em.simulate(sim).monitors
    rounding = 1e-5 if wide() else 1e-3
    power = float(found["near"].outflow[0])
    assert float(found["out"].power[0]) == pytest.approx(power, rel=rounding)
    part, tolerance = 1.0, 0.06
    if component == "Ez":
        # Its far field is that of the point times 2 cos(m phi) J_m(k r sin theta).
        nodes, weights = np.polynomial.legendre.leggauss(60)
        sine = np.sqrt(1 - nodes**2)
        bessel = jv(m, K * 4 * CELL * sine)
        part, tolerance = 1.5 * np.sum(weights * sine**2 * bessel**2), 0.03
    # On the axis a ring of half a cell: 0.978 and 0.957 at 15 cells per wavelength.
    assert float(em.purcell(found["out"])[0]) == pytest.approx(part, rel=tolerance)


def test_a_wide_window_changes_nothing_around_the_axis():
    through = em.Apodised(CYLINDER, 0.0, 1.0)
    # Samples are taken in each step, so that less of the pulse aliases.
    found = em.simulate(scene(monitors={"near": CYLINDER, "window": through})).monitors
    plain, window = (float(found[name].outflow[0]) for name in ("near", "window"))
    assert window == pytest.approx(plain, rel=1e-4)


@pytest.mark.x64
def test_the_intensity_of_rings_is_differentiable():
    def intensity(epsilon):
        block = jnp.ones((30, 56)).at[6:8, 29:32].set(epsilon)
        sim = scene("Er", 1, em.Medium(block), steps=300)
        near = em.simulate(sim).monitors["near"]
        far = em.far_field(near, em.direction(0.4, jnp.asarray([0.0, 0.8, 2.0])))
        point = em.project_fields(near, POINTS[0]).values["Ey"]
        return jnp.sum(far.intensity) * 1e-15 + jnp.abs(point[0]) * 1e15

    run = jax.jit(jax.value_and_grad(intensity))
    step = 1e-4
    slope = float(run(2 + step)[0] - run(2 - step)[0]) / (2 * step)
    assert float(run(2.0)[1]) == pytest.approx(slope, rel=1e-6)
    assert float(run(2.0)[0]) == pytest.approx(float(intensity(2.0)), rel=1e-9)


@pytest.mark.x64
@pytest.mark.parametrize(("component", "m"), [("Ez", 0), ("Ep", 1), ("Er", 2)])
@pytest.mark.parametrize("pole", [1.0, -1.0])
def test_far_fields_are_smooth_across_the_axis(component, m, pole):
    near = em.simulate(scene(component, m, steps=300)).monitors["near"]

    def field(t):
        unit = jnp.array([0.6 * t, 0.8 * t, pole]) / jnp.sqrt(1 + t**2)
        values = em.far_field(near, unit).values
        flat, upright = tangents(unit)
        return values["Etheta"][0] * flat + values["Ephi"][0] * upright

    step = 1e-4
    slope = (field(step) - field(-step)) / (2 * step)
    rounding = 1e-6 * np.max(np.abs(field(0.5)))
    tangent = jax.jvp(field, (0.0,), (1.0,))[1]
    assert np.max(np.abs(tangent - slope)) < rounding
    for part in (jnp.real, jnp.imag):
        row = jax.jacrev(lambda t, part=part: part(field(t)))(0.0)
        assert np.max(np.abs(row - part(slope))) < rounding


def test_rings_of_many_turns_send_nothing_out():
    near = em.simulate(scene(steps=300)).monitors["near"]
    # With the image across the axis, and H outside of the faces.
    assert near.cells == (20, 18)
    # At 5 cells a wave x = k r is 11 at most: J_0 is 0.1, and J_30 below 1e-7.
    fast = replace(near, frequencies=2.9 * near.frequencies)
    few, many = (
        em.far_field(replace(fast, m=m), UNITS).intensity.max() for m in (0, 30)
    )
    assert many < 1e-10 * few


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(
    ("component", "m", "box"),
    [("Ep", 1, CYLINDER), ("Ez", 0, CYLINDER), ("Er", 2, HOLLOW)],
)
def test_currents_of_a_record_send_its_field_again(component, m, box):
    names, everywhere = em.Cylindrical.components, (float("inf"),) * 2
    monitors = {"near": box} | {
        name: em.FieldMonitor((name,), (0.0, 0.0), everywhere, FREQUENCY)
        for name in names
    }
    inside = np.ones((30, 56))
    inside[4:6, 29:31] = 1.8
    outside = np.ones((30, 56))
    outside[12:14, 24:30] = 1.5
    one = em.simulate(
        scene(component, m, em.Medium(inside * outside), monitors=monitors)
    ).monitors
    pulse = em.GaussianPulse(1.02 * FREQUENCY, FREQUENCY / 9)
    again = {"again": em.HuygensSource(one["near"], pulse)}
    options = {"monitors": monitors, "sources": again, "steps": 900}
    other = em.simulate(scene(m=m, medium=em.Medium(outside), **options)).monitors
    (z, low), length = box.centre[::-1], box.size
    low = low if len(one["near"].faces) == 4 else 0.0
    rounding = 1e-5 if wide() else 1e-3
    for name in names:
        first, second = (np.asarray(run[name].values[name])[0] for run in (one, other))
        where = [np.asarray(x) for x in one[name].coordinates[name]]
        half = [one / 2 + CELL / 4 for one in length]
        within = np.logical_and.outer(
            abs(where[0] - low) < half[0], abs(where[1] - z) < half[1]
        )
        scale = np.max(np.abs(first[~within]), initial=0.0)
        assert np.max(np.abs(second - first)[~within]) <= rounding * scale
        assert np.max(np.abs(second[within])) <= rounding * scale


@pytest.mark.slow(after=1)
@pytest.mark.x64
def test_a_beam_collects_its_part_of_rings():
    sim = scene("Er", 1, where=(0.5, 0.0))
    near = em.simulate(sim).monitors["near"]
    waist, centre = 0.6 * MICRO, np.array([0.1, -0.2, 0.3]) * MICRO
    axis = np.array([np.sin(0.3), 0.0, np.cos(0.3)])
    found = complex(
        em.beam_overlap(
            near, waist, centre=centre, direction=axis, polarisation=(1.0, 0.0, 0.0)
        )[0]
    )
    # The same integral over a half sphere, of the exact dipoles.
    nodes, weights = np.polynomial.legendre.leggauss(80)
    phi = 2 * np.pi * np.arange(160) / 160
    theta = np.arccos((nodes + 1) / 2)
    units = np.asarray(em.direction(phi, theta[:, None]), float)
    share = np.broadcast_to(weights[:, None] / 2 * np.pi / 80, (80, 160)).ravel()
    units = units.reshape(-1, 3)
    # Turned to the axis of the beam.
    c, s = np.cos(0.3), np.sin(0.3)
    cosine, units = units[:, 2], units @ np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])
    field = np.array([c, 0.0, -s])
    vector = field - units * (units @ field)[:, None]
    envelope = cosine * np.exp(-(K**2) * waist**2 * (1 - cosine**2) / 4)
    beam = vector * (envelope * np.exp(-1j * K * units @ centre))[:, None]
    strength = 1j * K * ETA_0 * MOMENT * spectrum(sim) / (4 * np.pi) / FEMTO
    far = strength * exact_far(*ring("Er", 1, 0.5 * CELL, 0.0), units)
    norm = np.sqrt(2 * ETA_0 * np.sum(share * np.sum(np.abs(beam) ** 2, axis=-1)))
    expected = np.sum(share * np.sum(far * np.conj(beam), axis=-1)) / norm
    assert abs(abs(found) / abs(expected) - 1) < 0.02
    assert 0.02 < abs(found) ** 2 / float(near.outflow[0]) < 1


@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_what_rings_do_not_project():
    def near(**options):
        return em.simulate(scene(steps=3, **options)).monitors["near"]

    wall = em.Boundaries(r=em.PEC(), z=em.CPML(10))
    inner = em.Boundaries(r=(em.PEC(), em.CPML(10)), z=em.CPML(10))
    ring = {"monitors": {"near": HOLLOW}, "r": CELL}
    for options in ({"boundaries": wall}, {"boundaries": inner, **ring}):
        with pytest.raises(ArgumentError, match="has no wall along r to be projected"):
            em.far_field(near(**options), UNITS)
    with pytest.raises(ArgumentError, match="3 components along the last axis"):
        em.far_field(near(), np.array([[1.0, 0.0]]))
    top = em.NearFieldMonitor((0.0, 0.0), (18 * CELL, 0.0), FREQUENCY, "+z")
    with pytest.raises(ArgumentError, match="simulation in Cartesian coordinates"):
        em.diffraction_orders(near(monitors={"near": top}))
    low = em.NearFieldMonitor((0.0, 0.0), (18 * CELL, 16 * CELL), FREQUENCY, "-r")
    with pytest.raises(ArgumentError, match="and at r = 0 there is none"):
        near(monitors={"near": low})
    again = {"again": em.HuygensSource(near(), PULSE)}
    with pytest.raises(ArgumentError, match="the axes xy, but is from one with rz and"):
        em.Simulation(
            Grid.centred((20, 20), CELL), sources=again, polarisation="Ez", steps=3
        )
    with pytest.raises(ArgumentError, match="the axes rz and m = 2, but is from one w"):
        scene(m=2, steps=3, sources=again)
