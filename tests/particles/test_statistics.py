import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.path import Path
from scipy.stats import chi2

from physax._checks import ArgumentError
from physax.particles import (
    ParticleStatus,
    Tracks,
    absolute_dispersion,
    ages,
    cloud_covariance,
    connectivity_matrix,
    first_passage,
    histogram_density,
    inside_region,
    lifetimes,
    mix_norm,
    mixing_entropy,
    neighbour_pairs,
    relative_dispersion,
    residence_time,
    segregation_intensity,
    unwrap_periodic,
)
from physax.particles._regions import (
    BoxRegion,
    LevelRegion,
    PolygonRegion,
    as_region,
)


KEY = jax.random.key(11)
EPS = float(jnp.finfo(jnp.result_type(float)).eps)
ALIVE, WAITING = ParticleStatus.ALIVE, ParticleStatus.WAITING
EXITED, STUCK = ParticleStatus.EXITED, ParticleStatus.STUCK


def make_tracks(times, positions, **known):
    """Makes tracks of particles that start at once and go on, but for what is known."""
    times = jnp.asarray(times, float)
    positions = jnp.asarray(positions, float)
    count = positions.shape[1]
    rows = {
        "status": jnp.zeros(count, int),
        "ended": jnp.full(count, jnp.nan),
        "face": jnp.full(count, -1),
        "since": jnp.full(count, times[0]),
        "entries": jnp.zeros(count, int),
    }
    for name, values in known.items():
        rows[name] = jnp.asarray(values, rows[name].dtype)
    return Tracks(times, positions, None, {}, **rows)


def straight(times, seeds, velocities, **known):
    """Makes tracks of particles that move straight while they live."""
    times, seeds = np.asarray(times, float), np.asarray(seeds, float)
    since = np.asarray(known.get("since", np.full(len(seeds), times[0])), float)
    ended = np.asarray(known.get("ended", np.full(len(seeds), np.nan)), float)
    # np.fmin takes the number where the other is NaN.
    if times[-1] >= times[0]:
        clock = np.fmin(np.maximum(times[:, None], since), ended)
    else:
        clock = np.fmax(np.minimum(times[:, None], since), ended)
    elapsed = (clock - since)[..., None]
    return make_tracks(times, seeds + elapsed * np.asarray(velocities, float), **known)


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


# Residence and first passage.

HEIGHTS = np.linspace(-0.9, 0.9, 7)
POISEUILLE = 2 * (1 - HEIGHTS**2)


@pytest.fixture(scope="module")
def channel():
    # Rows at uneven times; the last particles are still inside at the end.
    times = np.array([0, 0.3, 0.7, 1.1, 2.0, 2.9])
    seeds = np.stack([np.full(7, -0.5), HEIGHTS], 1)
    return straight(times, seeds, np.stack([POISEUILLE, 0 * HEIGHTS], 1))


def test_first_passage_through_plane_poiseuille_flow(channel):
    outlet = BoxRegion(low=(1.5, -np.inf), high=(np.inf, np.inf))
    expected = 2 / POISEUILLE
    expected[expected > 2.9] = np.nan
    assert np.isnan(expected).any()
    for region in (outlet, LevelRegion(lambda x: 1.5 - x[0])):
        found = first_passage(channel, region)
        np.testing.assert_allclose(found, expected, rtol=20 * EPS)
        assert found.dtype == jnp.result_type(float)


def test_residence_in_a_box_of_the_channel(channel):
    box = BoxRegion((0.0, -0.7), (1.5, 0.7))
    last = np.minimum(2.0 / POISEUILLE, 2.9)
    expected = np.maximum(last - 0.5 / POISEUILLE, 0) * (np.abs(HEIGHTS) < 0.7)
    np.testing.assert_allclose(residence_time(channel, box), expected, rtol=20 * EPS)


def test_a_box_is_found_also_by_one_long_step():
    tracks = straight([0.0, 10.0], [[-5.0, 0.2], [-5.0, 2.0]], [[1.0, 0.0]] * 2)
    box = BoxRegion((0.0, 0.0), (1.0, 1.0))
    np.testing.assert_allclose(residence_time(tracks, box), [1, 0], rtol=1e-6)
    np.testing.assert_allclose(first_passage(tracks, box), [5, np.nan], rtol=1e-6)


def test_several_visits_are_added():
    times = np.linspace(0, 2, 4001)
    x = np.cos(2 * np.pi * times)[:, None, None]
    tracks = make_tracks(times, x)
    # |cos| < 1/2 for a third of the time; first after a sixth of a period. Chords of
    # 5e-4 miss the curve by 3e-7.
    band = BoxRegion((-0.5,), (0.5,))
    np.testing.assert_allclose(residence_time(tracks, band), 2 / 3, rtol=1e-5)
    np.testing.assert_allclose(first_passage(tracks, band), 1 / 6, rtol=1e-5)
    smooth = LevelRegion(lambda x: x[0] ** 2 - 0.25)
    np.testing.assert_allclose(residence_time(tracks, smooth), 2 / 3, rtol=1e-5)


# Particle 0 waits until 0.5; 1 exits at 1.25; 2 sticks in the region at 1.5; 3 was
# injected again at 1.5; 4 waits for ever.
FATES = {
    "since": [0.5, 0.0, 0.0, 1.5, 99.0],
    "ended": [np.nan, 1.25, 1.5, np.nan, np.nan],
    "status": [ALIVE, EXITED, STUCK, ALIVE, WAITING],
    "face": [-1, 3, 1, 3, -1],
    "entries": [0, 0, 0, 2, 0],
}


@pytest.fixture(scope="module")
def fates():
    return straight(np.arange(4.0), np.zeros((5, 1)), np.ones((5, 1)), **FATES)


def test_waiting_and_ended_particles_do_not_reside(fates):
    everywhere = BoxRegion((-np.inf,), (np.inf,))
    found = residence_time(fates, everywhere)
    np.testing.assert_allclose(found, [2.5, 1.25, 1.5, 1.5, 0], rtol=1e-6)
    # They move by 1 each second and sit in their seed at 0 before.
    beyond = BoxRegion((1.0,), (np.inf,))
    found = residence_time(fates, beyond)
    # Of the one that came in again only what was from the next row on is known.
    np.testing.assert_allclose(found, [1.5, 0.25, 0.5, 0.5, 0], rtol=1e-6)
    found = first_passage(fates, BoxRegion((0.9,), (np.inf,)))
    np.testing.assert_allclose(found, [0.9, 0.9, 0.9, 0.9, np.nan], rtol=1e-6)


def test_lifetimes_come_from_the_time_of_the_hit(fates):
    nan = np.nan
    np.testing.assert_allclose(lifetimes(fates), [nan, 1.25, 1.5, nan, nan])
    np.testing.assert_allclose(lifetimes(fates, 3), [nan, 1.25, nan, nan, nan])


def test_ages_of_particles_that_move(fates):
    nan = np.nan
    expected = [
        [nan, 0, 0, nan, nan],
        [0.5, 1, 1, nan, nan],
        [1.5, nan, nan, 0.5, nan],
        [2.5, nan, nan, 1.5, nan],
    ]
    found = jax.jit(ages)(fates)
    np.testing.assert_allclose(found, expected)
    spread = histogram_density(found[3][:, None], [np.arange(4.0)], np.ones(5))
    np.testing.assert_array_equal(spread, [0, 1, 1])


def test_which_particles_move_in_a_region(fates):
    found = inside_region(fates, BoxRegion((0.4,), (2.2,)))
    expected = [
        [0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [0, 0, 0, 1, 0],
    ]
    np.testing.assert_array_equal(found, expected)


def test_backward_tracks_have_positive_times():
    known = {"ended": [np.nan, -1.5], "status": [ALIVE, EXITED]}
    tracks = straight([0.0, -1.0, -3.0], [[0.0], [0.0]], [[1.0], [1.0]], **known)
    there = BoxRegion((-np.inf,), (-0.5,))
    np.testing.assert_allclose(residence_time(tracks, there), [2.5, 1.0], rtol=1e-6)
    np.testing.assert_allclose(first_passage(tracks, there), [0.5, 0.5], rtol=1e-6)
    np.testing.assert_allclose(lifetimes(tracks), [np.nan, 1.5])
    np.testing.assert_allclose(ages(tracks)[:, 0], [0, 1, 3])


def test_a_yes_or_no_function_enters_halfway():
    tracks = straight(np.arange(4.0), [[0.0]], [[1.0]])
    found = residence_time(tracks, lambda x: (x[0] > 0.9) & (x[0] < 2.1))
    np.testing.assert_allclose(found, 2, rtol=1e-6)


# An outline that is not convex.
CORNERS = np.array([[0, 0], [4, 0], [4, 3], [2, 1], [0, 3]], float)


OUTSIDE_IN = np.array([[2.0, -1.0], [5.0, 4.0], [1.0, 1.0]])


@pytest.mark.slow
@pytest.mark.parametrize("sense", [1, -1])
def test_polygon_agrees_with_matplotlib(sense):
    region = PolygonRegion(CORNERS[::sense])
    places = jax.random.uniform(KEY, (2000, 2), minval=-1, maxval=5)
    found = jax.vmap(region.contains)(places)
    np.testing.assert_array_equal(found, Path(CORNERS).contains_points(places))
    distances = [region.distance(jnp.asarray(p)) for p in OUTSIDE_IN]
    np.testing.assert_allclose(distances, [1, np.sqrt(2), -np.sqrt(0.5)], rtol=1e-6)
    tracks = straight([0.0, 4.0], [[-1.0, 0.5]], [[0.5, 0.0]])
    # From 1 outside to 0.5 inside, the level is taken as linear.
    np.testing.assert_allclose(first_passage(tracks, region), 4 / 1.5, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize(
    "region",
    [
        BoxRegion((0.0, -0.7), (1.5, np.inf)),
        PolygonRegion([[0.0, -0.7], [1.5, -0.7], [1.5, 0.8], [0.0, 0.8]]),
    ],
    ids=["box", "polygon"],
)
def test_gradients_of_times(channel, region):
    @jax.jit
    def total(positions, since):
        moved = eqx.tree_at(
            lambda t: (t.positions, t.since), channel, (positions, since)
        )
        came = first_passage(moved, region)
        came = jnp.where(jnp.isnan(came), 0, came)
        return jnp.sum(jnp.sin(residence_time(moved, region)) + jnp.cos(came))

    # Off the symmetry axis, where two sides are equally near.
    values = (channel.positions + 0.013, channel.since + 0.01)
    ways = [jax.random.normal(KEY, x.shape) for x in values]
    slopes = jax.grad(total, (0, 1))(*values)
    slope = sum(jnp.vdot(s, w) for s, w in zip(slopes, ways, strict=True))
    step = 1e-6
    ends = [
        total(*(x + s * w for x, w in zip(values, ways, strict=True)))
        for s in (step, -step)
    ]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


# Connectivity.


@pytest.mark.slow
def test_connectivity_of_a_shift():
    # Sources of 2, 3 and 1 particles; each goes one region on, and the last leaves.
    seeds = np.array([0.1, 0.7, 1.1, 1.2, 1.8, 2.5])[:, None]
    known = {"ended": [np.nan] * 5 + [0.5], "status": [ALIVE] * 5 + [EXITED]}
    tracks = straight([0.0, 1.0], seeds, np.ones((6, 1)), **known)
    boxes = [BoxRegion((i,), (i + 1.0,)) for i in range(4)]
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 2] = 1
    expected[3] = np.nan
    found = jax.jit(lambda t: connectivity_matrix(t, boxes, boxes))(tracks)
    np.testing.assert_allclose(found, expected)
    # The frozen particle is in region 3 at x = 3, but it has exited.
    labels = np.array([0, 0, 1, 1, -1, 2])
    found = connectivity_matrix(tracks, labels, [lambda x: x[0] - 2.5])
    np.testing.assert_allclose(found, [[1], [1], [0]])
    everyone = (ALIVE, EXITED)
    found = connectivity_matrix(tracks, labels, labels + 1, count=everyone)
    np.testing.assert_allclose(found, [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


@pytest.mark.slow
def test_connectivity_counts_weights_and_only_known_starts(fates):
    weights = jnp.asarray([1.0, 3.0, 4.0, 100.0, 100.0])
    whole = [BoxRegion((-np.inf,), (np.inf,))]

    def probability(weights):
        return connectivity_matrix(fates, whole, whole, weights=weights)[0, 0]

    # Alive and stuck: 1 and 4 of 8; injected again or waiting ones do not count.
    np.testing.assert_allclose(probability(weights), 5 / 8)
    slope = jax.grad(probability)(weights)
    expected = [1 / 8 - 5 / 64, -5 / 64, 1 / 8 - 5 / 64, 0, 0]
    np.testing.assert_allclose(slope, expected, rtol=1e-5)


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
        (lambda: PolygonRegion(CORNERS[:2]), "`vertices` must be at least 3 corners"),
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
            "`count` must be at least 2 kinds, but is 1",
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
            "`modes` must be at least 1, but is 0",
        ),
    ],
)
def test_bad_arguments_are_refused(run, message):
    with pytest.raises(ArgumentError, match=message):
        run()
