"""Modes of a cross-section: normalisation, derivatives, tracking, refusals."""

import inspect
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse.linalg
from scipy.optimize import brentq
from scipy.special import jvp, yvp

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.grid import Grid
from physax.units import ETA_0, SPEED_OF_LIGHT


CELL = 40e-9
FREQUENCY = SPEED_OF_LIGHT / 1.55e-6
GRID = Grid.centred((32, 28), CELL)
CORE = em.Box((0, 0), (12 * CELL, 8 * CELL))
MEDIUM = em.rasterise(
    [em.Structure(CORE, em.Material(permittivity=12.0))],
    GRID,
    em.Material(permittivity=2.1),
    components=("Ex", "Ey", "Ez"),
)


def solve(medium=MEDIUM, frequency=FREQUENCY, **options):
    with warnings.catch_warnings():
        # The second mode is cut by this small window.
        warnings.simplefilter("ignore", PhysaxWarning)
        return em.cross_section_modes(GRID, medium, frequency, **options)


@pytest.fixture(scope="module")
def modes():
    # Users run it without the type checks of the tests.
    modes = inspect.unwrap(em.cross_section_modes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysaxWarning)
        return modes(GRID, MEDIUM, FREQUENCY, count=np.int64(3))


def test_modes_carry_one_watt_and_are_orthogonal(modes):
    flow = [
        jnp.sum((modes.fields[e] * modes.fields[h])[0] * area) / (2 * ETA_0)
        for e, h, area in zip(("Ex", "Ey"), ("Hy", "Hx"), modes.areas, strict=True)
    ]
    # float32 sums of a thousand terms.
    assert float(flow[0] - flow[1]) == pytest.approx(1, rel=1e-5)
    assert jnp.allclose(em.mode_overlap(modes, modes), jnp.eye(3), atol=2e-6)


def test_shapes_types_and_order(modes):
    assert modes.effective_index.dtype == jnp.result_type(float)
    assert modes.fields["Ex"].shape == (3, 32, 29)
    assert modes.fields["Ey"].shape == (3, 33, 28)
    assert [len(x) for x in modes.coordinates["Hz"]] == [32, 28]
    assert jnp.all(jnp.diff(modes.effective_index) < 0)
    assert bool(modes.guided[0])
    assert float(modes.cladding_index) == pytest.approx(2.1**0.5, rel=1e-5)
    # The first mode has its E along the longer side.
    assert float(modes.x_fraction[0]) > 0.9
    assert len(modes[1:].effective_index) == 2
    assert len(modes.table().splitlines()) == 4


def test_effective_area_leaves_out_layers(modes):
    # The guided mode, and modes that live in the layers.
    faces = em.Boundaries.all(em.CPML(5))
    found = solve(count=3, boundaries=faces, target=1.6)
    area = solve(count=1, boundaries=faces).effective_area[0]
    assert float(area) == pytest.approx(float(modes.effective_area[0]), rel=1e-2)
    inner = (32 - 10) * (28 - 10) * CELL**2
    assert np.all(found.effective_area > 0)
    assert np.all(found.effective_area < 1.001 * inner)


def test_the_fields_solve_maxwells_equations(modes):
    # Faraday's law along z, and Gauss's law, from the returned fields.
    k0 = 2 * np.pi * FREQUENCY / SPEED_OF_LIGHT
    ex, ey, hz = (np.asarray(modes.fields[n][0]) for n in ("Ex", "Ey", "Hz"))
    curl = np.diff(ey, axis=0) / CELL - np.diff(ex, axis=1) / CELL
    assert np.allclose(curl, 1j * k0 * hz, atol=1e-5 * np.max(np.abs(curl)))
    dx, dy, dz = (
        np.asarray(modes.fields[n][0])[..., :] * e
        for n, e in zip(("Ex", "Ey", "Ez"), padded(), strict=True)
    )
    inner = np.diff(dx, axis=0)[:, 1:-1] / CELL + np.diff(dy, axis=1)[1:-1] / CELL
    beta = k0 * float(modes.effective_index[0])
    rest = inner + 1j * beta * dz[1:-1, 1:-1]
    # Differences of float32 fields.
    assert np.max(np.abs(rest)) < 1e-3 * np.max(np.abs(inner))


@pytest.mark.parametrize("polarisation", ["Hy", "Ey"])
def test_fields_of_a_bend_are_cylinder_functions(polarisation):
    # Between walls at 1 and 3 um, unit height: a e^(i nu phi), a = A J_nu + B Y_nu of
    # k r, is what points along the axis, with no slope or no value at the walls. The
    # laws of Ampere and Faraday around it give the components across and along.
    inner, outer, cells = 1.0, 3.0, 100
    k, middle, cell = 2 * np.pi / 1.55, (inner + outer) / 2, 1e-6 * 2 / cells
    wall = 1 if polarisation == "Hy" else 0
    grid = Grid.uniform((cells, 1), (cell, 1e-6), (-1e-6, 0.0))
    face = em.PMC() if polarisation == "Hy" else em.PEC()
    found = em.cross_section_modes(
        grid,
        em.Medium(),
        FREQUENCY,
        boundaries=em.Boundaries(x=em.PEC(), y=face),
        radius=middle * 1e-6,
    )

    def slopes(nu, r, order):
        j, y = (k**order * f(nu, k * r, order) for f in (jvp, yvp))
        a, b = (k**wall * f(nu, k * inner, wall) for f in (yvp, jvp))
        return a * j - b * y

    guess = float(found.effective_index[0]) * k * middle
    nu = brentq(lambda nu: slopes(nu, outer, wall), 0.99 * guess, 1.01 * guess)
    r = np.linspace(inner, outer, 2001)
    power = np.trapezoid(nu / (k * r) * slopes(nu, r, 0) ** 2, r) / (2 * ETA_0) * 1e-12
    first = np.sign(slopes(nu, middle, 0)) / np.sqrt(power)

    def compare(name, along, expected):
        values = np.asarray(found.fields[name][0])[:, 0]
        values = values.imag if along else values.real
        r = middle + np.asarray(found.coordinates[name][0]) * 1e6
        exact = first * expected(r)
        # (k h)^2 / 8 of a difference, h = 0.02 um, and phase errors of that order.
        assert np.max(np.abs(values - exact)) < 2e-3 * np.max(np.abs(exact))

    across, along, sign = ("Ex", "Ez", 1) if polarisation == "Hy" else ("Hx", "Hz", -1)
    compare(polarisation, False, lambda r: slopes(nu, r, 0))
    compare(across, False, lambda r: sign * nu / (k * r) * slopes(nu, r, 0))
    compare(along, True, lambda r: sign * slopes(nu, r, 1) / k)


def padded():
    for name in ("Ex", "Ey", "Ez"):
        more = [
            (0, int(half == 0))
            for half in {"Ex": (1, 0), "Ey": (0, 1)}.get(name, (0, 0))
        ]
        yield np.pad(np.asarray(MEDIUM.permittivity[name]), more, mode="edge")


SMALL = Grid.uniform((8, 6), (90e-9, 80e-9))


def small(eps, frequency=FREQUENCY):
    medium = em.Medium({"Ex": eps, "Ey": 1.1 * eps, "Ez": 0.9 * eps})
    return em.cross_section_modes(
        SMALL, medium, frequency, boundaries=em.Boundaries(x=em.PMC()), count=2
    )


@pytest.mark.slow
@pytest.mark.x64
def test_derivatives_agree_with_differences():
    rng = np.random.default_rng(0)
    eps, way, weight = (jnp.asarray(rng.random(SMALL.shape)) for _ in range(3))
    eps = 4 + 6 * eps

    def figure(t):
        modes = small(eps + t * way, FREQUENCY * (1 + 0.1 * t))
        profile = modes.fields["Ex"][1, :, :-1] * weight
        power = jnp.sum(profile * modes.fields["Hy"][1, :, :-1]) / ETA_0 * 1e-12
        return modes.effective_index[0] + power * jnp.real(SMALL.widths[0])

    run = jax.jit(figure)
    slope = jax.jit(jax.grad(figure))
    h = 1e-5
    assert float(slope(0.0)) == pytest.approx(
        float(run(h) - run(-h)) / (2 * h), rel=1e-6
    )
    assert float(jax.jvp(run, (0.0,), (1.0,))[1]) == pytest.approx(
        float(slope(0.0)), rel=1e-9
    )


@pytest.mark.slow
@pytest.mark.x64
def test_index_is_twice_differentiable():
    eps = jnp.asarray(4 + 6 * np.random.default_rng(1).random(SMALL.shape))

    def index(t):
        return small(eps * (1 + t)).effective_index[0]

    slope, h = jax.jit(jax.grad(index)), 1e-5
    curvature = float(jax.jit(jax.grad(jax.grad(index)))(0.0))
    assert curvature == pytest.approx(float(slope(h) - slope(-h)) / (2 * h), rel=1e-5)


def test_batches_and_compiled_programs_agree_with_single_solves():
    def index(scale):
        medium = em.Medium({k: scale * v for k, v in MEDIUM.permittivity.items()})
        return solve(medium).effective_index[0]

    scales = jnp.asarray([0.9, 1.0])
    batch = jax.jit(jax.vmap(index))(scales)
    assert jnp.allclose(batch, jnp.stack([index(s) for s in scales]), rtol=1e-6)


@pytest.mark.slow
def test_equal_modes_of_a_square_guide_are_sorted_by_polarisation():
    grid = Grid.centred((24, 24), CELL)
    square = em.Structure(em.Box((0, 0), (10 * CELL, 10 * CELL)), em.Material(12.0))
    medium = em.rasterise([square], grid, components=("Ex", "Ey", "Ez"))
    modes = em.cross_section_modes(grid, medium, FREQUENCY, count=2)
    assert float(modes.effective_index[0]) == pytest.approx(
        float(modes.effective_index[1]), rel=1e-6
    )
    assert float(modes.x_fraction[0]) == pytest.approx(
        1 - float(modes.x_fraction[1]), abs=1e-4
    )
    assert float(modes.x_fraction[0]) > 0.9
    assert jnp.allclose(em.mode_overlap(modes, modes), jnp.eye(2), atol=2e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`grid` should have at least 10 cells")
def test_tracking_follows_modes_through_a_crossing():
    # The modes of an empty guide, with E along x and along y, cross where its sides
    # are as they are; the index of one falls faster as the other is loaded.
    grid = Grid.uniform((10, 10), (1e-3, 1e-3))

    def at(share):
        medium = em.Medium({"Ex": 2.0 + share, "Ey": 2.5, "Ez": 2.5})
        return em.cross_section_modes(
            grid, medium, 30e9, boundaries=em.Boundaries(), count=2
        )

    steps = [0.3, 0.45, 0.6, 0.75]
    sorted_ = np.array([at(s).x_fraction > 0.5 for s in steps])
    assert not np.array_equal(sorted_[0], sorted_[-1])
    for modes in em.track_modes(at, steps):
        assert np.array_equal(np.asarray(modes.x_fraction) > 0.5, sorted_[0])
        assert np.all(np.isfinite(np.asarray(modes.effective_index)))


def test_modes_beyond_cut_off_are_refused_with_the_list():
    with pytest.raises(
        ArgumentError, match=r"`count` must be at most 1, .* is 3.*\[0\.\d+\]"
    ):
        em.cross_section_modes(
            Grid.uniform((12, 6), 0.02 / 12),
            em.Medium(),
            12e9,
            boundaries=em.Boundaries(),
            count=3,
        )


def test_forward_derivatives_serve_sections_a_cell_wide():
    grid = Grid.uniform((1, 60), CELL, (0, -30 * CELL))

    def index(width):
        slab = em.Structure(em.Box((0, 0), (np.inf, width)), em.Material(12.0))
        medium = em.rasterise(
            [slab],
            grid,
            em.Material(2.1),
            components=("Ex", "Ey", "Ez"),
            averaging="polarised",
        )
        sides = em.Boundaries(x=em.Periodic())
        modes = em.cross_section_modes(grid, medium, FREQUENCY, boundaries=sides)
        return modes.effective_index[0].real

    width, step = 4.3 * CELL, 1e-4 * CELL
    slope = jax.jacfwd(index)(width)
    want = (index(width + step) - index(width - step)) / (2 * step)
    assert float(slope) == pytest.approx(float(want), rel=1e-5)


METAL = Grid.uniform((20, 10), 1e-3)


def metal_guide(medium=None, frequency=12e9, grid=METAL, **options):
    """Modes between walls 20 mm and 10 mm apart: the first is cut off at 7.5 GHz."""
    medium = em.Medium() if medium is None else medium
    walls = em.Boundaries()
    return em.cross_section_modes(grid, medium, frequency, boundaries=walls, **options)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("sigma", [0.0, 1e-9])
def test_loss_does_not_hide_that_modes_are_cut_off(sigma):
    medium = em.Medium(conductivity=sigma)
    with pytest.raises(ArgumentError, match=r"at most 1, .*\[0\.78\d+.*raise `freq"):
        metal_guide(medium, count=2)
    with pytest.raises(ArgumentError, match="at most 0, .* Raise `frequency`"):
        metal_guide(medium, 3e9)
    cut = jax.jit(lambda f: metal_guide(medium, f).guided)
    assert cut(12e9).all()
    assert not cut(3e9).any()


@pytest.mark.filterwarnings("ignore:`grid` should have cells below the skin depth")
def test_a_metal_asks_for_a_target():
    # A plasmon at the face of a medium of permittivity -67 has the largest index.
    cells = ((0, 20), (0, 4))
    metal = em.Medium(2.0, dispersions=em.Dispersion(cells, em.Drude(100e9, 1e8)))
    with pytest.raises(
        ArgumentError, match=r"`target` must be given .* smallest is -67\."
    ):
        metal_guide(metal)
    assert abs(metal_guide(metal, target=1.4).effective_index[0] - 1.5) < 0.1
    blind = jax.jit(lambda f: metal_guide(metal, f).effective_index)
    assert jnp.all(jnp.isnan(blind(12e9)))


def test_cells_and_steps_too_long_for_the_wave_are_refused():
    with pytest.raises(ArgumentError, match=r"`spacing` must be less than 0\.01017"):
        metal_guide(spacing=0.02)
    with pytest.raises(ArgumentError, match="`dt` must be less than half a period"):
        metal_guide(dt=1e-10)
    run = jax.jit(lambda spacing: metal_guide(spacing=spacing).guided)
    assert run(1e-3).all()
    assert not run(0.02).any()


def test_a_solver_that_does_not_converge_is_told_of(monkeypatch):
    def give_up(matrix, count, **options):
        raise scipy.sparse.linalg.ArpackNoConvergence(
            "no convergence", np.zeros(0), np.zeros((matrix.shape[0], 0))
        )

    monkeypatch.setattr(scipy.sparse.linalg, "eigs", give_up)
    with pytest.raises(ArgumentError, match="did not converge: it found 0 of 1 modes"):
        metal_guide()


@pytest.mark.parametrize("counts", [(2, 1), (1, 2)])
def test_tracking_refuses_another_number_of_modes(counts):
    with pytest.raises(ArgumentError, match="`solve` must always return as many modes"):
        em.track_modes(
            lambda f: metal_guide(frequency=20e9, count=counts[f > 19e9]), [18e9, 20e9]
        )


def test_overlap_of_modes_on_different_grids_is_refused():
    one, other = metal_guide(), metal_guide(grid=Grid.uniform((20, 10), 1.1e-3))
    with pytest.raises(
        ArgumentError, match="must be on the grid of `one`, but its samp"
    ):
        em.mode_overlap(one, other)


def test_a_window_smaller_than_the_mode_is_warned_of():
    grid = Grid.centred((16, 12), CELL)
    medium = em.rasterise(
        [em.Structure(CORE, em.Material(permittivity=12.0))],
        grid,
        em.Material(permittivity=2.1),
        components=("Ex", "Ey", "Ez"),
    )
    with pytest.warns(PhysaxWarning, match="the window should be larger"):
        em.cross_section_modes(grid, medium, FREQUENCY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 0}, "`count` must be an integer of at least 1, but is 0"),
        ({"count": 5000}, "`count` must be at most 1728 on a section"),
        ({"spacing": -1.0}, "`spacing` must be positive"),
        ({"radius": 1e-7}, "`radius` must be large enough"),
        ({"boundaries": em.Boundaries(x=em.Bloch(1.0))}, "must not be `Bloch` faces"),
        ({"frequency": 0.0}, "`frequency` must be positive"),
        ({"medium": em.Medium(jnp.ones((3, 3)))}, r"have the shape \(32, 28\)"),
        ({"medium": em.Medium({"Ex": 1.0})}, "must have an entry for each of"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    with pytest.raises(ArgumentError, match=message):
        solve(**change)


def test_a_grid_of_another_dimension_is_refused():
    with pytest.raises(ArgumentError, match="`grid` must be 2-D"):
        em.cross_section_modes(Grid.uniform((4, 4, 4), 1e-8), MEDIUM, FREQUENCY)
