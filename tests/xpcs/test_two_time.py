import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, xpcs


pytestmark = pytest.mark.f32

RNG = np.random.default_rng(0)
TIMES = np.arange(5) * 0.1
PHI = np.deg2rad([-175.0, -90.0, 0.0, 90.0, 170.0])


def maps(dtype=float):
    values = 1 + 0.1 * RNG.normal(size=(5, 5, 5))
    return (values + values.swapaxes(1, 2)).astype(dtype) / 2


def data(**changed):
    given = {"c2": maps(), "q": 0.0054, "phi": PHI, "times": TIMES} | changed
    return xpcs.TwoTime(**given)


def test_numbers_spread_over_maps_and_precision_stays():
    found = data(c2=maps(np.float32))
    assert found.c2.dtype == jnp.float32
    assert (found.maps, found.frames) == (5, 5)
    assert found.q.shape == found.phi.shape == (5,)
    assert found.sigma.shape == ()
    assert found.mask is None


def test_values_that_are_not_used_may_be_anything():
    c2 = maps()
    c2[:, np.arange(5), np.arange(5)] = np.nan
    c2[2, 1, 3] = c2[2, 3, 1] = np.inf
    mask = np.ones((5, 5), bool)
    mask[1, 3] = mask[3, 1] = False
    assert data(c2=c2, mask=mask).mask is not None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"c2": maps()[0]},
            r"`c2` must .* Give a single map as `c2\[None\]`",
        ),
        ({"c2": maps()[:, :4]}, r"`c2` must have shape .* \(5, 4, 5\)"),
        ({"q": 0.0}, "`q` must be positive, but is 0"),
        ({"q": np.ones(3)}, "`q` must be one number or one for each of the 5 maps"),
        ({"phi": np.full(5, 90.0)}, "`phi` must be in radians, .*, but is 90"),
        ({"q": 5.4e7}, "`q` must be in 1/angstrom, below 1000 .*, but is 5.4e.07"),
        ({"phi": np.ones(3)}, "`phi` must be one number or one for each of the 5 maps"),
        ({"times": TIMES[:4]}, "`times` must have one entry for each of the 5 frames"),
        ({"times": TIMES[None]}, r"`times` must have shape \(frames,\), but has"),
        (
            {"times": np.array([0.0, 1, 1, 2, 3])},
            "`times` must increase strictly, but is 1",
        ),
        (
            {"times": np.array([0, 1, 2, 3, np.inf])},
            "`times` must be finite and not negative, .* inf",
        ),
        ({"sigma": -0.5}, "`sigma`, the standard .* must be positive .*, but is -0.5"),
        ({"sigma": np.ones(3)}, "`sigma` must be one number, one for each map or"),
        ({"mask": np.ones((4, 5), bool)}, "`mask` must have one entry for each pair"),
    ],
)
def test_bad_input_is_refused(changed, message):
    with pytest.raises(ArgumentError, match=message):
        data(**changed)


def test_values_that_are_used_must_be_finite():
    c2 = maps()
    c2[2, 1, 3] = np.nan
    with pytest.raises(ArgumentError, match=r"c2\[2, 1, 3\] is nan \(1 such values\)"):
        data(c2=c2)


@pytest.mark.parametrize(
    ("ranges", "kept"),
    [
        ([(-10, 10)], [2]),
        ([(170, -170)], [0, 4]),  # across 180 degrees
        ([(165, 190)], [0, 4]),
        ([(-95, -85), (80, 90)], [1, 3]),  # ends are included
        ([(-180, 180)], [0, 1, 2, 3, 4]),
    ],
)
def test_angles_are_selected_across_pi(ranges, kept):
    given = data(sigma=np.full(5, 0.1), mask=np.ones((5, 5), bool))
    radians = [tuple(np.deg2rad(pair)) for pair in ranges]
    found = xpcs.select(given, phi_ranges=radians)
    np.testing.assert_array_equal(found.phi, given.phi[np.array(kept)])
    np.testing.assert_array_equal(found.c2, given.c2[np.array(kept)])
    assert found.sigma.shape == (len(kept),)


def test_selection_of_nothing_lists_the_angles():
    with pytest.raises(ArgumentError, match=r"-3.054, -1.571, 0, 1.571, 2.967"):
        xpcs.select(data(), [(0.2, 0.3)])
    for ranges in ([(0.2, np.inf)], [(-30, 30)]):
        with pytest.raises(ArgumentError, match="`phi_ranges` .* angles in radians"):
            xpcs.select(data(), ranges)


def test_frames_count_from_one_and_time_restarts():
    given = data(sigma=np.full((5, 5, 5), 0.1), mask=np.ones((5, 5), bool))
    found = xpcs.frame_range(given, 2, 4)
    np.testing.assert_array_equal(found.c2, given.c2[:, 1:4, 1:4])
    np.testing.assert_allclose(found.times, [0, 0.1, 0.2], atol=1e-6)
    assert found.sigma.shape == (5, 3, 3)
    for start, end in ((0, 3), (3, 3), (2, 6)):
        with pytest.raises(ArgumentError, match="1 <= start < end <= 5"):
            xpcs.frame_range(given, start, end)


def test_diagonal_to_look_at_is_the_mean_of_neighbours():
    given = data()
    found = np.asarray(xpcs.neighbour_diagonal(given.c2))
    c2 = np.asarray(given.c2)
    assert found[1, 0, 0] == c2[1, 0, 1]
    assert found[1, 4, 4] == c2[1, 3, 4]
    assert found[1, 2, 2] == pytest.approx((c2[1, 1, 2] + c2[1, 2, 3]) / 2)
    off = ~np.eye(5, dtype=bool)
    np.testing.assert_array_equal(found[:, off], c2[:, off])


def test_one_time_averages_along_diagonals():
    given = data(sigma=0.02)
    found = eqx.filter_jit(lambda c2: xpcs.one_time(data(c2=c2)).g2)(given.c2)
    c2 = np.asarray(given.c2, float)
    exact = [np.diagonal(c2, k, 1, 2).mean(-1) for k in range(1, 5)]
    np.testing.assert_allclose(found.T, exact, rtol=1e-6)
    result = xpcs.one_time(given, age=(0.1, 0.2))
    np.testing.assert_allclose(result.lags, [0.1, 0.2, 0.3], rtol=1e-6)
    np.testing.assert_allclose(result.g2[0, 1], (c2[0, 1, 3] + c2[0, 2, 4]) / 2)
    np.testing.assert_allclose(result.sigma[0, :], 0.02 / np.sqrt([2, 2, 1]), rtol=1e-6)


def test_one_time_leaves_masked_pairs_out():
    c2 = maps()
    c2[:, 0, 1] = c2[:, 1, 0] = np.nan
    mask = np.isfinite(c2[0])
    found = xpcs.one_time(data(c2=c2, mask=mask))
    exact = np.diagonal(c2, 1, 1, 2)[:, 1:].mean(-1)
    np.testing.assert_allclose(found.g2[:, 0], exact, rtol=1e-6)
    slope = jax.grad(lambda x: xpcs.one_time(data(c2=x, mask=mask)).g2.sum())
    assert bool(jnp.all(jnp.isfinite(slope(jnp.asarray(c2)))))


def test_one_time_needs_equal_steps_and_pairs():
    with pytest.raises(ArgumentError, match="`data.times` must have equal steps"):
        xpcs.one_time(data(times=np.array([0, 1, 2, 3, 5.0])))
    with pytest.raises(ArgumentError, match="`age` must leave at least one pair"):
        xpcs.one_time(data(), age=(3.0, 4.0))
    with pytest.raises(ArgumentError, match="are traced. Trace `data.c2` only"):
        jax.jit(lambda d: xpcs.one_time(d).g2)(data())


def test_masked_maps_point_to_the_mask():
    c2 = np.ma.array(maps(), mask=np.zeros((5, 5, 5), bool))
    assert np.array_equal(data(c2=c2).c2, data(c2=c2.data).c2)
    c2[0, 1, 2] = np.ma.masked
    with pytest.raises(ArgumentError, match=r"entry \[0, 1, 2\] is masked. Give `c2."):
        data(c2=c2)
    c2 = c2.data
    mask = np.ma.array(np.ones((5, 5), bool), mask=np.eye(5, dtype=bool))
    with pytest.raises(ArgumentError, match="`mask` must be known .* `mask.filled"):
        data(c2=c2, mask=mask)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_one_time_sums_maps_of_half_precision_in_float32(dtype):
    # Values that half precision holds exactly, so that NumPy's means of the same
    # values in float64 are the truth; float32 rounds them by some 1e-7.
    rng = np.random.default_rng(1)
    c2 = jnp.asarray(1 + 0.02 * rng.normal(size=(2, 200, 200)), dtype)
    sigma = jnp.asarray(rng.uniform(2e-4, 4e-4, size=(2, 200, 200)), dtype)
    given = xpcs.TwoTime(c2, 0.005, 0.0, 0.1 * np.arange(200), sigma)
    found = xpcs.one_time(given)
    assert given.c2.dtype == dtype
    assert found.g2.dtype == found.sigma.dtype == jnp.float32
    values, errors = np.asarray(c2, np.float64), np.asarray(sigma, np.float64)
    for k in (1, 100, 198):
        mean = np.diagonal(values, k, 1, 2).mean(-1)
        error = np.sqrt(np.sum(np.diagonal(errors, k, 1, 2) ** 2, -1)) / (200 - k)
        np.testing.assert_allclose(found.g2[:, k - 1], mean, rtol=1e-6)
        np.testing.assert_allclose(found.sigma[:, k - 1], error, rtol=1e-6)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_correlations_at_numbers_of_half_precision_are_computed_in_float32(dtype):
    # A constant rate J: f = exp(-q^2 J (t2 - t1)), here in float64 of the same numbers.
    q, t1, t2 = (jnp.asarray(x, dtype) for x in (1e-3, [0.1, 7.0], [0.3, 1.9]))
    model = xpcs.Static(xpcs.Diffusion(jnp.asarray(6e4, dtype)))
    rate = float(model.diffusion.D0)
    exact = [np.asarray(x, np.float64) for x in (q, t1, t2)]
    power = rate * exact[0] ** 2 * np.abs(exact[2] - exact[1])
    np.testing.assert_allclose(
        xpcs.c2(model, t1, t2, q, offset=0.0), np.exp(-power), rtol=1e-6
    )
    found = xpcs.two_time(model, t1, q, offset=0.0)[0, 0, 1]
    lag = exact[1][1] - exact[1][0]
    np.testing.assert_allclose(found, np.exp(-rate * exact[0] ** 2 * lag), rtol=1e-6)


def test_weights_of_half_precision_do_not_overflow():
    # 1 / sigma is above the largest float16.
    sigma = np.full((5, 5, 5), 2.0**-20, np.float16)
    model = xpcs.Static(xpcs.Diffusion(1e4))
    problem = xpcs.two_time_problem(data(sigma=sigma), model, scaling=xpcs.Shared())
    assert float(jnp.max(problem.data[2])) == 2.0**20


def test_noise_of_half_precision_has_its_variance():
    # 2e-4 squared is 4.0e-8, which float16 rounds to 6.0e-8.
    noise = xpcs.WhiteNoise(np.float16(2e-4))
    key, model = jax.random.key(0), xpcs.Static(xpcs.Diffusion(1e4))
    found = xpcs.simulate_two_time(model, TIMES, 0.005, key=key, noise=noise)
    assert float(found.sigma) == pytest.approx(float(np.float16(2e-4)), rel=1e-6)
