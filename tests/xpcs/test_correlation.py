import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, fit, xpcs
from physax.xpcs import _correlation


X64 = jnp.result_type(float) == jnp.float64
TOLERANCE = 1e-10 if X64 else 1e-5
Q = 0.0054
GAP = 2e6
TIMES = jnp.arange(1, 31) * 0.1


def laminar(p=(12000.0, -0.35, 150.0, 3e-3, -0.2, 2e-4, -0.07), convention="physical"):
    return xpcs.LaminarFlow(xpcs.Diffusion(*p[:3]), xpcs.Shear(*p[3:]), GAP, convention)


def test_constant_diffusion_decays_exponentially():
    lags = np.linspace(0, 3, 7)
    model = xpcs.Static(xpcs.Diffusion(2e4))
    found = xpcs.g2(model, lags, Q, contrast=0.3, offset=1.1, age=0.7)
    exact = 1.1 + 0.3 * np.exp(-(Q**2) * 2e4 * lags)
    np.testing.assert_allclose(found, exact, atol=TOLERANCE)
    assert found.dtype == jnp.result_type(float)


@pytest.mark.parametrize(
    ("convention", "scale", "power"),
    [("physical", 0.5, 2), ("homodyne", 0.5 / np.pi, 4)],
)
def test_constant_shear_gives_the_quotient_of_its_convention(convention, scale, power):
    lags, phi = np.linspace(0, 3, 13), np.array([0.1, 1.0, 2.5])[:, None]
    model = laminar((0.0, 0.0, 0.0, 6e-4, 0.0, 0.0, 0.3), convention)
    found = xpcs.g2(model, lags, Q, phi, contrast=1.0, offset=0.0, age=2.0)
    x = scale * Q * GAP * np.cos(phi - 0.3) * 6e-4 * lags
    # numpy's sinc has pi in its argument.
    np.testing.assert_allclose(found, np.sinc(x / np.pi) ** power, atol=TOLERANCE)


def test_whole_maps_hold_the_values_of_pairs():
    model = laminar()
    q, phi = np.array([Q, 2 * Q]), np.array([0.0, 1.0])
    maps = xpcs.two_time(model, TIMES, q, phi, contrast=0.3, offset=np.array([1, 1.1]))
    assert maps.shape == (2, 30, 30)
    np.testing.assert_allclose(maps, maps.swapaxes(1, 2), rtol=1e-6)
    pairs = xpcs.c2(
        model, TIMES[:, None], TIMES, q[1], phi[1], contrast=0.3, offset=1.1
    )
    np.testing.assert_allclose(maps[1], pairs, atol=2e-14 if X64 else 3e-6)
    np.testing.assert_allclose(
        xpcs.g1(model, TIMES, TIMES[3], Q), jnp.sqrt((maps[0, 3] - 1) / 0.3), atol=1e-3
    )


def test_opposite_flow_looks_the_same():
    p = (12000.0, -0.35, 150.0, 3e-3, -0.2, 2e-4, -0.07)
    maps = xpcs.two_time(laminar(p), TIMES, Q, 0.4)
    for other in ((*p[:6], p[6] + np.pi), (*p[:3], -p[3], p[4], -p[5], p[6])):
        again = xpcs.two_time(laminar(other), TIMES, Q, 0.4)
        np.testing.assert_allclose(again, maps, atol=1e-13 if X64 else 1e-5)


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.parametrize("convention", ["physical", "homodyne"])
def test_gradient_agrees_with_finite_differences(convention):
    # Along a direction that changes every parameter by some parts of it.
    p = jnp.array([12000.0, -0.35, 150.0, 3e-3, -0.2, 2e-4, -0.07])
    direction = p * jnp.array([0.3, -0.5, 0.7, 0.2, 0.4, -0.6, 0.5])
    weights = jax.random.normal(jax.random.key(0), (2, 30, 30))

    @jax.jit
    def total(p):
        model = laminar(p, convention)
        return jnp.sum(weights * xpcs.two_time(model, TIMES, Q, jnp.array([0.0, 0.9])))

    h = 1e-5
    slope = (total(p + h * direction) - total(p - h * direction)) / (2 * h)
    assert jax.jit(jax.grad(total))(p) @ direction == pytest.approx(
        float(slope), rel=1e-7
    )
    forward = jax.jit(lambda h: jax.jvp(total, (p,), (h,))[1])(direction)
    assert float(forward) == pytest.approx(float(slope), rel=1e-7)


def test_batches_of_models_and_blocks_of_rows():
    # As a fit calls it: rows of a map, derivatives in seven directions at once.
    p = jnp.array([12000.0, -0.35, 150.0, 3e-3, -0.2, 2e-4, -0.07])

    @jax.jit
    def rows(p):
        model = laminar(p)
        prepared = model.prepare(TIMES)
        first = jax.tree.map(lambda x: x[4:9, None], prepared)
        second = jax.tree.map(lambda x: x[None], prepared)
        return model.factor(first, second, Q, 0.4)

    along = jax.jit(jax.vmap(lambda d: jax.jvp(rows, (p,), (d,))[1]))
    tangents = along(jnp.diag(p))
    assert tangents.shape == (7, 5, 30)
    assert bool(jnp.all(jnp.isfinite(tangents)))
    batch = jax.vmap(rows)(jnp.stack([p, 1.1 * p]))
    whole = xpcs.two_time(laminar(), TIMES, Q, 0.4, contrast=1.0, offset=0.0)
    np.testing.assert_allclose(batch[0], whole[0, 4:9], atol=1e-6)


@pytest.mark.f32
@pytest.mark.parametrize("times", [np.array([0.2, 0.5]), TIMES[1:5:3]])
@pytest.mark.parametrize("evaluate", [xpcs.g1, xpcs.c2])
def test_known_times_of_a_compiled_function(evaluate, times):
    def values(rate, times):
        model = xpcs.LaminarFlow(xpcs.Diffusion(rate), xpcs.Shear(3e-3), GAP)
        return evaluate(model, 0.0, times, Q)

    expected = values(12000.0, times)
    found = jax.jit(lambda rate: values(rate, times))(12000.0)
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE)
    slope = jax.jit(jax.jacfwd(lambda rate: values(rate, times)))(12000.0)
    assert np.all(np.asarray(slope) < 0)
    with pytest.raises(ArgumentError, match="`times` must not be negative, but is -1"):
        jax.jit(lambda rate: values(rate, -1.0))(12000.0)


@pytest.mark.x64
def test_pairs_of_times_are_fitted_by_least_squares():
    late = np.array([0.1, 0.4, 0.9])

    def model(p, late):
        found = xpcs.Static(xpcs.Diffusion(p["D0"]))
        return xpcs.c2(found, np.zeros(3), late, Q, contrast=p["contrast"])

    values = model({"D0": 12000.0, "contrast": 0.3}, late)
    problem = fit.LeastSquares(
        lambda p, c2: model(p, late) - c2, {"D0": 9000.0, "contrast": 0.2}, values
    )
    found = fit.least_squares(problem).parameters
    assert float(found["D0"]) == pytest.approx(12000.0, rel=1e-6)


def test_float32_keeps_five_digits_of_long_maps():
    # 2000 frames, 6 turns of the shear argument, decays of all lengths.
    model = laminar((2000.0, -0.35, 15.0, 3e-5, -0.2, 2e-6, -0.07))
    times = np.arange(2000) * 0.1
    found = xpcs.two_time(model, times, Q, 0.4, contrast=1.0)[0, ::97]
    t = times
    spread = 2000 * t**0.65 / 0.65 + 15 * t
    strain = 3e-5 * t**0.8 / 0.8 + 2e-6 * t
    pairs = np.ix_(np.arange(0, 2000, 97), np.arange(2000))
    x = Q * GAP * np.cos(0.47) * np.subtract.outer(strain, strain)[pairs] / 2
    s = np.abs(np.subtract.outer(spread, spread)[pairs])
    exact = 1 + np.exp(-(Q**2) * s) * np.sinc(x / np.pi) ** 2
    np.testing.assert_allclose(found, exact, atol=1e-5)


def test_converted_rate_agrees_for_small_arguments_only():
    rate = 1e-6
    there = xpcs.convert_rate(rate, "physical", "homodyne")
    assert float(there) == pytest.approx(rate * np.pi / np.sqrt(2), rel=1e-6)
    back = xpcs.convert_rate(there, "homodyne", "physical")
    assert float(back) == pytest.approx(rate, rel=1e-6)
    p = (0.0, 0.0, 0.0, rate, 0.0, 0.0, 0.0)
    other = (*p[:3], float(there), *p[4:])
    for lag, close in ((20.0, True), (500.0, False)):
        a = xpcs.g2(laminar(p), lag, Q)
        b = xpcs.g2(laminar(other, "homodyne"), lag, Q)
        assert (abs(float(a - b)) < 1e-4) == close


class Wave(xpcs.AbstractCorrelation):
    """A model of a user."""

    speed: jax.Array

    def prepare(self, times):
        return {"way": self.speed * times}

    def factor(self, first, second, q, phi):
        return jnp.cos(q * jnp.cos(phi) * (second["way"] - first["way"])) ** 2


def test_model_of_a_user_works_everywhere():
    model = Wave(jnp.array(100.0))
    maps = eqx.filter_jit(xpcs.two_time)(model, TIMES, Q, offset=0.0)
    found = xpcs.c2(model, TIMES[3], TIMES[7], Q, offset=0.0)
    assert float(maps[0, 3, 7]) == pytest.approx(float(found), abs=1e-6)


@pytest.mark.f32
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: laminar(convention="both"), "`convention` must be .* but is 'both'"),
        (
            lambda: xpcs.LaminarFlow(xpcs.Diffusion(1.0), xpcs.Shear(1.0), 0.0),
            "`gap` must be positive, but is 0",
        ),
        (
            lambda: xpcs.convert_rate(1.0, "physical", "other"),
            "`target` must be .* but is 'other'",
        ),
        (
            lambda: xpcs.two_time(laminar(), TIMES, -Q),
            "`q` must be positive, but is -0.0054",
        ),
        (
            lambda: xpcs.two_time(laminar(), TIMES, np.full(3, Q), np.zeros(2)),
            r"`phi` must be one number or one for each of the 3 maps, but has shape",
        ),
        (
            lambda: xpcs.g1(laminar(), 0.0, 1.0, Q, 90.0),
            "`phi` must be in radians, .*, but is 90",
        ),
        (
            lambda: xpcs.two_time(laminar(), TIMES, Q, 90.0),
            "`phi` must be in radians, .*, but is 90",
        ),
        (
            lambda: xpcs.c2(laminar(), -1.0, 1.0, Q),
            "`times` must not be negative, but is -1",
        ),
        (
            lambda: xpcs.g2(laminar((1.0, -1.5, 0, 0, 0, 0, 0)), 1.0, Q),
            "`alpha` must be above -1",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda m: inspect.unwrap(xpcs.g1)(m, 0.1, 0.2, 0.01), "model"),
        (lambda m: inspect.unwrap(xpcs.c2)(m, 0.1, 0.2, 0.01), "model"),
        (lambda m: inspect.unwrap(xpcs.two_time)(m, TIMES, 0.01, 0.0), "model"),
        (_correlation._transport, "diffusion"),
        (_correlation._shear, "shear"),
    ],
)
@pytest.mark.parametrize("model", [{"D0": 1.0}, 1.0, xpcs.Static])
def test_what_is_no_model_is_refused_by_its_name(call, name, model):
    with pytest.raises(ArgumentError, match=f"`{name}` must be an? `.*, but is "):
        call(model)


def test_no_frames_make_an_empty_map():
    found = xpcs.two_time(laminar(), np.zeros(0), np.array([Q, 2 * Q]))
    assert found.shape == (2, 0, 0)
    assert found.dtype == jnp.result_type(float)
