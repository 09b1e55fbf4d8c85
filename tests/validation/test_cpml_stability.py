"""Absorbing layers over 100,000 steps: what is left of the energy only falls."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid
from physax.units import NANO, SPEED_OF_LIGHT


CELL = 50 * NANO
EVERY = 100
STEPS = 100_000


def energies(shape, layer, polarisation, dipole):
    """Returns the energy of a run that is kicked once, with a guide and loss."""
    ndim = len(shape)
    # A slab that runs through the layers at both ends, one half of it lossy, and a
    # corner of high index in the layers of two axes.
    epsilon, sigma = np.ones(shape), np.zeros(shape)
    middle = slice(shape[1] // 2 - 2, shape[1] // 2 + 3)
    epsilon[:, middle] = 12.0
    sigma[: shape[0] // 2, middle] = 2e3
    epsilon[-3:, -3:] = 6.0
    carrier = SPEED_OF_LIGHT / (40 * CELL)
    sim = em.Simulation(
        Grid.centred(shape, CELL),
        em.Medium(jnp.asarray(epsilon), conductivity=jnp.asarray(sigma)),
        em.Boundaries.all(layer),
        sources={
            # Ricker's pulse leaves no static charge behind.
            "kick": em.Dipole(dipole, (1.2 * CELL,) * ndim, em.Ricker(carrier))
        },
        monitors={"energy": em.EnergyMonitor(EVERY)},
        polarisation=polarisation,
        steps=STEPS,
    )
    return np.asarray(em.simulate(sim).monitors["energy"].energy)


CASES = {
    "2-D Ez": ((26, 24), em.CPML(8), "Ez", "Ez"),
    "2-D Hz, kappa": ((26, 24), em.CPML(8, kappa_max=5.0), "Hz", "Hz"),
    "3-D": ((11, 11, 11), em.CPML(4), None, "Ez"),
}


# Each case in one session: 100,000 steps cost some 6 s each.
MARKS = {"2-D Ez": (), "2-D Hz, kappa": pytest.mark.x64, "3-D": pytest.mark.f32}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*reflects visibly")  # thin, to be quick
@pytest.mark.parametrize("case", [pytest.param(c, marks=MARKS[c]) for c in CASES])
def test_energy_never_grows(case):
    energy = energies(*CASES[case])
    # The pulse is over after 300 steps.
    peak, peaks = energy.max(), energy[10:].reshape(-1, 18).max(axis=1)
    assert np.isfinite(energy).all()
    # The energy without the layers' memory ripples; its peaks over 9,000 steps fall,
    # until what is left is rounding, or a static rest. That is 1e-20 of the peak in
    # float64, and in float32 8e-13 or 1.2e-12, as the compiler orders the operations.
    floor = peak * (2e-12 if energy.dtype == np.float32 else 1e-18)
    assert np.all(peaks[5:] <= np.maximum(peaks[:-5], floor))
    assert np.all(peaks <= np.maximum(1.5 * np.minimum.accumulate(peaks), floor))
    assert peaks[-1] <= max(1e-20 * peak, floor)
