"""Particles in flows, walls and noise, beside closed forms."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import kurtosis

from physax.grid import CubicHermite
from physax.particles import (
    Box,
    GriddedField,
    MaxeyRiley,
    Outlet,
    Overdamped,
    ParticleStatus,
    Periodic,
    Reflect,
    StochasticHeun,
    track,
)


DAY, HOUR = 86400.0, 3600.0
F, U0, UG = 1e-4, 0.3, 0.04


def still(t, x):
    del t
    return jnp.zeros_like(x)


def moving_eddy(t, x):
    del x
    return jnp.stack([UG + (U0 - UG) * jnp.cos(F * t), -(U0 - UG) * jnp.sin(F * t)])


GAMMA, GAMMA_G = 1 / (2.89 * DAY), 1 / (28.9 * DAY)


def decaying_eddy(t, x):
    del x
    swirl = (U0 - UG) * jnp.exp(-GAMMA * t)
    drift = UG * jnp.exp(-GAMMA_G * t)
    return jnp.stack([drift + swirl * jnp.cos(F * t), -swirl * jnp.sin(F * t)])


def test_moving_eddy():
    times = np.linspace(0, 1, 5) * DAY
    seed = np.array([[1e3, 2e3]])
    tracks = track(moving_eddy, seed, times, dt=0.5 * HOUR)
    x = 1e3 + UG * times + (U0 - UG) / F * np.sin(F * times)
    y = 2e3 - (U0 - UG) / F * (1 - np.cos(F * times))
    error = np.abs(tracks.positions[:, 0] - np.stack([x, y], 1)).max()
    # Parcels asks for 1e-5 with this step and method.
    assert error < 1e-6 * np.ptp(x)


def test_decaying_eddy():
    times = np.linspace(0, 1, 5) * DAY
    tracks = track(decaying_eddy, np.array([[1e4, 1e4]]), times, dt=0.5 * HOUR)
    # The integral of exp(-(gamma + i f) t) gives both components.
    rate = GAMMA + 1j * F
    swirl = (U0 - UG) * (1 - np.exp(-rate * times)) / rate
    drift = UG / GAMMA_G * (1 - np.exp(-GAMMA_G * times))
    exact = 1e4 + np.stack([drift + swirl.real, swirl.imag], 1)
    # Parcels asks for 1e-5.
    assert np.allclose(tracks.positions[:, 0], exact, rtol=1e-6)


RADIUS, MIDDLE = 0.32, 1.0


def along_peninsula(x):
    """The stream function of a uniform flow past a half disk on the coast y = 0."""
    return x[1] * (RADIUS**2 / ((x[0] - MIDDLE) ** 2 + x[1] ** 2) - 1)


def stommel(x):
    layer = 1 / (11.6 * DAY) / (2e-11 * 1e7)
    return 0.05 * (1 - jnp.exp(-x[0] / layer) - x[0]) * np.pi * jnp.sin(np.pi * x[1])


class Stream(eqx.Module):
    function: Callable = eqx.field(static=True)

    def __call__(self, t, x):
        del t
        a, b = jax.grad(self.function)(x)
        return jnp.stack([-b, a])


def test_peninsula_keeps_the_stream_function():
    seeds = np.stack([np.full(20, 0.06), np.linspace(0.05, 0.9, 20)], 1)
    xs, ys = np.linspace(0, 2, 201), np.linspace(0, 1, 101)
    places = jnp.stack(jnp.meshgrid(*map(jnp.asarray, (xs, ys)), indexing="ij"), -1)
    flow = Stream(along_peninsula)
    # Inside the land the dipole is cut off; no particle comes there.
    sampled = jax.jit(jax.vmap(jax.vmap(lambda x: flow(0.0, jnp.maximum(x, 1e-3)))))
    values = sampled(places)
    gridded = GriddedField(jnp.clip(values, -5, 5), [xs, ys], method=CubicHermite())
    # Parcels accepts 5e-3 with RK4 on its grid, and 1e-4 with its best method.
    for velocity, accepted in ((flow, 1e-5), (gridded, 5e-4)):
        ends = track(velocity, seeds, np.array([0.0, 1.7]), steps=200).positions
        kept = jax.vmap(along_peninsula)(ends[-1]) - jax.vmap(along_peninsula)(ends[0])
        assert np.all(ends[-1, :, 0] > 1.4)
        assert np.abs(kept).max() < accepted


def test_stommel_gyre_keeps_the_stream_function():
    seeds = np.stack([np.linspace(0.001, 0.01, 10), np.full(10, 0.5)], 1)
    ends = track(Stream(stommel), seeds, np.array([0.0, 1.0]), dt=1e-3).positions
    kept = jax.vmap(stommel)(ends[-1]) / jax.vmap(stommel)(ends[0]) - 1
    assert np.all(np.abs(ends[-1] - ends[0]) > 0.01)
    # Parcels accepts 0.1.
    assert np.abs(kept).max() < 1e-2


def test_maxey_riley_in_solid_rotation_is_a_matrix_exponential():
    omega, tau, ratio, g = 2.0, 0.3, 1.7, np.array([0.5, -9.81])
    turn = omega * np.array([[0.0, -1.0], [1.0, 0.0]])
    mass = 1 + 1 / (2 * ratio)
    system = np.zeros((5, 5))
    system[:2, 2:4] = np.eye(2)
    system[2:4, :2] = (1.5 / ratio * turn @ turn + turn / tau) / mass
    system[2:4, 2:4] = -np.eye(2) / tau / mass
    system[2:4, 4] = (1 - 1 / ratio) * g / mass
    start, extra = np.array([0.7, -0.2]), np.array([0.1, 0.4])
    begin = np.concatenate([start, turn @ start + extra, [1.0]])
    flow = jnp.asarray(turn)
    motion = MaxeyRiley(lambda t, x: flow @ x, tau, ratio, g, extra)
    times = np.array([0.0, 0.5, 2.0])
    tracks = track(motion, start[None], times, dt=0.005)
    for row, time in enumerate(times):
        exact = expm(system * time) @ begin
        assert tracks.velocities is not None
        # RK4: (dt / tau)^4 / 120 = 6e-10.
        assert np.allclose(tracks.positions[row, 0], exact[:2], atol=1e-8)
        assert np.allclose(tracks.velocities[row, 0], exact[2:4], atol=1e-8)


def test_settling_velocity_of_a_small_sphere():
    tau, ratio, g = 0.2, 2.5, 9.81
    motion = MaxeyRiley(still, tau, ratio, np.array([0.0, -g]))
    times = np.array([0.0, 0.1, 0.5, 2.0])
    tracks = track(motion, np.zeros((1, 2)), times, dt=0.005)
    settled = -tau * (1 - 1 / ratio) * g
    relax = tau * (1 + 1 / (2 * ratio))  # added mass slows the approach
    exact = settled * (1 - np.exp(-times / relax))
    assert tracks.velocities is not None
    assert np.allclose(tracks.velocities[:, 0, 1], exact, atol=1e-8)


def test_plane_poiseuille_first_passage():
    y = np.linspace(-0.9, 0.9, 19)
    seeds = np.stack([np.zeros(19), y], 1)
    box = Box(np.array([0.0, -1.0]), np.array([2.0, 1.0]), [Outlet(), Reflect()])

    def flow(t, x):
        del t
        return jnp.stack([1 - x[1] ** 2, 0 * x[1]])

    tracks = track(flow, seeds, np.array([0.0, 8.0]), steps=37, boundary=box)
    passage = 2 / (1 - y**2)
    left = passage < 8
    assert np.array_equal(tracks.status == ParticleStatus.EXITED, left)
    assert np.allclose(tracks.ended[left], passage[left], rtol=1e-12, atol=0)
    assert np.all(np.isnan(tracks.ended[~left]))
    assert np.all(tracks.face[left] == 1)
    assert np.allclose(tracks.positions[-1, left, 0], 2)


def test_ornstein_uhlenbeck_variance():
    count, rate, spread = 30_000, 2.0, 0.7
    pulled = Overdamped(still, (lambda t, x, v: -rate * x,), 1.0)
    times = np.array([0.0, 0.1, 0.3, 1.0])
    tracks = track(
        pulled,
        np.full((count, 1), 3.0),
        times,
        dt=0.025,
        solver=StochasticHeun(),
        diffusivity=spread,
        key=jax.random.key(5),
    )
    for time, x in zip(times[1:], np.asarray(tracks.positions)[1:, :, 0], strict=True):
        variance = spread / rate * (1 - np.exp(-2 * rate * time))
        assert abs(x.var() / variance - 1) / np.sqrt(2 / count) < 4
        assert (
            abs(x.mean() - 3 * np.exp(-rate * time))
            < 4 * np.sqrt(variance / count) + 1e-3
        )


MILLION = 1_000_000


@pytest.mark.slow
def test_uniform_diffusion_of_a_million_particles():
    spread = np.array([0.3, 2.0])
    tracks = track(
        still,
        np.zeros((MILLION, 2)),
        np.array([0.0, 3.0]),
        steps=2,
        diffusivity=spread,
        key=jax.random.key(0),
    )
    x = np.asarray(tracks.positions[-1]) / np.sqrt(2 * spread * 3)
    root = np.sqrt(MILLION)
    assert np.all(np.abs(x.mean(0)) * root < 4)
    assert np.all(np.abs(x.var(0) - 1) / np.sqrt(2) * root < 4)
    assert abs(np.mean(x[:, 0] * x[:, 1])) * root < 4
    assert np.all(np.abs(kurtosis(x)) / np.sqrt(24) * root < 4)


def wavy(t, x):
    del t
    return 1 + 0.5 * jnp.cos(2 * np.pi * x)


def unmixed(density_of, **options):
    """Returns how far counts in bins are from uniform, in standard deviations."""
    seeds = (np.arange(MILLION) + 0.5)[:, None] / MILLION
    tracks = track(
        density_of,
        seeds,
        np.array([0.0, 0.002]),
        key=jax.random.key(2),
        boundary=Box(np.zeros(1), np.ones(1), Periodic()),
        **options,
    )
    counts = np.histogram(tracks.positions[-1, :, 0], 20, (0, 1))[0]
    chi2 = np.sum((counts - MILLION / 20) ** 2 / (MILLION / 20))
    return (chi2 - 19) / np.sqrt(2 * 19)


@pytest.mark.slow
def test_well_mixed_particles_stay_well_mixed_where_diffusivity_varies():
    assert abs(unmixed(still, steps=4, diffusivity=wavy)) < 4
