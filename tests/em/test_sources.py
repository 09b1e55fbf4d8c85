"""Sources: what a dipole radiates, and that modes and beams go one way."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import hankel1

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.grid import Grid
from physax.units import ETA_0, MICRO, NANO, SPEED_OF_LIGHT


CELL = 40 * NANO
CARRIER = SPEED_OF_LIGHT / (1 * MICRO)
WAVENUMBER = 2 * np.pi / (1 * MICRO)
PULSE = em.GaussianPulse(CARRIER, CARRIER / 8)


def spectrum(pulse):
    """Modulus of a Gaussian pulse's spectrum at its carrier, in seconds."""
    return np.sqrt(np.pi / 2) / (2 * np.pi * float(pulse.bandwidth))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Ez", "Hz"])
def test_line_source_makes_a_cylindrical_wave(name):
    # E_z = -(k eta I / 4) H_0(k r), and the dual with 1 / eta for a magnetic current K.
    watch = em.FieldMonitor((name,), (1.25 * MICRO, 0.0), (2.0 * MICRO, 0.0), CARRIER)
    moment = 1.0 if name == "Ez" else ETA_0
    sim = em.Simulation(
        Grid.centred((140, 140), CELL),
        boundaries=em.Boundaries.all(em.CPML(12)),
        sources={"line": em.Dipole(name, (0.0, 0.0), PULSE, moment)},
        monitors={"ray": watch},
        polarisation=name,
        steps=1400,
    )
    ray = em.simulate(sim).monitors["ray"]
    x = np.asarray(ray.coordinates[name][0], float)
    y = np.asarray(ray.coordinates[name][1], float)
    found = np.ravel(np.abs(ray.values[name])) / spectrum(PULSE)
    # For Hz the samples lie half a cell off, and the source is shared by four.
    exact = np.abs(WAVENUMBER * ETA_0 / 4 * hankel1(0, WAVENUMBER * np.hypot(x, y)))
    np.testing.assert_allclose(found, exact, rtol=0.01)
    far = [np.argmin(abs(x - r)) for r in (1.1 * MICRO, 2.2 * MICRO)]
    assert (found[far[0]] / found[far[1]]) ** 2 == pytest.approx(2, rel=0.03)


def box_power(component, position, moment):
    """Returns the power spectrum through a cube around a dipole in vacuum."""
    half = 5 * CELL
    monitors = {}
    for axis in "xyz":
        for sign in (-1, 1):
            centre, size = [0.0] * 3, [2 * half] * 3
            centre["xyz".index(axis)], size["xyz".index(axis)] = sign * half, 0.0
            monitors[f"{axis}{sign}"] = em.FluxMonitor(
                axis, tuple(centre), tuple(size), CARRIER
            )
    sim = em.Simulation(
        Grid.centred((32,) * 3, CELL),
        boundaries=em.Boundaries.all(em.CPML(9)),
        sources={"dipole": em.Dipole(component, position, PULSE, moment)},
        monitors=monitors,
        steps=560,
    )
    found = em.simulate(sim).monitors
    # From W fs^2 to W s^2.
    return 1e-30 * sum(int(n[1:]) * float(m.flux[0]) for n, m in found.items())


@pytest.mark.slow(after=1)
@pytest.mark.x64  # spectra of 1 A m are near the end of float32
@pytest.mark.parametrize(
    ("component", "position"),
    [("Ez", (0.0, 0.0, 0.0)), ("Hy", (0.3 * CELL, 0.4 * CELL, -0.2 * CELL))],
)
def test_dipole_radiates_the_power_of_theory(component, position):
    # P = eta k^2 |I l|^2 / 12 pi at the amplitude |I l|; the dual with K / eta.
    moment = 1.0 if component[0] == "E" else ETA_0
    exact = ETA_0 * WAVENUMBER**2 / (12 * np.pi) * spectrum(PULSE) ** 2
    found = box_power(component, position, moment)
    assert found / exact == pytest.approx(1, rel=0.02)


@pytest.mark.slow
def test_position_between_samples_is_shared_linearly():
    def run(x):
        sim = em.Simulation(
            Grid.uniform((40,), CELL),
            boundaries=em.Boundaries.all(em.CPML(8)),
            sources={"sheet": em.Dipole("Ez", (x,), PULSE)},
            monitors={"trace": em.TimeMonitor(("Ez",), (28 * CELL,), (0.0,))},
            steps=400,
        )
        return np.ravel(em.simulate(sim).monitors["trace"].values["Ez"])

    low, between, high = (run(i * CELL) for i in (15, 15.3, 16))
    expected = 0.7 * low + 0.3 * high
    np.testing.assert_allclose(between, expected, atol=2e-5 * np.abs(low).max())


SIZE = (100, 64)


def guide(axis, source, monitors, polarisation, steps=2200, pulse=PULSE, bump=None):
    """Runs a source in a straight guide of index 2 and 0.48 um along an axis."""
    shape = SIZE if axis == 0 else SIZE[::-1]
    grid = Grid.centred(shape, CELL)
    size = [0.48 * MICRO, 0.48 * MICRO]
    size[axis] = float("inf")
    scene = [em.Structure(em.Box((0.0, 0.0), tuple(size)), em.Material(4.0))]
    scene += [] if bump is None else [bump]
    names = ("Ez", "Hx", "Hy") if polarisation == "Ez" else ("Hz", "Ex", "Ey")
    sim = em.Simulation(
        grid,
        em.rasterise(scene, grid, components=names),
        em.Boundaries.all(em.CPML(16)),
        sources=source,
        monitors=monitors,
        polarisation=polarisation,
        steps=steps,
    )
    return em.simulate(sim).monitors


def at(axis, along, across=0.0):
    """Returns a point given along and across the guide, in cells."""
    point = [across * CELL, across * CELL]
    point[axis] = along * CELL
    return tuple(point)


def flux(axis, along, width=2.5 * MICRO):
    size = (0.0, width) if axis == 0 else (width, 0.0)
    return em.FluxMonitor("xy"[axis], at(axis, along), size, CARRIER)


WIDTHS = CELL * np.array([1.0, 1.2, 1.5, 1.1, 0.9, 1.3])


def cut_at(cut, component, part):
    """A dipole in the third cell of six that recur, in a period from cell `cut` on."""
    edges = np.cumsum([0.0, *WIDTHS, *WIDTHS])
    cell = 2 if cut <= 2 else 8
    position = (1 - part) * edges[cell] + part * edges[cell + 1], 4.3 * CELL
    dipole = em.Dipole(component, position, PULSE)
    rows = np.roll(np.linspace(1.0, 3.0, 6), -cut)[:, None] * np.ones((1, 6))
    sim = em.Simulation(
        Grid.graded((edges[cut : cut + 7], np.arange(7) * CELL)),
        em.Medium(jnp.asarray(rows)),
        em.Boundaries(x=em.Bloch(1.0 / MICRO), y=em.Periodic()),
        sources={"in": dipole},
        monitors={"seen": em.EmissionMonitor(dipole, [CARRIER])},
        polarisation="Ez" if component == "Ez" else "Hz",
        steps=60,
    )
    with warnings.catch_warnings():
        # The fields have not decayed.
        warnings.simplefilter("ignore", PhysaxWarning)
        return em.simulate(sim)


@pytest.mark.parametrize(
    ("component", "part", "cut"), [("Ez", 0.7, 3), ("Ex", 0.7, 3), ("Ex", 0.2, 2)]
)
def test_a_dipole_may_lie_where_the_period_is_cut(component, part, cut):
    # Another cut of the period changes no field, but by whole turns.
    whole, other = cut_at(0, component, part), cut_at(cut, component, part)
    turn = np.exp(1j * np.sum(WIDTHS) / MICRO)
    fields = np.asarray(whole.fields[component])
    expected = np.concatenate([fields[cut:], turn * fields[:cut]])
    expected = expected / turn if cut > 2 else expected
    small = 1e-12 * np.max(np.abs(fields))
    np.testing.assert_allclose(other.fields[component], expected, rtol=0, atol=small)
    one, same = whole.monitors["seen"], other.monitors["seen"]
    np.testing.assert_allclose(same.power, one.power, rtol=1e-10)
    np.testing.assert_allclose(same.homogeneous, one.homogeneous, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("direction", "polarisation"),
    [("+x", "Ez"), ("-x", "Hz"), ("+y", "Hz"), ("-y", "Ez")],
)
def test_mode_source_sends_its_power_one_way(direction, polarisation):
    axis, sign = "xy".index(direction[1]), int(direction[0] + "1")
    port = em.Port(at(axis, -20 * sign), 2.5 * MICRO, direction)
    ahead = {"near": -10, "far": 20}
    found = guide(
        axis,
        {"mode": em.ModeSource(port, PULSE, power=2.0)},
        {
            **{name: flux(axis, a * sign) for name, a in ahead.items()},
            "behind": flux(axis, -28 * sign),
            **{
                f"mode {name}": em.ModeMonitor(
                    em.Port(
                        at(axis, a * sign), 2.5 * MICRO, direction, compensate=True
                    ),
                    CARRIER,
                )
                for name, a in ahead.items()
            },
        },
        polarisation,
    )
    unit = 2.0 * spectrum(PULSE) ** 2 * 1e30  # W fs^2
    power = {k: sign * float(found[k].flux[0]) / unit for k in (*ahead, "behind")}
    assert power["near"] == pytest.approx(1, rel=1e-3)
    assert power["far"] == pytest.approx(power["near"], rel=1e-4)
    assert abs(power["behind"]) <= 1e-6
    near, far = (found[f"mode {name}"] for name in ahead)
    through = complex(far.incoming[0]) / complex(near.incoming[0])
    assert abs(through) == pytest.approx(1, abs=1e-4)
    measured = abs(complex(near.incoming[0])) ** 2 / unit
    assert measured == pytest.approx(1, rel=1e-3)
    assert abs(complex(near.outgoing[0]) / complex(near.incoming[0])) <= 1e-5


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_lopsided_scatterer_is_reciprocal(polarisation):
    corners = ((-8.0, -9.0), (9.0, -7.0), (5.0, 4.0))
    wedge = em.Polygon([(x * CELL, y * CELL) for x, y in corners])
    bump = em.Structure(wedge, em.Material(1.0))  # a notch in the guide
    ports = {
        "west": em.Port(at(0, -24), 2.5 * MICRO, "+x", offset=6 * CELL),
        "east": em.Port(at(0, 24), 2.5 * MICRO, "-x", offset=6 * CELL),
    }
    through = {}
    monitors = {f"at {n}": em.ModeMonitor(p, CARRIER) for n, p in ports.items()}
    for name, other in (("west", "east"), ("east", "west")):
        # The other source has no power: both runs are one program.
        source = {
            n: em.ModeSource(p, PULSE, power=1.0 if n == name else 0.0)
            for n, p in ports.items()
        }
        found = guide(0, source, monitors, polarisation, 4000, bump=bump)
        sent, out = found[f"at {name}"].incoming[0], found[f"at {other}"].outgoing[0]
        through[name] = complex(out / sent)
        assert abs(through[name]) < 0.9  # it does scatter
    assert abs(through["west"] - through["east"]) <= 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("direction", "polarisation"), [("+x", "Ez"), ("-y", "Hz")])
def test_beam_has_its_waist_and_power_and_goes_one_way(direction, polarisation):
    axis, sign = "xy".index(direction[1]), int(direction[0] + "1")
    waist, distance = 1.0 * MICRO, 1.2 * MICRO
    grid = Grid.centred((110, 150) if axis == 0 else (150, 110), CELL)
    port = em.Port(at(axis, -30 * sign), 5 * MICRO, direction)
    width = 5 * MICRO
    across = [width, width]
    across[axis] = 0.0
    sim = em.Simulation(
        grid,
        boundaries=em.Boundaries.all(em.CPML(12)),
        sources={"beam": em.GaussianBeam(port, PULSE, waist, distance)},
        monitors={
            "ahead": flux(axis, 0, width),
            "behind": flux(axis, -38 * sign, width),
            "waist": em.FieldMonitor(
                (polarisation,), at(axis, 0), tuple(across), CARRIER
            ),
        },
        polarisation=polarisation,
        steps=900,
    )
    found = em.simulate(sim).monitors
    unit = spectrum(PULSE) ** 2 * 1e30  # W fs^2
    assert sign * float(found["ahead"].flux[0]) / unit == pytest.approx(1, rel=0.02)
    assert abs(float(found["behind"].flux[0])) / unit <= 2e-3
    line = found["waist"]
    x = np.asarray(line.coordinates[polarisation][1 - axis], float)
    profile = np.ravel(np.abs(line.values[polarisation])).astype(float) ** 2
    # |u|^2 = exp(-2 x^2 / w^2) has the variance w^2 / 4.
    found_waist = 2 * np.sqrt(np.sum(profile * x**2) / np.sum(profile))
    assert found_waist / waist == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: em.Dipole("Ez", (0.0, 0.0), PULSE, 1 + 1j),
            "`moment` must be real, .* Give its phase as `phase` of the pulse",
        ),
        (
            lambda: em.Dipole("Ez", (0.0, 0.0), PULSE, np.nan),
            "`moment` must be finite, but is nan",
        ),
        (
            lambda: em.ModeSource(em.Port((0.0, 0.0), 1e-6, "+x"), PULSE, 1j),
            "`power` must be real",
        ),
        (
            lambda: em.GaussianPulse(CARRIER, 1e13, np.inf),
            "`phase` must be finite, but is inf",
        ),
        (lambda: em.ContinuousWave(CARRIER, phase=1j), "`phase` must be real"),
        (lambda: em.GaussianPulse(CARRIER + 1j, 1e13), "`frequency` must be real"),
    ],
)
def test_what_no_source_can_have_is_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
