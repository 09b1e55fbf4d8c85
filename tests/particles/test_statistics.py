"""Dispersion and mixing, and bad arguments of statistics."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

from physax._checks import ArgumentError
from physax.particles import (
    absolute_dispersion,
    cloud_covariance,
    connectivity_matrix,
    first_passage,
    mix_norm,
    mixing_entropy,
    neighbour_pairs,
    relative_dispersion,
    segregation_intensity,
    unwrap_periodic,
)
from physax.particles._regions import (
    BoxRegion,
    PolygonRegion,
    as_region,
)

from .tracks import ALIVE, EXITED, make_tracks, straight


KEY = jax.random.key(11)
EPS = float(jnp.finfo(jnp.result_type(float)).eps)


@pytest.fixture(scope="module")
def brownian():
    # 4,000 particles with diffusivities 0.5 and 2 along the axes.
    steps = jax.random.normal(KEY, (20, 4000, 2)) * jnp.sqrt(
        2 * 0.1 * jnp.asarray([0.5, 2.0])
    )
    seeds = jax.random.uniform(jax.random.key(1), (1, 4000, 2))
    paths = seeds + jnp.cumsum(steps, 0)
    return make_tracks(0.1 * np.arange(21), jnp.concatenate([seeds, paths]))


def test_brownian_motion_disperses_by_2kt(brownian):
    # n s^2 / (2 K t) has a chi^2 distribution of n degrees of freedom.
    found = absolute_dispersion(brownian)[np.array([1, 7, 20])]
    expected = 2 * np.array([0.1, 0.7, 2.0])[:, None] * [0.5, 2.0]
    share = chi2(4000).cdf(4000 * np.asarray(found) / expected)
    assert np.all((share > 1e-4) & (share < 1 - 1e-4))
    np.testing.assert_array_equal(absolute_dispersion(brownian)[0], 0)


@pytest.mark.slow
def test_pairs_of_brownian_particles_separate_twice_as_fast(brownian):
    pairs = np.arange(4000).reshape(-1, 2)
    found = relative_dispersion(brownian, pairs)
    grown = found[20] - found[0]
    # The product of seeds and steps adds noise: use the sum's standard deviation.
    apart = np.diff(brownian.positions.reshape(21, -1, 2, 2), axis=2)[:, :, 0]
    error = np.std(apart[20] ** 2 - apart[0] ** 2, 0) / np.sqrt(2000)
    np.testing.assert_array_less(
        np.abs(grown - 4 * 2.0 * np.array([0.5, 2])), 4 * error
    )


def test_covariance_of_the_cloud_agrees_with_numpy(brownian):
    found = cloud_covariance(brownian)[np.array([0, 20])]
    for row, matrix in zip((0, 20), found, strict=True):
        oracle = np.cov(np.float64(brownian.positions[row]).T, bias=True)
        np.testing.assert_allclose(matrix, oracle, rtol=0, atol=1e-5 * oracle.max())


def test_shear_disperses_as_its_closed_form():
    # u = (g y, 0): displacement g y t, separation of neighbours in y.
    times, y = np.linspace(0, 3, 4), np.linspace(-1, 1, 5)
    tracks = straight(times, np.stack([0 * y, y], 1), np.stack([2 * y, 0 * y], 1))
    expected = (2 * times) ** 2 * np.mean(y**2)
    np.testing.assert_allclose(absolute_dispersion(tracks)[:, 0], expected, rtol=1e-5)
    pairs = neighbour_pairs(tracks.positions[0], 0.51)
    np.testing.assert_array_equal(pairs, [[0, 1], [1, 2], [2, 3], [3, 4]])
    found = relative_dispersion(tracks, pairs)
    np.testing.assert_allclose(found[:, 0], (2 * times * 0.5) ** 2, rtol=1e-5)
    np.testing.assert_allclose(found[:, 1], 0.25, rtol=1e-5)
    shear = cloud_covariance(tracks)[:, 0, 1]
    np.testing.assert_allclose(shear, 2 * times * np.mean(y**2), rtol=1e-5)


@pytest.mark.slow
def test_only_particles_that_move_disperse():
    times = np.arange(4.0)
    known = {
        "since": [0.0, 1.5, 0.0, 2.0],
        "ended": [np.nan, np.nan, 1.0, np.nan],
        "entries": [0, 0, 0, 1],
        "status": [ALIVE, ALIVE, EXITED, ALIVE],
    }
    velocity = [[1.0], [10.0], [100.0], [1000.0]]
    tracks = straight(times, np.zeros((4, 1)), velocity, **known)
    found = absolute_dispersion(tracks)[:, 0]
    expected = [0, (1 + 100**2) / 2, (4 + 5**2) / 2, (9 + 15**2) / 2]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    pair = relative_dispersion(tracks, np.array([[0, 2]]))[:, 0]
    np.testing.assert_allclose(pair, [0, 99**2, np.nan, np.nan], rtol=1e-6)


def test_periodic_paths_are_unwrapped():
    times = np.linspace(0, 10, 41)
    free = straight(times, [[0.1, 0.2], [0.7, 0.9]], [[1.1, 5.0], [-0.6, -5.0]])
    wrapped = eqx.tree_at(
        lambda t: t.positions,
        free,
        free.positions.at[..., 0].set(free.positions[..., 0] % 0.8),
    )
    found = jax.jit(lambda t: unwrap_periodic(t, (0.8, np.inf)))(wrapped)
    np.testing.assert_allclose(found.positions, free.positions, atol=1e-5)


@pytest.mark.slow
@pytest.mark.x64
def test_gradients_of_dispersion():
    tracks = straight(np.arange(3.0), np.eye(3), np.ones((3, 3)), ended=[1.0] + 2 * [9])

    @jax.jit
    def total(positions):
        moved = eqx.tree_at(lambda t: t.positions, tracks, positions)
        moved = unwrap_periodic(moved, (100.0, np.inf, np.inf))
        pair = relative_dispersion(moved, np.array([[0, 1], [1, 2]]))
        cloud = cloud_covariance(moved)
        parts = (absolute_dispersion(moved), pair, cloud)
        return sum(jnp.sum(jnp.sin(part)) for part in parts)

    x, way = tracks.positions, jax.random.normal(KEY, tracks.positions.shape)
    slope = jnp.vdot(jax.grad(total)(x), way)
    numeric = (total(x + 1e-6 * way) - total(x - 1e-6 * way)) / 2e-6
    np.testing.assert_allclose(slope, numeric, rtol=1e-7)


# Mixing.

SQUARE = (np.arange(16.0) + 0.5) / 16
LATTICE = np.stack(np.meshgrid(SQUARE, SQUARE, indexing="ij"), -1).reshape(-1, 2)
CELLS = [np.linspace(0, 1, 5)] * 2


def test_entropy_and_segregation_of_known_patterns():
    x, y = LATTICE.T
    halves = (x > 0.5).astype(int)
    checks = ((x * 16).astype(int) + (y * 16).astype(int)) % 2
    # A quarter of the cells is mixed evenly, the others are pure; 5/8 are of kind 1.
    part = np.where((x < 0.5) & (y < 0.5), checks, (x + y > 0.75).astype(int))
    part = np.where((x < 0.5) & (y > 0.5), 1, part)
    part = np.where((x > 0.5) & (y < 0.5), 0, part)
    part = np.where((x > 0.5) & (y > 0.5), 1, part)
    p = 0.5 * 0.25 + 0.5
    most = -p * np.log(p) - (1 - p) * np.log(1 - p)
    cases = [
        (halves, 0.0, 1.0),
        (checks, 1.0, 0.0),
        (part, 0.25 * np.log(2) / most, 1 - 0.25 * 0.25 / (p * (1 - p))),
    ]
    for kinds, entropy, segregation in cases:
        found = mixing_entropy(LATTICE, kinds, CELLS, 2)
        np.testing.assert_allclose(found, entropy, atol=1e-6)
        found = segregation_intensity(LATTICE, kinds, CELLS)
        np.testing.assert_allclose(found, segregation, atol=1e-6)


def test_entropy_of_unequal_kinds_and_particles_left_out():
    # Three kinds, one mixture of shares 1/2, 1/4 and 1/4 in the only cell.
    points = np.array([[0.5]] * 4 + [[2.0]])
    kinds = np.array([0, 0, 1, 2, 1])
    found = mixing_entropy(points, kinds, [np.array([0.0, 1.0])], 3)
    np.testing.assert_allclose(found, 1, rtol=1e-6)
    cells = [np.array([0.0, 1.0, 3.0])]
    p = np.array([2, 2, 1]) / 5
    expected = (4 / 5) * 1.5 * np.log(2) / -np.sum(p * np.log(p))
    found = jax.jit(lambda x: mixing_entropy(x, kinds, cells, 3))(points)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.isnan(mixing_entropy(points, 0 * kinds, cells, 3))


@pytest.mark.parametrize("mode", [(1, 0), (2, 3)])
def test_mix_norm_of_stripes_is_its_closed_form(mode):
    low, size = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    stripes = 1 + 0.3 * np.cos(2 * np.pi * LATTICE @ mode + 0.4)
    # Two coefficients of 0.3 / 2 each.
    factor = 1 / np.sqrt(1 + 4 * np.pi**2 * np.sum(np.square(mode)))
    expected = np.sqrt(2 * 0.15**2 * factor)
    for shift in (0, 3):
        points = low + (LATTICE + shift) * size
        found = mix_norm(points, stripes, low, low + size, modes=4)
        np.testing.assert_allclose(found, expected, rtol=1e-4 if EPS > 1e-10 else 1e-10)


def test_mix_norm_in_one_and_three_dimensions():
    line = (np.arange(1500.0) + 0.5) / 1500
    expected = np.sqrt(0.5 / np.sqrt(1 + 4 * np.pi**2 * 4))
    found = mix_norm(line[:, None], np.sin(4 * np.pi * line), (0.0,), (1.0,), modes=3)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    cube = np.stack(np.meshgrid(*[SQUARE[::2]] * 3), -1).reshape(-1, 3)
    values = np.sin(4 * np.pi * cube[:, 2])
    found = mix_norm(cube, values, (0.0,) * 3, (1.0,) * 3, modes=3)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_mix_norm_falls_under_shear():
    def norm(shear):
        points = (LATTICE + shear * np.stack([LATTICE[:, 1], 0 * LATTICE[:, 1]], 1)) % 1
        values = np.cos(2 * np.pi * LATTICE[:, 0])
        return mix_norm(points, values, (0.0, 0.0), (1.0, 1.0), modes=6)

    # A whole number of turns makes waves (1, -n) of the waves (1, 0).
    for turns in (0, 1, 3):
        factor = 1 / np.sqrt(1 + 4 * np.pi**2 * (1 + turns**2))
        np.testing.assert_allclose(norm(turns), np.sqrt(0.5 * factor), rtol=1e-4)


@pytest.mark.x64
@pytest.mark.parametrize("weights", [None, np.float32, np.float64])
def test_mix_norm_of_single_precision_in_a_session_of_double(weights):
    points = np.random.default_rng(0).uniform(-3, 3, (50, 2))
    values, mass = points[:, 0] ** 2, points[:, 1] ** 2
    given = {} if weights is None else {"weights": mass.astype(weights)}
    low, high = (0.0, 0.0), np.array([1.0, 0.7])
    exact = mix_norm(points, values, low, high, **(given and {"weights": mass}))
    points, values = points.astype(np.float32), values.astype(np.float32)
    found = mix_norm(points, values, low, high, **given)
    assert found.dtype == (weights or np.float32)
    np.testing.assert_allclose(found, exact, rtol=1e-5)


def test_mix_norm_has_a_gradient_where_all_values_are_the_same():
    points = jax.random.uniform(KEY, (60, 2))
    given = points, jnp.full(60, 0.5), jnp.ones(60) / 64

    def norm(points, values, mass):
        return mix_norm(points, values, (0.0, 0.0), (1.0, 1.0), modes=2, weights=mass)

    assert norm(*given) == 0
    assert all(np.all(slope == 0) for slope in jax.grad(norm, (0, 1, 2))(*given))


@pytest.mark.slow
@pytest.mark.x64
def test_gradients_of_mixing():
    points = jax.random.uniform(KEY, (60, 2))
    values = jax.random.uniform(jax.random.key(2), (60,))
    mass = jax.random.uniform(jax.random.key(3), (60,)) + 0.5

    @jax.jit
    def total(points, values, mass):
        norm = mix_norm(points, values, (0.0, 0.0), (1.0, 1.0), modes=3, weights=mass)
        return norm + segregation_intensity(points, values, CELLS)

    given = (points, values, mass)
    ways = [jax.random.normal(jax.random.key(4), x.shape) for x in given]
    # The intensity has no gradient by the points, and no cell is left within the step.
    slopes = jax.grad(total, (0, 1, 2))(*given)
    slope = sum(jnp.vdot(s, w) for s, w in zip(slopes, ways, strict=True))
    ends = [
        total(*(x + s * w for x, w in zip(given, ways, strict=True)))
        for s in (1e-7, -1e-7)
    ]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-7, rtol=1e-6)


TRACKS = straight(np.arange(3.0), np.zeros((2, 2)), np.ones((2, 2)))
ONE_ROW = make_tracks([0.0], np.zeros((1, 2, 2)))
POINTS = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            lambda: relative_dispersion(TRACKS, np.zeros((0, 2), int)),
            "`pairs` must hol",
        ),
        (
            lambda: relative_dispersion(TRACKS, np.array([[0, 2]])),
            "`pairs` must be indices from 0 to 1, but go from 0 to 2",
        ),
        (
            lambda: neighbour_pairs(np.eye(2), 0.1),
            "`distance` must be at least .* no two are within 0.1",
        ),
        (lambda: unwrap_periodic(TRACKS, (1.0,)), "`periods` must be one number or 2"),
        (lambda: as_region(3), "`region` must be a region or a function"),
        (
            lambda: first_passage(ONE_ROW, lambda x: x[0]),
            "`tracks` must hold at least 2",
        ),
        (lambda: BoxRegion((0.0, 1.0), (1.0, 1.0)), "`low` must be less .* but is 1"),
        (lambda: BoxRegion((0.0,), (1.0, 1.0)), "`high` must have as many coordinates"),
        (lambda: BoxRegion((np.nan,), (1.0,)), "`low` must be a number"),
        (lambda: BoxRegion(0.0, (1.0,)), "`low` must be one number for each axis"),
        (lambda: PolygonRegion(np.eye(2)), "`vertices` must be at least 3 corners"),
        (
            lambda: connectivity_matrix(TRACKS, [], []),
            "`sources` must hold at least one",
        ),
        (
            lambda: connectivity_matrix(TRACKS, np.array([0]), np.array([0])),
            "`sources` must be regions, or one label for each of 2 particles",
        ),
        (
            lambda: connectivity_matrix(TRACKS, np.array([0, 1]), np.array([-1, -1])),
            "`targets` must label at least one particle with 0 or more",
        ),
        (
            lambda: mixing_entropy(POINTS, np.zeros(3, int), CELLS, 1),
            "`count` must be an integer of at least 2, but is 1",
        ),
        (
            lambda: mixing_entropy(POINTS, np.zeros(2, int), CELLS, 2),
            r"`kinds` must be one number for each of 3 particles, .* \(2,\)",
        ),
        (
            lambda: segregation_intensity(POINTS, np.zeros(2), CELLS),
            r"`values` must be one number for each of 3 particles, .* \(2,\)",
        ),
        (
            lambda: mix_norm(POINTS, np.zeros(3), (0.0,), (1.0,)),
            "`low` must have 2 numbers, as `points` have",
        ),
        (
            lambda: mix_norm(POINTS, np.zeros(3), (0.0, 0.0), (1.0, 1.0), modes=0),
            "`modes` must be an integer of at least 1, but is 0",
        ),
    ],
)
def test_bad_arguments_are_refused(run, message):
    with pytest.raises(ArgumentError, match=message):
        run()
