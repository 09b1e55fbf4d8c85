import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from physax._checks import ArgumentError
from physax.fit import (
    LogNormal,
    Normal,
    PriorResiduals,
    TruncatedNormal,
    Uniform,
    least_squares,
)
from physax.fit._priors import log_prior
from tests.fit.decays import SIGMA, X, problem


PRIORS = {
    Normal: (Normal(1.0, 0.5), stats.norm(1, 0.5)),
    LogNormal: (LogNormal(2.0, 0.3), stats.lognorm(0.3, scale=2)),
    TruncatedNormal: (
        TruncatedNormal(1.0, 0.5, 0.2, 4.0),
        stats.truncnorm(-1.6, 6, 1, 0.5),
    ),
    Uniform: (Uniform(-1.0, 3.0), stats.uniform(-1, 4)),
}
# Far in the tail, where differences of cumulative distributions are lost.
TAIL = TruncatedNormal(0.0, 1.0, 10.0, 11.0), stats.truncnorm(10, 11)


@pytest.mark.parametrize(("prior", "reference"), [*PRIORS.values(), TAIL])
def test_densities_are_scipys(prior, reference):
    x = np.array([-2.0, -0.5, 0.0, 0.25, 1.0, 2.5, 5.0, 10.2])
    expected = reference.logpdf(x)
    np.testing.assert_allclose(prior.log_density(jnp.asarray(x)), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", [Normal, LogNormal, TruncatedNormal])
def test_squares_of_residuals_are_the_density_but_for_a_constant(kind):
    prior = PRIORS[kind][0]
    x = jnp.array([0.3, 0.9, 1.7])
    # A log-normal one per unit of ln x.
    density = prior.log_density(x) + (jnp.log(x) if kind is LogNormal else 0)
    rest = density + 0.5 * prior.residual(x) ** 2
    np.testing.assert_allclose(rest, rest[0], rtol=1e-12)


def test_a_prior_on_a_fit_is_one_more_measurement():
    # The penalty counts in units of standard deviations, as these residuals do.
    weights = np.full(X.size, SIGMA**-2.0)
    free = least_squares(problem(weights=weights, absolute_sigma=True))
    belief = PriorResiduals({"a": None, "b": Normal(1.25, 0.01), "c": None})
    result = least_squares(
        problem(weights=weights, absolute_sigma=True, penalty=belief), throw=True
    )
    # Of two normal measurements the precisions add; the model is nearly linear here.
    precision = float(free.standard_errors[1]) ** -2 + 0.01**-2
    mean = (float(free.values[1]) * (precision - 1e4) + 1.25e4) / precision
    assert abs(float(result.standard_errors[1]) * precision**0.5 - 1) < 0.02
    assert abs(float(result.values[1]) - mean) < 0.05 * precision**-0.5
    assert int(result.count) == X.size + 1


def test_one_prior_may_serve_a_whole_tree():
    tree = {"a": jnp.array([0.0, 1.0]), "b": jnp.array(2.0)}
    found = log_prior(Normal(0.0, 1.0), tree)
    np.testing.assert_allclose(found, stats.norm.logpdf([0, 1, 2]).sum())
    assert float(log_prior({"a": None, "b": None}, tree)) == 0


def test_a_tree_that_does_not_fit_is_refused():
    with pytest.raises(ArgumentError, match="`priors` must be a tree like the param"):
        log_prior({"d": Normal(0.0, 1.0)}, {"a": jnp.array(1.0)})


def test_numbers_are_checked():
    with pytest.raises(ArgumentError, match="`deviation` must be positive, but is 0"):
        Normal(1.0, 0.0)
    with pytest.raises(ArgumentError, match="`median` must be positive, but is -1"):
        LogNormal(-1.0, 1.0)
    with pytest.raises(ArgumentError, match="`low` must be less than `high`, but"):
        Uniform(2.0, 1.0)
