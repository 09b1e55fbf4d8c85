"""Films of dispersive media against the transfer matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid
from physax.units import SPEED_OF_LIGHT


MICRO, START, LENGTH = 1e-6, 1.5, 3.0
WAVELENGTHS = np.linspace(0.5, 0.9, 21) * MICRO
FREQUENCIES = SPEED_OF_LIGHT / WAVELENGTHS

# High-frequency permittivity, two resonances, free charges, thickness in micrometres.
# Poles that a case does not have are there with next to no strength.
NONE, FREE = (1e-9, 8e14, 1e14), (1e9, 1e13)
# Index 0.05 + 3 i at 0.6 um: the metal of the open cases.
AT = SPEED_OF_LIGHT / (0.6 * MICRO)
CHI = (0.05 + 3j) ** 2 - 1
METAL = (AT * abs(CHI) / np.sqrt(-CHI.real), AT * CHI.imag / -CHI.real)
CASES = {
    "Lorentz": (2.0, (0.8, 5e14, 4e13), NONE, FREE, 0.1),
    "Drude": (1.0, NONE, NONE, (8e14, 3e13), 0.1),
    "two poles": (2.0, (0.8, 4.6e14, 4e13), (0.3, 9e14, 5e13), FREE, 0.1),
    "Lorentz and Drude": (2.0, (0.8, 4.6e14, 4e13), NONE, (3e14, 2e13), 0.1),
    "metal": (1.0, NONE, NONE, METAL, 0.03),
}


def poles_of(one, two, free):
    return em.Lorentz(*one), em.Lorentz(*two), em.Drude(*free)


def transfer_matrix(infinite, one, two, free, thickness):
    """Returns reflected and transmitted power of a film in vacuum."""
    material = em.Material(infinite, poles=poles_of(one, two, free))
    n = np.sqrt(np.asarray(em.complex_permittivity(material, FREQUENCIES)))
    r = (1 - n) / (1 + n)
    turn = np.exp(2j * np.pi / WAVELENGTHS * n * thickness * MICRO)
    below = 1 - (r * turn) ** 2
    return abs(r * (1 - turn**2) / below) ** 2, abs((1 - r**2) * turn / below) ** 2


def powers(width):
    """Returns transmitted and reflected powers of all cases with cells in metres."""
    cells = round(LENGTH * MICRO / width)
    x = np.arange(cells) * width / MICRO
    ends = [case[-1] for case in CASES.values()]
    span = round(START * MICRO / width), round((START + max(ends)) * MICRO / width) + 1

    def covered(thickness):
        low = np.maximum(START, x - width / MICRO / 2)
        high = np.minimum(START + thickness, x + width / MICRO / 2)
        return np.clip((high - low) * MICRO / width, 0, 1)

    wave = em.PlaneWave(
        "+x",
        "Ez",
        (1.2 * MICRO,),
        (1.2 * MICRO,),
        em.GaussianPulse(FREQUENCIES.mean(), np.ptp(FREQUENCIES) / 2),
        exit=False,
    )
    monitors = {
        name: em.FluxMonitor("x", (at * MICRO,), (0.0,), FREQUENCIES)
        for name, at in {"reflected": 0.4, "through": 2.2}.items()
    }

    def run(part, infinite, one, two, free):
        dispersion = em.Dispersion(
            (span,), poles_of(one, two, free), part[span[0] : span[1]]
        )
        sim = em.Simulation(
            Grid.uniform((cells,), width),
            em.Medium(1 + (infinite - 1) * part, dispersions=dispersion),
            em.Boundaries.all(
                em.CPML(round(0.3 * MICRO / width), reflection=1e-8, alpha_max=0.0)
            ),
            sources={"wave": wave},
            monitors=monitors,
            steps=round(60 * MICRO / (0.99 * width)),
            dt=0.99 * width / SPEED_OF_LIGHT,
        )
        found = em.simulate(sim).monitors
        return found["reflected"].flux, found["through"].flux

    empty = (1.0, NONE, NONE, FREE, 0.0)
    cases = [empty, *CASES.values()]
    parts = jnp.stack([jnp.asarray(covered(case[-1])) for case in cases])
    columns = [
        jnp.asarray(column) for column in zip(*(c[:-1] for c in cases), strict=True)
    ]
    reflected, through = map(np.asarray, jax.jit(jax.vmap(run))(parts, *columns))
    incident = through[0]
    return {
        name: (-reflected[i + 1] / incident, through[i + 1] / incident)
        for i, name in enumerate(CASES)
    }


@pytest.fixture(scope="module")
def films():
    return powers(2.5e-9)


@pytest.mark.parametrize("name", CASES)
def test_film_reflects_and_transmits_as_the_transfer_matrix(films, name):
    want = transfer_matrix(*CASES[name])
    gaps = [np.abs(got - w).max() for got, w in zip(films[name], want, strict=True)]
    print(f"{name}: dR {gaps[0]:.1e}, dT {gaps[1]:.1e}")
    # The skin of the metal is 16 nm deep, six cells.
    assert max(gaps) <= (1e-3 if name == "metal" else 5e-4)


@pytest.mark.slow
def test_error_is_of_second_order(films):
    coarse = powers(5e-9)
    for name, case in CASES.items():
        want = transfer_matrix(*case)
        errors = [
            np.sqrt(sum(np.sum((g - w) ** 2) for g, w in zip(got, want, strict=True)))
            for got in (coarse[name], films[name])
        ]
        assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.15), name
