"""The cross-section mode solver: exact guides, slabs, and a finite-element solver."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import jv, yv

from physax import em
from physax.grid import Grid
from physax.units import EPSILON_0, MICRO, SPEED_OF_LIGHT
from tests.validation.stepping import slope


DATA = json.loads((Path(__file__).parent / "data" / "em_analytic.json").read_text())
WAVE = 1.55 * MICRO
FREQUENCY = SPEED_OF_LIGHT / WAVE
SILICON, GLASS = 3.4757**2, 1.444**2

# A guide of 20 mm by 10 mm between electric walls, at 12 GHz.
WIDTH, HEIGHT, MICROWAVE = 0.02, 0.01, 12e9
K = 2 * np.pi * MICROWAVE / SPEED_OF_LIGHT
WALLS = em.Boundaries()

pytestmark = pytest.mark.x64


def paint(grid, *structures, background=1.0):
    painted = [
        em.Structure(shape, em.Material(permittivity=eps)) for shape, eps in structures
    ]
    fill = em.Material(permittivity=background)
    return em.rasterise(painted, grid, fill, components=("Ex", "Ey", "Ez"))


def metal_grid(cells):
    return Grid.uniform((cells, cells // 2), WIDTH / cells)


def test_rectangular_guide_is_exact_on_the_grid():
    # Both sine waves are eigenvectors of the differences, and so is the wave along z.
    n, spacing, dt = 12, 0.6e-3, 0.5e-12
    seen = 2 / (SPEED_OF_LIGHT * dt) * np.sin(np.pi * MICROWAVE * dt)
    across = 2 * n / WIDTH * np.sin(np.pi / (2 * n))
    beta = 2 / spacing * np.arcsin(np.sqrt(seen**2 - across**2) * spacing / 2)
    modes = em.cross_section_modes(
        metal_grid(n),
        em.Medium(),
        MICROWAVE,
        boundaries=WALLS,
        spacing=spacing,
        dt=dt,
    )
    assert float(modes.effective_index[0]) == pytest.approx(beta / K, rel=1e-12)
    assert float(modes.x_fraction[0]) < 1e-20


def test_loss_of_a_filled_guide_is_exact_on_the_grid():
    n, eps, sigma = 12, 2.0, 0.3
    across = 2 * n / WIDTH * np.sin(np.pi / (2 * n))
    filled = eps + 1j * sigma / (2 * np.pi * MICROWAVE * EPSILON_0)
    exact = np.sqrt(filled - (across / K) ** 2)
    modes = em.cross_section_modes(
        metal_grid(n),
        em.Medium(eps, conductivity=sigma),
        MICROWAVE,
        boundaries=WALLS,
    )
    assert complex(modes.effective_index[0]) == pytest.approx(exact, rel=1e-10)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`grid` should have at least 10 cells")
def test_dispersion_of_a_filled_guide_is_exact_on_the_grid():
    grid, pole = metal_grid(12), em.Lorentz(1.5, 20e9, 1e9)
    across = 2 * 12 / WIDTH * np.sin(np.pi / (2 * 12))
    medium = em.Medium(2.0, dispersions=em.Dispersion(((0, 12), (0, 6)), pole))

    def exact(f):
        k = 2 * np.pi * f / SPEED_OF_LIGHT
        return np.sqrt(2.0 + complex(pole.susceptibility(f)) - (across / k) ** 2)

    def index(f):
        return em.cross_section_modes(
            grid, medium, f, boundaries=WALLS
        ).effective_index[0]

    assert complex(index(MICROWAVE)) == pytest.approx(exact(MICROWAVE), rel=1e-10)
    step = 1e-5 * MICROWAVE
    slope = (exact(MICROWAVE + step) - exact(MICROWAVE - step)) / (2 * step)
    group = complex(em.group_index(index, MICROWAVE))
    assert group == pytest.approx(exact(MICROWAVE) + MICROWAVE * slope, rel=1e-7)


def test_group_index_of_an_empty_guide_is_the_inverse_of_the_index():
    def index(frequency):
        return em.cross_section_modes(
            metal_grid(10), em.Medium(), frequency, boundaries=WALLS
        ).effective_index

    product = em.group_index(index, MICROWAVE) * index(MICROWAVE)
    assert float(product[0]) == pytest.approx(1, rel=1e-10)


def loaded(kind, n):
    """The dispersion of a guide filled with permittivity 4 up to half its width."""
    eps, d = 4.0, WIDTH / 2
    across = 0.0 if kind == "LSE" else np.pi / HEIGHT
    k1, k2 = (np.sqrt(e * K**2 - (n * K) ** 2 - across**2 + 0j) for e in (eps, 1.0))
    if kind == "LSE":
        total = np.tan(k1 * d) / k1 + np.tan(k2 * (WIDTH - d)) / k2
    else:
        total = k1 / eps * np.tan(k1 * d) + k2 * np.tan(k2 * (WIDTH - d))
    return total.real


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`grid` should have at least 10 cells")
@pytest.mark.parametrize(
    ("kind", "bracket", "order"),
    [("LSE", (1.7, 1.75), 0), ("LSM", (1.435, 1.46), 1)],
)
def test_loaded_guide_is_of_second_order(kind, bracket, order):
    # Collin, Field Theory of Guided Waves (1990), chapter 6.
    exact = brentq(lambda n: loaded(kind, n), *bracket)
    sizes, errors = (12, 24, 48), []
    for n in sizes:
        grid = metal_grid(n)
        medium = paint(grid, (em.Box((0, 0), (WIDTH, 1.0)), 4.0))
        modes = em.cross_section_modes(
            grid, medium, MICROWAVE, boundaries=WALLS, count=2
        )
        errors.append(abs(float(modes.effective_index[order]) - exact))
    print(f"{kind}: errors {errors}")
    assert slope([1 / n for n in sizes], errors) == pytest.approx(2, abs=0.1)
    assert errors[-1] < 1e-3


def line(row, cell, margin):
    """A slab across y, one period wide, with its faces on nodes."""
    count = round((row["width"] / 2 + margin) / cell)
    grid = Grid.centred((1, 2 * count), (MICRO * cell, MICRO * cell))
    core = em.Box((0, 0), (np.inf, row["width"] * MICRO))
    return grid, paint(grid, (core, row["n_core"] ** 2), background=row["n_clad"] ** 2)


OPEN_Y = em.Boundaries(x=em.Periodic(), y=em.PEC())


@pytest.mark.slow
@pytest.mark.parametrize("pol", ["TE", "TM"])
def test_slab_limit_is_the_slab_solver(pol):
    row = next(r for r in DATA["slab_neff"]["rows"] if r["pol"] == pol)
    grid, medium = line(row, 0.02, 0.6)
    frequency = SPEED_OF_LIGHT / (row["wavelength"] * MICRO)
    eps = {k: v[0] for k, v in medium.permittivity.items()}
    n = grid.shape[1]
    widths = grid.cell_widths(1)
    one = jnp.ones(n)
    if pol == "TE":
        # The nodes between the walls, at which Ex is zero.
        inner = slice(1, None)
        slab = em.slab_mode(
            eps["Ex"][inner], one[inner], one[inner], widths[inner], widths[inner],
            frequency, polarisation="Ez", ends=em.PEC(),
        )  # fmt: skip
    else:
        slab = em.slab_mode(
            one, eps["Ez"], eps["Ey"], widths, widths,
            frequency, polarisation="Hz", ends=(0.0, 0.0),
        )  # fmt: skip
    modes = em.cross_section_modes(grid, medium, frequency, boundaries=OPEN_Y, count=4)
    own = np.abs(np.asarray(modes.effective_index) - float(slab.effective_index))
    assert np.min(own) < 1e-10
    assert np.argmin(own) == (0 if pol == "TE" else 1)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("width", [0.4, 0.22])
def test_slab_limit_agrees_with_the_table(width):
    rows = [r for r in DATA["slab_neff"]["rows"] if r["width"] == width][:2]
    for row in rows:
        frequency = SPEED_OF_LIGHT / (row["wavelength"] * MICRO)
        found = []
        for cell in (0.005, 0.01):
            grid, medium = line(row, cell, 0.8)
            modes = em.cross_section_modes(
                grid, medium, frequency, boundaries=OPEN_Y, count=4
            )
            along = np.asarray(modes.x_fraction) > 0.5
            wanted = along if row["pol"] == "TE" else ~along
            found.append(float(np.asarray(modes.effective_index)[wanted][0]))
        extrapolated = (4 * found[0] - found[1]) / 3
        print(f"{row['pol']} {width} um: {extrapolated - row['neff'][0]:+.1e}")
        assert abs(extrapolated - row["neff"][0]) < 1e-4


def quarter(half, cell, out):
    """Edges from 0 to the face of the core, a few cells more, and then growing."""
    edges = [*(np.arange(round(half / cell) + 1) * half / round(half / cell))]
    step = cell
    while edges[-1] < out:
        step = step if edges[-1] < half + 0.05 else min(1.1 * step, 0.06)
        edges.append(edges[-1] + step)
    return np.asarray(edges) * MICRO


# Effective indices by femwell 0.1.12 on scikit-fem 12.0.2, edge elements of second
# order, 2242 triangles for the strip and 4926 for the rib; with 1228 and 4010 they
# differ by 3e-5, 1.0e-4 and 2.1e-4.
STRIP = {"x": 2.4451028, "y": 1.7701902}
RIB = 2.5671819


@pytest.mark.parametrize("along", ["x", "y"])
def test_strip_agrees_with_finite_elements(along):
    # 500 nm by 220 nm of silicon in silica, one quarter between mirrors: the
    # larger component of E is even about both planes.
    grid = Grid.graded([quarter(0.25, 0.0125, 1.4), quarter(0.11, 0.005, 1.2)])
    medium = paint(
        grid, (em.Box((0, 0), (0.5 * MICRO, 0.22 * MICRO)), SILICON), background=GLASS
    )
    normal, tangential = (em.PEC(), em.PEC()), (em.PMC(), em.PEC())
    faces = (normal, tangential) if along == "x" else (tangential, normal)
    modes = em.cross_section_modes(
        grid, medium, FREQUENCY, boundaries=em.Boundaries(x=faces[0], y=faces[1])
    )
    error = float(modes.effective_index[0]) - STRIP[along]
    print(f"strip, E along {along}: {error:+.1e}")
    assert abs(error) < 1e-3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`grid` should have at least 10 cells")
def test_rib_agrees_with_finite_elements():
    # A slab of 90 nm with a rib of 500 nm, 220 nm high in all, in silica. The rib
    # begins inside the slab: edges in common would be averaged twice.
    up, down = quarter(0.11, 0.005, 0.9), quarter(0.11, 0.005, 0.9)
    grid = Grid.graded([quarter(0.25, 0.0125, 1.5), np.concatenate([-down[:0:-1], up])])
    medium = paint(
        grid,
        (em.Box((0, -0.065 * MICRO), (np.inf, 0.09 * MICRO)), SILICON),
        (em.Box((0, 0.02 * MICRO), (0.5 * MICRO, 0.18 * MICRO)), SILICON),
        background=GLASS,
    )
    modes = em.cross_section_modes(grid, medium, FREQUENCY, boundaries=em.Boundaries())
    error = float(modes.effective_index[0]) - RIB
    print(f"rib: {error:+.1e}")
    assert abs(error) < 1e-3


@pytest.mark.slow
def test_bent_guide_is_of_second_order():
    # Between walls at two radii E along the axis is J_nu and Y_nu of k rho.
    inner, outer = 0.03, 0.05
    middle = (inner + outer) / 2

    def wall(nu):
        j, y = (lambda r, f=f: f(nu, K * r) for f in (jv, yv))
        return j(inner) * y(outer) - j(outer) * y(inner)

    orders = np.linspace(1.0, K * outer, 400)
    signs = np.sign([wall(nu) for nu in orders])
    last = np.flatnonzero(signs[1:] != signs[:-1])[-1]
    exact = brentq(wall, orders[last], orders[last + 1]) / (K * middle)
    sizes, errors = (10, 20, 40), []
    for n in sizes:
        grid = Grid.uniform((n, 1), (0.02 / n, 1e-3), (-0.01, 0.0))
        modes = em.cross_section_modes(
            grid,
            em.Medium(),
            MICROWAVE,
            boundaries=em.Boundaries(x=em.PEC(), y=em.Periodic()),
            radius=middle,
            count=2,
        )
        errors.append(np.min(np.abs(np.asarray(modes.effective_index) - exact)))
    print(f"bend: errors {errors}")
    assert slope([1 / n for n in sizes], errors) == pytest.approx(2, abs=0.1)


@pytest.mark.slow
def test_loss_of_a_bend_is_that_of_a_ring():
    # A whispering gallery of azimuthal order 3 decays in time at a real order; at the
    # real frequency its order gains the imaginary part that the group velocity says.
    # The square of the decay rate over the frequency, 4e-5, is neglected.
    ring = DATA["ring_ez"]["rows"][0]
    frequency, decay = ring["f_re"] * SPEED_OF_LIGHT, -ring["f_im"] * SPEED_OF_LIGHT
    middle, cells = 1.5, 20
    grid = Grid.uniform((30 * cells, 1), (1 / cells, 1.0), (-1.25, 0.0))
    medium = paint(grid, (em.Box((0, 0), (1.0, np.inf)), 3.4**2))
    # Lengths are in units of the inner radius.
    layer = em.CPML(12 * cells, alpha_max=0.0, reflection=1e-8)
    faces = em.Boundaries(x=(em.PEC(), layer), y=em.Periodic())

    def order(f):
        index = em.cross_section_modes(
            grid, medium, f, boundaries=faces, radius=middle, count=1, target=2.7
        ).effective_index[0]
        return index * 2 * jnp.pi * f / SPEED_OF_LIGHT * middle

    value = complex(order(frequency))
    rate = complex(jax.jvp(order, (frequency,), (1.0,))[1])
    print(f"order {value:.6f}, expected 3 + {decay * rate.real:.6f}i")
    assert value.real == pytest.approx(3, rel=3e-3)
    assert value.imag == pytest.approx(decay * rate.real, rel=5e-3)
