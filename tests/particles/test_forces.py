"""Weight, drag and light on particles, beside closed forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.grid import Fill
from physax.particles import (
    RK4,
    Gravity,
    GriddedField,
    Leave,
    Newtonian,
    OpticalForce,
    Overdamped,
    ParticleStatus,
    StochasticHeun,
    StokesDrag,
    sphere_polarizability,
    track,
)
from physax.units import BOLTZMANN, EPSILON_0, MICRO, NANO, SPEED_OF_LIGHT


X64 = jnp.result_type(float) == jnp.float64
TIGHT = 1e-12 if X64 else 2e-5
WAVELENGTH = 532 * NANO


def still(t, x):
    del t
    return jnp.zeros_like(x)


@eqx.filter_jit
def force_at(force, x):
    x = jnp.asarray(x, float)
    return force(jnp.asarray(0.0), x, jnp.zeros_like(x))


@pytest.mark.parametrize("index", [1.0, 1.33])
@pytest.mark.parametrize("permittivity", [2.5, -2 + 0.3j, 2 + 1j])
def test_a_plane_wave_pushes_by_extinction_cross_section(index, permittivity):
    k = 2 * np.pi * index / WAVELENGTH
    alpha = sphere_polarizability(10 * NANO, permittivity, WAVELENGTH, index**2)
    amplitude = 1e6

    def wave(t, x):
        return amplitude * jnp.exp(1j * k * x[2]) * jnp.array([1.0, 0.0, 0.0])

    pushed = force_at(OpticalForce(wave, alpha), [1e-7, 2e-7, 3e-7])
    # Bohren and Huffman, chapter 5, for a sphere far smaller than the wavelength.
    contrast = (permittivity - index**2) / (permittivity + 2 * index**2)
    area, size = np.pi * (10 * NANO) ** 2, k * 10 * NANO
    scattered = 8 / 3 * area * size**4 * abs(contrast) ** 2
    absorbed = 4 * area * size * np.imag(contrast)
    intensity = index * EPSILON_0 * SPEED_OF_LIGHT * amplitude**2 / 2
    expected = index / SPEED_OF_LIGHT * (scattered + absorbed) * intensity
    # The corrections are of the order (k a)^3, times the polarizability at a resonance.
    slack = 2 * size**3 * max(1, abs(contrast))
    assert np.allclose(pushed[2], expected, rtol=slack, atol=0)
    assert np.all(np.abs(pushed[:2]) < 1e-6 * pushed[2])


def test_light_that_is_not_absorbed_is_all_scattered():
    # The optical theorem: Im(alpha) = k^3 |alpha|^2 / (6 pi eps), exactly.
    alpha = complex(sphere_polarizability(40 * NANO, 2.5, WAVELENGTH, 1.77))
    k = 2 * np.pi * np.sqrt(1.77) / WAVELENGTH
    assert np.allclose(
        alpha.imag, k**3 * abs(alpha) ** 2 / (6 * np.pi * 1.77), rtol=TIGHT, atol=0
    )
    small = sphere_polarizability(1 * NANO, 2.5, WAVELENGTH)
    assert small.real > 0
    assert small.imag > 0  # does not vanish in single precision
    assert small.dtype == (jnp.complex128 if X64 else jnp.complex64)


def beam(x, waist, k):
    """A paraxial Gaussian beam along z, of amplitude 1 at its focus."""
    reach = k * waist**2 / 2
    q = 1 + 1j * x[2] / reach
    r2 = x[0] ** 2 + x[1] ** 2
    return jnp.exp(-r2 / (waist**2 * q) + 1j * k * x[2]) / q


def test_a_gaussian_beam_pulls_to_its_axis_and_focus_and_pushes_along():
    waist, k, amplitude = 1 * MICRO, 2 * np.pi / WAVELENGTH, 1e7
    reach = k * waist**2 / 2
    alpha = 3e-23 + 2e-24j

    def field(t, x):
        return amplitude * beam(x, waist, k) * jnp.array([1.0, 0.0, 0.0])

    x, y, z = place = np.array([0.4e-6, -0.3e-6, 1.5e-6])
    width2 = waist**2 * (1 + (z / reach) ** 2)
    r2 = x**2 + y**2
    bright = amplitude**2 * waist**2 / width2 * np.exp(-2 * r2 / width2)
    # The gradient of the intensity, and that of the phase.
    fall = 2 * z * waist**2 / reach**2 / width2
    along = fall * (2 * r2 / width2 - 1)
    slope = bright * np.array([-4 * x / width2, -4 * y / width2, along])
    curve = k * z / (z**2 + reach**2)
    gouy = reach / (z**2 + reach**2)
    bend = k * r2 / 2 * (reach**2 - z**2) / (z**2 + reach**2) ** 2
    phase = np.array([curve * x, curve * y, k + bend - gouy])
    expected = EPSILON_0 * (alpha.real * slope / 4 + alpha.imag * bright * phase / 2)
    found = force_at(OpticalForce(field, alpha), place)
    assert np.allclose(found, expected, rtol=1e-10 if X64 else 2e-4, atol=0)


@pytest.mark.slow
@pytest.mark.x64
def test_sampled_light_has_an_error_of_second_order_and_no_jumps():
    waist, k = 0.5e-6, 2 * np.pi / WAVELENGTH
    alpha = 3e-23 + 2e-24j

    def field(t, x):
        place = jnp.stack([x[0], 0 * x[0], x[1]])
        return 1e7 * beam(place, waist, k)[..., None] * jnp.array([1.0, 0.0])

    places = np.random.default_rng(0).uniform(-2.9e-7, 2.9e-7, (50, 2))
    # The last two are on the two sides of a node.
    places[-2:] = [[1e-14, 1e-7], [-1e-14, 1e-7]]
    places = jnp.asarray(places)

    exact = jax.jit(jax.vmap(lambda x: force_at(OpticalForce(field, alpha), x)))(places)

    @jax.jit
    def sampled_at(light):
        return jax.vmap(lambda x: force_at(light, x))(places)

    def worst(reach):
        axis = np.linspace(-reach, reach, 41)
        xs = jnp.stack(jnp.meshgrid(*[jnp.asarray(axis)] * 2, indexing="ij"), -1)
        values = field(0.0, jnp.moveaxis(xs, -1, 0))
        sampled = OpticalForce.of(values, [axis, axis], alpha)
        found = sampled_at(sampled)
        size = jnp.max(jnp.abs(exact))
        assert jnp.max(jnp.abs(found[-1] - found[-2])) < 1e-6 * size
        return jnp.max(jnp.abs(found - exact)) / size

    coarse, fine = worst(0.6e-6), worst(0.3e-6)
    assert coarse < 0.05
    assert 1.7 < np.log2(coarse / fine) < 3.5


def test_a_single_component_and_a_real_one_need_no_axis():
    axis = np.linspace(0, 1, 11)
    squares = 1e6 * np.sqrt(1 + axis)
    force = OpticalForce.of(squares, [axis], 1e-20)
    # |E|^2 = 1e12 (1 + x): a constant force, but for the interpolation.
    expected = 1e-20 * EPSILON_0 * 1e12 / 4
    assert np.allclose(force_at(force, [0.5]), expected, rtol=1e-3, atol=0)
    inside = force_at(OpticalForce.of(squares, [axis], 1e-20, outside=Fill(0.0)), [1.5])
    assert inside[0] == 0
    assert np.isnan(force_at(force, [1.5]))[0]


def test_particles_end_where_the_light_has_no_data():
    axis = np.linspace(-1, 1, 21)
    field = GriddedField(np.exp(-(axis**2)) * 1e6 + 0j, [axis])
    pulled = Overdamped(still, (OpticalForce(field, -1e-20),), 1e18)
    tracks = track(pulled, np.array([[0.5], [0.0]]), np.array([0.0, 40.0]), steps=40)
    assert tracks.status.tolist() == [ParticleStatus.LEFT_DATA, ParticleStatus.ALIVE]
    assert 0.9 < tracks.positions[-1, 0, 0] <= 1


def test_forces_know_the_times_of_their_data():
    winds = GriddedField(
        np.ones((2, 3, 1)), [np.linspace(0, 9, 3)], np.array([0.0, 1.0])
    )
    motion = Newtonian((StokesDrag(winds, 1.0),), 1.0)
    with pytest.raises(ArgumentError, match="`times` must lie within those of the dat"):
        track(motion, np.zeros((1, 1)), np.array([0.0, 2.0]), steps=2)
    late = GriddedField(
        np.ones((2, 3, 1)),
        [np.linspace(0, 9, 3)],
        np.array([0.0, 1.0]),
        time_outside=Leave(),
    )
    motion = Newtonian((StokesDrag(late, 1.0),), 1.0)
    end = track(motion, np.zeros((1, 1)), np.array([0.0, 2.0]), steps=4)
    assert end.status[0] == ParticleStatus.LEFT_TIME


def test_a_sphere_settles_as_stokes_says():
    mass, drag, g = 2.0, 3.0, -9.81
    fall = Newtonian((Gravity(mass, np.array([0.0, g])), StokesDrag(still, drag)), mass)
    times = np.linspace(0, 2, 5)
    tracks = track(fall, np.array([[0.0, 0.0]]), times, dt=0.01)
    tau = mass / drag
    speed = g * tau * (1 - np.exp(-times / tau))
    place = g * tau * (times - tau * (1 - np.exp(-times / tau)))
    assert tracks.velocities is not None
    # RK4: (dt / tau)^4 / 120 = 4e-10.
    rtol, atol = (1e-9, 1e-9) if X64 else (1e-5, 2e-5)
    assert np.allclose(tracks.velocities[:, 0, 1], speed, rtol=rtol, atol=atol)
    assert np.allclose(tracks.positions[:, 0, 1], place, rtol=rtol, atol=atol)
    assert np.all(tracks.positions[:, 0, 0] == 0)


TEMPERATURE = 300.0
KT = BOLTZMANN * TEMPERATURE


def test_light_holds_a_brownian_particle_with_the_stiffness_of_theory():
    # |E|^2 = E0^2 exp(-2 r^2 / w^2) traps with k = Re(alpha) E0^2 / w^2.
    waist = 0.6 * MICRO
    alpha = sphere_polarizability(60 * NANO, 2.5, 1064 * NANO, 1.77)
    mobility = 1 / (6 * np.pi * 1e-3 * 60 * NANO)
    # As deep as 2000 kT, so that it is a parabola to 1e-3.
    e2 = 4 * 2000 * KT / (EPSILON_0 * float(alpha.real))
    stiffness = EPSILON_0 * float(alpha.real) * e2 / waist**2
    axis = np.linspace(-0.15 * MICRO, 0.15 * MICRO, 41)
    values = np.sqrt(e2) * np.exp(-((axis / waist) ** 2)) + 0j
    light = OpticalForce.of(values, [axis], alpha)
    relax = 1 / (mobility * stiffness)
    tracks = track(
        Overdamped(still, (light,), mobility),
        np.zeros((6000, 1)),
        np.array([0.0, 0.5, 4.0]) * relax,
        dt=relax / 10,
        solver=StochasticHeun(),
        diffusivity=mobility * KT,
        key=jax.random.key(1),
    )
    assert np.all(tracks.alive)
    sigma = np.sqrt(2 / 6000)  # of the variance of 6000 normal numbers
    for row, time in enumerate((0.5, 4.0), start=1):
        theory = KT / stiffness * (1 - np.exp(-2 * time))
        assert abs(np.mean(tracks.positions[row] ** 2) / theory - 1) < 3 * sigma


def test_a_standing_wave_holds_with_the_stiffness_of_theory():
    # |E|^2 = E0^2 cos^2(k x): k_trap = Re(alpha) E0^2 k^2 / 2 at the antinodes.
    k, alpha, amplitude, mobility = 2 * np.pi / 1e-6, 2e-22, 1e6, 1e9

    def field(t, x):
        return amplitude * jnp.cos(k * x) + 0j

    light = OpticalForce(field, alpha)
    stiffness = EPSILON_0 * alpha * amplitude**2 * k**2 / 2
    relax = 1 / (mobility * stiffness)
    start = 1e-9
    tracks = track(
        Overdamped(still, (light,), mobility),
        np.array([[0.5e-6 + start], [start]]),
        np.array([0.0, 1.0]) * relax,
        steps=40,
        solver=RK4(),
    )
    moved = (tracks.positions[-1, :, 0] - np.array([0.5e-6, 0])) / start
    assert np.allclose(moved, np.exp(-1), rtol=3e-5 if X64 else 1e-3)


@pytest.mark.x64
def test_light_has_derivatives_by_field_polarizability_and_place():
    axis = np.linspace(-1, 1, 21)
    values = jnp.exp(-(jnp.asarray(axis) ** 2) + 1j * jnp.asarray(axis))

    def end(scale, alpha, place):
        light = OpticalForce.of(scale * values, [axis], alpha)
        return force_at(light, place[None])[0] / EPSILON_0

    given = jnp.array(1.2), jnp.array(0.7), jnp.array(0.34)
    run = jax.jit(jax.value_and_grad(end, (0, 1, 2)))
    slopes = run(*given)[1]
    for number, slope in enumerate(slopes):

        def shifted(by, number=number):
            return run(*(x + by * (i == number) for i, x in enumerate(given)))[0]

        difference = (shifted(1e-6) - shifted(-1e-6)) / 2e-6
        assert np.allclose(slope, difference, rtol=1e-7)


def test_a_drag_that_is_not_positive_is_refused():
    with pytest.raises(
        ArgumentError, match="`coefficient` must be positive, but is -1"
    ):
        StokesDrag(still, -1.0)


@pytest.mark.parametrize("name", ["radius", "wavelength", "medium"])
def test_a_sphere_has_positive_sizes(name):
    given = {"radius": 1e-8, "wavelength": 5e-7, "medium": 1.0, name: 0.0}
    with pytest.raises(ArgumentError, match=f"`{name}` must be positive, but is 0"):
        sphere_polarizability(permittivity=2.0, **given)
