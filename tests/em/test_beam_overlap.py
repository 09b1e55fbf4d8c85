"""Overlap of near fields with Gaussian beams: plane waves, a dipole, and faults."""

import functools
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT


FREQUENCY = SPEED_OF_LIGHT / MICRO
PULSE = em.GaussianPulse(FREQUENCY, FREQUENCY / 10)
WAVENUMBER = 2 * np.pi / MICRO
WAIST, TILT, AHEAD = 1.0 * MICRO, 0.3, 1.6 * MICRO
CELL = MICRO / 20
AXIS = np.array([np.sin(TILT), np.cos(TILT)])
SIDE = np.array([np.cos(TILT), -np.sin(TILT)])
# On samples of Ez and, but for half a cell, Hz.
MIDDLE = np.array([10 * CELL, 0.0])


@functools.cache
def launched(polarisation):
    """A beam at an angle, through a plane behind its waist."""
    start = MIDDLE - AHEAD * AXIS
    port = em.Port(tuple(start), 6.4 * MICRO, "+y")
    source = em.GaussianBeam(port, PULSE, WAIST, AHEAD, TILT)
    plane = (0.0, 14 * CELL), (7.0 * MICRO, 0.0)
    sim = em.Simulation(
        Grid.centred((164, 100), CELL),
        boundaries=em.Boundaries.all(em.CPML(10)),
        sources={"beam": source},
        monitors={
            "near": em.NearFieldMonitor(*plane, FREQUENCY, faces=("+y",)),
            "flux": em.FluxMonitor("y", *plane, FREQUENCY),
            "waist": em.FieldMonitor(
                (polarisation,), tuple(MIDDLE), (0.0, 0.0), FREQUENCY
            ),
        },
        polarisation=polarisation,
        steps=560,
    )
    return em.simulate(sim).monitors


def waves(waist, shift, turn, angles):
    """Far amplitude of a beam by angle to the axis of the one that was sent."""
    off = angles - turn
    phase = WAVENUMBER * (shift[0] * np.cos(angles) + shift[1] * np.sin(angles))
    width = np.exp(-((WAVENUMBER * waist * np.sin(off) / 2) ** 2))
    return np.where(abs(off) < np.pi / 2, np.cos(off) * width * np.exp(-1j * phase), 0)


def shared(waist, shift, turn):
    """Power that one beam has of another, as a sum over plane waves."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, 20001)
    sent = waves(WAIST, (0, 0), 0.0, angles)
    seen = waves(waist, shift, turn, angles)
    square = np.sum(np.abs(sent) ** 2) * np.sum(np.abs(seen) ** 2)
    return abs(np.sum(sent * seen.conj())) ** 2 / square


# Along the beam and across it, in metres, and by how much it is turned.
BEAMS = [
    (WAIST, (0.0, 0.0), 0.0),
    (WAIST, (0.0, 0.5 * MICRO), 0.0),
    (WAIST, (3 * MICRO, 0.0), 0.0),
    (WAIST, (60 * MICRO, 0.0), 0.0),
    (WAIST, (0.0, 0.0), 0.2),
    (2 * WAIST, (0.0, 0.0), 0.0),
    (0.7 * WAIST, (-2 * MICRO, 0.4 * MICRO), -0.1),
]


@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_power_shared_by_two_beams(polarisation):
    found = launched(polarisation)
    power = float(found["flux"].flux[0])
    for waist, shift, turn in BEAMS:
        amplitude = em.beam_overlap(
            found["near"],
            waist,
            centre=MIDDLE + shift[0] * AXIS + shift[1] * SIDE,
            direction=(np.sin(TILT + turn), np.cos(TILT + turn)),
        )
        got = float(abs(amplitude[0]) ** 2) / power
        # The plane at 20 cells per wavelength loses 0.6 %, at 40 cells 0.14 %.
        assert got == pytest.approx(shared(waist, shift, turn), rel=8e-3)


def test_phase_is_that_of_the_field_in_the_waist():
    found = launched("Ez")
    amplitude = em.beam_overlap(found["near"], WAIST, centre=MIDDLE, direction=AXIS)
    here = np.asarray(found["waist"].values["Ez"]).item()
    assert abs(np.angle(complex(amplitude[0]) / here)) < 0.02


@pytest.mark.x64
def test_derivatives_by_the_beam_and_under_jit():
    near = launched("Ez")["near"]

    def power(x):
        amplitude = em.beam_overlap(
            near, x[0], centre=x[1:3], direction=em.direction(x[3])
        )
        return jnp.abs(amplitude[0]) ** 2

    at = np.array([0.8 * MICRO, *(MIDDLE + 0.2 * MICRO), 1.4])
    got = jax.grad(power)(at)
    steps = np.diag([1e-11, 1e-11, 1e-11, 1e-5])
    want = [float(power(at + h) - power(at - h)) / (2 * h.sum()) for h in steps]
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert jax.jit(power)(at) == pytest.approx(float(power(at)), rel=1e-9)
    far = at + np.array([0, 0, 300 * MICRO, 0])
    assert np.isnan(jax.jit(power)(far))
    assert np.isfinite(power(far))


def _sphere():
    """Directions, angles to z, and weights of a rule over the sphere."""
    nodes, weights = np.polynomial.legendre.leggauss(80)
    phi = 2 * np.pi * np.arange(160) / 160
    z, phi = np.meshgrid(nodes, phi, indexing="ij")
    r = np.sqrt(1 - z**2)
    units = np.stack([r * np.cos(phi), r * np.sin(phi), z], axis=-1)
    return units.reshape(-1, 3), np.repeat(weights, 160) * 2 * np.pi / 160


@pytest.mark.parametrize("axis", [(0.0, 0.6, 0.8), (0.0, 0.0, 1.0)])
def test_share_of_a_dipole_that_a_beam_collects(axis):
    # cos(theta) is 0 at the equator of a beam: its spectrum has no edge there.
    cell, waist, shift = MICRO / 12, 0.6 * MICRO, np.array([0.1, -0.15, 0.2]) * MICRO
    dipole = em.Dipole("Ex", (cell / 2, 0.0, 0.0), PULSE)
    sim = em.Simulation(
        Grid.centred((36, 36, 36), cell),
        boundaries=em.Boundaries.all(em.CPML(8)),
        sources={"dipole": dipole},
        monitors={"near": em.NearFieldMonitor((0, 0, 0), (12 * cell,) * 3, FREQUENCY)},
        steps=400,
    )
    near = em.simulate(sim).monitors["near"]
    field = np.array([1.0, 0.3, 0.2])
    centre = np.array([cell / 2, 0, 0]) + shift
    amplitude = em.beam_overlap(
        near, waist, centre=centre, direction=axis, polarisation=field
    )
    units, weights = _sphere()
    cosine = units @ np.array(axis)
    across = field - (field @ axis) * np.array(axis)
    spectrum = np.exp(-((WAVENUMBER * waist) ** 2) * (1 - cosine**2) / 4)
    spectrum = np.where(cosine > 0, cosine * spectrum, 0)
    beam = (across - units * (units @ across)[:, None]) * spectrum[:, None]
    sent = np.array([1.0, 0, 0]) - units * units[:, :1]
    wave = np.exp(1j * WAVENUMBER * (units @ shift))
    total = np.sum(weights * wave * np.sum(sent * beam, axis=-1))
    square = [np.sum(weights * np.sum(x**2, axis=-1)) for x in (sent, beam)]
    want = abs(total) ** 2 / np.prod(square)
    got = float(abs(amplitude[0]) ** 2 / near.outflow[0])
    assert want > 0.05
    assert got == pytest.approx(want, rel=0.02)


def test_faults_are_told():
    near = launched("Ez")["near"]

    def overlap(waist=WAIST, **others):
        given = {"centre": (0.0, 0.0), "direction": (0.0, 1.0)} | others
        return em.beam_overlap(near, waist, **given)

    for message, given in [
        (r"`waist` must lie in \(0, inf\), but is -1", {"waist": -1.0}),
        (r"`centre` must have 2 coordinates, .* \(3,\)", {"centre": (0.0, 0, 0)}),
        (r"length of `direction` must be 1.* is 2", {"direction": (0.0, 2.0)}),
        (r"`direction` must be one vector", {"direction": np.eye(2)}),
        (r"`polarisation` .* None in 2-D", {"polarisation": (0, 1, 0)}),
        (r"so near, .* that 2500 angles resolve", {"centre": (0.0, 1.0)}),
        (r"`centre` must lie in \(-inf, inf\), but is nan", {"centre": (0.0, np.nan)}),
        ("`centre` must be real", {"centre": np.array([0.0, 1j])}),
        ("`waist` must be one number", {"waist": np.array([1e-6, 2e-6])}),
        (r"`waist` must lie in \(0, inf\), but is inf", {"waist": np.inf}),
    ]:
        with pytest.raises(ArgumentError, match=message):
            overlap(**given)


def test_faults_of_a_polarisation_are_told():
    cell = MICRO / 10
    sim = em.Simulation(
        Grid.centred((24, 24, 24), cell),
        monitors={"near": em.NearFieldMonitor((0, 0, 0), (4 * cell,) * 3, FREQUENCY)},
        sources={"dipole": em.Dipole("Ez", (0, 0, 0), PULSE)},
        steps=2,
        boundaries=em.Boundaries.all(em.CPML(8)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        near = em.simulate(sim).monitors["near"]
    for message, field in [
        (r"direction of the electric field in 3-D.* is None", None),
        (r"`polarisation` must have 3 components", (1.0, 0.0)),
        (r"must not point along `direction`: .* is 0", (0.0, 0.0, 2.0)),
    ]:
        with pytest.raises(ArgumentError, match=message):
            em.beam_overlap(
                near,
                WAIST,
                centre=(0, 0, 0),
                direction=(0, 0, 1.0),
                polarisation=field,
            )


def beside(face, frequencies, cells):
    """Near fields of two dipoles, in the whole or in a half, by half of the box."""
    whole, size = face is None, (2 * cells * CELL, 10 * CELL)
    far = (cells - 9) * CELL
    shape, origin = (cells + 12, 30), (0.0, -15 * CELL)
    grid = Grid.uniform(shape, CELL, origin=origin)
    if whole:
        grid = Grid.centred((2 * cells + 24, 30), CELL)
    faces = em.Boundaries.all(em.CPML(8))
    faces = faces if whole else em.Boundaries(x=(face, em.CPML(8)), y=em.CPML(8))
    sides = [1, -1] if whole else [1]
    sim = em.Simulation(
        grid,
        boundaries=faces,
        sources={f"{s}": em.Dipole("Ez", (s * far, 0), PULSE) for s in sides},
        monitors={"near": em.NearFieldMonitor((0, 0), size, frequencies)},
        polarisation="Ez",
        steps=600 + 4 * cells,
    )
    return em.simulate(sim).monitors["near"]


@pytest.mark.x64
def test_images_in_a_mirror_are_resolved():
    amplitudes = [
        em.beam_overlap(
            beside(face, FREQUENCY, 330),
            0.2 * MICRO,
            centre=(16 * MICRO, 0),
            direction=(0.6, 0.8),
        )
        for face in (None, em.PMC())
    ]
    whole, half = map(complex, np.concatenate(amplitudes))
    # The layers at the two ends of the whole are not quite alike.
    assert half == pytest.approx(whole, rel=1e-4)


@pytest.mark.x64
@pytest.mark.parametrize("waist", [0.3 * MICRO, 8 * MICRO])
def test_each_of_several_frequencies_is_resolved(waist):
    both = beside(None, [0.6 * FREQUENCY, 1.2 * FREQUENCY], 30)
    got = em.beam_overlap(both, waist, centre=(0, 0), direction=(0.0, 1.0))
    for n, want in enumerate(got):
        one = eqx.tree_at(
            lambda near: (near.frequencies, near.values, near.flux),
            both,
            (
                both.frequencies[n : n + 1],
                {k: v[n : n + 1] for k, v in both.values.items()},
                {k: v[n : n + 1] for k, v in both.flux.items()},
            ),
        )
        alone = em.beam_overlap(one, waist, centre=(0, 0), direction=(0.0, 1.0))
        assert complex(alone[0]) == pytest.approx(complex(want), rel=1e-6)


@pytest.mark.slow
@pytest.mark.x64
def test_derivative_of_an_efficiency_by_a_medium():
    sim = em.Simulation(
        Grid.centred((60, 60), CELL),
        em.Medium(jnp.full((60, 60), 1.0).at[26:34, 30:36].set(2.0)),
        em.Boundaries.all(em.CPML(8)),
        sources={"dipole": em.Dipole("Ez", (0.0, -4 * CELL), PULSE)},
        monitors={
            "near": em.NearFieldMonitor((0, 0), (40 * CELL, 40 * CELL), FREQUENCY)
        },
        polarisation="Ez",
        steps=1500,
    )

    def efficiency(value):
        eps = jnp.full((60, 60), 1.0).at[26:34, 30:36].set(value)
        near = em.simulate(
            eqx.tree_at(lambda s: s.medium.permittivity, sim, eps)
        ).monitors["near"]
        got = em.beam_overlap(near, 0.5 * MICRO, centre=(0, 0), direction=(0.0, 1.0))
        return jnp.abs(got[0]) ** 2 / near.outflow[0]

    want = (efficiency(2.0 + 1e-4) - efficiency(2.0 - 1e-4)) / 2e-4
    assert float(jax.grad(efficiency)(2.0)) == pytest.approx(float(want), rel=1e-5)
