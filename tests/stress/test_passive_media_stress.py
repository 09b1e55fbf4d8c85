"""Long runs of lossy, dispersive media behind absorbing layers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid


@pytest.mark.stress
@pytest.mark.filterwarnings("ignore:`grid` should have")
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_two_hundred_thousand_steps_stay_bounded(polarisation):
    shape, span = (40, 40), ((9, 31), (9, 31))
    seeds = np.random.default_rng(0)
    sizes = tuple(high - low for low, high in span)
    many = 10
    media = (
        jnp.asarray(seeds.uniform(1, 6, (many, *shape)), float),
        jnp.asarray(seeds.uniform(0, 1e4, (many, *shape)), float),
        jnp.asarray(seeds.uniform(0, 1, (many, *sizes)), float),
        jnp.asarray(seeds.uniform(0, 5, (many, 2)), float),
        jnp.asarray(10 ** seeds.uniform(14, 15.5, (many, 3)), float),
        jnp.asarray(10 ** seeds.uniform(11, 15, (many, 3)), float),
    )

    @jax.jit
    @jax.vmap
    def late(eps, sigma, fraction, strength, frequency, damping):
        poles = (
            em.Lorentz(strength[0], frequency[0], damping[0]),
            em.Lorentz(strength[1], frequency[1], damping[1]),
            em.Drude(frequency[2], damping[2]),
            em.Debye(1.0, 1e-14),
        )
        sim = em.Simulation(
            Grid.uniform(shape, 2e-8),
            em.Medium(
                eps,
                conductivity=sigma,
                dispersions=em.Dispersion(span, poles, fraction),
            ),
            em.Boundaries.all(em.CPML(8)),
            polarisation=polarisation,
            steps=200_000,
            sources={
                "in": em.Dipole(
                    polarisation, (4e-7, 4e-7), em.GaussianPulse(5e14, 3e14)
                )
            },
            monitors={
                "at": em.TimeMonitor(
                    (polarisation,), (4e-7, 4e-7), (2e-7, 2e-7), every=1000
                )
            },
        )
        values = em.simulate(sim).monitors["at"].values[polarisation]
        return jnp.sum(values.reshape(values.shape[0], -1) ** 2, axis=1)

    energy = np.asarray(late(*media))
    assert energy.shape[0] == many
    assert np.isfinite(energy).all()
    # Charges at rest leave slowly, and rounding stays; nothing grows.
    late = energy[:, -20:].max(axis=1)
    assert (late <= 0.1 * energy.max(axis=1)).all()
    assert (late <= 4 * energy[:, 40:60].max(axis=1)).all()


def tensors(seeds, shape):
    """Off-diagonal entries of the inverse permittivity, in all cells."""
    pairs = ("xy", "xz", "yz")
    return {p: jnp.asarray(seeds.uniform(-0.05, 0.05, shape), float) for p in pairs}


@pytest.mark.stress
@pytest.mark.filterwarnings("ignore:`boundaries` along .* should have")
@pytest.mark.filterwarnings("ignore:`grid` should have")
@pytest.mark.parametrize("kind", ["layers", "tensors", "absorbers"])
def test_two_hundred_thousand_steps_in_three_dimensions_stay_bounded(kind):
    shape, many, steps = (16, 16, 16), 10, 200_000
    # Metals among random cells may reach into absorbers.
    span = ((0, 16) if kind == "absorbers" else (4, 12), (4, 12), (4, 12))
    face = em.Absorber(4) if kind == "absorbers" else em.CPML(4)
    seeds = np.random.default_rng(1)
    sizes = tuple(high - low for low, high in span)
    media = (
        jnp.asarray(seeds.uniform(1, 6, (many, *shape)), float),
        jnp.asarray(seeds.uniform(0, 1e4, (many, *shape)), float),
        jnp.asarray(seeds.uniform(0, 1, (many, *sizes)), float),
        jnp.asarray(seeds.uniform(0, 5, (many, 2)), float),
        jnp.asarray(10 ** seeds.uniform(14, 15.5, (many, 3)), float),
        jnp.asarray(10 ** seeds.uniform(11, 15, (many, 3)), float),
        tensors(seeds, (many, *shape)) if kind == "tensors" else {},
    )
    middle = (1.6e-7,) * 3

    @jax.jit
    @jax.vmap
    def late(eps, sigma, fraction, strength, frequency, damping, entries):
        poles = (
            em.Lorentz(strength[0], frequency[0], damping[0]),
            em.Lorentz(strength[1], frequency[1], damping[1]),
            em.Drude(frequency[2], damping[2]),
            em.Debye(1.0, 1e-14),
        )
        whole = tuple((0, n) for n in shape)
        sim = em.Simulation(
            Grid.uniform(shape, 2e-8),
            em.Medium(
                eps,
                conductivity=sigma,
                dispersions=em.Dispersion(span, poles, fraction),
                off_diagonals=em.OffDiagonal(whole, entries) if entries else (),
            ),
            em.Boundaries.all(face),
            steps=steps,
            sources={"in": em.Dipole("Ez", middle, em.GaussianPulse(5e14, 3e14))},
            monitors={
                "at": em.TimeMonitor(("Ex", "Ez"), middle, (1e-7,) * 3, every=1000)
            },
        )
        values = em.simulate(sim).monitors["at"].values.values()
        return sum(jnp.sum(x.reshape(x.shape[0], -1) ** 2, axis=1) for x in values)

    energy = np.asarray(late(*media))
    assert energy.shape == (many, steps // 1000)
    assert np.isfinite(energy).all()
    late = energy[:, -20:].max(axis=1)
    assert (late <= 0.1 * energy.max(axis=1)).all()
    assert (late <= 4 * energy[:, 40:60].max(axis=1)).all()
