"""Seeds: samples that are uniform, even or as dense as asked."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare, kstest, qmc

from physax.particles import (
    check_seeds,
    release_repeatedly,
    seed_ball,
    seed_circle,
    seed_density,
    seed_disk,
    seed_gaussian,
    seed_grid,
    seed_line,
    seed_mask,
    seed_polygon,
    seed_random,
    seed_sobol,
    seed_sphere,
    seed_surface,
)
from physax.particles._weighted_choice import pick


KEY = jax.random.key(3)
COUNT = 20_000
# Rounding of coordinates near 3.
EPS = 8 * float(jnp.finfo(jnp.result_type(float)).eps)
# A correct sampler fails one such test in 16,000; keys are fixed, so none does twice.
LEAST = 1e-4
FRAME_NORMAL = (1.0, -2.0, 2.0)


def assert_uniform(values):
    assert kstest(np.asarray(values, float), "uniform").pvalue > LEAST


def assert_mean(samples, mean):
    """Checks that a mean of samples is the given one within 4 standard errors."""
    samples = np.asarray(samples, float)
    error = samples.std(0) / np.sqrt(len(samples))
    assert np.all(np.abs(samples.mean(0) - mean) < 4 * error + EPS)


@pytest.mark.slow
def test_positions_have_the_default_precision_and_two_axes():
    low, high = np.zeros(2, np.float32), np.ones(2, np.float64)
    square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    edges = [np.arange(3.0), np.arange(3)]
    sets = [
        seed_grid(low, high, (3, 4)),
        seed_random(KEY, (0, 0), high, 12),
        seed_sobol(low, high, 12),
        seed_line(low, high, 12),
        seed_circle(low, 1, 12),
        seed_disk(KEY, low, 1, 12),
        seed_sphere(KEY, low, 1, 12),
        seed_ball(KEY, low, 1, 12),
        seed_gaussian(KEY, low, 1, 12),
        seed_polygon(KEY, square, 12),
        seed_surface(KEY, np.asarray(square, float), np.array([[0, 1, 2]]), 12),
        seed_density(KEY, np.ones((2, 2)), edges, 12),
        seed_mask(KEY, np.ones((2, 2), bool), edges, 12),
    ]
    for seeds in sets:
        assert seeds.shape == (12, 2)
        assert seeds.dtype == jnp.result_type(float)
        assert jnp.all(jnp.isfinite(seeds))


def test_the_same_key_draws_the_same_positions_also_under_jit():
    draw = lambda key: seed_ball(key, (0.0, 1.0, 2.0), 0.5, 10)  # noqa: E731
    np.testing.assert_allclose(jax.jit(draw)(KEY), draw(KEY), rtol=1e-6)
    assert jnp.any(draw(KEY) != draw(jax.random.key(4)))


def test_grid_holds_its_faces_and_a_single_particle_is_in_the_middle():
    seeds = seed_grid((0.0, -1.0, 5.0), (1.0, 1.0, 5.0), (3, 2, 1))
    x, y, z = np.meshgrid([0, 0.5, 1], [-1, 1], [5], indexing="ij")
    np.testing.assert_allclose(seeds, np.stack([x, y, z], -1).reshape(-1, 3))
    np.testing.assert_allclose(seed_grid((0.0,), (3.0,), (1,)), [[1.5]])


def test_line_is_even_and_holds_its_ends():
    seeds = seed_line((0.0, 1.0), (3.0, -1.0), 7)
    np.testing.assert_allclose(seeds[:, 0], np.linspace(0, 3, 7), atol=EPS)
    np.testing.assert_allclose(seeds[:, 1], np.linspace(1, -1, 7), atol=EPS)
    np.testing.assert_allclose(seed_line((0.0,), (3.0,), 1), [[1.5]])


def test_random_seeds_are_uniform_in_the_box():
    low, high = np.array([-1.0, 2.0]), np.array([3.0, 2.5])
    seeds = seed_random(KEY, low, high, COUNT)
    for column in ((np.asarray(seeds) - low) / (high - low)).T:
        assert_uniform(column)
        assert column.min() >= 0
        assert column.max() <= 1
    assert abs(np.corrcoef(seeds.T)[0, 1]) < 4 / np.sqrt(COUNT)


def test_sobol_agrees_with_scipy_and_fills_evenly():
    seeds = seed_sobol((0.0, 1.0, 2.0), (1.0, 2.0, 4.0), 100)
    with pytest.warns(UserWarning, match="power of 2"):
        oracle = qmc.Sobol(3, scramble=False).random(100)
    np.testing.assert_allclose(seeds, oracle * [1, 1, 2] + [0, 1, 2], atol=EPS)


def test_shifted_sobol_points_are_a_net_and_each_is_uniform():
    # Of 256 points each of the 256 boxes of any dyadic shape holds exactly one.
    seeds = np.asarray(seed_sobol((0.0, 0.0), (1.0, 1.0), 256, KEY))
    for power in (0, 3, 8):
        shape = 2**power, 2 ** (8 - power)
        counts, *_ = np.histogram2d(*seeds.T, bins=shape, range=[[0, 1]] * 2)
        np.testing.assert_array_equal(counts, 1)
    keys = jax.random.split(KEY, 2000)
    first = jax.vmap(lambda key: seed_sobol((0.0,), (1.0,), 2, key)[0, 0])(keys)
    assert_uniform(first)


@pytest.mark.parametrize("normal", [None, FRAME_NORMAL, (0, 0, -1)])
def test_circle_is_even_and_anticlockwise(normal):
    centre = np.array([1.0, 2.0, 3.0])
    axis = np.array((0, 0, 1) if normal is None else normal, float)
    axis /= np.linalg.norm(axis)
    away = np.asarray(seed_circle(centre, 0.5, 8, normal)) - centre
    np.testing.assert_allclose(np.linalg.norm(away, axis=1), 0.5, atol=EPS)
    np.testing.assert_allclose(away @ axis, 0, atol=EPS)
    turn = np.cross(away, np.roll(away, -1, 0)) @ axis
    np.testing.assert_allclose(turn, 0.25 * np.sin(np.pi / 4), atol=EPS)


def test_circle_in_the_plane():
    seeds = seed_circle((1.0, 0.0), 2.0, 4)
    np.testing.assert_allclose(seeds, [[3, 0], [1, 2], [-1, 0], [1, -2]], atol=EPS)


@pytest.mark.parametrize("normal", [None, FRAME_NORMAL])
def test_disk_is_uniform(normal):
    centre = np.array([1.0, 2.0, 3.0])
    away = np.asarray(seed_disk(KEY, centre, 0.5, COUNT, normal)) - centre
    axis = np.array((0, 0, 1) if normal is None else normal, float)
    np.testing.assert_allclose(away @ axis, 0, atol=4 * EPS)
    r = np.linalg.norm(away, axis=1) / 0.5
    assert r.max() <= 1 + EPS
    assert_uniform(np.minimum(r, 1) ** 2)
    assert_mean(away, 0)
    # <x x^T> = r^2 / 4 in the plane.
    plane = np.eye(3) - np.outer(axis, axis) / (axis @ axis)
    squares = away[:, :, None] * away[:, None, :]
    expected = 0.25 / 4 * plane
    error = squares.std(0) / np.sqrt(COUNT)
    assert np.all(np.abs(squares.mean(0) - expected) < 4 * error + EPS)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_ball_and_sphere_are_uniform(ndim):
    centre = np.arange(ndim) + 0.5
    ball = np.asarray(seed_ball(KEY, centre, 2.0, COUNT)) - centre
    r = np.linalg.norm(ball, axis=1) / 2
    assert r.max() <= 1 + EPS
    assert_uniform(np.minimum(r, 1) ** ndim)
    sphere = np.asarray(seed_sphere(KEY, centre, 2.0, COUNT)) - centre
    np.testing.assert_allclose(np.linalg.norm(sphere, axis=1), 2, rtol=EPS)
    for away, second in ((ball, 4 / (ndim + 2)), (sphere, 4 / ndim)):
        assert_mean(away, 0)
        squares = away**2
        error = squares.std(0) / np.sqrt(COUNT)
        assert np.all(np.abs(squares.mean(0) - second) < 4 * error + EPS)


def test_sphere_has_uniform_heights():
    # Archimedes: the height of a point on a sphere is uniform.
    sphere = seed_sphere(KEY, (0.0, 0.0, 0.0), 1.0, COUNT)
    for column in np.asarray(sphere).T:
        assert_uniform((column + 1) / 2)


@pytest.mark.parametrize("spread", ["number", "axes", "matrix"])
def test_gaussian_has_its_mean_and_covariance(spread):
    factor = np.array([[2.0, 0.0], [1.0, 0.5]])
    given = {"number": 0.3, "axes": (0.3, 2.0), "matrix": factor}[spread]
    root = {"number": 0.3 * np.eye(2), "axes": np.diag([0.3, 2.0])}.get(spread, factor)
    seeds = np.asarray(seed_gaussian(KEY, (1.0, -1.0), given, COUNT)) - [1, -1]
    assert_mean(seeds, 0)
    white = seeds @ np.linalg.inv(root).T
    for column in white.T:
        assert kstest(column, "norm").pvalue > LEAST
    assert_mean(white[:, 0] * white[:, 1], 0)


# An arrow that is not convex, with level sides and a corner that points inside.
ARROW = np.array([[0, 0], [4, 0], [4, 3], [2, 1], [0, 3]], float)


@pytest.mark.parametrize("sense", [1, -1])
def test_polygon_is_uniform(sense):
    seeds = np.asarray(seed_polygon(KEY, ARROW[::sense], COUNT))
    x, y = seeds.T
    assert np.all((y >= 0) & (x >= -EPS) & (x <= 4 + EPS))
    assert np.all(y <= 1 + np.abs(x - 2) + EPS)
    # Area 8: a rectangle of 4 and two triangles of 2 above it, with centroids at
    # height 1 + 2/3.
    assert_mean(x, 2)
    assert_mean(y, (4 * 0.5 + 4 * (1 + 2 / 3)) / 8)
    counts = [np.sum(y < 1), np.sum((y > 1) & (x < 2)), np.sum((y > 1) & (x > 2))]
    expected = COUNT * np.array([0.5, 0.25, 0.25])
    assert chisquare(counts, expected).pvalue > LEAST
    # Below 1 it is a rectangle.
    lower = seeds[y < 1]
    assert_uniform(lower[:, 0] / 4)
    assert_uniform(lower[:, 1])


@pytest.mark.slow
def test_polygon_far_from_the_origin_and_thin():
    corners = np.array([1e3, -1e3]) + ARROW * [1.0, 1e-2]
    seeds = np.asarray(seed_polygon(KEY, corners, 2000))
    assert np.all(np.abs(seeds - corners.mean(0)) < [3, 0.03])


def test_surface_is_uniform():
    # A tetrahedron's four faces, of which one is listed as two halves and one triangle
    # has no area.
    points = np.array([[0, 0, 0], [2, 0, 0], [0, 1, 0], [0, 0, 3], [1, 0.5, 0]], float)
    triangles = np.array(
        [[0, 1, 4], [0, 4, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3], [1, 1, 2]]
    )
    seeds = np.asarray(seed_surface(KEY, points, triangles, COUNT))
    x, y, z = seeds.T
    # Faces z = 0, y = 0, x = 0 and x/2 + y + z/3 = 1 of areas 1, 3, 1.5 and 3.5.
    distance = np.abs(np.stack([z, y, x, x / 2 + y + z / 3 - 1]))
    face = distance.argmin(0)
    assert distance.min(0).max() < EPS
    counts = np.bincount(face, minlength=4)
    assert chisquare(counts, COUNT * np.array([1, 3, 1.5, 3.5]) / 9).pvalue > LEAST
    bottom = seeds[face == 0]
    # In a right triangle with legs 2 and 1, (1 - x/2)^2 is uniform.
    assert_uniform((1 - bottom[:, 0] / 2) ** 2)
    assert_mean(bottom[:, :2], [2 / 3, 1 / 3])


def test_density_fills_cells_by_their_mass():
    edges = [np.array([0.0, 1.0, 1.5, 4.0]), np.array([-1.0, 0.0, 2.0])]
    values = np.array([[1.0, 0.0], [2.0, 3.0], [0.5, 0.25]]) * 1e-3
    seeds = np.asarray(seed_density(KEY, values, edges, COUNT))
    counts, *_ = np.histogram2d(*seeds.T, bins=edges)
    mass = values * np.diff(edges[0])[:, None] * np.diff(edges[1])
    assert counts.sum() == COUNT
    assert counts[0, 1] == 0
    used = mass > 0
    expected = COUNT * mass[used] / mass.sum()
    assert chisquare(counts[used], expected).pvalue > LEAST
    inside = seeds[(seeds[:, 0] > 1.5) & (seeds[:, 1] > 0)]
    assert_uniform((inside[:, 0] - 1.5) / 2.5)
    assert_uniform(inside[:, 1] / 2)


def test_mask_is_filled_uniformly():
    edges = [np.array([0.0, 1.0, 3.0, 4.0])] * 2
    mask = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0]], bool)
    seeds = np.asarray(seed_mask(KEY, mask, edges, COUNT))
    counts, *_ = np.histogram2d(*seeds.T, bins=edges)
    assert np.all(counts[~mask] == 0)
    assert chisquare(counts[mask], COUNT * np.array([1, 4, 1]) / 6).pvalue > LEAST


def test_indices_are_drawn_exactly_also_among_very_many():
    # Half of a million kinds have no weight and must never be drawn, although running
    # sums are rounded.
    kinds = 1_000_003
    weights = jnp.where(jnp.arange(kinds) % 2 == 0, 0.1, 0.0)
    drawn = np.asarray(jax.jit(pick, static_argnums=2)(KEY, weights, 200_000))
    assert np.all(drawn % 2 == 0)
    assert_uniform(drawn / kinds)
    # The shares of single kinds: neighbours of one fine pattern.
    assert chisquare(np.bincount(drawn % 64 // 2)).pvalue > LEAST


def test_single_kinds_and_unequal_weights():
    np.testing.assert_array_equal(pick(KEY, jnp.ones(1), 5), 0)
    weights = jnp.asarray([0.0, 1.0, 0.0, 3.0, 6.0])
    counts = np.bincount(pick(KEY, weights, COUNT), minlength=5)
    assert counts[0] == counts[2] == 0
    expected = COUNT * np.array([0.1, 0.3, 0.6])
    assert chisquare(counts[[1, 3, 4]], expected).pvalue > LEAST


def test_seeds_are_differentiable_in_what_shapes_them():
    corners = jnp.asarray([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])

    def total(p):
        return sum(
            jnp.sum(seeds)
            for seeds in (
                seed_grid((0.0, 0.0), (p, 1.0), (3, 2)),
                seed_line((0.0, 0.0), (p, 1.0), 4),
                seed_circle((p, 0.0), 1.0, 5),
                seed_gaussian(KEY, (p, 0.0), 1.0, 5),
                seed_surface(KEY, corners + p, jnp.array([[0, 1, 2]]), 5),
            )
        )

    # Means of p/2 over 6 and over 4 particles, p over 5 and 5, 3 p over 5.
    slope = jax.jit(jax.grad(total))(2.0)
    np.testing.assert_allclose(slope, 3 + 2 + 5 + 5 + 15, rtol=1e-5)


def test_repeated_release():
    seeds, release = release_repeatedly(np.array([[0.0, 1.0], [2.0, 3.0]]), (0.0, 5.0))
    np.testing.assert_array_equal(seeds, [[0, 1], [2, 3], [0, 1], [2, 3]])
    np.testing.assert_array_equal(release, [0, 0, 5, 5])
    assert release.dtype == seeds.dtype == jnp.result_type(float)


def test_users_seeds_pass_and_are_floating_point():
    seeds = check_seeds([[1, 2], [3, 4]], 2)
    np.testing.assert_array_equal(seeds, [[1, 2], [3, 4]])
    assert seeds.dtype == jnp.result_type(float)
    assert jax.jit(check_seeds)(seeds).shape == (2, 2)
