"""Cylindrical coordinates against closed forms: cavities, a ring, a dipole, energy."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import jn_zeros, jnp_zeros

from physax import em
from physax.em._clock import Clock
from physax.grid import Grid
from physax.units import ETA_0, MICRO, NANO, SPEED_OF_LIGHT
from tests.validation.mie_series import amplitudes, mie, pressure
from tests.validation.spheres import SCATTERED
from tests.validation.stepping import started, stored_shape, yee_energies


RADIUS, HEIGHT = 1.0 * MICRO, 1.25 * MICRO


def cavity_error(kind, m, cells):
    """Returns the error of the lowest mode of a metal cylinder that varies along z."""
    zero = (jn_zeros if kind == "TM" else jnp_zeros)(m, 1)[0]
    k = np.hypot(zero / RADIUS, np.pi / HEIGHT)
    exact = SPEED_OF_LIGHT * k / (2 * np.pi)
    component = "Ez" if kind == "TM" else "Hz"
    pulse = em.GaussianPulse(exact, 0.3 * exact)
    shape = (cells, round(1.25 * cells))
    make = partial(
        em.Simulation,
        Grid.uniform(shape, RADIUS / cells),
        cylindrical=em.Cylindrical(m),
        sources={"kick": em.Dipole(component, (0.45 * RADIUS, 0.3 * HEIGHT), pulse)},
        monitors={
            "bell": em.TimeMonitor(
                (component,), (0.6 * RADIUS, 0.2 * HEIGHT), (0.0, 0.0), every=2
            )
        },
        # Else the errors in space and time of TM with m = 1 nearly cancel.
        courant=0.5,
    )
    over = float(pulse.duration())
    steps = round((over + 40 / exact) / float(make(steps=1).dt))
    bell = em.simulate(make(steps=steps)).monitors["bell"]
    found = em.resonances(bell, (0.85 * exact, 1.15 * exact), start=over)
    return np.min(np.abs(found.frequency / exact - 1))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize("kind", ["TM", "TE"])
def test_modes_of_a_metal_cylinder_converge_with_second_order(kind, m):
    coarse, fine = (cavity_error(kind, m, cells) for cells in (12, 24))
    assert fine < 2e-3
    assert np.log2(coarse / fine) >= 1.8


A = 1 * MICRO
EXACT = 0.1181916937 - 0.000764941335j  # in c/a, time exp(-i w t)


def ring_frequency(resolution):
    """Returns the mode m = 3 of a ring, n = 3.4 from r = 1 to 2, in c/a."""
    dr = A / resolution
    # A layer of two units, a quarter of a wave in vacuum; one cell along z.
    grid = Grid.uniform((6 * resolution, 1), dr)
    ring = em.Structure(em.Box((1.5 * A, 0.0), (A, np.inf)), em.Material(3.4**2))
    carrier = EXACT.real * SPEED_OF_LIGHT / A
    pulse = em.GaussianPulse(carrier, carrier / 6)
    make = partial(
        em.Simulation,
        grid,
        em.rasterise([ring], grid, components=em.Cylindrical.components),
        em.Boundaries(r=em.CPML(2 * resolution), z=em.Periodic()),
        cylindrical=em.Cylindrical(m=3),
        sources={"kick": em.Dipole("Ez", (1.5 * A, dr / 2), pulse)},
        monitors={
            "bell": em.TimeMonitor(
                ("Ez",), (1.7 * A, dr / 2), (0.0, 0.0), every=resolution
            )
        },
    )
    steps = round(300 * A / SPEED_OF_LIGHT / float(make(steps=1).dt))
    bell = em.simulate(make(steps=steps)).monitors["bell"]
    found = em.resonances(bell, (0.9 * carrier, 1.1 * carrier), start=pulse.duration())
    modes = found.complex_frequency * A / SPEED_OF_LIGHT
    return modes[np.argmin(abs(modes - EXACT))]


@pytest.mark.slow
def test_leaky_mode_of_a_ring():
    coarse, fine = ring_frequency(10), ring_frequency(20)
    assert abs(fine.real / EXACT.real - 1) <= 1.5e-3
    assert abs(-fine.real / (2 * fine.imag) / 77.25539747710403 - 1) <= 0.05
    assert np.log2(abs(coarse - EXACT) / abs(fine - EXACT)) >= 1.8
    assert abs((4 * fine - coarse) / 3 - EXACT) <= 1e-4 * abs(EXACT)


CELL = 20 * NANO
WAVE = 20 * CELL


def radiated(component, m):
    """Returns the power of a dipole on the axis through two surfaces, over exact."""
    carrier, moment = SPEED_OF_LIGHT / WAVE, 1e-13
    # Ricker's pulse leaves no static charge behind.
    pulse = em.Ricker(carrier)
    monitors = {}
    for name, r in (("small", 8 * CELL), ("large", 12 * CELL)):
        around = em.FluxMonitor("r", (r, 0.0), (0.0, 2 * r), carrier)
        monitors[name, 1] = around
        for sign in (-1, 1):
            lid = em.FluxMonitor("z", (r / 2, sign * r), (r, 0.0), carrier)
            monitors[f"{name} {sign}", sign] = lid
    sim = em.Simulation(
        Grid.uniform((26, 48), CELL, origin=(0.0, -24 * CELL)),
        None,
        em.Boundaries(r=em.CPML(10), z=em.CPML(10)),
        cylindrical=em.Cylindrical(m),
        sources={"dipole": em.Dipole(component, (0.0, 0.0), pulse, moment)},
        monitors={name: monitor for (name, _), monitor in monitors.items()},
        steps=1600,
    )
    found = em.simulate(sim).monitors
    steps = jnp.arange(sim.steps)
    values = jax.vmap(lambda n: pulse(Clock(2 * n + 1, sim.dt), jnp.zeros(())))(steps)
    phase = jnp.exp(2j * jnp.pi * carrier * (steps + 0.5) * sim.dt)
    spectrum = abs(jnp.sum(values * phase) * sim.dt) * 1e15  # in fs
    exact = ETA_0 * (2 * np.pi / WAVE * moment * spectrum) ** 2 / (12 * np.pi)
    flow = {"small": 0.0, "large": 0.0}
    for name, sign in monitors:
        flow[name.split()[0]] += sign * float(found[name].flux[0] / exact)
    return flow


@pytest.mark.slow
@pytest.mark.parametrize(("component", "m"), [("Ez", 0), ("Er", 1)])
def test_dipole_on_the_axis_radiates_what_it_must(component, m):
    flow = radiated(component, m)
    # The grid's own error, some (k dr)^2 / 12 = 0.8 %; and Er sits half a cell off the
    # axis, where (k dr)^2 / 4 = 2.5 % of its power is missing.
    assert flow["small"] == pytest.approx(1, abs=0.01 if m == 0 else 0.035)
    # Nothing is lost between the two surfaces; the samples on the rims are not counted.
    assert flow["large"] == pytest.approx(flow["small"], rel=1e-2)


def graded(cells, low, seed):
    widths = np.random.default_rng(seed).uniform(0.7, 1.3, cells)
    return low + CELL * np.r_[0.0, np.cumsum(widths)]


WALLS = {
    "axis": (0.0, em.Boundaries(r=em.PMC(), z=(em.PMC(), em.PEC()))),
    "hollow": (5 * CELL, em.Boundaries(r=(em.PMC(), em.PEC()), z=em.Periodic())),
}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("m", [1, 0, 3])
@pytest.mark.parametrize("walls", WALLS)
def test_energy_is_conserved_in_a_random_medium(walls, m):
    low, faces = WALLS[walls]
    grid = Grid.graded([graded(14, low, 1), graded(12, 0.0, 2)])
    rng = np.random.default_rng(3)
    names = em.Cylindrical.components
    values = {n: jnp.asarray(rng.uniform(1, 9, grid.shape)) for n in names}
    medium = em.Medium(*({n: v for n, v in values.items() if n[0] == c} for c in "EH"))
    sim = em.Simulation(grid, medium, faces, cylindrical=em.Cylindrical(m), steps=2000)
    fields = {}
    for name in names:
        field = np.zeros(stored_shape(sim))
        field[:-2, 2:-2] = rng.normal(size=field[:-2, 2:-2].shape)
        if walls == "axis" and (name in ("Ep", "Hr") or (name == "Ez" and m)):
            field[0] = 0
        fields[name] = jnp.asarray(field)
    energies = np.asarray(yee_energies(sim, fields, 100))
    # Each step rounds by some 1e-16, at random.
    assert np.max(np.abs(energies / energies[0] - 1)) <= 1e-12


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("m", [0, 1, 3])
def test_the_limit_of_the_time_step_is_the_true_one(m, monkeypatch):
    # The walls hold all six components: the limit is that of the matrix itself.
    monkeypatch.setattr("physax.em._simulation.check_step", lambda *_: None)
    grid, rng = Grid.uniform((12, 10), CELL), np.random.default_rng(4)
    make = partial(em.Simulation, grid, cylindrical=em.Cylindrical(m), steps=1500)
    limit = make(courant=1.0).dt
    start = np.zeros(grid.shape)
    start[:-2, 2:-2] = rng.normal(size=start[:-2, 2:-2].shape)
    fields = {"Er": jnp.asarray(start), "Hz": jnp.asarray(start)}
    energies = np.asarray(yee_energies(make(dt=0.9999 * limit), fields, 100))
    assert np.max(np.abs(energies / energies[0] - 1)) <= 1e-12
    # The energy of a mode that grows is zero: the field shows it.
    beyond = make(dt=1.02 * limit)
    grown = em.advance(beyond, started(beyond, fields), 0, 400).fields["Er"]
    assert np.max(np.abs(grown)) > 1e6 * np.max(np.abs(start))


@pytest.mark.slow
@pytest.mark.parametrize("m", [0, 1, 3])
def test_layers_around_the_axis_never_give_energy_back(m):
    shape = (20, 24)
    eps, sigma = np.ones(shape), np.zeros(shape)
    # A disk of high index and loss that runs through the layer, and a dense corner.
    eps[:, 10:15], sigma[:10, 10:15], eps[-3:, -3:] = 12.0, 2e3, 6.0
    pulse = em.Ricker(SPEED_OF_LIGHT / (100 * CELL))
    layer = em.CPML(8, kappa_max=5.0 if m == 1 else None)
    sim = em.Simulation(
        Grid.uniform(shape, CELL),
        em.Medium(jnp.asarray(eps), conductivity=jnp.asarray(sigma)),
        em.Boundaries(r=layer, z=em.CPML(8)),
        cylindrical=em.Cylindrical(m),
        sources={
            "in": em.Dipole("Er", (2.2 * CELL, 12.2 * CELL), pulse),
            "round": em.Dipole("Ep", (3.2 * CELL, 12.2 * CELL), pulse),
        },
        monitors={"energy": em.EnergyMonitor(100)},
        steps=40_000,
    )
    energy = np.asarray(em.simulate(sim).monitors["energy"].energy)
    peaks = energy.reshape(-1, 20).max(axis=1) / energy.max()
    # Were the radius not stretched in the same way for E and for H, the fields of m > 0
    # would grow by some 1e7 every 10,000 steps.
    assert np.all(peaks[1:] <= np.maximum(1.5 * peaks[:-1], 1e-25))
    assert peaks[-1] <= 1e-12


def scattered(medium, cells):
    """Returns what leaves a wave, and its flux through half of its radius, 2 sizes."""
    cell, wide, out = RADIUS / cells, 1.5 * RADIUS, 1.8 * RADIUS
    f = np.array([1.0, 3.0]) * SPEED_OF_LIGHT / (2 * np.pi * RADIUS)
    half = round(2.6 * cells) + 12
    grid = Grid.uniform((half, 2 * half), cell, (0.0, -half * cell))
    pulse = em.GaussianPulse(2.5 * f[0], 1.3 * f[0])
    wave = em.PlaneWave("+z", "Er", (0.0, 0.0), (2 * wide, 2 * wide), pulse)
    sim = em.Simulation(
        grid,
        medium(grid),
        em.Boundaries(r=em.CPML(12), z=em.CPML(12)),
        cylindrical=em.Cylindrical(1),
        sources={"wave": wave},
        monitors={
            "side": em.FluxMonitor("r", (out, 0.0), (0.0, 2 * out), f),
            "up": em.FluxMonitor("z", (out / 2, out), (out, 0.0), f),
            "down": em.FluxMonitor("z", (out / 2, -out), (out, 0.0), f),
            "sent": em.FluxMonitor("z", (wide / 4, -wide / 2), (wide / 2, 0.0), f),
            "near": em.NearFieldMonitor((0.0, 0.0), (2 * out, 2 * out), f),
            "force": em.ForceMonitor((0.0, 0.0), (2.6 * RADIUS, 2.6 * RADIUS), f),
        },
        steps=140 * cells,
    )
    found = em.simulate(sim).monitors
    near, force = (found.pop(name) for name in ("near", "force"))
    flux = {name: np.asarray(m.flux) for name, m in found.items()}
    sent = 4 * flux["sent"] / 1.5**2
    return flux["side"] + flux["up"] - flux["down"], sent, near, force.force


@pytest.mark.slow
def test_sphere_scatters_a_plane_wave_as_the_series():
    # A circle about the origin. Cells on its surface are averaged by volume.
    def ball(grid):
        sphere = em.Structure(em.Circle((0.0, 0.0), RADIUS), em.Material(2.25))
        return em.rasterise([sphere], grid, components=em.Cylindrical.components)

    _, sent, _, none = scattered(lambda grid: em.Medium(), 20)
    power, _, near, force = scattered(ball, 20)
    series = [SCATTERED[1, 1.5], SCATTERED[3, 1.5]]
    np.testing.assert_allclose(power / sent, series, rtol=0.025)
    np.testing.assert_allclose(near.outflow, power, rtol=0.01)
    # By angle in both planes: |S|^2 / k^2 of the incident flux through pi RADIUS^2.
    theta = np.linspace(0.0, np.pi, 13)
    planes = np.array([0.0, np.pi / 2])[:, None]
    found = np.asarray(em.far_field(near, em.direction(planes, theta)).intensity)
    assert set(force) == {"z"}
    assert np.max(np.abs(none["z"]) * SPEED_OF_LIGHT / sent) < 1e-6
    pushed = np.asarray(force["z"]) * SPEED_OF_LIGHT / sent
    for number, size in enumerate((1.0, 3.0)):
        both = mie(size, 1.5)
        assert pushed[number] == pytest.approx(pressure(*both, size), rel=0.025)
        across, along = (np.abs(s) ** 2 for s in amplitudes(*both, theta))
        expected = np.stack([along, across]) / (np.pi * size**2) * sent[number]
        error = np.abs(found[number] - expected)
        assert np.max(error) < 0.025 * np.max(expected)
