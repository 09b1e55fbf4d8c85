"""Ports, mode sources and mode monitors in dispersive guides."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.em._boxes import cells_of
from physax.em._medium import at_component
from physax.em._poles import susceptibility
from physax.grid import Grid
from physax.units import MU_0, SPEED_OF_LIGHT


# The guides go on into the layers, and the metal is thinner than its skin.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Dispersion .* should end before",
    "ignore:`grid` should have cells below",
    "ignore:The fields had not decayed",
)

CELL = 40e-9
WAVES = np.array([1.4e-6, 1.55e-6, 1.7e-6])
# Of index 3.4 to 3.5 in the band.
RESONANCE = em.Lorentz(2.0, 4e14, 0.0)
CORE = em.Material(9.0, poles=RESONANCE)
RTOL = 100 * np.finfo(np.dtype(jnp.result_type(float))).eps
COMPONENTS = {"Ez": ("Ez", "Hx", "Hy"), "Hz": ("Hz", "Ex", "Ey"), None: None}
LOSSY = em.Lorentz(4.0, 3e14, 3e14)


def guide(material, ndim=2, polarisation="Ez", length=80):
    """A core along x in a cladding with a pole of its own, and a port on it."""
    cells = (length, 64) if ndim == 2 else (length, 24, 22)
    size = (np.inf, 6 * CELL) if ndim == 2 else (np.inf, 8 * CELL, 6 * CELL)
    grid = Grid.centred(cells, CELL)
    cladding = em.Material(2.0, poles=em.Lorentz(0.1, 2e15, 0.0))
    core = em.Structure(em.Box((0.0,) * ndim, size), material)
    averaging = "volume" if ndim == 2 else "staircase"
    components = COMPONENTS[None if ndim == 3 else polarisation]
    medium = em.rasterise(
        [core], grid, cladding, components=components, averaging=averaging
    )
    return grid, medium, None if ndim == 3 else polarisation


def run(medium, grid, polarisation, ports, steps, frequencies, **options):
    ndim = grid.ndim
    pulse = em.band_pulse(SPEED_OF_LIGHT / WAVES[-1], SPEED_OF_LIGHT / WAVES[0])
    source = em.Port((-12 * CELL, *(0.0,) * (ndim - 1)), np.inf, "+x")
    return em.Simulation(
        grid,
        medium,
        em.Boundaries.all(em.CPML(8)),
        polarisation=polarisation,
        sources={"in": em.ModeSource(source, pulse)},
        monitors={k: em.ModeMonitor(p, frequencies) for k, p in ports.items()},
        steps=steps,
        **options,
    )


def port(at, ndim=2):
    return em.Port((at * CELL, *(0.0,) * (ndim - 1)), np.inf, "+x")


def seen(frequency, dt):
    """The frequency at which a pole stepped by the trapezoidal rule answers."""
    return np.tan(np.pi * frequency * dt) / (np.pi * dt)


def at_frequency(medium, shape, frequency, dt):
    """The medium with numbers in place of its poles, those of one frequency."""
    epsilon = {}
    for name in medium.permittivity:
        value = np.array(at_component(medium.permittivity, name), float)
        value = np.broadcast_to(value, shape).copy()
        for one in medium.dispersions:
            chi = susceptibility(one.poles, seen(frequency, dt))
            value[cells_of(one.box)] += np.asarray(one.at(name)) * float(jnp.real(chi))
        epsilon[name] = value
    return em.Medium(epsilon)


CASES = [(2, "Ez"), (2, "Hz"), (3, None)]


@pytest.mark.parametrize(("ndim", "polarisation"), CASES)
def test_modes_are_those_of_the_permittivity_at_the_frequency(ndim, polarisation):
    grid, medium, polarisation = guide(CORE, ndim, polarisation)
    frequencies = SPEED_OF_LIGHT / WAVES
    rest = (polarisation, {"p": port(0, ndim)}, 1)
    sim = run(medium, grid, *rest, frequencies)
    found = em.simulate(sim).monitors["p"]
    for i, f in enumerate(frequencies):
        plain = at_frequency(medium, grid.shape, f, float(sim.dt))
        same = em.simulate(run(plain, grid, *rest, [f], dt=sim.dt)).monitors["p"]
        np.testing.assert_allclose(
            found.effective_index[i], same.effective_index[0], rtol=RTOL
        )
    assert bool(jnp.all(found.guided))
    bare = em.Medium(medium.permittivity)
    without = em.simulate(run(bare, grid, *rest, frequencies)).monitors["p"]
    assert bool(jnp.all(found.effective_index > without.effective_index + 0.05))


@pytest.mark.f32
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_what_enters_a_dispersive_guide_passes_at_all_frequencies(polarisation):
    grid, medium, _ = guide(CORE, polarisation=polarisation)
    frequencies = SPEED_OF_LIGHT / WAVES
    ports = {"near": port(-6), "far": port(14)}
    sim = run(medium, grid, polarisation, ports, 4000, frequencies)
    found = em.simulate(sim).monitors
    near, far = found["near"], found["far"]
    passed = np.asarray(far.incoming / near.incoming)
    np.testing.assert_allclose(np.abs(passed), 1, atol=2e-4)
    assert np.max(np.abs(near.outgoing / near.incoming)) < 2e-3
    # The phase is that of the mode, with the material's dispersion.
    dt = float(sim.dt)
    k0 = 2 * np.sin(np.pi * frequencies * dt) / (SPEED_OF_LIGHT * dt)
    beta = 2 / CELL * np.arcsin(np.asarray(near.effective_index) * k0 * CELL / 2)
    turned = np.exp(1j * 20 * CELL * beta) / passed
    np.testing.assert_allclose(turned, 1, atol=1e-3)


def test_ports_in_metals_and_in_much_loss_are_refused():
    frequencies = SPEED_OF_LIGHT / WAVES
    drude = em.Material(1.0, poles=em.Drude(2e15, 1e13))
    cases = [
        (drude, "permittivity must be positive in {}.*, but is -"),
        (em.Material(9.0, poles=LOSSY), "loss tangent .* at most 0.1 in {}"),
    ]
    ports = {"a": em.Port((-8 * CELL, 0.0), np.inf, "+x", offset=4 * CELL)}
    for material, message in cases:
        grid, medium, polarisation = guide(material)
        sim = run(medium, grid, polarisation, {"p": port(0)}, 1, frequencies)
        with pytest.raises(ArgumentError, match=message.format("source 'in'")):
            em.simulate(sim)
        bare = em.Simulation(
            grid, medium, sim.boundaries, polarisation=polarisation, steps=1
        )
        with pytest.raises(ArgumentError, match=message.format("port 'a'")):
            em.s_parameters(bare, ports, WAVES)
        # What is traced is not known: the amplitudes are NaN.
        inside = jax.jit(lambda s: em.simulate(s).monitors["p"].incoming)(sim)
        assert bool(jnp.all(jnp.isnan(inside)))


@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_ports_in_much_magnetic_loss_are_refused(polarisation):
    frequency = SPEED_OF_LIGHT / WAVES[1]
    ports = {"a": em.Port((-8 * CELL, 0.0), np.inf, "+x", offset=4 * CELL)}

    def sim(tangent):
        sigma = tangent * 2 * np.pi * frequency * 1.5 * MU_0
        core = em.Material(9.0, 1.5, magnetic_conductivity=sigma)
        grid, medium, _ = guide(core, polarisation=polarisation)
        medium = em.Medium(
            at_component(medium.permittivity, "E" + "zx"[polarisation == "Hz"]),
            medium.permeability,
            magnetic_conductivity=medium.magnetic_conductivity,
        )
        return run(medium, grid, polarisation, {"p": port(0)}, 1, frequency[None])

    def bare(tangent):
        return eqx.tree_at(lambda s: (s.sources, s.monitors), sim(tangent), ({}, {}))

    # Of a source at the frequency of its pulse.
    message = "loss tangent .* at most 0.1 in {}.*, but is 0.(3|29)"
    with pytest.raises(ArgumentError, match=message.format("source 'in'")):
        em.simulate(sim(0.3))
    with pytest.raises(ArgumentError, match=message.format("port 'a'")):
        em.s_parameters(bare(0.3), ports, WAVES[1:2])
    inside = jax.jit(lambda s: em.simulate(s).monitors["p"].incoming)
    assert bool(jnp.all(jnp.isnan(inside(sim(0.3)))))
    assert bool(jnp.all(jnp.isfinite(inside(sim(0.05)))))


@pytest.mark.x64
def test_amplitudes_have_derivatives_by_the_poles_of_a_port():
    grid, medium, polarisation = guide(CORE)
    f = SPEED_OF_LIGHT / WAVES[1:2]

    def passed(share):
        first = em.Dispersion(
            medium.dispersions[0].box, medium.dispersions[0].poles, share
        )
        changed = em.Medium(
            medium.permittivity, dispersions=(first, *medium.dispersions[1:])
        )
        sim = run(changed, grid, polarisation, {"p": port(6)}, 300, f)
        return jnp.abs(em.simulate(sim).monitors["p"].incoming[0]) ** 2

    slope = jax.grad(passed)(0.9)
    step = 1e-4
    difference = (passed(0.9 + step) - passed(0.9 - step)) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-5)


def test_monitors_in_metals_are_refused():
    # The source ends before the metal, the monitor does not.
    grid, medium, polarisation = guide(CORE)
    metal = em.Dispersion(((0, 80), (56, 60)), em.Drude(2e15, 1e13))
    medium = em.Medium(medium.permittivity, dispersions=metal)
    frequencies = SPEED_OF_LIGHT / WAVES
    sim = run(medium, grid, polarisation, {"p": port(0)}, 1, frequencies)
    narrow = em.Port((-12 * CELL, 0.0), 30 * CELL, "+x")
    source = em.ModeSource(narrow, sim.sources["in"].pulse)
    sim = em.Simulation(
        grid,
        medium,
        sim.boundaries,
        polarisation=polarisation,
        sources={"in": source},
        monitors=sim.monitors,
        steps=1,
    )
    for start in (em.simulate, lambda s: em.run(s, progress=False)):
        with pytest.raises(ArgumentError, match="must be positive in monitor 'p'"):
            start(sim)
