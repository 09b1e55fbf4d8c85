"""Media behind a mirror: which are their own image, and which are another one."""

from functools import partial

import jax
import numpy as np
import pytest

from physax import ArgumentError, em
from physax.em import mirror_sign, unfold
from physax.grid import Grid
from physax.units import MICRO, NANO, SPEED_OF_LIGHT


pytestmark = [
    pytest.mark.x64,
    pytest.mark.filterwarnings("ignore:`grid` should have at least 10 cells"),
]

F0 = SPEED_OF_LIGHT / MICRO
PULSE = em.GaussianPulse(F0, F0 / 2)
CELL = 50 * NANO
DEPTH = 12
"""Cells from the mirror, normal to y, to the wall opposite."""


def side(grid, half, behind):
    """Returns 1 for samples before the mirror, and what is given for those behind."""
    y = np.arange(grid.shape[1]) + half - (grid.shape[1] - DEPTH)
    sides = np.where(y < 0, behind, np.where(y == 0, (1 + behind) / 2, 1.0))
    return np.broadcast_to(sides.reshape(-1, *(1,) * (grid.ndim - 2)), grid.shape)


def crystal(pair, behind=1):
    def medium(grid, permittivity=2.0):
        box = tuple((0, cells) for cells in grid.shape)
        one = em.OffDiagonal(box, {pair: -0.15 * side(grid, 0, behind)})
        return em.Medium(permittivity, off_diagonals=one)

    return medium


def squares(behind=1, **chi2):
    def medium(grid):
        box = tuple((0, cells) for cells in grid.shape)
        chi2_by_component = {
            name: value * side(grid, 0.5 * (name == "Ey"), behind)
            for name, value in chi2.items()
        }
        return em.Medium(2.0, nonlinearities=em.Nonlinearity(box, chi2_by_component))

    return medium


def glass(grid, permittivity=4.0):
    """Paints a disc through the mirror, with off-diagonal entries at its border."""
    circle = em.Circle((0.3 * CELL, 0.0), 6.6 * CELL)
    disc = em.Structure(circle, em.Material(permittivity))
    medium = em.rasterise(
        [disc], grid, components=("Hz", "Ex", "Ey"), averaging="polarised"
    )
    assert medium.off_diagonals
    return medium


def simulation(medium, wall, component, polarisation, *, whole=False):
    """Builds a closed box with a dipole, or with it and its image."""
    shape = (14, 2 * DEPTH if whole else DEPTH) + (6,) * (polarisation is None)
    origin = (-7 * CELL, -DEPTH * CELL if whole else 0.0, 0.0)[: len(shape)]
    grid = Grid.uniform(shape, CELL, origin)
    parts = {4.5: 1, -4.5: mirror_sign(component, 1, wall)} if whole else {4.5: 1}
    return em.Simulation(
        grid,
        medium(grid),
        em.Boundaries(
            x=em.Periodic(),
            y=em.PEC() if whole else (wall, em.PEC()),
            z=em.Periodic(),
        ),
        sources={
            f"{y}": em.Dipole(
                component,
                CELL * np.array((-2.3, y, 2.2)[: len(shape)]),
                PULSE,
                part,
            )
            for y, part in parts.items()
        },
        monitors={
            "all": em.TimeMonitor(
                (component,), (0.0,) * grid.ndim, (np.inf,) * grid.ndim, 8
            )
        },
        polarisation=polarisation,
        steps=96,
    )


def record(*args, **options):
    sim = simulation(*args, **options)
    return em.simulate(sim).monitors["all"], sim


PEC, PMC = em.PEC(), em.PMC()
CHI2 = 5e-11
"""In m/V; the dipoles make fields of some 1e9 V/m."""


@pytest.mark.parametrize(
    ("medium", "wall", "component", "polarisation"),
    [
        (glass, PEC, "Hz", "Hz"),
        pytest.param(glass, PMC, "Hz", "Hz", marks=pytest.mark.slow),
        (crystal("xz"), PEC, "Ex", None),
        pytest.param(crystal("xz"), PMC, "Ex", None, marks=pytest.mark.slow),
        (squares(Ez=CHI2), PMC, "Ez", "Ez"),
        (squares(Ex=CHI2, Ey=0.0), PMC, "Ex", "Hz"),
        (squares(Ex=0.0, Ey=CHI2), PEC, "Ey", "Hz"),
    ],
)
def test_a_medium_that_is_its_own_image_is_unfolded(
    medium, wall, component, polarisation
):
    whole, _ = record(medium, wall, component, polarisation, whole=True)
    found = unfold(*record(medium, wall, component, polarisation)).values[component]
    # The lowest node of the whole, on its wall, is the image of none of the half.
    expected = whole.values[component][:, :, -found.shape[2] :]
    assert np.allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("kind", "wall", "component", "polarisation", "message"),
    [
        (
            (crystal, ("xy",), {}),
            PEC,
            "Hz",
            "Hz",
            r"no crystal whose permittivity couples E along y with another axis, to be "
            r"unfolded at the PEC along y: behind .* other sign\. Simulate the whole "
            r"scene\. In the cells \(\(0, 14\), \(0, 12\)\) of off-diagonal entries 0 "
            r"the inverse permittivity 'xy' times .* at most 0\.001 .* but is 0\.3\.",
        ),
        ((crystal, ("xy",), {}), PMC, "Hz", "Hz", "at the PMC along y.*'xy'"),
        pytest.param(
            (crystal, ("yz",), {}),
            PMC,
            "Ez",
            None,
            "at the PMC along y.*'yz'",
            marks=pytest.mark.slow,
        ),
        (
            (squares, (), {"Ez": CHI2}),
            PEC,
            "Ez",
            "Ez",
            r"`chi2` of nonlinearity 0, in the cells \(\(0, 14\), \(0, 12\)\), must be "
            r"0 for Ez to unfold `sim` at the PEC along y: .* Simulate the whole "
            r"scene, or give .* each component\. The largest must be 0, but is 5e-11\.",
        ),
        ((squares, (), {"Ex": CHI2, "Ey": 0.0}), PEC, "Ex", "Hz", "0 for Ex.*PEC"),
        ((squares, (), {"Ex": 0.0, "Ey": CHI2}), PMC, "Ey", "Hz", "0 for Ey.*PMC"),
    ],
)
def test_a_medium_that_is_another_one_behind_the_mirror_is_refused(
    kind, wall, component, polarisation, message
):
    make, args, options = kind
    scene = wall, component, polarisation
    half, sim = record(make(*args, **options), *scene)
    seen = half.values[component]
    for behind, same in ((1, False), (-1, True)):
        whole, _ = record(make(*args, behind=behind, **options), *scene, whole=True)
        expected = whole.values[component][:, :, DEPTH:]
        error = np.abs(seen - expected).max() / np.abs(expected).max()
        # The run is right for the wall; with the same medium behind it is another.
        assert error < 1e-12 if same else error > 0.01
    with pytest.raises(ArgumentError, match=message):
        unfold(half, sim)


@pytest.mark.parametrize(
    ("medium", "refused"),
    [
        (lambda x, grid: squares(Ex=x, Ey=0.0)(grid), True),
        (lambda x, grid: squares(Ex=0.0, Ey=x)(grid), False),
        (
            lambda x, grid: em.Medium(
                x, off_diagonals=crystal("xy")(grid).off_diagonals
            ),
            True,
        ),
        (lambda x, grid: glass(grid, 3 + x), False),
    ],
)
def test_a_traced_medium_that_is_another_one_gives_nan(medium, refused):
    scene = PEC, "Hz", "Hz"
    series, _ = record(lambda grid: em.Medium(2.0), *scene)

    @jax.vmap
    def run(x):
        return unfold(series, simulation(partial(medium, x), *scene)).values["Hz"]

    assert np.unique(np.isnan(run(np.ones(2)))) == [refused]


def test_a_sheet_of_a_crystal_is_found_and_a_small_coupling_is_not():
    def sheet(entry, grid):
        entries = np.zeros((8, 8, 2))
        entries[1:, 1:, 1] = entry
        box = (2, 10), (2, 10), (2, 4)
        return em.Medium(2.0, off_diagonals=em.OffDiagonal(box, {"xy": entries}))

    scene = PEC, "Ez", None
    series, _ = record(lambda grid: em.Medium(2.0), *scene)
    unfold(series, simulation(partial(sheet, 4e-4), *scene))
    with pytest.raises(ArgumentError, match="at most 0.001 .* but is 0.002"):
        unfold(series, simulation(partial(sheet, 1e-3), *scene))


def test_what_a_material_paints_is_refused_or_not_as_its_tensor_lies():
    tensor = np.array([[3.0, 0.0, 0.8], [0.0, 2.0, 0.0], [0.8, 0.0, 2.0]])

    def box(material, grid):
        block = em.Box((0.0, 0.0, 3 * CELL), (6 * CELL, 8 * CELL, 4 * CELL))
        return em.rasterise([em.Structure(block, material)], grid)

    scene = PMC, "Ez", None
    series, _ = record(lambda grid: em.Medium(2.0), *scene)
    unfold(series, simulation(partial(box, em.Material(tensor)), *scene))
    turned = em.Material(np.roll(tensor, 1, (0, 1)))
    with pytest.raises(ArgumentError, match="at the PMC along y.*'xy'"):
        unfold(series, simulation(partial(box, turned), *scene))
    # chi2 of a material is that of all components, of which one is odd.
    squared = em.Material(2.0, chi2=CHI2)
    with pytest.raises(ArgumentError, match="must be 0 for Ey to unfold"):
        unfold(series, simulation(partial(box, squared), *scene))
