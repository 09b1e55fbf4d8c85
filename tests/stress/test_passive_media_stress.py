"""Long runs of lossy, dispersive media behind absorbing layers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid


MANY, STEPS, EVERY = 10, 200_000, 1000


def drawn(seeds, shape, box):
    """Permittivity, conductivity and numbers of poles in a box, for many runs."""
    sizes = tuple(high - low for low, high in box)
    return (
        jnp.asarray(seeds.uniform(1, 6, (MANY, *shape)), float),
        jnp.asarray(seeds.uniform(0, 1e4, (MANY, *shape)), float),
        jnp.asarray(seeds.uniform(0, 1, (MANY, *sizes)), float),
        jnp.asarray(seeds.uniform(0, 5, (MANY, 2)), float),
        jnp.asarray(10 ** seeds.uniform(14, 15.5, (MANY, 3)), float),
        jnp.asarray(10 ** seeds.uniform(11, 15, (MANY, 3)), float),
    )


def energies(media, box, faces, names, entries=None, polarisation=None):
    """Returns what is near the middle in the course of many runs, as squares of E."""
    shape = media[0].shape[1:]
    whole = tuple((0, n) for n in shape)
    middle = tuple(n * 1e-8 for n in shape)
    pulse = em.GaussianPulse(5e14, 3e14)

    @jax.jit
    @jax.vmap
    def run(eps, sigma, fraction, strength, frequency, damping, entries):
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
                dispersions=em.Dispersion(box, poles, fraction),
                off_diagonals=em.OffDiagonal(whole, entries) if entries else (),
            ),
            faces,
            polarisation=polarisation,
            steps=STEPS,
            sources={
                "in": em.Dipole(component=names[-1], position=middle, pulse=pulse)
            },
            monitors={
                "at": em.TimeMonitor(
                    names, middle, tuple(x / 2 for x in middle), every=EVERY
                )
            },
        )
        values = em.simulate(sim).monitors["at"].values.values()
        return sum(jnp.sum(x.reshape(x.shape[0], -1) ** 2, axis=1) for x in values)

    return np.asarray(run(*media, entries or {}))


def check_bounded(energy):
    assert energy.shape == (MANY, STEPS // EVERY)
    assert np.isfinite(energy).all()
    # Charges at rest leave slowly, and rounding stays; nothing grows.
    late = energy[:, -20:].max(axis=1)
    assert (late <= 0.1 * energy.max(axis=1)).all()
    assert (late <= 4 * energy[:, 40:60].max(axis=1)).all()


@pytest.mark.stress
@pytest.mark.filterwarnings("ignore:`grid` should have")
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_two_hundred_thousand_steps_stay_bounded(polarisation):
    box, seeds = ((9, 31), (9, 31)), np.random.default_rng(0)
    media, faces = drawn(seeds, (40, 40), box), em.Boundaries.all(em.CPML(8))
    one = (polarisation,)
    check_bounded(energies(media, box, faces, one, polarisation=polarisation))


@pytest.mark.stress
@pytest.mark.filterwarnings("ignore:`boundaries` along .* should have")
@pytest.mark.filterwarnings("ignore:`grid` should have")
@pytest.mark.parametrize("kind", ["layers", "tensors", "absorbers"])
def test_two_hundred_thousand_steps_in_three_dimensions_stay_bounded(kind):
    shape, inside = (16, 16, 16), ((4, 12),) * 3
    box, face, entries = inside, em.CPML(4), None
    seeds = np.random.default_rng(1)
    if kind == "absorbers":
        # Metals among random cells may reach into them.
        box, face = ((0, 16), *inside[1:]), em.Absorber(4)
    media = drawn(seeds, shape, box)
    if kind == "tensors":
        draw = seeds.uniform(-0.05, 0.05, (3, MANY, *shape))
        entries = dict(zip(("xy", "xz", "yz"), jnp.asarray(draw, float), strict=True))
    faces = em.Boundaries.all(face)
    check_bounded(energies(media, box, faces, ("Ex", "Ez"), entries))
