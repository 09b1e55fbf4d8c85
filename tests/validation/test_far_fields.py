"""Far fields of dipoles and cylinders against closed formulas."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import h1vp, hankel1, jv, jvp

from physax import em
from physax.em._clock import Clock
from physax.grid import Grid
from physax.units import EPSILON_0, ETA_0, FEMTO, MICRO, SPEED_OF_LIGHT
from tests.validation import cylinders


WAVELENGTH = 1 * MICRO
FREQUENCY = SPEED_OF_LIGHT / WAVELENGTH
K = 2 * np.pi / WAVELENGTH
PULSE = em.Ricker(FREQUENCY)
MOMENT = 1e-13
THETA = np.linspace(0.05, np.pi / 2 - 0.05, 7)[:, None]
PHI = np.linspace(0.1, 2 * np.pi + 0.1, 9)[None, :-1]


def spectrum(sim, frequency):
    """Returns the transform of the pulse as the steps of a run sample it."""
    n = np.arange(3 * sim.steps)
    pulse = jax.vmap(lambda half: PULSE(Clock(half, sim.dt), jnp.zeros(())))
    values = np.asarray(pulse(jnp.asarray(2 * n + 1)), float)
    dt = float(sim.dt)
    return np.sum(values * np.exp(2j * np.pi * frequency * (n + 0.5) * dt)) * dt


def pattern(axis, theta, phi):
    """Returns theta and phi components of a unit vector along an axis."""
    c, s = np.cos(phi), np.sin(phi)
    ones = np.ones(np.broadcast_shapes(theta.shape, phi.shape))
    return {
        "x": (np.cos(theta) * c, -s * ones),
        "z": (-np.sin(theta) * ones, 0 * ones),
    }[axis]


@functools.cache
def dipole(axis, cells, height=None):
    """Runs a dipole in vacuum, or over a wall `height` cells below its node."""
    width = WAVELENGTH / cells
    half = np.array([0.5 * (name == axis) for name in "xyz"])
    shape, low, box = (36, 36, 36), -18, ((0, 0, 0), (8, 8, 8))
    if height is not None:
        shape, low = (36, 36, 28), 0
        box = (0, 0, 0), (8, 8, 2 * (height + 4))
        half[2] += height
    faces = {} if height is None else {"z": (em.PEC(), em.CPML(10))}
    sim = em.Simulation(
        Grid.uniform(shape, width, (-18 * width, -18 * width, low * width)),
        boundaries=em.Boundaries(
            **({"x": em.CPML(10), "y": em.CPML(10), "z": em.CPML(10)} | faces)
        ),
        sources={"dipole": em.Dipole("E" + axis, half * width, PULSE, MOMENT)},
        monitors={
            "near": em.NearFieldMonitor(
                np.multiply(box[0], width), np.multiply(box[1], width), FREQUENCY
            ),
            "points": em.FieldMonitor(
                ("Ex", "Ey", "Ez", "Hx", "Hy", "Hz"),
                (6.2 * width, -3.3 * width, 7.1 * width),
                (0.0, 0.0, 0.0),
                FREQUENCY,
            ),
        },
        steps=500,
    )
    return sim, em.simulate(sim).monitors, half * width


def amplitudes(sim, axis, where, theta, phi):
    """Returns the far field of the dipole in vacuum, both components."""
    strength = 1j * K * ETA_0 * MOMENT * spectrum(sim, FREQUENCY) / (4 * np.pi)
    units = np.asarray(em.direction(phi, theta), float)
    phase = np.exp(-1j * K * units @ where)
    return [strength * phase * part for part in pattern(axis, theta, phi)]


@pytest.mark.slow
@pytest.mark.f32
def test_dipole_in_vacuum():
    sim, found, where = dipole("z", 15)
    near = found["near"]
    assert near.closed
    theta = np.linspace(0.0, np.pi, 13)[:, None]
    far = em.far_field(near, em.direction(PHI, theta))
    # At 15 cells per wavelength: k^2 dx^2 / 24 = 0.7 % from the grid.
    for name, exact in zip(
        ("Etheta", "Ephi"), amplitudes(sim, "z", where, theta, PHI), strict=True
    ):
        error = np.max(np.abs(far.values[name][0] - exact))
        assert error < 0.01 * K * ETA_0 * MOMENT * abs(spectrum(sim, FREQUENCY)) / (
            4 * np.pi
        )
    power = ETA_0 * K**2 * (MOMENT * abs(spectrum(sim, FREQUENCY))) ** 2 / (12 * np.pi)
    power = power / FEMTO**2
    radiated = float(em.radiated_power(near)[0])
    assert radiated == pytest.approx(power, rel=0.01)
    assert float(near.outflow[0]) == pytest.approx(power, rel=0.02)
    assert radiated == pytest.approx(float(near.outflow[0]), rel=0.01)
    assert float(em.directivity(near, em.direction(0.0, np.pi / 2))[0]) == (
        pytest.approx(1.5, rel=0.01)
    )


@pytest.mark.slow
@pytest.mark.f32
@pytest.mark.parametrize("axis", ["x", "z"])
def test_dipole_over_a_conductor(axis):
    height = 6
    sim, found, where = dipole(axis, 15, height)
    near = found["near"]
    assert set(near.faces) == {"-x", "+x", "-y", "+y", "+z"}
    assert near.closed
    far = em.far_field(near, em.direction(PHI, THETA))
    # A current along the wall has an image of the other sign, one along its normal of
    # the same: -2 i sin(k h cos theta) and 2 cos(k h cos theta), from the wall.
    angle = K * where[2] * np.cos(THETA)
    factor = -2j * np.sin(angle) if axis == "x" else 2 * np.cos(angle)
    exact = amplitudes(sim, axis, where * np.array([1, 1, 0]), THETA, PHI)
    exact = [factor * one for one in exact]
    largest = np.max(np.abs(exact))
    for name, one in zip(("Etheta", "Ephi"), exact, strict=True):
        error = np.max(np.abs(far.values[name][0] - one)) / largest
        print(axis, name, error)
        assert error < 0.01
    # Over the sphere the wall's image radiates as much again.
    radiated = float(em.radiated_power(near)[0])
    assert radiated == pytest.approx(float(near.outflow[0]), rel=0.02)


@pytest.mark.slow
@pytest.mark.f32
@pytest.mark.parametrize("case", [("z", 15), ("x", 15, 6)])
def test_projection_to_points_of_the_same_run(case):
    _, found, _ = dipole(*case)
    points = found["points"]
    size = {
        letter: np.sqrt(
            sum(np.abs(np.ravel(points.values[letter + a])[0]) ** 2 for a in "xyz")
        )
        for letter in "EH"
    }
    for name, value in points.values.items():
        place = np.array([float(x[0]) for x in points.coordinates[name]])
        projected = em.project_fields(found["near"], place).values[name][0]
        # The fields travel on the grid, their projection does not: at 15 cells per
        # wavelength 0.4 % of the phase of 0.4 wavelengths, and the near field's share.
        assert abs(projected - np.ravel(value)[0]) < 0.02 * size[name[0]], name


@functools.cache
def cylinder(polarisation, index, cells=16):
    """Runs a plane wave on a cylinder, and records what is scattered."""
    half = 3.2
    width = cylinders.RADIUS / cells
    names = cylinders.COMPONENTS[polarisation]
    grid = Grid.centred((int(2 * half * cells),) * 2, width)
    epsilon = complex(index) ** 2
    frequencies = cylinders.frequency(np.array([1.0, 2.0]))
    sigma = epsilon.imag * 2 * np.pi * frequencies[1] * EPSILON_0
    rod = em.Structure(
        em.Circle((0.0, 0.0), cylinders.RADIUS), em.Material(epsilon.real, 1.0, sigma)
    )
    box = (2 * 1.9 * cylinders.RADIUS,) * 2
    inner = (2 * 1.3 * cylinders.RADIUS,) * 2
    wave = em.PlaneWave(
        "+x",
        "Ez" if polarisation == "Ez" else "Ey",
        (0.0, 0.0),
        (2 * 1.6 * cylinders.RADIUS,) * 2,
        cylinders.PULSE,
    )
    sim = em.Simulation(
        grid,
        em.rasterise([rod], grid, em.Material(1.0), names),
        em.Boundaries.all(em.CPML(14)),
        sources={"wave": wave},
        monitors={
            "scattered": em.NearFieldMonitor((0.0, 0.0), box, frequencies),
            "total": em.NearFieldMonitor((0.0, 0.0), inner, frequencies),
            "centre": em.FieldMonitor(names, (0.0, 0.0), (0.0, 0.0), frequencies),
        },
        polarisation=polarisation,
        steps=2500,
    )
    return em.simulate(sim).monitors, width


def incident(polarisation, width):
    """Returns the wave without cylinder at the origin, at both frequencies."""
    found, _ = cylinder(polarisation, 1.0)
    values = np.ravel(found["centre"].values[polarisation])
    # The sample of Hz lies half a cell up in x.
    shift = 0.0 if polarisation == "Ez" else width / 2
    sizes = np.array([1.0, 2.0])
    return values * np.exp(-1j * sizes / cylinders.RADIUS * shift)


def series(polarisation, index, size, phi):
    """Returns f of the scattered wave sqrt(2 / pi k r) exp(ikr - i pi / 4) f.

    Bohren and Huffman, Absorption and Scattering of Light by Small Particles (1983),
    section 8.4, for one unit of the component out of the plane.
    """
    total = 0
    a, b = (1, index) if polarisation == "Ez" else (index, 1)
    for n in range(-25, 26):
        inner, outer = index * size, size
        top = b * jvp(n, inner) * jv(n, outer) - a * jv(n, inner) * jvp(n, outer)
        bottom = a * jv(n, inner) * h1vp(n, outer) - b * jvp(n, inner) * hankel1(
            n, outer
        )
        total = total + top / bottom * np.exp(1j * n * phi)
    return total


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize(
    ("polarisation", "tolerance"),
    # The average of the permittivity is of first order for Hz.
    [("Ez", 0.01), ("Hz", 0.03)],
)
def test_differential_scattering_of_a_cylinder(polarisation, tolerance):
    index = 1.5
    found, width = cylinder(polarisation, index)
    phi = np.linspace(0, 2 * np.pi, 37)
    far = em.far_field(found["scattered"], em.direction(phi)).values[polarisation]
    amplitude = incident(polarisation, width)
    for at, size in enumerate((1.0, 2.0)):
        k = size / cylinders.RADIUS
        exact = series(polarisation, index, size, phi)
        exact = exact * np.sqrt(2 / (np.pi * k)) * np.exp(-0.25j * np.pi)
        relative = np.asarray(far[at]) / amplitude[at]
        error = np.max(np.abs(relative - exact)) / np.max(np.abs(exact))
        print(polarisation, size, error)
        assert error < tolerance


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_optical_theorem_of_a_lossy_cylinder(polarisation):
    # Extinction is minus the forward amplitude; scattered and absorbed power come from
    # two boxes, one of them in the total field.
    index = 1.5 + 0.2j
    found, width = cylinder(polarisation, index)
    amplitude = incident(polarisation, width)[1] / FEMTO
    k = 2.0 / cylinders.RADIUS
    far = em.far_field(found["scattered"], jnp.array([1.0, 0.0])).values[polarisation]
    turn = np.sqrt(np.pi * k / 2) * np.exp(0.25j * np.pi)
    forward = np.asarray(far)[1] / FEMTO / amplitude * turn
    extinguished = -4 / k * forward.real * abs(amplitude) ** 2 / (2 * ETA_0)
    scattered = float(em.radiated_power(found["scattered"])[1])
    absorbed = float(em.absorbed_power(found["total"])[1])
    print(polarisation, scattered, absorbed, (scattered + absorbed) / extinguished - 1)
    assert absorbed > 0.2 * scattered
    assert scattered + absorbed == pytest.approx(extinguished, rel=0.01)
