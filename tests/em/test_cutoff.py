"""Tilted plane waves at frequencies at which no wave of their Bloch vector travels."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import PhysaxWarning
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT


CELL = 50 * MICRO / 1000
CARRIER = SPEED_OF_LIGHT / (1 * MICRO)
# 45 degrees at the carrier in vacuum.
TILT = 2 * np.pi / MICRO * np.sqrt(0.5)
CUTOFF = np.sqrt(0.5) * CARRIER
EVERYWHERE = float("inf")


def tilted(frequencies, pulse=None, steps=3, **of_wave):
    """A sheet of a wave in its own medium, whose power a monitor records."""
    wave = em.PlaneWave(
        "+x",
        "Ez",
        (60 * CELL, 0.0),
        (40 * CELL, EVERYWHERE),
        em.GaussianPulse(CARRIER, CARRIER / 5) if pulse is None else pulse,
        exit=False,
        **of_wave,
    )
    grid = Grid.uniform((120, 2), CELL)
    poles = tuple(wave.poles)
    filled = [em.Dispersion(((0, 120), (0, 2)), poles)] if poles else []
    return em.Simulation(
        grid,
        em.Medium(float(wave.permittivity), dispersions=filled),
        em.Boundaries(x=em.CPML(12), y=em.Bloch(TILT)),
        sources={"wave": wave},
        monitors={
            "seen": em.FluxMonitor("x", (90 * CELL, 0.0), (0, EVERYWHERE), frequencies)
        },
        polarisation="Ez",
        steps=steps,
    )


def named(low, high, count, of):
    """The words of the warning; numbers as printed."""
    numbers = f"{count} of {of} do not, from {low:.4g} to {high:.4g} Hz"
    return rf"'seen' should lie where the plane wave 'wave' .*{re.escape(numbers)}"


def test_frequencies_that_carry_no_power_are_named():
    frequencies = CARRIER * np.array([0.5, 0.6, 0.69, 0.8, 1.0])
    with pytest.warns(PhysaxWarning, match=named(*frequencies[[0, 2]], 3, 5)):
        sim = tilted(frequencies, steps=1500)
    with pytest.warns(PhysaxWarning, match="not decayed"):
        flux = np.asarray(em.simulate(sim).monitors["seen"].flux)
    # Below the cutoff next to nothing arrives, above it all of the light.
    assert np.all(np.abs(flux[:3]) < 0.01 * flux[3])
    assert flux[4] > flux[3]


def plasma(share):
    """Poles of electrons whose plasma frequency is a share of the carrier."""
    return (em.Drude(share * CARRIER, 1e-6 * CARRIER),)


@pytest.mark.filterwarnings("ignore:Dispersion 0 should end")
@pytest.mark.parametrize(
    ("of_wave", "cutoff"),
    [
        ({"permittivity": 2.25}, CUTOFF / 1.5),
        # eps = 1 - (fp / f)^2: (c k / 2 pi)^2 = f^2 - fp^2.
        ({"poles": plasma(0.3)}, np.hypot(CUTOFF, 0.3 * CARRIER)),
    ],
)
def test_the_limit_is_that_of_the_medium_at_each_frequency(of_wave, cutoff):
    tilted(cutoff * np.array([1.001, 1.2]), **of_wave)
    bad = 0.999 * cutoff
    with pytest.warns(PhysaxWarning, match=named(bad, bad, 1, 2)):
        tilted(np.array([bad, 1.001 * cutoff]), **of_wave)


def test_a_traced_vector_is_not_looked_at():
    @jax.jit
    def status(vector):
        sim = tilted(CARRIER)
        faces = em.Boundaries(x=em.CPML(12), y=em.Bloch(vector))
        dark = eqx.tree_at(
            lambda m: m["seen"].frequencies,
            sim.monitors,
            jnp.asarray([0.5 * CARRIER]),
        )
        new = em.Simulation(
            sim.grid,
            boundaries=faces,
            sources=sim.sources,
            monitors=dark,
            polarisation="Ez",
            steps=3,
        )
        return em.simulate(new).status

    assert int(status(TILT)) == 0


@pytest.mark.parametrize(
    ("pulse", "share"),
    [
        # exp(-((1 - 0.7071) / 0.2)^2 / 2), and x^2 exp(1 - x^2) at x^2 = 1/2.
        (em.GaussianPulse(CARRIER, CARRIER / 5), 0.34),
        (em.Ricker(CARRIER), 0.82),
    ],
)
def test_a_run_that_has_not_decayed_tells_of_the_cutoff(pulse, share):
    told = (
        rf"more `steps`\. .* plane wave 'wave', 2\.12e\+14 Hz, .* {share} of its peak"
    )
    with pytest.warns(PhysaxWarning, match=told):
        em.simulate(tilted(CARRIER, pulse, 600))


def test_a_cutoff_outside_of_the_band_is_not_told_of():
    # 5 standard deviations off: 4e-6 of the peak.
    with pytest.warns(PhysaxWarning, match="not decayed") as told:
        em.simulate(tilted(CARRIER, em.GaussianPulse(CARRIER, CARRIER / 17), 500))
    assert not any("cutoff" in str(one.message) for one in told)
