import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special

from physax import PhysaxError, PhysaxWarning
from physax.design import (
    ConicFilter,
    Fill,
    GaussianFilter,
    Renormalise,
    Replicate,
    Surround,
    Wrap,
)
from physax.units import NANO


pytestmark = pytest.mark.f32

FILTERS = [ConicFilter, GaussianFilter]
BOUNDARIES = [Replicate(), Wrap(), Renormalise()]
SHAPES = [(17,), (12, 15), (7, 8, 9)]


def noise(shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).random(shape), float)


def rounding(x):
    return 20 * jnp.finfo(x.dtype).eps


def by_hand(density, weights, pad):
    """The sum over all neighbours, written out in float64."""
    reach = [n // 2 for n in weights.shape]
    longer = pad(np.asarray(density, float), [(r, r) for r in reach])
    out = np.zeros(density.shape)
    for offset in np.ndindex(*weights.shape):
        part = tuple(
            slice(o, o + n) for o, n in zip(offset, density.shape, strict=True)
        )
        out += weights[offset] * longer[part]
    return out


def test_conic_filter_of_a_half_line_has_the_closed_form():
    # With R = N cells the weights (1 - k/N) / N sum to 1, and a cell that is j cells
    # outside sees the solid ones from k = j on: (N - j)(N - j + 1) / (2 N^2).
    n = 6
    density = jnp.zeros(40).at[20:].set(1.0)
    found = ConicFilter(n * 10 * NANO, 10 * NANO)(density)
    j = np.arange(1, n)
    assert jnp.allclose(found[20 - j], (n - j) * (n - j + 1) / (2 * n**2), atol=1e-6)
    assert found[13] == 0
    assert found[27] == 1


def test_conic_filter_of_a_half_plane_is_the_integral_of_the_cone():
    # The cone seen from the side: 3 / (pi R^2) (h - x^2 / R asinh(h / |x|)) with
    # h^2 = R^2 - x^2. Midpoint sums with R = 20 cells are off by about (1/20)^2 / 4.
    cells = 20
    density = jnp.zeros((81, 81)).at[40:].set(1.0)
    found = ConicFilter(1.0, 1 / cells)(density)[:, 40]

    def profile(x):
        h = np.sqrt(1 - x**2)
        return 3 / np.pi * (h - x**2 * np.arcsinh(h / abs(x)))

    for i in (25, 30, 35, 39):
        outside = (39.5 - i) / cells
        exact = scipy.integrate.quad(profile, outside, 1)[0]
        assert found[i] == pytest.approx(exact, abs=1e-3)
        assert found[79 - i] == pytest.approx(1 - exact, abs=1e-3)


def test_gaussian_filter_of_a_half_plane_is_the_error_function():
    # Sampled at 5 cells per deviation sums are exact to e^(-2 (5 pi)^2); what is cut
    # off beyond 4 deviations is 6e-5 of a half line.
    density = jnp.zeros((60, 60)).at[:, 30:].set(1.0)
    found = GaussianFilter(5.0, 1.0)(density)[30]
    edge = np.arange(60) - 29.5
    exact = scipy.special.erfc(-edge / 5 / np.sqrt(2)) / 2
    assert np.abs(np.asarray(found) - exact).max() < 1e-3


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("kind", FILTERS)
def test_a_uniform_density_stays(kind, boundary):
    shape = (12, 15)
    found = kind(2.5, 1.0, boundary)(jnp.full(shape, 0.3))
    assert found.shape == shape
    assert found.dtype == jnp.result_type(float)
    assert jnp.all(found == jnp.full(shape, 0.3)[0])


@pytest.mark.slow(after=4)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("boundary", "pad"),
    [
        (Replicate(), lambda x, w: np.pad(x, w, mode="edge")),
        (Wrap(), lambda x, w: np.pad(x, w, mode="wrap")),
        (Fill(1.0), lambda x, w: np.pad(x, w, constant_values=1)),
        (Fill(), lambda x, w: np.pad(x, w)),
    ],
)
@pytest.mark.parametrize("kind", FILTERS)
def test_filters_are_the_sum_over_neighbours(kind, boundary, pad, shape):
    density = noise(shape)
    filter_ = kind(1.9, 1.0, boundary)
    weights = filter_.weights(len(shape))
    exact = by_hand(density, weights / weights.sum(), pad)
    assert np.abs(np.asarray(filter_(density)) - exact).max() < rounding(density)


@pytest.mark.parametrize("shape", SHAPES)
def test_renormalised_means_count_only_cells_inside(shape):
    density = noise(shape)
    filter_ = ConicFilter(3.2, 1.0, Renormalise())
    weights = filter_.weights(len(shape))
    zeros = lambda x, w: np.pad(x, w)  # noqa: E731
    exact = by_hand(density, weights, zeros) / by_hand(np.ones(shape), weights, zeros)
    assert np.abs(np.asarray(filter_(density)) - exact).max() < rounding(density)


@pytest.mark.parametrize("renormalised", [0, 1])
@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_renormalised_means_count_what_fills_the_other_axis(renormalised, scale):
    density = scale * noise((12, 15))
    boundary = [Fill(1.5), Fill(1.5)]
    boundary[renormalised] = Renormalise()
    filter_ = ConicFilter(3.2, 1.0, tuple(boundary))
    weights = filter_.weights(2)

    def filled(value):
        def pad(x, widths):
            along, across = [(0, 0)] * 2, [(0, 0)] * 2
            along[1 - renormalised] = widths[1 - renormalised]
            across[renormalised] = widths[renormalised]
            return np.pad(np.pad(x, along, constant_values=value), across)

        return pad

    counted = by_hand(np.ones(density.shape), weights, filled(1))
    exact = by_hand(density, weights, filled(1.5)) / counted
    assert np.abs(np.asarray(filter_(density)) - exact).max() < rounding(density)


@pytest.mark.slow
def test_a_periodic_filter_may_reach_farther_than_the_cell():
    # 5 cells, a reach of 8: the weights fold, and every cell is counted where it falls.
    density = noise((5, 40))
    wide = ConicFilter(9.0, 1.0, Wrap())
    tiled = jnp.tile(density, (5, 1))
    assert jnp.allclose(wide(density), wide(tiled)[10:15], atol=1e-6)


@pytest.mark.parametrize("kind", FILTERS)
def test_a_periodic_filter_keeps_the_amount(kind):
    density = noise((20, 30))
    assert jnp.sum(kind(3.0, 1.0, Wrap())(density)) == pytest.approx(
        float(jnp.sum(density)), rel=1e-6
    )


def test_each_axis_may_have_its_own_boundary():
    density = noise((12, 14))
    mixed = ConicFilter(2.5, 1.0, (Wrap(), Fill(0.0)))
    weights = mixed.weights(2)

    def pad(x, w):
        return np.pad(np.pad(x, [w[0], (0, 0)], mode="wrap"), [(0, 0), w[1]])

    exact = by_hand(density, weights / weights.sum(), pad)
    assert np.abs(np.asarray(mixed(density)) - exact).max() < rounding(density)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("low", [(4, 6), (0, 1)])
def test_surroundings_count_as_if_they_were_part_of_the_design(low):
    around = noise((30, 30))
    density = noise((12, 14), seed=1)
    whole = around.at[low[0] : low[0] + 12, low[1] : low[1] + 14].set(density)
    one = ConicFilter(3.5, 1.0, Surround(around, low))(density)
    other = ConicFilter(3.5, 1.0)(whole)[low[0] : low[0] + 12, low[1] : low[1] + 14]
    assert jnp.allclose(one, other, atol=1e-6)


def test_oblong_cells_have_oblong_weights():
    weights = ConicFilter(30 * NANO, (10 * NANO, 15 * NANO)).weights(2)
    assert weights.shape == (5, 3)
    assert weights[2, 1] == 1
    assert weights[3, 1] == pytest.approx(2 / 3)
    assert weights[2, 2] == pytest.approx(1 / 2)


@pytest.mark.parametrize("boundary", [*BOUNDARIES, Fill(0.0)])
def test_no_value_leaves_the_range_of_a_binary_density(boundary):
    # Transforms of Fourier round: without care a void would be -1e-8 here and there.
    density = jnp.round(noise((64, 64))).at[:20].set(0.0).at[40:].set(1.0)
    found = ConicFilter(4.0, 1.0, boundary)(density)
    assert jnp.min(found) >= 0
    assert jnp.max(found) <= 1


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("boundary", [*BOUNDARIES, Fill(1.0)])
@pytest.mark.parametrize("kind", FILTERS)
def test_the_gradient_is_the_transposed_mean(kind, boundary):
    # Linear, so <w, F(x + dx) - F(x)> = <F^T w, dx> for any step, to rounding; also at
    # the ends of the range, where a clip would halve it.
    filter_ = kind(2.3, 1.0, boundary)
    x, w, dx = jnp.round(noise((11, 13))), noise((11, 13), 1), noise((11, 13), 2)
    gradient = jax.grad(lambda x: jnp.sum(w * filter_(x)))(x)
    change = jnp.sum(w * (filter_(x + dx) - filter_(x)))
    assert jnp.sum(gradient * dx) == pytest.approx(float(change), rel=1e-5)


def test_filters_work_under_jit_and_vmap():
    filter_ = ConicFilter(2.0, 1.0)
    batch = noise((3, 10, 10))
    each = jnp.stack([filter_(x) for x in batch])
    assert jnp.allclose(jax.jit(jax.vmap(filter_))(batch), each, atol=1e-6)


@pytest.mark.parametrize("kind", FILTERS)
def test_a_filter_narrower_than_a_cell_does_nothing_and_says_so(kind):
    density = noise((9, 9))
    with pytest.warns(PhysaxWarning, match="This filter changes nothing: it reaches"):
        assert jnp.allclose(kind(0.2, 1.0)(density), density, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConicFilter(0.0, 1.0), "`radius` must be positive and finite, but is"),
        (lambda: ConicFilter(1.0, -2.0), "`spacing` must be positive and finite, but"),
        (lambda: GaussianFilter(float("nan"), 1.0), "`deviation` must be positive"),
        (lambda: ConicFilter(2.0, (1.0, 1.0))(jnp.ones(5)), "`spacing` must have 1 or"),
        (lambda: ConicFilter(2.0, 1.0)(jnp.ones(())), "`density` must have an axis of"),
        (lambda: GaussianFilter(2.0, 1.0)(jnp.ones(())), "`density` must have an axis"),
        (
            lambda: ConicFilter(2.0, 1.0, (Wrap(),))(jnp.ones((5, 5))),
            "`boundary` must be one boundary or one for each of 2 axes, but has 1",
        ),
        (
            lambda: Surround(jnp.ones((5, 5)), (1,)),
            "`low` must have one entry for each",
        ),
        (
            lambda: ConicFilter(2.0, 1.0, Surround(jnp.ones((5, 5)), (1, 1)))(
                jnp.ones((5, 5))
            ),
            "must hold the design of shape",
        ),
        (
            lambda: jax.jit(lambda r: ConicFilter(r, 1.0)(jnp.ones((5, 5))))(2.0),
            "`radius` must be known here, but is traced",
        ),
    ],
)
def test_bad_filters_are_refused(make, message):
    with pytest.raises(PhysaxError, match=message):
        make()
