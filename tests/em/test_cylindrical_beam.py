"""Gaussian beams along the axis of cylindrical coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import jv

from physax import ArgumentError, PhysaxWarning, em
from physax.em._clock import Clock
from physax.grid import Grid
from physax.units import ETA_0, MICRO, SPEED_OF_LIGHT


FREQUENCY = SPEED_OF_LIGHT / MICRO
K = 2 * np.pi / MICRO
PULSE = em.GaussianPulse(FREQUENCY, FREQUENCY / 8)
WAIST, DISTANCE, POWER = 0.8 * MICRO, 1.0 * MICRO, 2.0


def scene(cells, sign=1, **options):
    """A beam up or down the axis through a cylinder of 4 um in radius and length."""
    cell = MICRO / cells
    port = em.Port((0.0, 0.8 * sign * MICRO), 6.4 * MICRO, "+z" if sign > 0 else "-z")
    port = options.pop("port", port)
    options = {"waist": WAIST, "distance": DISTANCE, "power": POWER} | options
    monitors = {
        name: em.FluxMonitor("z", (2e-6, sign * z * MICRO), (4e-6, 0.0), FREQUENCY)
        for name, z in (("ahead", 2.8), ("behind", 0.4))
    } | {
        "focus": em.FieldMonitor(
            ("Er", "Ep", "Ez", "Hp"),
            (1.4e-6, sign * 1.8 * MICRO),
            (2.8e-6, 0.0),
            FREQUENCY,
        )
    }
    low = 0.0 if sign > 0 else -3.2 * MICRO
    layers = em.CPML(10)
    origin = (0.0, round(low / cell) * cell - 10 * cell)
    return em.Simulation(
        Grid.uniform((4 * cells, round(3.2 * cells) + 20), cell, origin=origin),
        boundaries=em.Boundaries(r=layers, z=layers),
        cylindrical=em.Cylindrical(options.pop("m", 1)),
        sources={"beam": em.GaussianBeam(port, PULSE, **options)},
        monitors=monitors,
        steps=30 * cells,
    )


def spectrum(sim):
    n = np.arange(sim.steps)
    pulse = jax.vmap(lambda half: PULSE(Clock(half, sim.dt), jnp.zeros(())))
    values = np.asarray(pulse(jnp.asarray(2 * n)), float)
    wave = np.exp(2j * np.pi * FREQUENCY * n * float(sim.dt))
    return np.sum(values * wave) * float(sim.dt)


def exact(name, r):
    """Sums the waves of the beam in its focus, over their azimuth Bessel functions."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    theta, weights = np.pi / 4 * (1 + nodes), np.pi / 4 * weights
    s, c = np.sin(theta), np.cos(theta)
    area = K**2 * s * c * weights
    envelope = np.exp(-((K * WAIST * s) ** 2) / 4)
    flow = (2 * np.pi) ** 3 * envelope**2 * (1 - s**2 / 2) * c / (2 * ETA_0)
    waves = 2 * np.pi * envelope * area * np.sqrt(POWER / np.sum(flow * area))
    j0, j1, j2 = (jv(m, K * np.asarray(r)[:, None] * s) for m in range(3))
    return {
        "Er": j0 - s**2 / 2 * (j0 - j2),
        "Ep": -j0 + s**2 / 2 * (j0 + j2),
        "Ez": -1j * s * c * j1,
        "Hp": c * j0,
    }[name] @ waves


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(("cells", "sign"), [(15, 1), (15, -1), (30, 1)])
def test_the_focus_is_that_of_the_plane_waves(cells, sign):
    sim = scene(cells, sign)
    found, strength = em.simulate(sim).monitors, spectrum(sim)
    power = POWER * abs(strength * 1e15) ** 2
    assert sign * found["ahead"].flux[0] == pytest.approx(power, rel=1e-3)
    assert abs(found["behind"].flux[0]) < 1e-6 * power
    # In the waist all waves have one phase, which a reference plane does not change.
    focus, middle = found["focus"], None
    scale = exact("Er", np.zeros(1))[0].real
    for name in ("Er", "Ep", "Ez", "Hp"):
        r = np.asarray(focus.coordinates[name][0])
        values = np.asarray(focus.values[name]).ravel() / (strength * scale)
        middle = values[0] / abs(values[0]) if middle is None else middle
        expected = exact(name, r) / scale
        expected = expected * (sign if name in ("Ez", "Hp") else 1)
        values = values / middle
        if name in ("Ez", "Hp"):
            # Half a cell, and half a step, off: not the phase.
            assert np.real(np.vdot(expected, values)) > 0
            values, expected = abs(values), abs(expected)
        assert np.max(np.abs(values - expected)) < 0.01 * (15 / cells) ** 2, name


@pytest.mark.x64
def test_the_focus_is_differentiable():
    def focus(waist, distance):
        sim = scene(10, waist=waist * MICRO, distance=distance * MICRO)
        values = em.simulate(sim).monitors["focus"].values["Er"]
        return jnp.sum(jnp.abs(values) ** 2) * 1e20

    point, step = (0.8, 1.0), 1e-4
    run = jax.jit(jax.value_and_grad(focus, argnums=(0, 1)))
    for number, slope in enumerate(run(*point)[1]):
        way = step * np.eye(2)[number]
        one, other = (float(run(*(point + sign * way))[0]) for sign in (1, -1))
        assert float(slope) == pytest.approx((one - other) / (2 * step), rel=1e-6)


@pytest.mark.f32
@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"m": 2}, "a beam along z has the angular number 1"),
        ({"tilt": 0.1}, "`tilt` .* left out in cylindrical coordinates, .* is 0.1"),
        ({"polarisation": 1.0}, "`polarisation` .* left out in cylindrical"),
        ({"port": em.Port((1e-6, 1e-6), 1e-6, "+z")}, "must be 0 along r: .* 1e-06 m"),
        ({"port": em.Port((0.0, 1e-6), 1e-6, "+x")}, r"'\+z' or '-z' in cylindrical"),
    ],
)
def test_what_is_no_beam_along_the_axis_is_refused(options, match):
    with pytest.raises(ArgumentError, match=match):
        scene(10, **options)


@pytest.mark.f32
def test_a_disc_that_cuts_the_beam_off_is_warned_of():
    port = em.Port((0.0, 0.8 * MICRO), 2.0 * MICRO, "+z")
    radius = WAIST * np.hypot(1, DISTANCE / (np.pi * WAIST**2 / MICRO))
    lost = np.exp(-2 * MICRO**2 / radius**2)
    with pytest.warns(PhysaxWarning, match=f"cuts off {lost:.1e} of the power"):
        scene(10, port=port)
