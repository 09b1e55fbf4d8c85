"""The total-field, scattered-field source: what is inside its box, and outside."""

import equinox as eqx
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


EVERYWHERE = float("inf")


def inside(coordinates, half):
    """Tells which samples lie in the box, its border included."""
    masks = [np.abs(np.asarray(x)) <= half + 1e-3 * CELL for x in coordinates]
    return np.all(np.array(np.meshgrid(*masks, indexing="ij")), axis=0)


WAVES = {
    "1-D up": (1, None, ["+x Ez"]),
    "1-D down": (1, None, ["-x Ez"]),
    "2-D Ez": (2, "Ez", ["+x Ez", "-x Ez", "+y Ez", "-y Ez"]),
    "2-D Hz": (2, "Hz", ["+x Ey", "-x Ey", "+y Ex", "-y Ex"]),
    "3-D up": (3, None, ["+x Ey", "+y Ez", "+z Ex"]),
    "3-D down": (3, None, ["-x Ez", "-y Ex", "-z Ey"]),
}
SLOW = ("3-D up", "3-D down")


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=pytest.mark.slow if c in SLOW else ()) for c in WAVES],
)
def test_empty_box_leaks_nothing(case):
    # All directions at once, which a leak of any one would spoil.
    ndim, polarisation, waves = WAVES[case]
    half = BOX[ndim] / 2 * CELL
    box = (0.0,) * ndim, (2 * half,) * ndim
    names = tuple(sorted({w[3:] for w in waves}))
    sim = em.Simulation(
        Grid.centred((CELLS[ndim],) * ndim, CELL),
        boundaries=em.Boundaries.all(em.CPML(8)),
        sources={w: em.PlaneWave(w[:2], w[3:], *box, PULSE, 2.0) for w in waves},
        monitors={
            "all": em.TimeMonitor(names, (0.0,) * ndim, (EVERYWHERE,) * ndim),
            "middle": em.TimeMonitor(names, (0.0,) * ndim, (0.0,) * ndim),
        },
        polarisation=polarisation,
        steps=STEPS[ndim],
    )
    found = em.simulate(sim).monitors
    for name in names:
        # In the middle all waves with one component meet in phase. Half a cell off it
        # and half a step off the peak they have lost some 5 percent.
        peak = np.abs(found["middle"].values[name]).max()
        meeting = sum(w[3:] == name for w in waves)
        assert peak == pytest.approx(2.0 * meeting, rel=0.1)
        values = np.asarray(found["all"].values[name])
        box = inside(found["all"].coordinates[name], half)
        assert np.abs(values[:, ~box]).max() <= leak_limit() * peak
        # The pulse is over: exp(-6^2 / 2), or what rounding leaves in the box.
        assert np.abs(values[-1]).max() <= 1e-5 * peak


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
        boundaries=em.Boundaries.all(em.CPML(8)),
        sources={"wave": wave},
        monitors={"all": em.TimeMonitor(("Ez",), (0.0,), (EVERYWHERE,))},
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
    # 40 degrees from the normal at the carrier, by the phase of one period along y. The
    # run ends before the layer, 290 cells away, can send anything back.
    period = 4 * CELL
    along = 2 * jnp.pi * CARRIER / SPEED_OF_LIGHT * jnp.sin(jnp.radians(40.0))
    component = "Ez" if polarisation == "Ez" else "Ey"
    pulse = em.GaussianPulse(CARRIER, CARRIER / 8)
    box = (0.0, 0.0), (20 * CELL, EVERYWHERE)
    sim = em.Simulation(
        Grid.centred((600, 4), CELL),
        boundaries=em.Boundaries(x=em.CPML(10), y=em.Bloch(along)),
        sources={"wave": em.PlaneWave(direction, component, *box, pulse, exit=False)},
        monitors={"all": em.TimeMonitor((component,), (0.0, 0.0), (EVERYWHERE,) * 2)},
        polarisation=polarisation,
        steps=560,
    )
    series = em.simulate(sim).monitors["all"]
    values = np.asarray(series.values[component])
    x = np.asarray(series.coordinates[component][0]) * float(direction[0] + "1")
    total = x >= -10.1 * CELL
    peak = np.abs(values[:, total]).max()
    assert np.iscomplexobj(values)
    assert values.real.dtype == jnp.result_type(float)
    assert peak == pytest.approx(1.0, rel=0.05)
    assert np.abs(values[:, ~total]).max() <= leak_limit() * peak
    # The wave has the phase of the Bloch vector from cell to cell.
    row = values[300, np.argmin(np.abs(x))]
    turn = np.exp(1j * float(along) * period / 4)
    np.testing.assert_allclose(row[1:], row[:-1] * turn, rtol=1e-4)


def spectrum_peak(pulse):
    """Modulus of the pulse's spectrum at its carrier, in seconds."""
    tau = 1 / (2 * np.pi * float(pulse.bandwidth))
    return tau * np.sqrt(2 * np.pi) / 2


def at_carrier(permittivity=1.0):
    """Returns a simulation with a wave of 3 V/m that is measured inside its box."""
    pulse = em.GaussianPulse(CARRIER, CARRIER / 10)
    return em.Simulation(
        Grid.centred((60,), CELL),
        em.Medium(permittivity),
        em.Boundaries.all(em.CPML(10)),
        sources={
            "wave": em.PlaneWave(
                "+x", "Ez", (0.0,), (20 * CELL,), pulse, 3.0, permittivity
            )
        },
        monitors={"dft": em.FieldMonitor(("Ez",), (0.0,), (0.0,), CARRIER)},
        steps=1200,
    )


def amplitude(sim):
    """Returns the modulus of the spectrum at the carrier."""
    return jnp.abs(em.simulate(sim).monitors["dft"].values["Ez"]).ravel()[0]


@pytest.mark.parametrize("permittivity", [1.0, 2.25])
def test_amplitude_at_the_carrier_is_the_one_asked_for(permittivity):
    sim = at_carrier(permittivity)
    expected = 3 * spectrum_peak(sim.sources["wave"].pulse)
    assert float(amplitude(sim)) / expected == pytest.approx(1, rel=1e-3)


def test_amplitude_batches_and_differentiates():
    sim = at_carrier()

    def measured(value):
        return amplitude(eqx.tree_at(lambda s: s.sources["wave"].amplitude, sim, value))

    one, two = jax.jit(jax.vmap(measured))(jnp.array([1.0, 2.0]))
    slope = jax.jit(jax.grad(measured))(jnp.array(2.0))
    assert float(two) / float(one) == pytest.approx(2, rel=1e-5)
    assert float(slope) / float(one) == pytest.approx(1, rel=1e-5)


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


def beside(medium):
    """A wave in a medium; its faces lie at the nodes 3 and 11."""
    middle, size = (7 * CELL,) * 2, (8 * CELL,) * 2
    wave = em.PlaneWave("+x", "Ey", middle, size, PULSE)
    return em.Simulation(
        Grid.uniform((14, 14), CELL),
        medium,
        polarisation="Hz",
        sources={"wave": wave},
        steps=3,
    )


INNER, ACROSS = ((4, 10), (4, 10)), ((4, 12), (4, 10))


def tensor(box, value=0.1):
    entries = jnp.zeros([b - a for a, b in box]).at[1:, 1:].set(value)
    return em.Medium(off_diagonals=em.OffDiagonal(box, {"xy": entries}))


def powers(box, value=1e-12):
    return em.Medium(nonlinearities=em.Nonlinearity(box, chi2=value))


def poles(box, value=1.0):
    return em.Medium(dispersions=em.Dispersion(box, em.Debye(1.0, 1e-15), value))


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (tensor, "meet entries beside the diagonal"),
        (powers, "meet a nonlinear susceptibility"),
        (poles, "meet poles"),
    ],
)
def test_faces_want_a_plain_medium(kind, told):
    beside(kind(INNER))
    beside(kind(ACROSS, 0.0))
    message = f"faces of the plane wave 'wave' .*{told}.*move the faces"
    with pytest.raises(ArgumentError, match=message):
        beside(kind(ACROSS))


def test_faces_in_a_medium_that_is_not_known_end_as_nan():
    @jax.jit
    def field(value):
        return em.simulate(beside(tensor(ACROSS, value))).fields["Hz"]

    assert np.all(np.isfinite(field(0.0)))
    assert np.any(np.isnan(field(0.1)))
