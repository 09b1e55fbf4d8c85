"""New numbers compile nothing."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid
from physax.runtime import no_recompile
from physax.units import NANO, SPEED_OF_LIGHT


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]


SHAPE = (30, 26)


def simulate(number):
    """Builds a simulation from Python numbers and arrays, and runs it."""
    cell = 20 * NANO
    random = np.random.default_rng(number)
    eps = jnp.asarray(random.uniform(1.0, 3.0, SHAPE), float)
    eps = eps.at[:, 9:17].set(10.0 + 0.1 * number)
    frequency = SPEED_OF_LIGHT / ((1500 + 20 * number) * NANO)
    pulse = em.GaussianPulse(frequency, frequency / (1 + 0.1 * number))
    frequencies = jnp.array([1.0, 1.1]) * frequency
    port = em.Port((8 * cell, 13 * cell), 14 * cell, "+x", offset=8 * cell)
    sim = em.Simulation(
        Grid.uniform(SHAPE, cell),
        em.Medium(eps),
        em.Boundaries.all(em.CPML(5)),
        polarisation="Ez",
        steps=20,
        courant=0.99 - 0.02 * number,
        sources={
            "mode": em.ModeSource(port, pulse, power=1.0 + number),
            "dipole": em.Dipole("Ez", (20 * cell, 13 * cell), pulse, 1e-6 * number),
        },
        monitors={
            "modes": em.ModeMonitor(port, frequencies),
            "flux": em.FluxMonitor(
                "x", (18 * cell, 13 * cell), (0.0, 9 * cell), frequency
            ),
        },
    )
    return np.max(np.abs(np.asarray(em.simulate(sim).fields["Ez"])))


def test_five_runs_with_other_numbers_compile_nothing():
    # Two, so that what only a second call compiles is compiled as well.
    seen = [simulate(0), simulate(1)]
    with no_recompile():
        for number in (2, 3, 4, 5, 6):
            seen.append(simulate(number))
    assert np.all(np.diff(seen) != 0)
