"""Fits of two-time maps: they find what was simulated, and say how well."""

import dataclasses
import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxWarning, fit
from physax._checks import ArgumentError
from physax._status import Status
from physax.fit import Mixing
from physax.xpcs import (
    Constant,
    Diffusion,
    Fourier,
    LaminarFlow,
    PerAngle,
    Shared,
    Shear,
    Static,
    TwoTime,
    WhiteNoise,
    fit_g2,
    fit_two_time,
    fitted_two_time,
    frame_range,
    one_time,
    select,
    simulate_two_time,
    two_time,
    two_time_problem,
)


pytestmark = pytest.mark.x64

Q, NOISE = 0.0054, 0.01
TIMES = 0.1 + 0.1 * np.arange(40)
PHI = np.deg2rad([-80.0, -10.0, 40.0])
CONTRAST = np.array([0.25, 0.27, 0.22])


def flow(convention="physical", factor=1.0):
    rate = 2e-3 if convention == "physical" else 4e-3
    return LaminarFlow(
        Diffusion(12000.0 * factor, -0.3 * factor, 300.0),
        Shear(rate * factor, -0.2, 0.0, -0.07),
        convention=convention,
    )


def hold(model):
    # What so few frames do not tell apart from the rest.
    return model.diffusion.D_offset, model.shear.offset, model.shear.beta


def measured(model, seed=0, noise=NOISE, contrast=CONTRAST):
    clean = np.array(two_time(model, TIMES, Q, PHI, contrast=contrast, offset=1.0))
    drawn = np.random.default_rng(seed).standard_normal(clean.shape)
    upper = np.triu(drawn * noise, 1)
    return TwoTime(clean + upper + upper.transpose(0, 2, 1), Q, PHI, TIMES, NOISE)


def chi2(fitted, data):
    """Computed anew from what the fit returned, without its own sums."""
    left = np.asarray(data.c2) - np.asarray(fitted_two_time(fitted, data))
    return np.sum((np.triu(left, 1) / NOISE) ** 2)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("convention", ["physical", "homodyne"])
def test_what_was_simulated_is_found_within_its_errors(convention):
    true = flow(convention)
    data = measured(true)
    found = fit_two_time(data, flow(convention, 1.3), fixed=hold)
    assert found.result.success
    expected = [12000.0, -0.3, np.asarray(true.shear.rate), -0.07]
    pulls = (found.result.values - jnp.asarray(expected)) / found.result.standard_errors
    # The chance that any of four leaves four standard errors is 3e-4.
    assert jnp.max(jnp.abs(pulls)) < 4
    errors = found.result.linear_errors[:3]
    assert jnp.max(jnp.abs(found.contrast - CONTRAST) / errors) < 4
    pairs = 3 * 40 * 39 // 2
    assert found.result.count == pairs
    assert np.isclose(found.result.chi2, chi2(found, data), rtol=1e-9)
    assert abs(found.result.reduced_chi2 - 1) < 4 * np.sqrt(2 / pairs)
    assert found.convention == convention


def test_a_perfect_map_is_reproduced():
    data = measured(flow(), noise=0.0)
    found = fit_two_time(data, flow(factor=1.2), fixed=hold)
    assert np.allclose(found.model.diffusion.D0, 12000, rtol=1e-9)
    assert np.allclose(found.contrast, CONTRAST, rtol=1e-9, atol=0)
    assert np.allclose(found.offset, 1, rtol=1e-9, atol=0)


@pytest.mark.parametrize(("dtype", "fill"), [(np.float32, 65535.0), (float, 1e20)])
def test_what_stands_at_masked_pairs_does_not_matter(dtype, fill):
    data = measured(flow())
    mask = np.ones((40, 40), bool)
    # The whole of the first frame, and the last one that the second frame has.
    mask[0] = mask[:, 0] = mask[1, 39] = mask[39, 1] = False
    c2 = np.asarray(data.c2, dtype)
    given = (
        TwoTime(values, Q, PHI, TIMES, NOISE, mask)
        for values in (c2, np.where(mask, c2, fill).astype(dtype))
    )
    clean, filled = (fit_two_time(one, flow(), fixed=hold).result for one in given)
    assert filled.success
    assert np.array_equal(filled.values, clean.values)
    assert np.array_equal(filled.linear, clean.linear)


def joint(data, scaling_rows):
    """The same fit with contrast and offset among the parameters, pair by pair."""
    first, second = np.triu_indices(data.frames, 1)
    seen = jnp.asarray(np.asarray(data.c2)[:, first, second].T)

    def residual(p, batch):
        i, j, seen = batch
        prepared = p["model"].prepare(data.times)
        take = lambda index: jax.tree.map(lambda x: x[index][:, None], prepared)  # noqa: E731
        factor = p["model"].factor(take(i), take(j), data.q, data.phi)
        contrast, offset = (
            jnp.asarray(scaling_rows) @ p[name] for name in ("contrast", "offset")
        )
        return (offset + contrast * factor - seen) / NOISE

    width = len(scaling_rows[0])
    start = {
        "model": flow(),
        "contrast": np.full(width, 0.2) if width == 3 else np.eye(width)[0] * 0.2,
        "offset": np.ones(width) if width == 3 else np.eye(width)[0],
    }
    return fit.least_squares(
        fit.LeastSquares(
            residual,
            start,
            (first, second, seen),
            fixed=lambda p: (p["model"].gap, hold(p["model"])),
            absolute_sigma=True,
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("scaling", [PerAngle(), Shared(), Fourier(1)])
def test_elimination_agrees_with_the_joint_fit(scaling):
    contrast = CONTRAST if not isinstance(scaling, Shared) else np.full(3, 0.25)
    data = measured(flow(), contrast=contrast)
    found = fit_two_time(data, flow(), scaling=scaling, fixed=hold).result
    rows = np.asarray(scaling.mixing(jnp.asarray(PHI)).rows)
    together = joint(data, rows)
    width = rows.shape[1]
    # In a dict, contrast comes first, then the model, then the offset.
    place = [*range(width), *range(width + 4, 2 * width + 4)]
    place += [*range(width, width + 4)]
    values = jnp.concatenate([found.linear, found.values])
    assert np.allclose(values, together.values[np.array(place)], rtol=1e-8)
    covariance = together.covariance[np.ix_(place, place)]
    scale = np.sqrt(np.diagonal(covariance))
    difference = (found.full_covariance - covariance) / scale / scale[:, None]
    assert np.max(np.abs(difference)) < 1e-7


def test_coefficients_of_waves_are_named():
    mixing = Fourier(2).mixing(np.linspace(-1, 2, 5))
    assert mixing.coefficients(["contrast"]) == (
        "contrast[mean]",
        "contrast[cos 1 phi]",
        "contrast[sin 1 phi]",
        "contrast[cos 2 phi]",
        "contrast[sin 2 phi]",
    )
    assert Fourier(0).mixing(np.zeros(5)).coefficients(["offset"]) == ("offset",)
    assert PerAngle().mixing(np.zeros(2)).coefficients("a") == ("a[0]", "a[1]")
    with pytest.raises(
        ArgumentError, match="one entry for each of 3 coefficients, but has 1"
    ):
        Mixing(np.eye(3), ["a"])


@pytest.mark.slow
def test_known_contrast_and_offset_are_no_parameters():
    data = measured(flow())
    found = fit_two_time(data, flow(), scaling=Constant(CONTRAST), fixed=hold)
    assert np.array_equal(found.contrast, CONTRAST)
    assert np.all(found.result.linear_errors == 0)
    free = fit_two_time(data, flow(), fixed=hold)
    assert jnp.all(found.result.standard_errors < free.result.standard_errors)


def test_contrast_ends_at_its_bound():
    data = measured(flow())
    found = fit_two_time(data, flow(), fixed=hold, contrast_bounds=(0.0, 0.26))
    assert found.result.success
    assert np.allclose(found.contrast[1], 0.26, atol=1e-15)
    assert jnp.all(found.contrast <= 0.26)
    free = fit_two_time(data, flow(), fixed=hold)
    assert found.result.chi2 > free.result.chi2


@pytest.mark.slow
def test_masked_pairs_and_the_lower_triangle_are_not_read():
    data = measured(flow())
    expected = fit_two_time(data, flow(), fixed=hold).result.values
    lower = np.array(data.c2)
    lower[:, *np.tril_indices(40)] = 7.0
    below = TwoTime(lower, Q, PHI, TIMES, NOISE)
    assert np.array_equal(
        fit_two_time(below, flow(), fixed=hold).result.values, expected
    )
    mask = np.ones((40, 40), bool)
    mask[3, 17] = mask[17, 3] = False
    broken = np.array(data.c2)
    broken[:, 3, 17] = broken[:, 17, 3] = np.nan
    masked = TwoTime(broken, Q, PHI, TIMES, NOISE, mask)
    found = fit_two_time(masked, flow(), fixed=hold).result
    assert found.count == 3 * (40 * 39 // 2 - 1)
    assert jnp.max(jnp.abs(found.values - expected) / found.standard_errors) < 0.5


@pytest.mark.slow
def test_errors_of_each_value_weight_it():
    data = measured(flow())
    whole = eqx.tree_at(lambda d: d.sigma, data, jnp.full(data.c2.shape, NOISE))
    found = fit_two_time(whole, flow(), fixed=hold).result
    expected = fit_two_time(data, flow(), fixed=hold).result
    assert np.allclose(found.values, expected.values, rtol=1e-9)
    assert np.isclose(found.chi2, expected.chi2, rtol=1e-11)


@pytest.mark.slow
def test_flow_across_all_wavevectors_is_not_determined():
    # cos(phi - phi0) = 0: nothing of the shear reaches the maps.
    model = LaminarFlow(Diffusion(12000.0, -0.3, 300.0), Shear(2e-3, 0.0, 0.0, 0.0))
    phi = np.array([np.pi / 2])
    c2 = two_time(model, TIMES, Q, phi, contrast=0.25, offset=1.0)
    found = fit_two_time(
        TwoTime(c2, Q, phi, TIMES, NOISE),
        model,
        fixed=lambda m: (m.diffusion.D_offset, m.shear.offset, m.shear.beta),
    ).result
    assert found.status == Status.UNDETERMINED
    assert not found.success


def test_static_maps_of_many_wavevectors_fit_in_one_batch():
    model = Static(Diffusion(9000.0, 0.0))
    q = np.array([0.004, 0.006])
    data = [
        TwoTime(
            two_time(model, TIMES, k, np.zeros(1), contrast=0.2, offset=1.0),
            k,
            0.0,
            TIMES,
        )
        for k in q
    ]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *data)
    start = Static(Diffusion(5000.0, 0.0))

    def fitted(data):
        return fit_two_time(
            data, start, fixed=lambda m: (m.diffusion.alpha, m.diffusion.D_offset)
        )

    found = jax.jit(jax.vmap(fitted))(stacked)
    assert np.allclose(found.model.diffusion.D0, 9000, rtol=1e-8)
    each = [str(jax.tree.map(lambda x, i=i: x[i], found)) for i in (0, 1)]
    assert all(text.endswith("  contrast: 0.2\n  offset: 1") for text in each)
    assert str(found) == f"fit 0: {each[0]}\nfit 1: {each[1]}"


@pytest.mark.slow
def test_a_direction_stays_within_its_bounds():
    far = eqx.tree_at(lambda m: m.shear.phi0, flow(), flow().shear.phi0 + np.pi)
    data = measured(flow())
    none = jax.tree.map(lambda x: jnp.inf, far)
    high = eqx.tree_at(lambda m: m.shear.phi0, none, 5.0)
    low = eqx.tree_at(lambda m: m.shear.phi0, jax.tree.map(lambda x: -x, none), 2.0)
    free = fit_two_time(data, far, fixed=hold)
    assert abs(free.model.shear.phi0) < 1
    bounded = fit_two_time(data, far, fixed=hold, bounds=(low, high))
    assert bounded.model.shear.phi0 == bounded.result.parameters.shear.phi0 > 2
    fixed = fit_two_time(data, far, fixed=lambda m: (hold(m), m.shear.phi0))
    assert fixed.model.shear.phi0 == far.shear.phi0


def test_what_no_fit_can_do_is_said_at_once():
    data = measured(flow())
    with pytest.raises(ArgumentError, match="`contrast` must be .* has shape"):
        fit_two_time(data, flow(), scaling=Constant(np.array([0.2, 0.3])))
    with pytest.raises(ArgumentError, match="`start` must have a free parameter"):
        fit_two_time(data, flow(), fixed=lambda m: m)
    with pytest.raises(ArgumentError, match="`contrast_bounds` must be .* 1 and 0.3"):
        fit_two_time(data, flow(), contrast_bounds=(1.0, 0.3))
    with pytest.raises(ArgumentError, match="`offset_bounds` must be .* 2 and 0.5"):
        fit_two_time(data, flow(), offset_bounds=(2.0, 0.5))
    few = TwoTime(data.c2[:, :2, :2], Q, data.phi, data.times[:2])
    message = "as there are parameters, 10 with .*, but has 3 pairs of"
    with pytest.raises(ArgumentError, match=message):
        fit_two_time(few, flow(), fixed=hold)
    dark = np.zeros(data.c2.shape[1:], bool)
    dark[0, :9] = dark[:9, 0] = True
    most = TwoTime(data.c2, Q, data.phi, data.times, mask=dark)
    fit_two_time(most, flow(), fixed=hold)
    known = Constant(CONTRAST)
    fit_two_time(few, flow(), scaling=known, fixed=lambda m: (m.diffusion, hold(m)))
    dark[0, 4:] = dark[4:, 0] = False
    fewer = TwoTime(data.c2, Q, data.phi, data.times, mask=dark)
    with pytest.raises(ArgumentError, match="10 with .* but has 9 pairs"):
        fit_two_time(fewer, flow(), fixed=hold)
    turn = TwoTime(data.c2[:3], Q, np.array([-np.pi, 0.5, np.pi]), data.times)
    with pytest.raises(ArgumentError, match="at most 0 for 2 different angles"):
        fit_two_time(turn, flow(), scaling=Fourier(1))
    # What annotations tell a type checker, told to all.
    problem = inspect.unwrap(two_time_problem)
    with pytest.raises(ArgumentError, match="`data` must be a `TwoTime`, but is an "):
        problem(data.c2, flow())
    with pytest.raises(ArgumentError, match="`model` must be an `AbstractCorrelation`"):
        problem(data, "diffusion")
    with pytest.raises(ArgumentError, match="`D0` must be numbers, but holds booleans"):
        Diffusion(True, 0.0)


@pytest.mark.slow
def test_derivative_with_respect_to_the_data_is_that_of_differences():
    data = measured(flow())
    way = np.random.default_rng(3).standard_normal(data.c2.shape)
    way = jnp.asarray(way + way.transpose(0, 2, 1))

    def rate(step):
        moved = eqx.tree_at(lambda d: d.c2, data, data.c2 + step * way)
        return fit_two_time(moved, flow(), fixed=hold).model.shear.rate

    size = 1e-4
    slope = (rate(size) - rate(-size)) / (2 * size)
    exact = jax.jvp(rate, (jnp.zeros(()),), (jnp.ones(()),))[1]
    assert np.isclose(exact, slope, rtol=1e-5)


def test_diffusion_of_the_other_sign_is_told_of():
    true, given = (
        Static(Diffusion(1e4, 0.0)),
        {"contrast": 0.3, "key": jax.random.key(1)},
    )
    data = simulate_two_time(true, TIMES, Q, 0.0, noise=WhiteNoise(1e-3), **given)
    options = {"fixed": lambda m: (m.diffusion.D0, m.diffusion.alpha)}
    with pytest.warns(PhysaxWarning, match="its integral over the frames is -3"):
        found = fit_two_time(
            data, Static(Diffusion(0.0, 0.0, -9e3)), progress=False, **options
        )
    assert float(found.model.diffusion.D_offset) == pytest.approx(-1e4, rel=1e-2)
    fit_two_time(data, Static(Diffusion(0.0, 0.0, 9e3)), progress=False, **options)


@pytest.mark.slow
@pytest.mark.parametrize("start", [3e2, 5e4, 1e6])
def test_diffusion_does_not_change_its_sign(start):
    # Maps hold its size alone, and from far above a step leads across 0.
    times = 0.1 * np.arange(30)
    data = simulate_two_time(
        Static(Diffusion(1e4, 0.0)),
        times,
        0.0054,
        0.0,
        contrast=0.3,
        key=jax.random.key(1),
        noise=WhiteNoise(1e-3),
    )
    found = fit_two_time(
        data,
        Static(Diffusion(start, 0.0)),
        fixed=lambda m: m.diffusion.D_offset,
        progress=False,
    )
    assert found.result.status == Status.CONVERGED
    assert float(found.model.diffusion.D0) == pytest.approx(1e4, rel=1e-2)


def test_exponents_stay_where_integrals_from_time_zero_exist():
    # Without a bound the search steps to D0 = 0 and alpha = -1.17: there chi-square has
    # no slope, as every other D0 makes it infinite.
    true = LaminarFlow(Diffusion(9000.0, -0.3), Shear(2e-3, -0.1, 0.0, 0.2), 2e6)
    angles = np.deg2rad([-60.0, -20.0, 20.0, 60.0])
    data = simulate_two_time(
        *(true, 0.1 * np.arange(50), Q, angles),
        contrast=0.2,
        key=jax.random.key(0),
        noise=WhiteNoise(NOISE),
    )
    start = LaminarFlow(Diffusion(12000.0, -0.1), Shear(3e-3), 2e6)
    offsets = lambda m: (m.diffusion.D_offset, m.shear.offset)  # noqa: E731
    found = fit_two_time(data, start, fixed=offsets).result
    assert found.success
    assert not found.active.any()
    pulls = (found.values - np.array([9000, -0.3, 2e-3, -0.1, 0.2])) / (
        found.standard_errors
    )
    assert np.abs(pulls).max() < 4


@pytest.mark.parametrize("times", [1, 5])
def test_a_poor_fit_of_flow_hints_at_other_starts(times):
    data = measured(flow())
    data = eqx.tree_at(lambda d: d.sigma, data, data.sigma / times)
    found = fit_two_time(data, flow(factor=1.05), fixed=hold)
    assert found.result.success
    assert ("`initial_models`, or use" in str(found)) == (times > 1)


@pytest.mark.parametrize("noise", [0.002, 0.03])
def test_errors_of_maps_without_sigma_follow_from_their_residuals(noise):
    maps = measured(flow(), noise=noise)
    plain = TwoTime(maps.c2, Q, PHI, TIMES)
    part = select(plain, [(-2.0, 2.0)])
    assert not frame_range(part, 3, 9).sigma_is_known
    stated = TwoTime(maps.c2, Q, PHI, TIMES, noise)
    known, found = (fit_two_time(x, flow(), fixed=hold).result for x in (stated, part))
    assert np.allclose(found.values, known.values, rtol=1e-9)
    assert np.allclose(found.standard_errors, known.standard_errors, rtol=0.03)
    # Those of a number that nobody has measured are not.
    given = fit_two_time(part, flow(), fixed=hold, absolute_sigma=True).result
    assert np.allclose(
        given.standard_errors * noise / 0.01, known.standard_errors, rtol=0.03
    )


def test_parts_keep_a_relative_sigma():
    maps = measured(flow(), noise=0.01)
    sigma = 0.01 * (1 + np.arange(maps.c2.size).reshape(maps.c2.shape) % 7)
    data = TwoTime(maps.c2, Q, PHI, TIMES, sigma, sigma_is_known=False)
    part = frame_range(select(data, [(-2.0, 2.0)]), 3, 9)
    inside = (PHI >= -2) & (PHI <= 2)
    assert not part.sigma_is_known
    assert np.array_equal(part.sigma, sigma[inside, 2:9, 2:9])


def test_errors_of_one_time_curves_of_unknown_noise_follow_from_their_residuals():
    maps = measured(Static(Diffusion(12000.0)), noise=0.003)
    plain = TwoTime(maps.c2, Q, PHI, TIMES)
    stated = dataclasses.replace(plain, sigma=0.003, sigma_is_known=True)
    assert not dataclasses.replace(plain, mask=None).sigma_is_known
    known, found = (fit_g2(one_time(data)) for data in (stated, plain))
    for one, other in zip(known.results, found.results, strict=True):
        ratio = np.asarray(other.standard_errors / one.standard_errors)
        assert np.allclose(ratio, np.sqrt(one.reduced_chi2), rtol=1e-3)
        assert 0.5 < ratio.min() < ratio.max() < 2
