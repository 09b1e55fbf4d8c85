from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, em
from physax.grid import Grid
from physax.units import MICRO, NANO, SPEED_OF_LIGHT


pytestmark = pytest.mark.f32

# Wavelength in um, index, and how far the two sources agree. Values of other tables
# than those that the formulas come from: data sheets (glasses, at the d line),
# measured tables, other authors.
DIELECTRICS = {
    "SiO2": (0.5876, 1.45846, 2e-5),
    "quartz-o": (0.5893, 1.54424, 5e-5),
    "quartz-e": (0.5893, 1.55335, 5e-5),
    "CaF2": (0.5876, 1.43384, 2e-5),
    "BaF2": (0.5876, 1.47443, 1e-4),
    "SrF2": (1.0, 1.433143, 1e-4),
    "MgF2-o": (0.5893, 1.37774, 5e-5),
    "MgF2-e": (0.5893, 1.38956, 5e-5),
    "LiF": (0.5893, 1.3920, 2e-4),
    "NaF": (0.5893, 1.3255, 3e-4),
    "NaCl": (0.5893, 1.5443, 3e-4),
    "KCl": (0.5893, 1.4904, 2e-4),
    "KBr": (0.5893, 1.5598, 2e-4),
    "CsI": (1.0, 1.757627, 5e-4),
    "Al2O3-o": (0.5876, 1.76823, 1e-4),
    "Al2O3-e": (0.5876, 1.76013, 1e-4),
    "MgAl2O4": (0.5876, 1.717, 1e-3),
    "YAG": (1.0, 1.8197, 5e-3),
    "Y2O3": (0.5876, 1.93, 1e-3),
    "GeO2": (0.5876, 1.6086, 2e-4),
    "TiO2-o": (1.0, 2.488, 5e-3),
    "TiO2-e": (1.0, 2.743, 1e-2),
    "TeO2-o": (0.6328, 2.2597, 1e-3),
    "TeO2-e": (0.6328, 2.4119, 1e-3),
    "CaCO3-o": (0.5893, 1.65835, 1e-4),
    "CaCO3-e": (0.5893, 1.48640, 5e-4),
    "LiNbO3-o": (0.6328, 2.2863, 3e-4),
    "LiNbO3-e": (0.6328, 2.2024, 3e-4),
    "LiIO3-o": (1.064, 1.85705, 2e-3),
    "LiIO3-e": (1.064, 1.71651, 2e-3),
    "BBO-o": (0.5321, 1.67496, 1e-3),
    "BBO-e": (0.5321, 1.55551, 1e-3),
    "YVO4-o": (1.064, 1.96053, 3e-3),
    "YVO4-e": (1.064, 2.16964, 3e-3),
    "BGO": (0.6328, 2.0975, 1e-3),
    "diamond": (0.5893, 2.4173, 1e-4),
    "Si": (3.0, 3.4302, 3e-3),
    "Ge": (4.0, 4.0242, 1e-3),
    "GaAs": (10.6, 3.2703, 1e-3),
    "InP": (1.55, 3.167, 3e-3),
    "GaN-o": (0.6, 2.3871, 1e-2),
    "ZnS": (1.0, 2.2932, 1e-3),
    "ZnSe": (10.6, 2.4028, 1e-4),
    "ZnTe": (1.0, 2.78894, 1e-3),
    "Si3N4": (1.55, 1.9963, 1e-4),
    "water": (0.5893, 1.33336, 2e-5),
    "ethanol": (0.5893, 1.3615, 5e-4),
    "methanol": (0.5893, 1.3284, 1e-3),
    "PMMA": (0.5876, 1.491, 1e-3),
    "polystyrene": (0.5876, 1.592, 1e-3),
    "polycarbonate": (0.5876, 1.585, 1e-3),
    "N-BK7": (0.58756, 1.51680, 1e-5),
    "N-K5": (0.58756, 1.52249, 1e-5),
    "N-BAK4": (0.58756, 1.56883, 1e-5),
    "N-SK16": (0.58756, 1.62041, 1e-5),
    "N-LAK22": (0.58756, 1.65113, 1e-5),
    "N-FK51A": (0.58756, 1.48656, 1e-5),
    "N-BAF10": (0.58756, 1.67003, 1e-5),
    "F2": (0.58756, 1.62004, 1e-5),
    "SF10": (0.58756, 1.72825, 1e-5),
    "SF11": (0.58756, 1.78472, 1e-5),
    "N-SF6": (0.58756, 1.80518, 1e-5),
    "N-SF11": (0.58756, 1.78472, 1e-5),
    "N-LASF9": (0.58756, 1.85025, 1e-5),
}
# The same models as tabulated by others, to five digits.
METALS = {
    "Ag": (0.63709, 0.14432 + 3.8404j),
    "Al": (0.63376, 1.3441 + 7.3089j),
    "Au": (0.63363, 0.31127 + 3.1534j),
    "Be": (0.63453, 3.4340 + 3.1815j),
    "Cr": (0.63453, 3.4483 + 4.3414j),
    "Cu": (0.62767, 0.34872 + 3.4910j),
    "Ni": (0.63329, 2.0160 + 3.6857j),
    "Pd": (0.63220, 1.8223 + 4.1885j),
    "Pt": (0.63220, 2.3165 + 4.1590j),
    "Ti": (0.63329, 2.0478 + 3.1642j),
    "W": (0.63220, 3.6750 + 2.8874j),
}


def index(material, wavelength):
    value = em.complex_permittivity(material, SPEED_OF_LIGHT / wavelength)
    return complex(np.sqrt(np.asarray(value, complex)))


@pytest.mark.slow(after=12)
@pytest.mark.parametrize("name", DIELECTRICS)
def test_a_dielectric_has_the_published_index(name):
    wavelength, known, tolerance = DIELECTRICS[name]
    material = em.library(name, wavelengths=wavelength * MICRO)
    found = index(material, wavelength * MICRO)
    assert found.imag == 0
    assert found.real == pytest.approx(known, abs=tolerance)


@pytest.mark.parametrize("name", METALS)
def test_a_metal_has_the_tabulated_index(name):
    wavelength, known = METALS[name]
    found = index(em.library(name), wavelength * MICRO)
    # Five digits of the table, of wavelength and index.
    assert abs(found - known) < 2e-4 * abs(known)


def test_every_material_is_tested_and_has_a_source():
    listed = em.materials()
    assert set(listed) == {*DIELECTRICS, *METALS}
    assert len(listed) >= 30
    for entry in listed.values():
        assert entry.title
        assert entry.source.rstrip(")")[-4:].isdigit()
        assert 0.05 * MICRO < entry.shortest < entry.longest < 300 * MICRO
    assert listed["Au"].formula == "Drude-Lorentz"
    assert listed["SiO2"].formula == "Sellmeier"


def test_a_formula_of_fractions_is_the_same_sum():
    # Devore: n^2 = 5.913 + 0.2441 / (l^2 - 0.0803), in um.
    for wave in (0.45, 1.5):
        published = np.sqrt(5.913 + 0.2441 / (wave**2 - 0.0803))
        found = index(em.library("TiO2-o"), wave * MICRO)
        assert found.real == pytest.approx(published, rel=3e-6)


def test_an_unknown_name_gets_hints():
    with pytest.raises(ArgumentError, match="'sio2'.*Did you mean 'SiO2'"):
        em.library("sio2")
    with pytest.raises(ArgumentError, match=r"Did you mean 'Si' or 'Si3N4'\?$"):
        em.library("SiN")
    with pytest.raises(ArgumentError, match="'Al2O3-o' or 'Al2O3-e'"):
        em.library("sapphire")
    with pytest.raises(ArgumentError, match=r"'xyz'. `materials\(\)` lists"):
        em.library("xyz")


def test_the_permittivity_out_of_range_is_refused():
    gold = em.library("Au")
    with pytest.raises(
        ArgumentError, match=r"`wavelengths` must lie .* for `material`"
    ):
        em.complex_permittivity(gold, 0.6e-6)


def test_a_wavelength_out_of_range_is_refused():
    with pytest.raises(ArgumentError, match=r"0.24797 and 6.1992 µm for 'Au'.* 10 µm"):
        em.library("Au", wavelengths=[1 * MICRO, 10 * MICRO])
    with pytest.raises(ArgumentError, match="is nan µm"):
        em.library("Au", wavelengths=float("nan"))
    # Limits belong to the range, in float32 too.
    em.library("SiO2", wavelengths=jnp.asarray([0.21, 3.71]) * MICRO)


def test_traced_wavelengths_are_refused():
    with pytest.raises(ArgumentError, match="must be known"):
        jax.jit(lambda w: em.library("Au", wavelengths=w).permittivity)(1e-6)


def test_the_library_works_under_jit_and_for_derivatives_by_frequency():
    def real(f):
        return em.complex_permittivity(em.library("SiO2"), f).real

    f = SPEED_OF_LIGHT / (1.55 * MICRO)
    # dn/dl = -0.0119825 / um at 1.55 um, by differences of Malitson's formula in
    # float64.
    slope = jax.jit(jax.grad(real))(f)
    expected = 2 * 1.444024 * 0.0119825 / MICRO * (1.55 * MICRO) / f
    assert float(slope) == pytest.approx(expected, rel=1e-5)


def test_a_sellmeier_formula_is_differentiable():
    def n(strength):
        material = em.sellmeier([strength, 1.0], [0.1 * MICRO, 10 * MICRO])
        return jnp.sqrt(em.complex_permittivity(material, 3e14).real)

    # d(n^2)/dB = l^2 / (l^2 - l1^2), with l = 0.999308 um.
    wave = SPEED_OF_LIGHT / 3e14
    term = wave**2 / (wave**2 - (0.1 * MICRO) ** 2)
    slope = jax.grad(n)(1.1)
    assert float(slope) == pytest.approx(term / (2 * float(n(1.1))), rel=1e-5)


@pytest.mark.parametrize(
    ("strengths", "wavelengths", "message"),
    [
        ([1.0, 2.0], [1e-7], r"shapes \(2,\) and \(1,\)"),
        ([], [], r"shapes \(0,\) and \(0,\)"),
        ([-1.0], [1e-7], "`strengths` must be finite and at least 0, but is -1"),
        ([1.0], [0.0], "`wavelengths` must be positive, but is 0"),
        # In um, and squares of roots in um^2: both would leave a vacuum at 1.5 um.
        ([1.0], [0.12], "`wavelengths` must lie between 1e-9 and 2e-3 .*but is 0.12"),
        ([1.0, 1.0], [6e-3, 104], "`wavelengths` must lie .*µm² they.*but is 0.006"),
        ([1j], [1e-7], "must be a list of real numbers"),
    ],
)
def test_a_bad_sellmeier_formula_is_refused(strengths, wavelengths, message):
    with pytest.raises(ArgumentError, match=message):
        em.sellmeier(strengths, wavelengths)


SPACING = 5 * NANO
FREQUENCIES = SPEED_OF_LIGHT / (np.linspace(0.5, 0.9, 9) * MICRO)


def fluxes(structures):
    """Flux in front of a slab, with the incident wave, and behind it."""
    grid = Grid.uniform((480,), SPACING)
    pulse = em.GaussianPulse(FREQUENCIES.mean(), np.ptp(FREQUENCIES) / 2)
    at = (0.7 * MICRO,)
    result = em.simulate(
        em.Simulation(
            grid,
            em.rasterise(structures, grid),
            em.Boundaries.all(em.CPML(60, reflection=1e-8, alpha_max=0.0)),
            sources={"wave": em.PlaneWave("+x", "Ez", at, at, pulse, exit=False)},
            monitors={
                name: em.FluxMonitor("x", (place * MICRO,), (0.0,), FREQUENCIES)
                for name, place in {"front": 0.5, "behind": 1.9}.items()
            },
            steps=3500,
        )
    )
    return (np.asarray(result.monitors[name].flux) for name in ("front", "behind"))


def slab(material, thickness):
    """Reflectance and transmittance of a slab in vacuum."""
    n = np.sqrt(np.asarray(em.complex_permittivity(material, FREQUENCIES), complex))
    turn = np.exp(2j * np.pi * FREQUENCIES / SPEED_OF_LIGHT * n * thickness)
    r = (1 - n) / (1 + n)
    whole = 1 - (r * turn) ** 2
    return (
        np.abs(r * (1 - turn**2) / whole) ** 2,
        np.abs((1 - r**2) * turn / whole) ** 2,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "thickness"),
    [("Au", 50 * NANO), ("Si3N4", 200 * NANO), ("Cr", 50 * NANO)],
)
def test_a_slab_reflects_and_transmits_as_the_transfer_matrix_says(name, thickness):
    material = em.library(name)
    centre = 1.2 * MICRO + thickness / 2
    shape = em.Box((centre,), (thickness,))
    incident, _ = fluxes([])
    front, behind = fluxes([em.Structure(shape, material)])
    reflectance, transmittance = slab(material, thickness)
    # Cells are 1/100 of a wavelength in vacuum: 0.4 % seen.
    assert np.abs((incident - front) / incident - reflectance).max() < 0.01
    assert np.abs(behind / incident - transmittance).max() < 0.01


def test_the_page_on_materials_lists_the_library():
    page = Path(__file__).parents[2] / "docs" / "materials.md"
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `") and line.count("|") == 6
    ]
    listed = {
        f"`{name}`": [
            entry.title,
            entry.formula,
            f"{entry.shortest / MICRO:g} to {entry.longest / MICRO:g}",
            entry.source,
        ]
        for name, entry in em.materials().items()
    }
    assert {row[0]: row[1:] for row in rows} == listed
