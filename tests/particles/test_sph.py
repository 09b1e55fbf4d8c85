import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial import KDTree

from physax._checks import ArgumentError
from physax.particles import CubicSpline, QuinticSpline, WendlandC2, sph_density


KERNELS = [CubicSpline(), QuinticSpline(), WendlandC2()]
GENERATOR = np.random.default_rng(7)
EPS = float(jnp.finfo(jnp.result_type(float)).eps)


def name(value):
    return type(value).__name__ if value in KERNELS else None


def shape(kernel, q, ndim):
    """The kernels again, written as in the papers."""
    if isinstance(kernel, CubicSpline):
        return np.where(
            q < 1, 1 - 1.5 * q**2 + 0.75 * q**3, np.where(q < 2, (2 - q) ** 3 / 4, 0)
        )
    if isinstance(kernel, QuinticSpline):
        return (
            np.where(q < 3, (3 - q) ** 5, 0)
            - np.where(q < 2, 6 * (2 - q) ** 5, 0)
            + np.where(q < 1, 15 * (1 - q) ** 5, 0)
        )
    if ndim == 1:
        return np.where(q < 2, (1 - q / 2) ** 3 * (1 + 1.5 * q), 0)
    return np.where(q < 2, (1 - q / 2) ** 4 * (1 + 2 * q), 0)


def constant(kernel, ndim):
    sphere = {1: 2, 2: 2 * np.pi, 3: 4 * np.pi}[ndim]
    radial = quad(
        lambda q: shape(kernel, q, ndim) * q ** (ndim - 1), 0, 3, points=[1, 2]
    )
    return 1 / (sphere * radial[0])


def direct(kernel, points, at, h, weights, box=None):
    """The sum over pairs that SciPy's tree finds, in float64."""
    points, at = np.float64(points), np.float64(at)
    ndim = points.shape[1]
    near = KDTree(at, boxsize=box).sparse_distance_matrix(
        KDTree(points, boxsize=box), kernel.support * h, output_type="coo_matrix"
    )
    values = shape(kernel, near.data / h, ndim) * weights[near.col]
    total = np.zeros(len(at))
    np.add.at(total, near.row, values)
    return total * constant(kernel, ndim) / h**ndim


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_constants_agree_with_quadrature(kernel, ndim):
    np.testing.assert_allclose(
        kernel.constants[ndim - 1], constant(kernel, ndim), rtol=1e-10
    )


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("kernel", KERNELS, ids=name)
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_the_density_of_one_particle_is_the_kernel_and_integrates_to_one(kernel, ndim):
    h, cells = 0.5, {1: 400, 2: 80, 3: 32}[ndim]
    edge = kernel.support * h
    line = -edge + (np.arange(cells) + 0.5) * 2 * edge / cells
    at = np.stack(np.meshgrid(*[line] * ndim), -1).reshape(-1, ndim)
    density = sph_density(np.zeros((1, ndim)), at, h, kernel)
    np.testing.assert_allclose(
        jnp.sum(density) * (2 * edge / cells) ** ndim, 1, atol=1e-3
    )
    expected = shape(kernel, np.linalg.norm(at, axis=1) / h, ndim)
    expected *= constant(kernel, ndim) / h**ndim
    np.testing.assert_allclose(
        density, expected, rtol=0, atol=50 * EPS * expected.max()
    )


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_every_pair_counts_however_many_there_are(kernel):
    # A dense cluster in a thin cloud: most of the particles are neighbours.
    points = np.concatenate(
        [GENERATOR.normal(size=(900, 3)) * 0.01, GENERATOR.uniform(-3, 3, (900, 3))]
    )
    at = np.concatenate([points[::3], GENERATOR.uniform(-5, 5, (100, 3))])
    mass = GENERATOR.uniform(0.5, 2, 1800)
    density = sph_density(points, at, 0.3, kernel, mass)
    expected = direct(kernel, points, at, 0.3, mass)
    np.testing.assert_allclose(
        density, expected, rtol=0, atol=100 * EPS * expected.max()
    )
    assert density.dtype == jnp.result_type(float)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("ndim", [1, 2])
def test_neighbours_are_found_across_periodic_faces(ndim):
    points = GENERATOR.uniform(0, 2, (1500, ndim))
    at = GENERATOR.uniform(0, 2, (300, ndim))
    ends = {axis: (0.0, 2.0) for axis in "xy"[:ndim]}
    mass = np.full(1500, 1 / 1500)
    expected = direct(CubicSpline(), points, at, 0.1, mass, box=2.0)
    for shift in (0, 6):
        density = sph_density(points + shift, at, 0.1, periodic=ends)
        atol = (100 + 1000 * shift) * EPS * expected.max()
        np.testing.assert_allclose(density, expected, rtol=0, atol=atol)


def test_a_filled_periodic_box_has_its_density():
    # A lattice of 1 particle for each cell and h of 1.2 cells: the sum is near 1.
    line = (np.arange(12) + 0.5) / 12
    points = np.stack(np.meshgrid(line, line, line), -1).reshape(-1, 3)
    ends = {axis: (0.0, 1.0) for axis in "xyz"}
    # By Poisson's sum the error is that of the kernel's first Fourier coefficients.
    density = sph_density(points, points, 0.1, periodic=ends)
    np.testing.assert_allclose(density, 1, atol=0.01)


def test_only_the_particles_mass_sets_the_scale():
    # Two places in one plane, on which a normalisation by their box would fail.
    points = GENERATOR.uniform(0, 1, (4000, 3))
    at = np.array([[0.5, 0.5, 0.5], [0.6, 0.5, 0.5]])
    density = sph_density(points, at, 0.15, weights=np.full(4000, 2 / 4000))
    # About 100 particles lie within the support.
    np.testing.assert_allclose(density, 2, rtol=0.3)


@pytest.mark.slow
def test_places_that_are_not_finite_are_left_out():
    points = GENERATOR.uniform(0, 1, (50, 2))
    spoiled = np.concatenate([[[np.nan, 0.0], [np.inf, 0.0]], points])
    plain = sph_density(points, points, 0.2, weights=np.ones(50))
    density = sph_density(spoiled, points, 0.2, weights=np.ones(52))
    np.testing.assert_allclose(density, plain, rtol=1e-5)
    slope = jax.jit(jax.grad(lambda p: jnp.sum(sph_density(p, points, 0.2))))(spoiled)
    assert jnp.all(jnp.isfinite(slope))


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_gradients(kernel):
    # Places and particles coincide, where the distance itself has no derivative.
    points = jnp.asarray(GENERATOR.uniform(0, 1, (150, 2)))
    mass = jnp.asarray(GENERATOR.uniform(0.5, 2, 150))
    ends = {"x": (0.0, 1.0)}

    @jax.jit
    def total(points, at, h, mass):
        return jnp.sum(jnp.sin(sph_density(points, at, h, kernel, mass, periodic=ends)))

    values = (points, points, jnp.asarray(0.08), mass)
    # In both modes.
    found = jax.jit(jax.grad(total, (0, 1, 2, 3)))(*values)
    along = [jnp.asarray(GENERATOR.normal(size=x.shape)) for x in values]
    step = 1e-7
    for index, (x, slope, way) in enumerate(zip(values, found, along, strict=True)):

        def moved(s, index=index, x=x, way=way):
            return total(*values[:index], x + s * way, *values[index + 1 :])

        numeric = (moved(step) - moved(-step)) / (2 * step)
        # Third derivatives of 1 / h^5 times the square of the step, and rounding.
        np.testing.assert_allclose(jnp.vdot(slope, way), numeric, rtol=1e-5)
    tangent = jax.jvp(lambda h: total(points, points, h, mass), (values[2],), (1.0,))
    np.testing.assert_allclose(tangent[1], found[2], rtol=1e-10)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_pairs():
    points = jax.ShapeDtypeStruct((20_000, 3), jnp.result_type(float))
    total = lambda p: jnp.sum(sph_density(p, p, 0.05) ** 2)  # noqa: E731
    program = jax.jit(jax.grad(total)).lower(points).compile()
    # All pairs would take 1.6 GB in float32.
    assert program.memory_analysis().temp_size_in_bytes < 60e6


@pytest.mark.slow
def test_it_maps_over_times():
    both = jnp.asarray(GENERATOR.uniform(0, 1, (2, 100, 2)))
    mapped = jax.vmap(lambda p: sph_density(p, p, 0.2))(both)
    np.testing.assert_allclose(mapped[1], sph_density(both[1], both[1], 0.2), rtol=1e-4)


POINTS = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: sph_density(POINTS, POINTS, 0.0), "`h` must be positive, but is 0"),
        (lambda: sph_density(POINTS, POINTS[:, :1], 1.0), "`at` must have 2 coord"),
        (lambda: sph_density(POINTS[:0], POINTS, 1.0), "`points` must have one row"),
        (
            lambda: sph_density(np.zeros((3, 4)), np.zeros((3, 4)), 1.0),
            r"`points` must have 1 to 3 coordinates, but have shape \(3, 4\)",
        ),
        (
            lambda: sph_density(POINTS, POINTS, 0.5, periodic={"x": (0.0, 1.5)}),
            "`periodic` axes must be at least twice the support, 2, long, but is 1.5",
        ),
    ],
)
def test_bad_arguments_are_refused(run, message):
    with pytest.raises(ArgumentError, match=message):
        run()
