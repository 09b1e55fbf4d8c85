import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError
from physax.design import (
    ConicFilter,
    straight_through,
    subpixel_projection,
    tanh_projection,
)


pytestmark = pytest.mark.f32

PROJECTIONS = [tanh_projection, subpixel_projection]
INFINITY = float("inf")


def smooth(shape=(24, 26), seed=0, radius=4.0):
    """Filtered noise, stretched so that it crosses one half in many places."""
    noise = jnp.asarray(np.random.default_rng(seed).random(shape), float)
    filtered = ConicFilter(radius, 1.0)(noise)
    return (filtered - filtered.min()) / (filtered.max() - filtered.min())


@pytest.mark.parametrize("project", PROJECTIONS)
@pytest.mark.parametrize("beta", [0.0, 1.0, 8.0, 1e3, INFINITY])
@pytest.mark.parametrize("eta", [0.3, 0.5])
def test_ends_stay_and_order_is_kept(project, beta, eta):
    density = jnp.linspace(0.0, 1.0, 501)
    found = project(density, beta, eta)
    assert found.dtype == density.dtype
    assert found[0] == pytest.approx(0, abs=1e-6)
    assert found[-1] == pytest.approx(1, abs=1e-6)
    # Differences of neighbours are rounded where the curve is flat.
    assert jnp.all(jnp.diff(found) >= -1e-6)


def test_no_strength_is_the_identity_and_infinite_strength_a_step():
    density = jnp.array([0.0, 0.2, 0.49, 0.5, 0.51, 1.0])
    assert jnp.array_equal(tanh_projection(density, 0.0), density)
    step = jnp.array([0.0, 0.0, 0.0, 0.5, 1.0, 1.0])
    assert jnp.array_equal(tanh_projection(density, INFINITY), step)


def test_the_slope_at_the_threshold_is_that_of_the_formula():
    # At eta = 1/2 the slope there is beta / (2 tanh(beta / 2)).
    slope = jax.grad(lambda x: tanh_projection(x, 6.0))(jnp.array(0.5))
    assert slope == pytest.approx(6 / (2 * np.tanh(3)), rel=1e-5)


def ramp(angle, offset, cells=9, slope=0.04):
    """A flat interface through the middle cell, at a distance from its centre."""
    x = np.arange(cells) - cells // 2
    along = np.cos(angle) * x[:, None] + np.sin(angle) * x[None, :]
    return jnp.asarray(0.5 + slope * (along + offset), float), along + offset


@pytest.mark.slow
@pytest.mark.parametrize("angle", [0.0, 0.4, np.pi / 4])
@pytest.mark.parametrize("offset", [-0.3, 0.0, 0.2])
def test_a_flat_interface_fills_cells_by_the_published_polynomial(angle, offset):
    density, distance = ramp(angle, offset)
    found = subpixel_projection(density, INFINITY)
    t = np.clip(-distance / 0.55, -1, 1)
    exact = 0.5 - 15 / 16 * t + 5 / 8 * t**3 - 3 / 16 * t**5
    # The distance is the ratio of two numbers that are rounded, over 0.04.
    assert np.abs(np.asarray(found) - exact).max() < 2e-5


def test_fill_fractions_are_exact_on_average_and_near_in_each_cell():
    # Upright interface: the exact fraction is min(1, max(0, 1/2 + offset)). The
    # polynomial reaches over 1.1 cells instead of 1, and is smooth: it is off by at
    # most 0.125, and by nothing on average over all offsets.
    offsets = (np.arange(64) + 0.5) / 64 * 1.2 - 0.6
    found = [
        float(subpixel_projection(ramp(0.0, s)[0], INFINITY)[4, 4]) for s in offsets
    ]
    exact = np.clip(0.5 + offsets, 0, 1)
    assert np.abs(found - exact).max() < 0.125
    assert np.mean(found) == pytest.approx(np.mean(exact), abs=1e-4)


def test_binary_at_infinite_strength_but_for_cells_at_the_interface():
    density = smooth()
    found = subpixel_projection(density, INFINITY)
    grey = (found > 0) & (found < 1)
    assert 0 < jnp.mean(grey) < 0.5
    steps = [jnp.abs(jnp.gradient(density, axis=axis)) for axis in (0, 1)]
    assert jnp.all(jnp.abs(density - 0.5)[grey] < 0.55 * (steps[0] + steps[1])[grey])


@pytest.mark.slow
@pytest.mark.parametrize("project", PROJECTIONS)
@pytest.mark.parametrize("beta", [0.0, 8.0, 1e6, INFINITY])
@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_gradients_are_finite_where_there_is_no_interface(project, beta, value):
    density = jnp.full((6, 6), value)
    gradient = jax.grad(lambda x: jnp.sum(project(x, beta) ** 2))(density)
    assert jnp.all(jnp.isfinite(gradient))


def test_gradients_are_finite_next_to_nothing():
    # Differences of 1e-20 have squares that underflow in float32.
    density = jnp.full((6, 6), 0.5).at[2, 2].add(1e-7).at[3, 3].set(0.5 + 1e-20)
    for curvature in (False, True):
        gradient = jax.grad(
            lambda x, c=curvature: jnp.sum(
                subpixel_projection(x, INFINITY, curvature=c)
            )
        )(density)
        assert jnp.all(jnp.isfinite(gradient))


@pytest.mark.slow
def test_a_periodic_density_has_no_seam():
    density = smooth((20, 20))
    density = ConicFilter(4.0, 1.0)(jnp.tile(density, (3, 3)))[20:40, 20:40]
    found = subpixel_projection(density, INFINITY, periodic=True)
    rolled = subpixel_projection(jnp.roll(density, 7, 0), INFINITY, periodic=True)
    assert jnp.allclose(jnp.roll(found, 7, 0), rolled, atol=1e-5)


@pytest.mark.parametrize("project", PROJECTIONS)
def test_strength_and_threshold_may_be_traced(project):
    density = smooth()
    traced = jax.jit(project)(density, 8.0, 0.4)
    assert jnp.allclose(traced, project(density, 8.0, 0.4), atol=1e-6)


@pytest.mark.parametrize("project", PROJECTIONS)
def test_bad_numbers_are_refused_on_the_host_and_poison_under_jit(project):
    density = smooth()
    with pytest.raises(PhysaxError, match="`beta` must be at least 0, but is -1"):
        project(density, -1.0)
    with pytest.raises(PhysaxError, match=r"`eta` must lie in \(0, 1\), but is 1"):
        project(density, 8.0, 1.0)
    assert jnp.any(jnp.isnan(jax.jit(project)(density, -1.0)))


@pytest.mark.slow
def test_straight_through_is_binary_with_the_derivative_of_what_it_rounds():
    latent = smooth()

    def weighed(latent, binary):
        found = subpixel_projection(latent, INFINITY)
        found = straight_through(found) if binary else found
        weights = jnp.arange(found.size).reshape(found.shape)
        return jnp.sum(weights * found), found

    gradient = jax.jit(jax.grad(weighed, has_aux=True), static_argnums=1)
    slopes, found = gradient(latent, True)
    assert jnp.array_equal(found, (latent > 0.5).astype(found.dtype))
    assert jnp.array_equal(slopes, gradient(latent, False)[0])
    whole = jax.jit(lambda x: straight_through(2 * x - 0.5))(latent)
    assert jnp.array_equal(whole, jnp.round(whole))
    assert list(straight_through(np.array([0.2, 0.7]))) == [0, 1]
    with pytest.raises(PhysaxError, match="`threshold`"):
        straight_through(latent, 1.5)
    with pytest.raises(PhysaxError, match="`density` must be real, but has dtype com"):
        straight_through(latent + 0j)
