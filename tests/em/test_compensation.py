"""Permittivities that make up for the numerical dispersion at one frequency."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from scipy.special import j0

from physax import em
from physax._checks import ArgumentError
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT
from tests.validation.stepping import trace


DX = 0.1 * MICRO
INDEX = 2.5


def simulation(ndim=1, medium=None, boundaries=None, **options):
    options.setdefault("polarisation", "Hz" if ndim == 2 else None)
    return em.Simulation(
        options.pop("grid", Grid.uniform((12, 10, 8)[:ndim], DX)),
        em.Medium(INDEX**2) if medium is None else medium,
        em.Boundaries.all(em.Periodic()) if boundaries is None else boundaries,
        steps=options.pop("steps", 40),
        courant=0.9,
        **options,
    )


def frequency_of(k):
    return k * SPEED_OF_LIGHT / (2 * np.pi * INDEX)


@pytest.mark.x64
@pytest.mark.parametrize("periods", [1, 2])
def test_waves_along_a_line_have_their_exact_frequency(periods):
    # 12 and 6 cells per wavelength.
    exact = frequency_of(2 * np.pi * periods / (12 * DX))
    noise = jnp.asarray(np.random.default_rng(0).normal(size=12))

    def found(sim):
        start = {"Ez": noise}
        a = trace(sim, start, lambda f: jnp.fft.rfft(f["Ez"])[periods])
        now, around = a[1:-1], a[2:] + a[:-2]
        cosine = jnp.real(jnp.vdot(now, around) / jnp.vdot(now, now)) / 2
        return float(jnp.arccos(cosine) / (2 * np.pi * sim.dt))

    plain = simulation(steps=400)
    assert abs(found(plain) / exact - 1) > 5e-3
    compensated = em.compensate_dispersion(plain, exact)
    assert found(compensated) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_permittivity_is_that_of_the_mean_over_directions(ndim):
    f = frequency_of(2 * np.pi / (8 * DX))
    sim = simulation(ndim)
    step = float(sim.dt) * SPEED_OF_LIGHT
    z = 2 * np.pi / 8
    mean = {1: np.cos(z), 2: j0(z), 3: np.sinc(z / np.pi)}[ndim]
    square = ndim * 2 * (1 - mean) / DX**2
    time = (2 / step * np.sin(np.pi * f * float(sim.dt))) ** 2
    found = em.compensate_dispersion(sim, f).medium.permittivity
    assert float(found) == pytest.approx(square / time, rel=2e-6)
    assert found.ndim == 0


def test_fine_cells_change_nothing():
    sim = simulation(2)
    found = em.compensate_dispersion(sim, frequency_of(2 * np.pi / (1e3 * DX)))
    assert float(found.medium.permittivity) == pytest.approx(INDEX**2, rel=1e-5)
    assert (found.steps, found.dt) == (sim.steps, sim.dt)


def test_graded_cells_and_regions_have_their_own():
    f = frequency_of(2 * np.pi / (8 * DX))
    widths = DX * np.asarray([1.0, 1.0, 0.5, 0.5, 1.0, 1.0])
    region = em.DesignRegion(((2, 5),), jnp.full(3, INDEX**2))
    sim = simulation(
        grid=Grid.graded([np.cumsum([0.0, *widths])]),
        medium=em.Medium(INDEX**2, regions=region),
    )
    found = em.compensate_dispersion(sim, f).medium
    coarse, fine = (
        (1 - np.cos(2 * np.pi / 8 * w)) / w**2 / (1 - np.cos(2 * np.pi / 8))
        for w in (1, 0.5)
    )
    value = np.asarray(found.permittivity)
    assert value[2] / value[0] == pytest.approx(fine / coarse, rel=1e-5)
    (inside,) = found.regions
    np.testing.assert_allclose(inside.permittivity, value[2:5], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize(
    "pole",
    [em.Lorentz(3.0, 4e14, 0.0), em.Lorentz(1.0, 3e13, 0.0)],
    ids=["above", "below"],
)
def test_poles_are_stepped_at_their_exact_frequency(pole):
    # One wave per 12 cells; its frequency solves k = n(f) 2 pi f / c.
    def excess(f):
        index = np.sqrt(4.0 + float(jnp.real(pole.susceptibility(f))))
        return index * f - SPEED_OF_LIGHT / (12 * DX)

    exact = scipy.optimize.brentq(excess, 5e13, 3e14, xtol=1e-2)
    medium = em.Medium(4.0, dispersions=em.Dispersion(((0, 12),), pole))
    wave = jnp.cos(2 * jnp.pi * jnp.arange(12) / 12)

    def found(sim):
        # Two branches: a[2] + a[-2] + p (a[1] + a[-1]) + q a[0] = 0 with cosines x as
        # the roots of 4 x^2 - 2 + 2 p x + q = 0.
        a = np.asarray(trace(sim, {"Ez": wave}, lambda f: f["Ez"][0]))
        near, now, far = a[3:-1] + a[1:-3], a[2:-2], a[4:] + a[:-4]
        p, q = np.linalg.lstsq(np.stack([near, now], 1), -far)[0]
        branches = np.arccos(np.roots([4, 2 * p, q - 2])) / (2 * np.pi * float(sim.dt))
        return branches[np.argmin(abs(branches - exact))]

    plain = simulation(medium=medium, steps=400)
    assert abs(found(plain) / exact - 1) > 2e-3
    compensated = em.compensate_dispersion(plain, exact)
    assert found(compensated) == pytest.approx(exact, rel=1e-8)


def test_metals_stay():
    metal = em.Dispersion(((3, 7),), em.Drude(2e15, 0.0))
    sim = simulation(medium=em.Medium(1.0, dispersions=metal))
    found = em.compensate_dispersion(sim, 3e14).medium.permittivity["Ez"]
    assert float(found[4]) == 1 != float(found[0])


@pytest.mark.parametrize("shape", [(12, 1, 1), (12, 10, 1)])
def test_nothing_runs_along_an_axis_of_one_cell(shape):
    f = frequency_of(2 * np.pi / (8 * DX))
    flat = em.Simulation(
        Grid.uniform(shape, (DX, DX, DX)), em.Medium(INDEX**2), steps=1, courant=0.5
    )
    ndim = sum(cells > 1 for cells in shape)
    same = em.Simulation(
        Grid.uniform(shape[:ndim], DX),
        em.Medium(INDEX**2),
        steps=1,
        dt=flat.dt,
        polarisation="Ez" if ndim == 2 else None,
    )
    found, wanted = (
        float(em.compensate_dispersion(sim, f).medium.permittivity)
        for sim in (flat, same)
    )
    assert found == pytest.approx(wanted, rel=1e-6)


@pytest.mark.filterwarnings("error")
def test_few_cells_are_no_reason_to_warn():
    em.compensate_dispersion(simulation(2), frequency_of(2 * np.pi / (5 * DX)))


def test_a_simulation_may_be_an_argument_of_a_compiled_function():
    sim, f = simulation(2), frequency_of(2 * np.pi / (8 * DX))
    known = em.compensate_dispersion(sim, f).medium.permittivity
    found = eqx.filter_jit(em.compensate_dispersion)(sim, f).medium.permittivity
    assert float(found) == pytest.approx(float(known), rel=1e-6)
    slopes = eqx.filter_grad(
        lambda s: em.compensate_dispersion(s, f).medium.permittivity
    )(sim)
    assert float(slopes.medium.permittivity) > 0


def test_tensors_keep_their_axes():
    tilted = em.OffDiagonal(((0, 12), (0, 10)), {"xy": jnp.full((12, 10), 0.02)})
    sim = simulation(2, em.Medium(INDEX**2, off_diagonals=tilted))
    found = em.compensate_dispersion(sim, frequency_of(2 * np.pi / (8 * DX))).medium
    (one,) = found.off_diagonals
    product = one.inverse["xy"] * found.permittivity
    np.testing.assert_allclose(product, 0.02 * INDEX**2, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.x64
def test_plane_waves_have_the_new_background():
    pulse = em.GaussianPulse(2e14, 5e13)
    box = em.FluxMonitor("x", (1.2 * MICRO, 2.5 * MICRO), (0, 3 * MICRO), 2e14)
    inside = em.FluxMonitor("x", (2.5 * MICRO, 2.5 * MICRO), (0, 1 * MICRO), 2e14)
    sim = em.Simulation(
        Grid.uniform((50, 50), DX),
        em.Medium(),
        em.Boundaries.all(em.CPML(8)),
        sources={
            "wave": em.PlaneWave(
                "+x", "Ez", (2.5 * MICRO,) * 2, (2 * MICRO,) * 2, pulse
            )
        },
        monitors={"out": box, "in": inside},
        polarisation="Ez",
        steps=600,
        courant=0.9,
    )
    sim = em.compensate_dispersion(sim, 2e14)
    assert float(sim.sources["wave"].permittivity) == float(sim.medium.permittivity) < 1
    seen = em.simulate(sim).monitors
    # An empty box leaks nothing.
    assert abs(float(seen["out"].flux[0])) < 1e-20 * float(seen["in"].flux[0])


@pytest.mark.slow
@pytest.mark.x64
def test_gradients_go_through():
    def energy(epsilon, f):
        sim = simulation(
            medium=em.Medium(epsilon),
            sources={"in": em.Dipole("Ez", 0.6 * MICRO, em.Ricker(1e14))},
            steps=60,
        )
        field = em.simulate(em.compensate_dispersion(sim, f)).fields["Ez"]
        return jnp.sum(field**2)

    epsilon = jnp.linspace(2.0, 4.0, 12)
    toward = jnp.asarray(np.random.default_rng(0).normal(size=12))
    f, h = 1e14, 1e-5
    of_medium, of_frequency = jax.grad(energy, (0, 1))(epsilon, f)
    ends = [energy(epsilon + s * h * toward, f) for s in (1, -1)]
    assert float(of_medium @ toward) == pytest.approx(
        float(ends[0] - ends[1]) / (2 * h), rel=1e-6
    )
    ends = [energy(epsilon, f * (1 + s * h)) for s in (1, -1)]
    assert float(of_frequency * f) == pytest.approx(
        float(ends[0] - ends[1]) / (2 * h), rel=1e-6
    )


def faults():
    ring = em.Simulation(
        Grid.uniform((12, 12), DX), steps=1, cylindrical=em.Cylindrical(1)
    )
    yield "cylindrical", ring, 1e14, "`sim` must have Cartesian coordinates"
    magnetic = simulation(medium=em.Medium(permeability=jnp.full(12, 2.0)))
    yield "permeability", magnetic, 1e14, "`permeability` of the medium must be one"
    yield "frequency", simulation(), -1e14, "`frequency` must be positive"
    yield (
        "several",
        simulation(),
        jnp.asarray([1e14, 2e14]),
        "`frequency` must be one number",
    )
    yield "wavelength", simulation(), 1.5e-6, "Is it in Hz, or is it a wavelength"
    yield "infinite", simulation(), np.inf, "at least 4 cells per wavelength"
    coarse = frequency_of(2 * np.pi / (3 * DX))
    yield "coarse", simulation(2), coarse, "at least 4 cells per wavelength"
    sharp = em.Dispersion(((3, 7),), em.Lorentz(0.4, 1.0e14, 0.0))
    near = simulation(medium=em.Medium(0.05, dispersions=sharp))
    yield "resonance", near, 0.97e14, "the permittivity without the poles"
    fast = em.Simulation(
        Grid.uniform((12, 12), DX), steps=1, polarisation="Ez", courant=1.0
    )
    yield "step", fast, 4e14, "`dt` must be at most"
    wave = em.PlaneWave("+x", "Ez", 0.7 * MICRO, 0.4 * MICRO, em.Ricker(1e14))
    graded = em.Simulation(
        Grid.graded([DX * np.linspace(0, 12, 61) ** 1.1]),
        boundaries=em.Boundaries.all(em.CPML(8)),
        sources={"wave": wave},
        steps=1,
    )
    yield "wave", graded, 1e14, "cells of one size around the plane wave 'wave'"


@pytest.mark.parametrize(
    ("sim", "frequency", "message"),
    [pytest.param(*rest, id=name) for name, *rest in faults()],
)
def test_refusals(sim, frequency, message):
    with pytest.raises(ArgumentError, match=message):
        em.compensate_dispersion(sim, frequency)
