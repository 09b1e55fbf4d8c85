import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

from physax import ArgumentError, xpcs
from physax.xpcs._quotients import sinc_of_difference, sinhc


X64 = jnp.result_type(float) == jnp.float64
TIMES = jnp.arange(40) * 0.1


class Ripple(xpcs.AbstractNumericalTransport):
    """A transport of a user: only the rate is known."""

    height: Float[Array, ""]

    def __call__(self, t):
        return 1 + self.height * jnp.sin(t) ** 2


class Since(Ripple):
    """A rate that takes the times for those of all frames."""

    def __call__(self, t):
        return self.height * jnp.exp(-(t - t[0]))


def test_a_rate_is_asked_for_one_time():
    with pytest.raises(IndexError, match="0-dimensional"):
        Since(jnp.asarray(1.0)).cumulative(TIMES)


@pytest.mark.parametrize("alpha", [-1.5, -1.0, -0.999999, -0.7, 0.0, 0.5, 2.0])
def test_integral_of_a_power_is_exact(alpha):
    times = TIMES[1:]
    found = xpcs.Diffusion(3.0, alpha, 2.0).cumulative(times)
    t = np.asarray(times, float)
    n = alpha + 1
    power = np.log(t / t[0]) if n == 0 else (t**n - t[0] ** n) / n
    # The textbook form itself loses digits near n = 0.
    rtol = (1e-9 if 0 < abs(n) < 1e-3 else 1e-13) if X64 else 2e-6
    np.testing.assert_allclose(found, 3 * power + 2 * (t - t[0]), rtol=rtol, atol=1e-6)
    assert found.dtype == times.dtype


def test_first_interval_begins_at_time_zero():
    found = xpcs.Diffusion(1.0, -0.7).cumulative(TIMES)
    np.testing.assert_allclose(found, TIMES**0.3 / 0.3, rtol=1e-13 if X64 else 2e-6)
    # Of the notes: 1.67 in the first 0.1 s, for which the trapezoid gives 0.66.
    assert float(found[1]) == pytest.approx(1.67, abs=0.005)
    rough = xpcs.Diffusion(1.0, -0.7, quadrature="trapezoid").cumulative(TIMES)
    assert float(rough[1]) == pytest.approx(0.658, abs=0.001)


@pytest.mark.x64
@pytest.mark.parametrize("kind", [xpcs.Diffusion, xpcs.Shear])
def test_trapezoid_is_of_order_2(kind):
    def error(frames):
        times = jnp.linspace(0.1, 2.0, frames)
        rough = kind(1.0, -1.2, 0.3, quadrature="trapezoid").cumulative(times)[-1]
        return abs(float(rough - kind(1.0, -1.2, 0.3).cumulative(times)[-1]))

    assert np.log2(error(201) / error(401)) == pytest.approx(2, abs=0.02)


@pytest.mark.parametrize("alpha", [-1.0, -1.0 + 1e-7, -0.6, 1.0])
def test_gradient_passes_through_alpha_of_minus_one(alpha):
    def last(alpha):
        return xpcs.Diffusion(2.0, alpha).cumulative(TIMES[1:])[-1]

    # d/dn of the integral of t^(n-1), from the integral of t^alpha ln t by Gauss.
    nodes, weights = np.polynomial.legendre.leggauss(60)
    a, b = np.log(float(TIMES[1])), np.log(float(TIMES[-1]))
    u = a + (b - a) * (nodes + 1) / 2
    exact = 2 * np.sum(weights * np.exp((alpha + 1) * u) * u) * (b - a) / 2
    rtol = 1e-12 if X64 else 1e-5
    slope = jax.jit(jax.grad(last))(jnp.asarray(alpha, float))
    np.testing.assert_allclose(slope, exact, rtol=rtol)


@pytest.mark.x64
def test_second_derivatives_are_right_at_zero():
    # sinhc'' = 1/3 and sinc'' = -1/3, where both quotients are 0 / 0.
    zero = jnp.array(0.0)
    assert jax.jit(jax.grad(jax.grad(sinhc)))(zero) == pytest.approx(1 / 3, abs=1e-15)
    second = jax.jit(jax.grad(jax.grad(sinc_of_difference, 1), 1))(zero, zero)
    assert second == pytest.approx(-1 / 3, abs=1e-15)


@pytest.mark.x64
def test_quotients_and_slopes_are_smooth_where_series_end():
    below, above = jnp.array(0.5 - 1e-13), jnp.array(0.5 + 1e-13)
    for quotient in (sinhc, lambda x: sinc_of_difference(jnp.array(0.3), 0.3 + x)):
        for f in (quotient, jax.grad(quotient), jax.grad(jax.grad(quotient))):
            f = jax.jit(f)
            assert float(f(below)) == pytest.approx(float(f(above)), abs=2e-12)


def test_transport_of_a_user_needs_its_rate_only():
    transport = Ripple(jnp.array(2.0))
    t = np.asarray(TIMES, float)
    exact = t + 2 * (t / 2 - np.sin(2 * t) / 4)
    found = eqx.filter_jit(transport.cumulative)(TIMES)
    np.testing.assert_allclose(found, exact, rtol=1e-12 if X64 else 1e-6)


@pytest.mark.parametrize("kind", [xpcs.Diffusion, xpcs.Shear])
def test_divergent_integral_is_refused_on_the_host_and_nan_under_jit(kind):
    name = "alpha" if kind is xpcs.Diffusion else "beta"
    transport = kind(1.0, -1.2)
    with pytest.raises(
        ArgumentError, match=rf"`{name}` must be above -1 .*but is -1.2"
    ):
        transport.cumulative(TIMES)
    found = eqx.filter_jit(transport.cumulative)(TIMES)
    assert bool(jnp.all(jnp.isnan(found[1:])))
    # Neither later times, nor the trapezoid, nor a process that is off diverge.
    for fine in (
        transport.cumulative(TIMES[1:]),
        kind(1.0, -1.2, quadrature="trapezoid").cumulative(TIMES),
        kind(0.0, -1.2).cumulative(TIMES),
    ):
        assert bool(jnp.all(jnp.isfinite(fine)))


def test_gradient_is_finite_with_time_zero():
    @jax.jit
    @jax.grad
    def slope(transport):
        return transport.cumulative(TIMES)[-1]

    for alpha in (-0.7, 0.0, 0.5):
        slopes = slope(xpcs.Diffusion(2.0, alpha, 1.0))
        assert all(bool(jnp.isfinite(x)) for x in jax.tree.leaves(slopes))


@pytest.mark.f32
@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([-1.0, 0.0], "`times` must not be negative, but is -1"),
        ([0.0, 2.0, 1.0], "`times` must increase from frame to frame, but is 1"),
    ],
)
def test_bad_times_are_refused(times, message):
    with pytest.raises(ArgumentError, match=message):
        xpcs.Diffusion(1.0).cumulative(np.array(times))


@pytest.mark.f32
@pytest.mark.parametrize("kind", [xpcs.Diffusion, xpcs.Shear])
def test_unknown_quadrature_is_refused(kind):
    with pytest.raises(ArgumentError, match="`quadrature` must be .* but is 'simpson'"):
        kind(1.0, quadrature="simpson")
