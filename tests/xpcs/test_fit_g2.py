import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

from physax._checks import ArgumentError
from physax.xpcs import (
    AbstractDecay,
    Double,
    OneTime,
    Simple,
    Stretched,
    fit_g2,
    power_law,
)
from physax.xpcs._fit_g2 import _limits


pytestmark = pytest.mark.x64

LAGS = np.geomspace(0.01, 100, 80)
Q = np.array([0.003, 0.005, 0.008])
NOISE = 1e-3


def curves(decays, seed=0, noise=NOISE):
    clean = np.stack([1 + 0.2 * np.asarray(d(jnp.asarray(LAGS))) ** 2 for d in decays])
    drawn = np.random.default_rng(seed).standard_normal(clean.shape)
    return OneTime(LAGS, clean + noise * drawn, NOISE, Q)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("shape", "make"),
    [
        (Simple(), lambda tau: Simple(tau)),
        (Stretched(), lambda tau: Stretched(tau, 0.7)),
        (Double(), lambda tau: Double(tau, 30 * tau, 0.6)),
    ],
)
def test_relaxation_times_are_found_within_their_errors(shape, make):
    times = 1e-5 / Q**2  # diffusion: 1.1 s to 0.16 s
    found = fit_g2(curves([make(tau) for tau in times]), shape)
    assert all(r.success for r in found.results)
    # Three numbers beyond 4.5 standard errors: 2e-5.
    assert np.all(np.abs(found.tau - times) < 4.5 * found.tau_error)
    assert np.allclose(found.contrast, 0.2, atol=0.01)
    reduced = np.array([float(r.reduced_chi2) for r in found.results])
    assert np.all(np.abs(reduced - 1) < 4.5 * np.sqrt(2 / len(LAGS)))


def test_rates_of_diffusion_follow_the_square_of_the_wavevector():
    times = 1e-5 / Q**2
    found = fit_g2(curves([Simple(tau) for tau in times]), Simple())
    law = power_law(found.q, found.rate, found.rate_error)
    error = law.result.standard_errors[law.result.names.index("exponent")]
    assert abs(law.exponent - 2) < 4.5 * max(error, 1e-4)
    assert np.isclose(law.diffusion, 1e5, rtol=0.02)
    assert np.allclose(law(jnp.asarray(Q)), found.rate, rtol=0.02)


def test_numbers_of_each_curve_are_printed_with_their_errors():
    lines = str(fit_g2(curves([Simple(1.0), Simple(2.0), Simple(3.0)]))).splitlines()
    assert len(lines) == 3
    assert re.fullmatch(
        r"q 0.003: tau [01]\.\d{4} ± 0\.00\d\d, gamma [01]\.\d{4} ± 0\.00\d\d, "
        r"contrast 0\.\d{5} ± 0\.000\d\d, offset [01]\.\d{5} ± 0\.000\d\d, reduced "
        r"chi-square [01]\.\d+",
        lines[0],
    )


@pytest.mark.parametrize("gamma", [0.6, 1.0, 1.7])
@pytest.mark.parametrize(
    "make", [Simple, Stretched, lambda tau, gamma=1.0: Double(tau, 9 * tau, gamma / 2)]
)
def test_at_no_delay_nothing_depends_on_the_numbers_of_a_decay(make, gamma):
    def value(p, lags):
        return (make(p[0]) if make is Simple else make(*p))(lags)

    at, lags = jnp.array([0.3, gamma]), jnp.array([0.0, 0.1, 2.0])
    first = jax.jacrev(value)(at, lags)
    second = jax.jacfwd(jax.jacrev(value))(at, lags)
    assert value(at, lags)[0] == 1
    assert np.all(first[0] == 0)
    assert np.all(second[0] == 0)
    # At other delays they are as without the first.
    assert np.allclose(first[1:], jax.jacrev(value)(at, lags[1:]), rtol=1e-14)
    assert np.all(np.isfinite(second))


def stretched():
    return curves([Stretched(tau, 0.7) for tau in 1e-5 / Q**2])


def test_what_is_known_is_held():
    free, held = fit_g2(stretched()), fit_g2(stretched(), offset_bounds=(1.0, 1.0))
    assert np.all(held.offset == 1)
    errors = [[float(r.linear_errors[0]) for r in f.results] for f in (free, held)]
    assert np.all(np.array(errors[1]) < np.array(errors[0]))
    known = fit_g2(stretched(), Stretched(gamma=0.7), fixed=lambda d: d.gamma)
    assert [r.names for r in known.results] == [("tau",)] * 3
    assert all(d.gamma == 0.7 for d in known.decays)
    assert np.all(known.tau_error < free.tau_error)
    # A time that is given and held is not replaced by where a curve has fallen.
    times = fit_g2(stretched(), Stretched(0.2, 0.7), fixed=lambda d: d.tau)
    assert all(d.tau == 0.2 for d in times.decays)


def test_bounds_hold_and_times_start_within_them():
    found = fit_g2(
        stretched(),
        Stretched(gamma=0.6),
        bounds={"tau": (0.3, 0.6), "gamma": (0.5, 0.65)},
        contrast_bounds=(None, 0.19),
    )
    # They are 1.11 s, 0.4 s and 0.16 s.
    assert found.tau[0] == 0.6
    assert 0.3 < found.tau[1] < 0.6
    assert found.tau[2] == 0.3
    assert all(0.5 <= d.gamma <= 0.65 for d in found.decays)
    assert np.all(found.contrast <= 0.19)
    lines = str(found).splitlines()
    held = ["contrast 0.19 ± 0 (at a bound), offset" in line for line in lines]
    assert held == [True, True, False]
    # What is given is not at a bound.
    known = fit_g2(stretched(), Stretched(gamma=0.6), offset_bounds=(1.0, 1.0))
    assert str(known).count("offset 1 (fixed)") == 3
    assert "bound" not in str(known)
    # The half time of this curve is the default of `tau`, which was not given either.
    one = OneTime(LAGS, [1 + 0.2 * np.exp(-2 * LAGS / LAGS[40])], NOISE, Q[:1])
    above = fit_g2(one, Simple(LAGS[40]), bounds={"tau": (2 * LAGS[40], None)})
    assert np.isclose(above.tau[0], 2 * LAGS[40], rtol=1e-12, atol=0)


def test_where_no_bound_is_given_the_natural_one_stays():
    low, high = _limits(Stretched(), {"gamma": (None, 1.5)})
    assert (low.gamma, high.gamma) == (0.05, 1.5)
    assert low.tau > 0
    assert high.tau == np.inf


class Ballistic(AbstractDecay):
    """A decay of its own, whose drift has either sign."""

    tau: Float[Array, ""]
    drift: Float[Array, ""]

    def __call__(self, lags):
        return jnp.exp(-lags / self.tau - self.drift * lags)

    def scaled(self, time):
        return Ballistic(time, self.drift)


def test_numbers_of_a_decay_of_ones_own_may_be_negative():
    low, high = _limits(Ballistic(jnp.array(1.0), jnp.array(0.0)), {"tau": (0, None)})
    assert (low.tau, low.drift, high.drift) == (0, -np.inf, np.inf)


def test_bounds_of_one_number_leave_the_others():
    free = fit_g2(stretched())
    for bounds in ({"gamma": (0.5, 1.5)}, {"gamma": (None, 1.5)}):
        found = fit_g2(stretched(), bounds=bounds)
        assert np.allclose(found.tau, free.tau, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"contrast_bounds": 0.3},
            "`contrast_bounds` must be a lower and an upper bound, .* but is 0.3",
        ),
        (
            {"offset_bounds": (1.2, 0.9)},
            "`offset_bounds` must be in increasing order, but are 1.2 and 0.9. Give "
            "the lower one first",
        ),
        ({"offset_bounds": (None, np.nan)}, "`offset_bounds` must be .* nan"),
        ({"bounds": (Simple(), None)}, "`bounds` must name numbers of `decay`, such"),
        (
            {"bounds": {"fast": (0, 1)}},
            "must name numbers of `decay`, tau, gamma, but has 'fast'",
        ),
        ({"bounds": {"gamma": 0.5}}, r"`bounds\['gamma'\]` must be a lower and an up"),
        (
            {"bounds": {"gamma": (None, 0.5)}},
            "`start` must lie within `bounds`, but gamma is 1",
        ),
        ({"fixed": "gamma"}, "`fixed` must be a function"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(given, message):
    with pytest.raises(ArgumentError, match=message):
        inspect.unwrap(fit_g2)(stretched(), **given)


def test_a_held_time_is_no_relaxation_time():
    found = fit_g2(stretched(), Stretched(0.2, 0.7), fixed=lambda d: d.tau)
    with pytest.raises(ArgumentError, match=r"`fast` that is fitted .*gamma"):
        _ = found.tau


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        (lambda d: d.nope, "`fixed` must pick parameters .* AttributeError"),
        (lambda d: "c", "`fixed` must pick parameters of `start`, .* but picks str"),
        (lambda d: 2 * d.tau, "`fixed` must pick parameters .* TypeError"),
    ],
)
def test_what_picks_no_number_of_a_decay_is_refused(fixed, message):
    with pytest.raises(ArgumentError, match=message):
        fit_g2(stretched(), Stretched(0.2, 0.7), fixed=fixed)


def test_none_fixes_nothing_of_a_decay():
    free, none = (
        fit_g2(stretched(), Stretched(0.2, 0.7), fixed=fixed)
        for fixed in (None, lambda d: None)
    )
    np.testing.assert_array_equal(free.tau, none.tau)
