"""Arguments of another kind are refused by their names, whoever is given them."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.fit import (
    DifferentialEvolution,
    KnownSigma,
    LeastSquares,
    Mixing,
    Normal,
    Parameters,
    PriorResiduals,
    Separable,
    Skip,
    Stream,
    Tie,
    TrustRegion,
    Uniform,
    confidence_intervals,
    curve_fit,
    global_search,
    identifiability,
    least_squares,
    multistart,
    plan,
    plan_for,
    profile_likelihood,
    r_hat,
    sample_posterior,
    separate,
    shared,
    target_of,
    to_arviz,
)
from tests.fit.decays import START, X, Y, problem, residual


KEY = jax.random.key(0)
LIMITS = {"a": 0.0, "b": 0.1, "c": -1.0}, {"a": 5.0, "b": 5.0, "c": 1.0}


@pytest.fixture(autouse=True)
def _unchecked(monkeypatch):
    """Users run it without the type checks of the tests, which come first."""
    for kind in (LeastSquares, Mixing, Parameters, Separable, Stream, Tie):
        monkeypatch.setattr(kind, "__init__", inspect.unwrap(kind.__init__))


def raw(function):
    return inspect.unwrap(function)


def bounded():
    return problem(bounds=LIMITS)


def decay(p, x):
    return jnp.exp(-p["b"] * x)


def apart(basis=decay, observed=Y, **options):
    return Separable(basis, {"b": 2.0}, X, observed, **options)


def of_numpy(p, data):
    return p["a"] * np.exp(-p["b"] * data[0]) + p["c"] - data[1]


def fitted():
    return least_squares(problem())


NOT_A_PROBLEM = "`problem` must be an `AbstractProblem`, but is a function. Make one"
NOT_A_METHOD = "`method` must be a `TrustRegion`, but is a str. Write `TrustRegion"
NOT_A_RESULT = "`result` must be a `FitResult`, but is a dict. Make one by"
NOT_A_KEY = r"`key` must be a key, as `jax.random.key\(0\)`, but is 3"
TABLE = [
    (NOT_A_PROBLEM, lambda: raw(least_squares)(residual)),
    (NOT_A_PROBLEM, lambda: raw(plan_for)(residual)),
    (NOT_A_PROBLEM, lambda: raw(multistart)(residual, key=KEY)),
    (NOT_A_PROBLEM, lambda: raw(global_search)(residual, key=KEY)),
    (NOT_A_PROBLEM, lambda: raw(profile_likelihood)(residual, fitted(), "a")),
    (NOT_A_PROBLEM, lambda: raw(target_of)(residual, fitted())),
    (NOT_A_METHOD, lambda: raw(least_squares)(problem(), "lm")),
    (NOT_A_METHOD, lambda: raw(multistart)(bounded(), "lm", key=KEY)),
    (NOT_A_METHOD, lambda: raw(global_search)(bounded(), method="lm", key=KEY)),
    (
        NOT_A_METHOD,
        lambda: raw(profile_likelihood)(problem(), fitted(), "a", method="lm"),
    ),
    (NOT_A_RESULT, lambda: raw(confidence_intervals)({})),
    (NOT_A_RESULT, lambda: raw(identifiability)({})),
    (NOT_A_RESULT, lambda: raw(profile_likelihood)(problem(), {}, "a")),
    (NOT_A_RESULT, lambda: raw(target_of)(problem(), {})),
    (NOT_A_KEY, lambda: raw(multistart)(bounded(), key=3)),
    (NOT_A_KEY, lambda: raw(global_search)(bounded(), key=3)),
    (NOT_A_KEY, lambda: raw(sample_posterior)(problem(), fitted(), key=3)),
    (
        "`plan` must be a `Plan`, .* an int",
        lambda: raw(least_squares)(problem(), plan=3),
    ),
    (
        "`mesh` must be a mesh of devices, .* but is 2",
        lambda: raw(least_squares)(problem(), mesh=2),
    ),
    (
        "`checkpoint` must be a `Checkpointing`, but is a str",
        lambda: raw(least_squares)(problem(), checkpoint="folder"),
    ),
    (
        r"`on_bad_chunk` must be a `Skip`, but is a float. Write `Skip\(0.01\)`",
        lambda: raw(least_squares)(problem(), on_bad_chunk=0.1),
    ),
    (
        "`progress` must be True, False, None or a `Progress`, but is a str",
        lambda: raw(least_squares)(problem(), progress="bar"),
    ),
    (
        "`throw` must be True or False",
        lambda: raw(least_squares)(problem(), throw="no"),
    ),
    ("`checks` must be True or", lambda: raw(least_squares)(problem(), checks="no")),
    (
        "`max_evaluations` must be an integer of at least 1, but is 2.5",
        lambda: TrustRegion(max_evaluations=2.5),
    ),
    (
        "`max_evaluations` must be an integer of at least 1, but is 0",
        lambda: TrustRegion(max_evaluations=0),
    ),
    ("`polish` must be True or False, but is 'no'", lambda: TrustRegion(polish="no")),
    (
        "`starts` must be an integer of at least 1, but is '8'",
        lambda: raw(multistart)(bounded(), key=KEY, starts="8"),
    ),
    (
        "`refine` must be an integer of at least 1, but is 1.5",
        lambda: raw(multistart)(bounded(), key=KEY, refine=1.5),
    ),
    (
        "`distance` must be a number, but is 'near'",
        lambda: raw(multistart)(bounded(), key=KEY, distance="near"),
    ),
    (
        "`sampling` must be an `AbstractSampling`, but is a str",
        lambda: raw(multistart)(bounded(), key=KEY, sampling="sobol"),
    ),
    (
        "`search` must be a `DifferentialEvolution`, but is an int",
        lambda: raw(global_search)(bounded(), 100, key=KEY),
    ),
    (
        "`generations` must be an integer",
        lambda: DifferentialEvolution(generations="9"),
    ),
    ("`tolerance` must be at least 0", lambda: DifferentialEvolution(tolerance=-1.0)),
    ("`residual` must be a function such as", lambda: LeastSquares(3, 1.0, X)),
    ("`penalty` must be a function such as", lambda: problem(penalty=3)),
    (
        r"`loss` must be an `AbstractLoss`, but is a str. Write `Huber\(scale\)`",
        lambda: problem(loss="huber"),
    ),
    (
        "`mask` must be an array of booleans, but is one of dtype int64. Compare it",
        lambda: problem(mask=np.full(X.size, 2)),
    ),
    ("`mask` must be .* booleans, but is a list", lambda: apart(mask=[True] * X.size)),
    ("`bounds` must be a pair, .* but is 3", lambda: problem(bounds=3)),
    ("`bounds` must be a pair, .* but is None", lambda: problem(bounds=None)),
    ("`ties` must be a `Tie`, but is a function", lambda: problem(ties=lambda p: p)),
    ("`where` must be a function such as", lambda: Tie("a", lambda p: p["b"])),
    ("`value` must be a function such as", lambda: Tie(lambda p: p["b"], 3.0)),
    ("`start` must hold at least one number", lambda: Parameters("a")),
    ("`basis` must be a function such as", lambda: apart(3)),
    ("`observed` must be an array whose first axis", lambda: apart(observed=list(Y))),
    ("`functions` must be a list of names, .* 'ab'", lambda: apart(functions="ab")),
    ("`offset` must be True or False, but is 'no'", lambda: apart(offset="no")),
    ("`groups` must be an integer of at least 1, but", lambda: apart(groups=1.5)),
    ("`mixing` must be a `Mixing`, but is a list", lambda: apart(mixing=[[1.0]])),
    ("`linear_bounds` must be a pair, .* is 0.5", lambda: apart(linear_bounds=0.5)),
    ("`sigma` must be a number, but is 'one'", lambda: apart(sigma="one")),
    (
        r"`sigma` must be one number or have the shape \(200,\) of .* shape \(3,\)",
        lambda: apart(sigma=np.ones(3)),
    ),
    (r"`rows` must have shape .*, but has shape \(3,\)", lambda: Mixing(np.ones(3))),
    ("`rows` must be numbers, but is", lambda: Mixing([["a"]])),
    ("`names` must be a list of names, .* but is 'a'", lambda: Mixing(np.eye(1), "a")),
    ("`groups` must be an integer .* is '3'", lambda: raw(separate)("3")),
    ("`groups` must be an integer .* is 0", lambda: raw(shared)(0)),
    (
        "`n_points` must be an integer of at least 1, but is '9'",
        lambda: raw(plan)("9", 5),
    ),
    ("`memory` must be a number, but is '8 GB'", lambda: raw(plan)(9, 5, "8 GB")),
    ("`memory` must be positive, but is -1", lambda: plan(9, 5, -1.0)),
    ("`columns` must be positive, but is 0", lambda: plan(9, 5, columns=0.0)),
    ("`resident` must be True or", lambda: raw(plan)(9, 5, resident="no")),
    ("`open` must be a function such as", lambda: Stream(3, 9)),
    ("`points` must be an integer .* is 2.5", lambda: Stream(lambda: iter([X]), 2.5)),
    ("`max_fraction` must be a number, but is 'all'", lambda: Skip("all")),
    ("`f` must be a function such as", lambda: raw(curve_fit)("decay", X, Y)),
    (
        "`sigma` must be real, but has dtype complex128. Real and imaginary parts of",
        lambda: raw(curve_fit)(lambda x, a: a * x, X, Y, sigma=np.full(X.size, 1j)),
    ),
    (
        "`weights` must be real, but has dtype complex128. Take their real part.",
        lambda: problem(weights=np.full(X.size, 1 + 1j)),
    ),
    (
        "`check_finite` must be True or False, but is 'no'",
        lambda: raw(curve_fit)(decay, X, Y, check_finite="no"),
    ),
    ("`level` must be a number, but", lambda: raw(confidence_intervals)(fitted(), "9")),
    (
        "`points` must be an integer of at least 5, but is 9.5",
        lambda: raw(profile_likelihood)(problem(), fitted(), "a", points=9.5),
    ),
    (
        "`values` must be a number, but is 'low'",
        lambda: raw(profile_likelihood)(problem(), fitted(), "a", "low"),
    ),
    (
        r"`draws` must be .* \(chains, draws\), .* \(9,\)",
        lambda: raw(r_hat)(np.ones(9)),
    ),
    (
        "`chains` must be an integer of at least 1, but is 2.5",
        lambda: raw(sample_posterior)(problem(), fitted(), key=KEY, chains=2.5),
    ),
    (
        "`refine` must be True or False, but is 'no'",
        lambda: raw(sample_posterior)(problem(), fitted(), key=KEY, refine="no"),
    ),
    (
        "`checkpoint` must be a `Checkpointing`, but is a str",
        lambda: raw(sample_posterior)(problem(), fitted(), key=KEY, checkpoint="here"),
    ),
    (
        "`sigma` must be a `KnownSigma` or an `UnknownSigma`, but is a float",
        lambda: raw(target_of)(problem(), fitted(), sigma=0.1),
    ),
    (
        "`priors` must be an `AbstractPrior`, but is a float",
        lambda: PriorResiduals({"a": 3.0})({"a": jnp.ones(())}),
    ),
    ("`posterior` must be a `Posterior`", lambda: raw(to_arviz)(fitted())),
    ("`mean` must be real, but has dtype complex", lambda: Normal(1j, 1.0)),
    ("`low` must be real, but has dtype complex", lambda: Uniform(1j, 1.0)),
    ("`deviation` must be positive, but is 0", lambda: KnownSigma(0.0)),
    (
        "`start` must hold real numbers, but has a complex number. Give its real and",
        lambda: problem({"a": 1j, "b": 1.0, "c": 0.0}),
    ),
    (
        r"`start` must hold numbers, but start\['mode'\] is 'fast'. Options that",
        lambda: problem({**START, "mode": "fast"}),
    ),
    (
        r"`bounds` .* lower one does not fit: it has bb, but `start` does not, and it "
        r"lacks b \(write None for none\). The entries of `start` are a, b, c.$",
        lambda: problem(bounds=({"a": 0.0, "bb": 0.0, "c": None}, None)),
    ),
    (
        "`bounds` .* lower one does not fit: cannot broadcast a non-scalar to",
        lambda: problem(bounds=({"a": np.zeros(2), "b": None, "c": None}, None)),
    ),
    (
        "`bounds` .* upper one does not fit: it is a list. `start` is a dict.$",
        lambda: Parameters({"0": 1.0}, (None, [9.0])),
    ),
    (
        r"`priors` .* does not fit: it has bb, but `parameters` does not, and it lacks "
        r"b \(write None for none\). The entries of `parameters` are a, b, c.$",
        lambda: PriorResiduals({"a": Normal(0.0, 1.0), "bb": None, "c": None})(START),
    ),
    (
        "`fixed` must pick parameters of `start`, which are a, b, c, .* KeyError 'd'.$",
        lambda: problem(fixed=lambda p: p["d"]),
    ),
    (
        "`where` must pick parameters of `start`, which are a, b, c, .* KeyError 'd'.$",
        lambda: problem(ties=Tie(lambda p: p["d"], lambda p: p["a"])),
    ),
    (
        "`residual` must be written with `jax.numpy`, but hands its arguments to NumPy",
        lambda: raw(least_squares)(LeastSquares(of_numpy, START, (X, Y))),
    ),
    (
        "`basis` must be written with `jax.numpy`, but hands its arguments to NumPy",
        lambda: raw(least_squares)(apart(lambda p, x: np.exp(-p["b"] * x))),
    ),
    (
        r"`basis` must return an array of shape \(200, 2\) for 2 `functions`, but its "
        r"shape is \(200,\). Stack them",
        lambda: raw(least_squares)(apart(functions=["a", "b"])),
    ),
]


@pytest.mark.parametrize(("message", "call"), TABLE, ids=[m for m, _ in TABLE])
def test_what_is_of_another_kind_is_refused_by_its_name(message, call):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_what_is_no_number_is_a_constant_of_the_start():
    start = {"a": 1, "b": 2.0, "c": True, "d": None, "e": np.arange(3), "f": decay}
    parameters = Parameters(start)
    assert parameters.names == ("a", "b")
    assert parameters.tree(parameters.vector)["c"] is True


def test_pairs_names_and_numbers_of_numpy_are_taken():
    assert problem(bounds=[None, np.float64(9)]).bounds()[1].tolist() == [9] * 3
    assert TrustRegion(max_evaluations=np.int64(3)).max_evaluations == 3
    assert raw(confidence_intervals)(fitted(), np.float32(0.5)).level == 0.5
