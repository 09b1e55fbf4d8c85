"""The total-field, scattered-field source: what is inside its box, and outside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.grid import Grid, smooth_edges
from physax.units import MICRO, NANO, SPEED_OF_LIGHT


CELL = 50 * NANO
CARRIER = SPEED_OF_LIGHT / (1 * MICRO)
PULSE = em.GaussianPulse(CARRIER, CARRIER / 4)
CELLS = {1: 60, 2: 40, 3: 26}
BOX = {1: 24, 2: 14, 3: 6}
STEPS = {1: 500, 2: 500, 3: 350}


def leak_limit():
    """A few roundings of the incident wave, in either precision."""
    return 1e-12 if jnp.result_type(float) == jnp.float64 else 1e-6


def watched(grid, wave, steps, polarisation, component, boundaries=None):
    """Returns the component everywhere after every step and where its samples lie."""
    ndim = grid.ndim
    layers = em.Boundaries.all(em.CPML(6))
    watch = em.TimeMonitor((component,), (0.0,) * ndim, (float("inf"),) * ndim)
    sim = em.Simulation(
        grid,
        boundaries=layers if boundaries is None else boundaries,
        sources={"wave": wave},
        monitors={"all": watch},
        polarisation=polarisation,
        steps=steps,
    )
    series = em.simulate(sim).monitors["all"]
    return np.asarray(series.values[component]), series.coordinates[component]


def inside(coordinates, half):
    """Tells which samples lie in the box, its border included."""
    masks = [np.abs(np.asarray(x)) <= half + 1e-3 * CELL for x in coordinates]
    return np.all(np.array(np.meshgrid(*masks, indexing="ij")), axis=0)


DIRECTIONS = [
    (1, None, "+x", "Ez"),
    (1, None, "-x", "Ez"),
    *((2, "Ez", d, "Ez") for d in ("+x", "-x", "+y", "-y")),
    *((2, "Hz", d, "E" + "yx"["xy".index(d[1])]) for d in ("+x", "-x", "+y", "-y")),
    (3, None, "+x", "Ey"),
    (3, None, "-x", "Ez"),
    (3, None, "+y", "Ez"),
    (3, None, "-y", "Ex"),
    (3, None, "+z", "Ex"),
    (3, None, "-z", "Ey"),
]


@pytest.mark.parametrize(("ndim", "polarisation", "direction", "component"), DIRECTIONS)
def test_empty_box_leaks_nothing(ndim, polarisation, direction, component):
    half = BOX[ndim] / 2 * CELL
    wave = em.PlaneWave(
        direction, component, (0.0,) * ndim, (2 * half,) * ndim, PULSE, 2.0
    )
    grid = Grid.centred((CELLS[ndim],) * ndim, CELL)
    values, where = watched(grid, wave, STEPS[ndim], polarisation, component)
    box = inside(where, half)
    peak = np.abs(values[:, box]).max()
    # The pulse has passed; its largest sample lies within half a step of its peak.
    assert peak == pytest.approx(2.0, rel=0.05)
    assert np.abs(values[:, ~box]).max() <= leak_limit() * peak
    assert np.abs(values[-1]).max() <= max(1e-6, leak_limit()) * peak


@pytest.mark.parametrize("direction", ["+x", "-x"])
def test_box_leaks_nothing_on_a_graded_grid(direction):
    edges = smooth_edges(
        -1.5 * MICRO,
        1.5 * MICRO,
        coarse=50 * NANO,
        fine=20 * NANO,
        region=(-0.2 * MICRO, 0.2 * MICRO),
        ratio=1.1,
    )
    wave = em.PlaneWave(direction, "Ez", (0.0,), (2 * MICRO,), PULSE)
    sim = em.Simulation(
        Grid.graded([edges]),
        boundaries=em.Boundaries.all(em.CPML(6)),
        sources={"wave": wave},
        monitors={"all": em.TimeMonitor(("Ez",), (0.0,), (float("inf"),))},
        steps=1200,
    )
    series = em.simulate(sim).monitors["all"]
    values = np.asarray(series.values["Ez"])
    box = inside(series.coordinates["Ez"], 1 * MICRO + 25 * NANO)
    peak = np.abs(values[:, box]).max()
    assert peak == pytest.approx(1.0, rel=0.05)
    assert np.abs(values[:, ~box]).max() <= leak_limit() * peak


@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
@pytest.mark.parametrize("direction", ["+x", "-x"])
def test_oblique_sheet_sends_nothing_back(polarisation, direction):
    # 40 degrees from the normal at the carrier, by the phase of one period along y.
    period = 4 * CELL
    along = 2 * jnp.pi * CARRIER / SPEED_OF_LIGHT * jnp.sin(jnp.radians(40.0))
    component = "Ez" if polarisation == "Ez" else "Ey"
    wave = em.PlaneWave(
        direction,
        component,
        (0.0, 0.0),
        (20 * CELL, float("inf")),
        em.GaussianPulse(CARRIER, CARRIER / 20),
        exit=False,
    )
    values, where = watched(
        Grid.centred((60, 4), CELL),
        wave,
        1500,
        polarisation,
        component,
        em.Boundaries(x=em.CPML(10), y=em.Bloch(along)),
    )
    x = np.asarray(where[0]) * (1 if direction == "+x" else -1)
    total = x >= -10.1 * CELL
    peak = np.abs(values[:, total]).max()
    assert values.dtype == jnp.result_type(float, jnp.complex64)
    assert np.abs(values[:, ~total]).max() <= leak_limit() * peak
    # Total field all the way to the layer, with the phase of the oblique wave.
    last = values[750, total][20]
    np.testing.assert_allclose(
        last[1:] / last[:-1], np.exp(1j * along * period / 4), rtol=1e-3
    )


def spectrum_peak(pulse):
    """Modulus of the pulse's spectrum at its carrier, in seconds."""
    tau = 1 / (2 * np.pi * float(pulse.bandwidth))
    return tau * np.sqrt(2 * np.pi) / 2


@pytest.mark.parametrize("permittivity", [1.0, 2.25])
def test_amplitude_at_the_carrier_is_the_one_asked_for(permittivity):
    pulse = em.GaussianPulse(CARRIER, CARRIER / 10)
    wave = em.PlaneWave("+x", "Ez", (0.0,), (20 * CELL,), pulse, 3.0, permittivity)
    sim = em.Simulation(
        Grid.centred((60,), CELL),
        em.Medium(permittivity),
        em.Boundaries.all(em.CPML(10)),
        sources={"wave": wave},
        monitors={"dft": em.FieldMonitor(("Ez",), (0.0,), (0.0,), CARRIER)},
        steps=1200,
    )
    amplitude = np.abs(em.simulate(sim).monitors["dft"].values["Ez"]).item()
    assert amplitude == pytest.approx(3 * spectrum_peak(pulse), rel=1e-3)


def test_amplitude_is_a_leaf_that_batches_and_differentiates():
    wave = em.PlaneWave("+x", "Ez", (0.0,), (10 * CELL,), PULSE)

    def energy(amplitude):
        sim = em.Simulation(
            Grid.centred((30,), CELL),
            boundaries=em.Boundaries.all(em.CPML(5)),
            sources={"wave": em.PlaneWave("+x", "Ez", (0.0,), wave.size, PULSE, amplitude)},
            monitors={"dft": em.FieldMonitor(("Ez",), (0.0,), (0.0,), CARRIER)},
            steps=300,
        )
        return jnp.sum(jnp.abs(em.simulate(sim).monitors["dft"].values["Ez"]) ** 2)

    amplitudes = jnp.array([1.0, 2.0])
    one, two = jax.jit(jax.vmap(energy))(amplitudes)
    assert two / one == pytest.approx(4, rel=1e-5)
    slope = jax.grad(energy)(amplitudes[1])
    assert slope / two == pytest.approx(1, rel=1e-5)  # d(a^2)/da = 2 a^2 / a, a = 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"direction": "x"}, "`direction` must be one of .*, but is 'x'"),
        ({"component": "Ex"}, "`component` must be an electric component across"),
        ({"component": "Hz"}, "`component` must be an electric component across"),
        ({"permittivity": 0.0}, "`permittivity` must be positive, but is 0"),
    ],
)
def test_bad_waves_are_refused(change, message):
    given = {
        "direction": "+x",
        "component": "Ez",
        "centre": (0.0, 0.0),
        "size": (CELL, CELL),
        "pulse": PULSE,
    }
    with pytest.raises(ArgumentError, match=message):
        em.PlaneWave(**{**given, **change})
