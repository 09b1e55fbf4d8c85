"""The frequency of a wave on the grid is the one that Yee's equations give."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid
from physax.units import SPEED_OF_LIGHT
from tests.validation.stepping import trace


pytestmark = pytest.mark.x64

DX, STEPS = 0.05e-6, 400


def cosine(samples):
    """Returns cos(w dt) of samples that obey a(n + 1) + a(n - 1) = 2 cos(w dt) a(n)."""
    now, around = samples[1:-1], samples[2:] + samples[:-2]
    fit = jnp.sum(jnp.conj(now) * around, axis=0) / jnp.sum(jnp.abs(now) ** 2, axis=0)
    return jnp.real(fit) / 2


def test_waves_in_a_periodic_medium_have_yees_frequency():
    # Closed form, and its values in units of c / micrometre, at 0.3 ... 2.2 periods a
    # micrometre: sin(pi f dt) = (dt / n dx) sin(pi k dx).
    cells, index = 200, 1.5
    dt = 0.5 * DX / SPEED_OF_LIGHT
    sim = em.Simulation(
        Grid.uniform((cells,), DX),
        em.Medium(index**2),
        em.Boundaries.all(em.Periodic()),
        steps=STEPS,
        dt=dt,
    )
    noise = np.random.default_rng(0).normal(size=cells)
    amplitudes = trace(sim, {"Ez": jnp.asarray(noise)}, lambda f: jnp.fft.rfft(f["Ez"]))
    k = np.arange(3, 23) / 10
    found = np.arccos(np.asarray(cosine(amplitudes[:, 3:23]))) / (2 * np.pi)
    found = found / (dt * SPEED_OF_LIGHT) * 1e-6
    exact = np.arcsin(0.025 / (index * 0.05) * np.sin(np.pi * k * 0.05))
    exact = exact / (np.pi * 0.025)
    assert exact[[0, -1]] == pytest.approx([0.1999342026, 1.4407208713], abs=1e-10)
    error = float(np.max(np.abs(found / exact - 1)))
    print(f"relative error {error:.2g}")
    # The claim is 1e-6; what is left is rounding, amplified by arccos near 1.
    assert error < 1e-11


CELLS = (3, 4, 5)
WIDTHS = (0.05e-6, 0.07e-6, 0.04e-6)


@pytest.mark.slow(after=3)
@pytest.mark.parametrize(("ndim", "polarisation"), [(2, "Ez"), (2, "Hz"), (3, None)])
@pytest.mark.parametrize("angle", [0.0, 0.4, 1.1])
def test_bloch_waves_have_yees_frequency_in_every_direction(ndim, polarisation, angle):
    k = 2 * np.pi / 0.5e-6 * np.array([np.cos(angle), np.sin(angle), 0.6])[:ndim]
    sim = em.Simulation(
        Grid.uniform(CELLS[:ndim], WIDTHS[:ndim]),
        em.Medium(permittivity=2.1, permeability=1.3),
        em.Boundaries(*map(em.Bloch, k)),
        polarisation=polarisation,
        steps=STEPS,
        courant=0.9,
    )
    seen = 2 / np.array(WIDTHS[:ndim]) * np.sin(k * WIDTHS[:ndim] / 2)
    # A transverse start: the longitudinal part of a field does not move.
    vector = np.cross(np.pad(seen, (0, 3 - ndim)), [0.3, -1.0, 0.5])
    kind = "H" if polarisation == "Hz" else "E"
    names = ["Ez"] if polarisation == "Ez" else ["Hz"]
    start = {}
    for name in names if ndim == 2 else ["Ex", "Ey", "Ez"]:
        own = "xyz".index(name[1])
        phase = np.ones(())
        for axis in range(ndim):
            half = 0.5 if (axis == own) == (kind == "E") else 0.0
            position = np.asarray(sim.grid.coordinates(axis, half))
            phase = np.multiply.outer(phase, np.exp(1j * k[axis] * position))
        start[name] = jnp.asarray(phase * (1.0 if ndim == 2 else vector[own]))
    first = next(iter(start))

    def amplitude(fields):
        return jnp.mean(fields[first] / start[first])

    found = float(jnp.arccos(cosine(trace(sim, start, amplitude)))) / float(sim.dt)
    step = float(sim.dt)
    total = SPEED_OF_LIGHT * np.linalg.norm(seen) / np.sqrt(2.1 * 1.3)
    exact = 2 / step * np.arcsin(step / 2 * total)
    print(f"relative error {found / exact - 1:.2g}")
    assert found == pytest.approx(exact, rel=1e-11)
