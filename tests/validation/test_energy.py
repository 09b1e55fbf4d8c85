"""The scheme conserves Yee's energy, with E(n) E(n + 1) in place of E^2."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.em._components import components
from physax.grid import Grid
from physax.units import EPSILON_0
from tests.validation.stepping import advance, started, stored_shape, yee_energies


pytestmark = pytest.mark.x64

STEPS, WIDTH = 10_000, 20e-9
# Each step rounds the energy by some 1e-16, at random: 1e-14 after 10,000.
DRIFT = 1e-12


def random_medium(shape, names, seed=1):
    """Every component of the permittivity and permeability random in every cell."""
    rng = np.random.default_rng(seed)
    values = {n: jnp.asarray(rng.uniform(1, 9, shape)) for n in names}
    return em.Medium(
        {n: v for n, v in values.items() if n[0] == "E"},
        {n: v for n, v in values.items() if n[0] == "H"},
    )


def random_fields(sim, seed=2):
    """Random fields inside, zero near the walls so that every wall is satisfied."""
    shape, rng = stored_shape(sim), np.random.default_rng(seed)
    inner = tuple(slice(2, -2) for _ in shape)
    fields = {}
    for name in advance(sim, {}, 0):
        value = np.zeros(shape, complex if sim.complex_fields else float)
        value[inner] = rng.normal(size=value[inner].shape)
        if sim.complex_fields:
            value[inner] += 1j * rng.normal(size=value[inner].shape)
        fields[name] = jnp.asarray(value)
    return fields


def drift(grid, boundaries=None, polarisation=None, random=False):
    """Returns the largest relative change of the energy along a run."""
    names = components(grid.ndim, polarisation).names
    medium = random_medium(grid.shape, names) if random else None
    sim = em.Simulation(
        grid, medium, boundaries, polarisation=polarisation, steps=STEPS, courant=0.9
    )
    energies = np.asarray(yee_energies(sim, random_fields(sim), 100))
    assert energies[0] > 0
    return float(np.max(np.abs(energies / energies[0] - 1)))


def cubes(*shape):
    return Grid.uniform(shape, WIDTH)


def graded(*shape):
    """Cells of random widths: the energy does not need a smooth grading."""
    rng = np.random.default_rng(3)
    return Grid.graded(
        [WIDTH * np.r_[0, np.cumsum(rng.uniform(0.7, 1.3, n))] for n in shape]
    )


BLOCH = em.Boundaries(em.Bloch(1.1e6), em.Bloch(-2.3e6))
LOW = em.Boundaries(*3 * [(em.PMC(), em.PEC())])
HIGH = em.Boundaries(*3 * [(em.PEC(), em.PMC())])
PERIODIC = em.Boundaries.all(em.Periodic())

CASES = {
    "1-D PEC": (cubes(60), None, None, False),
    "1-D PEC, random": (cubes(60), None, None, True),
    "1-D PMC low, random": (cubes(60), LOW, None, True),
    "1-D PMC high, random": (cubes(60), HIGH, None, True),
    "2-D Ez PEC": (cubes(20, 17), None, "Ez", False),
    "2-D Ez PMC high, random, graded": (graded(20, 17), HIGH, "Ez", True),
    "2-D Ez Bloch, random": (cubes(20, 17), BLOCH, "Ez", True),
    "2-D Hz PEC": (cubes(20, 17), None, "Hz", False),
    "2-D Hz PMC low, random, graded": (graded(20, 17), LOW, "Hz", True),
    "2-D Hz PMC high, random": (cubes(20, 17), HIGH, "Hz", True),
    "2-D Hz periodic, random": (cubes(20, 17), PERIODIC, "Hz", True),
    "3-D PEC": (cubes(9, 8, 7), None, None, False),
    "3-D PMC low, random, graded": (graded(9, 8, 7), LOW, None, True),
    "3-D PMC high, random": (cubes(9, 8, 7), HIGH, None, True),
    "3-D periodic, random": (cubes(9, 8, 7), PERIODIC, None, True),
}


QUICK = {
    "1-D PMC high, random",
    "2-D Ez Bloch, random",
    "2-D Hz PMC low, random, graded",
    "3-D PMC high, random",
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(x, marks=[pytest.mark.slow] * (x not in QUICK)) for x in CASES],
)
def test_yee_energy_is_conserved(case):
    change = drift(*CASES[case])
    print(f"drift {change:.2g}")
    assert change <= DRIFT


def test_yee_energy_of_a_cavity_mode_is_the_continuous_one():
    # E = sin(pi x / L), H = 0: W = integral of eps0 E^2 / 2 = eps0 L / 4, in J/m^2. The
    # sum of a sine squared over a period is exact, and with H(-1/2) = 0, E(-1) = E(0).
    cells = 50
    sim = em.Simulation(cubes(cells), steps=STEPS, courant=0.9)
    wave = jnp.sin(jnp.pi * jnp.arange(cells) / cells)
    before = started(sim, {"Ez": wave})
    # `advance` takes the memory of its argument.
    after = em.advance(sim, started(sim, {"Ez": wave}), 0, 1)
    exact = EPSILON_0 * cells * WIDTH / 4
    assert float(em.yee_energy(sim, before, after)) / exact == pytest.approx(
        1, abs=1e-12
    )
    # The plain sum ripples: the product of two moments is needed.
    plain = em.yee_energy(sim, after, after)
    assert float(plain) / exact != pytest.approx(1, abs=1e-4)


def test_recorded_energy_of_a_standing_wave_ripples_as_it_says():
    # By sin(w dt / 2), which the scheme makes S sin(k dx / 2); k dx = pi / cells.
    cells, courant = 25, 0.99
    sim = em.Simulation(
        cubes(cells),
        steps=2000,
        courant=courant,
        monitors={"energy": em.EnergyMonitor()},
    )
    wave = jnp.sin(jnp.pi * jnp.arange(cells) / cells)
    done = em.run(sim, state=started(sim, {"Ez": wave}), progress=False)
    energy = done.result.monitors["energy"].energy
    ripple = (jnp.max(energy) - jnp.min(energy)) / 2 / jnp.mean(energy)
    # Of 2,000 steps some come as close to the extremes as 1e-4 of a turn and less.
    assert ripple == pytest.approx(courant * np.sin(np.pi / 2 / cells), rel=1e-3)
