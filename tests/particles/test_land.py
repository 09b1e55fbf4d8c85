import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.particles import (
    CGridField,
    Coast,
    Euler,
    GriddedField,
    Land,
    ParticleStatus,
    SlipField,
    fill_land,
    sample_along,
    track,
)


X, Y = np.arange(11.0), np.arange(7.0)


def eastern_land():
    return Land(np.repeat(X[:, None] >= 6, 7, axis=1), (X, Y))


def eastward(t, x):
    return jnp.stack([1.0 + 0 * t, 0.1 + 0 * t])


@pytest.mark.slow
def test_particles_strand_where_half_is_land():
    tracks = track(
        eastward,
        np.array([[1.0, 2.0], [5.25, 3.0]]),
        np.array([0.0, 4.0, 8.0]),
        dt=1.0,
        boundary=Coast(eastern_land()),
    )
    assert np.all(tracks.status == ParticleStatus.STUCK)
    # The coast is half way between the nodes 5 and 6.
    assert np.allclose(tracks.positions[-1], [[5.5, 2.45], [5.5, 3.025]], atol=1e-3)
    assert np.allclose(tracks.ended, [4.5, 0.25], atol=1e-3)
    assert np.all(tracks.face == 0)
    assert np.allclose(tracks.positions[1, 0], [5.0, 2.4], atol=1e-5)


@pytest.mark.slow
@pytest.mark.x64
def test_the_place_of_stranding_has_a_gradient():
    def place(y):
        tracks = track(
            eastward, jnp.stack([1.0 + 0 * y, y])[None], np.array([0.0, 8.0]), steps=8,
            boundary=Coast(eastern_land()),
        )  # fmt: skip
        return tracks.positions[-1, 0]

    slope = jax.jit(jax.jacfwd(place))(jnp.asarray(2.0))
    assert np.allclose(slope, [0.0, 1.0], atol=1e-5)


def test_the_hit_on_a_coast_has_its_derivative():
    def hit(x):
        tracks = track(
            eastward, jnp.stack([x, 2 + 0 * x], 1), np.array([0.0, 8.0]), steps=8,
            boundary=Coast(eastern_land()), solver=Euler(),
        )  # fmt: skip
        return tracks.positions[-1, :, 1], tracks.ended

    # Found at once, by a secant that ends on the coast, and at the start of the way.
    x = jnp.array([1.25, 1.0, 5.5])
    found, slopes = jax.jit(lambda x: jax.jvp(hit, (x,), (jnp.ones(3),)))(x)
    assert np.allclose(found, [2 + 0.1 * (5.5 - x), 5.5 - x], atol=1e-12)
    assert np.allclose(slopes, [[-0.1] * 3, [-1.0] * 3], atol=1e-12)


SADDLES = [
    ([[0, 1], [1, 0]], [0.4828, 0.2654], [0.2224, 0.7678]),
    ([[1, 0], [0, 1]], [0.4893, 0.6981], [0.1494, 0.3817]),
    ([[1, 0], [0, 1]], [0.4312, 0.7076], [0.5358, 0.5167]),
]


@pytest.mark.parametrize(("corners", "start", "stop"), SADDLES)
def test_the_hit_in_a_saddle_stays_with_its_secants(corners, start, stop):
    # With land in two opposite corners the coast is a cross, near whose centre steps of
    # Newton lead to the end of the way.
    way = np.subtract(stop, start)
    land = Land(np.array(corners, bool), (np.arange(2.0), np.arange(2.0)))
    tracks = track(
        lambda t, x: jnp.asarray(way), np.array([start]), np.array([0.0, 1.0]), steps=1,
        boundary=Coast(land), solver=Euler(),
    )  # fmt: skip
    # In units of a cell the share is 1/2 where 4 (x - 1/2) (y - 1/2) = 0.
    parts = (0.5 - np.array(start)) / way
    exact = parts[(parts > 0) & (parts < 1)]
    # The worst that three secants leave of these ways, and half of the error before.
    assert np.abs(tracks.ended[0] - exact).min() < 0.25


def test_the_hit_on_a_curved_coast_has_its_derivatives():
    # The last of the secants that seek it does not end on the coast.
    i, j = np.indices((8, 8))
    land = Land(i + 0.5 * j >= 7, (np.arange(8.0), np.arange(8.0)))

    def hit(x):
        seed = jnp.array([[x, 2.1 + 0.3 * jnp.sin(x)]])
        tracks = track(
            lambda t, x: jnp.array([1.0, 0.37]), seed, np.array([0.0, 8.0]), steps=8,
            boundary=Coast(land), solver=Euler(),
        )  # fmt: skip
        return tracks.positions[-1, 0, 1]

    slope, curvature = jax.jit(jax.grad(hit)), jax.jit(jax.hessian(hit))
    for x in (1.25, 1.6):
        ends = x + 1e-5, x - 1e-5
        first, second = ((f(ends[0]) - f(ends[1])) / 2e-5 for f in (hit, slope))
        assert np.allclose(slope(x), first, rtol=1e-7)
        assert np.allclose(curvature(x), second, rtol=1e-6)


@pytest.mark.slow
def test_land_covers_places_and_repeats():
    land = Land(np.arange(4) == 0, (np.arange(4.0),), periods=(4.0,))
    assert land.covers(np.array([[0.4], [0.6], [3.4], [3.6], [4.0]])).tolist() == [
        True, False, False, True, True,
    ]  # fmt: skip
    assert land.mask.tolist() == [True, False, False, False]
    strict = Land(np.arange(3) < 2, (np.arange(3.0),), threshold=0.999)
    assert strict.covers(np.array([[0.5], [1.01]])).tolist() == [True, False]


def test_values_that_are_missing_become_land():
    values = np.ones((2, 3, 4, 2), np.float32)
    values[:, 2, 3, 0] = np.nan
    # Missing at one time: a gap, which is not land.
    values[1, 0, 1, 1] = np.nan
    filled, land = fill_land(
        values, (np.arange(3.0), np.arange(4.0)), leading=1, trailing=1
    )
    assert filled.dtype == np.float32
    assert np.array_equal(filled[:, 2, 3], np.zeros((2, 2)))
    assert land.mask.sum() == 1
    assert land.mask[2, 3]
    assert np.isnan(filled[1, 0, 1, 1])
    whole = values[:, :2]
    _, none = fill_land(whole, (np.arange(2.0), np.arange(4.0)), leading=1, trailing=1)
    assert none is None


def test_faulty_land_is_refused():
    with pytest.raises(ArgumentError, match="`threshold` must lie in"):
        Land(np.arange(2) == 0, (np.arange(2.0),), threshold=1.0)
    with pytest.raises(ArgumentError, match="`mask` must have one axis for each"):
        Land(np.zeros((2, 2), bool), (np.arange(2.0),))
    with pytest.raises(ArgumentError, match="1 of 2 are on land; number 1 is at"):
        track(
            eastward,
            np.array([[1.0, 1.0], [7.0, 1.0]]),
            np.arange(2.0),
            boundary=Coast(eastern_land()),
        )


@eqx.filter_jit
def values_at(field, t, points):
    return jax.vmap(lambda x: field(t, x))(points)


def channel(slip):
    """Water between walls along x, at y = 1 and y = 5, and beyond."""
    values = np.ones((11, 7, 2)) * [2.0, -3.0]
    values[:, [0, 1, 5, 6]] = np.nan
    return SlipField(values, (X, Y), slip=slip)


@pytest.mark.parametrize("slip", [0.0, 0.5, 1.0])
def test_slip_is_that_of_a_straight_wall(slip):
    y = np.linspace(1.0, 2.0, 5)
    points = jnp.stack([jnp.full(5, 3.3), jnp.asarray(y)], -1)
    found = values_at(channel(slip), jnp.asarray(0.0), points)
    # The component along the wall goes from slip times its value, the normal from 0.
    eta = y - 1
    assert np.allclose(found[:, 0], 2 * (slip + (1 - slip) * eta), atol=1e-5)
    assert np.allclose(found[:, 1], -3 * eta, atol=1e-5)


@pytest.mark.slow
def test_no_slip_is_linear_interpolation_to_zero():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 11, 7, 2))
    dry = rng.random((11, 7)) < 0.3
    zeroed = np.where(dry[..., None], 0, values)
    field = SlipField(values, (X, Y), np.arange(3.0), dry=dry, slip=0.0)
    plain = GriddedField(zeroed, (X, Y), np.arange(3.0))
    points = jnp.asarray(rng.uniform(0, [10, 6], (50, 2)), float)
    t = jnp.asarray(0.7)
    a, b = (values_at(f, t, points) for f in (field, plain))
    assert np.allclose(a, b, atol=1e-5)


@pytest.mark.x64
def test_free_slip_keeps_particles_off_land():
    # Along lines between land nodes the normal component is zero.
    rng = np.random.default_rng(1)
    dry = rng.random((11, 7)) < 0.25
    dry[[0, -1]] = dry[:, [0, -1]] = True
    field = SlipField(rng.normal(size=(11, 7, 2)), (X, Y), dry=dry, slip=1.0)
    blocked = dry[1:, 1:] & dry[:-1, 1:] & dry[1:, :-1] & dry[:-1, :-1]
    seeds = rng.uniform(0.05, [9.95, 5.95], (300, 2))

    def cell_blocked(places):
        i = np.clip(np.floor(places).astype(int), 0, [9, 5])
        return blocked[i[..., 0], i[..., 1]]

    seeds = seeds[~cell_blocked(seeds)]
    tracks = track(field, seeds, np.linspace(0, 20.0, 6), dt=0.02)
    assert np.all(tracks.status == ParticleStatus.ALIVE)
    assert not np.any(cell_blocked(np.asarray(tracks.positions)))


@pytest.mark.slow
def test_slip_in_three_dimensions():
    values = np.ones((3, 3, 3, 3))
    values[:, :, 0] = np.nan
    axes = (np.arange(3.0),) * 3
    field = SlipField(values, axes, slip=1.0)
    found = field(jnp.asarray(0.0), jnp.asarray([0.7, 1.2, 0.25]))
    assert np.allclose(found, [1.0, 1.0, 0.25], atol=1e-6)


def test_faulty_slip_is_refused():
    values = np.ones((11, 7, 2))
    with pytest.raises(ArgumentError, match=r"`slip` must lie in \[0, 1\], but is 2"):
        SlipField(values, (X, Y), slip=2.0)
    with pytest.raises(ArgumentError, match="`dry` must have one entry for each node"):
        SlipField(values, (X, Y), dry=np.zeros((3, 3), bool))
    with pytest.raises(ArgumentError, match="one component for each of 2 axes"):
        SlipField(values[..., :1], (X, Y))


def basin(rng, times=None):
    """A C grid whose flow follows a stream function that is 0 on the coast."""
    x, y = (np.cumsum(rng.uniform(0.5, 1.5, n)) for n in (9, 8))
    wave = [np.sin(np.pi * (p - p[0]) / (p[-1] - p[0])) for p in (x, y)]
    psi = np.multiply.outer(*wave)
    if times is not None:
        psi = psi * (1 + times)[:, None, None]
    u = np.diff(psi, axis=-1) / np.diff(y)
    v = -np.diff(psi, axis=-2) / np.diff(x)[:, None]
    return CGridField((u, v), (x, y), times), psi, x, y


@pytest.mark.x64
def test_c_grid_keeps_its_stream_function():
    # In a cell the velocity is that of a bilinear stream function, so conserves it.
    rng = np.random.default_rng(2)
    field, psi, x, y = basin(rng)
    seeds = rng.uniform([x[0], y[0]], [x[-1], y[-1]], (100, 2))
    stream = GriddedField(psi, (x, y))
    tracks = track(field, seeds, np.array([0.0, 40.0]), steps=800)
    assert np.all(tracks.status == ParticleStatus.ALIVE)
    at = [values_at(stream, jnp.asarray(0.0), p) for p in tracks.positions]
    # A step over a face, where the velocity along it jumps, is of order 1.
    assert np.allclose(at[1], at[0], atol=0.01)


@pytest.mark.slow
@pytest.mark.x64
def test_c_grid_has_no_divergence_and_a_closed_basin_stays_closed():
    rng = np.random.default_rng(3)
    field, _, x, y = basin(rng, np.array([0.0, 3.0, 6.0]))
    points = jnp.asarray(rng.uniform([x[0], y[0]], [x[-1], y[-1]], (60, 2)), float)
    t = jnp.asarray(2.0)
    slopes = jax.jit(jax.vmap(jax.jacfwd(lambda p: field(t, p))))(points)
    assert np.allclose(jnp.trace(slopes, axis1=1, axis2=2), 0, atol=1e-4)
    tracks = track(field, points, np.array([0.0, 6.0]), dt=0.02)
    assert np.all(tracks.status == ParticleStatus.ALIVE)


def test_c_grid_repeats_and_ends():
    u = np.repeat(np.array([[1.0], [2.0], [3.0], [2.0]]), 2, axis=1)
    field = CGridField(
        (u, np.zeros((4, 3))), (np.arange(4.0), np.arange(3.0)), periods=(4.0, None)
    )
    t = jnp.asarray(0.0)
    assert np.allclose(field(t, jnp.asarray([3.5, 1.2])), [1.5, 0.0])
    assert np.allclose(field(t, jnp.asarray([-0.25, 1.2])), [1.25, 0.0])
    assert np.all(np.isnan(field(t, jnp.asarray([1.0, 2.5]))))
    closed = CGridField(
        (np.array([[1.0], [np.nan]]), np.zeros((1, 2))), (np.arange(2.0),) * 2
    )
    assert np.allclose(closed(t, jnp.asarray([0.75, 0.5])), [0.25, 0.0])


def test_faulty_c_grids_are_refused():
    u, v = np.ones((3, 2)), np.ones((2, 3))
    edges = (np.arange(3.0), np.arange(3.0))
    with pytest.raises(ArgumentError, match=r"`components\[1\]` must have the shape"):
        CGridField((u, u), edges)
    with pytest.raises(ArgumentError, match="one entry for each axis"):
        CGridField((u,), edges)
    with pytest.raises(ArgumentError, match=r"`edges\[0\]` must increase"):
        CGridField((u, v), (np.array([0.0, 0.0, 1.0]), edges[1]))


@pytest.mark.slow
def test_scalars_along_tracks():
    t = np.array([0.0, 8.0])
    values = 2 * X[None, :, None] - Y + 10 * t[:, None, None]
    warmth = GriddedField(values, (X, Y), t)
    tracks = track(
        eastward,
        np.array([[1.0, 2.0], [1.0, 3.0], [9.5, 3.0]]),
        np.arange(0, 8.1, 2.0),
        dt=1.0,
        boundary=Coast(Land(np.repeat(X[:, None] == 7, 7, axis=1), (X, Y))),
        release=jnp.asarray([0.0, 3.0, 0.0]),
    )
    found = np.asarray(eqx.filter_jit(sample_along)(warmth, tracks))
    at = tracks.positions
    expected = 2 * at[..., 0] - at[..., 1] + 10 * tracks.times[:, None]
    # The second has not been released, the first strands at x = 6.5; the third leaves
    # the data.
    missing = [[0, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1], [1, 0, 1]]
    assert np.array_equal(np.isnan(found), np.array(missing, bool))
    assert np.allclose(
        found, np.where(missing, np.nan, expected), equal_nan=True, rtol=1e-5
    )
    assert eqx.filter_eval_shape(sample_along, eastward, tracks).shape == (5, 3, 2)


def test_who_cuts_a_corner_of_land_ends_at_a_coast_along_the_nodes():
    dry = (X[:, None] >= 4) & (X[:, None] <= 6) & (Y >= 2) & (Y <= 4)
    faces_x, faces_y = np.ones((11, 6)), np.full((10, 7), 0.5)
    faces_x[4:7, 2:4] = faces_y[4:6, 2:5] = 0
    velocity = np.where(dry[..., None], np.nan, [1.0, 0.5])
    coast = Coast(Land(dry, (X, Y), threshold=0.9999))
    for flow in (SlipField(velocity, (X, Y)), CGridField((faces_x, faces_y), (X, Y))):
        # Before the corner at (4, 2).
        how = {"seeds": [[3.6, 1.8]], "times": [0.0, 4.0], "steps": 10}
        free, ended = track(flow, **how), track(flow, **how, boundary=coast)
        assert free.status == ParticleStatus.ALIVE
        assert coast.land.covers(free.positions[-1])
        assert ended.status == ParticleStatus.STUCK
