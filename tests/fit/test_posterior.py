"""Draws from posteriors that are known."""

import signal
import sys
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from physax._checks import ArgumentError
from physax._status import RunError, Status
from physax.fit import (
    Huber,
    KnownSigma,
    LeastSquares,
    LogNormal,
    MissingExtraError,
    Normal,
    Separable,
    UnknownSigma,
    _posterior,
    least_squares,
    profile_likelihood,
    sample_posterior,
    target_of,
    to_arviz,
)
from physax.fit._unconstrain import Unconstrain
from physax.runtime import Checkpointing, FingerprintError
from tests.fit.decays import SIGMA, X, Y, problem


# Compiling a sampler takes seconds.

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def line():
    """A straight line with a prior on its slope: the posterior is normal."""

    def residual(p, data):
        x, y = data
        return (p["c"] + p["m"] * x - y) / SIGMA

    y = 0.3 + 0.7 * X + SIGMA * np.random.default_rng(2).normal(size=X.size)
    made = LeastSquares(residual, {"c": 0.0, "m": 0.0}, (X, y), absolute_sigma=True)
    priors = {"c": None, "m": Normal(0.72, 0.002)}
    posterior = sample_posterior(
        made, least_squares(made), key=KEY, priors=priors, progress=False
    )
    rows = np.stack([np.ones_like(X), X], axis=1) / SIGMA
    rows = np.vstack([rows, [0, 1 / 0.002]])
    covariance = np.linalg.inv(rows.T @ rows)
    mean = covariance @ rows.T @ np.append(y / SIGMA, 0.72 / 0.002)
    return posterior, mean, covariance


def test_a_normal_posterior_is_exact(line):
    posterior, mean, covariance = line
    assert posterior.ok, str(posterior)
    errors = np.sqrt(np.diag(covariance))
    # Four Monte-Carlo errors, with the effective number of draws.
    off = (posterior.mean - mean) / errors * np.sqrt(posterior.bulk_ess)
    assert np.abs(off).max() < 4
    wide = (posterior.deviation / errors - 1) * np.sqrt(2 * posterior.tail_ess)
    assert np.abs(wide).max() < 4
    flat = posterior.samples.reshape(-1, 2)
    found = np.corrcoef(flat.T)[0, 1]
    expected = covariance[0, 1] / errors.prod()
    assert abs(found - expected) < 0.05


def test_whitening_makes_short_trees(line):
    # In standard coordinates a tree of depth 2 or 3 goes from one end to the other.
    assert line[0].steps.mean() < 8
    assert line[0].acceptance.mean() > 0.75


def test_draws_go_to_arviz(line):
    pytest.importorskip("arviz", exc_type=ImportError)
    with warnings.catch_warnings():
        # The older ArviZ announces the newer one.
        warnings.simplefilter("ignore")
        data = to_arviz(line[0])
    assert data["posterior"]["m"].shape == (4, 1000)
    np.testing.assert_array_equal(data["posterior"]["c"], line[0].samples[..., 0])
    assert int(data["sample_stats"]["diverging"].sum()) == 0


@pytest.fixture(scope="module")
def decay_draws():
    result = least_squares(problem(), throw=True)
    return result, sample_posterior(problem(), result, key=KEY, progress=False)


@pytest.mark.slow
def test_a_decay_agrees_with_its_profile(decay_draws):
    result, posterior = decay_draws
    assert posterior.ok, str(posterior)
    ends = posterior.quantiles(0.95)
    for place, name in enumerate(result.names):
        profile = profile_likelihood(problem(), result, name)
        error = float(result.standard_errors[place])
        # Quantiles of 2.5 % have a Monte-Carlo error of some 0.05 deviations.
        assert np.abs(ends[:, place] - [profile.low, profile.high]).max() < 0.15 * error
    # The deviation of the residuals is that of the noise, within 3 of its errors.
    assert abs(posterior.sigma.mean() / SIGMA - 1) < 3 / np.sqrt(2 * X.size)


def decay(p, x):
    return jnp.exp(-p["b"] * x)


@pytest.mark.slow
def test_integrating_over_linear_coefficients_changes_nothing(decay_draws):
    _, joint = decay_draws
    made = Separable(decay, {"b": 2.0}, X, Y, offset=True)
    apart = sample_posterior(made, least_squares(made), key=KEY, progress=False)
    assert apart.ok, str(apart)
    assert apart.linear_names == ("amplitude", "offset")
    found = np.concatenate([apart.linear, apart.samples], axis=-1)[..., [0, 2, 1]]
    # Both have some 3,000 effective draws.
    off = (found.mean((0, 1)) - joint.mean) / joint.deviation
    assert np.abs(off).max() < 0.1
    assert np.abs(found.std((0, 1)) / joint.deviation - 1).max() < 0.07
    mine, theirs = (np.corrcoef(x.reshape(-1, 3).T) for x in (found, joint.samples))
    assert np.abs(mine - theirs).max() < 0.07


@eqx.filter_jit
def gradients(target, places, step=1e-4):
    """Gradients at some places, and central differences there."""
    both = jax.vmap(jax.value_and_grad(target.potential))
    size = places.shape[1]
    moves = jnp.concatenate([jnp.zeros((1, size)), jnp.eye(size), -jnp.eye(size)])
    around = places[:, None] + step * moves
    values, slopes = both(around.reshape(-1, size))
    values = values.reshape(around.shape[:2])[:, 1:]
    differences = (values[:, :size] - values[:, size:]) / (2 * step)
    return slopes.reshape(around.shape)[:, 0], differences


BOUNDED = {"a": 0.0, "b": 0.5, "c": None}, {"a": None, "b": 1.5, "c": 0.497}


@pytest.mark.slow
def test_gradient_of_the_density_is_right():
    # Bounds of several kinds, one of them active, and priors.
    made = problem({"a": 1.0, "b": 1.0, "c": 0.0}, bounds=BOUNDED)
    priors = {"a": LogNormal(2.0, 0.1), "b": None, "c": Normal(0.4, 0.1)}
    target = target_of(made, least_squares(made), priors, UnknownSigma())
    found, differences = gradients(target, jax.random.normal(KEY, (3, 4)))
    np.testing.assert_allclose(found, differences, rtol=1e-5, atol=1e-5)


def grouped(p, x):
    both = jnp.stack([jnp.exp(-p["b"] * x), jnp.exp(-p["d"] * x)], axis=-1)
    return jnp.broadcast_to(both[:, None], (x.size, 2, 2))


@pytest.mark.slow
def test_gradient_of_the_marginal_density_is_right():
    y = np.stack([np.exp(-X) + 0.5 * np.exp(-4 * X), np.exp(-4 * X) + 0.2], axis=1)
    y = y + SIGMA * np.random.default_rng(4).normal(size=y.shape)
    made = Separable(
        grouped,
        {"b": 1.2, "d": 3.5},
        X,
        y,
        functions=("slow", "fast"),
        groups=2,
        offset=True,
    )
    target = target_of(made, least_squares(made))
    found, differences = gradients(target, jax.random.normal(KEY, (2, 3)))
    np.testing.assert_allclose(found, differences, rtol=1e-5, atol=1e-5)


def test_transforms_and_their_slopes():
    low = jnp.array([-jnp.inf, 1.0, -jnp.inf, 0.7, -2.0])
    high = jnp.array([jnp.inf, jnp.inf, 3.0, 0.7, 2.0])
    u = jnp.array([0.3, -1.2, 0.7, 1.9])
    moving = np.array([0, 1, 2, 4])
    transform = Unconstrain(low, high)
    assert transform.forward(u)[3] == 0.7
    for some in (transform, Unconstrain(low[moving], high[moving])):
        values = some.forward(u)
        np.testing.assert_allclose(some.inverse(values), u, rtol=1e-12)
        slopes = np.linalg.norm(jax.jacfwd(some.forward)(u), axis=0)
        np.testing.assert_allclose(jnp.exp(some.log_slope(u)), slopes, rtol=1e-12)


def known_offset(options):
    """A decay whose offset is held by its bounds, and one of data without it."""
    data = {"b": 2.0}, X
    held = Separable(
        decay, *data, Y, offset=True, linear_bounds=([0, 0.5], [None, 0.5]), **options
    )
    return held, Separable(decay, *data, Y - 0.5, linear_bounds=(0, None), **options)


@pytest.mark.parametrize(
    "options", [{"sigma": SIGMA, "absolute_sigma": True}, {}], ids=["known", "unknown"]
)
def test_a_coefficient_between_equal_bounds_is_a_constant(options):
    held, written = (
        target_of(made, least_squares(made, throw=True))
        for made in known_offset(options)
    )
    # The two fits agree to rounding.
    np.testing.assert_allclose(held.centre, written.centre, rtol=1e-8)
    np.testing.assert_allclose(held.spread, written.spread, rtol=1e-6, atol=1e-12)
    z = jax.random.normal(KEY, (5, held.centre.size))
    mine, theirs = (jax.vmap(one.potential)(z) for one in (held, written))
    np.testing.assert_allclose(mine, theirs, rtol=1e-8)
    values = held.transform.forward(held.split(held.centre)[0])
    np.testing.assert_allclose(values[1], 0.5, rtol=0)


@pytest.mark.slow
def test_draws_hold_what_bounds_hold():
    held, written = (
        sample_posterior(made, least_squares(made), key=KEY, progress=False)
        for made in known_offset({})
    )
    assert held.ok, str(held)
    assert held.linear_names == ("amplitude", "offset")
    np.testing.assert_array_equal(held.linear[..., 1], 0.5)
    both = [
        np.concatenate([one.linear[..., :1], one.samples], axis=-1)
        for one in (held, written)
    ]
    # Both have some 2,000 effective draws.
    spread = both[1].std((0, 1))
    assert np.abs((both[0] - both[1]).mean((0, 1)) / spread).max() < 0.1
    assert np.abs(both[0].std((0, 1)) / spread - 1).max() < 0.07
    assert abs(held.sigma.mean() / written.sigma.mean() - 1) < 0.02


def product(p, data):
    x, y = data
    return (p["a"] * p["twin"] * jnp.exp(-p["b"] * x) - y) / SIGMA


@pytest.mark.slow
def test_draws_at_a_bound_on_one_side_do_not_diverge():
    # In its logarithm a normal that is cut off at 0 is steep above and flat below:
    # too much for the steps of a first run.
    y = 0.3 * np.random.default_rng(1).normal(size=20)
    y = y - y.mean()
    made = LeastSquares(
        lambda p, y: (p["a"] - y) / 0.3,
        {"a": 0.1},
        y,
        bounds=({"a": 0.0}, None),
        absolute_sigma=True,
    )
    result = least_squares(made)
    exact = stats.halfnorm(scale=0.3 / np.sqrt(y.size))
    refined = 0
    for seed in range(4):
        key = jax.random.key(seed)
        posterior = sample_posterior(made, result, key=key, progress=False)
        assert posterior.ok, str(posterior)
        refined += posterior.refined
        # Four Monte-Carlo errors, with the effective number of draws.
        off = (posterior.mean[0] - exact.mean()) / exact.std()
        assert abs(off) * np.sqrt(posterior.bulk_ess[0]) < 4
    assert refined


@pytest.mark.slow
def test_what_nothing_determines_is_refused_and_named():
    start = {"a": 1.0, "b": 1.0, "twin": 1.5}
    made = LeastSquares(product, start, (X, Y), absolute_sigma=True)
    result = least_squares(made)
    with pytest.raises(ArgumentError, match="nothing determines (a|twin): its poster"):
        sample_posterior(made, result, key=KEY)
    # A prior does.
    priors = {"a": Normal(1.0, 0.1), "b": None, "twin": None}
    assert np.isfinite(target_of(made, result, priors).spread).all()


def test_problems_that_are_no_likelihood_are_refused():
    made = problem(loss=Huber())
    with pytest.raises(ArgumentError, match="must have the loss `Squared` to be a lik"):
        sample_posterior(made, least_squares(problem()), key=KEY)
    made = problem(penalty=lambda p: p["a"][None])
    with pytest.raises(
        ArgumentError, match="`penalty` must be None where the standard"
    ):
        sample_posterior(made, least_squares(problem()), key=KEY)
    exact = problem(data=(X, 2 * np.exp(-X)))
    result = eqx.tree_at(lambda r: r.chi2, least_squares(problem()), jnp.zeros(()))
    with pytest.raises(ArgumentError, match="but they vanish. Give `sigma=KnownSigma"):
        sample_posterior(exact, result, key=KEY)


def test_numbers_are_checked():
    result = least_squares(problem())
    for name in ("draws", "warmup", "chains"):
        with pytest.raises(ArgumentError, match=f"`{name}` must be an integer .* is 0"):
            sample_posterior(problem(), result, key=KEY, **{name: 0})
    with pytest.raises(ArgumentError, match="`deviation` must be positive, but is 0"):
        KnownSigma(0.0)


def test_a_missing_extra_is_named(monkeypatch, line):
    monkeypatch.setitem(sys.modules, "numpyro.infer", None)
    with pytest.raises(MissingExtraError, match=r"numpyro.*physax\[bayes\]"):
        sample_posterior(problem(), least_squares(problem()), key=KEY)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(MissingExtraError, match=r"arviz.*physax\[bayes\]"):
        to_arviz(line[0])


def straight(p, data):
    x, y = data
    return (p["c"] + p["m"] * x - y) / SIGMA


def few(**options):
    """Draws of a line, too few to be reliable: it is sampled twice."""
    made = LeastSquares(straight, {"c": 0.0, "m": 0.0}, (X, Y), absolute_sigma=True)
    result = least_squares(made)
    sizes = {"draws": 20, "warmup": 10, "chains": 2}
    return sample_posterior(
        made, result, **{"key": KEY, "progress": False, **sizes, **options}
    )


@pytest.fixture
def signal_at(monkeypatch):
    """Returns a function that ends runs that come to a step, as Ctrl-C would, once."""
    advance, waiting = _posterior._advance, []

    def interrupted(*arguments):
        if int(arguments[-2]) in waiting:
            waiting.clear()
            signal.raise_signal(signal.SIGINT)
        return advance(*arguments)

    monkeypatch.setattr(_posterior, "_advance", interrupted)
    return waiting.append


def test_interrupted_chains_go_on_to_the_same_bits(tmp_path, signal_at):
    whole, first = few(), few(refine=False)
    assert whole.refined
    kept = Checkpointing(tmp_path, 5)
    # What a warm-up leaves is no draw.
    signal_at(0)
    again = r"signal ended .* of 30. The first 10 are the .* same checkpoint folder to"
    with pytest.raises(RunError, match=again) as caught:
        few(checkpoint=kept)
    assert caught.value.status == Status.INTERRUPTED
    signal_at(20)
    part = few(checkpoint=kept)
    assert part.status == Status.INTERRUPTED
    assert not part.ok
    assert "\nA signal ended the run before its last step.\n" in str(part)
    draws = part.samples.shape[1]
    assert 10 < draws <= 15
    np.testing.assert_array_equal(part.samples, first.samples[:, :draws])
    # The warm-up of the second run: the draws of the first are there.
    signal_at(0)
    between = few(checkpoint=kept)
    assert (between.status, between.refined) == (Status.INTERRUPTED, False)
    np.testing.assert_array_equal(between.samples, first.samples)
    rest = few(checkpoint=kept)
    assert rest.status == Status.SUCCESSFUL
    for name in ("samples", "acceptance", "steps", "r_hat"):
        np.testing.assert_array_equal(getattr(rest, name), getattr(whole, name))
    with pytest.raises(FingerprintError, match="key"):
        few(checkpoint=kept, key=jax.random.key(1))


def test_without_checkpoints_a_signal_in_the_warm_up_says_so(signal_at):
    signal_at(0)
    with pytest.raises(RunError, match="Pass `checkpoint` to be able to resume"):
        few()
