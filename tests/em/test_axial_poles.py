"""Poles that differ along the axes: crystals and layered metals."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.em._boxes import cells_of
from physax.em._poles import susceptibility
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT
from tests.validation.stepping import trace


pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
    pytest.mark.filterwarnings("ignore:Dispersion . should end before the abs"),
]

LORENTZ = em.Lorentz(1.5, 3e14, 2e12)
DRUDE = em.Drude(4e14, 3e12)
POLES = [LORENTZ, DRUDE], [LORENTZ], ()
K = np.array([8e6, 5e6])


def crystal(permittivity, cell, steps):
    """Returns a periodic run of Bloch waves, and their complex frequencies in Hz."""
    grid = Grid.uniform((2, 3), cell)
    material = em.Material(permittivity, poles=POLES)
    everything = em.Structure(em.Box((0, 0), (np.inf, np.inf)), material)
    sim = em.Simulation(
        grid,
        em.rasterise([everything], grid, components=("Hz", "Ex", "Ey")),
        em.Boundaries(*map(em.Bloch, K)),
        polarisation="Hz",
        steps=steps,
    )
    places = [np.asarray(grid.coordinates(axis, 0.5)) for axis in (0, 1)]
    each = [np.exp(1j * k * place) for k, place in zip(K, places, strict=True)]
    start = jnp.multiply.outer(*map(jnp.asarray, each))
    record = trace(sim, {"Hz": start}, lambda f: jnp.mean(f["Hz"] / start))
    return sim, em.resonances(record, (0.5e14, 9e14), dt=sim.dt).complex_frequency


def relation(ex, ey, exy, kx, ky):
    """Returns the (w / c)^2 of waves in the plane with H across it."""
    return (ex * kx**2 + 2 * exy * kx * ky + ey * ky**2) / (ex * ey - exy**2)


def along(axis, frequency):
    return np.asarray(susceptibility(POLES[axis], frequency))


@pytest.mark.x64
def test_waves_in_a_crystal_obey_the_relation_of_its_two_permittivities():
    # With the differences of the grid, and poles at the frequency of their rule.
    cell = 0.05 * MICRO
    sim, f = crystal((1.3, 2.0, 1.0), cell, 6000)
    assert len(f) >= 3
    dt = float(sim.dt)
    seen = np.tan(np.pi * f * dt) / (np.pi * dt)
    kx, ky = 2 / cell * np.sin(K * cell / 2)
    exact = relation(1.3 + along(0, seen), 2.0 + along(1, seen), 0, kx, ky)
    found = (2 / dt * np.sin(np.pi * f * dt) / SPEED_OF_LIGHT) ** 2
    np.testing.assert_allclose(found, exact, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.x64
def test_poles_along_the_axes_and_a_tensor_converge_in_second_order():
    tensor = np.array([[1.3, 0.4, 0.0], [0.4, 2.0, 0.0], [0.0, 0.0, 1.0]])
    errors = []
    for cell in (0.025 * MICRO, 0.0125 * MICRO):
        _, f = crystal(tensor, cell, round(4e-4 / cell))
        ex, ey = 1.3 + along(0, f), 2.0 + along(1, f)
        exact = relation(ex, ey, 0.4, *K)
        errors.append((2 * np.pi * f / SPEED_OF_LIGHT) ** 2 / exact - 1)
    assert len(errors[0]) == 4
    order = np.log2(np.abs(errors[0] / errors[1]))
    np.testing.assert_allclose(order, 2, atol=0.02)


def test_a_film_answers_to_each_polarisation_with_its_own_poles():
    # A film of quarter waves, by the transfer matrix.
    wave = 0.8 * MICRO
    axial = em.Material(
        (2.0, 2.2, 2.4),
        poles=((), [em.Lorentz(1.5, 6e14, 3e13)], [em.Drude(3e14, 2e13)]),
    )
    thick = 0.3 * MICRO
    frequency = SPEED_OF_LIGHT / wave
    grid = Grid.uniform((400, 1), 0.005 * MICRO)
    film = em.Structure(em.Box((1.2 * MICRO, 0), (thick, np.inf)), axial)
    flux = em.FluxMonitor("x", (1.7 * MICRO, 0), (0, np.inf), frequency)
    pulse = em.GaussianPulse(frequency, 1e14)
    place, room = (0.7 * MICRO, 0), (0.7 * MICRO, np.inf)
    for out, own in (("Ez", "Ez"), ("Hz", "Ey")):
        passed = []
        for structures in ([], [film]):
            names = ("Ez", "Hx", "Hy") if out == "Ez" else ("Hz", "Ex", "Ey")
            sim = em.Simulation(
                grid,
                em.rasterise(structures, grid, components=names),
                em.Boundaries(x=em.CPML(20), y=em.Periodic()),
                polarisation=out,
                sources={"in": em.PlaneWave("+x", own, place, room, pulse, exit=False)},
                monitors={"behind": flux},
                steps=4000,
            )
            passed.append(float(em.simulate(sim).monitors["behind"].flux.ravel()[0]))
        eps = em.complex_permittivity(axial, frequency)
        n = np.sqrt(complex(eps["xyz".index(own[1])]))
        phase = 2 * np.pi * n * thick / wave
        t = 1 / (np.cos(phase) - 0.5j * (n + 1 / n) * np.sin(phase))
        assert passed[1] / passed[0] == pytest.approx(abs(t) ** 2, abs=2e-3)


@pytest.mark.x64
def test_poles_are_stepped_where_they_act_alone():
    # Ordinary poles in two components together, the others in the third.
    grid = Grid.uniform((8, 6, 5), 0.1 * MICRO)
    calcite = em.uniaxial(em.library("CaCO3-o"), em.library("CaCO3-e"), "y")
    box = em.Structure(em.Box((0.4 * MICRO,) * 3, (0.4 * MICRO,) * 3), calcite)
    names = em.Simulation(grid, steps=1).component_names
    found = em.rasterise([box], grid, components=names).dispersions
    assert {tuple(one.fraction): one.poles for one in found} == {
        ("Ex", "Ez"): calcite.poles_along(0),
        ("Ey",): calcite.poles_along(1),
    }
    same = jax.jit(lambda: em.rasterise([box], grid, components=names).dispersions)()
    for one, other in zip(found, same, strict=True):
        assert one.box == other.box
        for name, part in one.fraction.items():
            np.testing.assert_allclose(other.at(name), part)


@pytest.mark.x64
def test_a_section_has_the_modes_of_the_permittivity_at_the_frequency():
    grid, wave = Grid.uniform((36, 30), 0.03 * MICRO), 1.0 * MICRO
    box = em.Box((0.54 * MICRO, 0.45 * MICRO), (0.36 * MICRO,) * 2)
    rutile = em.uniaxial(em.library("TiO2-o"), em.library("TiO2-e"), "x")
    numbers = np.real(em.complex_permittivity(rutile, SPEED_OF_LIGHT / wave))
    assert numbers[0] > numbers[1] + 1
    index = []
    for material in (rutile, em.Material(numbers)):
        core = em.Structure(box, material)
        medium = em.rasterise([core], grid, components=("Ex", "Ey", "Ez"))
        modes = em.cross_section_modes(grid, medium, SPEED_OF_LIGHT / wave, count=2)
        index.append(np.asarray(modes.effective_index))
    np.testing.assert_allclose(np.real(index[0]), index[1], rtol=1e-9)


@pytest.mark.f32
def test_a_layered_metal_has_cells_with_all_their_edges():
    # A metal along two axes only: its staircase is that of a metal along all three.
    grid, shape = (
        Grid.uniform((20, 20), 0.01 * MICRO),
        em.Circle((0.1e-6, 0.1e-6), 6e-8),
    )
    parts = []
    for poles in (em.Drude(2e15, 1e13), ([em.Drude(2e15, 1e13)], (), ())):
        metal = em.Structure(shape, em.Material(poles=poles))
        medium = em.rasterise(
            [metal], grid, components=("Hz", "Ex", "Ey"), averaging="staircase"
        )
        (one,) = medium.dispersions
        parts.append(one)
    assert set(parts[1].fraction) == {"Ex"}
    full, axial = (np.zeros(grid.shape) for _ in parts)
    for one, whole in zip(parts, (full, axial), strict=True):
        whole[cells_of(one.box)] = one.at("Ex")
    assert np.sum(full) > 100
    np.testing.assert_array_equal(axial, full)


def test_what_a_crystal_lacks_is_told():
    silver = em.library("Ag")
    with pytest.raises(ArgumentError, match=r"x, y and z, .* 2 entries, 2 of them"):
        em.Material(poles=((), [LORENTZ]))
    with pytest.raises(ArgumentError, match=r"has 3 entries, 2 of them tuples\."):
        em.Material(poles=((), LORENTZ, [LORENTZ]))
    with pytest.raises(ArgumentError, match="must be a pole or a tuple"):
        em.Material(poles=((), [LORENTZ], [3.0]))
    with pytest.raises(ArgumentError, match=r"by components .*'Ez', but is empty"):
        em.Dispersion(((0, 2),) * 2, LORENTZ, {})
    with pytest.raises(ArgumentError, match=r"by components .* has the keys \[1\]"):
        em.Dispersion(((0, 2),) * 2, LORENTZ, {1: 1.0})
    with pytest.raises(ArgumentError, match=r"`poles` along y must not amplify"):
        em.Material(poles=((), [em.Lorentz(-1.0, 3e14, 2e12)], [LORENTZ]))
    assert em.Material(poles=((), [], ())).poles == ()
    crystal = em.Material(poles=POLES)
    assert em.complex_permittivity(crystal, 1e14).shape == (3,)
    with pytest.raises(ArgumentError, match="`ordinary` must be isotropic"):
        em.uniaxial(crystal, silver)
    with pytest.raises(ArgumentError, match=r"`chi2` of `ordinary` must be that of"):
        em.uniaxial(silver, em.Material(chi2=1e-12))
    with pytest.raises(ArgumentError, match="`axis` must be"):
        em.uniaxial(silver, silver, "w")
    with pytest.raises(ArgumentError, match=r"common wavelengths, .* 0.2 to 5 and"):
        em.uniaxial(em.library("Al2O3-o"), em.Material(2.0, valid=(8e-6, 9e-6)))
    medium = em.Medium(dispersions=em.Dispersion(((0, 2),) * 2, LORENTZ, {"Ex": 1.0}))
    with pytest.raises(ArgumentError, match=r"entry for one of \['Ez'\] .* \['Ex'\]"):
        em.Simulation(Grid.uniform((4, 4), 1e-7), medium, polarisation="Ez", steps=1)


@pytest.mark.x64
def test_a_crystal_of_traced_materials_is_the_same():
    pair = em.library("TiO2-o"), em.library("TiO2-e")
    pair = tuple(dataclasses.replace(one, chi2=1e-12) for one in pair)

    def index(pair):
        crystal = em.uniaxial(*pair, axis="y")
        return em.complex_permittivity(crystal, 3e14).real, crystal.chi2

    want, chi2 = index(pair)
    got, traced = eqx.filter_jit(index)(pair)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert chi2 == traced == 1e-12
    other = pair[0], dataclasses.replace(pair[1], chi2=2e-12)
    assert np.isnan(eqx.filter_jit(index)(other)[1])
