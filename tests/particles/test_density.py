import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import gaussian_kde

from physax._checks import ArgumentError
from physax.particles import (
    ScottRule,
    SilvermanRule,
    cloud_in_cell,
    histogram_density,
    kernel_density,
)


GENERATOR = np.random.default_rng(5)
CLOUD = GENERATOR.normal(size=(700, 2)) @ [[1.0, 0.4], [0.0, 0.3]] + [3.0, -1.0]
MASS = GENERATOR.uniform(0.5, 2.0, 700)
EDGES = [np.array([0.0, 1.0, 2.5, 3.0, 5.0]), np.linspace(-2.0, 0.5, 6)]
VOLUMES = np.diff(EDGES[0])[:, None] * np.diff(EDGES[1])
EPS = float(jnp.finfo(jnp.result_type(float)).eps)


def slopes_agree(function, x, step, rtol):
    """Compares a derivative along a direction with a central difference."""
    along = jnp.asarray(np.random.default_rng(1).normal(size=np.shape(x)))
    function = jax.jit(function)
    numeric = (function(x + step * along) - function(x - step * along)) / (2 * step)
    exact = jnp.vdot(jax.jit(jax.grad(function))(x), along)
    np.testing.assert_allclose(exact, numeric, rtol=rtol)


@pytest.mark.parametrize("mass", [None, MASS])
def test_histogram_agrees_with_numpy(mass):
    density = histogram_density(CLOUD, EDGES, mass)
    counts, *_ = np.histogram2d(
        *np.float32(CLOUD).T if EPS > 1e-10 else CLOUD.T,
        bins=EDGES,
        weights=np.full(700, 1 / 700) if mass is None else mass,
    )
    np.testing.assert_allclose(density, counts / VOLUMES, rtol=200 * EPS, atol=EPS)
    assert density.dtype == jnp.result_type(float)


def test_edges_belong_to_the_cells_as_in_numpy():
    points = np.array([[0.0], [1.0], [2.0], [-0.1], [2.1], [np.nan]])
    density = histogram_density(points, [np.arange(3.0)], np.ones(6))
    np.testing.assert_array_equal(density, [1, 2])


@pytest.mark.parametrize("estimate", [histogram_density, cloud_in_cell])
def test_what_is_outside_is_missing_from_the_integral(estimate):
    points = np.array([[0.5, -1.0], [9.0, -1.0], [0.5, np.nan], [4.9, 0.4]])
    density = estimate(points, EDGES)
    np.testing.assert_allclose(jnp.sum(density * VOLUMES), 0.5, rtol=1e-6)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("periodic", [(), ("x",), ("x", "y")])
def test_clouds_conserve_mass(periodic):
    # Uniform along y and graded along x; as much as lies in the box.
    points = np.clip(CLOUD, [0, -2], [5, 0.5])
    density = cloud_in_cell(points, EDGES, MASS, periodic=periodic)
    np.testing.assert_allclose(jnp.sum(density * VOLUMES), MASS.sum(), rtol=100 * EPS)


@pytest.mark.slow
def test_a_cloud_is_shared_in_proportion_to_the_overlap():
    edges = [np.arange(5.0)]
    # A cloud one cell wide around 1.75 overlaps cell 1 by 0.75 and cell 2 by 0.25.
    density = cloud_in_cell(np.array([[1.75]]), edges)
    np.testing.assert_allclose(density, [0, 0.75, 0.25, 0], atol=4 * EPS)
    for place in (0.1, 4.1, -3.9):
        density = cloud_in_cell(np.array([[place]]), edges, periodic=("x",))
        np.testing.assert_allclose(density, [0.6, 0, 0, 0.4], atol=40 * EPS)
    density = cloud_in_cell(np.array([[0.1], [3.9]]), edges, np.array([1.0, 2.0]))
    np.testing.assert_allclose(density, [1, 0, 0, 2], atol=4 * EPS)


def test_uniform_points_give_uniform_clouds():
    points = (np.arange(4000.0)[:, None] + 0.5) / 1000
    for periodic in ((), ("x",)):
        density = cloud_in_cell(points, [np.arange(5.0)], periodic=periodic)
        np.testing.assert_allclose(density, 0.25, rtol=1e-5)


def test_clouds_on_periodic_graded_axes_repeat():
    points = np.clip(CLOUD, [0, -2], [5, 0.5])
    plain = cloud_in_cell(points, EDGES, periodic=("x", "y"))
    moved = cloud_in_cell(points + np.array([10.0, -2.5]), EDGES, periodic=("x", "y"))
    np.testing.assert_allclose(moved, plain, rtol=0, atol=3e3 * EPS)


@pytest.mark.slow
@pytest.mark.x64
def test_gradients_of_clouds():
    points = jnp.asarray(np.clip(CLOUD[:40], [0.1, -1.9], [4.9, 0.4]))

    def total(points, mass):
        return jnp.sum(jnp.sin(cloud_in_cell(points, EDGES, mass, periodic=("x",))))

    # Linear but where points cross centres; none does within 1e-6.
    slopes_agree(lambda p: total(p, MASS[:40]), points, 1e-6, 1e-7)
    slopes_agree(lambda m: total(points, m), jnp.asarray(MASS[:40]), 1e-5, 1e-7)
    slopes_agree(
        lambda m: jnp.sum(jnp.sin(histogram_density(points, EDGES, m))),
        jnp.asarray(MASS[:40]),
        1e-5,
        1e-7,
    )


@pytest.mark.parametrize("rule", ["scott", "silverman"])
@pytest.mark.parametrize("mass", [None, MASS])
def test_kernel_density_agrees_with_scipy(rule, mass):
    at = GENERATOR.normal(size=(90, 2)) + np.array([3.0, -1.0])
    module = {"scott": ScottRule(), "silverman": SilvermanRule()}[rule]
    weights = None if mass is None else mass / mass.sum()
    density = kernel_density(CLOUD, at, module, weights)
    oracle = gaussian_kde(CLOUD.T, rule, weights)(at.T)
    # Exponents up to 30 are known to 30 roundings, far from the cloud of small values.
    np.testing.assert_allclose(density, oracle, rtol=400 * EPS, atol=100 * EPS)
    assert density.dtype == jnp.result_type(float)


@pytest.mark.slow
@pytest.mark.parametrize("ndim", [1, 3])
def test_kernel_density_in_other_dimensions_and_without_a_key(ndim):
    points, at = GENERATOR.normal(size=(50, ndim)), GENERATOR.normal(size=(7, ndim))
    oracle = gaussian_kde(points.T)(at.T)
    np.testing.assert_allclose(kernel_density(points, at), oracle, rtol=100 * EPS)


def test_axes_of_very_different_scale_do_not_matter():
    scale = np.array([1e6, 1e-3])
    density = kernel_density(CLOUD * scale, CLOUD[:5] * scale)
    plain = kernel_density(CLOUD, CLOUD[:5])
    np.testing.assert_allclose(density, plain / 1e3, rtol=1e3 * EPS)


@pytest.mark.slow
def test_bandwidths_are_standard_deviations():
    points, at = np.array([[1.0, 2.0]]), np.array([[1.3, 1.0]])
    for width, (a, b) in ((0.5, (0.5, 0.5)), ((0.5, 2.0), (0.5, 2.0))):
        expected = np.exp(-((0.3 / a) ** 2 + (1 / b) ** 2) / 2) / (2 * np.pi * a * b)
        np.testing.assert_allclose(
            kernel_density(points, at, width), [expected], rtol=1e-5
        )


@pytest.mark.slow
def test_places_that_are_not_finite_are_left_out():
    points = np.concatenate([[[np.nan, 0.0], [0.0, np.inf]], CLOUD])
    weights = np.concatenate([[5.0, 5.0], MASS])
    density = kernel_density(points, CLOUD[:5], weights=weights)
    np.testing.assert_allclose(
        density, kernel_density(CLOUD, CLOUD[:5], weights=MASS), rtol=1e-5
    )


def midpoints(low, high, count):
    return low + (np.arange(count) + 0.5) * (high - low) / count


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("kind", ["open", "periodic", "walls"])
def test_kernel_density_integrates_to_one(kind):
    # Particles at both ends of the box, and widths of 0.1 to 0.3 of its lengths.
    points = np.array([[0.0, 1.0], [0.02, 2.9], [1.0, 1.2], [0.5, 3.0]])
    x, y = midpoints(0, 1, 60), midpoints(1, 3, 60)
    ends = {"x": (0.0, 1.0), "y": (1.0, 3.0)}
    options = {
        "open": {},
        "periodic": {"periodic": ends},
        "walls": {"walls": {"x": (0.0, 1.0)}, "periodic": {"y": (1.0, 3.0)}},
    }[kind]
    if kind == "open":
        x, y = midpoints(-2, 3, 100), midpoints(-3, 7, 100)
    at = np.stack(np.meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2)
    density = kernel_density(points, at, (0.3, 0.2), **options)
    integral = jnp.sum(density) * (x[1] - x[0]) * (y[1] - y[0])
    np.testing.assert_allclose(integral, 1, atol=1e-3)


@pytest.mark.slow
def test_walls_have_no_slope_and_periodic_ends_meet():
    points = np.array([[0.1], [0.9], [0.85]])
    at = np.array([[0.0], [1e-3], [1.0]])
    at_wall = kernel_density(points, at, 0.2, walls={"x": (0.0, 1.0)})
    # Second order in the distance from the wall: (1e-3 / 0.2)^2.
    np.testing.assert_allclose(at_wall[1], at_wall[0], rtol=5e-5)
    repeats = kernel_density(points, at, 0.2, periodic={"x": (0.0, 1.0)})
    np.testing.assert_allclose(repeats[2], repeats[0], rtol=1e-4)


@pytest.mark.slow
def test_blocks_make_no_difference():
    # More particles and places than one block holds; the last blocks are not full.
    points, at = GENERATOR.normal(size=(2500, 1)), GENERATOR.normal(size=(1100, 1))
    apart = at - points[:, 0]
    direct = np.exp(-(apart**2) / 0.02).sum(1) / 2500 / np.sqrt(2 * np.pi * 0.01)
    density = kernel_density(points, at, 0.1)
    np.testing.assert_allclose(density, direct, rtol=500 * EPS, atol=100 * EPS)


@pytest.mark.slow
@pytest.mark.x64
def test_gradients_of_kernel_density():
    points, at = jnp.asarray(CLOUD[:30]), jnp.asarray(CLOUD[30:35])
    mass = jnp.asarray(MASS[:30])
    walls = {"y": (-3.0, 1.0)}

    def total(points, at, mass, width):
        return jnp.sum(jnp.sin(kernel_density(points, at, width, mass, walls=walls)))

    slopes_agree(lambda p: total(p, at, mass, 0.3), points, 1e-6, 1e-7)
    slopes_agree(lambda p: total(p, at, mass, ScottRule()), points, 1e-6, 1e-7)
    slopes_agree(lambda y: total(points, y, mass, 0.3), at, 1e-6, 1e-7)
    slopes_agree(lambda m: total(points, at, m, 0.3), mass, 1e-6, 1e-7)
    slopes_agree(lambda h: total(points, at, mass, h), jnp.asarray(0.3), 1e-6, 1e-7)


def test_memory_does_not_grow_with_the_pairs():
    points = jax.ShapeDtypeStruct((20_000, 3), jnp.result_type(float))
    program = jax.jit(lambda p: kernel_density(p, p)).lower(points).compile()
    pairs = 20_000**2 * points.dtype.itemsize
    assert program.memory_analysis().temp_size_in_bytes < pairs / 50


@pytest.mark.slow
def test_kernel_density_maps_over_times():
    both = jnp.asarray(np.stack([CLOUD, CLOUD + 1]))
    at = jnp.asarray(CLOUD[:4])
    mapped = jax.vmap(lambda p: kernel_density(p, at))(both)
    np.testing.assert_allclose(mapped[1], kernel_density(both[1], at), rtol=1e-4)


LINE = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: histogram_density(CLOUD[:0], EDGES), r"`points` .* shape \(0, 2\)"),
        (lambda: histogram_density(CLOUD, EDGES[:1]), "`edges` must have one array"),
        (lambda: histogram_density(CLOUD, []), "`edges` must have one array"),
        (
            lambda: histogram_density(CLOUD, EDGES, -MASS),
            "`weights` must be at least 0, but is -",
        ),
        (
            lambda: cloud_in_cell(CLOUD, EDGES, MASS[:3]),
            r"`weights` must be one number for each of 700 .* shape \(3,\)",
        ),
        (
            lambda: cloud_in_cell(CLOUD, EDGES, periodic=("z",)),
            r"`periodic` must name axes of the points, \('x', 'y'\), but has \['z'\]",
        ),
        (
            lambda: kernel_density(CLOUD, CLOUD[:, :1]),
            "`at` must have 2 coordinates in each row",
        ),
        (lambda: kernel_density(CLOUD, CLOUD, -1.0), "`bandwidth` must be positive"),
        (
            lambda: kernel_density(CLOUD, CLOUD, np.ones(3)),
            "`bandwidth` must be a rule, one number, or 2 numbers",
        ),
        (lambda: kernel_density(LINE, LINE), "relative spread of `points` along each"),
        (lambda: kernel_density(LINE[:1], LINE), "relative spread of `points`"),
        (
            lambda: kernel_density(CLOUD, CLOUD, walls={"z": (0.0, 1.0)}),
            "`walls` must name axes of the points, .* has 'z'",
        ),
        (
            lambda: kernel_density(CLOUD, CLOUD, periodic={"x": (1.0, 1.0)}),
            r"`periodic` must give the low and the high end of x, but gives \(1, 1\)",
        ),
        (
            lambda: kernel_density(
                CLOUD, CLOUD, periodic={"x": (0.0, 1.0)}, walls={"x": (0.0, 1.0)}
            ),
            r"`walls` must name axes not in `periodic`, but has \['x'\]",
        ),
    ],
)
def test_bad_arguments_are_refused(run, message):
    with pytest.raises(ArgumentError, match=message):
        run()
