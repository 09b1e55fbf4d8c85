"""Perfect metal with conformal surfaces: cavities, energy, stability, derivatives."""

import math
from itertools import pairwise, product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh
from scipy.special import jn_zeros, jnp_zeros

from physax import em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT
from tests.validation.stepping import yee_energies


NAMES = {"Ez": ("Ez", "Hx", "Hy"), "Hz": ("Hz", "Ex", "Ey")}
VACUUM = em.Material()


def operator(metal, width):
    """Returns the matrix whose singular values are the frequencies over c."""
    faces = {n: np.asarray(p) for n, p in metal.open.items() if n[0] == "H"}
    edges = {n: np.asarray(p) for n, p in metal.open.items() if n[0] == "E"}
    shape = next(iter(faces.values())).shape

    def slope(axis):
        total = sp.identity(1)
        for a, cells in enumerate(shape):
            one = sp.identity(cells)
            if a == axis:
                one = sp.diags([-1.0, 1.0], [0, 1], shape=(cells, cells)) / width
            total = sp.kron(total, one)
        return total

    nothing = sp.csr_matrix((math.prod(shape),) * 2)
    rows = []
    for h in faces:
        i = "xyz".index(h[1])
        j, k = (i + 1) % 3, (i + 2) % 3
        row = dict.fromkeys(edges, nothing)
        for axis, other, sign in ((j, k, 1), (k, j, -1)):
            if axis < len(shape) and "E" + "xyz"[other] in edges:
                row["E" + "xyz"[other]] = sign * slope(axis)
        rows.append(list(row.values()))
    alpha, a = (
        np.concatenate([part.ravel() for part in parts.values()])
        for parts in (faces, edges)
    )
    matrix = sp.diags(alpha**-0.5) @ sp.bmat(rows) @ sp.diags(a**0.5)
    return matrix.tocsc()


def wavenumbers(metal, width, target, count=1):
    """Returns the wave numbers of a cavity next to one that is known."""
    one = operator(metal, width)
    # By E or by H, the unknowns of the component out of the plane alone.
    few = one.T @ one if one.shape[0] > one.shape[1] else one @ one.T
    square = few + 1e-9 * sp.identity(few.shape[0])
    found = eigsh(square.tocsc(), count, sigma=target**2, return_eigenvectors=False)
    return np.sqrt(found)


def staircase(metal):
    return em.Metal(
        {
            name: jnp.round(part) if name[0] == "E" else jnp.ones_like(part)
            for name, part in metal.open.items()
        }
    )


def round_cavity(polarisation, cells):
    width = 1.0 / cells
    grid = Grid.centred((int(2.6 * cells),) * 2, width)
    hole = em.Circle((0.31 * width, 0.17 * width), 1.0)
    medium = em.rasterise(
        [em.Structure(hole, VACUUM)], grid, em.PEC(), NAMES[polarisation]
    )
    return grid, medium


ZEROS = {"Ez": jn_zeros(0, 1)[0], "Hz": jnp_zeros(1, 1)[0]}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("polarisation", NAMES)
def test_round_cavity_converges_in_second_order(polarisation):
    zero, sizes = ZEROS[polarisation], (8, 16, 32)
    errors, steps = [], []
    for cells in sizes:
        _, medium = round_cavity(polarisation, cells)
        metals = medium.metal, staircase(medium.metal)
        found = [wavenumbers(metal, 1 / cells, zero)[0] for metal in metals]
        errors.append(abs(found[0] / zero - 1))
        steps.append(abs(found[1] / zero - 1))
    orders = [math.log2(a / b) for a, b in pairwise(errors)]
    assert min(orders) > 1.8
    assert errors[-1] < 1.5e-4
    assert steps[-1] > 10 * errors[-1]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("polarisation", NAMES)
def test_walls_may_cut_cells_anywhere(polarisation):
    sides = np.array([1.0, math.sqrt(0.5)])
    wanted = math.pi * (np.hypot(*(1 / sides)) if polarisation == "Ez" else 1.0)
    low = np.array([0.123, 0.0456])
    for cells in (10, 23, 41):
        grid = Grid.uniform((int(1.4 * cells),) * 2, 1 / cells)
        room = em.Box.from_corners(tuple(low), tuple(low + sides))
        medium = em.rasterise(
            [em.Structure(room, VACUUM)], grid, em.PEC(), NAMES[polarisation]
        )
        found = wavenumbers(medium.metal, 1 / cells, wanted)[0]
        # That of a second order: (k h)^2 / 24 for waves, and as much for both walls.
        assert abs(found / wanted - 1) < (wanted / cells) ** 2 / 8


@pytest.mark.slow
def test_ball_of_vacuum_resonates_as_it_should():
    zero = 2.743707269992265  # of (x j1(x))', TM011
    errors = []
    for cells in (3, 6):
        width = 1.0 / cells
        grid = Grid.centred((int(2.6 * cells),) * 3, width)
        hole = em.Sphere((0.31 * width, 0.17 * width, -0.23 * width), 1.0)
        medium = em.rasterise([em.Structure(hole, VACUUM)], grid, em.PEC())
        found = wavenumbers(medium.metal, width, zero, 3)
        errors.append(np.max(np.abs(found / zero - 1)))
    assert errors[1] < 0.015
    assert errors[0] / errors[1] > 3


def test_run_rings_at_the_frequency_of_the_operator():
    zero = ZEROS["Ez"]
    grid, medium = round_cavity("Ez", 8)
    frequency = zero * SPEED_OF_LIGHT / (2 * math.pi)
    pulse = em.GaussianPulse(frequency, 0.25 * frequency)
    ends = (0.45, -0.2), (0.0, 0.0)
    sim = em.Simulation(
        grid,
        medium,
        sources={"dipole": em.Dipole("Ez", (0.3, 0.1), pulse)},
        monitors={
            "bell": em.TimeMonitor(("Ez",), *ends),
            "wall": em.TimeMonitor(("Ez",), (1.1, 0.0), (0.0, 0.0)),
        },
        polarisation="Ez",
        steps=1200,
    )
    seen = em.simulate(sim).monitors
    band = (0.8 * frequency, 1.2 * frequency)
    modes = em.resonances(seen["bell"], band, start=pulse.duration())
    wave = wavenumbers(medium.metal, 1 / 8, zero)[0]
    turn = math.asin(wave * SPEED_OF_LIGHT * float(sim.dt) / 2) / float(sim.dt)
    assert np.allclose(modes.frequency[0], turn / math.pi, rtol=1e-6)
    most = np.max(np.abs(seen["bell"].values["Ez"]))
    assert np.max(np.abs(seen["wall"].values["Ez"])) < 1e-25 * most


def random_metal(seed, ndim, polarisation=None):
    """Returns a grid with round and polygonal metal at random places."""
    rng = np.random.default_rng(seed)
    grid = Grid.uniform((14,) * 2 if ndim == 2 else (8,) * 3, 1.0)
    size = 14.0 if ndim == 2 else 8.0
    corners = rng.uniform(0, size) + np.array([(0, 0), (4, 0.3), (3, 3), (0.5, 2.2)])
    shapes = [
        em.Sphere(rng.uniform(0, size, 3), rng.uniform(1, 3)),
        em.Polygon(corners, low=-2.0, high=rng.uniform(1, size)),
        em.Box(rng.uniform(0, size, 3), (1.3, 3.2, 9.0)),
    ]
    if ndim == 2:
        shapes[0] = em.Circle(rng.uniform(0, size, 2), rng.uniform(1, 3))
    names = NAMES.get(polarisation)
    structures = [em.Structure(shape, em.PEC()) for shape in shapes]
    return grid, em.rasterise(structures, grid, components=names)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Ez", "Hz", None])
def test_step_is_stable_and_not_small_for_any_shape(kind):
    ndim = 2 if kind else 3
    for seed in range(6 if kind else 3):
        grid, medium = random_metal(seed, ndim, kind)
        sim = em.Simulation(grid, medium, polarisation=kind, steps=1, courant=1.0)
        one = operator(medium.metal, 1.0)
        stiffest = eigsh(one.T @ one, 1, return_eigenvectors=False)[0]
        part = float(sim.dt) * SPEED_OF_LIGHT * math.sqrt(stiffest) / 2
        assert part <= 1 + 1e-12
        # What the bound costs, and what small faces may cost at most.
        assert part > 0.75
        assert float(sim.dt) * SPEED_OF_LIGHT * math.sqrt(ndim) > 0.5


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("kind", ["Ez", "Hz", None])
def test_energy_is_conserved(kind):
    grid, medium = random_metal(3, 2 if kind else 3, kind)
    sim = em.Simulation(grid, medium, polarisation=kind, steps=10_000)
    rng = np.random.default_rng(4)
    fields = {
        name: jnp.asarray((np.asarray(part) > 0) * rng.normal(size=part.shape))
        for name, part in medium.metal.open.items()
    }
    for name, axis in product(fields, range(grid.ndim)):
        if sim.components.stagger(name)[axis] == 0:
            on_wall = (*(slice(None),) * axis, 0)
            fields[name] = fields[name].at[on_wall].set(0)
    energies = np.asarray(yee_energies(sim, fields, 100))
    assert energies[0] > 0
    assert np.max(np.abs(energies / energies[0] - 1)) < 1e-12


@pytest.mark.slow
def test_cells_at_the_surface_have_what_is_outside_the_metal():
    grid = Grid.uniform((10, 10), MICRO)
    glass = em.Material(2.25, poles=(em.Debye(1.0, 1e-12),))
    hole = em.Circle((5.2 * MICRO, 4.9 * MICRO), 3 * MICRO)
    medium = em.rasterise([em.Structure(hole, glass)], grid, em.PEC(), NAMES["Hz"])
    assert np.all(np.asarray(medium.permittivity) == 2.25)
    assert float(medium.permeability) == 1
    parts = medium.dispersions[0].fraction
    assert all(set(np.unique(part)) <= {0.0, 1.0} for part in parts.values())
    covered = em.rasterise(
        [em.Structure(em.Box(0.0, math.inf), glass), em.Structure(hole, em.PEC())],
        grid,
        components=NAMES["Hz"],
    )
    inside = np.asarray(covered.metal.open["Ex"]) > 0
    assert np.allclose(np.asarray(covered.permittivity["Ex"])[inside], 2.25, rtol=1e-12)


BENCH = Grid.centred((20, 20), 0.05 * MICRO)


def rod_in_glass(radius=0.2 * MICRO):
    """Returns a metal rod in a slab of glass, with a design region over both."""
    rod = em.Structure(em.Circle((0.013 * MICRO, 0.02 * MICRO), radius), em.PEC())
    glass = em.Material(2.0, conductivity=50.0)
    slab = em.Structure(em.Box((0, 0.1 * MICRO), (9.0, 0.33 * MICRO)), glass)
    medium = em.rasterise([slab, rod], BENCH, components=NAMES["Hz"])
    box = ((6, 12), (7, 13))
    values = {name: 1.5 + jnp.zeros((6, 6)) for name in ("Ex", "Ey")}
    return eqx.tree_at(lambda m: m.regions, medium, (em.DesignRegion(box, values),))


def lit():
    """Returns a dipole beside the rod."""
    f = SPEED_OF_LIGHT / MICRO
    place = (0.3 * MICRO, -0.11 * MICRO)
    return em.Simulation(
        BENCH,
        rod_in_glass(),
        sources={"dipole": em.Dipole("Ex", place, em.GaussianPulse(f, f / 3))},
        monitors={
            "flux": em.FluxMonitor("x", (-0.35 * MICRO, 0.0), (0.0, math.inf), [f])
        },
        polarisation="Hz",
        courant=0.5,
        steps=150,
    )


def slope(adjoint):
    sim = lit()

    @jax.jit
    @jax.grad
    def of(values):
        changed = eqx.tree_at(lambda s: s.medium.regions[0].permittivity, sim, values)
        return em.simulate(changed, adjoint=adjoint).monitors["flux"].flux[0]

    return of(sim.medium.regions[0].permittivity)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_tape_agrees_with_differentiating_the_loop():
    want, found = slope(em.Direct()), slope(em.LinearTape())
    for name, value in want.items():
        assert np.all(np.isfinite(value))
        assert np.allclose(
            found[name], value, rtol=0, atol=1e-10 * float(jnp.max(jnp.abs(value)))
        )


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("polarisation", NAMES)
def test_derivative_by_the_radius_is_that_of_a_cavity(polarisation):
    zero, width, names = ZEROS[polarisation], 1 / 8, NAMES[polarisation]
    grid = Grid.centred((20, 20), width)

    def parts(radius):
        hole = em.Circle((0.31 * width, 0.17 * width), radius)
        room = [em.Structure(hole, VACUUM)]
        return em.rasterise(room, grid, em.PEC(), names).metal.open

    found, slopes = jax.jvp(parts, (1.0,), (1.0,))
    matrix = operator(em.Metal(found), width)
    square = matrix.T @ matrix + 1e-9 * sp.identity(matrix.shape[1])
    _, (v,) = (x.T for x in eigsh(square.tocsc(), 1, sigma=zero**2))
    u = matrix @ v
    # Of M = alpha^(-1/2) C a^(1/2), by the first order of |M v|^2.
    share = {"E": (u @ u) * v**2, "H": -(u**2)}
    slope = 0.0
    for kind, weight in share.items():
        own = [name for name in found if name[0] == kind]
        part, change = (
            np.concatenate([np.ravel(x[name]) for name in own]) for x in (found, slopes)
        )
        slope += np.sum(weight * change / np.where(part > 0, part, 1))
    # Twice the wave number times its derivative: it is zero / radius.
    assert abs(slope / (-2 * zero**2) - 1) < 0.02


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_derivative_by_the_radius_of_a_rod_is_that_of_the_run():
    sim, radius = lit(), 0.2 * MICRO

    @jax.jit
    def flux(radius):
        changed = eqx.tree_at(lambda s: s.medium, sim, rod_in_glass(radius))
        return em.simulate(changed).monitors["flux"].flux[0]

    step = 1e-5 * radius
    wanted = (flux(radius + step) - flux(radius - step)) / (2 * step)
    found = jax.jit(jax.grad(flux))(radius)
    assert abs(float(found)) > 0
    assert np.allclose(found, wanted, rtol=1e-6, atol=0)
