"""Plane waves in a dispersive background: what is inside their box, and outside."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.grid import Grid
from physax.units import ETA_0, MICRO, NANO, SPEED_OF_LIGHT


CELL = 50 * NANO
CARRIER = SPEED_OF_LIGHT / (1 * MICRO)
PULSE = em.GaussianPulse(CARRIER, CARRIER / 4)
EVERYWHERE = float("inf")
GLASS = em.Material(1.4, poles=(em.Lorentz(0.9, 2.4 * CARRIER),))
LOSSY = em.Material(
    1.4, poles=(em.Lorentz(0.9, 2.4 * CARRIER, 0.4 * CARRIER), em.Debye(0.1, 2e-16))
)


NARROW = em.Material(1.4, poles=em.Lorentz(1e-4, 1.1 * CARRIER, 1e-3 * CARRIER))
RESONANT = em.Material(1.4, poles=em.Lorentz(3.0, CARRIER, 0.02 * CARRIER))


def permittivity(material):
    """The whole permittivity at the carrier."""
    return complex(em.complex_permittivity(material, CARRIER))


def leak_limit():
    """A few roundings of the incident wave, in either precision."""
    return 1e-12 if jnp.result_type(float) == jnp.float64 else 2e-6


def filled(material, shape, cell=CELL, fraction=1.0, **options):
    """A grid that is full of a material, whose poles lie in a layer there, too."""
    box = tuple((0, n) for n in shape)
    full = em.Dispersion(box, material.poles, fraction)
    medium = em.Medium(material.permittivity, dispersions=(full,))
    options = {"boundaries": em.Boundaries.all(em.CPML(8)), **options}
    # A resonance is above the band, where a layer may amplify; nothing is there.
    options["medium"] = medium
    return em.Simulation(Grid.centred(shape, cell), **options)


def wave(direction, component, size, material, pulse=PULSE, **options):
    """A wave of 2 V/m about the origin that belongs in a material."""
    return em.PlaneWave(
        direction,
        component,
        (0.0,) * len(size),
        size,
        pulse,
        2.0,
        material.permittivity,
        poles=material.poles,
        **options,
    )


WAVES = {
    "1-D": (1, None, ["+x Ez", "-x Ez"]),
    "2-D Ez": (2, "Ez", ["+x Ez", "-y Ez"]),
    "2-D Hz": (2, "Hz", ["-x Ey", "+y Ex"]),
    "3-D": (3, None, ["+x Ey", "-z Ex"]),
}
CELLS, BOX = {1: 60, 2: 40, 3: 26}, {1: 24, 2: 14, 3: 6}


@pytest.mark.filterwarnings("ignore:Dispersion 0 should end")
@pytest.mark.parametrize("material", [GLASS, LOSSY], ids=["glass", "lossy"])
@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow if "3" in c else ()) for c in WAVES]
)
def test_empty_box_leaks_nothing(case, material):
    ndim, polarisation, waves = WAVES[case]
    half = BOX[ndim] / 2 * CELL
    names = tuple(sorted({w[3:] for w in waves}))
    sim = filled(
        material,
        (CELLS[ndim],) * ndim,
        sources={w: wave(w[:2], w[3:], (2 * half,) * ndim, material) for w in waves},
        monitors={"all": em.TimeMonitor(names, (0.0,) * ndim, (EVERYWHERE,) * ndim)},
        polarisation=polarisation,
        steps=350,
    )
    series = em.simulate(sim).monitors["all"]
    for name in names:
        values = np.asarray(series.values[name])
        masks = [
            abs(np.asarray(x)) <= half + 1e-3 * CELL for x in series.coordinates[name]
        ]
        box = np.all(np.array(np.meshgrid(*masks, indexing="ij")), axis=0)
        assert np.abs(values).max() > 1.5
        assert np.abs(values[:, ~box]).max() <= leak_limit() * np.abs(values).max()


@pytest.mark.filterwarnings("ignore:Dispersion 0 should end")
@pytest.mark.parametrize("component", ["Ez", "Ey"])
def test_a_tilted_wave_leaks_nothing(component):
    # 40 degrees in the medium at the carrier.
    index = np.sqrt(np.real(permittivity(GLASS)))
    along = 2 * np.pi * CARRIER / SPEED_OF_LIGHT * index * np.sin(np.radians(40.0))
    sim = filled(
        GLASS,
        (60, 4),
        boundaries=em.Boundaries(x=em.CPML(8), y=em.Bloch(along)),
        sources={"w": wave("+x", component, (20 * CELL, EVERYWHERE), GLASS)},
        monitors={"all": em.TimeMonitor((component,), (0.0, 0.0), (EVERYWHERE,) * 2)},
        polarisation="Ez" if component == "Ez" else "Hz",
        steps=350,
    )
    series = em.simulate(sim).monitors["all"]
    values = np.abs(series.values[component])
    out = abs(np.asarray(series.coordinates[component][0])) > 10.1 * CELL
    assert values.max() > 1
    assert values[:, out].max() <= leak_limit() * values.max()


def spectra(material, places, cell=10 * NANO):
    """Returns a component at places along a wave, over the spectrum of its pulse."""
    pulse = em.GaussianPulse(CARRIER, CARRIER / 10)
    monitors = {
        str(at): em.FieldMonitor(("Ez",), (at * cell,), (0.0,), CARRIER)
        for at in places
    }
    sim = filled(
        material,
        (240,),
        cell,
        boundaries=em.Boundaries.all(em.CPML(20)),
        sources={"w": wave("+x", "Ez", (160 * cell,), material, pulse)},
        monitors=monitors,
        steps=6000,
    )
    found = em.simulate(sim).monitors
    duration = 1 / (2 * np.pi * float(pulse.bandwidth))
    peak = duration * np.sqrt(2 * np.pi) / 2
    return [complex(found[str(at)].values["Ez"].ravel()[0]) / peak for at in places]


@pytest.mark.filterwarnings("ignore:Dispersion 0 should end")
@pytest.mark.parametrize("material", [GLASS, LOSSY], ids=["glass", "lossy"])
def test_the_wave_has_its_amplitude_at_the_entry_and_the_index_of_the_medium(material):
    entry, *later = spectra(material, (-80, 20))
    assert abs(entry) == pytest.approx(2, rel=1e-3)
    index = np.sqrt(permittivity(material))
    # (k h)^2 / 24, with k h = 0.1, of the phase of 1.5 wavelengths.
    travelled = np.exp(2j * np.pi * index * 100 * 10 * NANO / (1 * MICRO))
    assert later[0] / entry == pytest.approx(travelled, rel=5e-3)


@pytest.mark.filterwarnings("ignore:Dispersion 0 should end")
def test_a_compensated_wave_still_leaks_nothing():
    sim = filled(
        GLASS,
        (40, 40),
        sources={"w": wave("+x", "Ez", (14 * CELL,) * 2, GLASS)},
        monitors={"all": em.TimeMonitor(("Ez",), (0.0, 0.0), (EVERYWHERE,) * 2)},
        polarisation="Ez",
        steps=200,
    )
    better = em.compensate_dispersion(sim, CARRIER)
    changed = better.sources["w"].permittivity / sim.sources["w"].permittivity
    assert abs(float(changed) - 1) > 1e-3
    series = em.simulate(better).monitors["all"]
    values = np.abs(series.values["Ez"])
    masks = [abs(np.asarray(x)) <= 7.1 * CELL for x in series.coordinates["Ez"]]
    assert values[:, ~np.logical_and.outer(*masks)].max() <= 2e-6 * values.max()


def scattered(material, frequency=CARRIER):
    """Returns the width of a rod of index 2.5 that scatters, in metres."""
    cells = 80
    rod = em.Structure(em.Circle((0.0, 0.0), 0.4 * MICRO), em.Material(6.25))
    pulse = em.GaussianPulse(CARRIER, CARRIER / 6)
    half = 1.2 * MICRO
    sides = {
        f"{axis}{sign}": em.FluxMonitor(
            axis,
            (sign * half, 0.0) if axis == "x" else (0.0, sign * half),
            (0.0, 2 * half) if axis == "x" else (2 * half, 0.0),
            frequency,
        )
        for axis in "xy"
        for sign in (-1, 1)
    }
    grid = Grid.centred((cells, cells), 1.6 * 2 / cells * MICRO)
    medium = em.rasterise([rod], grid, material, ("Ez", "Hx", "Hy"))
    sim = em.Simulation(
        grid,
        medium,
        em.Boundaries.all(em.CPML(8)),
        sources={"w": wave("+x", "Ez", (1.8 * MICRO,) * 2, material, pulse)},
        monitors=sides,
        polarisation="Ez",
        steps=1600,
    )
    found = em.simulate(sim).monitors
    power = sum(int(k[1:]) * float(found[k].flux.ravel()[0]) for k in sides)
    duration = 1 / (2 * np.pi * float(pulse.bandwidth))
    peak = 2.0 * duration * np.sqrt(2 * np.pi) / 2
    index = np.sqrt(complex(sim.sources["w"].background(frequency))).real
    return power / (index * peak**2 / (2 * ETA_0))


@pytest.mark.filterwarnings("ignore:Dispersion 0 should end")
def test_a_rod_scatters_as_in_a_medium_of_the_same_index():
    # At one frequency only the index counts.
    same = em.Material(float(np.real(permittivity(GLASS))))
    assert scattered(GLASS) == pytest.approx(scattered(same), rel=2e-3)


def bad(material, own, message, fraction=1.0):
    return pytest.param(material, own, fraction, message)


@pytest.mark.filterwarnings("ignore:Dispersion 0 should end")
@pytest.mark.parametrize(
    ("material", "own", "fraction", "message"),
    [
        bad(
            GLASS, em.Material(1.4), r"`poles` of the plane wave 'w' .* differ by 0\.88"
        ),
        bad(GLASS, LOSSY, "must be those of the medium at its faces"),
        bad(GLASS, GLASS, r"differ by 0\.0\d+ .* light would leak", 0.9),
        # A narrow line is seen on it alone.
        bad(NARROW, em.Material(1.4), "must be those of the medium at its faces"),
        bad(
            em.Material(1.4, poles=em.Drude(2 * CARRIER)),
            em.Material(1.4, poles=em.Drude(2 * CARRIER)),
            "must leave a permittivity above 0 .* but it is -2.5678",
        ),
    ],
)
def test_faces_want_the_poles_of_the_wave(material, own, fraction, message):
    source = {"w": wave("+x", "Ez", (8 * CELL,) * 2, own)}
    with pytest.raises(ArgumentError, match=message):
        filled(
            material,
            (30, 30),
            fraction=fraction,
            sources=source,
            polarisation="Ez",
            steps=3,
        )


@pytest.mark.filterwarnings("ignore:`grid` should have|Dispersion 0 should end")
def test_a_resonance_that_the_time_steps_shift_is_refused():
    # On the line the poles give 1.4 + 150i, in the run -18 + 147i.
    source = {"w": wave("+x", "Ez", (0.4 * MICRO,), RESONANT)}
    with pytest.raises(ArgumentError, match="as the time steps see it, but it is -17"):
        filled(RESONANT, (100,), 20 * NANO, sources=source, steps=3)


def test_poles_that_amplify_are_refused():
    with pytest.raises(ArgumentError, match="`poles` must not amplify"):
        em.PlaneWave("+x", "Ez", (0.0,), (CELL,), PULSE, poles=em.Lorentz(-1.0, 1e14))


@pytest.mark.filterwarnings("ignore:Dispersion 0 should end")
def test_other_poles_that_are_not_known_end_as_nan():
    @jax.jit
    def field(strength):
        poles = (em.Lorentz(strength, 2.4 * CARRIER),)
        own = eqx.tree_at(lambda m: m.poles, GLASS, poles)
        source = {"w": wave("+x", "Ez", (8 * CELL,), GLASS)}
        return em.simulate(filled(own, (30,), sources=source, steps=30)).fields["Ez"]

    assert np.all(np.isfinite(field(0.9)))
    assert np.any(np.isnan(field(1.0)))


@pytest.mark.filterwarnings("ignore:Dispersion 0 should end")
def test_a_wave_in_a_metal_that_is_not_known_ends_as_nan():
    @jax.jit
    def field(frequency):
        own = em.Material(1.4, poles=em.Drude(frequency))
        source = {"w": wave("+x", "Ez", (8 * CELL,), own)}
        return em.simulate(filled(own, (30,), sources=source, steps=30)).fields["Ez"]

    assert np.all(np.isfinite(field(0.3 * CARRIER)))
    assert np.any(np.isnan(field(2 * CARRIER)))


@pytest.mark.parametrize("material", [GLASS, LOSSY, RESONANT])
def test_the_lead_is_never_less_than_that_of_the_front(material):
    grid = Grid.uniform((40,), CELL)
    front = wave("+x", "Ez", (8 * CELL,), em.Material(1.4)).lead_time(grid)
    assert float(wave("+x", "Ez", (8 * CELL,), material).lead_time(grid)) >= front


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:Dispersion 0 should end")
@pytest.mark.parametrize("adjoint", [None, em.Checkpointed()], ids=["tape", "parts"])
def test_gradient_by_the_strength_of_the_background(adjoint):
    def energy(strength):
        poles = (em.Lorentz(strength, 2.4 * CARRIER),)
        own = eqx.tree_at(lambda m: m.poles, GLASS, poles)
        source = {"w": wave("+x", "Ez", (30 * CELL,), own)}
        monitor = {"dft": em.FieldMonitor(("Ez",), (5 * CELL,), (0.0,), CARRIER)}
        sim = filled(
            own, (60,), sources=source, monitors=monitor, steps=300, dt=0.9 * CELL / 3e8
        )
        options = {} if adjoint is None else {"adjoint": adjoint}
        value = em.simulate(sim, **options).monitors["dft"].values["Ez"]
        return jnp.sum(jnp.real(value)) * 1e15

    slope = jax.jit(jax.grad(energy))(0.9)
    step = 1e-4
    ends = [jax.jit(energy)(0.9 + sign * step) for sign in (1, -1)]
    expected = (ends[0] - ends[1]) / (2 * step)
    assert abs(expected) > 0.01 * abs(energy(0.9))
    assert float(slope) == pytest.approx(float(expected), rel=1e-5)
